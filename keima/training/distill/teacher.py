"""Distillation: a student learns from what a teacher says of each position, in place of how the game went on.

Source: Hinton, Vinyals, Dean, "Distilling the knowledge in a neural network", arXiv:1503.02531: the student's
cross-entropy is taken against the teacher's softmax at a temperature, mixed with the move played, or with what a search
found. Any network of the family teaches any other of the same game: policy, win/draw/loss, points, ownership and moves
left; what the teacher lacks is learned from the games.

The student's batches are a function of seed and step as ever; the teacher is shown the same positions under the same
symmetries, in its own encoding.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games.archive import FlatGames
from keima.inference.evaluator import Evaluator
from keima.plain import Data
from keima.systems.encoding import Batch
from keima.systems.network import Heads, Network, softmax
from keima.systems.targets import ArrayBatch
from keima.training.data.batches import Loader
from keima.training.data.sampling import key_of
from keima.training.data.store import GameStore
from keima.training.reinforce.games import EvaluatorPlayer, Played, play_games, read_played, write_played
from keima.training.reinforce.reinforce import TorchPlayer, autocast_of, open_table
from keima.training.run.preflight import World, position_filter
from keima.training.run.recipe import Recipe, SelfplayRecipe, TeacherRecipe

_NEVER = -1e9
"""The logit of a move beside the board."""


def open_loader(
    recipe: Recipe,
    games: GameStore | FlatGames,
    network: Network,
    world: World,
    teacher: Evaluator | None = None,
    **options: Any,
) -> Loader:
    """This process's batches of the games as a recipe takes them, with a teacher's answers as targets if there is one.

    Raises:
        BadRequest: as `Loader`, which takes the `options`.
    """
    if teacher is not None:
        options |= {"also": teacher.network.encoding, "teach": Teaching(teacher, recipe.teacher)}
    size = recipe.run.batch_size // (recipe.run.accumulate * world.size)
    options |= {"workers": recipe.data.workers, "rank": world.rank, "world_size": world.size}
    options |= {"gpu": world.device == "cuda"}
    return Loader(games, network.encoding, size, **options)


class Teaching:
    """Puts a teacher's answers in place of a batch's targets."""

    def __init__(self, teacher: Evaluator, recipe: TeacherRecipe) -> None:
        self._evaluator, self._recipe = teacher, recipe

    def __call__(self, batch: ArrayBatch) -> ArrayBatch:
        """The batch with the teacher's answers as targets."""
        if batch.also is None:
            raise BadRequest("the loader does not make the positions in the teacher's encoding (also=)")
        return replace(taught(batch, self._answers(batch.also), self._recipe), also=None)

    def _answers(self, batch: Batch) -> Heads:
        """What the teacher says of a batch in its own encoding; boards of several sizes are evaluated apart."""
        inputs, context = dict(batch.inputs), batch.context
        mask = inputs.pop("mask", None)
        if mask is None:
            return self._evaluator.infer(batch)
        heights, widths = (mask.any(axis=axis).sum(axis=1) for axis in (2, 1))
        parts = []
        for height, width in sorted({*zip(heights.tolist(), widths.tolist(), strict=True)}):
            rows = np.flatnonzero((heights == height) & (widths == width))
            own = {name: array[rows] for name, array in inputs.items()}
            own["planes"] = np.ascontiguousarray(own["planes"][:, :, :height, :width])
            heads = self._evaluator.infer(Batch(own, {name: array[rows] for name, array in context.items()}))
            parts.append((rows, (height, width), heads))
        return _together(parts, mask.shape)


def _together(parts: list[tuple[NDArray[np.int64], tuple[int, int], Heads]], shape: tuple[int, int, int]) -> Heads:
    """Answers for boards of several sizes, each in the top left corner of [H, W]; nothing is played or owned beside it.

    Args:
        parts: rows of the batch, height and width of their boards, their answers.
        shape: (N, H, W).
    """
    n, height, width = shape
    first = parts[0][2]
    policy = np.full((n, height * width + 1), _NEVER, np.float32)
    numbers = {name: getattr(first, name) for name in ("wdl", "value", "lead", "moves_left")}
    found = {name: np.empty((n, *array.shape[1:]), np.float32) for name, array in numbers.items() if array is not None}
    ownership = None if first.ownership is None else np.full(shape, np.nan, np.float32)
    for rows, (h, w), heads in parts:
        points = (np.arange(h)[:, None] * width + np.arange(w)).ravel()
        policy[rows[:, None], np.append(points, height * width)] = heads.policy
        for name, array in found.items():
            array[rows] = getattr(heads, name)
        if ownership is not None:
            ownership[rows, :h, :w] = heads.ownership
    return replace(first, policy=policy, ownership=ownership, extra={}, **found)


def taught(batch: ArrayBatch, heads: Heads, recipe: TeacherRecipe) -> ArrayBatch:
    """A batch (NumPy arrays) whose targets are the teacher's answers, mixed with the game's own.

    Args:
        batch: as the loader made it.
        heads: the teacher's answers for the same positions, in the same orientation.
        recipe: `share` of the teacher; `temperature` of its policy.
    """
    found: Data = {}
    if batch.policy is not None:
        found["policy_soft"] = soft = softmax(heads.policy.astype(np.float32) / recipe.temperature)
        searched, width = batch.policy_soft, soft.shape[1]
        known = (batch.policy >= 0) & (batch.policy < width) if searched is None else searched.any(axis=1)
        rows = np.flatnonzero(known)  # elsewhere the teacher's alone
        soft[rows] *= recipe.share
        if searched is None:
            soft[rows, batch.policy[rows]] += 1 - recipe.share
        else:
            soft[rows] += (1 - recipe.share) * searched[rows, :width]
    if batch.value is not None and heads.wdl is not None:
        value = batch.value
        own = np.stack([np.maximum(value, 0), 1 - np.abs(value), np.maximum(-value, 0)], axis=1)
        found["wdl"] = _mixed(own, heads.wdl, recipe.share)
    answers = {"value": heads.value, "score": heads.lead, "ownership": heads.ownership, "moves_left": heads.moves_left}
    for name, answer in answers.items():
        own = getattr(batch, name)
        if own is not None and answer is not None:
            found[name] = _mixed(own, answer, recipe.share)
    return replace(batch, **found)


def _mixed(own: NDArray[Any], answer: NDArray[Any], share: float) -> NDArray[np.float32]:
    """By their shares; the teacher's alone where the game's own is missing."""
    mixed: NDArray[np.float32] = np.where(np.isnan(own), answer, share * answer + (1 - share) * own).astype(np.float32)
    return mixed


def check_teacher(teacher: Network, student: Network) -> None:
    """Refuse a teacher that this student cannot learn from.

    Raises:
        BadRequest: another game, a human network, a policy for playouts, a teacher without a policy where the student
            has one, or one whose moves are numbered in another frame.
    """
    if teacher.encoding.game != student.encoding.game:
        raise BadRequest(f"plays {teacher.encoding.game}; the student plays {student.encoding.game}")
    if "metadata" in teacher.input_names:
        raise BadRequest("takes a player's profile with each position, which games in a store do not have")
    if "policy" in student.output_names and "policy" not in teacher.output_names:
        raise BadRequest("has no policy to teach")
    frames = [network.encoding.policy_frame for network in (teacher, student)]
    if frames[0] != frames[1]:
        raise BadRequest(f"numbers its moves in the {frames[0]}'s frame, the student in the {frames[1]}'s")
    if teacher.for_playouts:
        raise BadRequest("is a policy for playouts, which teaches nothing")


# --- Games played for it ----------------------------------------------------------------------------------------------


class Generations:
    """Batches of games that student and teacher play for it, a new generation of them every so many steps.

    The student meets the positions that its own play leads to. A generation's games follow from the student's weights
    as it begins, the seed and its number; they are kept in RUN/selfplay (`folder`), so that a run that stops within one
    goes on with the same games. Every process plays all of them. `targets` are those that the student's loss needs.

    Attributes:
        positions: games of a generation.

    Raises:
        BadRequest: a network that cannot play, or a table that cannot be.
    """

    def __init__(
        self, recipe: Recipe, student: Network, teacher: Evaluator, folder: Path, world: World, targets: frozenset[str]
    ) -> None:
        self._recipe, self._student, self._teacher, self._folder = recipe, student, teacher, folder
        self._world, self._targets = world, targets
        self._table = open_table(recipe, student)
        open_table(recipe, teacher.network)
        options = recipe.selfplay or SelfplayRecipe()
        self.positions = options.games
        self._length = options.every * recipe.run.accumulate
        self._players = TorchPlayer(student, autocast_of(recipe, world.device)), EvaluatorPlayer(teacher)
        self._next = 0
        self._generation = -1
        self._batches: Loader | None = None

    def seek(self, step: int) -> None:
        """Let batch number `step` come next; games of generations that begin there or later are forgotten."""
        self.close()
        self._next = step
        if self._world.rank == 0:
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
            games = self._games(generation).games
            seed = int(key_of(self._recipe.run.seed, generation)) >> 1
            options: Data = {"seed": seed, "symmetries": self._recipe.data.symmetries, "targets": self._targets}
            options["positions"] = position_filter(self._recipe)
            self._batches = open_loader(self._recipe, games, self._student, self._world, self._teacher, **options)
            self._batches.seek(within)
            self._generation = generation
        batch = next(self._batches)
        self._next += 1
        return batch

    def _games(self, generation: int) -> Played:
        path = self._folder / f"generation-{generation:06d}.npz"
        if path.exists() and generation * self._length < self._next:
            return read_played(path, self._table)
        numbers = np.arange(generation * self.positions, (generation + 1) * self.positions, dtype=np.int64)
        recipe = self._recipe
        played = play_games(self._players, self._table, numbers, recipe.run.seed, recipe.data.symmetries)
        if self._world.rank == 0:
            write_played(path, played)
        return played
