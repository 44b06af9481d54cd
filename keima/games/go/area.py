"""Whose point is it: pass-alive stones and territory (Benson), area for scoring, and life without seki.

Benson's algorithm (D. Benson, "Life in the Game of Go", 1976): a chain is *pass-alive* when it cannot be captured even
if its owner always passes. Take the regions, that is the maximal connected sets of points that do not hold the
owner's stones. A region is *vital* to a chain when every empty point of it is a liberty of that chain. Chains with
fewer than two vital regions are struck out, regions that touch a struck chain are vital to nobody any more, and so on
until nothing changes; what remains is alive.

The meaning of every argument and result is that of KataGo's `Board::calculateArea` and
`Board::calculateIndependentLifeArea` (`cpp/game/board.cpp`), whose answers feed its scoring and its input planes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import BLACK, EMPTY, MAX_POINTS, MAX_SIZE, WALL, WHITE, points_of, touches_chain
from keima.jit import Record, njit

MAX_RUNS = MAX_SIZE * (MAX_SIZE // 2 + 1)
"""A run is a row's unbroken stretch of points; a row of 19 has ten at most."""
MAX_REGIONS = MAX_SIZE * MAX_SIZE // 2 + 2
"""No two regions touch, and each holds an empty point: at most every second point of the board starts one."""

_NO_REGION = -1
_NOT_KNOWN = -1

_ONE = np.uint64(1)
_BITS = np.uint64(37)
_INDEX_OF_BIT = np.zeros(37, np.int64)  # 2 is a primitive root of 37: every power of two leaves another remainder
for _bit in range(36):
    _INDEX_OF_BIT[2**_bit % 37] = _bit

_REGIONS = np.dtype(
    [
        # The board as rows of bits, bit x for column x; row y stands at y + 1 between two rows of nothing.
        ("black", np.uint64, (MAX_SIZE + 2,)),
        ("white", np.uint64, (MAX_SIZE + 2,)),
        # The runs of the points in question, row by row from the top.
        ("runs", np.int32),
        ("run_loc", np.int16, (MAX_RUNS,)),  # the leftmost point
        ("run_length", np.int16, (MAX_RUNS,)),
        ("run_row", np.int16, (MAX_RUNS,)),  # y + 1
        ("run_bits", np.uint64, (MAX_RUNS,)),
        ("run_parent", np.int16, (MAX_RUNS,)),  # an earlier run it is connected to, or itself
        ("run_region", np.int16, (MAX_RUNS,)),
        # The regions: connected runs.
        ("count", np.int32),
        ("region_of", np.int16, (MAX_POINTS,)),  # of each point: its region, or _NO_REGION
        ("vital_to", np.int16, (MAX_REGIONS, 4)),  # the heads of the chains a region is vital to ...
        ("vital_len", np.int16, (MAX_REGIONS,)),  # ... and how many they are; _NOT_KNOWN before its first point
        ("colours", np.int8, (MAX_REGIONS,)),  # of a set of empty points: the colours it touches, BLACK + WHITE
        ("inner", np.int16, (MAX_REGIONS,)),  # points that touch none of the owner's stones, counted up to 2
        ("has_opponent", np.int8, (MAX_REGIONS,)),  # 1 where the region holds stones of the other colour
        ("broken", np.int8, (MAX_REGIONS,)),  # 1 where it touches a chain that is not pass-alive
        # The owner's chains.
        ("heads", np.int16, (MAX_POINTS,)),
        ("struck", np.int8, (MAX_POINTS,)),  # 1 where heads[i] has been struck out
        ("vital_count", np.int16, (MAX_POINTS,)),  # at a head: how many unbroken regions are vital to its chain
    ],
    align=True,
)
"""Working memory: the regions of one colour, "the owner", or the connected sets of empty points."""


@njit
def wide(value: int) -> int:
    """Any whole number as int64, so that kernels are compiled for one type of point only."""
    return np.int64(value)  # type: ignore[return-value]  # a kernel's whole numbers are `int` to readers


@njit
def _heads_around(b: Record, r: Record, index: int, loc: int, colour: int) -> int:
    """Make region `index` vital to every chain around `loc`, of one colour or (EMPTY) of both; returns how many."""
    stride = wide(b.stride)
    found = 0
    for step in (-stride, -1, 1, stride):
        stone = b.stones[loc + step]
        if stone == colour or (colour == EMPTY and stone in (BLACK, WHITE)):
            head = b.head[loc + step]
            known = False
            for i in range(found):
                known = known or r.vital_to[index, i] == head
            if not known:
                r.vital_to[index, found] = head
                found += 1
    return found


@njit
def _keep_vital(b: Record, r: Record, index: int, loc: int, count: int) -> int:
    """Of the `count` chains region `index` is vital to, keep those that touch `loc`; returns how many they are."""
    kept = 0
    for i in range(count):
        head = wide(r.vital_to[index, i])
        if touches_chain(b, loc, wide(b.stones[head]), head):
            r.vital_to[index, kept] = head
            kept += 1
    return kept


@njit
def _read_rows(b: Record, r: Record) -> np.uint64:
    """Write the stones as rows of bits; returns a full row."""
    r.black[0] = r.white[0] = 0
    for y in range(1, b.ysize + 1):
        row = wide(y) * b.stride + 1
        black = white = np.uint64(0)
        bit = _ONE
        for loc in range(row, row + b.xsize):
            stone = b.stones[loc]
            black |= bit * np.uint64(stone == BLACK)
            white |= bit * np.uint64(stone == WHITE)
            bit <<= _ONE
        r.black[y] = black
        r.white[y] = white
    r.black[b.ysize + 1] = r.white[b.ysize + 1] = 0
    return (_ONE << np.uint64(b.xsize)) - _ONE


@njit
def _index_of(bit: np.uint64) -> int:
    """The exponent of a power of two below 2^36."""
    return int(_INDEX_OF_BIT[bit % _BITS])


@njit
def _root(r: Record, run: int) -> int:
    """The first run of those `run` is known to be connected to."""
    while r.run_parent[run] != run:
        run = wide(r.run_parent[run])
    return run


@njit
def _find_runs(b: Record, r: Record, full: np.uint64, colour: int) -> None:
    """Find the connected sets of points without stones of `colour` (EMPTY: of either colour), as numbered regions."""
    count = 0
    above = 0  # the first run of the row above
    for y in range(1, b.ysize + 1):
        first = count
        left = full
        if colour != WHITE:
            left &= ~r.black[y]
        if colour != BLACK:
            left &= ~r.white[y]
        while left != np.uint64(0):
            low = left & (~left + _ONE)
            carried = left + low  # the carry runs through the lowest run of ones
            bits = left & ~carried
            left &= carried
            x = _index_of(low)
            r.run_loc[count] = wide(y) * b.stride + 1 + x
            r.run_length[count] = _index_of(bits + low) - x
            r.run_row[count] = y
            r.run_bits[count] = bits
            r.run_parent[count] = count
            for other in range(above, first):
                if r.run_bits[other] & bits != np.uint64(0):
                    one, two = _root(r, other), _root(r, count)
                    r.run_parent[max(one, two)] = min(one, two)
            count += 1
        above = first
    r.runs = count
    _number_regions(r)


@njit
def _number_regions(r: Record) -> None:
    """Give each set of connected runs a number, and its points and facts a fresh start."""
    regions = 0
    r.region_of[:] = _NO_REGION
    for run in range(r.runs):
        if r.run_parent[run] == run:
            index = regions
            regions += 1
            r.vital_len[index] = _NOT_KNOWN
            r.colours[index] = 0
            r.inner[index] = 0
            r.has_opponent[index] = 0
            r.broken[index] = 0
        else:
            index = wide(r.run_region[r.run_parent[run]])
        r.run_region[run] = index
        start = wide(r.run_loc[run])
        for loc in range(start, start + r.run_length[run]):
            r.region_of[loc] = index
    r.count = regions


@njit
def _touching(bits: np.uint64, stones: NDArray[np.uint64], y: int) -> np.uint64:
    """Those points of row y (as bits) that have a neighbour among `stones` (rows of bits)."""
    beside = (stones[y] << _ONE) | (stones[y] >> _ONE) | stones[y - 1] | stones[y + 1]
    return np.uint64(bits & beside)


@njit
def _narrow_vital(b: Record, r: Record, run: int, bits: np.uint64, colour: int) -> None:
    """Keep the chains that touch all of these points of a run: a region is vital only to those."""
    index = wide(r.run_region[run])
    vital = wide(r.vital_len[index])
    first = _index_of(r.run_bits[run] & (~r.run_bits[run] + _ONE))
    while bits != np.uint64(0) and vital != 0:
        low = bits & (~bits + _ONE)
        bits ^= low
        loc = wide(r.run_loc[run]) + _index_of(low) - first
        if vital == _NOT_KNOWN:
            vital = _heads_around(b, r, index, loc, colour)
        else:
            vital = _keep_vital(b, r, index, loc, vital)
    r.vital_len[index] = vital


@njit
def _find_regions(b: Record, r: Record, full: np.uint64, colour: int, suicide_legal: bool) -> None:
    """Fill `r` with the regions of `colour` and what there is to know about them."""
    _find_runs(b, r, full, colour)
    own = r.black if colour == BLACK else r.white
    other = r.white if colour == BLACK else r.black
    for run in range(r.runs):
        index, y, bits = r.run_region[run], wide(r.run_row[run]), r.run_bits[run]
        opponents = bits & other[y]
        if opponents != np.uint64(0):
            r.has_opponent[index] = 1
        out_of_reach = bits & ~_touching(bits, own, y)
        while out_of_reach != np.uint64(0) and r.inner[index] < 2:
            out_of_reach &= out_of_reach - _ONE
            r.inner[index] += 1
        if r.vital_len[index] != 0:
            _narrow_vital(b, r, run, bits if suicide_legal else bits & ~opponents, colour)


@njit
def _find_chains(b: Record, r: Record, colour: int) -> int:
    """List the chains of `colour`; returns how many there are."""
    chains = 0
    rows = r.black if colour == BLACK else r.white
    for y in range(1, b.ysize + 1):
        row = wide(y) * b.stride + 1
        bits = rows[y]
        while bits != np.uint64(0):
            low = bits & (~bits + _ONE)
            bits ^= low
            loc = row + _index_of(low)
            if b.head[loc] == loc:
                r.heads[chains] = loc
                r.struck[chains] = 0
                r.vital_count[loc] = 0
                chains += 1
    return chains


@njit
def _strike(b: Record, r: Record, head: int) -> None:
    """The chain is not pass-alive: every region it touches stops counting for the chains it was vital to."""
    stride = wide(b.stride)
    loc = head
    while True:
        for step in (-stride, -1, 1, stride):
            index = r.region_of[loc + step]
            if index != _NO_REGION and r.broken[index] == 0:
                r.broken[index] = 1
                for i in range(r.vital_len[index]):
                    r.vital_count[r.vital_to[index, i]] -= 1
        loc = b.next[loc]
        if loc == head:
            return


@njit
def _strike_until_stable(b: Record, r: Record, chains: int) -> None:
    """Benson's iteration: strike chains with fewer than two vital regions until none is left to strike."""
    for index in range(r.count):
        for i in range(r.vital_len[index]):
            r.vital_count[r.vital_to[index, i]] += 1
    changed = True
    while changed:
        changed = False
        for i in range(chains):
            if r.struck[i] == 0 and r.vital_count[r.heads[i]] < 2:
                r.struck[i] = 1
                changed = True
                _strike(b, r, r.heads[i])


@njit
def _mark_alive_chains(b: Record, r: Record, chains: int, colour: int, result: NDArray[np.int8]) -> None:
    for i in range(chains):
        if r.struck[i] == 0:
            head = r.heads[i]
            loc = head
            while True:
                result[loc] = colour
                loc = b.next[loc]
                if loc == head:
                    break


@njit
def _give(r: Record, run: int, colour: int, result: NDArray[np.int8]) -> None:
    start = wide(r.run_loc[run])
    for loc in range(start, start + r.run_length[run]):
        result[loc] = colour


@njit
def _claim_empty_regions(
    b: Record, r: Record, full: np.uint64, unsafe_big_territories: bool, result: NDArray[np.int8]
) -> int:
    """Find the connected sets of empty points; give those that touch one colour only to it, if asked.

    Returns the colours that may have pass-alive chains, BLACK + WHITE added up. A region vital to a chain holds an
    empty set all of whose points are the chain's liberties; a colour none of whose chains has two such sets has none.
    """
    _find_runs(b, r, full, EMPTY)
    for run in range(r.runs):
        index, y, bits = r.run_region[run], wide(r.run_row[run]), r.run_bits[run]
        if _touching(bits, r.black, y) != np.uint64(0):
            r.colours[index] |= BLACK
        if _touching(bits, r.white, y) != np.uint64(0):
            r.colours[index] |= WHITE
        if r.vital_len[index] != 0:
            _narrow_vital(b, r, run, bits, EMPTY)
    if unsafe_big_territories:
        for run in range(r.runs):
            colour = r.colours[r.run_region[run]]
            if colour in (BLACK, WHITE):
                _give(r, run, colour, result)
    return _may_live(b, r)


@njit
def _may_live(b: Record, r: Record) -> int:
    """The colours of the chains to which two or more sets of empty points are vital, BLACK + WHITE added up."""
    r.vital_count[:] = 0
    colours = 0
    for index in range(r.count):
        for i in range(r.vital_len[index]):
            head = wide(r.vital_to[index, i])
            r.vital_count[head] += 1
            if r.vital_count[head] == 2:
                colours |= wide(b.stones[head])
    return colours


@njit
def _mark_pass_alive(
    b: Record,
    r: Record,
    full: np.uint64,
    colour: int,
    safe_big_territories: bool,
    suicide_legal: bool,
    result: NDArray[np.int8],
) -> None:
    """Mark pass-alive stones and territory of one colour, and its safe big territories if asked."""
    _find_regions(b, r, full, colour, suicide_legal)
    chains = _find_chains(b, r, colour)
    _strike_until_stable(b, r, chains)
    _mark_alive_chains(b, r, chains, colour, result)
    for run in range(r.runs):
        index = r.run_region[run]
        # The opponent cannot live inside: at most one point is out of the chains' reach, or nothing of theirs is there.
        if r.broken[index] == 0 and (r.inner[index] <= 1 or (safe_big_territories and r.has_opponent[index] == 0)):
            _give(r, run, colour, result)


@njit
def _add_remaining_stones(b: Record, area: NDArray[np.int8]) -> None:
    """Give every stone on a point nobody owns yet its own point."""
    for loc in points_of(b):
        if area[loc] == EMPTY and b.stones[loc] != WALL:
            area[loc] = b.stones[loc]


@njit
def calculate_area(
    b: Record,
    result: NDArray[np.int8],
    non_pass_alive_stones: bool,
    safe_big_territories: bool,
    unsafe_big_territories: bool,
    multi_stone_suicide_legal: bool,
) -> None:
    """Write the owner of every point (KataGo `Board::calculateArea`).

    Pass-alive stones and the territory they enclose (with the dead stones in it) are always marked.

    Args:
        b: one BOARD record.
        result: int8 [MAX_POINTS], written.
        non_pass_alive_stones: mark also all other stones as their own.
        safe_big_territories: mark also empty regions of any size that touch only pass-alive stones of one colour.
        unsafe_big_territories: mark also empty regions that touch only one colour, pass-alive or not, except points
            inside the other colour's pass-alive territory.
        multi_stone_suicide_legal: then a region is vital only if the opponent's stones in it touch the chain as well.
    """
    work = np.empty(1, _REGIONS)
    result[:] = EMPTY
    full = _read_rows(b, work[0])
    may_live = _claim_empty_regions(b, work[0], full, unsafe_big_territories, result)
    for colour in (BLACK, WHITE):
        if may_live & colour:  # what is settled overrides what was claimed
            _mark_pass_alive(b, work[0], full, colour, safe_big_territories, multi_stone_suicide_legal, result)
    if non_pass_alive_stones:
        _add_remaining_stones(b, result)


@njit
def _spread(
    b: Record, start: int, area: NDArray[np.int8], marks: NDArray[np.int8], mark: int, queue: NDArray[np.int16]
) -> None:
    """Put `mark` on `start` and on all points of the same owner connected to it that do not have it yet."""
    stride = wide(b.stride)
    owner = area[start]
    marks[start] = mark
    queue[0] = start
    done, end = 0, 1
    while done < end:
        loc = queue[done]
        done += 1
        for step in (-stride, -1, 1, stride):
            near = loc + step
            if area[near] == owner and marks[near] != mark:
                marks[near] = mark
                queue[end] = near
                end += 1


@njit
def _is_in_seki(b: Record, loc: int, area: NDArray[np.int8]) -> bool:
    """Does this owned point show that its area lives in seki: its own stone in atari, or a dame next to it?"""
    stones, stride = b.stones, b.stride
    return bool(
        (stones[loc] == area[loc] and b.liberties[b.head[loc]] == 1)
        or (stones[loc - stride] == EMPTY and area[loc - stride] == EMPTY)
        or (stones[loc - 1] == EMPTY and area[loc - 1] == EMPTY)
        or (stones[loc + 1] == EMPTY and area[loc + 1] == EMPTY)
        or (stones[loc + stride] == EMPTY and area[loc + stride] == EMPTY)
    )


@njit
def _mark_independent_life(b: Record, area: NDArray[np.int8], result: NDArray[np.int8]) -> int:
    """Copy the connected areas that are not in seki from `area` to `result`; returns white's minus black's number."""
    seki = np.zeros(MAX_POINTS, np.int8)
    queue = np.empty(MAX_POINTS, np.int16)
    for loc in points_of(b):
        if area[loc] != EMPTY and seki[loc] == 0 and _is_in_seki(b, loc, area):
            _spread(b, loc, area, seki, 1, queue)
    white_minus_black = 0
    for loc in points_of(b):
        owner = area[loc]
        if owner != EMPTY and seki[loc] == 0 and result[loc] != owner:
            white_minus_black += 1 if owner == WHITE else -1
            _spread(b, loc, area, result, owner, queue)
    return white_minus_black


@njit
def independent_life_area(
    b: Record, result: NDArray[np.int8], keep_territories: bool, keep_stones: bool, multi_stone_suicide_legal: bool
) -> int:
    """Write the owner of every point that belongs to an area alive without seki, for rules that tax seki or groups.

    An area is a connected set of points one colour owns by `calculate_area` with everything marked. It is in seki when
    one of its stones is in atari or one of its points touches an empty point that nobody owns (KataGo
    `Board::calculateIndependentLifeArea`).

    Args:
        b, result, multi_stone_suicide_legal: as in `calculate_area`.
        keep_territories: keep owned points that do not hold their owner's stone even in seki.
        keep_stones: keep stones on points their colour owns even in seki.

    Returns:
        How many more such areas White has than Black; a group tax takes two points for each.
    """
    area = np.empty(MAX_POINTS, np.int8)
    calculate_area(b, area, True, True, True, multi_stone_suicide_legal)
    result[:] = EMPTY
    white_minus_black = _mark_independent_life(b, area, result)
    for loc in points_of(b):
        owner = area[loc]
        if owner != EMPTY and (keep_stones if owner == b.stones[loc] else keep_territories):
            result[loc] = owner
    return white_minus_black
