"""Distillation on games that student and teacher play for it: a new generation of them every so many steps.

The student meets the positions that its own play leads to, and learns what the teacher says of them. A generation's
games follow from the student's weights as it begins, the seed and its number; they are kept in RUN/selfplay, so that a
run that stops within a generation goes on with the same games.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keima.inference.evaluator import Evaluator
from keima.systems.network import Network
from keima.systems.targets import ArrayBatch
from keima.training.data.batches import Loader
from keima.training.data.sampling import key_of
from keima.training.distill.teacher import TaughtBatches
from keima.training.reinforce.games import EvaluatorPlayer, Played, play_games, read_played, write_played
from keima.training.reinforce.reinforce import TorchPlayer, autocast_of, open_table
from keima.training.run.preflight import position_filter
from keima.training.run.recipe import Recipe, SelfplayRecipe

if TYPE_CHECKING:
    from keima.training.run.preflight import World


class Generations:
    """Batches of one generation after another. Every process plays all of a generation's games.

    Args:
        recipe: with [teacher] and [selfplay].
        student: in training.
        teacher: answers, and plays.
        folder: RUN/selfplay.
        world: the processes; `rank` is this one's number.
        rank: see `world`.
        targets: which the student's loss needs.

    Attributes:
        positions: games of a generation.

    Raises:
        BadRequest: a network that cannot play, or a table that cannot be.
    """

    def __init__(
        self,
        recipe: Recipe,
        student: Network,
        teacher: Evaluator,
        folder: Path,
        world: World,
        rank: int,
        targets: frozenset[str],
    ) -> None:
        self._recipe, self._student, self._teacher, self._folder = recipe, student, teacher, folder
        self._world, self._rank, self._targets = world, rank, targets
        self._table = open_table(recipe, student)
        open_table(recipe, teacher.network)
        options = recipe.selfplay or SelfplayRecipe()
        self.positions = options.games
        self._length = options.every * recipe.run.accumulate
        self._players = TorchPlayer(student, autocast_of(recipe, world.device)), EvaluatorPlayer(teacher)
        self._next = 0
        self._generation = -1
        self._batches: TaughtBatches | None = None

    def seek(self, step: int) -> None:
        """Let batch number `step` come next; games of generations that begin there or later are forgotten."""
        self.close()
        self._next = step
        if self._rank == 0:
            for path in self._folder.glob("generation-*.npz"):
                number = path.stem.removeprefix("generation-")
                if number.isdecimal() and int(number) * self._length >= step:
                    path.unlink()

    def close(self) -> None:
        """Stop the threads of the generation at hand."""
        if self._batches is not None:
            self._batches.close()
        self._batches, self._generation = None, -1

    def __next__(self) -> ArrayBatch:
        """The next batch; the first one of a generation plays its games."""
        generation, within = divmod(self._next, self._length)
        if generation != self._generation or self._batches is None:
            self.close()
            self._batches = self._open(self._games(generation), generation)
            self._batches.seek(within)
            self._generation = generation
        batch = next(self._batches)
        self._next += 1
        return batch

    def _games(self, generation: int) -> Played:
        """A generation's games, played now or before."""
        path = self._folder / f"generation-{generation:06d}.npz"
        if path.exists() and generation * self._length < self._next:
            return read_played(path, self._table)
        numbers = np.arange(generation * self.positions, (generation + 1) * self.positions, dtype=np.int64)
        recipe = self._recipe
        played = play_games(self._players, self._table, numbers, recipe.run.seed, recipe.data.symmetries)
        if self._rank == 0:
            write_played(path, played)
        return played

    def _open(self, played: Played, generation: int) -> TaughtBatches:
        recipe, run = self._recipe, self._recipe.run
        loader = Loader(
            played.games,
            self._student.encoding,
            run.batch_size // (run.accumulate * self._world.size),
            seed=int(key_of(run.seed, generation)) >> 1,
            symmetries=recipe.data.symmetries,
            workers=recipe.data.workers,
            targets=self._targets,
            positions=position_filter(recipe),
            rank=self._rank,
            world_size=self._world.size,
            also=self._teacher.network.encoding,
        )
        return TaughtBatches(loader, self._teacher, recipe.teacher)
