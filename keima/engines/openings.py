"""The positions games of a match begin from: built-in balanced openings, random moves, or a file's.

Two engines that always answer the same would play one game over and over; openings make games differ. `Openings.get`
depends on the seed and the index alone, so a match that was interrupted goes on with the openings it would have had.

Built-in: chess, 54 well-known lines (`chess_openings`). Go, up to the symmetries of the board each once before any
comes again: from 13×13 on, each side takes two corners at 4-4, 3-4, 4-3 or 3-3 (768 lines); on smaller boards one
stone each, not on the outer lines and not touching.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any

from keima.errors import BadRecord, BadRequest, KeimaError
from keima.games import chess, go
from keima.games.files import find_game_files
from keima.games.go.vertices import xy_to_vertex

BUILT_IN, START = "balanced", "none"
SOURCES = f"{BUILT_IN!r}, {START!r}, 'random:PLIES', or a file (.sgf, .pgn, or FENs, one a line)"
_LARGE = 13
_CORNER_POINTS = ((3, 3), (2, 3), (3, 2), (2, 2))
"""4-4, 3-4, 4-3 and 3-3, counted from the corner."""
_MOST_PLIES = 60


@dataclass(frozen=True)
class Opening:
    """Where a game begins.

    Attributes:
        name: what the record calls it.
        position: a `go.Position` or `chess.Position`, with the moves that led to it.
    """

    name: str
    position: Any


@dataclass(frozen=True)
class Openings:
    """An endless series of openings.

    Attributes:
        source: as the user named it.
        count: how many different ones; None where they are drawn at random.
        digest: tells one series from another.
        get: the opening of that index, from 0.
    """

    source: str
    count: int | None
    digest: str
    get: Callable[[int], Opening]


def load_openings(
    source: str, start: go.Position | chess.Position, *, seed: int = 0, plies: int | None = None
) -> Openings:
    """The openings of a match.

    Args:
        source: "balanced" (built-in), "none" (every game from `start`), "random:PLIES", or a file of SGF or PGN games,
            or FENs, one a line.
        start: the position games begin from, with the board, rules and komi to play under; records of other rules and
            komi are played under these.
        seed: of the order and of random moves.
        plies: moves taken of each game of a file; all of them if None.

    Raises:
        BadRequest: none of these sources.
        BadRecord: the file cannot be read or holds no opening that can be played on.
    """
    if source.startswith("random:"):
        return _random_openings(source, start, seed)
    if source == START:
        found = [Opening("start", start)]
    elif source == BUILT_IN:
        found = _go_openings(start, seed) if isinstance(start, go.Position) else _chess_openings(start)
    else:
        found = _file_openings(source, start, plies)
    order = list(range(len(found)))
    random.Random(f"openings {seed}").shuffle(order)
    digest = _digest(repr([(one.name, _identity(one.position)) for one in found]) + f" {seed}")
    return Openings(source, len(found), digest, lambda index: found[order[index % len(order)]])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _identity(position: Any) -> Any:
    return position.to_json() if isinstance(position, go.Position) else (position.fen(), position.moves)


def _random_openings(source: str, start: Any, seed: int) -> Openings:
    """Openings of so many random legal moves."""
    text = source.partition(":")[2]
    if not (text.isdecimal() and 1 <= int(text) <= _MOST_PLIES):
        raise BadRequest(f"openings {source!r}: expected random:PLIES with 1 to {_MOST_PLIES} plies")

    def get(index: int) -> Opening:
        rng = random.Random(f"random opening {seed} {index}")
        for _ in range(100):
            position = _random_moves(start, int(text), rng)
            if position is not None:
                return Opening(f"random {index + 1}", position)
        raise BadRequest(f"openings {source!r}: the game is over before that many moves; ask for fewer")

    return Openings(source, None, _digest(f"{source} {seed} {_identity(start)}"), get)


def _random_moves(start: Any, plies: int, rng: random.Random) -> Any | None:
    """The position after so many random moves without passes; None if the game ends before or there."""
    position = start
    for _ in range(plies):
        moves = [move for move in position.legal() if move != "pass"]
        if not moves or position.is_over:
            return None
        position = position.play(rng.choice(moves))
    return None if position.is_over else position


def _chess_openings(start: chess.Position) -> list[Opening]:
    """The built-in lines; only from the usual position."""
    from keima.engines.chess_openings import LINES

    if start.fen() != chess.Position.start().fen():
        raise BadRequest("the built-in openings begin from the usual position; choose --openings random:4 or none")
    openings = []
    for line in LINES.strip().splitlines():
        name, _, moves = line.partition(": ")
        position = start
        for san in moves.split():
            position = position.play(position.parse_san(san))
        openings.append(Opening(name, position))
    return openings


def _go_openings(start: go.Position, seed: int) -> list[Opening]:
    """The built-in lines on this board, one of each kind that symmetry makes alike, turned at random."""
    xsize, ysize = start.xsize, start.ysize
    if start.moves or start.setup:
        raise BadRequest("the built-in openings begin from an empty board; choose --openings random:4 or none")
    lines = _corner_lines(xsize, ysize) if min(xsize, ysize) >= _LARGE else _inner_lines(xsize, ysize)
    kinds: dict[tuple[tuple[int, int], ...], list[tuple[tuple[int, int], ...]]] = {}
    for line in lines:
        kinds.setdefault(min(_turned(line, xsize, ysize)), []).append(line)
    rng = random.Random(f"go openings {seed}")
    openings = []
    for number, kind in enumerate(sorted(kinds), 1):
        turned = rng.choice(sorted(_turned(kind, xsize, ysize)))
        vertices = [xy_to_vertex(x, y, ysize) for x, y in turned]
        openings.append(Opening(f"opening {number}", start.play(*vertices)))
    return openings or [Opening("start", start)]


def _turned(line: Sequence[tuple[int, int]], xsize: int, ysize: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """The line under every symmetry of the board."""
    for flip_x, flip_y, swap in product((0, 1), (0, 1), (0, 1) if xsize == ysize else (0,)):
        points = [(xsize - 1 - x if flip_x else x, ysize - 1 - y if flip_y else y) for x, y in line]
        yield tuple((y, x) if swap else (x, y) for x, y in points)


def _corner_lines(xsize: int, ysize: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Four moves, one in each corner, the first always in the same one."""
    corners = [(1, 0), (0, 0), (0, 1), (1, 1)]
    for others in permutations(corners[1:]):
        for points in product(_CORNER_POINTS, repeat=4):
            yield tuple(
                (xsize - 1 - x if right else x, ysize - 1 - y if low else y)
                for (right, low), (x, y) in zip((corners[0], *others), points, strict=True)
            )


def _inner_lines(xsize: int, ysize: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Two moves away from the edge that do not touch."""
    margin = 2 if min(xsize, ysize) >= 7 else 1 if min(xsize, ysize) >= 4 else 0
    points = list(product(range(margin, xsize - margin), range(margin, ysize - margin)))
    for first, second in product(points, repeat=2):
        if max(abs(first[0] - second[0]), abs(first[1] - second[1])) > 1:
            yield first, second


def _file_openings(path: str, start: Any, plies: int | None) -> list[Opening]:
    """The openings in a file."""
    if not Path(path).exists():
        raise BadRequest(f"openings {path!r}: no such file; choose {SOURCES}")
    if Path(path).suffix.lower() in (".fen", ".epd", ".txt"):
        found = list(_fen_openings(path, start))
    else:
        found = list(_record_openings(path, start, plies))
    if not found:
        raise BadRecord("holds no openings", source=path)
    return found


def _record_openings(path: str, start: Any, plies: int | None) -> Iterator[Opening]:
    """The first moves of each game of an SGF or PGN file."""
    game = "go" if isinstance(start, go.Position) else "chess"
    for file in find_game_files([path]):
        if isinstance(file, BadRecord):
            raise file
        if file.game != game:
            raise BadRecord(f"holds games of {file.game}; this match is {game}", source=file.name)
        if game == "go":
            from keima.games.go.sgf import read_sgf_file as read
        else:
            from keima.games.chess.pgn import read_pgn_file as read  # type: ignore[assignment]
        for number, record in enumerate(read(file), 1):
            if isinstance(record, BadRecord):
                raise record
            try:
                position = _replayed(record, start, plies)
            except KeimaError as error:
                raise BadRecord(error.message, source=file.name, place=f"game {number}") from error
            if position.is_over:
                raise BadRecord("the game is over; take fewer moves of it", source=file.name, place=f"game {number}")
            yield Opening(record.event or f"{file.stem} {number}", position)


def _replayed(record: Any, start: Any, plies: int | None) -> Any:
    """The position after the record's first moves, under the rules and komi of `start`."""
    moves = record.moves[:plies]
    if isinstance(start, chess.Position):
        return record.start.play(*moves)
    if (record.xsize, record.ysize) != (start.xsize, start.ysize):
        raise BadRecord(f"a board of {record.xsize}×{record.ysize}; this match's is {start.xsize}×{start.ysize}")
    black = (*record.handicap, *record.black_setup)
    return go.Position.from_moves(
        moves,
        size=(record.xsize, record.ysize),
        rules=start.rules,
        komi=start.komi,
        initial_stones=[*(("B", vertex) for vertex in black), *(("W", vertex) for vertex in record.white_setup)],
        to_play=None if moves else record.to_play,
    )


def _fen_openings(path: str, start: Any) -> Iterator[Opening]:
    """One FEN or EPD a line; empty lines and those that begin with # do not count."""
    if not isinstance(start, chess.Position):
        raise BadRecord("a list of FENs is for chess; this match is Go", source=path)
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecord(f"cannot be read: {error}", source=path) from error
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split(";")[0].split()
        clocks = fields[4:6] if len(fields) >= 6 and all(field.isdecimal() for field in fields[4:6]) else ["0", "1"]
        try:
            position = chess.Position.from_fen(" ".join(fields[:4] + clocks), chess960=start.chess960)
        except KeimaError as error:
            raise BadRecord(error.message, source=path, place=f"line {number}") from error
        if position.is_over:
            raise BadRecord("the game is over in this position", source=path, place=f"line {number}")
        yield Opening(f"line {number}", position)
