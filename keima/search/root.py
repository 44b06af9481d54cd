"""Root preparation: its evaluation, its moves with temperature and noise, and what of an older tree hangs below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.jit import njit
from keima.search.backup import back_up
from keima.search.batches import BatchesInFlight, answers_of
from keima.search.expand import LEAD, SCORE, VALUE, Leaves, mix_playout, set_evaluation
from keima.search.solver import bound_by_children, open_forced_win
from keima.search.tree import FRESH, OPEN, UNSOLVED, RootAnswer, Tree, TreeArrays
from keima.systems.parameters import Parameters

if TYPE_CHECKING:
    from keima.systems.network import Heads


@dataclass(frozen=True)
class Considered:
    """Which moves to consider at a root: only `allow` (None: all), without `avoid`."""

    allow: frozenset[str] | None = None
    avoid: frozenset[str] = frozenset()

    def among(self, names: list[str]) -> NDArray[np.uint8]:
        """1 for every legal move to consider.

        Raises:
            BadRequest: a move that is not legal here, or no move left to consider.
        """
        if not names:
            return np.zeros(0, np.uint8)
        for name in sorted((self.allow or frozenset()) | self.avoid):
            if name not in names:
                raise BadRequest(f"{name!r} is not a legal move here")
        chosen = [(self.allow is None or name in self.allow) and name not in self.avoid for name in names]
        if not any(chosen):
            raise BadRequest("no legal move is left to consider")
        return np.array(chosen, np.uint8)


def prepare_roots(
    batches: BatchesInFlight,
    trees: Sequence[Tree],
    rng: np.random.Generator,
    considered: Considered,
    lock: AbstractContextManager[object],
) -> None:
    """Evaluate roots together and write their ROOT records and answers; a root without visits gets its first.

    Raises:
        BadRequest: a move that is not legal here, no move left to consider, or ownership of a network without.
    """
    each = [_root_symmetries(batches.symmetries, tree.parameters, rng) for tree in trees]
    step = max(1, batches.capacity // len(each[0]))
    for first in range(0, len(trees), step):
        some = list(zip(trees, each, strict=True))[first : first + step]
        roots = [tree for tree, symmetries in some for _ in symmetries]
        leaves, heads = batches.evaluate_roots(roots, np.concatenate([symmetries for _, symmetries in some]))
        end = 0
        for tree, symmetries in some:
            rows = slice(end, end + len(symmetries))
            end = rows.stop
            _prepare(batches, tree, leaves, heads, rows, symmetries, rng, considered, lock)


def _prepare(
    batches: BatchesInFlight,
    tree: Tree,
    leaves: Leaves,
    heads: Heads,
    rows: slice,
    symmetries: NDArray[np.int64],
    rng: np.random.Generator,
    considered: Considered,
    lock: AbstractContextManager[object],
) -> None:
    """Write one root's record from its rows of a batch, one for each symmetry."""
    count = leaves.counts[rows.start]
    moves = leaves.moves[rows.start, :count]
    names = [tree.name(move, tree.side) for move in moves.tolist()]
    allowed = considered.among(names)
    logits = np.stack([heads.policy[row, leaves.indices[row, :count]] for row in range(rows.start, rows.stop)])
    answer = answers_of(heads)[rows].mean(axis=0)
    if tree.ownership is not None:
        if heads.ownership is None:
            raise BadRequest("this network has no ownership")
        for points, symmetry in zip(heads.ownership[rows], symmetries.tolist(), strict=True):
            tree.ownership.add(batches.restore(points, symmetry), 1.0)
    with lock:
        policy = set_root(tree, moves, logits, answer, rng, allowed, batches.play_out_root(tree))
    tree.answer = RootAnswer(
        policy=dict(zip(names, policy.tolist(), strict=True)),
        value=float(answer[VALUE]),
        lead=float(answer[LEAD]) if heads.lead is not None else None,
        has_moves_left=heads.moves_left is not None,
    )


def set_root(
    tree: Tree,
    moves: NDArray[np.int16],
    logits: NDArray[np.float32],
    answer: NDArray[np.float32],
    rng: np.random.Generator,
    allowed: NDArray[np.uint8] | None = None,
    playout: float | None = None,
) -> NDArray[np.float64]:
    """Write a root's record and evaluation from the network's answer; a root without visits gets its first.

    Args:
        moves: int16 [k], the legal ones.
        logits: float32 [symmetries, k], theirs under each symmetry.
        answer: float32 [6], as `answers_of`.
        rng: of the noise.
        allowed: 1 for those to consider; None: all.
        playout: the result of one, where there are playouts.

    Returns:
        The network's policy, float64 [k], without noise and temperature.
    """
    p = tree.parameters
    policy = mean_policy(logits, 1.0)
    temperature = p.root.root_policy_temperature
    tempered = policy if temperature == 1.0 else mean_policy(logits, temperature)
    if allowed is None:
        allowed = np.ones(len(moves), np.uint8)
    prior, kernels = _noisy(tempered, p, rng), tree.kernels
    order = np.argsort(-prior, kind="stable")
    write_root(tree.arrays, moves, prior, order, allowed, _gumbel(len(moves), p, rng))
    length = kernels.side_length(tree.position)
    evaluate_root(tree.arrays, tree.side, kernels.draw_side, length, answer, math.nan if playout is None else playout)
    if p.solver.solve:
        move, plies = kernels.forced_win(tree.position.record[0], tree.scratch[0])
        if move >= 0:
            open_forced_win(tree.arrays, move, kernels.other(tree.side), plies)
    return policy


@njit
def mean_policy(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float64]:
    """Probabilities float64 [k] of the legal moves, averaged over the symmetries; logits [symmetries, k]."""
    total, odds = np.zeros(logits.shape[1]), np.empty(logits.shape[1])
    for s in range(len(logits) if len(total) else 0):
        top = logits[s].max()
        for e in range(len(odds)):
            odds[e] = math.exp((logits[s, e] - top) / temperature)
        total += odds / (odds.sum() * len(logits))
    return total


def _root_symmetries(available: NDArray[np.int64], p: Parameters, rng: np.random.Generator) -> NDArray[np.int64]:
    """The symmetries the root is evaluated under, all of one shape of planes."""
    count = min(p.root.root_symmetries, len(available))
    if len(available) == 1 or (not p.batches.random_symmetry and count == 1):
        return np.zeros(1, np.int64)
    return available[np.sort(rng.permutation(len(available))[:count])]


def _noisy(policy: NDArray[np.float64], p: Parameters, rng: np.random.Generator) -> NDArray[np.float64]:
    """(1 − ε) P + ε Dirichlet(total / k, …) over the k legal moves."""
    share = p.root.root_noise
    if not share or not len(policy):
        return policy
    noise = rng.dirichlet(np.full(len(policy), p.root.dirichlet_total / len(policy)))
    return (1 - share) * policy + share * noise


def _gumbel(k: int, p: Parameters, rng: np.random.Generator) -> NDArray[np.float64]:
    """Gumbel noise of the k legal moves, where the search wants it."""
    if not p.gumbel.gumbel_considered or not p.gumbel.gumbel_noise:
        return np.zeros(k)
    return p.gumbel.gumbel_noise * rng.gumbel(size=k)


@njit
def write_root(
    tree: TreeArrays,
    moves: NDArray[np.int16],
    policy: NDArray[np.float64],
    order: NDArray[np.int64],
    allowed: NDArray[np.uint8],
    gumbel: NDArray[np.float64],
) -> None:
    """The ROOT record, moves in this order, children of an older tree in their places."""
    nodes, root = tree.nodes, tree.roots[0]
    root.count = len(order)
    for e in range(len(order)):
        root.move[e] = moves[order[e]]
        root.prior[e] = policy[order[e]]
        root.allowed[e] = allowed[order[e]]
        root.noise[e] = gumbel[order[e]]
        root.child[e] = -1
    top, mass = nodes[0], 0.0
    top.opened = 0
    c = top.child
    while c >= 0:
        ch = nodes[c]
        for e in range(len(order)):
            if root.move[e] == ch.move:
                root.child[e] = c
                ch.prior = root.prior[e]
                top.opened += 1
                mass += root.prior[e]
        c = ch.sibling
    top.opened_prior = mass
    top.lower, top.upper, top.plies = -1, 1, UNSOLVED
    top.edges = len(order)
    if tree.parameters[0].solve > 0 and allowed.all():
        bound_by_children(nodes, 0)


@njit
def evaluate_root(
    tree: TreeArrays, side: int, draw_side: int, side_length: float, answer: NDArray[np.float32], playout: float
) -> None:
    """The root's own evaluation; the centre of the dynamic score utility; the first visit of a fresh root.

    `side` is to move; `playout` is NaN without one.
    """
    nodes, head, p = tree.nodes, tree.heads[0], tree.parameters[0]
    top = nodes[0]
    top.side = side
    expected = top.score / top.visits if top.visits > 0 else float(answer[SCORE])
    cap = p.dynamic_scale * side_length
    head.center = min(max(expected * (1 - p.dynamic_center_zero), expected - cap), expected + cap)
    head.center_side = side
    head.side_length = side_length
    head.draw_side = draw_side
    set_evaluation(nodes, head, p, 0, answer)
    if not math.isnan(playout):
        mix_playout(nodes, 0, playout, p)
    if top.state == FRESH:
        top.state = OPEN
        head.evaluations += 1
        back_up(nodes, 0, 0, p)
