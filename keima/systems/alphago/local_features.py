"""The fast local features of AlphaGo's rollout policy, kept up to date move by move.

Source: Silver et al. 2016, Extended Data Table 4 and Methods ("Rollout policy"): a linear softmax over

| feature      | patterns | here |
| ------------ | -------- | ---- |
| response     | 1        | the move matches some known response pattern |
| save atari   | 1        | the move saves own stones beside the previous move from capture |
| neighbour    | 8        | the move is one of the 8 points around the previous move, by direction |
| nakade       | 8192     | the move lies where stones were just captured; their shape seen from it, hashed |
| response pattern     | 32207 | 12-point diamond around the previous move (colours, liberties), and where the move is |
| non-response pattern | 69338 | 3×3 around the move (colours, liberties 1, 2, 3 or more) |

The weight of the 3×3 pattern alone, e^w, is stored for every point and both colours and changes only near changed
stones; the other features concern a few points around the previous move and are multiplied in when a move is drawn.

Suicide and filling an own eye follow from the 3×3 pattern (it knows which neighbours stand in atari), so such points
weigh 0. An eye: all neighbours own and none in atari, at most one enemy diagonal in the open, none at the edge.

Perspective: patterns are seen by the side that would move: 0 empty, 1–3 own with 1, 2, 3+ liberties, 4–6 the
opponent's, 7 off the board. Records: b BOARD, h HISTORY, r ROLLOUT, tables WEIGHTS.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keima.games.go.board import (
    BLACK,
    EMPTY,
    MAX_POINTS,
    MAX_SIZE,
    PASS_LOC,
    WALL,
    WHITE,
    liberties_after,
    loc_of,
    neighbour,
    opponent,
    play,
)
from keima.jit import Record, njit
from keima.systems.alphago.inputs import chain_liberty

NAKADE_PATTERNS = 8192
NAKADE_STONES = 12
"""Captures of more stones than this leave no shape worth a nakade."""
DIAMOND = 12
"""Points within two steps of the previous move, itself left out."""

_OFF_BOARD = 7
_PATTERN_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_RANDOM_MULTIPLIER = np.uint64(0x2545F4914F6CDD1D)
_U3, _U4, _U25, _U27 = (np.uint64(n) for n in (3, 4, 25, 27))

TABLE_SIZE = 1 << 18
"""Places in a pattern table; up to half of them are filled."""

WEIGHTS = np.dtype(
    [  # every feature's e^w
        ("response", np.float32),
        ("save_atari", np.float32),
        ("neighbour", np.float32, (8,)),  # row by row from the top left
        ("nakade", np.float32, (NAKADE_PATTERNS,)),
        ("response_keys", np.uint64, (TABLE_SIZE,)),  # `response_key` + 1; 0: free
        ("response_values", np.float32, (TABLE_SIZE,)),
        ("pattern_keys", np.uint64, (TABLE_SIZE,)),  # the 3×3 code + 1; 0: free
        ("pattern_values", np.float32, (TABLE_SIZE,)),
    ],
    align=True,
)

ROLLOUT = np.dtype(
    [
        ("previous", np.int32),  # the last move's point, NULL_LOC or PASS_LOC
        ("captured_count", np.int32),  # stones it took,
        ("captured", np.int16, (MAX_POINTS,)),  # and where they stood
        ("state", np.uint8, (MAX_POINTS,)),  # every point as Black sees it, 0–7
        ("code", np.uint32, (3, MAX_POINTS)),  # by colour: the 3×3 pattern around a point, three bits a neighbour
        ("weight", np.float32, (3, MAX_POINTS)),  # by colour: e^w of that pattern; 0 where no move is made
        ("row", np.float64, (3, MAX_SIZE)),  # by colour: sums of the weights of each row
        ("dirty", np.uint8, (MAX_POINTS,)),  # 1: listed in `changed` (or, while a move is drawn, in `touched`)
        ("changed", np.int16, (MAX_POINTS,)),  # points whose pattern has changed
        ("changed_count", np.int32),
        ("factor", np.float32, (MAX_POINTS,)),  # what the previous move multiplies a point's weight by; 1 elsewhere
        ("touched", np.int16, (64,)),  # points the previous move bears upon; many more than there can be
        ("touched_count", np.int32),
    ],
    align=True,
)


@njit
def _around(loc: int, k: int, stride: int) -> int:
    """Neighbour k of the eight, row by row from the top left; k and 7 − k face each other."""
    if k < 3:
        return loc - stride + k - 1
    if k < 5:
        return loc - 1 if k == 3 else loc + 1
    return loc + stride + k - 6


@njit
def diamond_point(loc: int, k: int, stride: int) -> int:
    """Point k of the diamond: the eight neighbours, then two steps up, left, right, down."""
    if k < 8:
        return _around(loc, k, stride)
    if k == 8:
        return loc - 2 * stride
    if k == 11:
        return loc + 2 * stride
    return loc - 2 if k == 9 else loc + 2


@njit
def _seen_by_white(state: int) -> int:
    """A point's state with own and opponent exchanged."""
    if state == 0 or state == _OFF_BOARD:
        return state
    return state + 3 if state <= 3 else state - 3


@njit
def _state_of(b: Record, loc: int) -> int:
    """A point's state as Black sees it."""
    stone = b.stones[loc]
    if stone == EMPTY:
        return 0
    if stone == WALL:
        return _OFF_BOARD
    liberties = min(int(b.liberties[b.head[loc]]), 3)
    return liberties if stone == BLACK else liberties + 3


@njit
def _is_empty_of_moves(code: int) -> bool:
    """Does the 3×3 pattern alone show that a move here is suicide or fills an own eye?"""
    suicide = True
    own_neighbours = True
    edge = False
    for k in (1, 3, 4, 6):
        state = (code >> (3 * k)) & 7
        if state == 0:
            return False
        suicide &= state == 1 or state >= 5
        own_neighbours &= state == 2 or state == 3 or state == _OFF_BOARD
        edge |= state == _OFF_BOARD
    if suicide or not own_neighbours:
        return suicide
    bad = 0
    for k in (0, 2, 5, 7):
        bad += 4 <= (code >> (3 * k)) & 7 <= 6
    return bad <= (0 if edge else 1)


@njit
def find(keys: NDArray[np.uint64], values: NDArray[np.float32], key: np.uint64, missing: float) -> float:
    """A pattern's value in a hash table [2^k] (open addressing, key + 1 stored, 0 for a free place), else `missing`."""
    mask = np.uint64(keys.shape[0] - 1)
    wanted = key + np.uint64(1)
    place = ((key * _PATTERN_MULTIPLIER) >> _U27) & mask
    while keys[place] != np.uint64(0):
        if keys[place] == wanted:
            return float(values[place])
        place = (place + np.uint64(1)) & mask
    return missing


@njit
def insert_all(
    keys: NDArray[np.uint64], values: NDArray[np.float32], new_keys: NDArray[np.uint64], new_values: NDArray[np.float32]
) -> None:
    """Set patterns' values in a hash table made as for `find`, with room for all; of equal keys the last counts."""
    mask = np.uint64(keys.shape[0] - 1)
    for i in range(len(new_keys)):
        wanted = new_keys[i] + np.uint64(1)
        place = ((new_keys[i] * _PATTERN_MULTIPLIER) >> _U27) & mask
        while keys[place] != np.uint64(0) and keys[place] != wanted:
            place = (place + np.uint64(1)) & mask
        keys[place] = wanted
        values[place] = new_values[i]


@njit
def _mark(r: Record, loc: int) -> None:
    """List a point whose pattern has changed."""
    if r.dirty[loc] == 0:
        r.dirty[loc] = 1
        r.changed[r.changed_count] = loc
        r.changed_count += 1


@njit
def _set_state(r: Record, loc: int, state: int, stride: int) -> None:
    """A point looks different now: write it into the patterns of the eight around it."""
    difference = int(r.state[loc]) ^ state
    difference_white = _seen_by_white(int(r.state[loc])) ^ _seen_by_white(state)
    r.state[loc] = state
    for k in range(8):
        around = _around(loc, k, stride)
        if r.state[around] == _OFF_BOARD:
            continue
        shift = 3 * (7 - k)
        r.code[BLACK, around] = int(r.code[BLACK, around]) ^ (difference << shift)
        r.code[WHITE, around] = int(r.code[WHITE, around]) ^ (difference_white << shift)
        if r.state[around] == 0:
            _mark(r, around)
    _mark(r, loc)


@njit
def _refresh_chain(b: Record, r: Record, first: int, stride: int) -> None:
    """Give all stones of a chain the state that its liberties now make."""
    state = _state_of(b, first)
    stone = first
    while True:
        if r.state[stone] != state:
            _set_state(r, stone, state, stride)
        stone = int(b.next[stone])
        if stone == first:
            break


@njit
def _pattern_weight(r: Record, tables: Record, colour: int, loc: int) -> float:
    """What a point weighs by its 3×3 pattern alone; 0 where no move is made."""
    code = r.code[colour, loc]
    if r.state[loc] != 0 or _is_empty_of_moves(int(code)):
        return 0.0
    return find(tables.pattern_keys, tables.pattern_values, np.uint64(code), 1.0)


@njit
def _reweigh(b: Record, r: Record, tables: Record) -> None:
    """Work out the weights of all changed points, and the sums of their rows."""
    stride = int(b.stride)
    rows = 0
    for i in range(int(r.changed_count)):
        loc = int(r.changed[i])
        r.dirty[loc] = 0
        rows |= 1 << (loc // stride - 1)
        r.weight[BLACK, loc] = _pattern_weight(r, tables, BLACK, loc)
        r.weight[WHITE, loc] = _pattern_weight(r, tables, WHITE, loc)
    r.changed_count = 0
    _sum_rows(b, r, rows)


@njit
def _sum_rows(b: Record, r: Record, rows: int) -> None:
    """Sum the weights of the rows whose bits are set, for both colours."""
    for y in range(int(b.ysize)):
        if rows >> y & 1:
            start = loc_of(0, y, int(b.xsize))
            black = 0.0
            white = 0.0
            for loc in range(start, start + int(b.xsize)):
                black += r.weight[BLACK, loc]
                white += r.weight[WHITE, loc]
            r.row[BLACK, y] = black
            r.row[WHITE, y] = white


@njit
def start_rollout(b: Record, h: Record, r: Record, tables: Record) -> None:
    """Work out all of `r` from scratch for a position; `h` tells the previous move and what it captured."""
    stride = int(b.stride)
    r.previous = h.recent_loc[0]
    r.captured_count = 0
    for loc in range(MAX_POINTS):
        if r.previous > PASS_LOC and b.stones[loc] == EMPTY and h.recent_stones[1, loc] != EMPTY:
            r.captured[r.captured_count] = loc
            r.captured_count += 1
    r.changed_count = 0
    r.touched_count = 0
    r.dirty[:] = 0
    r.code[:] = 0
    r.weight[:] = 0.0
    r.row[:] = 0.0
    r.factor[:] = 1.0
    for loc in range(MAX_POINTS):
        r.state[loc] = _state_of(b, loc)
    for y in range(int(b.ysize)):
        for x in range(int(b.xsize)):
            loc = loc_of(x, y, int(b.xsize))
            black = 0
            white = 0
            for k in range(8):
                state = int(r.state[_around(loc, k, stride)])
                black |= state << (3 * k)
                white |= _seen_by_white(state) << (3 * k)
            r.code[BLACK, loc] = black
            r.code[WHITE, loc] = white
            _mark(r, loc)
    _reweigh(b, r, tables)


@njit
def _list_captures(b: Record, r: Record, loc: int, colour: int) -> None:
    """Write down the stones a move is about to take."""
    stride = int(b.stride)
    enemy = opponent(colour)
    count = 0
    for k in range(4):
        adj = neighbour(loc, k, stride)
        if b.stones[adj] != enemy or b.liberties[b.head[adj]] != 1:
            continue
        listed = False
        for i in range(count):
            listed |= r.captured[i] == adj
        if listed:
            continue
        stone = adj
        while True:
            r.captured[count] = stone
            count += 1
            stone = int(b.next[stone])
            if stone == adj:
                break
    r.captured_count = count


@njit
def rollout_play(b: Record, r: Record, tables: Record, loc: int, colour: int) -> None:
    """Play a legal move (no suicide) or PASS_LOC on the board and bring the features up to date."""
    r.previous = loc
    r.captured_count = 0
    if loc == PASS_LOC:
        play(b, loc, colour)
        return
    stride = int(b.stride)
    _list_captures(b, r, loc, colour)
    play(b, loc, colour)
    for i in range(int(r.captured_count)):
        _set_state(r, int(r.captured[i]), 0, stride)
    _set_state(r, loc, _state_of(b, loc), stride)
    for k in range(4):
        adj = neighbour(loc, k, stride)
        stone = b.stones[adj]
        if stone in (BLACK, WHITE) and _state_of(b, adj) != r.state[adj]:
            _refresh_chain(b, r, adj, stride)
    for i in range(int(r.captured_count)):
        for k in range(4):
            adj = neighbour(int(r.captured[i]), k, stride)
            if b.stones[adj] == colour and _state_of(b, adj) != r.state[adj]:
                _refresh_chain(b, r, adj, stride)
    _reweigh(b, r, tables)


@njit
def _multiply(r: Record, loc: int, factor: float) -> None:
    """Multiply a point's factor, remembering to undo it."""
    if r.dirty[loc] == 0:
        if r.touched_count == r.touched.shape[0]:
            return
        r.dirty[loc] = 1
        r.touched[r.touched_count] = loc
        r.touched_count += 1
    r.factor[loc] *= factor


@njit
def response_code(r: Record, colour: int, stride: int) -> np.uint64:
    """The diamond around the previous move as `colour` sees it: 12 × 3 bits; points off the array's ends are walls."""
    code = np.uint64(0)
    for k in range(DIAMOND):
        loc = diamond_point(int(r.previous), k, stride)
        state = int(r.state[loc]) if 0 <= loc < MAX_POINTS else _OFF_BOARD
        if colour == WHITE:
            state = _seen_by_white(state)
        code = (code << _U3) | np.uint64(state)
    return code


@njit
def response_key(code: np.uint64, k: int) -> np.uint64:
    """The key of "diamond `code`, move at its point k" in the response table."""
    return (code << _U4) | np.uint64(k)


@njit
def nakade_pattern(r: Record, i: int, stride: int) -> int:
    """Which of the 8192 nakade patterns the i-th captured point is: the captured shape as seen from it, hashed."""
    total = np.uint64(0)
    for j in range(int(r.captured_count)):
        step = int(r.captured[j]) - int(r.captured[i])
        row = (step + 10 * stride + stride // 2) // stride - 10
        column = step - row * stride
        mixed = np.uint64((row + 32) * 64 + column + 32) * _PATTERN_MULTIPLIER
        total += mixed ^ (mixed >> _U27)
    total *= _RANDOM_MULTIPLIER
    return int((total >> _U25) & np.uint64(NAKADE_PATTERNS - 1))


@njit
def apply_save_atari(b: Record, r: Record, colour: int, factor: float) -> None:
    """Multiply the moves that save an own chain in atari beside the previous move: run out, or capture; list them.

    Save atari is one feature, on or off: a move that is listed in `touched` already is left as it is.
    """
    stride = int(b.stride)
    for k in range(4):
        adj = neighbour(int(r.previous), k, stride)
        if b.stones[adj] != colour or b.liberties[b.head[adj]] != 1:
            continue
        stone = adj
        while True:
            for i in range(4):
                saving = neighbour(stone, i, stride)
                if b.stones[saving] == opponent(colour) and b.liberties[b.head[saving]] == 1:
                    saving = chain_liberty(b, saving, 0)
                elif b.stones[saving] != EMPTY or liberties_after(b, saving, colour, 2) < 2:
                    continue
                if r.dirty[saving] == 0:
                    _multiply(r, saving, factor)
            stone = int(b.next[stone])
            if stone == adj:
                break


@njit
def apply_local_features(b: Record, r: Record, tables: Record, colour: int) -> None:
    """Multiply in what depends on the previous move; `undo_local_features` takes it out again.

    Also bars the simple ko point. Changes `weight` and `row` of `colour`.
    """
    stride = int(b.stride)
    previous = int(r.previous)
    if b.ko > PASS_LOC:
        _multiply(r, int(b.ko), 0.0)
    if previous > PASS_LOC:
        apply_save_atari(b, r, colour, float(tables.save_atari))
        code = response_code(r, colour, stride)
        for k in range(DIAMOND):
            loc = diamond_point(previous, k, stride)
            if loc < 0 or loc >= MAX_POINTS or r.state[loc] != 0:
                continue
            if k < 8:
                _multiply(r, loc, float(tables.neighbour[k]))
            response = find(tables.response_keys, tables.response_values, response_key(code, k), 0.0)
            if response > 0.0:
                _multiply(r, loc, response * float(tables.response))
        if 2 <= r.captured_count <= NAKADE_STONES:
            for i in range(int(r.captured_count)):
                _multiply(r, int(r.captured[i]), float(tables.nakade[nakade_pattern(r, i, stride)]))
    for i in range(int(r.touched_count)):
        loc = int(r.touched[i])
        old = float(r.weight[colour, loc])
        r.weight[colour, loc] = old * float(r.factor[loc])
        r.row[colour, loc // stride - 1] += float(r.weight[colour, loc]) - old


@njit
def undo_local_features(b: Record, r: Record, tables: Record, colour: int) -> None:
    """Back to the weights of the 3×3 patterns alone."""
    stride = int(b.stride)
    rows = 0
    for i in range(int(r.touched_count)):
        loc = int(r.touched[i])
        r.factor[loc] = 1.0
        r.dirty[loc] = 0
        rows |= 1 << (loc // stride - 1)
        r.weight[colour, loc] = _pattern_weight(r, tables, colour, loc)
    r.touched_count = 0
    _sum_rows(b, r, rows)


@njit
def move_probabilities(b: Record, h: Record, tables: Record, probabilities: NDArray[np.float64]) -> None:
    """Write the probability of every point as the next move, float64 [MAX_POINTS]; all 0 when no move is left."""
    rollouts = np.empty(1, ROLLOUT)
    r = rollouts[0]
    colour = int(h.to_play)
    start_rollout(b, h, r, tables)
    apply_local_features(b, r, tables, colour)
    total = 0.0
    for loc in range(MAX_POINTS):
        probabilities[loc] = r.weight[colour, loc]
        total += probabilities[loc]
    if total > 0.0:
        probabilities /= total
