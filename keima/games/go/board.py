"""The Go board as one flat record: stones, chains and their liberties, kept up to date move by move.

A board is one element of a NumPy array of dtype `BOARD`, so copying it is one `memcpy` and a batch of boards is an
array. Points are numbered as in KataGo (`cpp/game/board.h`): a frame of wall surrounds the board and
`loc = (x + 1) + (y + 1) * stride` with `stride = xsize + 1`, row y = 0 at the top. The wall left of a row is the wall
right of the row above, so one column of wall serves both sides.

In every kernel `b` is one record, `boards[i]`; colours are EMPTY, BLACK, WHITE; a point is its `loc`. Kernels trust
their arguments: check at the edge (`keima.games.go.position`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadPosition
from keima.jit import Record, Records, njit

EMPTY = 0
BLACK = 1
WHITE = 2
WALL = 3

MIN_SIZE = 2
MAX_SIZE = 19
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
        ("head", np.int16, (MAX_POINTS,)),  # of a stone: its chain's representative point
        ("next", np.int16, (MAX_POINTS,)),  # of a stone: the next stone of its chain, in a ring
        ("size", np.int16, (MAX_POINTS,)),  # at a chain's head: its number of stones
        ("liberties", np.int16, (MAX_POINTS,)),  # at a chain's head: its number of liberties (distinct points)
    ],
    align=True,
)

_HASH_SEED = np.uint64(0x6B65696D61476F31)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30 = np.uint64(30)
_SHIFT_27 = np.uint64(27)
_SHIFT_31 = np.uint64(31)

_SIZE_FACTS = 2048
_PLAYER_FACTS = 2112
_KO_MARK_FACTS = 4096
"""Where each kind of fact starts among the numbers `zobrist` takes; stones start at 0."""


def new_boards(n: int, xsize: int, ysize: int) -> Records:
    """Make N empty boards.

    Args:
        n: how many.
        xsize: columns, 2–19.
        ysize: rows, 2–19.

    Returns:
        BOARD [n].

    Raises:
        BadPosition: a side is shorter than 2 or longer than 19.
    """
    if not (MIN_SIZE <= xsize <= MAX_SIZE and MIN_SIZE <= ysize <= MAX_SIZE):
        raise BadPosition(f"board {xsize}x{ysize}: sides must be {MIN_SIZE} to {MAX_SIZE}")
    boards = np.zeros(n, dtype=BOARD)
    for i in range(n):
        clear(boards[i], xsize, ysize)
    return boards


@njit
def zobrist(fact: int) -> np.uint64:
    """The 64-bit hash of a fact by its number: splitmix64, so that there is no table to keep."""
    x = _HASH_SEED + np.uint64(fact) * _GOLDEN
    x = (x ^ (x >> _SHIFT_30)) * _MIX_1
    x = (x ^ (x >> _SHIFT_27)) * _MIX_2
    return x ^ (x >> _SHIFT_31)


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
def x_of(loc: int, xsize: int) -> int:
    """The column of a point, 0 is the left."""
    return loc % (xsize + 1) - 1


@njit
def y_of(loc: int, xsize: int) -> int:
    """The row of a point, 0 is the top."""
    return loc // (xsize + 1) - 1


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
def set_stones(b: Record, stones: NDArray[np.int8], xsize: int, ysize: int) -> None:
    """Make `b` the board with these stones ([MAX_POINTS], EMPTY / BLACK / WHITE / WALL): chains, liberties and hash.

    Captures and ko are none. Chains without a liberty stay as they are.
    """
    b.xsize = xsize
    b.ysize = ysize
    b.stride = xsize + 1
    b.ko = NULL_LOC
    b.captures[:] = 0
    copy_points(stones, b.stones)
    rebuild(b)


@njit
def rebuild(b: Record) -> None:
    """Work out chains, liberties and hash again from `b.stones`."""
    xsize = int(b.xsize)
    ysize = int(b.ysize)
    b.hash = size_hash(xsize, ysize)
    b.head[:] = NULL_LOC
    b.next[:] = NULL_LOC
    b.size[:] = 0
    b.liberties[:] = 0
    seen_by = np.zeros(MAX_POINTS, np.int16)  # of an empty point: the last chain that counted it as a liberty
    for y in range(ysize):
        start = loc_of(0, y, xsize)
        for loc in range(start, start + xsize):
            if b.stones[loc] != EMPTY and b.head[loc] == NULL_LOC:
                _gather_chain(b, loc, seen_by)


@njit
def _gather_chain(b: Record, first: int, seen_by: NDArray[np.int16]) -> None:
    """Flood the chain of `first` into a ring, counting stones and liberties and folding it into the hash."""
    stride = int(b.stride)
    colour = int(b.stones[first])
    b.head[first] = first
    b.next[first] = first
    tail = first
    loc = first
    size = 0
    liberties = 0
    while True:
        size += 1
        b.hash ^= stone_hash(loc, colour)
        for k in range(4):
            adj = neighbour(loc, k, stride)
            if b.stones[adj] == EMPTY:
                if seen_by[adj] != first:
                    seen_by[adj] = first
                    liberties += 1
            elif b.stones[adj] == colour and b.head[adj] == NULL_LOC:
                b.head[adj] = first
                b.next[tail] = adj
                b.next[adj] = first
                tail = adj
        loc = int(b.next[loc])
        if loc == first:
            break
    b.size[first] = size
    b.liberties[first] = liberties


@njit
def _touches_chain(b: Record, loc: int, head: int) -> bool:
    """Does a point lie beside the chain with that head?"""
    stride = int(b.stride)
    for k in range(4):
        adj = neighbour(loc, k, stride)
        colour = b.stones[adj]
        if colour in (BLACK, WHITE) and b.head[adj] == head:
            return True
    return False


@njit
def _merge(b: Record, head: int, other: int) -> None:
    """Join two chains of one colour, given by their heads; the larger keeps its head."""
    if b.size[head] < b.size[other]:
        head, other = other, head
    stride = int(b.stride)
    gained = 0
    loc = other
    while True:
        for k in range(4):
            adj = neighbour(loc, k, stride)
            if b.stones[adj] == EMPTY and not _touches_chain(b, adj, head):
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
    stride = int(b.stride)
    colour = int(b.stones[first])
    enemy = opponent(colour)
    count = 0
    loc = first
    while True:
        b.stones[loc] = EMPTY
        b.hash ^= stone_hash(loc, colour)
        count += 1
        up = left = right = NULL_LOC  # heads already given this liberty
        for k in range(4):
            adj = neighbour(loc, k, stride)
            if b.stones[adj] != enemy:
                continue
            head = int(b.head[adj])
            if head in (up, left, right):
                continue
            b.liberties[head] += 1
            if k == 0:
                up = head
            elif k == 1:
                left = head
            else:
                right = head
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
    stride = int(b.stride)
    liberties = 0
    for k in range(4):
        if b.stones[neighbour(loc, k, stride)] == EMPTY:
            liberties += 1
    b.stones[loc] = colour
    b.hash ^= stone_hash(loc, colour)
    b.head[loc] = loc
    b.next[loc] = loc
    b.size[loc] = 1
    b.liberties[loc] = liberties
    enemy = opponent(colour)
    up = left = right = NULL_LOC  # enemy heads that have lost this liberty already
    for k in range(4):
        adj = neighbour(loc, k, stride)
        if b.stones[adj] == enemy:
            head = int(b.head[adj])
            if head in (up, left, right):
                continue
            b.liberties[head] -= 1
            if k == 0:
                up = head
            elif k == 1:
                left = head
            else:
                right = head
        elif b.stones[adj] == colour and b.head[adj] != b.head[loc]:
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

    A ko arises where one stone was taken by one stone left with one liberty (KataGo
    `Board::playMoveAssumeLegal`).
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
def is_ko_banned(b: Record, loc: int) -> bool:
    """Does the simple ko rule forbid this point to the side to move?"""
    return bool(loc == b.ko)


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
    return loc == PASS_LOC or (not is_ko_banned(b, loc) and is_legal_ignoring_ko(b, loc, colour, suicide_allowed))


@njit
def ko_capture(b: Record, loc: int, colour: int) -> int:
    """The one enemy stone a move on `loc` would take in the shape of a ko, else NULL_LOC.

    All neighbours are enemy or wall, just one of them stands in atari, and it is a single stone (KataGo
    `Board::getKoCaptureLoc`).
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
    stride = int(b.stride)
    result = np.uint64(0)
    up = left = right = NULL_LOC
    for k in range(4):
        adj = neighbour(loc, k, stride)
        if b.stones[adj] != colour:
            continue
        head = int(b.head[adj])
        if b.liberties[head] != 1 or head in (up, left, right):
            continue
        if k == 0:
            up = head
        elif k == 1:
            left = head
        else:
            right = head
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
    stride = int(b.stride)
    enemy = opponent(colour)
    count = 0
    up = left = right = NULL_LOC
    for k in range(4):
        adj = neighbour(loc, k, stride)
        if b.stones[adj] != enemy:
            continue
        head = int(b.head[adj])
        if b.liberties[head] != 1 or head in (up, left, right):
            continue
        count += int(b.size[head])
        if k == 0:
            up = head
        elif k == 1:
            left = head
        else:
            right = head
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
    if count == found.shape[0]:
        return count
    for i in range(count):
        if found[i] == loc:
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
            if b.liberties[head] == 1 and _touches_chain(b, loc, head):
                count = _add_point(found, count, adj)
    return count
