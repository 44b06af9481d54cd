"""A run on a Ray cluster: actors, nodes and the driver killed, and nothing lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from benchmarks.selfplay_survives import Run, reckon
from keima.errors import BadRequest
from keima.training.run.recipe_text import toml_lines
from keima.training.selfplay.networks import list_networks
from keima.training.selfplay.shards import FOLDER as GAMES
from keima.training.selfplay.store import Store
from tests.training.selfplay.runs import SMALL, recipe

pytest.importorskip("ray", reason="Ray is not installed: pip install 'keima[cluster]'")

from keima.training.selfplay.roles import cluster


@pytest.mark.parametrize(
    ("gpus", "processes", "share"),
    [(8, 8, 1.0), (8, 4, 1.0), (1, 3, 0.3333), (2, 3, 0.5), (7, 14, 0.5), (0.5, 7, 0.0714), (7, 15, 0.3333)],
)
def test_gpus_are_shared_and_no_more_than_there_are(gpus: float, processes: int, share: float) -> None:
    found = cluster.gpu_share(gpus, processes)
    assert found == pytest.approx(share)
    assert found * processes <= gpus + 1e-9


def test_the_learner_has_its_devices() -> None:
    eight, four = (recipe(run={"devices": devices}) for devices in (8, 4))
    assert cluster.learner_gpus(eight, 8, 16) == 8
    assert cluster.learner_gpus(four, 8, 8) == 4
    assert cluster.learner_gpus(recipe(), 1, 2) == 1
    assert cluster.learner_gpus(recipe(), 1, 1) == 0.5, "the only one is shared with the workers"
    assert cluster.learner_gpus(recipe(run={"device": "cpu"}), 8, 8) == 0


def test_a_store_that_only_one_process_sees_is_refused() -> None:
    with pytest.raises(BadRequest, match="memory of its own"):
        cluster.run(recipe(), "memory://run", "local")


def test_a_node_that_sees_another_folder_is_refused(tmp_path: Path) -> None:
    outcome, why = cluster.RoleActor(str(tmp_path), "token", "worker", ["--name", "w"]).run()
    assert outcome == cluster.REFUSED
    assert "does not see this run's store" in why
    Store(tmp_path).write(cluster.CLUSTER, b'{"token": "of another driver"}')
    assert "another one is there" in cluster.RoleActor(str(tmp_path), "token", "worker", ["--name", "w"]).run()[1]


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Ray on this machine, as a cluster of one node with one CPU, to which others are added."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    with TemporaryDirectory() as folder:  # tmp_path is too long for Ray's sockets
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr("tempfile.tempdir", None)
        found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        yield found
        found.shutdown()


def wait_for(what: Callable[[], Any], run: Run) -> Any:
    end = time.monotonic() + 240
    while not (found := what()):
        assert run.process.poll() is None, run.folder.with_suffix(".log").read_text()
        assert time.monotonic() < end, run.folder.with_suffix(".log").read_text()
        run.look()
        time.sleep(0.1)
    return found


def process_of(worker: int) -> int:
    """The process of a worker on this machine, by its lock; 0: it is not there."""
    for lock in Path(os.environ["TMPDIR"]).glob(f"keima-*/workers/*-{worker}.lock"):
        pid = int(lock.read_text() or 0)
        return pid if Path(f"/proc/{pid}/stat").exists() else 0
    return 0


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("default")
def test_actors_nodes_and_the_driver_are_killed(tmp_path: Path, nodes: Any) -> None:
    sections = {**SMALL, "run": {**SMALL["run"], "steps": 100_000}}
    (tmp_path / "small.toml").write_text("\n".join(toml_lines(sections)))
    run = Run([str(tmp_path / "small.toml"), "--ray", nodes.address, "--workers", "1"], tmp_path / "run")
    store = Store(tmp_path / "run")

    def more_games() -> None:
        before = len(store.list(GAMES))
        wait_for(lambda: len(store.list(GAMES)) > before, run)

    try:
        worker = wait_for(lambda: process_of(0), run)
        more_games()
        os.kill(parent(worker), signal.SIGKILL)  # its actor
        assert wait_for(lambda: process_of(0) not in (0, worker), run), "and it is there again"
        added = nodes.add_node(num_cpus=1)
        assert wait_for(lambda: process_of(1), run), "a node that joins gets a worker"
        more_games()
        nodes.remove_node(added)
        wait_for(lambda: not process_of(1), run)
        more_games()
        run.process.kill()
        run.process.wait()
        run.look()
        run.start()
        more_games()
        published = len(list_networks(store))
        wait_for(lambda: len(list_networks(store)) > published, run)
    finally:
        run.end()
    counted = reckon(tmp_path / "run", run.seen)
    assert counted.lost_shards == []
    assert counted.counted_twice == 0
    assert counted.games == len(store.list(GAMES)) * SMALL["games"]["block"] - counted.sent_twice
    said = (tmp_path / "run.log").read_text()
    assert "is gone; what its workers reported stays" in said
