"""The positions games of a match begin from: built-in balanced openings, random moves, or a file's.

Two engines that always answer the same would play one game over and over; openings make games differ. `Openings.get`
depends on the seed and the index alone, so a match that was interrupted goes on with the openings it would have had.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from keima.errors import BadRecord, BadRequest, KeimaError
from keima.games.files import find_game_files, game_of_file, read_file, stem_of
from keima.games.game import GAMES
from keima.games.playing import Opening
from keima.games.position import Position

BUILT_IN, START = "balanced", "none"
SOURCES = f"{BUILT_IN!r}, {START!r}, 'random:PLIES', or a file of games or positions"
_MOST_PLIES = 60


@dataclass(frozen=True)
class Openings:
    """An endless series of openings.

    Attributes:
        count: how many different ones; None where they are drawn at random.
        digest: tells one series from another.
        get: the opening of that index, from 0.
    """

    count: int | None
    digest: str
    get: Callable[[int], Opening]


def load_openings(source: str, start: Position, *, seed: int = 0, plies: int | None = None) -> Openings:
    """The openings of a match.

    Args:
        source: "balanced" (built-in), "none" (every game from `start`), "random:PLIES", or a file: the game's records,
            or a list of positions, one a line, where the game knows such lists (FENs of chess).
        start: with the board and rules to play under, records of other rules too.
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
        found = GAMES[start.game].playing.openings(start, seed)
    else:
        found = _file_openings(source, start, plies)
    order = list(range(len(found)))
    random.Random(f"openings {seed}").shuffle(order)
    digest = _digest(repr([(one.name, one.position.to_json()) for one in found]) + f" {seed}")
    return Openings(len(found), digest, lambda index: found[order[index % len(order)]])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _random_openings(source: str, start: Position, seed: int) -> Openings:
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

    return Openings(None, _digest(f"{source} {seed} {start.to_json()}"), get)


def _random_moves(start: Position, plies: int, rng: random.Random) -> Position | None:
    """The position after so many random moves without passes; None if the game ends before or there."""
    position = start
    for _ in range(plies):
        moves = [move for move in position.legal() if move != "pass"]
        if not moves or position.is_over:
            return None
        position = position.play(rng.choice(moves))
    return None if position.is_over else position


def _file_openings(path: str, start: Position, plies: int | None) -> list[Opening]:
    if not Path(path).exists():
        raise BadRequest(f"openings {path!r}: no such file; choose {SOURCES}")
    suffix = Path(path).suffix.lower()
    listing = [game for game in GAMES.values() if suffix in game.playing.lists]
    if listing and start.game not in [game.name for game in listing]:
        raise BadRecord(f"a list of positions ({suffix}) is for {listing[0].title}, not this match's game", source=path)
    found = list(_listed_openings(path, start) if listing else _record_openings(path, start, plies))
    if not found:
        raise BadRecord("holds no openings", source=path)
    return found


def _record_openings(path: str, start: Position, plies: int | None) -> Iterator[Opening]:
    game = GAMES[start.game]
    for file in find_game_files([path]):
        if isinstance(file, BadRecord):
            raise file
        if (its := game_of_file(file)) != game.name:
            raise BadRecord(f"holds games of {its}; this match is {game.name}", source=file.name)
        for number, record in enumerate(read_file(file), 1):
            if isinstance(record, BadRecord):
                raise record
            try:
                position = game.playing.opening(record, start, plies)
            except KeimaError as error:
                raise BadRecord(error.message, source=file.name, place=f"game {number}") from error
            if position.is_over:
                raise BadRecord("the game is over; take fewer moves of it", source=file.name, place=f"game {number}")
            yield Opening(record.event or f"{stem_of(file)} {number}", position)


def _listed_openings(path: str, start: Position) -> Iterator[Opening]:
    """One position a line; empty lines and those that begin with # do not count."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecord(f"cannot be read: {error}", source=path) from error
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            try:
                yield Opening(f"line {number}", GAMES[start.game].playing.listed(line, start))
            except KeimaError as error:
                raise BadRecord(error.message, source=path, place=f"line {number}") from error
