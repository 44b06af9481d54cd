"""Queries of KataGo's JSON analysis protocol, read: one task for every position to search.

The fields and what they may hold are those of KataGo `docs/Analysis_Engine.md` and `cpp/command/analysis.cpp`; those
that describe a position are the game's (`keima.games.analysis`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from keima.engines.analysis.settings import MOST_VISITS, Settings, apply_settings
from keima.errors import KeimaError
from keima.games.analysis import Analysis, Fields, Move, QueryError, flag, is_whole, number, shown, side, whole
from keima.games.game import GAMES
from keima.games.position import Position

MOST_PRIORITY = (1 << 62) - 1
LONGEST_REPORT = 1e6
_INCLUDES = """
    includeOwnership includeOwnershipStdev includeMovesOwnership includeMovesOwnershipStdev includePolicy
    includePVVisits includeNoResultValue
"""
_FIELDS = """
    id game moves analyzeTurns maxVisits rootPolicyTemperature rootFpuReductionMax analysisPVLen overrideSettings
    reportDuringSearchEvery firstReportDuringSearchAfter priority priorities avoidMoves allowMoves
"""
_NUMBERS = (
    ("rootFpuReductionMax", "root_fpu_reduction", 0.0, 2.0),
    ("rootPolicyTemperature", "root_policy_temperature", 0.01, 100.0),
)
_COMMON_FIELDS = frozenset(_FIELDS.split() + _INCLUDES.split())


@dataclass(frozen=True)
class Restriction:
    """Moves a player (as answers name it) may not make, or with `allow` the only ones it may.

    It holds for `depth` plies from the root; 1 is the root alone.
    """

    player: str
    moves: frozenset[str]
    depth: int
    allow: bool


@dataclass(frozen=True)
class Task:
    """One position of a query.

    Attributes:
        turn: how many of the query's moves were played.
        priority: the highest goes first.
        include: fields of the query that ask for more in the answer ("includePolicy", ...).
        report_first, report_every: seconds to the first report during the search (None: no reports), between others.
    """

    id: str
    game: Analysis[Any]
    turn: int
    priority: int
    position: Position
    settings: Settings
    include: frozenset[str] = frozenset()
    restrictions: tuple[Restriction, ...] = ()
    report_first: float | None = None
    report_every: float = LONGEST_REPORT

    @property
    def to_play(self) -> str:
        """The side to move, as answers name it."""
        return self.game.side(self.position)

    @property
    def wants_ownership(self) -> bool:
        """Does the answer hold ownership averaged over the tree?"""
        return "includeOwnership" in self.include

    @property
    def is_restricted_below_root(self) -> bool:
        """Do the restrictions ask for more than the root? The side to move comes again at ply 2, the other at 1."""
        return any(r.depth > (2 if r.player == self.to_play else 1) for r in self.restrictions)

    def allowed_moves(self) -> list[str] | None:
        """The legal moves the restrictions leave at the root; None without any. Raises QueryError: they leave none."""
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
    """A query read: tasks in the order of their turns, warnings (field, message), settings that do nothing here."""

    tasks: tuple[Task, ...]
    warnings: tuple[tuple[str, str], ...]
    idle: tuple[str, ...]


def read_query(fields: Fields, identity: str, defaults: Settings) -> Query:
    """A query's tasks; `defaults` hold where it says nothing. Raises QueryError: of what a field cannot hold."""
    game = _game(fields)
    settings, warnings, idle = _settings(fields, defaults)
    start = game.start(fields)
    moves = game.moves(fields, start)
    turns = _turns(fields, len(moves))
    priorities = _priorities(fields, turns)
    first, every = _reports(fields)
    restrictions = _restrictions(fields, game, start)
    if defaults.warn_unused:
        known = _COMMON_FIELDS.union(game.fields)
        warnings += [(name, "Unexpected or unused field, perhaps mistyped") for name in fields if name not in known]
    include = frozenset(name for name in _INCLUDES.split() if flag(fields, name))
    tasks = []
    for turn, position in enumerate(_positions(game, start, moves)):
        if turn in turns:
            priority = priorities.get(turn, 0)
            tasks.append(Task(identity, game, turn, priority, position, settings, include, restrictions, first, every))
    if any(task.is_restricted_below_root for task in tasks):
        field = "allowMoves" if restrictions[0].allow else "avoidMoves"
        warnings.append((field, "Moves are restricted at the root only, whatever untilDepth says"))
    return Query(tuple(tasks), tuple(warnings), idle)


def _positions(game: Analysis[Any], position: Position, moves: list[Move]) -> Iterator[Position]:
    """Every position, so that an illegal move is never passed over."""
    yield position
    for index, move in enumerate(moves):
        try:
            position = game.play(position, move)
        except KeimaError as error:
            raise QueryError("moves", f"Illegal move {index}: {move.name[:20]}: {error.message}") from error
        yield position


def _game(fields: Fields) -> Analysis[Any]:
    """The game a query is about; the protocol's own where it does not say."""
    name = fields.get("game", next(iter(GAMES)))
    if not isinstance(name, str) or name not in GAMES:
        known = [f'"{one}"' for one in GAMES]
        raise QueryError("game", f"Must be {', '.join(known[:-1])} or {known[-1]}, found {shown(name)}")
    return GAMES[name].analysis


def _settings(fields: Fields, defaults: Settings) -> tuple[Settings, list[tuple[str, str]], tuple[str, ...]]:
    """The settings of a query, warnings about them, and those that do nothing here."""
    changes = fields.get("overrideSettings", {})
    if not isinstance(changes, dict):
        raise QueryError("overrideSettings", "Must be an object")
    try:
        applied = apply_settings(defaults, changes)
    except KeimaError as error:
        raise QueryError("overrideSettings", f"Could not set settings: {error.message}") from error
    unknown = f"Unknown config params: {','.join(applied.unknown)}"
    warnings = [("overrideSettings", unknown)] if applied.unknown else []
    settings = applied.settings
    message = "Must be a whole number from 1 to"
    if "maxVisits" in fields:
        visits = whole(fields, "maxVisits", 1, 1 << 50, f"{message} 2^50")
        settings = replace(settings, visits=min(visits, MOST_VISITS))
    if "analysisPVLen" in fields:
        settings = replace(settings, pv_length=whole(fields, "analysisPVLen", 1, 1000, f"{message} 1000"))
    for name, parameter, least, most in _NUMBERS:
        if name in fields:
            settings = settings.with_parameters({parameter: number(fields, name, least, most)})
    return settings, warnings, applied.idle


def _turns(fields: Fields, length: int) -> list[int]:
    if "analyzeTurns" not in fields:
        return [length]
    turns = _whole_numbers(fields, "analyzeTurns", "Must be a list of whole numbers, the turns to analyze")
    for turn in turns:
        if not 0 <= turn <= length:
            raise QueryError("analyzeTurns", f"Invalid turn number: {shown(turn)}")
    return turns


def _priorities(fields: Fields, turns: list[int]) -> dict[int, int]:
    if "priorities" not in fields:
        if "priority" not in fields:
            return {}
        message = "Must be a whole number between -2^62 and 2^62"
        return dict.fromkeys(turns, whole(fields, "priority", -MOST_PRIORITY, MOST_PRIORITY, message))
    if "priority" in fields:
        raise QueryError("priority", "Cannot specify both priority and priorities")
    priorities = _whole_numbers(fields, "priorities", "Must be a list of whole numbers")
    if "analyzeTurns" not in fields:
        raise QueryError("priorities", "Can only be given together with analyzeTurns")
    if len(priorities) != len(turns):
        raise QueryError("priorities", "Must be of the same length as analyzeTurns")
    for priority in priorities:
        if abs(priority) > MOST_PRIORITY:
            raise QueryError("priorities", f"Invalid priority: {shown(priority)}")
    return dict(zip(turns, priorities, strict=True))


def _reports(fields: Fields) -> tuple[float | None, float]:
    """Seconds to the first report during a search (None: no reports), and between further ones."""
    every = first = None
    if "reportDuringSearchEvery" in fields:
        first = every = number(fields, "reportDuringSearchEvery", 0.001, LONGEST_REPORT)
    if "firstReportDuringSearchAfter" in fields:
        first = number(fields, "firstReportDuringSearchAfter", 0.001, LONGEST_REPORT)
    return first, LONGEST_REPORT if every is None else every


def _restrictions(fields: Fields, game: Analysis[Any], start: Position) -> tuple[Restriction, ...]:
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
        names = frozenset(_location(move, game, start) for move in moves)
        depth = whole(entry, "untilDepth", 1, 10**9, "Must be a whole number above 0")
        found.append(Restriction(side(game, entry, "player"), names, depth, allow))
    players = [restriction.player for restriction in found]
    if allow and len(set(players)) < len(players):
        raise QueryError(field, "Cannot specify allowMoves more than once for the same player")
    return tuple(found)


def _location(text: str, game: Analysis[Any], start: Position) -> str:
    try:
        return game.read_move(text, start)
    except KeimaError as error:
        raise QueryError("moves", f"Could not parse board location: {text[:20]}") from error


def _whole_numbers(fields: Fields, name: str, message: str) -> list[int]:
    numbers = fields[name]
    if not isinstance(numbers, list) or not all(map(is_whole, numbers)):
        raise QueryError(name, message)
    return numbers


def read_turn_numbers(fields: Fields) -> frozenset[int] | None:
    """The turns a terminate action is about; None: all. Raises QueryError: no list of whole numbers."""
    if "turnNumbers" not in fields:
        return None
    return frozenset(_whole_numbers(fields, "turnNumbers", "Must be a list of whole numbers, the turns to terminate"))
