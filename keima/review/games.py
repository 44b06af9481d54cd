"""What a review needs of a game record: facts, positions, moves; and the numbers it tells of each position."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from keima.errors import BadRecord, KeimaError
from keima.games.game import GAMES, Game
from keima.games.position import Position
from keima.games.records import GameRecord
from keima.plain import Data

if TYPE_CHECKING:
    from keima.systems.network import Network


@dataclass(frozen=True)
class ReviewGame:
    """A game played through, ready to be judged."""

    facts: Data  # the report's `game` object (docs/review-json.md)
    setup: Data  # those of them that decide the judgement: board, rules, start
    positions: list[Position]  # the one before the first move, then after each move
    moves: list[str]  # as the game's positions name them
    players: list[str]  # who played each, one of the game's sides in words
    times: list[Data]  # of each move what is known: seconds left on the mover's clock, seconds it took
    problem: KeimaError | None = None  # why the record goes no further

    @property
    def game(self) -> Game:
        """What game it is."""
        return GAMES[self.facts["game"]]

    @property
    def identity(self) -> Data:
        """What the judgement depends on: the start and the moves, not the players' names."""
        facts = {"game": self.facts["game"], "first": self.facts["first"], **self.setup}
        return {**facts, "moves": list(zip(self.players, self.moves, strict=True))}


def open_game(record: GameRecord | BadRecord) -> ReviewGame:
    """Play a record through, up to a move that breaks the rules or to where it makes no sense: that is its `problem`.

    Raises:
        KeimaError: not one move can be played, or no position set up.
    """
    problem: KeimaError | None = None
    if isinstance(record, BadRecord):
        if record.partial is None:
            raise record
        problem, record = record, cast(GameRecord, record.partial)
    positions: list[Position] = []
    try:
        positions.extend(record.positions())
    except KeimaError as error:
        problem = error
    if problem is not None and len(positions) < 2:
        raise problem
    game, setup, turns = GAMES[record.game], record.setup, record.turns[: len(positions) - 1]
    facts: Data = {
        "game": record.game,
        "source": Path(record.source).name if record.source else "",
        "index": record.index,
        "event": record.event,
        "date": record.date,
        "result": record.result,
        "comments": {str(number): text for number, text in _readable(record.comments).items()},
        "notes": list(record.notes),
        "players": {game.side(letter): name for letter, name in record.players.items()},
        "ranks": {game.side(letter): rank for letter, rank in record.ranks.items() if rank},
        "first": game.side(positions[0].to_play),
        **setup,
        **record.facts,
    }
    if problem is not None:
        where = f"{problem.place}: " if problem.place else ""
        facts["problem"] = f"{where}{problem.message}; the review ends before it, after move {len(turns)}"
    players = [game.side(letter) for letter, _ in turns]
    moves = [move for _, move in turns]
    return ReviewGame(facts, setup, positions, moves, players, _times(record, players), problem)


def _times(record: GameRecord, players: list[str]) -> list[Data]:
    """By move `clock` and `spent`, in seconds, as far as the record tells them."""
    times: list[Data] = []
    before: dict[str, float] = {}
    for number, player in enumerate(players, 1):
        clock = record.clocks.get(number)
        entry: Data = {} if clock is None else {"clock": clock}
        if clock is not None and player in before and record.increment is not None:
            spent = round(before[player] + record.increment - clock, 3)
            entry |= {"spent": spent} if spent >= 0 else {}
        before = {**before, player: clock} if clock is not None else {s: c for s, c in before.items() if s != player}
        times.append(entry)
    return times


def _readable(comments: Mapping[int, str]) -> dict[int, str]:
    """Comments without the commands that PGN writers put into them ([%clk 0:01:00], [%eval 0.3])."""
    plain = {number: re.sub(r"\[%[^\]]*\]\s*", "", text).strip() for number, text in comments.items()}
    return {number: text for number, text in plain.items() if text}


def numbers(judged: object) -> Data:
    """Those that an evaluation, a search or a move of one has, of win, draw, loss, value, lead and moves_left."""
    named = {name: getattr(judged, name) for name in ("win", "draw", "loss", "value", "lead", "moves_left")}
    return {name: round(float(number), 5) for name, number in named.items() if number is not None}


def network_entry(network: Network) -> Data:
    """What a report's `network` tells of any."""
    pedigree = network.pedigree
    facts = {"name": pedigree.name, "game": network.encoding.game, "system": network.system}
    return {**facts, "format": pedigree.format}


def game_title(facts: Data) -> str:
    """A one-line title of a game from its facts: "Ada against Bo, 2016-03-09"."""
    names = [facts["players"].get(side) or side.capitalize() for side in GAMES[facts["game"]].sides]
    return f"{names[0]} against {names[1]}" + (f", {facts['date']}" if facts.get("date") else "")
