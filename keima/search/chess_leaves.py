"""Leaves of chess trees: descending with the chess kernel, endings, keys of positions, and the planes of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.encodings.encoding import Array, Batch
from keima.encodings.lc0 import HISTORY_FILLS, INPUT_FORMATS, PLANES, Lc0Encoding, encode_lc0
from keima.encodings.lc0_moves import policy_indices
from keima.games.chess.board import (
    BOARD,
    CHECKMATE,
    KEYS,
    MAX_MOVES,
    ONGOING,
    STATE,
    ending,
    find_move,
    in_check,
    legal_moves,
    make,
    make_board,
)
from keima.games.chess.position import _uci_code, move_name
from keima.jit import njit
from keima.search.proof import prove, set_result
from keima.search.slots import Slots
from keima.search.tree import (
    FRESH,
    OPEN,
    PENDING,
    TWOFOLD,
    UNSOLVED,
    add_node,
    back_up,
    chain,
    follow,
    look_up,
    mark,
    note_depth,
    pick,
    share,
)

MATE_MOVES = 3
"""Mates by checks alone in so many moves are looked for at the root, before the search."""
MATE_BUDGET = 30_000
"""Moves tried for that, some ten milliseconds at most."""

_CANONICAL = 3


@njit
def evaluation_key(s: Any, history: int) -> Any:
    """A hash of all that a position's evaluation depends on; with `history`, of as many positions before it too.

    Pieces, side, castling and en passant rights, earlier occurrences and the clock of the fifty-move rule.
    """
    key = chain(s.hash, s.rule50 * 4 + min(s.repetitions, 3))
    key = chain(key, s.ep)
    for t in range(1, min(history, s.chain - 1) + 1):
        key = chain(key ^ s.keys[(s.chain - 1 - t) & (KEYS - 1)], t)
    return key


@njit
def plies_since_last(s: Any) -> int:
    """Plies since this position occurred the time before, 0 if it did not."""
    last = s.chain - 1
    for index in range(last - 4, max(-1, last - KEYS), -2):
        if s.keys[index & (KEYS - 1)] == s.hash:
            return int(last - index)
    return 0


@njit
def forced_mate(boards: Any, moves: Any, level: Any, n: Any, budget: Any) -> int:
    """The index of a move of `boards[level]` that mates in at most n moves by checks alone, or −1.

    Args:
        boards: BOARD [≥ level + 2 n + 1]; those after `level` are working space.
        moves: uint16 [as many, MAX_MOVES]; `moves[level]` holds the legal moves afterwards.
        level: where the position stands.
        n: own moves, the mating one included.
        budget: int64 [1], moves that may yet be tried; counted down.
    """
    for k in range(legal_moves(boards[level], moves[level])):
        budget[0] -= 1
        if budget[0] < 0:
            return -1
        boards[level + 1] = boards[level]
        make_board(boards[level + 1], moves[level, k])
        if not in_check(boards[level + 1]):
            continue
        replies = legal_moves(boards[level + 1], moves[level + 1])
        mated = replies == 0 or n > 1
        for reply in range(replies):
            if not mated:
                break
            boards[level + 2] = boards[level + 1]
            make_board(boards[level + 2], moves[level + 1, reply])
            mated = forced_mate(boards, moves, level + 2, n - 1, budget) >= 0
        if mated:
            return k
    return -1


@njit
def copy_board(b: Any, s: Any) -> None:
    """Copy the board part of a STATE into a BOARD."""
    for piece in range(6):
        b.pieces[piece] = s.pieces[piece]
    b.ours = s.ours
    b.theirs = s.theirs
    b.castling = s.castling
    b.ep = s.ep
    b.hash = s.hash
    b.side = s.side
    b.ep_legal = s.ep_legal
    b.rule50 = s.rule50
    b.ply = s.ply


@njit
def open_mate(nodes: Any, head: Any, root: Any, p: Any, move: int, side: int, plies: int) -> None:
    """Visit the root's move that mates by force, so that the root is proven; `side` is mated `plies` plies later."""
    for e in range(root.count):
        if root.move[e] == move and root.allowed[e] == 1 and root.child[e] < 0:
            c = add_node(nodes, head, 0, move, root.prior[e], side)
            root.child[e] = c
            nodes[0].opened += 1
            set_result(nodes, head, p, c, -1, plies, 0.0, False)
            back_up(nodes, c, 0, p)
            prove(nodes, c, p)


@njit
def gather_chess(
    nodes: Any,
    edge_moves: Any,
    edge_priors: Any,
    table: Any,
    head: Any,
    root: Any,
    p: Any,
    root_state: Any,
    states: Any,
    boards: Any,
    lists: Any,
    budget: Any,
    leaves: Any,
    moves: Any,
    counts: Any,
    start: int,
    wanted: int,
    quota: int,
) -> tuple[int, int]:
    """Descend until `wanted` leaves need the network, or `quota` visits are made or under way.

    Args:
        nodes: of the tree, with `edge_moves`, `edge_priors`, `table`, `head`, `root` and `p`.
        root_state: STATE of the root.
        states: STATE [capacity], written from `start` on.
        boards: BOARD [≥ 3], working space.
        lists: uint16 [≥ 3, MAX_MOVES], likewise.
        budget: int64 [1], likewise.
        leaves: int32 [capacity], written from `start` on: the pending nodes.
        moves: int16 [capacity, M], likewise: their legal moves.
        counts: int32 [capacity], likewise: how many.
        start: the first free slot.
        wanted: how many leaves.
        quota: how many visits.

    Returns:
        (leaves found, visits made on the way: ends of games, shared evaluations)
    """
    found, done, met = 0, 0, 0
    history = int(p.cache_history)
    scratch = lists[0]
    bumped = np.empty(wanted + 1, np.int64)
    attempts = 2 * wanted + 16
    while found < wanted and found + done < quota and attempts > 0:
        if nodes[0].lower == nodes[0].upper:
            break
        attempts -= 1
        slot = start + found
        states[slot] = root_state
        s = states[slot]
        i, depth = 0, 0
        while nodes[i].state == OPEN:
            choice = pick(nodes, edge_priors, root, i, p)
            i = follow(nodes, edge_moves, edge_priors, head, root, i, choice, 1 - int(s.side))
            make(s, np.uint16(nodes[i].move))
            depth += 1
        if nodes[i].state == PENDING:
            head.collisions += 1
            if met > wanted:
                break
            mark(nodes, i, 1)
            bumped[met] = i
            met += 1
            continue
        note_depth(head, depth)
        if nodes[i].kind == TWOFOLD and depth < nodes[i].plies:
            _reopen(nodes, i)
        proven = False
        if nodes[i].state == FRESH:
            count = legal_moves(s, scratch)
            proven = _finish(nodes, head, p, i, s, count, depth)
            if nodes[i].state == FRESH and p.solve == 1.0 and _mates_at_once(s, boards, lists, budget):
                set_result(nodes, head, p, i, 1, 1, 0.0, False)
                proven = True
            if nodes[i].state == FRESH:
                key = evaluation_key(s, history)
                nodes[i].key = key
                other = look_up(table, nodes, key)
                if other < 0:
                    nodes[i].state = PENDING
                    mark(nodes, i, 1)
                    leaves[slot] = i
                    counts[slot] = count
                    for k in range(count):
                        moves[slot, k] = scratch[k]
                    found += 1
                    continue
                share(nodes, i, other)
                head.hits += 1
        back_up(nodes, i, 0, p)
        done += 1
        if proven and p.solve == 1.0:
            prove(nodes, i, p)
    for k in range(met):
        mark(nodes, bumped[k], -1)
    return found, done


@njit
def _finish(nodes: Any, head: Any, p: Any, i: int, s: Any, count: int, depth: int) -> bool:
    """Make node i terminal where the game has ended, or goes in circles; has it ended for good?"""
    end = ending(s, count)
    if end == CHECKMATE:
        set_result(nodes, head, p, i, -1, 0, 0.0, False)
        return True
    if end != ONGOING:
        set_result(nodes, head, p, i, 0, 0, 0.0, False)
        return True
    if p.twofold_draws == 1.0 and s.repetitions >= 1 and depth >= 4:
        cycle = plies_since_last(s)
        if depth >= cycle:
            set_result(nodes, head, p, i, 0, cycle, 0.0, False)
            nodes[i].kind = TWOFOLD
    return False


@njit
def _mates_at_once(s: Any, boards: Any, lists: Any, budget: Any) -> bool:
    """Has the side to move a mate in one?"""
    copy_board(boards[0], s)
    budget[0] = MAX_MOVES
    return forced_mate(boards, lists, np.int64(0), np.int64(1), budget) >= 0


@njit
def _reopen(nodes: Any, i: int) -> None:
    """Take back a draw by a position met twice: the root moved on, and its first occurrence lies before it."""
    nd = nodes[i]
    nd.state = FRESH
    nd.kind = 0
    nd.lower = -1
    nd.upper = 1
    nd.plies = UNSOLVED


@njit
def write_indices(moves: Any, counts: Any, transforms: Any, n: int, indices: Any) -> None:
    """The policy index of every leaf's moves, under the canonical transform of its planes."""
    for k in range(n):
        policy_indices(moves[k], counts[k], transforms[k], indices[k])


class _View:
    """A position's record, for encodings other than Lc0's."""

    def __init__(self, state: Array) -> None:
        self.state = state


class ChessLeaves:
    """Gathers and encodes the leaves of chess trees."""

    max_moves = MAX_MOVES
    symmetries = 1
    side_length = 0.0

    def __init__(self, encoding: Any, position: Any, capacity: int, profile: str | None = None) -> None:
        """Make room.

        Args:
            encoding: the network's.
            position: any position of the game; says whether castling is named as in Chess960.
            capacity: most leaves of one batch.
            profile: unused, for the likeness of `GoLeaves`.
        """
        self.encoding = encoding
        self.capacity = capacity
        self.states = np.zeros(capacity, STATE)
        self.scratch = np.zeros(MAX_MOVES, np.uint16)
        self.boards = np.zeros(2 * MATE_MOVES + 1, BOARD)
        self.lists = np.zeros((2 * MATE_MOVES + 1, MAX_MOVES), np.uint16)
        self.budget = np.zeros(1, np.int64)
        self.chess960 = bool(position.chess960)

    def root_of(self, position: Any) -> tuple[Array, ...]:
        """The record a tree's descents start from."""
        return (position.state,)

    def gather(
        self, tree: Any, root: tuple[Array, ...], slots: Slots, start: int, wanted: int, quota: int
    ) -> tuple[int, int]:
        """Fill slots from `start` on with leaves of one tree; see `gather_chess`."""
        return gather_chess(  # type: ignore[call-arg]
            *tree.arrays,
            root[0][0],
            self.states,
            self.boards,
            self.lists,
            self.budget,
            slots.nodes,
            slots.moves,
            slots.counts,
            start,
            wanted,
            quota,
        )

    def put_root(self, root: tuple[Array, ...], slots: Slots, row: int) -> None:
        """Fill a slot with a root itself."""
        self.states[row : row + 1].view(np.uint8)[:] = root[0].view(np.uint8)
        slots.counts[row] = legal_moves(root[0][0], self.scratch)
        slots.moves[row] = self.scratch

    def encode(self, slots: Slots, n: int, symmetries: NDArray[np.int64], optimism: float) -> Batch:
        """The first n slots' planes, and their moves' policy indices in the planes' own frame (as Lc0's search)."""
        encoding = self.encoding
        transforms = np.zeros(n, np.int64)
        if not isinstance(encoding, Lc0Encoding):
            write_indices(slots.moves, slots.counts, transforms, n, slots.indices)
            return encoding.encode([_View(self.states[k : k + 1]) for k in range(n)])
        planes = np.empty((n, PLANES, 8, 8), np.float32)
        number = INPUT_FORMATS[encoding.input_format]
        encode_lc0(self.states[:n], number, HISTORY_FILLS[encoding.history_fill], planes, transforms)
        if number < _CANONICAL:
            transforms[:] = 0
        write_indices(slots.moves, slots.counts, transforms, n, slots.indices)
        return Batch({"planes": planes}, {"transform": transforms})

    def play_out_root(self, root: tuple[Array, ...]) -> float | None:
        """No playouts in chess."""
        return None

    def open_proven(self, tree: Any, root: tuple[Array, ...]) -> None:
        """Visit a root move that mates by checks in a few moves, if there is one and no draw can come before."""
        state = root[0][0]
        if state["rule50"] > 99 - 2 * MATE_MOVES:
            return
        copy_board(self.boards[0], state)
        self.budget[0] = MATE_BUDGET
        for n in range(1, MATE_MOVES + 1):
            k = forced_mate(self.boards, self.lists, 0, n, self.budget)
            if k >= 0:
                nodes, _, _, _, head, record, p = tree.arrays
                open_mate(nodes, head, record, p, int(self.lists[0, k]), 1 - int(state["side"]), 2 * n - 2)
                return

    def name(self, move: int, side: int) -> str:
        """The UCI name of a move made by `side`."""
        return move_name(move, side, self.chess960)

    def code(self, name: str, position: Any) -> int:
        """The kernel's move of a UCI name, −1 if it is none of the position's legal ones."""
        wanted = _uci_code(name)
        return int(find_move(position.state[0], wanted, self.scratch)) if wanted >= 0 else -1

    @staticmethod
    def side(position: Any) -> int:
        """The side to move, as nodes hold it."""
        return int(position.state[0]["side"])

    @staticmethod
    def other(side: int) -> int:
        """The side that moves after `side`."""
        return 1 - side

    def fits(self, position: Any) -> bool:
        """Is the position one of this kind?"""
        return hasattr(position, "chess960") and bool(position.chess960) == self.chess960
