"""Where a run's batches and its loss come from: game stores, self-play with a teacher, reinforcement learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from keima.errors import BadRequest
from keima.inference.evaluator import Evaluator
from keima.plain import Data, Fields
from keima.systems.loss import Loss, Objective, loss_for
from keima.systems.network import Network
from keima.systems.targets import ArrayBatch
from keima.training.data.batches import Loader
from keima.training.distill.ensemble import Ensemble
from keima.training.distill.searches import searched_games
from keima.training.distill.teacher import Generations, check_teacher, open_loader
from keima.training.reinforce.reinforce import PolicyGradient, ReinforceBatches
from keima.training.run.checkpoint import POOL, SELFPLAY
from keima.training.run.preflight import World, check_store, load_network, position_filter
from keima.training.run.recipe import Recipe

_TEST_SEED = 0
"""The same held-out positions for every run."""


class Batches(Protocol):
    """A stream of batches, of which batch k is a function of k: `keima.training.data.batches.Loader`."""

    positions: int
    """How many there are to draw from."""

    def seek(self, step: int) -> None:
        """Make batch `step` the next one."""
        ...

    def __next__(self) -> ArrayBatch:
        """The next batch."""
        ...

    def close(self) -> None:
        """Stop its threads."""
        ...


class Cycle(Protocol):
    """What goes on beside a run whose network plays the games it learns from, generation by generation."""

    every: int
    """Steps of a generation; the last one may have fewer."""

    def begin(self, step: int, stopped: Callable[[], bool]) -> None:
        """Wait until the next step can be made: before each generation's first one, and as a run goes on.

        Raises:
            KeyboardInterrupt: `stopped` became true meanwhile.
        """
        ...

    def end(self, step: int, network: Network) -> None:
        """Publish a generation's network, in evaluation mode; again if the run goes on from there. Step 0: fresh."""
        ...

    def figures(self) -> Fields:
        """What a line of metrics.jsonl says of the generation at hand."""
        ...


@dataclass(frozen=True)
class Sources:
    """Where a run's batches and loss come from.

    Attributes:
        train, test: this process's part of each batch; the same of held-out games, None without them.
        loss: (network outputs, batch, share) → `LossTerms`.
        notes: what a person should know of them: games left out and why.
        cycle: where the network plays the games; there are ever more of them then.
    """

    train: Batches
    test: Batches | None
    loss: Objective
    notes: tuple[str, ...] = ()
    cycle: Cycle | None = None


OpenSources = Callable[[Recipe, Network, World], Sources]
"""(recipe, network, world) → this process's sources."""


def open_games(recipe: Recipe, network: Network, world: World, folder: Path, teacher: Network | None = None) -> Sources:
    """Where the recipe's games come from: a store, self-play with a teacher, or reinforcement learning.

    `folder` is RUN, where self-play keeps what it must; `teacher` is of `open_teacher`.

    Raises:
        BadRequest: a store that cannot be read or has no position for this network; an unknown term of the loss; a
            network that cannot play.
    """
    train: Batches
    loss: Objective
    if recipe.reinforce is not None:
        if recipe.loss.weights:
            raise recipe.error("loss", "[reinforce] has one term, the policy's gradient; leave [loss] out")
        train = ReinforceBatches(recipe, network, folder / POOL, world)
        loss = PolicyGradient(network, train.table.temperature)
    else:
        loss, answering = open_loss(recipe, network), None
        if teacher is not None:
            size = recipe.run.batch_size // (recipe.run.accumulate * world.size)
            answering = Evaluator(teacher, recipe.teacher.backend, recipe.teacher.precision, size)
        if recipe.selfplay is not None:
            assert answering is not None
            train = Generations(recipe, network, answering, folder / SELFPLAY, world, loss.targets)
        else:
            network.prepare(check_store(recipe, "train", network).flat())
            train = _open_store(recipe, "train", network, world, loss.targets, answering)
    test = _open_store(recipe, "test", network, world, frozenset({"policy", "value"})) if recipe.data.test else None
    stores = {"train": train, "test": test}
    notes = (f"data.{key}: {_counted(found)}" for key, found in stores.items() if isinstance(found, Loader))
    return Sources(train, test, loss, tuple(notes))


def open_loss(recipe: Recipe, network: Network) -> Loss:
    """The loss of the network's system with the recipe's weights. Raises BadRequest for an unknown term."""
    try:
        return loss_for(network, recipe.loss.weights)
    except BadRequest as error:
        raise recipe.error("loss", error.message) from error


def _open_store(
    recipe: Recipe, key: str, network: Network, world: World, targets: frozenset[str], teacher: Evaluator | None = None
) -> Loader:
    """Batches of data.train or data.test; held-out positions are the same for every run, and as they were played."""
    store, training = check_store(recipe, key, network), key == "train"
    options: Data = {"targets": targets, "positions": position_filter(recipe)}
    options |= {"seed": recipe.run.seed if training else _TEST_SEED}
    options |= {"symmetries": recipe.data.symmetries and training}
    try:
        if recipe.data.searches:
            found = searched_games(store)
            return open_loader(recipe, found.games, network, world, teacher, **options | found.targets(0.0))
        return open_loader(recipe, store, network, world, teacher, **options)
    except BadRequest as error:
        raise recipe.error(f"data.{key}", error.message) from error


def open_teacher(recipe: Recipe, student: Network) -> Network | None:
    """The recipe's teacher, ready to answer: one network, or an ensemble of several; None without one.

    Raises:
        BadRequest: a file that cannot be read, or networks that cannot teach this one.
    """
    teachers = [load_network(recipe, "teacher.network", name) for name in recipe.teacher.network]
    try:
        for teacher in teachers:
            check_teacher(teacher, student)
        return Ensemble(teachers) if len(teachers) > 1 else next(iter(teachers), None)
    except BadRequest as error:
        raise recipe.error("teacher.network", str(error)) from error


def _counted(loader: Loader) -> str:
    left_out = "".join(f"; {count:,} games left out ({reason})" for reason, count in loader.left_out.items())
    return f"{loader.positions:,} positions{left_out}"
