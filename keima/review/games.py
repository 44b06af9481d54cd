"""What a review needs of a game record: facts, positions, moves; and the numbers it tells of each position."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keima.games.game import GAMES, Game
from keima.games.position import Position
from keima.games.records import GameRecord
from keima.plain import Data


@dataclass(frozen=True)
class ReviewGame:
    """A game played through, ready to be judged."""

    facts: Data  # the report's `game` object (docs/review-json.md)
    setup: Data  # those of them that decide the judgement: board, rules, start
    positions: list[Position]  # the one before the first move, then after each move
    moves: list[str]  # as the game's positions name them
    players: list[str]  # who played each, one of the game's sides in words

    @property
    def game(self) -> Game:
        """What game it is."""
        return GAMES[self.facts["game"]]

    @property
    def identity(self) -> Data:
        """What the judgement depends on: the start and the moves, not the players' names."""
        facts = {"game": self.facts["game"], "first": self.facts["first"], **self.setup}
        return {**facts, "moves": list(zip(self.players, self.moves, strict=True))}


def open_game(record: GameRecord) -> ReviewGame:
    """Play a record through. Raises IllegalMove, or BadRecord where its starting position cannot be."""
    positions = list(record.positions())
    game = GAMES[record.game]
    setup = record.setup
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
    moves = [move for _, move in record.turns]
    return ReviewGame(facts, setup, positions, moves, [game.side(letter) for letter, _ in record.turns])


def _readable(comments: Mapping[int, str]) -> dict[int, str]:
    """Comments without the commands that PGN writers put into them ([%clk 0:01:00], [%eval 0.3])."""
    plain = {number: re.sub(r"\[%[^\]]*\]\s*", "", text).strip() for number, text in comments.items()}
    return {number: text for number, text in plain.items() if text}


def numbers(judged: object) -> Data:
    """Those that an evaluation, a search or a move of one has, of win, draw, loss, value, lead and moves_left."""
    named = {name: getattr(judged, name) for name in ("win", "draw", "loss", "value", "lead", "moves_left")}
    return {name: round(float(number), 5) for name, number in named.items() if number is not None}


def game_title(facts: Data) -> str:
    """A one-line title of a game from its facts: "Ada against Bo, 2016-03-09"."""
    names = [facts["players"].get(side) or side.capitalize() for side in GAMES[facts["game"]].sides]
    return f"{names[0]} against {names[1]}" + (f", {facts['date']}" if facts.get("date") else "")
