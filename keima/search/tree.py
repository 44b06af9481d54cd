"""The search tree: flat arrays of nodes and edges, kernels that grow, cut and read them, and `Tree`, which owns them.

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

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games.game import get_game
from keima.games.kernels import NO_KEY, Kernels, mix
from keima.games.position import Position
from keima.jit import Record, Records, njit
from keima.systems.parameters import RECORD, Parameters

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
        ("noise", np.float32, (ROOT_EDGES,)),  # Gumbel noise; 0 where there is none
        ("base", np.int32, (ROOT_EDGES,)),  # visits before the search began
        ("budget", np.int32),  # visits of moves that the search is to make
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

    nodes: Records  # NODE [capacity]
    edge_moves: NDArray[np.int16]  # [capacity]
    edge_priors: NDArray[np.float32]  # [capacity]
    table: NDArray[np.int32]  # [power of two], numbers of nodes by key, −1: free
    heads: Records  # HEAD [1]
    roots: Records  # ROOT [1]
    parameters: Records  # `keima.systems.parameters.RECORD` [1]


_BLANK = np.zeros(1, NODE)
_BLANK[["sibling", "child", "parent", "lower"]] = -1
_BLANK["upper"], _BLANK["plies"] = 1, UNSOLVED


@njit
def add_node(nodes: Records, head: Record, parent: int, move: int, prior: float, side: int) -> int:
    """A fresh node, the newest child of `parent` (−1: none); its number."""
    i = int(head.nodes)
    head.nodes += 1
    nodes[i] = _BLANK[0]
    nd = nodes[i]
    nd.prior = prior
    nd.parent = parent
    nd.move = move
    nd.side = side
    if parent >= 0:
        nd.sibling = nodes[parent].child
        nodes[parent].child = i
        nodes[parent].opened_prior += prior
    return i


@njit
def clear(tree: TreeArrays) -> None:
    """Leave nothing but an unevaluated root."""
    tree.table[:] = -1
    head = tree.heads[0]
    head.nodes = 0
    head.edges = 0
    tree.roots[0].count = 0
    add_node(tree.nodes, head, -1, 0, 1.0, 0)


@njit
def plan(tree: TreeArrays, visits: int) -> None:
    """`Tree.plan`."""
    nodes, root = tree.nodes, tree.roots[0]
    root.base[:] = 0
    for e in range(root.count):
        if root.child[e] >= 0:
            root.base[e] = nodes[root.child[e]].visits
    root.budget = max(0, visits - max(1, nodes[0].visits))


@njit
def open_child(tree: TreeArrays, i: int, choice: int, side: int) -> int:
    """The child a choice of `select` leads to, added if need be; `side` is to move there."""
    if choice >= 0:
        return choice
    nodes, head, root = tree.nodes, tree.heads[0], tree.roots[0]
    e = -1 - choice
    if i == 0:
        c = add_node(nodes, head, 0, root.move[e], root.prior[e], side)
        root.child[e] = c
    else:
        at = nodes[i].edge + e
        c = add_node(nodes, head, i, tree.edge_moves[at], tree.edge_priors[at], side)
    nodes[i].opened += 1
    return c


@njit
def count_pending(nodes: Records, i: int, change: int) -> None:
    """Count a descent under way that ends at node i, or with −1 take it back."""
    while i >= 0:
        nodes[i].pending += change
        i = nodes[i].parent


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


@njit
def look_up(table: NDArray[np.int32], nodes: Records, key: np.uint64) -> int:
    """The node that holds the evaluation of `key`, or −1."""
    last = np.uint64(len(table) - 1)
    slot = mix(key) & last
    while table[slot] >= 0:
        if nodes[table[slot]].key == key:
            return int(table[slot])
        slot = (slot + np.uint64(1)) & last
    return -1


@njit
def enter(table: NDArray[np.int32], nodes: Records, i: int) -> None:
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
def enter_all(table: NDArray[np.int32], nodes: Records, count: int) -> None:
    """Fill an emptied table with every evaluated node."""
    table[:] = -1
    for i in range(1, count):
        if nodes[i].state == OPEN and nodes[i].key != NO_KEY:
            enter(table, nodes, i)


@dataclass
class RootAnswer:
    """The network's own answer for the root."""

    policy: dict[str, float]  # of each legal move by name
    value: float  # win − loss for the side to move
    lead: float | None  # points, if the network knows them
    has_moves_left: bool  # whether it knows the game's length


@dataclass
class Ownership:
    """Ownership summed over the positions evaluated, +1 = the root's side to move."""

    total: NDArray[np.float64] | None = None
    count: int = 0

    def add(self, points: NDArray[np.float32], sign: float) -> None:
        """Add one position's ownership [ysize, xsize] with the sign of its side to move."""
        if self.total is None:
            self.total = np.zeros(points.shape, np.float64)
        self.total += sign * points
        self.count += 1

    @property
    def mean(self) -> NDArray[np.float32] | None:
        """The average, float32 [ysize, xsize]; None where nothing was added."""
        return None if self.total is None else (self.total / self.count).astype(np.float32)


_FIRST_NODES = 1 << 10
_EDGE_BYTES = 6
LEAST_MEMORY = 1 << 20
"""Bytes below which no tree is made."""


def new_arrays(trees: tuple[int, ...], nodes: int, edges: int, parameters: Parameters) -> TreeArrays:
    """The arrays of one tree (`trees` is ()), or of (T,) trees side by side, with room for so many nodes and edges."""
    table = 1 << (2 * nodes).bit_length()
    record = np.zeros((*trees, 1), RECORD)
    record[:] = parameters.record()
    return TreeArrays(
        np.zeros((*trees, nodes), NODE),
        np.zeros((*trees, edges), np.int16),
        np.zeros((*trees, edges), np.float32),
        np.full((*trees, table), -1, np.int32),
        np.zeros((*trees, 1), HEAD),
        np.zeros((*trees, 1), ROOT),
        record,
    )


class Tree:
    """A tree with a position at its root, node 0; its arrays grow between batches, up to a bound.

    Args:
        parameters: of the search.
        memory: bytes that nodes, edges and table may take together.
        arrays: to live in, never growing; by default its own.

    Attributes:
        arrays: the tree as kernels take it; its parts are attributes too.
        position, side, kernels, scratch: the root, its side to move, its game's kernels and their working space.
        answer: the network's for the root, once it was asked.
        ownership: where that of the positions evaluated is summed up, if it is.
        pending: leaves under way.

    Raises:
        BadRequest: too little memory for any tree.
    """

    position: Position
    side: int
    kernels: Kernels
    scratch: Records

    def __init__(self, parameters: Parameters, memory: int, arrays: TreeArrays | None = None) -> None:
        if memory < LEAST_MEMORY:
            raise BadRequest(f"a search tree needs at least {LEAST_MEMORY:,} bytes of memory, not {memory:,}")
        self.memory = memory
        self.parameters = parameters
        self.arrays = arrays or new_arrays((), _FIRST_NODES, 16 * _FIRST_NODES, parameters)
        self.nodes, self.edge_moves, self.edge_priors, self.table, self.heads, self.roots, self.record = self.arrays
        self.pending = 0
        self.reset()

    @property
    def bytes(self) -> int:
        """Memory taken."""
        return self.nodes.nbytes + self.edge_moves.nbytes + self.edge_priors.nbytes + self.table.nbytes

    @property
    def visits(self) -> int:
        """Visits of the root."""
        return int(self.nodes["visits"][0])

    @property
    def is_fresh(self) -> bool:
        """Has the root no evaluation yet?"""
        return bool(self.nodes["state"][0] == FRESH)

    @property
    def solved(self) -> bool:
        """Is the root's result proven?"""
        return bool(self.nodes["lower"][0] == self.nodes["upper"][0])

    def name(self, move: int, side: int) -> str:
        """The name of a move made by `side`."""
        return self.kernels.name(self.position, move, side)

    def reset(self) -> None:
        """Back to an unevaluated root."""
        clear(self.arrays)
        self.answer: RootAnswer | None = None
        self.ownership: Ownership | None = None

    def reserve(self, leaves: int) -> bool:
        """Make room for one gathering of so many leaves and its answers; False where the memory bound forbids it."""
        nodes = int(self.heads["nodes"][0]) + 2 * leaves + 32  # every descent may open one
        edges = int(self.heads["edges"][0]) + 3 * leaves * self.parameters.priors.edge_cap  # three batches under way
        if nodes > len(self.nodes) or edges > len(self.edge_moves):
            return self._grow(nodes, edges)
        return True

    def _grow(self, nodes: int, edges: int) -> bool:
        """Grow to at least that many, by half more where the bound allows it."""
        for factor in (1.5, 1.2, 1.0):
            more_nodes = max(len(self.nodes), int(nodes * factor))
            more_edges = max(len(self.edge_moves), int(edges * factor))
            table = max(len(self.table), 1 << (2 * more_nodes).bit_length())
            if more_nodes * NODE.itemsize + more_edges * _EDGE_BYTES + 4 * table <= self.memory:
                break
        else:
            return False
        self.nodes.resize(more_nodes, refcheck=False)
        self.edge_moves.resize(more_edges, refcheck=False)
        self.edge_priors.resize(more_edges, refcheck=False)
        if table > len(self.table):
            self.table.resize(table, refcheck=False)
            enter_all(self.table, self.nodes, int(self.heads["nodes"][0]))
        return True

    def child(self, node: int, move: int) -> int:
        """The child of a node that a move leads to, −1 if it was not opened."""
        c = int(self.nodes["child"][node])
        while c >= 0:
            if self.nodes["move"][c] == move:
                return c
            c = int(self.nodes["sibling"][c])
        return -1

    def set_position(self, position: Position) -> None:
        """Put a position at the root, and keep of the tree what continues the old one."""
        if not self._follow(position):
            self.reset()
        self.place(position)

    def place(self, position: Position) -> None:
        """Say that the tree, empty or of this position, has it at the root."""
        self.position = position
        self.kernels = get_game(position.game).kernels
        self.scratch = self.kernels.new_scratch(position.record)
        self.side = self.kernels.side(position.record[0])

    def _follow(self, position: Position) -> bool:
        """Move the root along to `position` if the tree has it; False if it does not."""
        if self.is_fresh or self.position.game != position.game:
            return False
        names = self.kernels.moves_between(self.position, position)
        if not names:
            return names is not None
        node, at = 0, self.position
        for name in names:
            node = self.child(node, self.kernels.code(at, name))
            if node < 0:
                return False
            at = at.play(name)
        state = self.nodes["state"][node]
        if state == FRESH or (state != OPEN and self.nodes["child"][node] < 0):
            return False
        self._reroot(node)
        self.nodes["state"][0] = OPEN
        self.answer = self.ownership = None
        return True

    def _reroot(self, top: int) -> None:
        """Make node `top` the root and drop all that does not hang below it, in place."""
        count = int(self.heads["nodes"][0])
        numbers: NDArray[np.int32] = np.empty(count, np.int32)
        kept = number_subtree(self.nodes, count, top, numbers)
        slide_nodes(self.nodes, count, top, numbers)
        self.heads["nodes"] = kept
        self.nodes["edges"][0] = 0
        self.roots["count"] = 0
        nodes = self.nodes[:kept]
        holders = np.flatnonzero(nodes["edges"] > 0)
        starts, first, inverse = np.unique(nodes["edge"][holders], return_index=True, return_inverse=True)
        lengths = nodes["edges"][holders][first].astype(np.int64)  # some nodes share a block of edges
        places = np.concatenate([[0], np.cumsum(lengths)])
        slide_edges(self.edge_moves, self.edge_priors, starts.astype(np.int64), lengths, places)
        nodes["edge"][holders] = places[inverse]
        self.heads["edges"] = places[-1]
        enter_all(self.table, self.nodes, kept)

    def plan(self, visits: int) -> None:
        """Say that a search to so many visits of the root begins, its own evaluation (the first) among them."""
        plan(self.arrays, visits)

    def start_counting(self) -> None:
        """Begin the counts of one search."""
        for name in ("depths", "descents", "max_depth", "hits", "evaluations", "collisions"):
            self.heads[name] = 0
