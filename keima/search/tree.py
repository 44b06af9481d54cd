"""The search tree: flat arrays, and the kernels that descend, expand and add up. It knows no game.

A tree has **nodes** (positions reached, `NODE`) and **edges** (their legal moves, `edge_moves` and `edge_priors`). A
node's edges lie together, sorted by prior; since all unvisited moves share one first-play urgency, the next one to open
is always the first not opened yet. Opened edges have a child node, and the children of a node form a linked list,
newest first. Nodes of equal `key` share one block of edges and one evaluation.

Perspective: every number in a node is for the **side to move at that node**. A parent reads its child's with the sign
turned.

The root is different: it keeps all its moves, with noise and another temperature, some perhaps excluded. They stand in
one `ROOT` record.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from keima.jit import njit
from keima.search.weighing import weigh

ROOT_EDGES = 400
"""Room for the moves of a root: 362 in Go, at most 218 in chess."""

FRESH, PENDING, OPEN, TERMINAL = 0, 1, 2, 3
"""States of a node: not evaluated; its evaluation is under way; evaluated; the game is over or the result proven."""

UNSOLVED, TWOFOLD = 127, 1
"""`plies` of a node without proven result; `kind` of a draw by a position met twice, which holds below some depths."""

NODE = np.dtype(
    [
        ("utility", np.float64),  # visits times the mean of what the search maximises
        ("weight", np.float64),  # what it counts for in its parent; its visits, unless they are weighed
        ("visits", np.int32),
        ("pending", np.int32),  # descents through this node that are under way
        ("prior", np.float32),  # P of the move that leads here
        ("sibling", np.int32),  # the next child of the same parent, -1: none
        ("child", np.int32),  # the first child, -1: none
        ("parent", np.int32),  # -1: none
        ("edge", np.int32),  # the first edge
        ("edges", np.int16),  # how many
        ("opened", np.int16),  # how many of them have a child
        ("move", np.int16),  # the move that leads here
        ("state", np.uint8),
        ("side", np.uint8),  # side to move, as the game numbers it
        ("lower", np.int8),  # proven: at least this result (−1 loss, 0 draw, 1 win)
        ("upper", np.int8),  # proven: at most
        ("kind", np.uint8),  # 0, or TWOFOLD
        ("cut", np.uint8),  # 1: moves were left out by the cap
        ("plies", np.int16),  # to the end, where the result is proven; for TWOFOLD since the first occurrence
        ("own", np.int32),  # visits that ended here
        ("opened_prior", np.float32),  # sum of the opened edges' priors
        ("value", np.float64),  # visits times the mean of: win − loss,
        ("draw", np.float64),  # draws,
        ("utility_sq", np.float64),  # utility squared,
        ("score", np.float64),  # mean of the final score, points,
        ("score_sq", np.float64),  # and of its square,
        ("lead", np.float64),  # points ahead,
        ("moves_left", np.float64),  # plies to the end
        ("raw_value", np.float32),  # this node's own evaluation, the same numbers
        ("raw_draw", np.float32),
        ("raw_utility", np.float32),
        ("raw_score", np.float32),
        ("raw_score_sq", np.float32),
        ("raw_lead", np.float32),
        ("raw_moves_left", np.float32),
        ("key", np.uint64),  # of everything an evaluation depends on
    ],
    align=True,
)

ROOT = np.dtype(
    [
        ("count", np.int32),
        ("move", np.int16, (ROOT_EDGES,)),
        ("prior", np.float32, (ROOT_EDGES,)),
        ("child", np.int32, (ROOT_EDGES,)),  # -1: not opened
        ("allowed", np.uint8, (ROOT_EDGES,)),
        ("bonus", np.float32, (ROOT_EDGES,)),  # added to the move's utility, for the side to move at the root
    ],
    align=True,
)

HEAD = np.dtype(
    [
        ("nodes", np.int64),  # used
        ("edges", np.int64),  # used
        ("root", np.int64),  # always node 0
        ("depths", np.int64),  # sum of the lengths of all descents of this search
        ("descents", np.int64),  # their number
        ("max_depth", np.int64),
        ("hits", np.int64),  # evaluations taken from a node of equal key
        ("evaluations", np.int64),  # network answers added
        ("collisions", np.int64),  # descents given up because they met one under way
        ("center", np.float64),  # centre of the dynamic score utility, points for `center_side`
        ("center_side", np.int64),
        ("side_length", np.float64),  # square root of the board's area; 0 in chess
    ],
    align=True,
)

_TWO_OVER_PI = 2.0 / math.pi
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_POINTS = np.arange(-12, 13) * 0.4
_WEIGHTS = np.exp(-_POINTS * _POINTS / 2) / np.exp(-_POINTS * _POINTS / 2).sum()


@njit
def mix(x: Any) -> Any:
    """Scramble 64 bits (splitmix64's finish)."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@njit
def chain(key: Any, fact: Any) -> Any:
    """A key with one more fact; the order matters."""
    return mix(key * _GOLDEN + np.uint64(fact) + _S31)


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
def utility_of(head: Any, p: Any, side: int, value: float, draw: float, score: float, score_sq: float) -> float:
    """What the search maximises, for `side`: win − loss, draws at their worth, and points (KataGo's two curves)."""
    utility = value + draw * p.draw_score
    if (p.static_score > 0 or p.dynamic_score > 0) and head.side_length > 0:
        stdev = math.sqrt(max(score_sq - score * score, 0.0))
        center = head.center if side == head.center_side else -head.center
        utility += p.static_score * score_value(score, stdev, 0.0, 2.0 * head.side_length)
        utility += p.dynamic_score * score_value(score, stdev, center, p.dynamic_scale * head.side_length)
    return utility


@njit
def explore_scale(nd: Any, p: Any) -> float:
    """The factor of P / (1 + N) in the choice of a move."""
    total = nd.weight - nd.own
    cpuct = p.cpuct + p.cpuct_factor * math.log((total + p.cpuct_base) / p.cpuct_base)
    if p.stdev_scale > 0:
        cpuct *= 1 + p.stdev_scale * (utility_stdev(nd, p) / p.stdev_prior - 1)
    return cpuct * math.sqrt(max(total, p.sqrt_floor) + p.sqrt_offset)


@njit
def utility_stdev(nd: Any, p: Any) -> float:
    """The spread of utilities below a node, with a prior (KataGo `getFpuValueForChildrenAssumeVisited`)."""
    n = nd.weight
    if n <= 1:
        return p.stdev_prior
    mean = nd.utility / nd.visits
    square = max(nd.utility_sq / nd.visits, mean * mean)
    w = p.stdev_prior_weight
    return math.sqrt(
        max(0.0, ((mean * mean + p.stdev_prior * p.stdev_prior) * w + square * n) / (w + n - 1) - mean * mean)
    )


@njit
def first_play_urgency(nd: Any, p: Any, reduction: float) -> float:
    """The utility of moves not visited yet, for the side to move at the node."""
    if p.fpu_absolute == 1.0:
        return p.fpu_value
    mean = nd.utility / max(nd.visits, 1)
    if p.fpu_policy_power > 0:
        share = min(1.0, float(nd.opened_prior) ** p.fpu_policy_power)
        mean = share * mean + (1 - share) * nd.raw_utility
    return mean - reduction * math.sqrt(nd.opened_prior)


@njit
def moves_left_utility(parent: Any, ch: Any, q: float, p: Any) -> float:
    """Lc0's liking for quick wins and slow losses (`search.cc`, `MEvaluator::GetMUtility`)."""
    parent_q = parent.utility / parent.visits
    if abs(parent_q) <= p.moves_left_threshold:
        return 0.0
    longer = ch.moves_left / ch.visits - parent.moves_left / parent.visits
    m = min(max(p.moves_left_slope * longer, -p.moves_left_max), p.moves_left_max)
    if q > 0:
        m = -m
    q = abs(q)
    if 0 < p.moves_left_threshold < 1:
        q = max(0.0, q - p.moves_left_threshold) / (1 - p.moves_left_threshold)
    return m * (p.moves_left_constant + p.moves_left_linear * q + p.moves_left_square * q * q)


@njit
def child_score(nd: Any, ch: Any, scale: float, fpu: float, bonus: float, p: Any) -> float:
    """What an opened move is worth in the choice: Q and exploration, descents under way included."""
    n = ch.weight
    q = fpu
    if ch.visits > 0:
        q = -ch.utility / ch.visits + bonus
        if p.moves_left_slope > 0 and ch.moves_left > 0:
            q += moves_left_utility(nd, ch, q, p)
    if ch.pending > 0:
        weight = ch.pending * p.virtual_loss
        if p.virtual_loss_value == 1.0:
            worst = -(1 + p.static_score + p.dynamic_score)
            q += (worst - q) * weight / (weight + max(0.25, n))
        n += weight
    return q + scale * ch.prior / (1 + n)


@njit
def pick(nodes: Any, edge_priors: Any, root: Any, i: int, p: Any) -> int:
    """The move to follow from an open node: a child's number, or −1 − e to open edge e.

    With `solve`, a child proven lost for the side to move is left alone while there is another.
    """
    if i == 0:
        return pick_at_root(nodes, root, p)
    nd = nodes[i]
    scale = explore_scale(nd, p)
    fpu = first_play_urgency(nd, p, p.fpu_reduction)
    best, found = -np.inf, -1
    c = nd.child
    while c >= 0:
        ch = nodes[c]
        if ch.lower < 1 or p.solve == 0:
            score = child_score(nd, ch, scale, fpu, 0.0, p)
            if score >= best:
                best, found = score, c
        c = ch.sibling
    if nd.opened < nd.edges and fpu + scale * edge_priors[nd.edge + nd.opened] > best:
        return -1 - nd.opened
    if found < 0:
        return nd.child
    return found


@njit
def pick_at_root(nodes: Any, root: Any, p: Any) -> int:
    """`pick` at the root, among its allowed moves."""
    nd = nodes[0]
    scale = explore_scale(nd, p)
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
            score = child_score(nd, nodes[c], scale, fpu, root.bonus[e], p)
            choice = c
        if score > best:
            best, found = score, choice
    return spare if found == 0 else found


@njit
def add_node(nodes: Any, head: Any, parent: int, move: int, prior: float, side: int) -> int:
    """A fresh node, the newest child of `parent` (−1: none); its number."""
    i = head.nodes
    head.nodes += 1
    nd = nodes[i]
    nd.utility = 0.0
    nd.weight = 0.0
    nd.value = 0.0
    nd.draw = 0.0
    nd.utility_sq = 0.0
    nd.score = 0.0
    nd.score_sq = 0.0
    nd.lead = 0.0
    nd.moves_left = 0.0
    nd.visits = 0
    nd.pending = 0
    nd.own = 0
    nd.prior = prior
    nd.child = -1
    nd.parent = parent
    nd.edge = 0
    nd.edges = 0
    nd.opened = 0
    nd.opened_prior = 0.0
    nd.move = move
    nd.state = FRESH
    nd.side = side
    nd.lower = -1
    nd.upper = 1
    nd.kind = 0
    nd.cut = 0
    nd.plies = UNSOLVED
    nd.key = np.uint64(0)
    nd.sibling = -1
    if parent >= 0:
        nd.sibling = nodes[parent].child
        nodes[parent].child = i
        nodes[parent].opened_prior += prior
    return i


@njit
def follow(nodes: Any, edge_moves: Any, edge_priors: Any, head: Any, root: Any, i: int, choice: int, side: int) -> int:
    """The child a choice of `pick` leads to, opened if need be; `side` is to move there."""
    if choice >= 0:
        return choice
    e = -1 - choice
    if i == 0:
        c = add_node(nodes, head, 0, root.move[e], root.prior[e], side)
        root.child[e] = c
    else:
        at = nodes[i].edge + e
        c = add_node(nodes, head, i, edge_moves[at], edge_priors[at], side)
    nodes[i].opened += 1
    return c


@njit
def mark(nodes: Any, i: int, change: int) -> None:
    """Count a descent under way that ends at node i, or with −1 take it back."""
    while i >= 0:
        nodes[i].pending += change
        i = nodes[i].parent


@njit
def back_up(nodes: Any, i: int, pending: int, p: Any) -> None:
    """Add node i's own evaluation to it and all above, as one visit; `pending` 1 ends the descent it belongs to."""
    nd = nodes[i]
    back_up_result(nodes, i, pending, float(nd.raw_value), float(nd.raw_draw), float(nd.raw_utility))
    if p.value_weight_exponent > 0 or p.noise_prune_scale > 0:
        i = nd.parent
        while i >= 0:
            if nodes[i].state == OPEN:
                weigh(nodes, i, p)
            i = nodes[i].parent


@njit
def back_up_result(nodes: Any, i: int, pending: int, value: float, draw: float, utility: float) -> None:
    """`back_up` with a value, draw and utility other than the node's own (a playout's), all weighing the same."""
    nd = nodes[i]
    nd.own += 1
    score, score_sq, lead = float(nd.raw_score), float(nd.raw_score_sq), float(nd.raw_lead)
    moves_left = float(nd.raw_moves_left)
    square = utility * utility
    while i >= 0:
        nd = nodes[i]
        nd.visits += 1
        nd.weight += 1
        nd.pending -= pending
        nd.value += value
        nd.draw += draw
        nd.utility += utility
        nd.utility_sq += square
        nd.score += score
        nd.score_sq += score_sq
        nd.lead += lead
        nd.moves_left += moves_left
        value, utility, score, lead = -value, -utility, -score, -lead
        moves_left += 1
        i = nd.parent


@njit
def note_depth(head: Any, depth: int) -> None:
    """Count a finished descent."""
    head.descents += 1
    head.depths += depth
    head.max_depth = max(head.max_depth, depth)


@njit
def look_up(table: Any, nodes: Any, key: Any) -> int:
    """The node that holds the evaluation of `key`, or −1."""
    last = np.uint64(len(table) - 1)
    slot = mix(key) & last
    while table[slot] >= 0:
        if nodes[table[slot]].key == key:
            return table[slot]
        slot = (slot + np.uint64(1)) & last
    return -1


@njit
def enter(table: Any, nodes: Any, i: int) -> None:
    """Let node i be the one that holds the evaluation of its key, unless another is."""
    key = nodes[i].key
    last = np.uint64(len(table) - 1)
    slot = mix(key) & last
    while table[slot] >= 0:
        if nodes[table[slot]].key == key:
            return
        slot = (slot + np.uint64(1)) & last
    table[slot] = i


@njit
def enter_all(table: Any, nodes: Any, count: int) -> None:
    """Fill an emptied table with every evaluated node."""
    table[:] = -1
    for i in range(1, count):
        if nodes[i].state == OPEN and nodes[i].key != np.uint64(0):
            enter(table, nodes, i)


@njit
def share(nodes: Any, i: int, other: int) -> None:
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


@njit
def _sift_down(priors: Any, moves: Any, first: int, start: int, count: int) -> None:
    """Restore a heap with the smallest prior on top, in `priors[first:first + count]`, from `start` down."""
    prior, move = priors[first + start], moves[first + start]
    at = start
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and priors[first + below + 1] < priors[first + below]:
            below += 1
        if priors[first + below] >= prior:
            break
        priors[first + at], moves[first + at] = priors[first + below], moves[first + below]
        at = below
    priors[first + at], moves[first + at] = prior, move


@njit
def write_edges(
    edge_moves: Any, edge_priors: Any, first: int, logits: Any, moves: Any, indices: Any, count: int, t: Any, cap: int
) -> int:
    """Softmax of the legal moves' logits at temperature t, the `cap` likeliest written as edges, best first; how many.

    Args:
        edge_moves: int16, written from `first` on.
        edge_priors: float32, likewise.
        first: where.
        logits: float32 [A].
        moves: the legal moves, int16 [≥ count].
        indices: their policy indices, int32 [≥ count].
        count: how many.
        t: temperature.
        cap: most edges to keep.
    """
    if count == 0:
        return 0
    top = -np.inf
    for k in range(count):
        top = max(top, logits[indices[k]])
    total = 0.0
    kept = 0
    for k in range(count):
        weight = math.exp((logits[indices[k]] - top) / t)
        total += weight
        if kept < cap:
            edge_priors[first + kept] = weight
            edge_moves[first + kept] = moves[k]
            kept += 1
            if kept == cap:
                for start in range(cap // 2 - 1, -1, -1):
                    _sift_down(edge_priors, edge_moves, first, start, cap)
        elif weight > edge_priors[first]:
            edge_priors[first] = weight
            edge_moves[first] = moves[k]
            _sift_down(edge_priors, edge_moves, first, 0, cap)
    if kept < cap:
        for start in range(kept // 2 - 1, -1, -1):
            _sift_down(edge_priors, edge_moves, first, start, kept)
    for end in range(kept - 1, 0, -1):
        edge_priors[first], edge_priors[first + end] = edge_priors[first + end], edge_priors[first]
        edge_moves[first], edge_moves[first + end] = edge_moves[first + end], edge_moves[first]
        _sift_down(edge_priors, edge_moves, first, 0, end)
    for k in range(kept):
        edge_priors[first + k] /= total
    return kept


VALUE, DRAW, SCORE, SCORE_SQ, LEAD, MOVES_LEFT = range(6)
"""Columns of an answer's numbers, for the side to move."""


@njit
def set_evaluation(nodes: Any, head: Any, p: Any, i: int, answer: Any) -> None:
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
def mix_playout(nodes: Any, i: int, playout: float, p: Any) -> None:
    """(1 − λ) v + λ z: mix a playout's result into node i's own evaluation (AlphaGo)."""
    nd = nodes[i]
    nd.raw_value += p.rollout_weight * (playout - nd.raw_value)
    nd.raw_utility = nd.raw_value


@njit
def expand(
    nodes: Any,
    edge_moves: Any,
    edge_priors: Any,
    table: Any,
    head: Any,
    p: Any,
    leaves: Any,
    moves: Any,
    indices: Any,
    counts: Any,
    policy: Any,
    answers: Any,
    first_row: int,
) -> None:
    """Add a batch's answers: each leaf gets its edges and evaluation, and its visit is backed up.

    Args:
        nodes: of the tree, with `edge_moves`, `edge_priors`, `table`, `head` and `p`.
        leaves: int32 [n], the pending nodes.
        moves: int16 [n, M], legal moves.
        indices: int32 [n, M], their policy indices.
        counts: int32 [n], how many.
        policy: float32 [N, A] logits of the whole batch.
        answers: float32 [N, 6].
        first_row: the row of the first leaf in `policy` and `answers`.
    """
    for k in range(len(leaves)):
        i = leaves[k]
        row = first_row + k
        nd = nodes[i]
        nd.edge = head.edges
        cap = int(p.edge_cap)
        nd.edges = write_edges(
            edge_moves,
            edge_priors,
            head.edges,
            policy[row],
            moves[k],
            indices[k],
            counts[k],
            p.policy_temperature,
            cap,
        )
        nd.cut = 1 if counts[k] > nd.edges else 0
        head.edges += nd.edges
        playout = float(nd.raw_value)
        set_evaluation(nodes, head, p, i, answers[row])
        if p.rollout_weight > 0:
            mix_playout(nodes, i, playout, p)
        nd.state = OPEN
        head.evaluations += 1
        if nd.key != np.uint64(0):
            enter(table, nodes, i)
        back_up(nodes, i, 1, p)


@njit
def cancel(nodes: Any, leaves: Any) -> None:
    """Take pending leaves back: their evaluation will not come, they can be chosen anew."""
    for k in range(len(leaves)):
        nodes[leaves[k]].state = FRESH
        mark(nodes, leaves[k], -1)


@njit
def number_subtree(nodes: Any, count: int, top: int, numbers: Any) -> int:
    """Number what hangs below node `top`, itself first, in the order of the array; −1 for the rest; how many.

    Children stand behind their parents, so the new numbers are never above the old ones.
    """
    found = 0
    for i in range(count):
        numbers[i] = -1
        if i == top or (i > top and nodes[i].parent >= 0 and numbers[nodes[i].parent] >= 0):
            numbers[i] = found
            found += 1
    return found


@njit
def slide_nodes(nodes: Any, count: int, top: int, numbers: Any) -> None:
    """Move the numbered nodes to their new places, links and all; `top` becomes the root."""
    nodes[top].parent = -1
    nodes[top].sibling = -1
    for i in range(top, count):
        j = numbers[i]
        if j < 0:
            continue
        nd = nodes[i]
        if nd.parent >= 0:
            nd.parent = numbers[nd.parent]
        if nd.child >= 0:
            nd.child = numbers[nd.child]
        if nd.sibling >= 0:
            nd.sibling = numbers[nd.sibling]
        nodes[j] = nd


@njit
def slide_edges(edge_moves: Any, edge_priors: Any, starts: Any, lengths: Any, places: Any) -> None:
    """Move blocks of edges down to their new places, in order."""
    for k in range(len(starts)):
        for m in range(lengths[k]):
            edge_moves[places[k] + m] = edge_moves[starts[k] + m]
            edge_priors[places[k] + m] = edge_priors[starts[k] + m]


VISITS, PRIOR, VALUE_MEAN, DRAW_MEAN, UTILITY_MEAN, UTILITY_SQ, SCORE_MEAN, SCORE_SQ_MEAN, LEAD_MEAN, LEFT_MEAN = range(
    10
)
LOWER, UPPER, PLIES, PENDING_COUNT, WEIGHT = range(10, 15)
COLUMNS = 15
"""Columns of `describe`."""


@njit
def describe(nodes: Any, i: int, row: Any) -> None:
    """Write a node's averages, for its own side to move, into float64 [COLUMNS]."""
    nd = nodes[i]
    n = max(nd.visits, 1)
    row[VISITS] = nd.visits
    row[PRIOR] = nd.prior
    row[VALUE_MEAN] = nd.value / n
    row[DRAW_MEAN] = nd.draw / n
    row[UTILITY_MEAN] = nd.utility / n
    row[UTILITY_SQ] = nd.utility_sq / n
    row[SCORE_MEAN] = nd.score / n
    row[SCORE_SQ_MEAN] = nd.score_sq / n
    row[LEAD_MEAN] = nd.lead / n
    row[LEFT_MEAN] = nd.moves_left / n
    row[LOWER] = nd.lower
    row[UPPER] = nd.upper
    row[PLIES] = nd.plies
    row[PENDING_COUNT] = nd.pending
    row[WEIGHT] = nd.weight


@njit
def principal_variation(nodes: Any, i: int, moves: Any) -> int:
    """Write the moves expected after node i (int16 [most]): proven results first, then the most visits; how many."""
    length = 0
    while length < len(moves):
        best, found = -np.inf, -1
        c = nodes[i].child
        while c >= 0:
            ch = nodes[c]
            if ch.visits > 0:
                rank = float(ch.visits)
                if ch.upper == -1:
                    rank = 1e12 - ch.plies
                elif ch.lower == 1:
                    rank = -1e12 + ch.plies
                if rank >= best:
                    best, found = rank, c
            c = ch.sibling
        if found < 0:
            return length
        moves[length] = nodes[found].move
        length += 1
        i = found
    return length
