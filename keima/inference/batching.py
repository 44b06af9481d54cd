"""From positions to batches of one board shape, and from decoded heads to one answer a position."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from keima.errors import BadRequest
from keima.games.position import Position
from keima.inference.evaluation import Evaluation
from keima.systems.encoding import Array, Batch, Encoding, LegalMoves, symmetry_names
from keima.systems.network import Heads

AVERAGE = "average"
"""In place of a symmetry: the mean of the answers under all of the encoding's symmetries."""


@dataclass(frozen=True)
class Task:
    """One position to evaluate once: which one it is, under which symmetry, by which encoding (options bound)."""

    index: int
    position: Position
    symmetry: int
    encoding: Encoding


def per_position(name: str, value: object, count: int) -> list[object]:
    """`value` as a list of `count`: a list as it is, anything else for every position.

    Raises:
        BadRequest: a list of another length.
    """
    if not isinstance(value, list | tuple | np.ndarray):
        return [value] * count
    if len(value) != count:
        raise BadRequest(f"{name}: {count} positions need {count} values or one for all, not {len(value)}")
    return list(value)


def symmetries_of(wanted: object, available: Sequence[int]) -> list[int]:
    """The symmetries a request stands for: one number, or all of them for "average".

    Raises:
        BadRequest: not a symmetry this encoding has.
    """
    if isinstance(wanted, str) and wanted == AVERAGE:
        return list(available)
    if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool) and wanted in available:
        return [int(wanted)]
    raise BadRequest(f"unknown symmetry {wanted!r}; choose {symmetry_names(available)}, or {AVERAGE!r}")


def bound(encoding: Encoding, options: Mapping[str, object], count: int) -> list[Encoding]:
    """The encoding of each of `count` positions, its options bound.

    Args:
        encoding: with what is bound already.
        options: name → one value for all positions, or a list of one for each; None leaves what is bound.
        count: how many positions.

    Raises:
        BadRequest: an option the network does not take (None, 0 and "" stand for none), a value out of range, a list of
            another length.
    """
    names = list(options)
    columns = [per_position(name, options[name], count) for name in names]
    made: dict[tuple[object, ...], Encoding] = {}
    result = []
    for values in zip(*columns, strict=True) if names else [()] * count:
        if values not in made:
            wanted = {
                name: value
                for name, value in zip(names, values, strict=True)
                if value is not None and (value or name in encoding.options)
            }
            made[values] = encoding.bind(**wanted) if wanted else encoding
        result.append(made[values])
    return result


def batches(tasks: Sequence[Task], size: int) -> Iterator[list[Task]]:
    """The tasks in groups of one encoding and plane shape, at most `size` in each, in order within a group."""
    groups: dict[tuple[int, tuple[int, int]], list[Task]] = {}
    for task in tasks:
        shape = task.encoding.shape(task.position, task.symmetry)
        groups.setdefault((id(task.encoding), shape), []).append(task)
    for group in groups.values():
        for start in range(0, len(group), size):
            yield group[start : start + size]


def encode(tasks: Sequence[Task]) -> Batch:
    """The batch of these tasks, which share an encoding."""
    return tasks[0].encoding.encode([task.position for task in tasks], [task.symmetry for task in tasks])


def answers(tasks: Sequence[Task], heads: Heads) -> list[Evaluation]:
    """One evaluation a task: the policy over legal moves alone, everything in the board's own orientation."""
    numbers: dict[str, list[float]] = {}
    if heads.wdl is not None:
        numbers.update(zip(("win", "draw", "loss"), heads.wdl.T.tolist(), strict=True))
    for name in ("value", "lead", "moves_left"):
        if (column := getattr(heads, name)) is not None:
            numbers[name] = column.tolist()
    rows = [dict(zip(numbers, row, strict=True)) for row in zip(*numbers.values(), strict=True)]
    names = list(heads.extra)
    extra = list(zip(*(heads.extra[name].tolist() for name in names), strict=True)) if names else [()] * len(tasks)
    result = []
    for row, task in enumerate(tasks):
        policy, logits = legal_policy(heads.policy[row], task.encoding.legal_moves(task.position, task.symmetry))
        ownership = None
        if heads.ownership is not None:
            restored = task.encoding.restore(heads.ownership[row], task.position, task.symmetry)
            ownership = np.ascontiguousarray(restored, dtype=np.float32)
        further = dict(zip(names, extra[row], strict=True))
        result.append(Evaluation(policy, logits, ownership=ownership, extra=further, **(rows[row] if rows else {})))
    return result


def legal_policy(policy: Array, legal: LegalMoves) -> tuple[dict[str, float], dict[str, float]]:
    """Probabilities (renormalised) and logits of the legal moves by name, from one position's logits [A]."""
    logits = policy.take(legal.indices)
    probabilities = logits.astype(np.float64)
    if len(probabilities):
        probabilities -= np.maximum.reduce(probabilities)
        np.exp(probabilities, out=probabilities)
        probabilities /= np.add.reduce(probabilities)
    names = legal.names
    return dict(zip(names, probabilities.tolist(), strict=True)), dict(zip(names, logits.tolist(), strict=True))


def average(each: Sequence[Evaluation]) -> Evaluation:
    """The mean of one position's answers under several symmetries, as KataGo averages them.

    Source: KataGo's `cpp/neuralnet/nninputs.cpp`, the `NNOutput` constructor from several. Probabilities, value, lead,
    ownership and further numbers are averaged as they are; `score_stdev` through the mean of the squared scores.
    `logits` are the logarithms of the averaged probabilities.
    """
    if len(each) == 1:
        return each[0]
    policy = {move: fmean(one.policy[move] for one in each) for move in each[0].policy}
    plain = ("win", "draw", "loss", "value", "lead", "moves_left")
    numbers = {name: fmean(getattr(one, name) for one in each) for name in plain if getattr(each[0], name) is not None}
    extra = {name: fmean(one.extra[name] for one in each) for name in each[0].extra}
    if "score_mean" in extra and "score_stdev" in extra:
        mean_square = fmean(one.extra["score_mean"] ** 2 + one.extra["score_stdev"] ** 2 for one in each)
        extra["score_stdev"] = math.sqrt(max(0.0, mean_square - extra["score_mean"] ** 2))
    owned = [one.ownership for one in each if one.ownership is not None]
    ownership: Array | None = np.stack(owned).mean(axis=0, dtype=np.float64).astype(np.float32) if owned else None
    return Evaluation(
        policy,
        logits={move: math.log(max(probability, sys.float_info.min)) for move, probability in policy.items()},
        ownership=ownership,
        extra=extra,
        **numbers,
    )
