"""AlphaGo's input planes (2016): 48 for the policy network, 49 for the value network.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 529 (2016),
Extended Data Table 2. Where the table leaves room we follow its open reimplementation RocAlphaGo, whose order of the
planes the field's files use:

* "Capture size", "self-atari size" and "liberties after move" are zero at illegal moves. Legal means: empty, no
  suicide, not the simple ko point. Capture size counts from 0 (plane 20: a legal move that captures nothing).
* The last plane of every group of eight means "that many or more".
* "Turns since" counts moves since the stone was played, the newest stone on the first plane; passes count.
* "Sensibleness": a legal move that does not fill the player's own true eye. A true eye has all neighbours of its own
  colour and at most one bad diagonal in the open, none at the edge; a diagonal is bad when it holds an enemy stone or
  is an empty point that is itself no true eye.
* Ladders are read to 80 moves deep; a ladder longer than that counts as captured. The hunter and the prey both may
  take stones; the prey also escapes by capturing the hunter's stones in atari beside it.

Perspective: all colours are the side to move's own or its opponent's. Values are 0 or 1.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import (
    BLACK,
    BOARD,
    EMPTY,
    MAX_POINTS,
    NULL_LOC,
    captures_of,
    chain_beside,
    is_legal,
    liberties_after,
    neighbour,
    opponent,
    play,
)
from keima.games.go.moves import is_true_eye, sensible_moves
from keima.games.go.vertices import loc_to_vertex
from keima.jit import Record, Records, njit
from keima.systems.encoding import Batch
from keima.systems.go_points import GoEncoding, fill_locs

PLANES: list[tuple[str, str, str]] = [
    ("0", "own stones", "1 where the side to move has a stone"),
    ("1", "opponent stones", "1 where the opponent has a stone"),
    ("2", "empty", "1 where the point is empty"),
    ("3", "ones", "1 everywhere"),
    ("4-11", "turns since", "plane 4 + a: the stone there was played a turns ago; plane 11: 7 turns or more"),
    ("12-19", "liberties", "plane 12 + n: the chain there has n + 1 liberties; plane 19: 8 or more"),
    ("20-27", "capture size", "legal moves; plane 20 + n: it captures n stones; plane 27: 7 or more"),
    ("28-35", "self-atari size", "legal moves that leave their chain in atari; plane 28 + n: a chain of n + 1 stones"),
    ("36-43", "liberties after move", "legal moves; plane 36 + n: the new chain has n + 1 liberties; plane 43: 8+"),
    ("44", "ladder capture", "legal moves that capture in a ladder a chain of two liberties beside them"),
    ("45", "ladder escape", "legal moves that save from a ladder an own chain in atari beside them"),
    ("46", "sensibleness", "legal moves that do not fill an own true eye"),
    ("47", "zeros", "0 everywhere"),
    ("48", "player colour", "1 everywhere if Black is to move (value network only)"),
]
"""(planes, name, meaning), in order. AlphaGo paper, Extended Data Table 2."""

POLICY_PLANES = 48
VALUE_PLANES = 49

_TURNS_SINCE, _LIBERTIES, _CAPTURE_SIZE, _SELF_ATARI, _LIBERTIES_AFTER, _GROUP = 4, 12, 20, 28, 36, 8
_LADDER_CAPTURE, _LADDER_ESCAPE, _SENSIBLENESS, _COLOUR = 44, 45, 46, 48

CONCEPTS = MappingProxyType(
    {
        "own stone": (0,),
        "opponent's": (1,),
        "in atari": (12,),
        "2 liberties": (13,),
        "5+ liberties": range(16, 20),
        "captures": range(21, 28),
        "self-atari": range(28, 36),
        "ladder capture": (44,),
        "ladder escape": (45,),
        "sensible": (46,),
    }
)
"""Points that have a stone of either side, a chain of so many liberties, or a move that does what is said."""

LADDER_DEPTH = 80
"""Moves a ladder is read; longer ones count as captured."""
LADDER_NODES = 4000
"""Moves tried for one ladder before it counts as not working; real ladders need a few hundred at most."""


@njit
def _succeeds(boards: Records, depth: int, action: int, prey: int, hunting: bool, budget: NDArray[np.int64]) -> bool:
    """Does the move `action` on `boards[depth]` do its work in a ladder on the chain of the stone `prey`?

    `hunting`: the hunter moves, and the work is to capture the chain; else its owner moves, to save it.
    `boards[depth + 1:]` is scratch. One kernel plays both sides: see `keima.jit` on recursion.
    """
    before = boards[depth]
    hunted = int(before.stones[prey])
    mover = opponent(hunted) if hunting else hunted
    if not is_legal(before, action, mover, False):
        return False
    if depth >= LADDER_DEPTH:
        return hunting
    if hunting:
        budget[0] -= 1
        if budget[0] < 0:
            return False
    boards[depth + 1] = boards[depth]
    b = boards[depth + 1]
    play(b, action, mover)
    liberties = int(b.liberties[b.head[prey]])
    if not hunting and liberties != 2:
        return liberties > 2
    replies = np.empty(MAX_POINTS, np.int64)
    count = 2
    if hunting:
        count = _answers(b, prey, mover, replies)
    else:
        replies[0] = chain_liberty(b, prey, 0)
        replies[1] = chain_liberty(b, prey, replies[0])
    for i in range(count):  # noqa: SIM110 (no generator expressions in kernels)
        if _succeeds(boards, depth + 1, replies[i], prey, not hunting, budget):
            return False
    return True


@njit
def _answers(b: Record, prey: int, hunter: int, answers: NDArray[np.int64]) -> int:
    """List the moves that may save the chain of the stone `prey`: its liberties, captures beside it; how many."""
    stride = int(b.stride)
    count = 0
    stone = prey
    while True:
        for k in range(4):
            answer = _answer_at(b, neighbour(stone, k, stride), hunter)
            known = answer < 0
            for i in range(count):
                known |= answers[i] == answer
            if not known:
                answers[count] = answer
                count += 1
        stone = int(b.next[stone])
        if stone == prey:
            return count


@njit
def _answer_at(b: Record, adj: int, hunter: int) -> int:
    """The prey's move that a point beside it offers: that liberty, or a capture of hunters in atari; else −1."""
    if b.stones[adj] == EMPTY:
        return adj
    if b.stones[adj] != hunter or b.liberties[b.head[adj]] != 1:
        return -1
    return chain_liberty(b, adj, 0)


@njit
def chain_liberty(b: Record, first: int, skip: int) -> int:
    """A liberty of the chain of the stone `first` that is not the point `skip`; −1 if it has no other."""
    stride = int(b.stride)
    stone = first
    while True:
        for k in range(4):
            adj = neighbour(stone, k, stride)
            if b.stones[adj] == EMPTY and adj != skip:
                return adj
        stone = int(b.next[stone])
        if stone == first:
            return -1


@njit
def _is_ladder_move(boards: Records, loc: int, colour: int, capture: bool) -> bool:
    """Is the legal move `loc` on `boards[0]` a ladder capture (or escape) for any chain beside it?"""
    b = boards[0]
    target = opponent(colour) if capture else colour
    budget = np.zeros(1, np.int64)
    for k in range(4):
        head = chain_beside(b, loc, k, target)
        if head == NULL_LOC or b.liberties[head] != (2 if capture else 1):
            continue
        budget[0] = LADDER_NODES
        adj = neighbour(loc, k, int(b.stride))
        if _succeeds(boards, np.int64(0), loc, adj, bool(capture), budget):  # type: ignore[arg-type]
            return True
    return False


@njit
def _chain_size_after(b: Record, loc: int, colour: int) -> int:
    """How many stones the new stone's chain would have."""
    size = 1
    for k in range(4):
        head = chain_beside(b, loc, k, colour)
        if head != NULL_LOC:
            size += int(b.size[head])
    return size


@njit
def _encode_stone(b: Record, h: Record, loc: int, own: int, planes: NDArray[np.float32], p: int) -> None:
    planes[0 if b.stones[loc] == own else 1, p] = 1.0
    age = int(h.turns) - int(h.placed[loc])
    planes[_TURNS_SINCE + min(max(age, 0), _GROUP - 1), p] = 1.0
    planes[_LIBERTIES + min(int(b.liberties[b.head[loc]]), _GROUP) - 1, p] = 1.0


@njit
def _encode_empty(
    boards: Records, loc: int, own: int, path: NDArray[np.int16], planes: NDArray[np.float32], p: int
) -> None:
    """The planes of an empty point; those about moves only where a move is legal."""
    b = boards[0]
    planes[2, p] = 1.0
    if not is_legal(b, loc, own, False):
        return
    planes[_CAPTURE_SIZE + min(captures_of(b, loc, own), _GROUP - 1), p] = 1.0
    liberties = liberties_after(b, loc, own, _GROUP)
    if liberties == 1:
        planes[_SELF_ATARI + min(_chain_size_after(b, loc, own), _GROUP) - 1, p] = 1.0
    planes[_LIBERTIES_AFTER + liberties - 1, p] = 1.0
    if _is_ladder_move(boards, loc, own, True):
        planes[_LADDER_CAPTURE, p] = 1.0
    if _is_ladder_move(boards, loc, own, False):
        planes[_LADDER_ESCAPE, p] = 1.0
    if not is_true_eye(b, loc, own, path, np.int64(0)):  # type: ignore[arg-type]
        planes[_SENSIBLENESS, p] = 1.0


@njit
def encode_alphago(records: Records, symmetries: NDArray[np.int64], planes: NDArray[np.float32]) -> None:
    """Encode RECORD [N], of one size, under symmetries [N] into float32 [N, 48 or 49, H, W], C-contiguous.

    With 49 planes the last is the player's colour.
    """
    scratch = np.empty(LADDER_DEPTH + 3, BOARD)
    path = np.empty(MAX_POINTS, np.int16)
    locs = np.empty(MAX_POINTS, np.int64)
    rows = planes.reshape((planes.shape[0], planes.shape[1], planes.shape[2] * planes.shape[3]))
    for i in range(len(records)):
        scratch[0] = records[i].board
        b = scratch[0]
        h = records[i].history
        own = int(h.to_play)
        fill_locs(int(b.xsize), int(b.ysize), symmetries[i], locs)
        rows[i] = 0.0
        rows[i, 3] = 1.0
        if planes.shape[1] > _COLOUR and own == BLACK:
            rows[i, _COLOUR] = 1.0
        for p in range(rows.shape[2]):
            if b.stones[locs[p]] == EMPTY:
                _encode_empty(scratch, locs[p], own, path, rows[i], p)
            else:
                _encode_stone(b, h, locs[p], own, rows[i], p)


def sensible_names(position: Any, passes: bool) -> list[str]:
    """The vertices a policy chooses among: legal, no own true eye; "pass" if it `passes`, or where there is none."""
    moves = np.empty(MAX_POINTS, np.int16)
    path = np.empty(MAX_POINTS, np.int16)
    count = sensible_moves(position.board[0], position.history[0], passes, path, moves)
    return [loc_to_vertex(loc, position.xsize, position.ysize) for loc in moves[:count].tolist()]


class AlphaGoEncoding(GoEncoding):
    """AlphaGo's 48 planes, or 49 with the player's colour for the value network (paper, Extended Data Table 2).

    Args:
        planes: 48 or 49.
        pass_move: whether the policy has a pass as its last index (the paper's has none: 361 outputs).
        board_size: take this size only; any size when None.

    Raises:
        ValueError: another number of planes.
    """

    name = "alphago"
    concepts = CONCEPTS

    def __init__(self, planes: int = POLICY_PLANES, pass_move: bool = False, board_size: int | None = None) -> None:
        if planes not in (POLICY_PLANES, VALUE_PLANES):
            raise ValueError(f"AlphaGo has {POLICY_PLANES} or {VALUE_PLANES} planes, not {planes}")
        super().__init__(board_size)
        self.planes = planes
        self.pass_move = pass_move

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """Write the planes."""
        encode_alphago(records, symmetries, batch.inputs["planes"])


ENCODINGS = {"alphago": AlphaGoEncoding()}
