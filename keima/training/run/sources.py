"""Where a run's batches and its loss come from: game stores, self-play with a teacher, reinforcement learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from keima.errors import BadRequest, KeimaError
from keima.systems.loss import Objective
from keima.systems.network import Network
from keima.systems.targets import ArrayBatch
from keima.training.run.preflight import World, check_store, position_filter
from keima.training.run.recipe import Recipe
from keima.training.run.run_folder import POOL, SELFPLAY

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator
    from keima.systems.encoding import Encoding
    from keima.training.data.batches import Loader

_TEST_SEED = 0
"""The same held-out positions for every run."""


class Batches(Protocol):
    """A stream of batches, of which batch k is a function of k: `keima.training.data.batches.Loader`."""

    @property
    def positions(self) -> int:
        """How many positions there are to draw from."""
        ...

    def seek(self, step: int) -> None:
        """Make batch `step` the next one."""
        ...

    def __next__(self) -> ArrayBatch:
        """The next batch."""
        ...

    def close(self) -> None:
        """Stop its threads."""
        ...


class Counted(Batches, Protocol):
    """Batches of a game store, some of whose games do not fit."""

    @property
    def left_out(self) -> dict[str, int]:
        """Games left out, by reason."""
        ...


@dataclass(frozen=True)
class Sources:
    """Where a run's batches and loss come from.

    Attributes:
        train: this process's part of each batch.
        test: the same of held-out games; None without them.
        loss: (network outputs, batch, share) → `LossTerms`.
        notes: what a person should know of them: games left out and why.
    """

    train: Batches
    test: Batches | None
    loss: Objective
    notes: tuple[str, ...] = ()


OpenSources = Callable[[Recipe, Network, World, int], Sources]
"""(recipe, network, world, this process's number) → its sources."""


def open_games(
    recipe: Recipe, network: Network, world: World, rank: int, folder: Path, teacher: Network | None = None
) -> Sources:
    """Where the recipe's games come from: a store, self-play with a teacher, or reinforcement learning.

    Args:
        recipe: says which.
        network: learns.
        world: the processes.
        rank: this one's number.
        folder: RUN, where self-play keeps what it must.
        teacher: of `open_teacher`.

    Raises:
        BadRequest: a store that cannot be read or has no position for this network; an unknown term of the loss; a
            network that cannot play.
    """
    if recipe.reinforce is not None:
        return _open_reinforce(recipe, network, world, rank, folder)
    from keima.systems.loss import loss_for

    try:
        loss = loss_for(network, recipe.loss.weights)
    except BadRequest as error:
        raise recipe.error("loss", error.message) from error
    answering = None if teacher is None else _evaluator(teacher, recipe)
    if recipe.selfplay is not None:
        from keima.training.distill.generations import Generations

        if answering is None:
            raise recipe.error("teacher.network", "is missing")
        played = Generations(recipe, network, answering, folder / SELFPLAY, world, rank, loss.targets)
        test = _open_test(recipe, network, world, rank)
        return Sources(played, test, loss, _notes(None, test))
    train = _open_train(recipe, network, world, rank, loss.targets, answering)
    test = _open_test(recipe, network, world, rank)
    return Sources(train, test, loss, _notes(train, test))


def _open_reinforce(recipe: Recipe, network: Network, world: World, rank: int, folder: Path) -> Sources:
    from keima.training.reinforce.reinforce import PolicyGradient, ReinforceBatches

    if recipe.loss.weights:
        raise recipe.error("loss", "[reinforce] has one term, the policy's gradient; leave [loss] out")
    batches = ReinforceBatches(recipe, network, folder / POOL, world.device, rank, world.size)
    test = _open_test(recipe, network, world, rank)
    return Sources(batches, test, PolicyGradient(network, batches.table.temperature), _notes(None, test))


def _open_train(
    recipe: Recipe, network: Network, world: World, rank: int, targets: frozenset[str], teacher: Evaluator | None
) -> Counted:
    """Batches of the recipe's training games, with the teacher's answers where there is one."""
    from keima.training.distill.teacher import TaughtBatches

    network.prepare(check_store(recipe, "train", network).flat())
    if teacher is None:
        return _open_store(recipe, "train", network, world, rank, targets)
    loader = _open_store(recipe, "train", network, world, rank, targets, teacher.network.encoding)
    return TaughtBatches(loader, teacher, recipe.teacher)


def _open_test(recipe: Recipe, network: Network, world: World, rank: int) -> Loader | None:
    """Batches of the held-out games; None without them."""
    if not recipe.data.test:
        return None
    return _open_store(recipe, "test", network, world, rank, frozenset({"policy", "value"}))


def _open_store(
    recipe: Recipe,
    key: str,
    network: Network,
    world: World,
    rank: int,
    targets: frozenset[str],
    also: Encoding | None = None,
) -> Loader:
    """A loader of data.train or data.test; held-out positions are the same for every run, and as they were played."""
    from keima.training.data.batches import Loader

    training = key == "train"
    store, positions = check_store(recipe, key, network), position_filter(recipe)
    try:
        return Loader(
            store,
            network.encoding,
            recipe.run.batch_size // (recipe.run.accumulate * world.size),
            seed=recipe.run.seed if training else _TEST_SEED,
            symmetries=recipe.data.symmetries and training,
            workers=recipe.data.workers,
            targets=targets,
            positions=positions,
            rank=rank,
            world_size=world.size,
            also=also,
        )
    except BadRequest as error:
        raise recipe.error(f"data.{key}", error.message) from error


def _notes(train: Counted | None, test: Counted | None) -> tuple[str, ...]:
    """What a person should know of the stores."""
    return tuple(f"data.{key}: {_counted(found)}" for key, found in (("train", train), ("test", test)) if found)


def open_teacher(recipe: Recipe, student: Network) -> Network | None:
    """The recipe's teacher, ready to answer; None without one.

    Raises:
        BadRequest: a file that cannot be read, or a network that cannot teach this one.
    """
    if not recipe.teacher.network:
        return None
    from keima.systems.files.defaults import find_network
    from keima.systems.files.load import load
    from keima.training.distill.teacher import check_teacher

    try:
        teacher = load(find_network(recipe.teacher.network))
        check_teacher(teacher, student)
    except KeimaError as error:
        raise recipe.error("teacher.network", str(error)) from error
    return teacher


def _evaluator(teacher: Network, recipe: Recipe) -> Evaluator:
    from keima.inference.evaluator import Evaluator

    return Evaluator(teacher, recipe.teacher.backend, recipe.teacher.precision)


def _counted(loader: Counted) -> str:
    """How many positions a loader has, and which games it left out."""
    left_out = "".join(f"; {count:,} games left out ({reason})" for reason, count in loader.left_out.items())
    return f"{loader.positions:,} positions{left_out}"
