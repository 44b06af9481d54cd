"""Distillation: a student learns from what a teacher says of each position, in place of how the game went on.

Source: Hinton, Vinyals, Dean, "Distilling the knowledge in a neural network", arXiv:1503.02531: the student's
cross-entropy is taken against the teacher's softmax at a temperature, mixed with the move played. Any network of the
family teaches any other of the same game: policy, win/draw/loss, points, ownership and moves left, as far as the
teacher has them; what it lacks is learned from the games.

The student's batches are a function of seed and step as ever; the teacher is shown the same positions under the same
symmetries, in its own encoding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.inference.evaluator import Evaluator
from keima.plain import Data
from keima.systems.encoding import Batch
from keima.systems.network import Heads, Network, softmax
from keima.systems.targets import ArrayBatch
from keima.training.data.batches import Loader
from keima.training.run.recipe import TeacherRecipe

_NEVER = -1e9
"""The logit of a move beside the board."""


class TaughtBatches:
    """A loader's batches with a teacher's answers as targets.

    Args:
        loader: of the student, made with `also=teacher.encoding`.
        teacher: evaluates its network.
        recipe: how much it says, and how.
    """

    def __init__(self, loader: Loader, teacher: Evaluator, recipe: TeacherRecipe) -> None:
        self._loader = loader
        self._recipe = recipe
        self._evaluator = teacher

    @property
    def positions(self) -> int:
        """How many positions an epoch has."""
        return self._loader.positions

    @property
    def left_out(self) -> dict[str, int]:
        """Games left out, by reason."""
        return self._loader.left_out

    def seek(self, step: int) -> None:
        """Let batch number `step` come next."""
        self._loader.seek(step)

    def close(self) -> None:
        """Stop the loader's threads."""
        self._loader.close()

    def __next__(self) -> ArrayBatch:
        """The next batch, its targets the teacher's."""
        batch = next(self._loader)
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
    """A batch whose targets are the teacher's answers, mixed with the game's own.

    Args:
        batch: as the loader made it, NumPy arrays.
        heads: the teacher's answers for the same positions, in the same orientation.
        recipe: `share` of the teacher; `temperature` of its policy.
    """
    found: Data = {}
    if batch.policy is not None:
        found["policy_soft"] = _policy(batch.policy, heads.policy, recipe)
    if batch.value is not None and heads.wdl is not None:
        found["wdl"] = _mixed(_wdl(batch.value), heads.wdl, recipe.share)
    answers = {"value": heads.value, "score": heads.lead, "ownership": heads.ownership, "moves_left": heads.moves_left}
    for name, answer in answers.items():
        own = getattr(batch, name)
        if own is not None and answer is not None:
            found[name] = _mixed(own, answer, recipe.share)
    return replace(batch, **found)


def _policy(played: NDArray[np.int64], logits: NDArray[Any], recipe: TeacherRecipe) -> NDArray[np.float32]:
    """The teacher's policy and the move played, by their shares; the teacher's alone where no move is known."""
    soft = softmax(logits.astype(np.float32) / recipe.temperature)
    known = (played >= 0) & (played < soft.shape[1])
    rows = np.flatnonzero(known)
    soft[rows] *= recipe.share
    soft[rows, played[rows]] += 1 - recipe.share
    return soft


def _wdl(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """Outcomes in [−1, 1] as win, draw, loss [N, 3]; NaN where unknown."""
    return np.stack([np.maximum(value, 0), 1 - np.abs(value), np.maximum(-value, 0)], axis=1)


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
