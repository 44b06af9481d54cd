"""The Go board as one flat record: stones, chains and their liberties, kept up to date move by move.

A board is one element of a NumPy array of dtype `BOARD`, so copying it is one `memcpy` and a batch of boards is an
array. Points are numbered as in KataGo (`cpp/game/board.h`): a frame of wall surrounds the board and
`loc = (x + 1) + (y + 1) * stride` with `stride = xsize + 1`, row y = 0 at the top. The wall left of a row is the wall
right of the row above, so one column of wall serves both sides.

In every kernel `b` is one record, `boards[i]`; colours are EMPTY, BLACK, WHITE; a point is its `loc`. Kernels trust
their arguments: check at the edge (`keima.games.go.position`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadPosition
from keima.games.kernels import GOLDEN, mix
from keima.jit import Record, Records, njit

EMPTY, BLACK, WHITE, WALL = 0, 1, 2, 3
MIN_SIZE, MAX_SIZE = 2, 19
MAX_POINTS = (MAX_SIZE + 1) * (MAX_SIZE + 2) + 1
"""Length of every per-point array of a board of any size: 421."""

NULL_LOC = 0
"""No point at all (KataGo `Board::NULL_LOC`)."""
PASS_LOC = 1
"""The pass, as a move (KataGo `Board::PASS_LOC`)."""

BOARD = np.dtype(
    [
        ("xsize", np.int32),
        ("ysize", np.int32),
        ("stride", np.int32),  # xsize + 1: the step from a point to the one below it
        ("ko", np.int32),  # the point the simple ko rule forbids to the side to move, or NULL_LOC
        ("captures", np.int32, (3,)),  # stones of BLACK / WHITE taken off the board so far, by colour
        ("hash", np.uint64),  # Zobrist hash of size and stones
        ("stones", np.int8, (MAX_POINTS,)),  # EMPTY, BLACK, WHITE or WALL
        ("head", np.int16, (MAX_POINTS,)),  # of a stone: its chain's representative point; else NULL_LOC
        ("next", np.int16, (MAX_POINTS,)),  # of a stone: the next stone of its chain, in a ring
        ("size", np.int16, (MAX_POINTS,)),  # at a chain's head: its number of stones
        ("liberties", np.int16, (MAX_POINTS,)),  # at a chain's head: its number of liberties (distinct points)
    ],
    align=True,
)

_HASH_SEED = np.uint64(0x6B65696D61476F31)
_SIZE_FACTS, _PLAYER_FACTS, _KO_MARK_FACTS = 2048, 2112, 4096
"""Where each kind of fact starts among the numbers `zobrist` takes; stones start at 0."""


def new_boards(n: int, xsize: int, ysize: int) -> Records:
    """N empty boards, BOARD [n]. Raises `BadPosition`: a side is shorter than 2 or longer than 19."""
    if not (MIN_SIZE <= xsize <= MAX_SIZE and MIN_SIZE <= ysize <= MAX_SIZE):
        raise BadPosition(f"board {xsize}x{ysize}: sides must be {MIN_SIZE} to {MAX_SIZE}")
    boards = np.zeros(n, dtype=BOARD)
    for i in range(n):
        clear(boards[i], xsize, ysize)
    return boards


@njit
def zobrist(fact: int) -> np.uint64:
    """The 64-bit hash of a fact by its number: splitmix64, so that there is no table to keep."""
    return mix(_HASH_SEED + np.uint64(fact) * GOLDEN)


@njit
def stone_hash(loc: int, colour: int) -> np.uint64:
    """What a stone on a point adds to (by xor) a board's hash."""
    return zobrist(int(loc) * 4 + int(colour))


@njit
def size_hash(xsize: int, ysize: int) -> np.uint64:
    """The hash of an empty board."""
    return zobrist(_SIZE_FACTS + int(xsize)) ^ zobrist(_SIZE_FACTS + 32 + int(ysize))


@njit
def player_hash(colour: int) -> np.uint64:
    """What the side to move adds to the hash of a situation."""
    return zobrist(_PLAYER_FACTS + int(colour))


@njit
def ko_mark_hash(loc: int) -> np.uint64:
    """What a point marked in an encore ("ko recapture blocked") adds to the hash of a situation."""
    return zobrist(_KO_MARK_FACTS + int(loc))


@njit
def opponent(colour: int) -> int:
    """WHITE for BLACK, BLACK for WHITE."""
    return 3 - colour


@njit
def loc_of(x: int, y: int, xsize: int) -> int:
    """The point of column x (0 is the left) and row y (0 is the top)."""
    return (x + 1) + (y + 1) * (xsize + 1)


@njit
def points_of(b: Record) -> range:
    """The points from the top left to the bottom right, and the WALL between rows; outside the board nothing is."""
    return range(int(b.stride) + 1, (int(b.ysize) + 1) * int(b.stride))


@njit
def neighbour(loc: int, k: int, stride: int) -> int:
    """The point above (k = 0), left (1), right (2) or below (3) of a point, in KataGo's order."""
    if k == 0:
        return loc - stride
    if k == 1:
        return loc - 1
    if k == 2:
        return loc + 1
    return loc + stride


@njit
def clear(b: Record, xsize: int, ysize: int) -> None:
    """Make `b` an empty board of that size."""
    b.xsize = xsize
    b.ysize = ysize
    b.stride = xsize + 1
    b.ko = NULL_LOC
    b.captures[:] = 0
    b.hash = size_hash(xsize, ysize)
    b.stones[:] = WALL
    b.head[:] = NULL_LOC
    b.next[:] = NULL_LOC
    b.size[:] = 0
    b.liberties[:] = 0
    for y in range(ysize):
        start = loc_of(0, y, xsize)
        for x in range(xsize):
            b.stones[start + x] = EMPTY


@njit
def copy_points(source: NDArray[np.int8], target: NDArray[np.int8]) -> None:
    """`target[:] = source` for rows of MAX_POINTS. (Numba would compile with it how to print an error.)"""
    for loc in range(MAX_POINTS):
        target[loc] = source[loc]


@njit
def empty_around(b: Record, loc: int) -> int:
    """How many of the four neighbours of a point are empty."""
    stones, stride = b.stones, int(b.stride)
    return (
        int(stones[loc - stride] == EMPTY)
        + int(stones[loc - 1] == EMPTY)
        + int(stones[loc + 1] == EMPTY)
        + int(stones[loc + stride] == EMPTY)
    )


@njit
def touches_chain(b: Record, loc: int, colour: int, head: int) -> bool:
    """Is a point beside the chain of `colour` with that head?"""
    stride = b.stride
    return bool(
        (b.stones[loc - stride] == colour and b.head[loc - stride] == head)
        or (b.stones[loc - 1] == colour and b.head[loc - 1] == head)
        or (b.stones[loc + 1] == colour and b.head[loc + 1] == head)
        or (b.stones[loc + stride] == colour and b.head[loc + stride] == head)
    )


@njit
def chain_beside(b: Record, loc: int, k: int, colour: int) -> int:
    """The head of the chain of `colour` at neighbour `k`; NULL_LOC if none is, or it was at an earlier neighbour."""
    stride = int(b.stride)
    adj = neighbour(loc, k, stride)
    if b.stones[adj] != colour:
        return NULL_LOC
    head = int(b.head[adj])
    for earlier in range(k):
        if b.head[neighbour(loc, earlier, stride)] == head:
            return NULL_LOC
    return head


@njit
def contains(found: NDArray[Any], count: int, wanted: Any) -> bool:
    """Is it among the first `count` of these?"""
    for i in range(count):  # noqa: SIM110 (no generator expressions in kernels)
        if found[i] == wanted:
            return True
    return False


@njit
def _merge(b: Record, head: int, other: int) -> None:
    """Join two chains of one colour, given by their heads; the larger keeps its head."""
    if b.size[head] < b.size[other]:
        head, other = other, head
    stride, colour = int(b.stride), int(b.stones[head])
    gained = 0
    loc = other
    while True:
        for k in range(4):
            adj = neighbour(loc, k, stride)
            if b.stones[adj] == EMPTY and not touches_chain(b, adj, colour, head):
                gained += 1
        b.head[loc] = head
        loc = int(b.next[loc])
        if loc == other:
            break
    b.next[head], b.next[other] = b.next[other], b.next[head]
    b.size[head] += b.size[other]
    b.liberties[head] += gained


@njit
def _remove_chain(b: Record, first: int) -> int:
    """Take the chain of a stone off the board, give its neighbours their liberties; how many stones it had."""
    colour = int(b.stones[first])
    count = 0
    loc = first
    while True:
        b.stones[loc] = EMPTY
        b.hash ^= stone_hash(loc, colour)
        count += 1
        for k in range(4):
            head = chain_beside(b, loc, k, opponent(colour))
            if head != NULL_LOC:
                b.liberties[head] += 1
        following = int(b.next[loc])
        b.head[loc] = NULL_LOC
        b.next[loc] = NULL_LOC
        loc = following
        if loc == first:
            break
    b.captures[colour] += count
    return count


@njit
def _put(b: Record, loc: int, colour: int) -> None:
    """Put a stone on an empty point: take its liberty from all neighbours, join it to its own colour's chains."""
    b.stones[loc] = colour
    b.hash ^= stone_hash(loc, colour)
    b.head[loc] = loc
    b.next[loc] = loc
    b.size[loc] = 1
    b.liberties[loc] = empty_around(b, loc)
    for k in range(4):
        head = chain_beside(b, loc, k, opponent(colour))
        if head != NULL_LOC:
            b.liberties[head] -= 1
        adj = neighbour(loc, k, int(b.stride))
        if b.stones[adj] == colour and b.head[adj] != b.head[loc]:
            b.liberties[b.head[adj]] -= 1
            _merge(b, int(b.head[adj]), int(b.head[loc]))


@njit
def place(b: Record, loc: int, colour: int) -> None:
    """Set up a stone on an empty point; nothing is captured, the ko is cleared."""
    _put(b, loc, colour)
    b.ko = NULL_LOC


@njit
def play(b: Record, loc: int, colour: int) -> None:
    """Play a move assumed legal (an empty point, or PASS_LOC): captures, suicide, and the simple ko point.

    A ko arises where one stone was taken by one stone left with one liberty (KataGo `Board::playMoveAssumeLegal`).
    """
    b.ko = NULL_LOC
    if loc == PASS_LOC:
        return
    stride = int(b.stride)
    enemy = opponent(colour)
    _put(b, loc, colour)
    captured = 0
    last_captured = NULL_LOC
    for k in range(4):
        adj = neighbour(loc, k, stride)
        if b.stones[adj] == enemy and b.liberties[b.head[adj]] == 0:
            captured += _remove_chain(b, adj)
            last_captured = adj
    head = int(b.head[loc])
    if captured == 1 and b.size[head] == 1 and b.liberties[head] == 1:
        b.ko = last_captured
    if b.liberties[head] == 0:
        _remove_chain(b, loc)


@njit
def is_suicide(b: Record, loc: int, colour: int) -> bool:
    """Would a stone on this empty point leave its own chain without a liberty, be it one stone or many?"""
    stride = int(b.stride)
    for k in range(4):
        adj = neighbour(loc, k, stride)
        stone = b.stones[adj]
        if stone == EMPTY:
            return False
        if stone != WALL and (stone == colour) == (b.liberties[b.head[adj]] > 1):
            return False
    return True


@njit
def is_illegal_suicide(b: Record, loc: int, colour: int, suicide_allowed: bool) -> bool:
    """Is it a suicide the rules forbid? Of one stone always; of a chain unless `suicide_allowed`."""
    if not is_suicide(b, loc, colour):
        return False
    if not suicide_allowed:
        return True
    stride = int(b.stride)
    for k in range(4):  # noqa: SIM110 (no generator expressions in kernels)
        if b.stones[neighbour(loc, k, stride)] == colour:
            return False
    return True


@njit
def is_legal_ignoring_ko(b: Record, loc: int, colour: int, suicide_allowed: bool) -> bool:
    """Is a move legal by stones and suicide alone? PASS_LOC always is."""
    if loc == PASS_LOC:
        return True
    if loc < 0 or loc >= MAX_POINTS or b.stones[loc] != EMPTY:
        return False
    return not is_illegal_suicide(b, loc, colour, suicide_allowed)


@njit
def is_legal(b: Record, loc: int, colour: int, suicide_allowed: bool) -> bool:
    """Is a move legal by stones, simple ko and suicide (not superko)? PASS_LOC always is."""
    return bool(loc == PASS_LOC or (loc != b.ko and is_legal_ignoring_ko(b, loc, colour, suicide_allowed)))


@njit
def ko_capture(b: Record, loc: int, colour: int) -> int:
    """The one enemy stone a move on `loc` would take in the shape of a ko, else NULL_LOC.

    All neighbours are enemy or wall, just one is in atari, and it is a single stone (KataGo `Board::getKoCaptureLoc`).
    """
    if b.stones[loc] != EMPTY:
        return NULL_LOC
    stride = int(b.stride)
    enemy = opponent(colour)
    found = NULL_LOC
    for k in range(4):
        adj = neighbour(loc, k, stride)
        if b.stones[adj] == WALL:
            continue
        if b.stones[adj] != enemy:
            return NULL_LOC
        if b.liberties[b.head[adj]] == 1:
            if found != NULL_LOC:
                return NULL_LOC
            found = adj
    if found == NULL_LOC or b.size[b.head[found]] != 1:
        return NULL_LOC
    return found


@njit
def hash_after(b: Record, loc: int, colour: int) -> np.uint64:
    """The `hash` the board would have after a move, without making it."""
    if loc == PASS_LOC:
        return np.uint64(b.hash)
    enemy = opponent(colour)
    taken = _hash_in_atari(b, loc, enemy)
    if taken == np.uint64(0) and is_suicide(b, loc, colour):
        return np.uint64(b.hash ^ _hash_in_atari(b, loc, colour))
    return np.uint64(b.hash ^ taken ^ stone_hash(loc, colour))


@njit
def _hash_in_atari(b: Record, loc: int, colour: int) -> np.uint64:
    """The hash of all stones of the chains of one colour beside `loc` that have no liberty but it."""
    result = np.uint64(0)
    for k in range(4):
        head = chain_beside(b, loc, k, colour)
        if head == NULL_LOC or b.liberties[head] != 1:
            continue
        stone = head
        while True:
            result ^= stone_hash(stone, colour)
            stone = int(b.next[stone])
            if stone == head:
                break
    return result


@njit
def captures_of(b: Record, loc: int, colour: int) -> int:
    """How many enemy stones a move would take."""
    count = 0
    for k in range(4):
        head = chain_beside(b, loc, k, opponent(colour))
        if head != NULL_LOC and b.liberties[head] == 1:
            count += int(b.size[head])
    return count


@njit
def liberties_after(b: Record, loc: int, colour: int, cap: int) -> int:
    """How many liberties the new stone's chain would have after a move on an empty point, counted up to `cap`.

    0 for a suicide (KataGo `Board::getNumLibertiesAfterPlay`).
    """
    stride = int(b.stride)
    enemy = opponent(colour)
    found = np.empty(cap, np.int16)
    count = 0
    for k in range(4):  # its own liberties, and the points of single stones it takes
        adj = neighbour(loc, k, stride)
        if b.stones[adj] == EMPTY or (b.stones[adj] == enemy and b.liberties[b.head[adj]] == 1):
            count = _add_point(found, count, adj)
    for k in range(4):
        adj = neighbour(loc, k, stride)
        if b.stones[adj] != colour:
            continue
        stone = adj
        while count < cap:
            count = _add_liberties_beside(b, stone, loc, enemy, found, count)
            stone = int(b.next[stone])
            if stone == adj:
                break
    return count


@njit
def _add_point(found: NDArray[np.int16], count: int, loc: int) -> int:
    """Append a point unless it is there or the list is full; the new length."""
    if count == found.shape[0] or contains(found, count, loc):
        return count
    found[count] = loc
    return count + 1


@njit
def _add_liberties_beside(b: Record, stone: int, loc: int, enemy: int, found: NDArray[np.int16], count: int) -> int:
    """Append the points beside `stone` that will be empty once `loc` is played; the new length."""
    stride = int(b.stride)
    for k in range(4):
        adj = neighbour(stone, k, stride)
        if adj == loc:
            continue
        if b.stones[adj] == EMPTY:
            count = _add_point(found, count, adj)
        elif b.stones[adj] == enemy:
            head = int(b.head[adj])
            if b.liberties[head] == 1 and touches_chain(b, loc, enemy, head):
                count = _add_point(found, count, adj)
    return count
