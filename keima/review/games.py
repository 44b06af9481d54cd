"""What a review needs of a game record, the same for Go and chess: facts, positions, moves, boards to draw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from keima.errors import KeimaError

SIDES = {"B": "black", "W": "white", "b": "black", "w": "white"}


@dataclass(frozen=True)
class ReviewGame:
    """A game played through, ready to be judged.

    Attributes:
        facts: the report's `game` object (docs/review-json.md): players, result, rules, comments, source.
        positions: the position before the first move, then after each move.
        moves: what was played, `len(positions) - 1` of them: GTP vertices, "pass", or UCI.
        players: who played each move, "black" or "white".
    """

    facts: dict[str, Any]
    positions: list[Any]
    moves: list[str]
    players: list[str]

    @property
    def identity(self) -> dict[str, Any]:
        """What the judgement depends on: the start and the moves, not the players' names."""
        names = ("game", "xsize", "ysize", "rules", "komi", "handicap", "setup", "first", "fen", "chess960")
        facts = {name: self.facts[name] for name in names if name in self.facts}
        return {**facts, "moves": list(zip(self.players, self.moves, strict=True))}

    @property
    def title(self) -> str:
        """ "Black against White, date" for Go, White first for chess."""
        return game_title(self.facts)


class Record(Protocol):
    """What both games' records share."""

    game: str
    source: str
    index: int


def open_game(record: Any) -> ReviewGame:
    """Play a record through.

    Args:
        record: `keima.games.go.sgf.GameRecord` or `keima.games.chess.pgn.GameRecord`.

    Raises:
        IllegalMove: a move breaks the rules; names it.
        BadRecord: the starting position cannot be.
    """
    return _open_go(record) if record.game == "go" else _open_chess(record)


def _open_go(record: Any) -> ReviewGame:
    positions = list(record.positions())
    facts = {
        **_common_facts(record),
        "players": {SIDES[side]: name for side, name in record.players.items()},
        "ranks": {SIDES[side]: rank for side, rank in record.ranks.items() if rank},
        "first": SIDES[record.to_play],
        "xsize": record.xsize,
        "ysize": record.ysize,
        "rules": record.rules.to_json(),
        "rules_name": _rules_name(record.rules.name),
        "komi": record.komi,
        "handicap": list(record.handicap),
        "setup": {"black": list(record.black_setup), "white": list(record.white_setup)},
    }
    moves = [vertex for _, vertex in record.moves]
    return ReviewGame(facts, positions, moves, [SIDES[colour] for colour, _ in record.moves])


def _rules_name(name: str) -> str:
    """ "chinese" → "Chinese rules", "aga" → "AGA rules"; KataGo's shorthand stays as it is."""
    words = {"aga": "AGA", "aga-button": "AGA button", "chinese-ogs": "Chinese (OGS)", "new-zealand": "New Zealand"}
    return f"{words.get(name, name if name.startswith('ko') else name.title())} rules"


def _open_chess(record: Any) -> ReviewGame:
    positions = list(record.positions())
    facts = {
        **_common_facts(record),
        "date": record.date.replace(".", "-"),
        "result": "" if record.result == "*" else record.result,
        "players": {SIDES[side]: name for side, name in record.players.items()},
        "ranks": {SIDES[side]: str(rank) for side, rank in record.ranks.items() if rank},
        "first": SIDES[positions[0].to_play],
        "fen": positions[0].fen(),
        "chess960": bool(positions[0].chess960),
    }
    moves = list(record.moves)
    return ReviewGame(facts, positions, moves, [SIDES[p.to_play] for p in positions[: len(moves)]])


def _common_facts(record: Any) -> dict[str, Any]:
    return {
        "game": record.game,
        "source": Path(record.source).name if record.source else "",
        "index": record.index,
        "event": record.event,
        "date": record.date,
        "result": record.result,
        "comments": {str(number): text for number, text in _readable(record.comments).items()},
        "notes": list(record.notes),
    }


def _readable(comments: Mapping[int, str]) -> dict[int, str]:
    """Comments without the commands that PGN writers put into them ([%clk 0:01:00], [%eval 0.3])."""
    plain = {number: re.sub(r"\[%[^\]]*\]\s*", "", text).strip() for number, text in comments.items()}
    return {number: text for number, text in plain.items() if text}


def draw_board(game: str, position: Any) -> dict[str, Any]:
    """What a page needs to draw the position: Go `stones` and `ko`; chess `fen` and `check`."""
    if game == "chess":
        return _draw_chess(position)
    rows = ["".join(".BW"[stone] for stone in row) for row in position.stones.tolist()]
    board: dict[str, Any] = {"stones": "/".join(rows)}
    ko = int(position.board[0]["ko"])
    if ko:
        from keima.games.go.vertices import loc_to_vertex

        board["ko"] = loc_to_vertex(ko, position.xsize, position.ysize)
    return board


def _draw_chess(position: Any) -> dict[str, Any]:
    fen = position.fen()
    board: dict[str, Any] = {"fen": fen}
    if position.in_check:
        king = "k" if position.to_play == "b" else "K"
        for down, row in enumerate(fen.split(" ")[0].split("/")):
            squares = "".join("." * int(sign) if sign.isdigit() else sign for sign in row)
            if king in squares:
                board["check"] = f"{'abcdefgh'[squares.index(king)]}{8 - down}"
    return board


def san_names(position: Any, moves: list[str]) -> dict[str, str]:
    """UCI → standard algebraic notation of moves of a chess position; a move that is not legal is left out."""
    names = {}
    for move in moves:
        try:
            names[move] = position.san(move)
        except KeimaError:
            continue
    return names


def san_line(position: Any, moves: list[str]) -> list[str]:
    """Standard algebraic notation of successive moves from a chess position, as far as they are legal."""
    names = []
    for move in moves:
        try:
            names.append(position.san(move))
            position = position.play(move)
        except KeimaError:
            break
    return names


def game_title(facts: dict[str, Any]) -> str:
    """A one-line title of a game from its facts."""
    order = ("black", "white") if facts["game"] == "go" else ("white", "black")
    names = [facts["players"].get(side) or side.capitalize() for side in order]
    return f"{names[0]} against {names[1]}" + (f", {facts['date']}" if facts.get("date") else "")
