"""Ladders: which chains are captured by an unbroken run of ataris, and by which moves.

The *attacker* plays on one of the chain's two liberties, the *defender* answers by extending on the last liberty or by
capturing a neighbour in atari, and so on; the chain is caught when it cannot get out of atari, free when it reaches
three liberties with the attacker to move. What counts as caught is KataGo's definition, decision by decision
(`cpp/game/board.cpp`, `searchIsLadderCaptured` and `searchIsLadderCapturedAttackerFirst2Libs`):

- a defender facing a ko the attacker has just started is free, so no ladder is read as working because of a ko;
- a chain whose two liberties are both ko mouths that gain it nothing is caught (double-ko death);
- a line longer than one and a half boards counts as caught, more than 25,000 moves read count as free.

One quirk of KataGo's is kept as well: see `_look_as_defender`. Otherwise, until that budget is spent, answers do not
depend on the order in which moves are tried.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.go.area import wide
from keima.games.go.board import (
    BOARD,
    EMPTY,
    MAX_POINTS,
    MAX_SIZE,
    NULL_LOC,
    WALL,
    contains,
    copy_points,
    empty_around,
    is_legal,
    ko_capture,
    liberties_after,
    play,
    points_of,
)
from keima.jit import Record, Records, njit

NODE_BUDGET = 25000
"""Moves read for one chain before it is taken to be free."""

MAX_DEPTH = MAX_SIZE * MAX_SIZE * 3 // 2 + 2

_FREE, _CAUGHT, _OPEN, _OUT_OF_BUDGET = 0, 1, 2, 3

_FRAME = np.dtype(
    [
        ("count", np.int32),  # moves to try at this depth
        ("next", np.int32),  # the next of them
        ("moves", np.int16, (MAX_POINTS,)),
    ],
    align=True,
)


Scratch = tuple[Records, Records]
"""A board and a list of moves for each depth: BOARD [MAX_DEPTH], frames [MAX_DEPTH]."""


@njit
def new_scratch() -> Scratch:
    """The working memory of `find_ladders`, to be made once a thread: large, but only touched as deep as ladders go."""
    return np.empty(MAX_DEPTH, BOARD), np.empty(MAX_DEPTH, _FRAME)


@njit
def _find_liberties(b: Record, loc: int, moves: NDArray[np.int16], wanted: int) -> int:
    """Write the first `wanted` liberties of the chain of `loc` to `moves`; returns how many there were."""
    stones, following = b.stones, b.next
    stride = wide(b.stride)
    found = 0
    stone = loc
    while True:
        for step in (-stride, -1, 1, stride):
            near = stone + step
            if stones[near] == EMPTY and not contains(moves, found, near):
                moves[found] = near
                found += 1
                if found == wanted:
                    return found
        stone = wide(following[stone])
        if stone == loc:
            return found


@njit
def _find_captures(b: Record, loc: int, moves: NDArray[np.int16]) -> int:
    """Write to `moves` the points that capture a neighbour of the chain of `loc`; returns how many there are."""
    stones, following = b.stones, b.next
    stride = wide(b.stride)
    enemy = 3 - stones[loc]
    found = 0
    stone = loc
    while True:
        for step in (-stride, -1, 1, stride):
            near = stone + step
            if stones[near] == enemy and b.liberties[b.head[near]] == 1:
                _find_liberties(b, wide(near), moves[found:], 1)
                if not contains(moves, found, moves[found]):
                    found += 1
        stone = wide(following[stone])
        if stone == loc:
            return found


@njit
def _captures_around(b: Record, loc: int, colour: int) -> int:
    """On how many sides a stone of `colour` at `loc` would capture."""
    stride = wide(b.stride)
    captures = 0
    for step in (-stride, -1, 1, stride):
        near = loc + step
        if b.stones[near] == 3 - colour and b.liberties[b.head[near]] == 1:
            captures += 1
    return captures


@njit
def _surely_gets_three(b: Record, loc: int, colour: int) -> bool:
    """KataGo's quick lower bound: captures, and the free neighbours or the best chain joined, make three liberties."""
    stride = wide(b.stride)
    best = 0
    for step in (-stride, -1, 1, stride):
        near = loc + step
        if b.stones[near] == colour:
            best = max(best, wide(b.liberties[b.head[near]]) - 1)
    return _captures_around(b, loc, colour) + max(best, empty_around(b, loc)) >= 3


@njit
def _look_as_defender(b: Record, loc: int, frame: Record) -> int:
    """The chain is in atari and its owner to move: decide at once, or list the moves to try.

    KataGo takes the last move of its list for the extension and gives up when that gets three liberties. Where the
    extension also captures a neighbour it stands among the captures, and the last move may be another capture, whose
    liberties need not be this chain's; so it is here.
    """
    if b.liberties[b.head[loc]] >= 2 or b.ko != NULL_LOC:
        return _FREE
    moves, colour = frame.moves, b.stones[loc]
    _find_liberties(b, loc, moves, 1)
    extension = wide(moves[0])
    room = _room_after(b, loc, extension, NULL_LOC)
    if _captures_around(b, extension, colour) == 0:
        if room >= 3:
            return _FREE
        count = _find_captures(b, loc, moves)
        if count == 0 and room <= 1:
            return _CAUGHT
        moves[count] = extension
        count += 1
    else:
        count = _find_captures(b, loc, moves)
        if not contains(moves, count, extension):
            moves[count] = extension
            count += 1
        if _surely_gets_three(b, wide(moves[count - 1]), colour):
            return _FREE
    frame.count = count
    frame.next = 0
    return _OPEN


@njit
def _is_double_ko_death(b: Record, loc: int, first: int, second: int) -> bool:
    """Are both liberties ko mouths the attacker can take, and does filling either one gain nothing?"""
    colour = b.stones[loc]
    enemy = 3 - colour
    return (
        empty_around(b, first) == 0
        and empty_around(b, second) == 0
        and ko_capture(b, first, enemy) != NULL_LOC
        and ko_capture(b, second, enemy) != NULL_LOC
        and liberties_after(b, first, colour, 3) <= 2
        and liberties_after(b, second, colour, 3) <= 2
        and not _has_capture(b, loc)
    )


@njit
def _has_capture(b: Record, loc: int) -> bool:
    """Is a neighbour of the chain of `loc` in atari?"""
    stones, following = b.stones, b.next
    stride = wide(b.stride)
    enemy = 3 - stones[loc]
    stone = loc
    while True:
        for step in (-stride, -1, 1, stride):
            near = stone + step
            if stones[near] == enemy and b.liberties[b.head[near]] == 1:
                return True
        stone = wide(following[stone])
        if stone == loc:
            return False


@njit
def _room_after(b: Record, loc: int, extension: int, taken: int) -> int:
    """How many liberties, up to 3, the chain of `loc` would have after extending at one of its liberties.

    `taken` is its other liberty, counted as occupied by the attacker, or NULL_LOC if it has none. Points that captures
    would open are not counted, be it by this move or by the attacker's.
    """
    stones, following = b.stones, b.next
    stride = wide(b.stride)
    colour, own = stones[loc], b.head[loc]
    found, first, second = 0, NULL_LOC, NULL_LOC
    for step in (-stride, -1, 1, stride):
        near = extension + step
        if stones[near] == EMPTY and near != taken:
            found += 1
            first, second = near, first
    for step in (-stride, -1, 1, stride):
        near = extension + step
        if found >= 3 or stones[near] != colour or b.head[near] == own:
            continue
        if b.liberties[b.head[near]] >= 5:  # two of them at most are these two points
            return 3
        stone = near
        while True:
            for side in (-stride, -1, 1, stride):
                point = stone + side
                if stones[point] == EMPTY and point not in (extension, taken, first, second):
                    found += 1
                    first, second = point, first
            stone = wide(following[stone])
            if stone == near or found >= 3:
                break
    return min(found, 3)


@njit
def _look_as_attacker(b: Record, loc: int, frame: Record) -> int:
    """The attacker is to move: decide at once, or list the ataris to try, the more promising first."""
    liberties = b.liberties[b.head[loc]]
    if liberties <= 1:
        return _CAUGHT
    if liberties >= 3:
        return _FREE
    moves = frame.moves
    _find_liberties(b, loc, moves, 2)
    first, second = wide(moves[0]), wide(moves[1])
    if _is_double_ko_death(b, loc, first, second):
        return _CAUGHT
    count = 0
    if _room_after(b, loc, second, first) < 3:
        moves[0] = first
        count = 1
    if _room_after(b, loc, first, second) < 3:
        moves[count] = second
        count += 1
    if count == 0:
        return _FREE
    if count == 2 and _room(b, second, b.stones[loc]) > _room(b, first, b.stones[loc]):
        moves[0], moves[1] = second, first
    frame.count = count
    frame.next = 0
    return _OPEN


@njit
def _room(b: Record, loc: int, colour: int) -> int:
    """How much a chain of `colour` would gain by moving there: the better of two escapes is the one to block first."""
    stride = wide(b.stride)
    room = 2 * empty_around(b, loc)
    for step in (-stride, -1, 1, stride):
        near = loc + step
        if b.stones[near] == colour and b.liberties[b.head[near]] > 1:
            room += 2 * wide(b.liberties[b.head[near]]) - 3
    return room


@njit
def _try_next(boards: Records, depth: int, frame: Record, colour: int) -> bool:
    """Play the next legal move of the frame on a copy of its board, one deeper; False when none is left."""
    while frame.next < frame.count:
        move = wide(frame.moves[frame.next])
        frame.next += 1
        if is_legal(boards[depth], move, colour, False):
            boards[depth + 1] = boards[depth]
            play(boards[depth + 1], move, colour)
            return True
    return False


@njit
def _read(scratch: Scratch, start: int, loc: int, defender_first: bool) -> int:
    """Search from the board at `scratch[0][start]`: _CAUGHT, _FREE or _OUT_OF_BUDGET."""
    boards, frames = scratch
    b = boards[start]
    defender = wide(b.stones[loc])
    longest = b.xsize * b.ysize * 3 // 2
    depth, nodes = 0, 0
    verdict = _OPEN
    entered = True
    while True:
        defends = defender_first == (depth % 2 == 0)
        frame = frames[start + depth]
        if entered:
            if nodes >= NODE_BUDGET:
                return _OUT_OF_BUDGET
            if depth >= longest:
                verdict = _CAUGHT
            elif defends:
                verdict = _look_as_defender(boards[start + depth], loc, frame)
            else:
                verdict = _look_as_attacker(boards[start + depth], loc, frame)
        if verdict == _OPEN:
            if _try_next(boards, start + depth, frame, defender if defends else 3 - defender):
                nodes += 1
                depth += 1
                entered = True
                continue
            verdict = _CAUGHT if defends else _FREE
        if depth == 0:
            return verdict
        depth -= 1
        entered = False
        # A free line settles it for the defender one level up, a caught one for the attacker.
        one_up_defends = not defends
        if verdict == (_CAUGHT if one_up_defends else _FREE):
            verdict = _OPEN


@njit
def _read_in_atari(scratch: Scratch, start: int, loc: int) -> int:
    """`_read` with the defender to move and every ko in its favour at the start."""
    boards = scratch[0]
    ko = boards[start].ko
    boards[start].ko = NULL_LOC
    verdict = _read(scratch, start, loc, True)
    boards[start].ko = ko
    return verdict


@njit
def _is_caught_in_atari(scratch: Scratch, start: int, loc: int) -> bool:
    """Is the chain of `loc` on the board at `start` caught with its owner to move?"""
    return scratch[0][start].liberties[scratch[0][start].head[loc]] == 1 and (
        _read_in_atari(scratch, start, loc) == _CAUGHT
    )


@njit
def _working_moves(scratch: Scratch, loc: int, moves: NDArray[np.int16]) -> int:
    """Write the ataris that catch a chain of two liberties on the board at the bottom of the scratch; how many."""
    boards = scratch[0]
    b = boards[0]
    attacker = 3 - wide(b.stones[loc])
    if b.liberties[b.head[loc]] != 2:
        return 0
    _find_liberties(b, loc, moves, 2)
    first, second = wide(moves[0]), wide(moves[1])
    count = 0
    for move, escape in ((first, second), (second, first)):
        if _room_after(b, loc, escape, move) < 3 and is_legal(b, move, attacker, False):
            boards[1] = b
            play(boards[1], move, attacker)
            if _is_caught_in_atari(scratch, 1, loc):
                moves[count] = move
                count += 1
    return count


@njit
def find_ladders(
    b: Record, attacker: int, laddered: NDArray[np.int8], working: NDArray[np.int8], scratch: Scratch
) -> None:
    """Read every chain of one or two liberties, as KataGo does for its ladder planes (`nninputs.cpp`, `iterLadders`).

    Args:
        b: one BOARD record.
        attacker: BLACK or WHITE: the colour whose working moves are wanted; EMPTY for none.
        laddered: int8 [MAX_POINTS]: set to 1 on the stones of every chain, of either colour, that is in atari and
            cannot escape or has two liberties and can be caught. Other points are left as they are.
        working: int8 [MAX_POINTS]: set to 1 on the moves of `attacker` that catch a chain of two liberties.
        scratch: from `new_scratch`.
    """
    scratch[0][0] = b
    moves = np.empty(2, np.int16)
    done = np.zeros(MAX_POINTS, np.int8)  # at a chain's head: 1 once it has been read
    for loc in points_of(b):
        head = wide(b.head[loc])
        if head == NULL_LOC or b.liberties[head] > 2 or done[head] == 1:
            continue
        done[head] = 1
        if b.liberties[head] == 1:
            if _read_in_atari(scratch, 0, loc) == _CAUGHT:
                _mark_chain(b, loc, laddered)
            continue
        count = _working_moves(scratch, loc, moves)
        if count > 0:
            _mark_chain(b, loc, laddered)
            if attacker == 3 - b.stones[loc]:
                for i in range(count):
                    working[moves[i]] = 1


@njit
def change_stones(b: Record, stones: NDArray[np.int8]) -> None:
    """Turn `b` into the board of the same size with these stones, int8 [MAX_POINTS]; `hash`, `captures` and `ko` stay.

    Quick for boards a few moves apart: only the chains that are or stand beside a change are worked out.
    """
    stride = wide(b.stride)
    changed = np.empty(5 * MAX_POINTS, np.int16)
    count = 0
    for loc in range(stride, (wide(b.ysize) + 1) * stride):
        if b.stones[loc] != stones[loc]:
            for step in (0, -stride, -1, 1, stride):
                changed[count] = loc + step
                count += 1
    if count == 0:
        return
    copy_points(stones, b.stones)
    seen = np.zeros(MAX_POINTS, np.int16)  # of a stone: 1 when its chain is done; of an empty point: who counted it
    for i in range(count):
        loc = wide(changed[i])
        if b.stones[loc] == EMPTY:
            b.head[loc] = NULL_LOC
        elif b.stones[loc] != WALL and seen[loc] == 0:
            _gather(b, loc, i + 1, seen)


@njit
def _gather(b: Record, first: int, stamp: int, seen: NDArray[np.int16]) -> None:
    """Work out the chain of `first`: ring, head, size, liberties; stamps its stones and liberties in `seen`."""
    stride = wide(b.stride)
    colour = b.stones[first]
    b.next[first] = first
    seen[first] = stamp
    size, liberties = 0, 0
    stone, tail = first, first
    while True:
        size += 1
        b.head[stone] = first
        for step in (-stride, -1, 1, stride):
            near = stone + step
            if seen[near] != stamp:
                if b.stones[near] == EMPTY:
                    seen[near] = stamp
                    liberties += 1
                elif b.stones[near] == colour:
                    seen[near] = stamp
                    b.next[tail] = near
                    b.next[near] = first
                    tail = near
        stone = wide(b.next[stone])
        if stone == first:
            break
    b.size[first] = size
    b.liberties[first] = liberties


@njit
def _mark_chain(b: Record, loc: int, marks: NDArray[np.int8]) -> None:
    stone = loc
    while True:
        marks[stone] = 1
        stone = wide(b.next[stone])
        if stone == loc:
            return
