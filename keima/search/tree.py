"""The search tree: flat arrays of nodes and edges, and the kernels that grow, cut and read them. It knows no game.

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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keima.jit import Record, Records, njit

ROOT_EDGES = 400
"""Room for the moves of a root: 362 in Go, at most 218 in chess."""

FRESH, PENDING, OPEN, TERMINAL = 0, 1, 2, 3
"""States of a node: not evaluated; its evaluation is under way; evaluated; the game is over or the result proven."""

UNSOLVED, TWOFOLD = 127, 1
"""`plies` of a node without proven result; `kind` of a draw by a position met twice, which holds below some depths."""

NODE = np.dtype(
    [
        ("utility", np.float64),  # visits times the mean of what the search maximises
        ("weight", np.float64),  # what it counts for in its parent: its visits, unless averages favour good moves
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
        ("lower", np.int8),  # bounds of the result: at least (−1 loss, 0 draw, 1 win),
        ("upper", np.int8),  # and at most
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
        ("side_length", np.float64),  # square root of the board's area; 0 where there are no points
        ("draw_side", np.int64),  # the side for which a draw is worth `draw_score`
    ],
    align=True,
)


class TreeArrays(NamedTuple):
    """A tree as kernels take it."""

    nodes: Records
    """NODE [capacity]"""
    edge_moves: NDArray[np.int16]
    """[capacity]"""
    edge_priors: NDArray[np.float32]
    """[capacity]"""
    table: NDArray[np.int32]
    """[power of two], numbers of nodes by key, −1: free"""
    heads: Records
    """HEAD [1]"""
    roots: Records
    """ROOT [1]"""
    parameters: Records
    """`keima.systems.parameters.RECORD` [1]"""


@njit
def add_node(nodes: Records, head: Record, parent: int, move: int, prior: float, side: int) -> int:
    """A fresh node, the newest child of `parent` (−1: none); its number."""
    i = int(head.nodes)
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
def open_child(
    nodes: Records,
    edge_moves: NDArray[np.int16],
    edge_priors: NDArray[np.float32],
    head: Record,
    root: Record,
    i: int,
    choice: int,
    side: int,
) -> int:
    """The child a choice of `select` leads to, added if need be; `side` is to move there."""
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
def count_pending(nodes: Records, i: int, change: int) -> None:
    """Count a descent under way that ends at node i, or with −1 take it back."""
    while i >= 0:
        nodes[i].pending += change
        i = nodes[i].parent


@njit
def count_descent(head: Record, depth: int) -> None:
    """Count a finished descent."""
    head.descents += 1
    head.depths += depth
    head.max_depth = max(head.max_depth, depth)


@njit
def number_subtree(nodes: Records, count: int, top: int, numbers: NDArray[np.int32]) -> int:
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
def slide_nodes(nodes: Records, count: int, top: int, numbers: NDArray[np.int32]) -> None:
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
def slide_edges(
    edge_moves: NDArray[np.int16],
    edge_priors: NDArray[np.float32],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:
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
def describe(nodes: Records, i: int, row: NDArray[np.float64]) -> None:
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
def principal_variation(nodes: Records, i: int, moves: NDArray[np.int16]) -> int:
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
