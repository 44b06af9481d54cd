"""Connect four: counts of positions (OEIS A212693), a slow independent reading of the rules, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keima
from keima.errors import BadPosition, IllegalMove
from keima.games.connect_four.kernels import COLUMNS, NAMES, RECORD, legal_moves, make, position_key
from keima.games.connect_four.position import Position
from keima.games.game import get_game
from keima.jit import Records, njit


class SlowGame:
    """The rules as a child is told them: seven stacks of discs, and a look in every direction from every square."""

    def __init__(self) -> None:
        self.stacks: list[list[str]] = [[] for _ in NAMES]
        self.turn = "1"

    def at(self, column: int, row: int) -> str | None:
        inside = 0 <= column < 7 and 0 <= row < len(self.stacks[column])
        return self.stacks[column][row] if inside else None

    def winner(self) -> str | None:
        for column in range(7):
            for row in range(6):
                for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)):
                    line = [self.at(column + k * right, row + k * up) for k in range(4)]
                    if line[0] and line == [line[0]] * 4:
                        return line[0]
        return None

    def legal(self) -> list[str]:
        if self.winner():
            return []
        return [name for name, stack in zip(NAMES, self.stacks, strict=True) if len(stack) < 6]

    def drop(self, column: str) -> None:
        self.stacks[NAMES.index(column)].append(self.turn)
        self.turn = "2" if self.turn == "1" else "1"


@njit
def _successors(records: Records, found: Records) -> int:
    """Every position one disc later, doubles and all; returns how many."""
    moves = np.empty(COLUMNS, np.int16)
    count = 0
    for i in range(len(records)):
        for k in range(legal_moves(records[i], moves)):
            found[count] = records[i]
            make(found[count], moves[k])
            count += 1
    return count


def positions_after(plies: int) -> list[int]:
    """The number of different positions after 0, 1, … discs."""
    records = np.zeros(1, RECORD)
    counts = [1]
    for _ in range(plies):
        found = np.empty(COLUMNS * len(records), RECORD)
        found = found[: _successors(records, found)]
        keys = np.array([position_key(found[i]) for i in range(len(found))])
        records = found[np.unique(keys, return_index=True)[1]]
        counts.append(len(records))
    return counts


def test_numbers_of_positions() -> None:
    assert positions_after(6) == [1, 7, 49, 238, 1120, 4263, 16422]


@pytest.mark.slow
def test_numbers_of_positions_further_on() -> None:
    assert positions_after(8)[7:] == [54859, 184275]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=60))
def test_every_game_is_the_slow_one(choices: list[int]) -> None:
    """Legal moves, board, turn, end and winner agree at each ply, and the same game has the same bytes and hash."""
    slow, position = SlowGame(), Position.start()
    for choice in choices:
        assert position.legal() == slow.legal()
        if not slow.legal():
            break
        move = slow.legal()[choice % len(slow.legal())]
        slow.drop(move)
        position = position.play(move)
        assert (position.to_play, position.winner) == (slow.turn, slow.winner())
        rows = ["".join(slow.at(column, row) or "." for column in range(7)) for row in range(5, -1, -1)]
        assert position.rows() == rows
        assert position.is_over == (not slow.legal())
    again = Position.start().play(*position.moves)
    assert again == position
    assert again.record.tobytes() == position.record.tobytes()
    assert Position.from_json(position.to_json()) == position


def test_front_door() -> None:
    position = keima.connect_four.Position.start().play("d", "d", "c")
    assert (position.to_play, position.moves, position.result) == ("2", ("d", "d", "c"), None)
    assert position.to_json() == {"game": "connect_four", "moves": ["d", "d", "c"]}
    assert get_game("connect_four").from_json(position.to_json()) == position


@pytest.mark.parametrize(
    ("moves", "result", "winner"),
    [
        ("abababa", "1-0", "1"),  # a column
        ("abbccdcddgd", "1-0", "1"),  # a rising diagonal
        ("gagbgcd", None, None),
        ("gagbgcfd", "0-1", "2"),  # a row
    ],
)
def test_results(moves: str, result: str | None, winner: str | None) -> None:
    position = Position.start().play(*moves)
    assert (position.result, position.winner, position.is_over) == (result, winner, result is not None)


def test_a_full_board_is_a_draw() -> None:
    position = Position.start().play(*"edgabeffbbfabgabffbaegdcggaegfcaececccdddd")
    assert (len(position.moves), position.result, position.winner) == (42, "1/2-1/2", None)


@pytest.mark.parametrize(
    ("moves", "word"),
    [(["h"], "no column"), (["aa"], "no column"), ([""], "no column"), (list("aaaaaaa"), "full")],
)
def test_illegal_moves(moves: list[str], word: str) -> None:
    with pytest.raises(IllegalMove, match=word) as caught:
        Position.start().play(*moves)
    assert caught.value.place == f"move {len(moves)}"


def test_no_move_after_the_end() -> None:
    with pytest.raises(IllegalMove, match="the game is over"):
        Position.start().play(*"abababa").play("g")


@pytest.mark.parametrize("moves", ["d", {"d": 1}, 3, ["d", 4], ["d", None]])
def test_json_of_the_wrong_kind(moves: object) -> None:
    with pytest.raises(BadPosition, match="moves"):
        Position.from_json({"game": "connect_four", "moves": moves})


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=45))
def test_kernels_say_what_positions_say(choices: list[int]) -> None:
    """Result, moves, key and wins at once along a game, all from the one record."""
    kernels = get_game("connect_four").kernels
    position = Position.start()
    scratch = kernels.new_scratch(position.record)[0]
    record = position.record.copy()
    moves = np.empty(kernels.max_moves, np.int16)
    for choice in choices:
        value, points = kernels.result(record[0], scratch)
        assert np.isnan(points)
        assert value == (2 if not position.is_over else 0 if position.winner is None else -1)
        count = kernels.legal_moves(record[0], scratch, moves)
        assert [kernels.name(position, move, 0) for move in moves[:count].tolist()] == position.legal()
        assert kernels.side(record[0]) == len(position.moves) % 2
        if position.is_over:
            break
        wins = [name for name in position.legal() if position.play(name).winner]
        assert kernels.wins_at_once(record[0], scratch) == bool(wins)
        name = position.legal()[choice % count]
        kernels.play(record[0], scratch, kernels.code(position, name))
        position = position.play(name)
        assert record.tobytes() == position.record.tobytes()
    assert kernels.code(position, "h") == -1
