"""PUCT: which move a descent selects at a node.

    select(s) = argmax_a  Q(s, a) + c(s) · √(max(n, sqrt_floor) + sqrt_offset) · P(s, a) / (1 + N(s, a))

    c(s) = (cpuct + cpuct_factor · ln((n + cpuct_base) / cpuct_base)) · (1 + stdev_scale · (σ(s) / stdev_prior − 1))

N(s, a) are the visits of the move, n those of all moves, P the policy, Q the mean utility for the side to move. A move
without visits has the *first-play urgency* in place of Q. Descents under way count as visits (virtual loss), and where
`virtual_loss_value` says so as lost ones.

Sources: AlphaGo Zero (Nature 550, 2017, Methods, "Select"), AlphaZero's pseudocode for c(s) and its logarithm; KataGo
`cpp/search/searchexplorehelpers.cpp` for σ and the offset; Lc0 `src/search/classic/search.cc` for the floor and for
moves left. Every number is in `keima.systems.parameters`. With `gumbel_considered` it is `keima.search.gumbel` that
selects instead.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keima.jit import Record, Records, njit
from keima.search.gumbel import select_by_halving, select_improved


@njit
def select(nodes: Records, edge_priors: NDArray[np.float32], root: Record, i: int, p: Record) -> int:
    """The move to follow from an open node: a child's number, or −1 − e to open edge e.

    With `solve`, a child proven lost for the side to move is left alone while there is another.
    """
    if p.gumbel_considered > 0:
        return select_by_halving(nodes, root, p) if i == 0 else select_improved(nodes, edge_priors, i, p)
    if i == 0:
        return select_at_root(nodes, root, p)
    nd = nodes[i]
    scale = exploration(nd, p)
    fpu = first_play_urgency(nd, p, p.fpu_reduction)
    best, found = -np.inf, -1
    c = nd.child
    while c >= 0:
        ch = nodes[c]
        if ch.lower < 1 or p.solve == 0:
            score = puct(nd, ch, scale, fpu, p)
            if score >= best:
                best, found = score, c
        c = ch.sibling
    if nd.opened < nd.edges and fpu + scale * edge_priors[nd.edge + nd.opened] > best:
        return -1 - int(nd.opened)
    if found < 0:
        return int(nd.child)
    return found


@njit
def select_at_root(nodes: Records, root: Record, p: Record) -> int:
    """`select` at the root, among its allowed moves; one that is owed forced visits before all others."""
    nd = nodes[0]
    scale = exploration(nd, p)
    fpu = first_play_urgency(nd, p, p.root_fpu_reduction)
    best, found, spare = -np.inf, 0, 0
    unopened = False
    for e in range(root.count):
        if not root.allowed[e]:
            continue
        c = root.child[e]
        if c < 0:
            if unopened:
                continue
            unopened = True
            score = fpu + scale * root.prior[e]
            choice = -1 - e
        else:
            spare = c
            if nodes[c].lower == 1 and p.solve == 1:
                continue
            if p.forced_playouts > 0 and is_forced(nd, nodes[c], p):
                return int(c)
            score = puct(nd, nodes[c], scale, fpu, p)
            choice = c
        if score > best:
            best, found = score, choice
    return spare if found == 0 else found


@njit
def is_forced(nd: Record, ch: Record, p: Record) -> bool:
    """Has a root move been visited, but fewer than √(k · P · Σ N) times, k being `forced_playouts`?

    Wu, arXiv:1902.10565, §3.2; descents under way count, as in KataGo `searchexplorehelpers.cpp`
    (`rootDesiredPerChildVisitsCoeff`).
    """
    n = ch.weight + ch.pending * p.virtual_loss
    return bool(ch.visits > 0 and n * n < p.forced_playouts * ch.prior * (nd.weight - nd.own))


@njit
def puct(nd: Record, ch: Record, scale: float, fpu: float, p: Record) -> float:
    """Q + U of an opened move, descents under way included; `scale` is `exploration`."""
    n = ch.weight
    q = fpu
    if ch.visits > 0:
        q = -ch.utility / ch.visits
        if p.moves_left_slope > 0 and ch.moves_left > 0:
            q += moves_left_utility(nd, ch, q, p)
    if ch.pending > 0:
        weight = ch.pending * p.virtual_loss
        if p.virtual_loss_value == 1.0:
            worst = -(1 + p.static_score + p.dynamic_score)
            q += (worst - q) * weight / (weight + max(0.25, n))
        n += weight
    return float(q + scale * ch.prior / (1 + n))


@njit
def exploration(nd: Record, p: Record) -> float:
    """c(s) · √(max(n, sqrt_floor) + sqrt_offset), the factor of P / (1 + N)."""
    n = nd.weight - nd.own
    c = p.cpuct + p.cpuct_factor * math.log((n + p.cpuct_base) / p.cpuct_base)
    if p.stdev_scale > 0:
        c *= 1 + p.stdev_scale * (utility_stdev(nd, p) / p.stdev_prior - 1)
    return float(c * math.sqrt(max(n, p.sqrt_floor) + p.sqrt_offset))


@njit
def utility_stdev(nd: Record, p: Record) -> float:
    """σ(s), the spread of utilities below a node, with a prior (KataGo `getFpuValueForChildrenAssumeVisited`)."""
    n = nd.weight
    if n <= 1:
        return float(p.stdev_prior)
    mean = nd.utility / nd.visits
    square = max(nd.utility_sq / nd.visits, mean * mean)
    w = p.stdev_prior_weight
    return math.sqrt(
        max(0.0, ((mean * mean + p.stdev_prior * p.stdev_prior) * w + square * n) / (w + n - 1) - mean * mean)
    )


@njit
def first_play_urgency(nd: Record, p: Record, reduction: float) -> float:
    """The utility of moves not visited yet, for the side to move at the node."""
    if p.fpu_absolute == 1.0:
        return float(p.fpu_value)
    mean = nd.utility / max(nd.visits, 1)
    if p.fpu_policy_power > 0:
        share = min(1.0, float(nd.opened_prior) ** p.fpu_policy_power)
        mean = share * mean + (1 - share) * nd.raw_utility
    return float(mean - reduction * math.sqrt(nd.opened_prior))


@njit
def moves_left_utility(parent: Record, ch: Record, q: float, p: Record) -> float:
    """Lc0's liking for quick wins and slow losses (`search.cc`, `MEvaluator`): what it adds to Q."""
    if abs(parent.value / parent.visits) <= p.moves_left_threshold:
        return 0.0
    longer = ch.moves_left / ch.visits - parent.moves_left / parent.visits
    m = min(max(p.moves_left_slope * longer, -p.moves_left_max), p.moves_left_max)
    if q > 0:
        m = -m
    q = abs(q)
    if 0 < p.moves_left_threshold < 1:
        q = max(0.0, q - p.moves_left_threshold) / (1 - p.moves_left_threshold)
    return float(m * (p.moves_left_constant + p.moves_left_linear * q + p.moves_left_square * q * q))
