"""The loop: it learns, and a run that was stopped ends like one that was not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import keima
from keima.errors import BadRequest
from keima.systems.network import Heads
from keima.systems.targets import TrainingBatch
from keima.training.run import checkpoint, loop
from keima.training.run.evaluation import Tally, report, tally_batches
from keima.training.run.loop import Watcher, train
from keima.training.run.metrics import read_metrics
from keima.training.run.preflight import build_network
from keima.training.run.recipe import Recipe
from keima.training.run.sources import OpenSources, Sources
from tests.training.fakes import FakeBatches, open_fakes, recipe
from tests.training.killing import Killed, weights

pytestmark = pytest.mark.usefixtures("quick_training")

TIMES = ("positions_per_second",)


real_draw = loop.draw_plots


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in line.items() if name not in TIMES}
        for line in read_metrics(folder / "metrics.jsonl")
    ]


class Said(Watcher):
    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, message: str) -> None:
        self.words.append(message)


def failing(at: int, error: BaseException) -> OpenSources:
    """Sources whose batch number `at` raises."""

    class Failing(FakeBatches):
        def __next__(self) -> Any:
            if self.step == at:
                raise error
            return super().__next__()

    def open_failing(recipe: Recipe, network: Any, world: Any) -> Sources:
        sources = open_fakes(recipe, network, world)
        size = recipe.run.batch_size // recipe.run.accumulate
        return Sources(Failing(size, recipe.run.seed, network.encoding.planes), sources.test, sources.loss)

    return open_failing


class TestRun:
    def test_it_learns_and_writes_what_it_should(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(loop, "draw_plots", real_draw)
        folder = tmp_path / "run"
        read = recipe(tmp_path, "run.steps=60", "schedule.every=40", "run.batch_size=32", "run.evaluate_every=30")
        done = train(read, folder, open_sources=open_fakes)
        assert done.step == 60
        assert keima.load(done.network).system == "alphago-zero"
        training = [line for line in lines(folder) if "loss" in line]
        assert training[-1]["policy"] < 0.7 * training[0]["policy"]
        assert training[-1]["loss"] == pytest.approx(training[-1]["policy"] + training[-1]["value"])
        assert done.evaluation is not None
        assert done.evaluation.top1 is not None
        assert done.evaluation.top1 > 0.5  # of 26 moves
        plots = sorted(path.name for path in (folder / "plots").iterdir())
        assert plots == ["evaluation.png", "learning.png", "losses.png"]
        assert any((folder / "tensorboard").iterdir())
        assert not (folder / "reserve").exists()

    @pytest.mark.parametrize("at", [0, 2, 4, 7, 9])
    def test_killed_and_started_again_the_weights_are_those_of_an_unbroken_run(
        self, tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read = recipe(tmp_path, "optimizer.kind=adamw", "optimizer.momentum=0", "run.accumulate=2")
        train(read, tmp_path / "whole", open_sources=open_fakes)
        rescue = loop.Trainer._rescue
        monkeypatch.setattr(loop.Trainer, "_rescue", lambda *_: None)
        with pytest.raises(Killed):
            train(read, tmp_path / "killed", open_sources=failing(2 * at + 1, Killed()))
        monkeypatch.setattr(loop.Trainer, "_rescue", rescue)
        train(read, tmp_path / "killed", open_sources=open_fakes)
        assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
        assert lines(tmp_path / "killed") == lines(tmp_path / "whole")

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("worker died")])
    def test_what_stops_it_within_a_step_costs_that_step_only(self, tmp_path: Path, error: Exception) -> None:
        read = recipe(tmp_path, "run.accumulate=2")
        train(read, tmp_path / "whole", open_sources=open_fakes)
        said = Said()
        with pytest.raises((BadRequest, RuntimeError)) as caught:
            train(read, tmp_path / "stopped", said, failing(2 * 6 + 1, error))  # half way through the seventh step
        assert "stopped after step 6 of 10: step 6 is kept; start again to go on" in said.words
        if isinstance(error, OSError):
            assert "step 6 is kept" in str(caught.value)
        train(read, tmp_path / "stopped", said, open_fakes)
        assert "going on after step 6 of 10" in said.words
        assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")
        assert lines(tmp_path / "stopped") == lines(tmp_path / "whole")

    def test_a_disk_full_at_a_checkpoint_frees_the_reserve(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = checkpoint.write_checkpoint

        def full_with_reserve(folder: Path, *rest: Any) -> Path:
            if (folder.parent / "reserve").exists() and rest[1].step == 8:
                raise OSError(28, "No space left on device")
            return real(folder, *rest)

        monkeypatch.setattr(checkpoint, "write_checkpoint", full_with_reserve)
        with pytest.raises(BadRequest, match="No space left on device; step 8 is kept"):
            train(recipe(tmp_path), tmp_path / "run", open_sources=open_fakes)
        monkeypatch.undo()
        train(recipe(tmp_path), tmp_path / "whole", open_sources=open_fakes)
        train(recipe(tmp_path), tmp_path / "run", open_sources=open_fakes)
        assert weights(tmp_path / "run") == weights(tmp_path / "whole")

    def test_an_interrupt_ends_it_after_the_step(self, tmp_path: Path) -> None:
        """In a process of its own: the signal is for it alone."""
        running = start(tmp_path, script=INTERRUPTED, stdout=subprocess.PIPE)
        told, _ = running.communicate(timeout=200)
        assert running.returncode == 3
        assert told.decode().splitlines()[-1].startswith("stopped after step 5 of 10: step 5 is kept")

    def test_a_loss_that_is_no_number_ends_it_and_is_not_kept(self, tmp_path: Path) -> None:
        read = recipe(tmp_path, "optimizer.learning_rate=1e30", "run.log_every=1")
        with pytest.raises(BadRequest, match=r"training has diverged; lower optimizer\.learning_rate"):
            train(read, tmp_path / "run", open_sources=open_fakes)
        assert not list((tmp_path / "run" / "checkpoints").glob("*"))

    def test_a_finished_run_started_again_does_nothing(self, tmp_path: Path) -> None:
        train(recipe(tmp_path), tmp_path / "run", open_sources=open_fakes)
        before = weights(tmp_path / "run")
        assert train(recipe(tmp_path), tmp_path / "run", open_sources=open_fakes).step == 10
        assert weights(tmp_path / "run") == before


class TestVariants:
    """Ways to take the same step."""

    def weights(self, tmp_path: Path, name: str, *overrides: str) -> dict[str, torch.Tensor]:
        read = recipe(tmp_path, "run.steps=3", "run.ema=0", *overrides)
        train(read, tmp_path / name, open_sources=open_fakes)
        return keima.load(tmp_path / name / "network.safetensors").state_dict()

    def test_gradient_checkpointing_changes_no_number(self, tmp_path: Path) -> None:
        plain = self.weights(tmp_path, "plain")
        spared = self.weights(tmp_path, "spared", "run.gradient_checkpointing=true")
        for name, tensor in plain.items():
            torch.testing.assert_close(spared[name], tensor, rtol=1e-5, atol=1e-6)

    def test_frozen_layers_keep_their_weights(self, tmp_path: Path) -> None:
        fresh = build_network(recipe(tmp_path))
        names = [name for name, _ in fresh.named_parameters() if name.startswith("stem")]
        start = fresh.state_dict()
        frozen = self.weights(tmp_path, "frozen", 'network.freeze=["stem"]')
        assert names
        for name in names:
            assert torch.equal(frozen[name], start[name])
        assert not torch.equal(frozen["policy_head.linear.weight"], start["policy_head.linear.weight"])

    def test_the_weight_decay_of_sgd_is_the_gradient_of_the_squares(self, tmp_path: Path) -> None:
        """weight_decay = 2c is the loss c‖θ‖²."""
        decayed = self.weights(tmp_path, "decay", "optimizer.weight_decay=0.02", "optimizer.decay=all")

        def open_explicit(read: Recipe, network: Any, world: Any) -> Sources:
            sources = open_fakes(read, network, world)

            def loss(output: Any, batch: Any, share: Any) -> Any:
                terms = sources.loss(output, batch)
                terms.total = terms.total + 0.01 * sum(p.square().sum() for p in network.parameters())
                return terms

            return Sources(sources.train, sources.test, loss)

        read = recipe(tmp_path, "run.steps=3", "run.ema=0", "optimizer.weight_decay=0")
        train(read, tmp_path / "explicit", open_sources=open_explicit)
        explicit = keima.load(tmp_path / "explicit" / "network.safetensors").state_dict()
        for name, tensor in decayed.items():
            torch.testing.assert_close(explicit[name], tensor, rtol=1e-4, atol=1e-6)

    def test_bf16_and_clipping_run(self, tmp_path: Path) -> None:
        for tensor in self.weights(tmp_path, "bf16", "run.precision=bf16", "run.clip=0.1").values():
            assert tensor.isfinite().all()


SCRIPT = """
import sys, time
from pathlib import Path
from keima.training.run.loop import Watcher, train
from tests.training.fakes import open_fakes, recipe

class Slow(Watcher):
    def advance(self, step, line):
        time.sleep(0.02)

folder = Path(sys.argv[1])
train(recipe(folder, "run.steps=120", *sys.argv[2:]), folder / "run", Slow(), open_fakes)
"""


INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from keima.training.run.loop import Watcher, train
from tests.training.fakes import open_fakes, recipe

class Interrupting(Watcher):
    def advance(self, step, line):
        if step == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    def say(self, message):
        print(message, flush=True)

folder = Path(sys.argv[1])
try:
    train(recipe(folder, *sys.argv[2:]), folder / "run", Interrupting(), open_fakes)
except KeyboardInterrupt:
    sys.exit(3)
"""


def start(
    folder: Path, *overrides: str, launcher: tuple[str, ...] = (), script: str = SCRIPT, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    path = folder / "script.py"
    path.write_text(script)
    root = str(Path(__file__).parents[2])
    command = [sys.executable, *launcher, str(path), str(folder), *overrides]
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, cwd=root, stdout=stdout)


@pytest.mark.slow
def test_kill_9_at_any_moment(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    train(recipe(whole, "run.steps=120"), whole / "run", open_sources=open_fakes)
    metrics = killed / "run" / "metrics.jsonl"
    for moment in (0.1, 0.7):
        running = start(killed)
        seen = metrics.stat().st_mtime_ns if metrics.exists() else 0
        while not metrics.exists() or metrics.stat().st_mtime_ns == seen:
            time.sleep(0.01)
        time.sleep(moment)
        running.kill()
        assert running.wait() == -signal.SIGKILL, "the kill came too late"
    train(recipe(killed, "run.steps=120"), killed / "run", open_sources=open_fakes)
    assert weights(killed / "run") == weights(whole / "run")
    assert lines(killed / "run") == lines(whole / "run")


@pytest.mark.slow
def test_two_processes_of_torchrun_are_one(tmp_path: Path) -> None:
    overrides = ("run.log_every=1", "run.steps=12")
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    train(recipe(one, *overrides), one / "run", open_sources=open_fakes)
    assert start(two, *overrides, launcher=torchrun).wait() == 0
    found = [lines(each / "run") for each in (one, two)]
    losses = [[line["loss"] for line in each if "loss" in line] for each in found]
    assert len(losses[0]) == 12
    np.testing.assert_allclose(losses[1], losses[0], rtol=0, atol=1e-5)
    held_out = [[line["evaluation"]["cross_entropy"] for line in each if "evaluation" in line] for each in found]
    np.testing.assert_allclose(held_out[1], held_out[0], rtol=0, atol=1e-4)


class TestEvaluation:
    def tally(self, logits: Any, played: list[int], values: list[float], results: list[float], ply: list[int]) -> Tally:
        tally = Tally("go")
        heads = Heads(policy=np.array(logits, np.float32), value=np.array(values, np.float32))
        tally.add(heads, np.array(played), np.array(results, np.float32), np.array(ply))
        return tally

    def test_by_hand(self) -> None:
        # three positions, four moves; the second's move is third best, the third has neither move nor result
        logits = np.log([[0.7, 0.1, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])
        found = report(self.tally(logits, [0, 2, -1], [0.5, -1.0, 0.0], [1.0, 1.0, np.nan], [0, 31, 500]))
        assert found.positions == 2
        assert found.top1 == 0.5
        assert found.top5 == 1.0
        assert found.cross_entropy == pytest.approx(-(np.log(0.7) + np.log(0.2)) / 2)
        assert found.value_mse == pytest.approx((0.25 + 4.0) / 2)
        assert found.brier == pytest.approx((0.0625 + 1.0) / 2)
        assert found.value_accuracy == 0.5
        assert found.value_ece == pytest.approx((0.25 + 1.0) / 2)  # said 0.75 and 0, both won
        assert found.policy_ece == pytest.approx((0.3 + 0.4) / 2)  # said 0.7 played, 0.4 not
        assert [phase["ply"] for phase in found.phases] == [0, 30]

    def test_equal_logits_are_no_free_hits(self) -> None:
        found = report(self.tally(np.zeros((4, 8)), [0, 1, 6, 7], [0] * 4, [np.nan] * 4, [0] * 4))
        assert found.top1 == 0.25
        assert found.top5 == 0.5
        assert found.value_mse is None

    @pytest.mark.parametrize("with_pass", [False, True])
    def test_a_pass_counts_only_where_the_policy_has_one(self, with_pass: bool) -> None:
        network = keima.create("alphago-policy", filters=2, layers=1, board_size=5, pass_logit=with_pass).eval()
        batch = TrainingBatch(
            {"planes": torch.zeros(3, 48, 5, 5)}, torch.zeros(3, dtype=torch.int32), torch.tensor([25, 3, 7])
        )
        with torch.no_grad():
            found = report(tally_batches(network, [batch], nullcontext))
        assert found.positions == (3 if with_pass else 2)
        assert found.cross_entropy == pytest.approx(np.log(26 if with_pass else 25), abs=0.5)

    def test_parts_add_up(self) -> None:
        random = np.random.default_rng(1)
        logits, played = random.normal(size=(40, 9)), random.integers(0, 9, 40)
        values, results = random.uniform(-1, 1, 40), random.choice([-1.0, 0.0, 1.0], 40)
        ply = random.integers(0, 400, 40)

        def part(rows: slice) -> Any:
            return self.tally(logits[rows], played[rows], values[rows], results[rows], ply[rows]).vector()  # type: ignore[arg-type]

        whole = Tally("go")
        whole.set_vector(part(slice(0, 13)) + part(slice(13, 40)))
        assert json.dumps(report(whole).to_json()) != "{}"
        np.testing.assert_allclose(whole.vector(), part(slice(0, 40)))


def test_the_watcher_sees_every_step(tmp_path: Path) -> None:
    steps: list[int] = []

    class Counting(Watcher):
        def advance(self, step: int, line: Any) -> None:
            steps.append(step)

    train(recipe(tmp_path), tmp_path / "run", Counting(), open_fakes)
    assert steps == list(range(1, 11))
