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

from typing import Any

import numpy as np

from keima.games.go.board import BLACK, EMPTY, MAX_POINTS, MAX_SIZE, WALL, WHITE
from keima.jit import njit

MAX_REGIONS = MAX_SIZE * MAX_SIZE // 2 + 2
"""No two regions touch, and each holds an empty point: at most every second point of the board starts one."""

_NO_REGION = -1

_REGIONS = np.dtype(
    [
        ("count", np.int32),
        ("region_of", np.int16, (MAX_POINTS,)),  # of each point: its region, or _NO_REGION
        ("points", np.int16, (MAX_POINTS,)),  # the points of all regions, region by region
        ("first", np.int16, (MAX_REGIONS + 1,)),  # region i is points[first[i]:first[i + 1]]
        ("vital_to", np.int16, (MAX_REGIONS, 4)),  # the heads of the chains a region is vital to ...
        ("vital_len", np.int16, (MAX_REGIONS,)),  # ... and how many they are
        ("inner", np.int16, (MAX_REGIONS,)),  # points of the region that touch none of the owner's stones
        ("has_opponent", np.int8, (MAX_REGIONS,)),  # 1 where the region holds stones of the other colour
        ("broken", np.int8, (MAX_REGIONS,)),  # 1 where it touches a chain that is not pass-alive
        ("heads", np.int16, (MAX_POINTS,)),  # the owner's chains, by head
        ("struck", np.int8, (MAX_POINTS,)),  # 1 where heads[i] has been struck out
        ("vital_count", np.int16, (MAX_POINTS,)),  # at a head: how many unbroken regions are vital to its chain
    ],
    align=True,
)
"""Working memory: the regions of one colour, "the owner", or the connected sets of empty points."""


@njit
def wide(value: Any) -> Any:
    """Any whole number as int64, so that kernels are compiled for one type of point only."""
    return np.int64(value)


@njit
def _touches_chain(b: Any, loc: int, colour: int, head: int) -> bool:
    """Is `loc` next to a stone of the chain of `colour` whose head is `head`?"""
    stride = b.stride
    return (
        (b.stones[loc - stride] == colour and b.head[loc - stride] == head)
        or (b.stones[loc - 1] == colour and b.head[loc - 1] == head)
        or (b.stones[loc + 1] == colour and b.head[loc + 1] == head)
        or (b.stones[loc + stride] == colour and b.head[loc + stride] == head)
    )


@njit
def _heads_around(b: Any, r: Any, index: int, loc: int, colour: int) -> int:
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
def _keep_vital(b: Any, r: Any, index: int, loc: int, count: int) -> int:
    """Of the `count` chains region `index` is vital to, keep those that touch `loc`; returns how many they are."""
    kept = 0
    for i in range(count):
        head = wide(r.vital_to[index, i])
        if _touches_chain(b, loc, wide(b.stones[head]), head):
            r.vital_to[index, kept] = head
            kept += 1
    return kept


@njit
def _fill_region(b: Any, r: Any, start: int, colour: int, suicide_legal: bool) -> None:
    """Collect the region around the empty point `start` and what there is to know about it."""
    stones, points, region_of = b.stones, r.points, r.region_of
    stride = wide(b.stride)
    index = wide(r.count)
    r.count = index + 1
    done = wide(r.first[index])
    end = done + 1
    points[done] = start
    region_of[start] = index
    vital = _heads_around(b, r, index, start, colour)
    inner, opponents = 0, 0
    while done < end:
        loc = wide(points[done])
        done += 1
        is_stone = stones[loc] != EMPTY
        if vital > 0 and (suicide_legal or not is_stone):
            vital = _keep_vital(b, r, index, loc, vital)
        opponents += is_stone
        touches_owner = False
        for step in (-stride, -1, 1, stride):
            near = loc + step
            stone = stones[near]
            if stone == colour:
                touches_owner = True
            elif stone != WALL and region_of[near] == _NO_REGION:
                region_of[near] = index
                points[end] = near
                end += 1
        inner += not touches_owner
    r.vital_len[index] = vital
    r.inner[index] = inner
    r.has_opponent[index] = opponents > 0
    r.broken[index] = 0
    r.first[index + 1] = end


@njit
def _find_regions(b: Any, r: Any, colour: int, suicide_legal: bool) -> int:
    """Fill `r` with the regions and chains of `colour`; returns the number of its chains."""
    r.count = 0
    r.first[0] = 0
    r.region_of[:] = _NO_REGION
    chains = 0
    for y in range(b.ysize):
        row = (wide(y) + 1) * b.stride + 1
        for loc in range(row, row + b.xsize):
            stone = b.stones[loc]
            if stone == EMPTY:
                if r.region_of[loc] == _NO_REGION:
                    _fill_region(b, r, loc, colour, suicide_legal)
            elif stone == colour and b.head[loc] == loc:
                r.heads[chains] = loc
                r.struck[chains] = 0
                r.vital_count[loc] = 0
                chains += 1
    return chains


@njit
def _strike(b: Any, r: Any, head: int) -> None:
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
def _strike_until_stable(b: Any, r: Any, chains: int) -> None:
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
def _mark_alive_chains(b: Any, r: Any, chains: int, colour: int, result: Any) -> None:
    """Give the stones of the chains that remain to their owner."""
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
def _claim_empty_regions(b: Any, r: Any, unsafe_big_territories: bool, result: Any) -> int:
    """Find the connected sets of empty points; give those that touch one colour only to it, if asked.

    Returns:
        The colours that may have pass-alive chains, BLACK + WHITE added up. A region vital to a chain holds an empty
        set all of whose points are the chain's liberties; so a colour none of whose chains has two such sets has none.
    """
    r.vital_count[:] = 0
    r.region_of[:] = _NO_REGION
    r.count = 0
    r.first[0] = 0
    may_live = 0
    for y in range(b.ysize):
        row = (wide(y) + 1) * b.stride + 1
        for loc in range(row, row + b.xsize):
            if b.stones[loc] == EMPTY and r.region_of[loc] == _NO_REGION:
                index = r.count
                colours = _fill_empty_set(b, r, loc)
                for i in range(r.vital_len[index]):
                    head = r.vital_to[index, i]
                    r.vital_count[head] += 1
                    if r.vital_count[head] >= 2:
                        may_live |= wide(b.stones[head])
                if unsafe_big_territories and colours in (BLACK, WHITE):
                    for i in range(r.first[index], r.first[index + 1]):
                        result[r.points[i]] = colours
    return may_live


@njit
def _fill_empty_set(b: Any, r: Any, start: int) -> int:
    """Collect the empty points connected to `start` and the chains they all touch; returns BLACK + WHITE it touches."""
    stones, points, region_of = b.stones, r.points, r.region_of
    stride = wide(b.stride)
    index = wide(r.count)
    r.count = index + 1
    done = wide(r.first[index])
    end = done + 1
    points[done] = start
    region_of[start] = index
    colours = 0
    vital = -1
    while done < end:
        loc = wide(points[done])
        done += 1
        if vital > 0:
            vital = _keep_vital(b, r, index, loc, vital)
        for step in (-stride, -1, 1, stride):
            near = loc + step
            stone = stones[near]
            if stone == EMPTY:
                if region_of[near] == _NO_REGION:
                    region_of[near] = index
                    points[end] = near
                    end += 1
            elif stone != WALL:
                colours |= wide(stone)
        if vital < 0:
            vital = _heads_around(b, r, index, loc, EMPTY)
    r.vital_len[index] = vital
    r.first[index + 1] = end
    return colours


@njit
def _mark_pass_alive(b: Any, r: Any, colour: int, safe_big_territories: bool, suicide_legal: bool, result: Any) -> None:
    """Mark pass-alive stones and territory of one colour, and its safe big territories if asked."""
    chains = _find_regions(b, r, colour, suicide_legal)
    _strike_until_stable(b, r, chains)
    _mark_alive_chains(b, r, chains, colour, result)
    for index in range(r.count):
        # The opponent cannot live inside: at most one point is out of the chains' reach, or nothing of theirs is there.
        if r.broken[index] == 0 and (r.inner[index] <= 1 or (safe_big_territories and r.has_opponent[index] == 0)):
            for i in range(r.first[index], r.first[index + 1]):
                result[r.points[i]] = colour


@njit
def _add_remaining_stones(b: Any, area: Any) -> None:
    """Give every stone on a point nobody owns yet its own point."""
    for y in range(b.ysize):
        row = (wide(y) + 1) * b.stride + 1
        for loc in range(row, row + b.xsize):
            if area[loc] == EMPTY:
                area[loc] = b.stones[loc]


@njit
def calculate_area(
    b: Any,
    result: Any,
    non_pass_alive_stones: bool,
    safe_big_territories: bool,
    unsafe_big_territories: bool,
    multi_stone_suicide_legal: bool,
) -> None:
    """Write the owner of every point (KataGo `Board::calculateArea`).

    Pass-alive stones and the territory they enclose (with the dead stones in it) are always marked.

    Args:
        b: one BOARD record.
        result: int8 [MAX_POINTS], written: EMPTY, BLACK or WHITE.
        non_pass_alive_stones: mark also all other stones as their own.
        safe_big_territories: mark also empty regions of any size that touch only pass-alive stones of one colour.
        unsafe_big_territories: mark also empty regions that touch only one colour, pass-alive or not, except points
            inside the other colour's pass-alive territory.
        multi_stone_suicide_legal: then a region is vital only if the opponent's stones in it touch the chain as well.
    """
    work = np.empty(1, _REGIONS)
    result[:] = EMPTY
    may_live = _claim_empty_regions(b, work[0], unsafe_big_territories, result)
    for colour in (BLACK, WHITE):
        if may_live & colour:  # what is settled overrides what was claimed
            _mark_pass_alive(b, work[0], colour, safe_big_territories, multi_stone_suicide_legal, result)
    if non_pass_alive_stones:
        _add_remaining_stones(b, result)


@njit
def _spread(b: Any, start: int, area: Any, marks: Any, mark: int, queue: Any) -> None:
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
def _is_in_seki(b: Any, loc: int, area: Any) -> bool:
    """Does this owned point show that its area lives in seki: its own stone in atari, or a dame next to it?"""
    stones, stride = b.stones, b.stride
    return (
        (stones[loc] == area[loc] and b.liberties[b.head[loc]] == 1)
        or (stones[loc - stride] == EMPTY and area[loc - stride] == EMPTY)
        or (stones[loc - 1] == EMPTY and area[loc - 1] == EMPTY)
        or (stones[loc + 1] == EMPTY and area[loc + 1] == EMPTY)
        or (stones[loc + stride] == EMPTY and area[loc + stride] == EMPTY)
    )


@njit
def _mark_independent_life(b: Any, area: Any, result: Any) -> int:
    """Copy the connected areas that are not in seki from `area` to `result`; returns white's minus black's number."""
    seki = np.zeros(MAX_POINTS, np.int8)
    queue = np.empty(MAX_POINTS, np.int16)
    for y in range(b.ysize):
        row = (wide(y) + 1) * b.stride + 1
        for loc in range(row, row + b.xsize):
            if area[loc] != EMPTY and seki[loc] == 0 and _is_in_seki(b, loc, area):
                _spread(b, loc, area, seki, 1, queue)
    white_minus_black = 0
    for y in range(b.ysize):
        row = (wide(y) + 1) * b.stride + 1
        for loc in range(row, row + b.xsize):
            owner = area[loc]
            if owner != EMPTY and seki[loc] == 0 and result[loc] != owner:
                white_minus_black += 1 if owner == WHITE else -1
                _spread(b, loc, area, result, owner, queue)
    return white_minus_black


@njit
def independent_life_area(
    b: Any, result: Any, keep_territories: bool, keep_stones: bool, multi_stone_suicide_legal: bool
) -> int:
    """Write the owner of every point that belongs to an area alive without seki, for rules that tax seki or groups.

    An area is a connected set of points one colour owns by `calculate_area` with everything marked. It is in seki when
    one of its stones is in atari or one of its points touches an empty point that nobody owns (KataGo
    `Board::calculateIndependentLifeArea`).

    Args:
        b: one BOARD record.
        result: int8 [MAX_POINTS], written: EMPTY, BLACK or WHITE.
        keep_territories: keep owned points that do not hold their owner's stone even in seki.
        keep_stones: keep stones on points their colour owns even in seki.
        multi_stone_suicide_legal: as in `calculate_area`.

    Returns:
        How many more such areas White has than Black; a group tax takes two points for each.
    """
    area = np.empty(MAX_POINTS, np.int8)
    calculate_area(b, area, True, True, True, multi_stone_suicide_legal)
    result[:] = EMPTY
    white_minus_black = _mark_independent_life(b, area, result)
    for y in range(b.ysize):
        row = (wide(y) + 1) * b.stride + 1
        for loc in range(row, row + b.xsize):
            owner = area[loc]
            if owner != EMPTY:
                is_stone = owner == b.stones[loc]
                if (keep_stones and is_stone) or (keep_territories and not is_stone):
                    result[loc] = owner
    return white_minus_black
