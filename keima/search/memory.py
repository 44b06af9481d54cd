"""The memory of one search tree: arrays that grow between batches, up to a bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.jit import Records
from keima.search.expand import enter_all
from keima.search.tree import (
    FRESH,
    HEAD,
    NODE,
    ROOT,
    TreeArrays,
    add_node,
    number_subtree,
    slide_edges,
    slide_nodes,
)
from keima.systems.parameters import Parameters

_FIRST_NODES = 1 << 10
_EDGE_BYTES = 6
LEAST_MEMORY = 1 << 20
"""Bytes below which no tree is made."""


class Tree:
    """One tree's arrays (`keima.search.tree`), its root as node 0.

    Attributes:
        nodes: NODE [capacity].
        edge_moves: int16 [capacity].
        edge_priors: float32 [capacity].
        table: int32 [power of two], numbers of nodes by key.
        heads: HEAD [1].
        roots: ROOT [1].
        record: the parameters' [1].
    """

    def __init__(self, parameters: Parameters, memory: int) -> None:
        """Make a tree with nothing but an unevaluated root.

        Args:
            parameters: of the search.
            memory: bytes that nodes, edges and table may take together.

        Raises:
            BadRequest: too little memory for any tree.
        """
        if memory < LEAST_MEMORY:
            raise BadRequest(f"a search tree needs at least {LEAST_MEMORY:,} bytes of memory, not {memory:,}")
        self.memory = memory
        self.parameters = parameters
        self.record = parameters.record()
        self.nodes = np.zeros(_FIRST_NODES, NODE)
        self.edge_moves = np.zeros(_FIRST_NODES * 16, np.int16)
        self.edge_priors = np.zeros(_FIRST_NODES * 16, np.float32)
        self.table = np.full(4 * _FIRST_NODES, -1, np.int32)
        self.heads = np.zeros(1, HEAD)
        self.roots = np.zeros(1, ROOT)
        self.reset()

    @property
    def arrays(self) -> TreeArrays:
        """The tree as kernels take it; stale once it has grown."""
        return TreeArrays(
            self.nodes, self.edge_moves, self.edge_priors, self.table, self.heads, self.roots, self.record
        )

    @property
    def bytes(self) -> int:
        """Memory taken."""
        return self.nodes.nbytes + self.edge_moves.nbytes + self.edge_priors.nbytes + self.table.nbytes

    @property
    def visits(self) -> int:
        """Visits of the root."""
        return int(self.nodes["visits"][0])

    @property
    def solved(self) -> bool:
        """Is the root's result proven?"""
        return bool(self.nodes["lower"][0] == self.nodes["upper"][0])

    def reset(self) -> None:
        """Back to an unevaluated root."""
        self.table[:] = -1
        self.heads["nodes"] = 0
        self.heads["edges"] = 0
        self.roots["count"] = 0
        add_node(self.nodes, self.heads[0], -1, 0, 1.0, 0)

    def reserve(self, leaves: int) -> bool:
        """Make room for one gathering and its answers; False where the memory bound forbids it.

        Args:
            leaves: most leaves of it.
        """
        most_nodes = 2 * leaves + 32  # every descent may open one
        nodes = int(self.heads["nodes"][0]) + most_nodes
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
            self.table = np.empty(table, np.int32)
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

    def reroot(self, top: int) -> None:
        """Make node `top` the root and drop all that does not hang below it, in place."""
        count = int(self.heads["nodes"][0])
        numbers: NDArray[np.int32] = np.empty(count, np.int32)
        kept = number_subtree(self.nodes, count, top, numbers)
        slide_nodes(self.nodes, count, top, numbers)
        self.heads["nodes"] = kept
        self.nodes["edges"][0] = 0
        self.roots["count"] = 0
        self._slide_edges(self.nodes[:kept])
        self.table[:] = -1
        enter_all(self.table, self.nodes, kept)

    def _slide_edges(self, nodes: Records) -> None:
        """Close the gaps between the blocks of edges these nodes hold (some share one)."""
        holders = np.flatnonzero(nodes["edges"] > 0)
        starts, first, inverse = np.unique(nodes["edge"][holders], return_index=True, return_inverse=True)
        lengths = nodes["edges"][holders][first].astype(np.int64)
        places = np.concatenate([[0], np.cumsum(lengths)])
        slide_edges(self.edge_moves, self.edge_priors, starts.astype(np.int64), lengths, places)
        nodes["edge"][holders] = places[inverse]
        self.heads["edges"] = places[-1]

    def start_counting(self) -> None:
        """Begin the counts of one search."""
        for name in ("depths", "descents", "max_depth", "hits", "evaluations", "collisions"):
            self.heads[name] = 0

    @property
    def is_fresh(self) -> bool:
        """Has the root no evaluation yet?"""
        return bool(self.nodes["state"][0] == FRESH)
