"""Gumbel AlphaZero: moves selected so that every simulation improves the policy, however few there are.

At the root the m moves with the greatest g(a) + ln P(a) are considered, g being Gumbel noise, and visited by sequential
halving: all alike, then the better half of them, until two are left. Best is what has the greatest

    g(a) + ln P(a) + σ(q(a)),    σ(q) = (offset + max N) · scale · q

Below the root a descent selects argmax π'(a) − N(a) / (1 + Σ N), where π' ∝ P · exp(σ(q)) is the **improved policy**;
that of the root is what a search teaches. q are the *completed* utilities, drawn to [0, 1] from the least to the
greatest: those of moves without visits are the *mixed value* (v + Σ N · Σ P Q / Σ P) / (1 + Σ N), sums over visited
moves, v the position's own evaluation.

Source: Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning with Gumbel", ICLR 2022, and DeepMind's
`mctx` 0.0.71 (`policies.py`, `action_selection.py`, `qtransforms.py`, `seq_halving.py`), to whose numbers this is held.
There a move that is not legal below the root takes part as one without visits; here only legal moves do.

The visits are those since the search began (`ROOT.base`): a tree that is kept begins its halving anew.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keima.jit import Record, Records, njit


@njit
def considered_visits(considered: int, budget: int, done: int) -> int:
    """The visits that the next move to visit must have: sequential halving of so many moves within `budget` visits.

    `done` visits are made. Past the budget the last two moves take turns. mctx: `get_sequence_of_considered_visits`.
    """
    if considered <= 1:
        return done
    rounds = 0
    while (1 << rounds) < considered:
        rounds += 1
    each = 0
    while considered > 2:
        extra = max(1, budget // (rounds * considered))
        if done < extra * considered:
            break
        done -= extra * considered
        each += extra
        considered = max(2, considered // 2)
    return each + done // considered


@njit
def mixed_value(own: float, visits: int, mass: float, weighted: float) -> float:
    """What moves without visits count as; the arguments as of `completed`."""
    return (own + visits * weighted / max(mass, 1e-38)) / (1 + visits) if visits > 0 else own


@njit
def completed(
    own: float, visits: int, most: int, mass: float, weighted: float, low: float, high: float, rest: bool, p: Record
) -> tuple[float, float, float]:
    """What makes σ of a utility: (that of moves without visits, the least, the factor for what is above the least).

    Args:
        own: the position's own evaluation.
        visits: of all its moves; `most`: the most of one.
        mass: Σ P of the moves with visits; `weighted`: their Σ P Q; `low`, `high`: their least and greatest Q.
        rest: are there moves without visits?
    """
    mixed = mixed_value(own, visits, mass, weighted)
    if rest or visits == 0:
        low, high = min(low, mixed), max(high, mixed)
    factor = (p.gumbel_visit_offset + most) * p.gumbel_value_scale / max(high - low, 1e-8)
    return mixed, low, factor


@njit
def select_improved(nodes: Records, edge_priors: NDArray[np.float32], i: int, p: Record) -> int:
    """The move to follow from an open node below the root, as `keima.search.puct.select` gives it."""
    nd = nodes[i]
    visits, most, under_way = 0, 0, 0
    mass, weighted, low, high = 0.0, 0.0, np.inf, -np.inf
    rest = nd.opened < nd.edges or nd.cut == 1
    c = nd.child
    while c >= 0:
        ch = nodes[c]
        under_way += ch.pending
        if ch.visits > 0:
            q = -ch.utility / ch.visits
            visits += ch.visits
            most = max(most, ch.visits)
            mass += ch.prior
            weighted += ch.prior * q
            low, high = min(low, q), max(high, q)
        else:
            rest = True
        c = ch.sibling
    mixed, low, factor = completed(float(nd.raw_utility), visits, most, mass, weighted, low, high, rest, p)
    top = factor * (high - low) if visits > 0 else 0.0
    top = max(top, factor * (mixed - low)) if rest else top
    lift = math.exp(factor * (mixed - low) - top) if rest else 0.0
    total = max(0.0, 1.0 - mass) * lift
    c = nd.child
    while c >= 0:
        ch = nodes[c]
        if ch.visits > 0:
            total += ch.prior * math.exp(factor * (-ch.utility / ch.visits - low) - top)
        c = ch.sibling
    total = max(total, 1e-300)
    best, found = -np.inf, -1
    c = nd.child
    while c >= 0:
        ch = nodes[c]
        if ch.lower < 1 or p.solve == 0:
            odds = lift if ch.visits == 0 else math.exp(factor * (-ch.utility / ch.visits - low) - top)
            score = ch.prior * odds / total - (ch.visits + ch.pending) / (1.0 + visits + under_way)
            if score >= best:
                best, found = score, c
        c = ch.sibling
    if nd.opened < nd.edges and edge_priors[nd.edge + nd.opened] * lift / total > best:
        return -1 - int(nd.opened)
    return int(nd.child) if found < 0 else found


@njit
def improve_root(nodes: Records, root: Record, p: Record, scores: NDArray[np.float64]) -> int:
    """Write ln P(a) + σ(q(a)) of every root move (float64 [count]), −∞ for those not considered; how many are."""
    visits, most, allowed = 0, 0, 0
    mass, weighted, low, high = 0.0, 0.0, np.inf, -np.inf
    rest = False
    for e in range(root.count):
        if not root.allowed[e]:
            continue
        allowed += 1
        c = root.child[e]
        if c >= 0 and nodes[c].visits > 0:
            q = -nodes[c].utility / nodes[c].visits
            visits += nodes[c].visits
            most = max(most, nodes[c].visits)
            mass += root.prior[e]
            weighted += root.prior[e] * q
            low, high = min(low, q), max(high, q)
        else:
            rest = True
    own = float(nodes[0].raw_utility)
    mixed, low, factor = completed(own, visits, most, mass, weighted, low, high, rest, p)
    for e in range(root.count):
        scores[e] = -np.inf
        if root.allowed[e]:
            c = root.child[e]
            q = -nodes[c].utility / nodes[c].visits if c >= 0 and nodes[c].visits > 0 else mixed
            scores[e] = math.log(max(root.prior[e], 1e-38)) + factor * (q - low)
    return allowed


@njit
def improved_value(nodes: Records, root: Record, p: Record) -> float:
    """Σ π'(a) q(a) over the root's moves, in win − loss: what the improved policy is worth.

    The mean of all visits is less, since it counts moves that were only tried. Moves without visits count as the mixed
    value, proven ones as their result.
    """
    odds = np.empty(root.count)
    improve_root(nodes, root, p, odds)
    top = odds.max()
    visits, mass, weighted, rest, total, value = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    for e in range(root.count):
        share = math.exp(odds[e] - top)
        c = root.child[e]
        total += share
        if c >= 0 and root.allowed[e] and nodes[c].visits > 0:
            ch = nodes[c]
            q = -ch.lower if ch.lower == ch.upper else -ch.value / ch.visits
            visits += ch.visits
            mass += root.prior[e]
            weighted += root.prior[e] * q
            value += share * q
        else:
            rest += share
    return (value + rest * mixed_value(float(nodes[0].raw_value), visits, mass, weighted)) / total


@njit
def select_by_halving(nodes: Records, root: Record, p: Record) -> int:
    """The move to follow from the root, as `keima.search.puct.select` gives it.

    Where no move has the visits that sequential halving wants (one it would go on with is proven lost), the move whose
    number is nearest.
    """
    scores = np.empty(root.count)
    considered = min(improve_root(nodes, root, p, scores), int(p.gumbel_considered))
    done = 0
    for e in range(root.count):
        c = root.child[e]
        if c >= 0 and root.allowed[e]:
            done += nodes[c].visits + nodes[c].pending - root.base[e]
    wanted = considered_visits(considered, int(root.budget), done)
    nearest, best, found, spare = 1 << 60, -np.inf, 0, 0
    for e in range(root.count):
        if not root.allowed[e]:
            continue
        c = root.child[e]
        distance = wanted
        if c >= 0:
            spare = c
            if nodes[c].lower == 1 and p.solve == 1:
                continue
            distance = abs(nodes[c].visits + nodes[c].pending - root.base[e] - wanted)
        score = root.noise[e] + scores[e]
        if distance < nearest or (distance == nearest and score > best):
            nearest, best, found = distance, score, (c if c >= 0 else -1 - e)
    return spare if found == 0 else found


@njit
def score_root(nodes: Records, root: Record, p: Record) -> NDArray[np.float64]:
    """g(a) + ln P(a) + σ(q(a)) of every root move, float64 [count]; −∞ for those not considered."""
    scores = np.empty(root.count)
    improve_root(nodes, root, p, scores)
    for e in range(root.count):
        scores[e] += root.noise[e]
    return scores
