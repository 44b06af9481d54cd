"""Go in the JSON analysis protocol: KataGo's own fields (`docs/Analysis_Engine.md`, `cpp/command/analysis.cpp`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from keima.errors import KeimaError
from keima.games.analysis import Analysis, Fields, Move, QueryError, rounded, shown, side, whole
from keima.games.go import GAME
from keima.games.go.position import Position
from keima.games.go.rules import HANDICAP_BONUSES, Rules, check_komi
from keima.games.go.vertices import PASS, board_locs, vertex_to_xy, xy_to_vertex


class GoAnalysis(Analysis[Position]):
    """Board, rules, komi and stones in a query; points, a policy by points, and hashes in an answer."""

    fields = ("initialStones", "initialPlayer", "rules", "komi", "whiteHandicapBonus", "boardXSize", "boardYSize")
    has_points = True

    def start(self, fields: Fields) -> Position:
        """The board with `initialStones`; `initialPlayer`, else who moves first, else the usual side is to move."""
        size = _size(fields)
        named = {move.name: move.side for move in self._pairs(fields, "initialStones", size)}
        black, white = ([vertex for vertex, colour in named.items() if colour == each] for each in "BW")
        moves = self._pairs(fields, "moves", size)
        first = side(self, fields, "initialPlayer") if "initialPlayer" in fields else moves[0].side if moves else None
        rules, komi = _rules(fields)
        try:
            return Position.start(size, rules, komi, black=black, white=white, to_play=first)
        except KeimaError as error:
            raise QueryError("initialStones", str(error)) from error

    def moves(self, fields: Fields, start: Position) -> list[Move]:
        """Pairs of colour and vertex."""
        return self._pairs(fields, "moves", (start.xsize, start.ysize))

    def play(self, position: Position, move: Move) -> Position:
        """Moves out of turn and against the ko rules are made too, as in KataGo."""
        return position.play_as(move.side or position.to_play, move.name)

    def read_move(self, text: str, position: Position) -> str:
        """A vertex, KataGo's "(15,3)" counted from the top left, or "pass"."""
        return _read_vertex(text, position.xsize, position.ysize)

    def policy(self, position: Position, policy: Mapping[str, float]) -> list[float]:
        """Every point from the top left, row by row, then the pass; −1 where illegal."""
        xsize, ysize = position.xsize, position.ysize
        names = [xy_to_vertex(x, y, ysize) for y in range(ysize) for x in range(xsize)]
        return [rounded(policy[name]) if name in policy else -1.0 for name in (*names, PASS)]

    def hashes(self, position: Position) -> dict[str, str]:
        """Of stones, side to move and simple ko; `symHash` is the same for all reflections."""
        points = np.array(position.stones, np.int8)
        points[board_locs(position.xsize, position.ysize) == int(position.board[0]["ko"])] = 3
        turned = (points, points.T)
        reflections = [grid[::rows, ::columns] for grid in turned for rows in (1, -1) for columns in (1, -1)]
        hashes = [_hash(grid, position.to_play) for grid in reflections]
        return {"thisHash": hashes[0], "symHash": min(hashes)}

    def _pairs(self, fields: Fields, name: str, size: tuple[int, int]) -> list[Move]:
        """The [colour, vertex] pairs of a field; `moves` must be there, and may be passes."""
        message = 'Must be a list of pairs ["B" or "W", GTP vertex]'
        pairs = fields.get(name, None if name == "moves" else [])
        if not isinstance(pairs, list):
            raise QueryError(name, message)
        found = []
        for pair in pairs:
            if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
                raise QueryError(name, f"{message}, found {shown(pair)}")
            colour = self.sides.get(pair[0].lower())
            if colour is None:
                raise QueryError(name, f"Could not parse player: {pair[0][:20]}")
            try:
                vertex = _read_vertex(pair[1], *size)
            except KeimaError as error:
                raise QueryError(name, f"Could not parse board location: {pair[1][:20]}") from error
            if vertex == PASS and name != "moves":
                raise QueryError(name, "Could not parse board location: pass")
            found.append(Move(vertex, colour))
        return found


def _size(fields: Fields) -> tuple[int, int]:
    """(columns, rows)."""
    message = "Must be a whole number from 2 to 19"
    return whole(fields, "boardXSize", 2, 19, message), whole(fields, "boardYSize", 2, 19, message)


def _read_vertex(text: str, xsize: int, ysize: int) -> str:
    """A point as GTP writes it, or "pass". Raises `IllegalMove`."""
    text = text.strip()
    if text.lower() in (PASS, "pss"):
        return PASS
    if text.startswith("(") and text.endswith(")"):
        x, comma, y = text[1:-1].partition(",")
        if comma and _is_small(x) and _is_small(y) and int(x) < xsize and int(y) < ysize:
            return xy_to_vertex(int(x), int(y), ysize)
    x_y = vertex_to_xy(text, xsize, ysize)
    return PASS if x_y is None else xy_to_vertex(*x_y, ysize)


def _is_small(text: str) -> bool:
    return text.strip().isascii() and text.strip().isdecimal() and len(text.strip()) <= 2


def _rules(fields: Fields) -> tuple[Rules, float]:
    """Rules and komi."""
    written = fields.get("rules")
    if not isinstance(written, (str, dict)):
        raise QueryError("rules", 'Must be a name such as "chinese" or "tromp-taylor", or an object')
    try:
        rules, komi = Rules.parse_with_komi(written)
    except KeimaError as error:
        raise QueryError("rules", f"Could not parse rules: {error.message}") from error
    if "komi" in fields:
        try:
            komi = check_komi(cast(float, fields["komi"]))
        except KeimaError as error:
            raise QueryError("komi", "Must be a whole or half number from -400 to 400") from error
    if "whiteHandicapBonus" in fields:
        bonus = fields["whiteHandicapBonus"]
        if bonus not in HANDICAP_BONUSES:
            raise QueryError("whiteHandicapBonus", f'Must be "0", "N" or "N-1", found {shown(bonus)}')
        rules = replace(rules, white_handicap_bonus=bonus)
    return rules, komi


def _hash(points: NDArray[np.int8], to_play: str) -> str:
    digest = hashlib.blake2b(points.tobytes(), digest_size=16, person=b"keima")
    digest.update(f"{points.shape} {to_play}".encode())
    return digest.hexdigest().upper()


ANALYSIS = GoAnalysis(GAME.letters, GAME.sides)
