"""The training loop: from a recipe and a game store to a network's file, through stops of any kind.

    step      batches from the loader, loss, gradient, clipping, optimizer, running average
    log       every `log_every` steps one line of metrics.jsonl
    evaluate  every `evaluate_every` steps, on the held-out games; a network of a file also before the first step
    keep      every `checkpoint_every` steps a checkpoint, after the lines and the evaluation of its step
    publish   in self-play, every generation a checkpoint and its network (`keima.training.run.sources.Cycle`)

A batch is a function of the seed and the step, the learning rate one of the step, and a checkpoint holds all the rest;
so a run that was killed and started again ends with the weights of one that never stopped, to the last bit on a CPU
with as many threads. What stops the run between two steps or within one (an interrupt, a full disk, another process's
death) leaves the last whole step to be kept, and the reserve file makes room for it.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from keima.errors import BadRequest, BadWeights, KeimaError, UnsupportedNetwork
from keima.plain import Data, Fields
from keima.systems.files.load import save
from keima.systems.network import Network
from keima.systems.system import system_of
from keima.training.run import checkpoint as checkpoints
from keima.training.run.evaluation import Evaluation, change, report, tally_batches
from keima.training.run.metrics import Metrics, draw_plots
from keima.training.run.objective import TOTAL, TrainingStep, Whole, checkpoint_trunk, share_batch_norms
from keima.training.run.optimizer import RunningAverage, make_optimizer, multiplier
from keima.training.run.preflight import World, build_network, check_folder, check_room, check_store, find_world
from keima.training.run.recipe import Recipe
from keima.training.run.small_boards import lay_out_small_boards
from keima.training.run.sources import OpenSources, open_games, open_teacher

_TURN = 3.0
"""Seconds that each further process waits before it keeps what the others should have kept."""


class Watcher:
    """Is told how a run goes; this one does not mind. The command line draws a progress bar."""

    def begin(self, step: int, total: int) -> None:
        """The run begins, or goes on, after `step` of `total` steps."""

    def advance(self, step: int, line: Fields | None) -> None:
        """A step is done; `line` where one was added to metrics.jsonl."""

    def say(self, message: str) -> None:
        """Something a person should know."""

    def end(self) -> None:
        """The run is over, well or not."""


@dataclass(frozen=True)
class Result:
    """What a run came to: steps done, the file that `keima.load` and the system's own engine open, last evaluation."""

    step: int
    network: Path
    evaluation: Evaluation | None


def train(
    recipe: Recipe,
    folder: str | os.PathLike[str],
    watcher: Watcher | None = None,
    open_sources: OpenSources | None = None,
) -> Result:
    """Train by a recipe; go on where the last checkpoint in the folder, RUN, stands.

    Args:
        recipe: of `read_recipe`.
        folder: where everything is written; made if missing.
        watcher: is told how it goes.
        open_sources: gives batches and loss, in place of the recipe's games.

    Raises:
        BadRequest: the recipe asks for what cannot be (before any work), the folder holds another recipe's run, or the
            run came to an end it cannot go on from: the message says which step is kept.
        KeyboardInterrupt: SIGINT or SIGTERM; the step is kept.
    """
    world = find_world(recipe)
    network = build_network(recipe)
    target = Path(folder)
    if open_sources is None:
        teacher = open_teacher(recipe, network)
        for key in ("train", "test"):
            if getattr(recipe.data, key):
                check_store(recipe, key, network)
        open_sources = partial(open_games, folder=target, teacher=teacher)
    check_folder(target)
    size = check_room(recipe, target, network)
    checkpoints.check_same_run(recipe, target)
    trainer = Trainer(recipe, target, network, world, watcher or Watcher(), open_sources)
    return trainer.run(size)


class Trainer:
    """One run in one process. Use `train`."""

    def __init__(
        self, recipe: Recipe, folder: Path, network: Network, world: World, watcher: Watcher, open_sources: OpenSources
    ) -> None:
        self.recipe, self.folder, self.network = recipe, folder, network
        self.kept_in = folder / checkpoints.CHECKPOINTS
        self.total = recipe.run.total_steps
        self.fabric = make_fabric(recipe, world)
        self.fabric.launch()
        self.world = replace(world, rank=self.fabric.global_rank)
        self.first = self.world.rank == 0
        self.watcher = watcher if self.first else Watcher()
        self.sources = open_sources(recipe, network, self.world)
        for note in self.sources.notes:
            self.watcher.say(note)
        self._set_up()
        self.step = 0
        self.kept = -1
        self.metrics: Metrics | None = None
        self.evaluation: Evaluation | None = None
        self._stopped_by: int | None = None
        self._within_step = False
        self._whole = True
        """The weights are those of a step, not of half an update; they are worth keeping."""

    def _set_up(self) -> None:
        run = self.recipe.run
        if run.threads:
            torch.set_num_threads(run.threads)
        if self.world.size > 1:
            share_batch_norms(self.network)
        lay_out_small_boards(self.network)
        if run.gradient_checkpointing:
            checkpoint_trunk(self.network)
        share = self._mean_over_processes if self.world.size > 1 else None
        objective: nn.Module = TrainingStep(self.network, self.sources.loss, share)
        objective.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if run.compile:
            self.network.compile()
        self.optimizer = make_optimizer(self.recipe, self.network)
        self.objective, self.wrapped_optimizer = self.fabric.setup(objective, self.optimizer)
        self.average = RunningAverage(self.network, run.ema) if run.ema else None
        self.buffers = [buffer for _, buffer in self.network.named_buffers()]
        self.buffers_before = [buffer.clone() for buffer in self.buffers]
        self.sums: Tensor | None = None
        self.terms: list[str] = []
        self.summed = 0

    # --- The run ------------------------------------------------------------------------------------------------------

    def run(self, checkpoint_size: int) -> Result:
        """Train to the end; keep the last whole step whatever stops it."""
        with self._signals():
            try:
                self._resume()
                if self.first:
                    self.metrics = Metrics(self.folder, self.step)
                    checkpoints.write_settings(self.recipe, self.folder)
                    checkpoints.take_reserve(self.folder, checkpoint_size)
                self._train()
                return self._finish()
            except BaseException as error:
                self._rescue(error)
                raise
            finally:
                self._close()

    def _train(self) -> None:
        self.watcher.begin(self.step, self.total)
        self.sources.train.seek(self.step * self.recipe.run.accumulate)
        self._since, self._since_step = time.perf_counter(), self.step
        cycle, goes_on = self.sources.cycle, True
        if self._ends_generation():
            self._publish()
        if self.step == 0 and self.recipe.network.source:
            self._evaluate()
        while self.step < self.total:
            if cycle is not None and (goes_on or self.step % cycle.every == 0):
                started, goes_on = time.perf_counter(), False
                cycle.begin(self.step, lambda: self._stopped_by is not None)
                self._since += time.perf_counter() - started
            self._one_step()
            line = self._log() if self._due(self.recipe.run.log_every) else None
            if self._due(self.recipe.run.evaluate_every):
                self._evaluate()
            ended = self._ends_generation()
            if ended or self._due(self.recipe.run.checkpoint_every):
                self._keep()
            if ended:
                self._publish()
            self.watcher.advance(self.step, line)
            if self._stopped_by is not None:
                raise KeyboardInterrupt

    def _due(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.total

    def _ends_generation(self) -> bool:
        return self.sources.cycle is not None and self._due(self.sources.cycle.every)

    def _publish(self) -> None:
        """Hand on the network as it is evaluated."""
        if self.first and self.sources.cycle is not None:
            self.network.eval()
            with self._averaged():
                self.sources.cycle.end(self.step, self.network)
            self.network.train()
        self.fabric.barrier()

    def _one_step(self) -> None:
        recipe = self.recipe
        rate = recipe.optimizer.learning_rate * multiplier(recipe.schedule, self.step, self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._copy(self.buffers, self.buffers_before)
        self._within_step = True
        parts = [self._gradient(last=part == recipe.run.accumulate - 1) for part in range(recipe.run.accumulate)]
        if recipe.run.clip:
            options = {"max_norm": recipe.run.clip, "error_if_nonfinite": False}
            self.fabric.clip_gradients(self.objective, self.wrapped_optimizer, **options)
        self._whole = False
        self.wrapped_optimizer.step()
        self.wrapped_optimizer.zero_grad()
        if self.average is not None:
            self.average.update(self.network, self.step)
        for terms in parts:
            if self.sums is None or self.terms != list(terms):
                self.terms = list(terms)
                self.sums = torch.zeros(len(terms), dtype=torch.float64, device=self.fabric.device)
            self.sums += torch.stack([term.double() for term in terms.values()])
            self.summed += 1
        self.step += 1
        self._whole, self._within_step = True, False

    def _gradient(self, last: bool) -> dict[str, Tensor]:
        """Add the gradient of the next batch; processes exchange theirs with the last of a step. Its terms."""
        batch = next(self.sources.train).torch(self.fabric.device)
        with self.fabric.no_backward_sync(self.objective, enabled=not last):
            terms: dict[str, Tensor] = self.objective(Whole(batch))
            self.fabric.backward(terms[TOTAL] / self.recipe.run.accumulate)
        return {name: term.detach() for name, term in terms.items()}

    @staticmethod
    @torch.no_grad()
    def _copy(source: list[Tensor], target: list[Tensor]) -> None:
        for old, new in zip(target, source, strict=True):
            old.copy_(new)

    def _finish(self) -> Result:
        path = self.folder / f"network{next(iter(system_of(self.network).endings), '.safetensors')}"
        if self.first:
            self.network.eval()
            with self._averaged():
                self._tell_change()
                try:
                    save(self.network, path)
                except UnsupportedNetwork as error:
                    path = self.folder / "network.safetensors"
                    self.watcher.say(f"{error.message}; written as {path.name}")
                    save(self.network, path)
            checkpoints.free_reserve(self.folder)
        self.fabric.barrier()
        return Result(self.step, path, self.evaluation)

    def _tell_change(self) -> None:
        """Say what going on from a network brought: the held-out figures before the first step and after the last."""
        known = [line for line in (self.metrics.lines if self.metrics else ()) if "evaluation" in line]
        if len(known) > 1 and known[0]["step"] == 0:
            self.watcher.say(change(known[0]["evaluation"], known[-1]["evaluation"]))

    def _averaged(self) -> AbstractContextManager[None]:
        return nullcontext() if self.average is None else self.average.applied(self.network)

    # --- Lines and evaluation -----------------------------------------------------------------------------------------

    def _log(self) -> Data:
        """Write a line of metrics.jsonl: the mean terms since the last one."""
        if self.sums is None:
            raise RuntimeError("no step was made")
        means = self._mean_over_processes(self.sums / self.summed).tolist()
        now = time.perf_counter()
        unit = "games" if self.recipe.reinforce is not None else "positions"
        count = (self.step - self._since_step) * self.recipe.run.batch_size
        line: Data = {
            "step": self.step,
            unit: self.step * self.recipe.run.batch_size,
            **dict(zip(self.terms, means, strict=True)),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            f"{unit}_per_second": round(count / max(now - self._since, 1e-9), 1),
        }
        if self.sources.cycle is not None:
            line.update(self.sources.cycle.figures())
        self._check_finite(means[0])
        if self.metrics is not None:
            self.metrics.write(line)
        self.sums.zero_()
        self.summed, self._since, self._since_step = 0, now, self.step
        return line

    def _check_finite(self, loss: float) -> None:
        if not math.isfinite(loss):
            self._whole = False
            message = f"the loss is {loss} at step {self.step}: training has diverged"
            advice = "lower optimizer.learning_rate, set run.clip, or use precision f32"
            raise BadRequest(f"{message}; {advice}", source=self.recipe.source)

    def _mean_over_processes(self, values: Tensor) -> Tensor:
        if self.world.size == 1:
            return values
        reduced: Tensor = self.fabric.all_reduce(values.clone(), reduce_op="mean")
        return reduced

    def _evaluate(self) -> None:
        """Evaluate on held-out games, the same ones every time."""
        test = self.sources.test
        if test is None:
            return
        started = time.perf_counter()
        test.seek(0)
        part = self.recipe.run.batch_size // (self.recipe.run.accumulate * self.world.size)
        wanted = min(self.recipe.run.evaluate_positions, test.positions)
        count = max(1, wanted // (part * self.world.size))
        batches = (next(test).torch(self.fabric.device) for _ in range(count))
        self.network.eval()
        with self._averaged():
            tally = tally_batches(self.network, batches, self.fabric.autocast)
        self.network.train()
        if self.world.size > 1:
            sums = torch.from_numpy(tally.vector()).to(self.fabric.device)
            summed: Any = self.fabric.all_reduce(sums, reduce_op="sum")
            tally.set_vector(np.asarray(summed.cpu()))
        self.evaluation = report(tally)
        if self.metrics is not None:
            self.metrics.write({"step": self.step, "evaluation": self.evaluation.to_json()})
            draw_plots(self.folder / checkpoints.PLOTS, self.metrics.lines)
            self.watcher.say(f"step {self.step:,}, {self.evaluation.summary()}")
        self._since += time.perf_counter() - started

    # --- Keeping and going on -----------------------------------------------------------------------------------------

    def _keep(self) -> None:
        if self.first:
            if self.sums is not None:
                self._check_finite(float(self.sums[0]))
            self._write_checkpoint()
        self.fabric.barrier()

    def _write_checkpoint(self) -> None:
        scaler = _scaler(self.fabric)
        state = {
            "sums": [] if self.sums is None else self.sums.tolist(),
            "terms": self.terms,
            "summed": self.summed,
            "positions": self.sources.train.positions,
            "scaler": {} if scaler is None else dict(scaler.state_dict()),
        }
        checkpoint = checkpoints.Checkpoint(
            step=self.step,
            network=self.network.state_dict(),
            average=self.average.state if self.average is not None else None,
            optimizer=checkpoints.optimizer_tensors(self.optimizer, self.network),
            random=checkpoints.random_states(),
            state=state,
        )
        checkpoints.write_checkpoint(self.kept_in, self.network, checkpoint, self.recipe.run.keep)
        self.kept = self.step

    def _resume(self) -> None:
        checkpoint, complaints = checkpoints.newest_checkpoint(self.kept_in)
        self.fabric.barrier()
        for complaint in complaints:
            self.watcher.say(f"a checkpoint cannot be read and is passed over: {complaint}")
        if checkpoint is None:
            if complaints:
                raise BadRequest("no checkpoint here can be read; begin in another folder", source=str(self.folder))
            return
        if checkpoint.state.get("positions") != self.sources.train.positions:
            before = checkpoint.state.get("positions")
            message = f"now has {self.sources.train.positions:,} positions; the run was begun with {before:,}"
            raise self.recipe.error("data.train", message)
        if self.first:
            checkpoints.remove_after(self.kept_in, checkpoint.step)
        self._restore(checkpoint)
        self.watcher.say(f"going on after step {self.step:,} of {self.total:,}")

    def _restore(self, checkpoint: checkpoints.Checkpoint) -> None:
        self.network.load_state_dict(checkpoint.network)
        if self.average is not None:
            self.average.restore(checkpoint.average or checkpoint.network)
        checkpoints.restore_optimizer(self.optimizer, self.network, checkpoint.optimizer)
        checkpoints.restore_random(checkpoint.random)
        self.step = self.kept = checkpoint.step
        state = checkpoint.state
        self.terms, self.summed = list(state["terms"]), int(state["summed"])
        self.sums = torch.tensor(state["sums"], dtype=torch.float64, device=self.fabric.device)
        if (scaler := _scaler(self.fabric)) is not None and state["scaler"]:
            scaler.load_state_dict(dict(state["scaler"]))

    def _rescue(self, error: BaseException) -> None:
        """Keep the last whole step, if it is not kept yet, and say what is; a full disk becomes a `BadRequest`."""
        if self.first:
            checkpoints.free_reserve(self.folder)
        if self._within_step and self._whole:
            self._copy(self.buffers_before, self.buffers)
        if self._whole and self.step > self.kept and not self._kept_by_others():
            try:
                self._write_checkpoint()
            except (OSError, KeimaError) as second:
                self.watcher.say(f"step {self.step:,} could not be kept: {second}")
        kept = f"step {self.kept:,} is kept; start again to go on" if self.kept > 0 else "nothing is kept"
        self.watcher.say(f"stopped after step {self.step:,} of {self.total:,}: {kept}")
        cause = error.__cause__ if isinstance(error, BadWeights) else error
        if isinstance(cause, OSError):
            message = f"cannot be written: {cause.strerror or cause}; {kept}"
            raise BadRequest(message, source=cause.filename or str(self.folder)) from error

    def _kept_by_others(self) -> bool:
        """Does another process keep this step? The first one does, the next one if it has not by then, and so on."""
        time.sleep(_TURN * self.world.rank)
        return any(step >= self.step for step, _ in checkpoints.list_checkpoints(self.kept_in))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM stop the run after the step it is in; a second one stops it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, _frame: object) -> None:
            if self._stopped_by is not None:
                self._whole = False  # nobody knows what this interrupts
                raise KeyboardInterrupt
            self._stopped_by = number

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _close(self) -> None:
        self.watcher.end()
        for each in (self.sources.train, self.sources.test, self.metrics):
            if each is not None:
                each.close()


_PRECISIONS = {"f32": "32-true", "tf32": "32-true", "bf16": "bf16-mixed", "f16": "16-mixed"}


def make_fabric(recipe: Recipe, world: World) -> Any:
    """Lightning Fabric for the recipe's device, precision and processes; float32 is TensorFloat-32 only as "tf32"."""
    from lightning_fabric import Fabric
    from lightning_fabric.strategies.ddp import DDPStrategy

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    rounded = recipe.run.precision == "tf32"
    torch.set_float32_matmul_precision("high" if rounded else "highest")
    torch.backends.cudnn.allow_tf32 = rounded  # PyTorch's own choice is True
    strategy: Any = "auto"
    if world.size > 1:  # a target that no position of a batch has leaves its head without a gradient
        strategy = DDPStrategy(find_unused_parameters=True)
    return Fabric(
        accelerator=world.device,
        devices=world.local,
        num_nodes=world.machines,
        strategy=strategy,
        precision=_PRECISIONS[recipe.run.precision],  # type: ignore[arg-type]
    )


def _scaler(fabric: Any) -> Any:
    """The loss scaling of float16; None without it."""
    return getattr(fabric.strategy.precision, "scaler", None)
