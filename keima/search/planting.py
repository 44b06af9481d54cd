"""Setting up a root: its evaluation, its moves with temperature and noise, and what of an older tree hangs below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.encodings.encoding import Encoding
from keima.errors import BadRequest
from keima.networks.network import Heads
from keima.search.pipeline import Pipeline, Planted, answers_of
from keima.search.presets import Parameters
from keima.search.proof import bound_by_children
from keima.search.report import RootAnswer
from keima.search.slots import Slots
from keima.search.tree import FRESH, LEAD, OPEN, SCORE, UNSOLVED, VALUE, back_up, mix_playout, set_evaluation


def leaves_for(encoding: Encoding, position: Any, capacity: int, profile: str | None = None) -> Any:
    """The game's leaves (`GoLeaves` or `ChessLeaves`) for positions like this one."""
    if encoding.game == "chess":
        from keima.search.chess_leaves import ChessLeaves

        return ChessLeaves(encoding, position, capacity, profile)
    from keima.search.go_leaves import GoLeaves

    return GoLeaves(encoding, position, capacity, profile)


def with_or_without_value(p: Parameters, network: Any) -> Parameters:
    """The parameters as a network that plays leaves out can use them: AlphaGo's two cases.

    A network without a value leaves everything to playouts (λ = 1), and is asked for a leaf's moves when the leaf has
    `expansion_visits`. One with both answers at once, so that its leaves are evaluated at the first visit.
    """
    if not p.rollout_weight:
        return p
    has_value = "value" in getattr(network, "output_names", ("value",))
    return replace(p, expansion_visits=1.0) if has_value else replace(p, rollout_weight=1.0)


def rollout_weights(p: Parameters, policy: Any) -> NDArray[Any] | None:
    """The weights playouts need; None where the parameters want no playouts."""
    if not p.rollout_weight:
        return None
    if policy is None:
        from keima.networks.alphago_rollout import RolloutPolicy

        policy = RolloutPolicy()
    weights: NDArray[Any] = policy.weights
    return weights


@dataclass(frozen=True)
class Wanted:
    """Which moves to consider at a root: only `allow` (None: all), without `avoid`."""

    allow: frozenset[str] | None = None
    avoid: frozenset[str] = frozenset()


def plant_roots(
    pipeline: Pipeline,
    trees: Sequence[Planted],
    positions: Sequence[Any],
    p: Parameters,
    rng: np.random.Generator,
    wanted: Wanted,
    lock: Any,
) -> list[RootAnswer]:
    """Evaluate roots together and write their ROOT records; a root without visits gets its first.

    Raises:
        BadRequest: a move that is not legal here, no move left to consider, or ownership of a network without.
    """
    each = [_root_symmetries(pipeline.leaves.symmetries, p, rng) for _ in trees]
    found: list[RootAnswer] = []
    step = max(1, pipeline.leaves.capacity // len(each[0]))
    for first in range(0, len(trees), step):
        some = range(first, min(first + step, len(trees)))
        roots = [trees[k].root for k in some for _ in each[k]]
        symmetries = np.concatenate([each[k] for k in some])
        slots, heads = pipeline.evaluate_roots(roots, symmetries, p.root_policy_optimism)
        row = 0
        for k in some:
            rows = slice(row, row + len(each[k]))
            row = rows.stop
            found.append(
                _plant(
                    pipeline.leaves,
                    trees[k],
                    positions[k],
                    _Evaluated(slots, heads, rows, each[k]),
                    p,
                    rng,
                    wanted,
                    lock,
                )
            )
    return found


@dataclass(frozen=True)
class _Evaluated:
    """One root's rows of a batch, one for each symmetry."""

    slots: Slots
    heads: Heads
    rows: slice
    symmetries: NDArray[np.int64]

    def policy(self, temperature: float) -> NDArray[np.float64]:
        """The legal moves' probabilities, averaged over the symmetries."""
        count = int(self.slots.counts[self.rows.start])
        total = np.zeros(count)
        if not count:
            return total
        for row in range(self.rows.start, self.rows.stop):
            logits = self.heads.policy[row, self.slots.indices[row, :count]].astype(np.float64) / temperature
            odds = np.exp(logits - logits.max())
            total += odds / odds.sum()
        return total / len(self.symmetries)


def _plant(
    leaves: Any,
    planted: Planted,
    position: Any,
    root: _Evaluated,
    p: Parameters,
    rng: np.random.Generator,
    wanted: Wanted,
    lock: Any,
) -> RootAnswer:
    """Write one root's record from its evaluation."""
    first = root.rows.start
    codes = root.slots.moves[first, : root.slots.counts[first]]
    side = leaves.side(position)
    names = [leaves.name(code, side) for code in codes.tolist()]
    allowed = _allowed(names, wanted)
    policy = root.policy(1.0)
    tempered = policy if p.root_policy_temperature == 1.0 else root.policy(p.root_policy_temperature)
    answer = answers_of(root.heads)[root.rows].mean(axis=0)
    heads = root.heads
    if planted.ownership is not None:
        if heads.ownership is None:
            raise BadRequest("this network has no ownership")
        for points, symmetry in zip(heads.ownership[root.rows], root.symmetries.tolist(), strict=True):
            planted.ownership.add(leaves.restore(points, symmetry), 1.0)
    with lock:
        _write_root(planted, codes, _noisy(tempered, p, rng), allowed)
        _evaluate(planted, side, answer, leaves)
        if planted.tree.parameters.solve:
            leaves.open_proven(planted.tree, planted.root)
    return RootAnswer(
        policy=dict(zip(names, policy.tolist(), strict=True)),
        value=float(answer[VALUE]),
        lead=float(answer[LEAD]) if heads.lead is not None else None,
        has_score=heads.lead is not None,
        has_moves_left=heads.moves_left is not None,
    )


def _root_symmetries(available: int, p: Parameters, rng: np.random.Generator) -> NDArray[np.int64]:
    """The symmetries the root is evaluated under, all of one shape of planes."""
    count = min(int(p.root_symmetries), available)
    if available == 1 or (not p.random_symmetry and count == 1):
        return np.zeros(1, np.int64)
    return np.sort(rng.permutation(available)[:count]).astype(np.int64)


def _noisy(policy: NDArray[np.float64], p: Parameters, rng: np.random.Generator) -> NDArray[np.float64]:
    """(1 − ε) P + ε Dirichlet(total / k, …) over the k legal moves."""
    if not p.root_noise or not len(policy):
        return policy
    noise = rng.dirichlet(np.full(len(policy), p.dirichlet_total / len(policy)))
    return (1 - p.root_noise) * policy + p.root_noise * noise


def _allowed(names: list[str], wanted: Wanted) -> NDArray[np.uint8]:
    """1 for every legal move to consider."""
    if not names:
        return np.zeros(0, np.uint8)
    for name in sorted((wanted.allow or frozenset()) | wanted.avoid):
        if name not in names:
            raise BadRequest(f"{name!r} is not a legal move here")
    chosen = [(wanted.allow is None or name in wanted.allow) and name not in wanted.avoid for name in names]
    if not any(chosen):
        raise BadRequest("no legal move is left to consider")
    return np.array(chosen, np.uint8)


def _write_root(planted: Planted, codes: NDArray[np.int16], policy: NDArray[np.float64], allowed: Any) -> None:
    """The ROOT record, most likely moves first, children of an older tree in their places."""
    tree = planted.tree
    root = tree.roots[0]
    order = np.argsort(-policy, kind="stable")
    count = len(order)
    root["count"] = count
    root["move"][:count] = codes[order]
    root["prior"][:count] = policy[order]
    root["allowed"][:count] = allowed[order]
    root["bonus"][:count] = 0.0
    root["child"][:count] = -1
    places = {int(code): e for e, code in enumerate(codes[order].tolist())}
    nodes = tree.nodes
    opened, mass = 0, 0.0
    c = int(nodes["child"][0])
    while c >= 0:
        e = places[int(nodes["move"][c])]
        root["child"][e] = c
        nodes["prior"][c] = root["prior"][e]
        opened += 1
        mass += float(root["prior"][e])
        c = int(nodes["sibling"][c])
    nodes["lower"][0], nodes["upper"][0], nodes["plies"][0] = -1, 1, UNSOLVED
    nodes["edges"][0] = count
    nodes["opened"][0] = opened
    nodes["opened_prior"][0] = mass
    if tree.parameters.solve and allowed.all():
        bound_by_children(nodes, 0)


def _evaluate(planted: Planted, side: int, answer: NDArray[np.float32], leaves: Any) -> None:
    """The root's own evaluation; the centre of the dynamic score utility; the first visit of a fresh root."""
    tree = planted.tree
    nodes, head, p = tree.nodes, tree.heads[0], tree.parameters
    nodes["side"][0] = side
    side_length = leaves.side_length
    visits = int(nodes["visits"][0])
    expected = float(nodes["score"][0]) / visits if visits else float(answer[SCORE])
    cap = p.dynamic_scale * side_length
    head["center"] = min(max(expected * (1 - p.dynamic_center_zero), expected - cap), expected + cap)
    head["center_side"] = side
    head["side_length"] = side_length
    set_evaluation(nodes, head, tree.record[0], 0, answer)
    playout = leaves.play_out_root(planted.root)
    if playout is not None:
        mix_playout(nodes, 0, playout, tree.record[0])
    if nodes["state"][0] == FRESH:
        nodes["state"][0] = OPEN
        head["evaluations"] += 1
        back_up(nodes, 0, 0, tree.record[0])
