"""The processes of a run: what they leave behind, whatever becomes of them."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import keima
from benchmarks.selfplay_survives import SUPERVISOR, Run, learn_again, reckon, weights
from keima.errors import BadRequest
from keima.inference.evaluator import Evaluator
from keima.systems.network import Network
from keima.training.run.recipe_text import toml_lines
from keima.training.selfplay import judge, learner
from keima.training.selfplay.checks import check_loop, write_run
from keima.training.selfplay.networks import list_networks, publish
from keima.training.selfplay.recipe import (
    GamesRecipe,
    JudgeRecipe,
    LoopRecipe,
    SearchRecipe,
    WindowRecipe,
    read_loop,
)
from keima.training.selfplay.roles import supervisor, worker
from keima.training.selfplay.roles.claims import STALE_SECONDS, Claims
from keima.training.selfplay.roles.processes import Stop, take_lock
from keima.training.selfplay.roles.role import Role
from keima.training.selfplay.roles.status import Glances, Meter, Status, read_statuses
from keima.training.selfplay.roles.worker import Pace, Worker
from keima.training.selfplay.shards import FOLDER as GAMES
from keima.training.selfplay.store import Store
from tests.training.selfplay.runs import SMALL, recipe


def begun(folder: Path, **sections: Any) -> tuple[Store, LoopRecipe]:
    """A run whose fresh network is there."""
    text = "\n".join(toml_lines({name: {**SMALL[name], **sections.get(name, {})} for name in SMALL}))
    path = folder / "small.toml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    small = read_loop(path)
    store = Store(folder / "run")
    write_run(store, small)
    publish(store, 0, check_loop(small).eval(), 0, lambda: None)
    return store, small


class After(Stop):
    """Asks a worker to end once the store has so many shards."""

    def __init__(self, store: Store, shards: int) -> None:
        super().__init__()
        self.store, self.shards = store, shards

    def __call__(self) -> bool:
        return len(self.store.list(GAMES)) >= self.shards


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, quick_training: None) -> None:
    monkeypatch.setattr(worker, "POLL_SECONDS", 0.2)
    monkeypatch.setattr(worker, "_MEASURE_SECONDS", 0.05)
    for role in (learner, judge):
        monkeypatch.setattr(role, "draw_curve", lambda _: None)


class TestARun:
    def test_workers_learner_and_judge_run_to_the_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = set()

        def recording(network: Network, backend: str, precision: str, *sizes: int | None) -> Evaluator:
            asked.add(precision)
            return Evaluator(network, backend, precision, *sizes)

        for role in (worker, judge):
            monkeypatch.setattr(role, "Evaluator", recording)
        sections = {"search": {"precision": "f32"}, "judge": {"games": 4, "visits": 2}, "run": {"steps": 8}}
        store, small = begun(tmp_path, **sections)
        told: list[str] = []
        roles = [Role(store.address, told.append, turns=True) for _ in range(4)]
        jobs = [lambda: roles[0].work("w0", 1), lambda: roles[1].work("w1", 1), roles[2].judge]
        threads = [threading.Thread(target=job) for job in jobs]
        for thread in threads:
            thread.start()
        result = roles[3].learn()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert result.step == 8
        assert list_networks(store) == [0, 1, 2]
        assert [json.loads(store.read(f"ratings/00000{g}.json"))["generation"] for g in (1, 2)] == [1, 2]
        counted = reckon(tmp_path / "run", set(store.list(GAMES)))
        assert (counted.sent_twice, counted.counted_twice, counted.lost_shards) == (0, 0, [])
        assert asked == {"f32"}, "as the recipe says, not as it comes"
        seen = Glances(store, small).look()
        assert (seen.generation, seen.step, seen.rated) == (2, 8, 2)
        assert seen.games == counted.games
        assert counted.positions >= small.window.needed(2, 16)
        assert {(each["role"], each["doing"]) for each in seen.roles} == {
            (role, "has ended") for role in ("worker", "learner", "judge")
        }

    def test_a_worker_that_was_stopped_reports_what_it_would_have(self, tmp_path: Path) -> None:
        store, _ = begun(tmp_path / "once")
        for shards in (4, 9):
            Worker(store, "w", tmp_path / "once", After(store, shards), print, 1).run()
        other, _ = begun(tmp_path / "twice")
        Worker(other, "x", tmp_path / "twice", After(other, 9), print, 1).run()
        first = [name for name in store.list(GAMES) if name < f"{GAMES}/00000024"]
        assert len(first) == 6
        assert first == [name for name in other.list(GAMES) if name < f"{GAMES}/00000024"], "the same bytes"


class TestClaims:
    def test_nobody_is_given_what_another_has(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        one, two = Claims(store, "one", 10), Claims(store, "two", 10)
        given = [each.take() for _ in range(3) for each in (one, two)]
        assert sorted(given) == [0, 10, 20, 30, 40, 50]
        store.write(f"{GAMES}/00000060-00000069-{'0' * 16}.parquet", b"")
        one.release(0)
        assert one.take() == 70, "what is played is not played again"
        assert 0 not in one.mine

    def test_a_worker_takes_up_its_own(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        before = Claims(store, "one", 10)
        assert [before.take(), before.take(), Claims(store, "two", 10).take()] == [0, 10, 20]
        store.write(f"{GAMES}/00000000-00000009-{'0' * 16}.parquet", b"")
        blocks, lost = Claims(store, "one", 10).resume([3, 12, 25])
        assert blocks == {10}
        assert lost == {3, 25}, "one block is in the store, another's is being played"

    def test_what_is_not_renewed_is_taken_over(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store = Store(tmp_path)
        Claims(store, "lost", 10).take()
        living, other = Claims(store, "living", 10), Claims(store, "other", 10)
        assert [living.take(), other.take()] == [10, 20]
        now, ticks = time.time(), time.monotonic()
        for later in (STALE_SECONDS / 2, STALE_SECONDS + 1):
            monkeypatch.setattr("keima.training.selfplay.roles.claims.time.time", lambda: now + later)  # noqa: B023
            monkeypatch.setattr("keima.training.selfplay.roles.claims.time.monotonic", lambda: ticks + later)  # noqa: B023
            living.renew()
        assert other.take() == 0
        assert other.take() == 30, "the living one's claim is its own"


class TestPace:
    def manifest(self, store: Store, generation: int, shards: int, positions: int) -> None:
        names = [f"{GAMES}/{4 * k:08d}-{4 * k + 3:08d}-{'0' * 16}.parquet" for k in range(shards)]
        for name in names:
            store.write(name, b"")
        counts = [[4, positions // shards]] * shards
        found = {"generation": generation, "positions": positions, "shards": names, "counts": counts}
        store.write(f"windows/{generation:06d}.json", json.dumps(found).encode())

    def test_nobody_plays_far_ahead_of_a_learner_and_nobody_lets_it_wait(self, tmp_path: Path) -> None:
        store, small = begun(tmp_path, window={"steps": 50, "reuse": 4.0, "first": 100}, run={"steps": 250})
        enough = small.window.needed(2, 16)
        assert enough == 300
        assert Pace(store, small).may_begin(), "nothing is known yet"
        self.manifest(store, 1, 10, 100)
        assert Pace(store, small).may_begin(), "generation 1 is being trained, and 2 needs more games"
        for k in range(10, 31):
            store.write(f"{GAMES}/{4 * k:08d}-{4 * k + 3:08d}-{'0' * 16}.parquet", b"")
        assert not Pace(store, small).may_begin(), "about 310 positions"
        network = check_loop(small).eval()
        publish(store, 1, network, 50, lambda: None)
        assert Pace(store, small).may_begin(), "generation 2 has not begun: it may be waiting"
        for k in range(31, 60):
            store.write(f"{GAMES}/{4 * k:08d}-{4 * k + 3:08d}-{'0' * 16}.parquet", b"")
        assert not Pace(store, small).may_begin(), "no learner lives"
        status = Status(store, "learner", "learner")
        status.close("waits for games")
        assert Pace(store, small).may_begin(), "it lives, and waits"
        for generation in (2, 3, 4, 5):
            publish(store, generation, network, 50 * generation, lambda: None)
        assert not Pace(store, small).may_begin(), "there is nothing left to learn"


class TestProcesses:
    def test_a_child_does_not_outlive_its_parent(self) -> None:
        child = "from keima.training.selfplay.roles.processes import follow_parent as f; import os, sys, time; "
        child += "f(int(sys.argv[1])); print(os.getpid(), flush=True); time.sleep(60)"
        start = "import os, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1], "
        start += "str(os.getpid())]); time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", start, child], stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            parent.kill()
            end = time.monotonic() + 10
            while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
                assert time.monotonic() < end
                time.sleep(0.02)

    def test_one_supervisor_a_folder(self, tmp_path: Path) -> None:
        lock = take_lock(tmp_path / supervisor.LOCK)
        assert lock is not None
        with lock, pytest.raises(BadRequest, match=f"is being run by process {os.getpid()}"):
            supervisor.run(recipe(), tmp_path)
        again = take_lock(tmp_path / supervisor.LOCK)
        assert again is not None
        again.close()

    def test_a_role_that_dies_again_and_again_ends_the_run_with_its_words(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, small = begun(tmp_path)

        def failing(_: object, role: Any) -> SimpleNamespace:
            role.log.write_text("no such thing\n")
            return SimpleNamespace(exitcode=2, is_alive=lambda: False)

        monkeypatch.setattr(supervisor._Supervisor, "_start", failing)
        monkeypatch.setattr(supervisor, "QUICK_DEATHS", 2)
        told: list[str] = []
        watcher = supervisor.RunWatcher()
        monkeypatch.setattr(watcher, "say", told.append)
        with pytest.raises(BadRequest, match=r"worker-w\d ended with status 2.*\n  no such thing"):
            supervisor.run(small, tmp_path / "run", watcher=watcher)
        assert any("learner ended with status 2, and is started again" in each for each in told)
        assert store.exists("run.json")

    def test_the_machine_is_divided(self) -> None:
        assert supervisor.divide(2, gpu=False) == (1, 2, True)
        assert supervisor.divide(32, gpu=False) == (4, 8, True)
        assert supervisor.divide(16, gpu=True) == (14, 1, False)
        assert supervisor.divide(16, gpu=False, workers=4) == (4, 4, True)
        assert supervisor.divide(2, gpu=False, threads=1) == (2, 1, False)
        assert supervisor.divide(2, gpu=False, threads=2) == (1, 2, True)
        assert supervisor.divide(16, gpu=True, threads=1) == (14, 1, False)


def test_rates_are_those_of_the_last_minute_and_shares_of_the_time_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    meter, now = Meter(), 0.0
    monkeypatch.setattr("keima.training.selfplay.roles.status.time.monotonic", lambda: now)
    meter.rates(0)
    for second in range(1, 201):
        now = float(second)
        if second > 100:
            meter.worked(0.5)
        rates, active = meter.rates(10 * min(second, 180))
    assert rates[0] == pytest.approx(10 * 40 / 60, rel=0.03)
    assert active == pytest.approx(0.5)


def test_roles_not_heard_of_are_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    Status(store, "worker", "here").close()
    store.write("status/worker-gone.json", json.dumps({"role": "worker", "name": "gone", "time": 1.0}).encode())
    store.write("status/worker-torn.json", b'{"role": ')
    assert [each["name"] for each in read_statuses(store)] == ["here"]


def goes_on(run: Run) -> None:
    """Waits until there are two shards and a network more: the workers' and the learner's work."""
    store, end = Store(run.folder), time.monotonic() + 120
    shards, networks = len(store.list(GAMES)), len(list_networks(store))
    while len(store.list(GAMES)) < shards + 2 or len(list_networks(store)) == networks:
        run.look()
        assert time.monotonic() < end, "it does not go on"
        time.sleep(0.2)


@pytest.mark.slow
def test_whatever_is_killed_nothing_is_lost(tmp_path: Path) -> None:
    """Each process of a run is killed −9 at some moment, the first one started again by the same command."""
    sections = {**SMALL, "run": {**SMALL["run"], "steps": 100_000}, "judge": {"games": 0}}
    (tmp_path / "small.toml").write_text("\n".join(toml_lines(sections)))
    run, rng = Run([str(tmp_path / "small.toml"), "--workers", "2"], tmp_path / "run"), random.Random(5)
    try:
        for role in ("worker", "learner", SUPERVISOR, "worker"):
            goes_on(run)
            time.sleep(rng.random())
            run.kill(rng, role)
    finally:
        run.end()
    assert run.roles() == {}, "nobody is left"
    assert run.killed == {"worker": 2, "learner": 1, SUPERVISOR: 1}
    counted = reckon(tmp_path / "run", run.seen)
    assert counted.lost_shards == []
    assert counted.counted_twice == 0
    assert counted.generations >= 2
    made = weights(tmp_path / "run")
    assert len(set(made)) == len(made)
    assert learn_again(tmp_path / "run", tmp_path / "again", 60.0) == made
    assert keima.load(tmp_path / "run" / "networks" / "000001.safetensors").encoding.game == "connect_four"


def test_the_document_has_every_key_with_its_default() -> None:
    text = (Path(__file__).parents[3] / "docs" / "selfplay.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| (.*?) \|", text, re.MULTILINE)
    found = {(section, key): default for section, key, default in rows}
    sections = {"search": SearchRecipe, "games": GamesRecipe, "window": WindowRecipe, "judge": JudgeRecipe}
    for section, kind in sections.items():
        for each in dataclasses.fields(kind):
            if each.name != "numbers":
                told = found.pop((section, each.name)).replace(",", "")
                value = "none" if each.default in ("", ()) else str(each.default).lower()
                assert told == value or float(told) == each.default, f"{section}.{each.name}"
    assert found == {}
