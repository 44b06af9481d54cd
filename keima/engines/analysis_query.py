"""Queries of KataGo's JSON analysis protocol, read: one task for every position to search.

The fields and what they may hold are those of KataGo `docs/Analysis_Engine.md` and `cpp/command/analysis.cpp`; with
`"game": "chess"` a query has `fen`, `chess960` and UCI moves in place of board, stones, rules and komi
(`docs/analysis.md`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from keima.engines.analysis_settings import MOST_VISITS, Settings, apply_settings
from keima.errors import KeimaError

MOST_PRIORITY = (1 << 62) - 1
LONGEST_REPORT = 1e6
_INCLUDES = (
    "includeOwnership",
    "includeOwnershipStdev",
    "includeMovesOwnership",
    "includeMovesOwnershipStdev",
    "includePolicy",
    "includePVVisits",
    "includeNoResultValue",
)
_SIDES = ("boardXSize", "boardYSize")
_COLOURS = {"b": "B", "black": "B", "w": "W", "white": "W"}
_FIELDS = """
    id game moves analyzeTurns maxVisits rootPolicyTemperature rootFpuReductionMax analysisPVLen overrideSettings
    reportDuringSearchEvery firstReportDuringSearchAfter priority priorities avoidMoves allowMoves
"""
_FIELDS_OF_GO = "initialStones initialPlayer rules komi whiteHandicapBonus boardXSize boardYSize"
_COMMON_FIELDS = frozenset(_FIELDS.split()) | frozenset(_INCLUDES)
_GO_FIELDS = _COMMON_FIELDS | frozenset(_FIELDS_OF_GO.split())
_CHESS_FIELDS = _COMMON_FIELDS | {"fen", "chess960"}


class QueryError(Exception):
    """A query that cannot be carried out.

    Attributes:
        field: which of its fields is at fault.
        message: what is wrong.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@dataclass(frozen=True)
class Restriction:
    """Moves a player may not make, or the only ones it may, before some depth of the search.

    Attributes:
        player: "B" or "W".
        moves: GTP vertices and "pass", or UCI.
        depth: plies from the root; 1 is the root alone.
        allow: whether `moves` are the only ones allowed.
    """

    player: str
    moves: frozenset[str]
    depth: int
    allow: bool


@dataclass(frozen=True)
class Task:
    """One position of a query.

    Attributes:
        id: of the query.
        game: "go" or "chess".
        turn: how many of the query's moves were played.
        priority: the highest goes first.
        position: to be searched.
        settings: of the search and its answer.
        include: fields of the query that ask for more in the answer ("includePolicy", ...).
        restrictions: of the moves searched.
        report_first: seconds to the first report during the search; None: no reports.
        report_every: seconds between further ones.
    """

    id: str
    game: str
    turn: int
    priority: int
    position: Any
    settings: Settings
    include: frozenset[str] = frozenset()
    restrictions: tuple[Restriction, ...] = ()
    report_first: float | None = None
    report_every: float = LONGEST_REPORT

    @property
    def to_play(self) -> str:
        """The side to move: "B" or "W"."""
        return str(self.position.to_play).upper()

    @property
    def wants_ownership(self) -> bool:
        """Does the answer hold ownership averaged over the tree?"""
        return "includeOwnership" in self.include

    @property
    def is_restricted_below_root(self) -> bool:
        """Do the restrictions ask for more than the root? The side to move comes again at ply 2, the other at 1."""
        return any(r.depth > (2 if r.player == self.to_play else 1) for r in self.restrictions)

    def allowed_moves(self) -> list[str] | None:
        """The legal moves the restrictions leave at the root; None where there are no restrictions.

        Raises:
            QueryError: they leave none.
        """
        mine = [restriction for restriction in self.restrictions if restriction.player == self.to_play]
        if not mine:
            return None
        moves = self.position.legal()
        for restriction in mine:
            moves = [move for move in moves if (move in restriction.moves) == restriction.allow]
        if not moves:
            field = "allowMoves" if mine[0].allow else "avoidMoves"
            raise QueryError(field, f"leaves {self.to_play} no legal move on turn {self.turn}")
        return moves


@dataclass(frozen=True)
class Query:
    """A query read.

    Attributes:
        tasks: in the order of their turns.
        warnings: (field, message) pairs.
        idle: names of settings that do nothing here.
    """

    tasks: tuple[Task, ...]
    warnings: tuple[tuple[str, str], ...]
    idle: tuple[str, ...]


def read_query(fields: Mapping[str, Any], identity: str, defaults: Settings) -> Query:
    """The tasks of a query.

    Args:
        fields: the JSON object.
        identity: its id.
        defaults: what holds where it says nothing.

    Raises:
        QueryError: a field is missing, of the wrong kind or out of range, or a move is illegal.
    """
    game = fields.get("game", "go")
    if game not in ("go", "chess"):
        raise QueryError("game", f'Must be "go" or "chess", found {_shown(game)}')
    settings, warnings, idle = _settings(fields, defaults)
    record = _go_record(fields) if game == "go" else _chess_record(fields)
    turns = _turns(fields, record.length)
    priorities = _priorities(fields, turns)
    first, every = _reports(fields)
    restrictions = _restrictions(fields, record.read_move)
    if defaults.warn_unused:
        known = _GO_FIELDS if game == "go" else _CHESS_FIELDS
        warnings += [(name, "Unexpected or unused field, perhaps mistyped") for name in fields if name not in known]
    include = frozenset(name for name in _INCLUDES if _flag(fields, name))
    common = Task(identity, str(game), 0, 0, None, settings, include, restrictions, first, every)
    positions = record.positions(set(turns))
    tasks = tuple(
        replace(common, turn=turn, priority=priorities.get(turn, 0), position=positions[turn])
        for turn in sorted(set(turns))
    )
    if any(task.is_restricted_below_root for task in tasks):
        field = "allowMoves" if restrictions[0].allow else "avoidMoves"
        warnings.append((field, "Moves are restricted at the root only, whatever untilDepth says"))
    return Query(tasks, tuple(warnings), idle)


@dataclass(frozen=True)
class _Record:
    """A game as a query gives it.

    Attributes:
        start: the position before the first move.
        length: how many moves.
        play: the position after one more move, by its number.
        read_move: a move's name as answers write it; raises KeimaError.
    """

    start: Any
    length: int
    play: Callable[[Any, int], Any]
    read_move: Callable[[str], str]

    def positions(self, turns: set[int]) -> dict[int, Any]:
        """The positions on some turns; every move is played, so that an illegal one is never passed over."""
        position = self.start
        found = {0: position} if 0 in turns else {}
        for turn in range(self.length):
            position = self.play(position, turn)
            if turn + 1 in turns:
                found[turn + 1] = position
        return found


def _go_record(fields: Mapping[str, Any]) -> _Record:
    """Board, rules, stones and moves of a Go query."""
    from keima.games.go.position import Position

    xsize, ysize = (_whole(fields, name, 2, 19, "Must be a whole number from 2 to 19") for name in _SIDES)

    def read_move(text: str) -> str:
        return _read_vertex(text, xsize, ysize)

    placed = {vertex: colour for colour, vertex in _pairs(fields, "initialStones", read_move, False)}
    moves = _pairs(fields, "moves", read_move, True)
    first = _player(fields, "initialPlayer") if "initialPlayer" in fields else None
    rules, komi = _rules(fields)
    try:
        start = Position.start(
            (xsize, ysize),
            rules,
            komi,
            black=[vertex for vertex, colour in placed.items() if colour == "B"],
            white=[vertex for vertex, colour in placed.items() if colour == "W"],
            to_play=first or (moves[0][0] if moves else None),
        )
    except KeimaError as error:
        raise QueryError("initialStones", str(error)) from error

    def play(position: Any, turn: int) -> Any:
        colour, vertex = moves[turn]
        try:
            return position.play_as(colour, vertex)
        except KeimaError as error:
            raise QueryError("moves", f"Illegal move {turn}: {vertex}: {error.message}") from error

    return _Record(start, len(moves), play, read_move)


def _read_vertex(text: str, xsize: int, ysize: int) -> str:
    """A point as GTP writes it, from GTP's "Q16", KataGo's "(15,3)" counted from the top left, or "pass".

    Raises:
        KeimaError: it names no point of the board.
    """
    from keima.games.go.vertices import vertex_to_xy, xy_to_vertex

    text = text.strip()
    if text.lower() in ("pass", "pss"):
        return "pass"
    if text.startswith("(") and text.endswith(")"):
        x, comma, y = text[1:-1].partition(",")
        if comma and _is_small(x) and _is_small(y) and int(x) < xsize and int(y) < ysize:
            return xy_to_vertex(int(x), int(y), ysize)
    x_y = vertex_to_xy(text, xsize, ysize)
    return "pass" if x_y is None else xy_to_vertex(*x_y, ysize)


def _is_small(text: str) -> bool:
    return text.strip().isascii() and text.strip().isdecimal() and len(text.strip()) <= 2


def _pairs(
    fields: Mapping[str, Any], name: str, read_move: Callable[[str], str], needed: bool
) -> list[tuple[str, str]]:
    """(colour, vertex) pairs of a field."""
    message = 'Must be a list of pairs ["B" or "W", GTP vertex]'
    pairs = fields.get(name, None if needed else [])
    if not isinstance(pairs, list):
        raise QueryError(name, message)
    found = []
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise QueryError(name, f"{message}, found {_shown(pair)}")
        colour = _COLOURS.get(pair[0].lower())
        if colour is None:
            raise QueryError(name, f"Could not parse player: {pair[0][:20]}")
        vertex = _location(name, pair[1], read_move)
        if vertex == "pass" and not needed:
            raise QueryError(name, "Could not parse board location: pass")
        found.append((colour, vertex))
    return found


def _location(field: str, text: str, read_move: Callable[[str], str]) -> str:
    try:
        return read_move(text)
    except KeimaError as error:
        raise QueryError(field, f"Could not parse board location: {text[:20]}") from error


def _player(fields: Mapping[str, Any], name: str) -> str:
    written = fields.get(name)
    colour = _COLOURS.get(written.lower()) if isinstance(written, str) else None
    if colour is None:
        raise QueryError(name, 'Must be "B" or "W"')
    return colour


def _rules(fields: Mapping[str, Any]) -> tuple[Any, float]:
    """Rules and komi of a Go query."""
    from keima.games.go.rules import HANDICAP_BONUSES, Rules, check_komi

    written = fields.get("rules")
    if not isinstance(written, (str, dict)):
        raise QueryError("rules", 'Must be a name such as "chinese" or "tromp-taylor", or an object')
    try:
        rules, komi = Rules.parse_with_komi(written)
    except KeimaError as error:
        raise QueryError("rules", f"Could not parse rules: {error.message}") from error
    if "komi" in fields:
        try:
            komi = check_komi(fields["komi"])
        except KeimaError as error:
            raise QueryError("komi", "Must be a whole or half number from -400 to 400") from error
    if "whiteHandicapBonus" in fields:
        bonus = fields["whiteHandicapBonus"]
        if bonus not in HANDICAP_BONUSES:
            raise QueryError("whiteHandicapBonus", f'Must be "0", "N" or "N-1", found {_shown(bonus)}')
        rules = replace(rules, white_handicap_bonus=bonus)
    return rules, komi


def _chess_record(fields: Mapping[str, Any]) -> _Record:
    """Start and moves of a chess query."""
    from keima.games.chess.position import Position

    fen = fields.get("fen")
    if not (fen is None or isinstance(fen, str)):
        raise QueryError("fen", "Must be a FEN, or null for the initial position")
    moves = fields.get("moves", [])
    if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
        raise QueryError("moves", "Must be a list of UCI moves")
    try:
        start = Position.from_fen(fen, chess960=_flag(fields, "chess960"))
    except KeimaError as error:
        raise QueryError("fen", error.message) from error

    def play(position: Any, turn: int) -> Any:
        try:
            return position.play(moves[turn])
        except KeimaError as error:
            raise QueryError("moves", f"Illegal move {turn}: {moves[turn][:20]}: {error.message}") from error

    return _Record(start, len(moves), play, str)


def _settings(fields: Mapping[str, Any], defaults: Settings) -> tuple[Settings, list[tuple[str, str]], tuple[str, ...]]:
    """The settings of a query, warnings about them, and those that do nothing here."""
    changes = fields.get("overrideSettings", {})
    if not isinstance(changes, dict):
        raise QueryError("overrideSettings", "Must be an object")
    try:
        applied = apply_settings(defaults, changes)
    except KeimaError as error:
        raise QueryError("overrideSettings", f"Could not set settings: {error.message}") from error
    warnings = []
    if applied.unknown:
        warnings.append(("overrideSettings", f"Unknown config params: {','.join(applied.unknown)}"))
    settings = applied.settings
    if "maxVisits" in fields:
        message = "Must be a whole number from 1 to 2^50"
        settings = replace(settings, visits=min(_whole(fields, "maxVisits", 1, 1 << 50, message), MOST_VISITS))
    if "analysisPVLen" in fields:
        message = "Must be a whole number from 1 to 1000"
        settings = replace(settings, pv_length=_whole(fields, "analysisPVLen", 1, 1000, message))
    if "rootFpuReductionMax" in fields:
        settings = settings.with_parameters({"root_fpu_reduction": _number(fields, "rootFpuReductionMax", 0.0, 2.0)})
    if "rootPolicyTemperature" in fields:
        temperature = _number(fields, "rootPolicyTemperature", 0.01, 100.0)
        settings = settings.with_parameters({"root_policy_temperature": temperature})
    return settings, warnings, applied.idle


def _turns(fields: Mapping[str, Any], length: int) -> list[int]:
    """The turns to analyse, as the query lists them."""
    if "analyzeTurns" not in fields:
        return [length]
    turns = fields["analyzeTurns"]
    if not _are_whole(turns):
        raise QueryError("analyzeTurns", "Must be a list of whole numbers, the turns to analyze")
    for turn in turns:
        if not 0 <= turn <= length:
            raise QueryError("analyzeTurns", f"Invalid turn number: {_shown(turn)}")
    return list(turns)


def _priorities(fields: Mapping[str, Any], turns: list[int]) -> dict[int, int]:
    """Each turn's priority."""
    if "priorities" not in fields:
        if "priority" not in fields:
            return {}
        message = "Must be a whole number between -2^62 and 2^62"
        return dict.fromkeys(turns, _whole(fields, "priority", -MOST_PRIORITY, MOST_PRIORITY, message))
    if "priority" in fields:
        raise QueryError("priority", "Cannot specify both priority and priorities")
    priorities = fields["priorities"]
    if not _are_whole(priorities):
        raise QueryError("priorities", "Must be a list of whole numbers")
    if "analyzeTurns" not in fields:
        raise QueryError("priorities", "Can only be given together with analyzeTurns")
    if len(priorities) != len(turns):
        raise QueryError("priorities", "Must be of the same length as analyzeTurns")
    for priority in priorities:
        if abs(priority) > MOST_PRIORITY:
            raise QueryError("priorities", f"Invalid priority: {_shown(priority)}")
    return dict(zip(turns, priorities, strict=True))


def _reports(fields: Mapping[str, Any]) -> tuple[float | None, float]:
    """Seconds to the first report during a search (None: no reports), and between further ones."""
    every = first = None
    if "reportDuringSearchEvery" in fields:
        first = every = _number(fields, "reportDuringSearchEvery", 0.001, LONGEST_REPORT)
    if "firstReportDuringSearchAfter" in fields:
        first = _number(fields, "firstReportDuringSearchAfter", 0.001, LONGEST_REPORT)
    return first, LONGEST_REPORT if every is None else every


def _restrictions(fields: Mapping[str, Any], read_move: Callable[[str], str]) -> tuple[Restriction, ...]:
    """What avoidMoves or allowMoves say."""
    field = "allowMoves" if "allowMoves" in fields else "avoidMoves"
    if field not in fields:
        return ()
    if "allowMoves" in fields and "avoidMoves" in fields:
        raise QueryError("allowMoves", "Cannot specify both allowMoves and avoidMoves")
    entries, allow = fields[field], field == "allowMoves"
    message = "Must be a list of objects with 'player', 'moves', 'untilDepth'"
    if not isinstance(entries, list):
        raise QueryError(field, message)
    found = []
    for entry in entries:
        if not (isinstance(entry, dict) and {"player", "moves", "untilDepth"} <= set(entry)):
            raise QueryError(field, message)
        moves = entry["moves"]
        if not (isinstance(moves, list) and all(isinstance(move, str) for move in moves)):
            raise QueryError("moves", "Must be a list of moves")
        names = frozenset(_location("moves", move, read_move) for move in moves)
        depth = _whole(entry, "untilDepth", 1, 10**9, "Must be a whole number above 0")
        found.append(Restriction(_player(entry, "player"), names, depth, allow))
    players = [restriction.player for restriction in found]
    if allow and len(set(players)) < len(players):
        raise QueryError(field, "Cannot specify allowMoves more than once for the same player")
    return tuple(found)


def _whole(fields: Mapping[str, Any], name: str, least: int, most: int, message: str) -> int:
    number: Any = fields.get(name)
    if not _is_whole(number) or not least <= number <= most:
        raise QueryError(name, f"{message}, found {_shown(number)}")
    return int(number)


def _number(fields: Mapping[str, Any], name: str, least: float, most: float) -> float:
    number = fields[name]
    wrong = isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number)
    if wrong or not least <= number <= most:
        raise QueryError(name, f"Must be a number from {least:g} to {most:g}, found {_shown(number)}")
    return float(number)


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    flag = fields.get(name, False)
    if not isinstance(flag, bool):
        raise QueryError(name, f"Must be true or false, found {_shown(flag)}")
    return flag


def _is_whole(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _are_whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(map(_is_whole, numbers))


def _shown(value: Any) -> str:
    """A value as JSON, short enough for a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_turn_numbers(fields: Mapping[str, Any]) -> frozenset[int] | None:
    """The turns a terminate action is about; None: all.

    Raises:
        QueryError: `turnNumbers` is no list of whole numbers.
    """
    if "turnNumbers" not in fields:
        return None
    turns: Iterable[int] = fields["turnNumbers"]
    if not _are_whole(turns):
        raise QueryError("turnNumbers", "Must be a list of whole numbers, the turns to terminate")
    return frozenset(turns)
