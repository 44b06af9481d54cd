"""Evaluate and expand: a network's answer becomes a node's evaluation and its edges; equal positions share both."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keima.games.kernels import NO_KEY
from keima.jit import Record, Records, njit
from keima.search.backup import back_up
from keima.search.tree import FRESH, OPEN, TreeArrays, count_pending, enter

_TWO_OVER_PI = 2.0 / math.pi
_POINTS = np.arange(-12, 13) * 0.4
_WEIGHTS = np.exp(-_POINTS * _POINTS / 2) / np.exp(-_POINTS * _POINTS / 2).sum()

VALUE, DRAW, SCORE, SCORE_SQ, LEAD, MOVES_LEFT = range(6)
"""Columns of an answer's numbers, for the side to move."""


@njit
def score_value(mean: float, stdev: float, center: float, scale: float) -> float:
    """E[2/π · atan((x − center) / scale)] of a normal x: points squashed into (−1, 1).

    KataGo `cpp/neuralnet/nninputs.cpp`, `ScoreValue::expectedWhiteScoreValue`; a table there, a sum here.
    """
    if stdev < 1e-3:
        return _TWO_OVER_PI * math.atan((mean - center) / scale)
    total = 0.0
    for i in range(len(_POINTS)):
        x = mean + stdev * _POINTS[i]
        total += _WEIGHTS[i] * math.atan((x - center) / scale)
    return _TWO_OVER_PI * total


@njit
def draw_worth(head: Record, p: Record, side: int) -> float:
    """The utility of a draw for `side`: `draw_score` for one side, as much with the sign turned for the other.

    Lc0 `search.cc`, `GetDrawScore`: what a draw is worth hangs on who is to move, not on whose turn it was at the root.
    """
    return float(p.draw_score if side == head.draw_side else -p.draw_score)


@njit
def utility_of(head: Record, p: Record, side: int, value: float, draw: float, score: float, score_sq: float) -> float:
    """What the search maximises, for `side`: win − loss, draws at their worth, and points (KataGo's two curves)."""
    utility = value + draw * draw_worth(head, p, side)
    if (p.static_score > 0 or p.dynamic_score > 0) and head.side_length > 0:
        stdev = math.sqrt(max(score_sq - score * score, 0.0))
        center = head.center if side == head.center_side else -head.center
        utility += p.static_score * score_value(score, stdev, 0.0, 2.0 * head.side_length)
        utility += p.dynamic_score * score_value(score, stdev, center, p.dynamic_scale * head.side_length)
    return utility


@njit
def set_evaluation(nodes: Records, head: Record, p: Record, i: int, answer: NDArray[np.float32]) -> None:
    """Store a network's numbers (float32 [6], columns VALUE … MOVES_LEFT) as node i's own evaluation."""
    nd = nodes[i]
    nd.raw_value = answer[VALUE]
    nd.raw_draw = answer[DRAW]
    nd.raw_score = answer[SCORE]
    nd.raw_score_sq = answer[SCORE_SQ]
    nd.raw_lead = answer[LEAD]
    nd.raw_moves_left = answer[MOVES_LEFT]
    nd.raw_utility = utility_of(head, p, nd.side, answer[VALUE], answer[DRAW], answer[SCORE], answer[SCORE_SQ])


@njit
def mix_playout(nodes: Records, i: int, playout: float, p: Record) -> None:
    """(1 − λ) v + λ z: mix a playout's result into node i's own evaluation (AlphaGo)."""
    nd = nodes[i]
    nd.raw_value += p.rollout_weight * (playout - nd.raw_value)
    nd.raw_utility = nd.raw_value


class Leaves(NamedTuple):
    """The leaves of one batch, written from some row on."""

    nodes: NDArray[np.int32]  # [capacity]
    moves: NDArray[np.int16]  # [capacity, M], their legal moves
    counts: NDArray[np.int32]  # [capacity], how many
    indices: NDArray[np.int32]  # [capacity, M], where they stand in the policy as the planes are turned


def new_leaves(capacity: int, moves: int) -> Leaves:
    """Room for so many leaves of at most so many legal moves."""
    nodes, counts = np.zeros((2, capacity), np.int32)
    shape = capacity, moves
    return Leaves(nodes, np.zeros(shape, np.int16), counts, np.zeros(shape, np.int32))


@njit
def expand(
    tree: TreeArrays, leaves: Leaves, policy: NDArray[np.float32], answers: NDArray[np.float32], first: int, end: int
) -> None:
    """Add rows `first` to `end` − 1 of a batch's answers: edges and evaluation of a leaf, and its visit backed up.

    `policy` are logits [N, A], `answers` [N, 6] has the columns VALUE … MOVES_LEFT.
    """
    nodes, head, p = tree.nodes, tree.heads[0], tree.parameters[0]
    for row in range(first, end):
        i = leaves.nodes[row]
        nd = nodes[i]
        nd.edge = head.edges
        nd.edges = write_edges(tree, policy[row], leaves.moves[row], leaves.indices[row], leaves.counts[row])
        nd.cut = 1 if leaves.counts[row] > nd.edges else 0
        head.edges += nd.edges
        playout = float(nd.raw_value)
        set_evaluation(nodes, head, p, i, answers[row])
        if p.rollout_weight > 0:
            mix_playout(nodes, i, playout, p)
        nd.state = OPEN
        head.evaluations += 1
        if nd.key != NO_KEY:
            enter(tree.table, nodes, i)
        back_up(nodes, i, 1, p)


@njit
def share(nodes: Records, i: int, other: int) -> None:
    """Give node i the evaluation and the edges of a node of equal key."""
    nd, of = nodes[i], nodes[other]
    nd.edge = of.edge
    nd.edges = of.edges
    nd.cut = of.cut
    nd.raw_value = of.raw_value
    nd.raw_draw = of.raw_draw
    nd.raw_utility = of.raw_utility
    nd.raw_score = of.raw_score
    nd.raw_score_sq = of.raw_score_sq
    nd.raw_lead = of.raw_lead
    nd.raw_moves_left = of.raw_moves_left
    nd.state = OPEN


_BUCKETS = 256
"""At most."""
_RANGE = 16.0
"""Logits below the best one over which buckets are spread; what is further down shares the last one."""


@njit
def write_edges(
    tree: TreeArrays, logits: NDArray[np.float32], moves: NDArray[np.int16], indices: NDArray[np.int32], count: int
) -> int:
    """Softmax of the legal moves' logits, the likeliest written as the tree's next edges, best first; how many.

    `logits` [A] are the whole policy; the `count` legal moves stand at `indices` in it. They are thrown into as many
    buckets by their logits, best first, and sorted by insertion from there, which moves few of them and those not far.
    """
    edge_moves, edge_priors, first = tree.edge_moves, tree.edge_priors, int(tree.heads[0].edges)
    t, kept = tree.parameters[0].policy_temperature, min(count, int(tree.parameters[0].edge_cap))
    top, low = -np.inf, np.inf
    for k in range(count):
        top, low = max(top, logits[indices[k]]), min(low, logits[indices[k]])
    low = max(low, top - _RANGE)
    last = min(count, _BUCKETS) - 1
    scale = last / (top - low) if top > low else 0.0
    begins = np.zeros(last + 2, np.int32)
    buckets = np.empty(count, np.uint8)
    total = 0.0
    for k in range(count):
        down = top - logits[indices[k]]
        total += math.exp(-down / t)
        bucket = int(down * scale) if down * scale < last else last
        buckets[k] = bucket
        begins[bucket + 1] += 1
    for bucket in range(last + 1):
        begins[bucket + 1] += begins[bucket]
    order = np.empty(count, np.int32)
    for k in range(count):
        order[begins[buckets[k]]] = k
        begins[buckets[k]] += 1
    for end in range(1, count):
        k, at = order[end], end
        if end >= kept and buckets[k] != buckets[order[kept - 1]]:
            break  # all from here on are less likely than those kept
        while at > 0 and logits[indices[order[at - 1]]] < logits[indices[k]]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = k
    for k in range(kept):
        edge_priors[first + k] = math.exp((logits[indices[order[k]]] - top) / t) / total
        edge_moves[first + k] = moves[order[k]]
    return kept


@njit
def cancel(nodes: Records, leaves: NDArray[np.int32]) -> None:
    """Take pending leaves back: their evaluation will not come, they can be chosen anew."""
    for k in range(len(leaves)):
        nodes[leaves[k]].state = FRESH
        count_pending(nodes, leaves[k], -1)
