"""The laws a game must keep: what everything above relies on. `keima.check_game` runs them; so do our own tests.

A law is checked along random games. A break raises `ConformanceError`, which names the law and the moves that led to
the counterexample. `position.py` and `kernels.py` a game must have; its other facets are checked where they are there.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

from keima.errors import BadRecord, BadRequest, ConformanceError, IllegalMove
from keima.games.game import Game, get_game, stack
from keima.games.kernels import NO_KEY, ONGOING
from keima.games.position import Position
from keima.games.records import GameRecord, PlayedGame
from keima.games.streams import GameFile
from keima.jit import Records

NONSENSE = ("", "?", "no such move", "\x00")
"""Names of no move in any game."""
LONGEST = 120
"""Moves after which a random game is left."""


def check_game(game: Game | str, games: int = 12, seed: int = 0) -> None:
    """Hold a game, or the one of that name, to the laws the rest of keima relies on, along random games.

    Raises:
        ConformanceError: a law is broken; the message names it and the moves that led there.
        BadRequest: no game of that name.
    """
    known = get_game(game) if isinstance(game, str) else game
    _check_names(known)
    for number in range(games):
        line = list(random_game(known.from_json({}), np.random.default_rng((seed, number))))
        for position in line:
            _check_position(known, position)
            _check_json(known, position)
        _check_kernels(known, line)
        last = line[-1]
        if has_facet(known, "records"):
            _check_records(known, last)
        if has_facet(known, "archive") and last.moves:
            _check_archive(known, line)
        if has_facet(known, "playing"):
            _check_playing(known, line)
        if has_facet(known, "drawing"):
            _law(_is_json(known.drawing.board(last)), "DRAWING.board is JSON", last)
        if has_facet(known, "analysis"):
            found = known.analysis.side(last)
            _law(found in known.analysis.sides.values(), "ANALYSIS names the side to move", last, found)


def random_game(start: Position, rng: np.random.Generator, longest: int = LONGEST) -> Iterator[Position]:
    """The positions of a random game, the first one included, until it is over or has so many moves."""
    yield start
    for _ in range(longest):
        if start.is_over:
            return
        legal = start.legal()
        start = start.play(legal[int(rng.integers(len(legal)))])
        yield start


def has_facet(game: Game, name: str) -> bool:
    """Has the game's folder that file?"""
    return find_spec(f"{game.package}.{name}") is not None


def _law(kept: object, law: str, position: Position, found: object = None) -> None:
    """Raise unless the law is kept, with the moves that led to the counterexample."""
    if not kept:
        seen = "" if found is None else f": {found!r:.200}"
        moves = " ".join(move if isinstance(move, str) else str(move) for move in position.moves)
        raise ConformanceError(f"{law}{seen}", source=position.game, place=f"after {moves or 'no move'}")


def _check_names(game: Game) -> None:
    start = game.from_json({})
    _law(start.game == game.name, "a position names its game", start, start.game)
    _law(start.to_play in game.letters, "the first to move is one of the letters", start, start.to_play)
    _law(len(set(game.letters)) == 2 and len(set(game.sides)) == 2, "the two sides differ", start, game.letters)
    _law(all(suffix.startswith(".") for suffix in game.suffixes), "suffixes begin with a dot", start, game.suffixes)


def _check_position(game: Game, position: Position) -> None:
    legal = position.legal()
    _law(position.to_play in game.letters, "the side to move is one of the letters", position, position.to_play)
    _law(len(set(legal)) == len(legal), "legal moves have different names", position, legal)
    _law(all(position.is_legal(move) for move in legal), "legal moves are legal by name", position, legal)
    _law(position.is_over == (position.result is not None), "a game has a result when it is over", position)
    _law(position.is_over or legal, "there is a legal move until the game is over", position)
    _law(not position.record.flags.writeable, "a position's record is read-only", position)
    _law(position.record.dtype == game.kernels.dtype, "a record is of the kernels' dtype", position)
    before, moves = position.record.tobytes(), position.moves
    for move in (*legal[:1], *legal[-1:]):
        if position.is_over:
            break
        after = position.play(move)
        _law(len(after.moves) == len(moves) + 1, "a move is added to the moves", after)
    _law(position.record.tobytes() == before and position.moves is moves, "play leaves a position as it is", position)
    for move in NONSENSE:
        _law(not position.is_legal(move), "a name of nothing is not legal", position, move)
        try:
            position.play(move)
        except IllegalMove:
            continue
        _law(False, "playing what names no move raises IllegalMove", position, move)


def _check_json(game: Game, position: Position) -> None:
    fields = position.to_json()
    _law(_is_json(fields), "to_json is JSON", position, fields)
    _law(fields.get("game", game.name) == game.name, "to_json names the game", position, fields)
    again = game.from_json(json.loads(json.dumps(fields)))
    _law(_same(again.record, position.record), "from_json(to_json) has the same record", position)
    _law(again.to_json() == fields, "from_json(to_json) is written alike", position, fields)
    _law(tuple(again.moves) == tuple(position.moves), "from_json(to_json) has the same moves", position)


def _check_kernels(game: Game, line: list[Position]) -> None:
    """Along a game, the kernels say what the positions say."""
    kernels = game.kernels
    scratch = kernels.new_scratch(line[0].record)[0]
    record = stack(line[:1])
    moves = np.empty(kernels.max_moves, np.int16)
    for position, following in zip(line, [*line[1:], None], strict=True):
        side = kernels.side(record[0])
        _law(0 <= side < 256 and kernels.other(kernels.other(side)) == side, "the sides' numbers", position, side)
        value, _ = kernels.result(record[0], scratch)
        _law(value in (-1, 0, 1, ONGOING), "a result is −1, 0, 1 or ONGOING", position, value)
        _law(not position.is_over or value != ONGOING, "a game that is over has a result in the kernels", position)
        if value == ONGOING:
            count = kernels.legal_moves(record[0], scratch, moves)
            names = [kernels.name(position, move, side) for move in moves[:count].tolist()]
            _law(sorted(names) == sorted(position.legal()), "kernels and position have the same moves", position, names)
            codes = [kernels.code(position, name) for name in names]
            _law(codes == moves[:count].tolist(), "code(name(move)) is the move", position, codes)
        if following is None:
            return
        for name in NONSENSE:
            _law(kernels.code(position, name) == -1, "a name of nothing has no code", position, name)
        _check_key(game, position, record)
        _play(game, record, scratch, position, following)
        _law(_same(record, following.record), "a kernel's record is the position's", following)


def _check_key(game: Game, position: Position, record: Records) -> None:
    """The key is the record's alone, and an untouched scratch gives the same one."""
    scratch = game.kernels.new_scratch(position.record)[0]
    first, again = (game.kernels.key(each[0], scratch, 0) for each in (record, position.record))
    _law(first == again, "equal records have equal keys", position, (first, again))
    _law(isinstance(int(first), int) and (first == NO_KEY or first > 0), "a key is a number of 64 bits", position)


def _play(game: Game, record: Records, scratch: object, position: Position, following: Position) -> None:
    """Make in a record the move that led from one position to the next."""
    kernels = game.kernels
    for name in position.legal():
        code = kernels.code(position, name)
        if _same(position.play(name).record, following.record):
            kernels.play(record[0], scratch, code)  # type: ignore[arg-type]
            return
    _law(False, "a position follows by one of the legal moves", following)


def _check_records(game: Game, position: Position) -> None:
    """A game played here comes back from its record."""
    result = position.result or "?"
    played = PlayedGame(position, ("A", "B [\\]"), result, "a check", 3, "begun", "ended so", "2026-01-31", ("noted",))
    record = game.records.of_game(played)
    text = game.records.write(record)
    found = list(game.records.read(BytesIO(text.encode())))
    _law(len(found) == 1 and not isinstance(found[0], BadRecord), "a record is read back", position, found)
    again = found[0]
    assert not isinstance(again, BadRecord)
    _law(again.turns == record.turns, "a record's moves come back", position, again.turns)
    _law(again.players == record.players, "a record's players come back", position, again.players)
    _law(dict(again.comments) == dict(record.comments), "a record's comments come back", position, again.comments)
    _law(_same(again.final().record, position.record), "a record ends in the same position", position)
    _law(len(list(again.positions())) == len(again.turns) + 1, "a position before and after every move", position)
    _check_stream(game, position, text)


def _check_stream(game: Game, position: Position, text: str) -> None:
    """Bytes that are no record raise nothing."""
    for data in (b"", b"\xff\xfe\x00", text.encode()[: len(text) // 2], text.encode() * 2):
        for record in game.records.read(BytesIO(data)):
            known = isinstance(record, BadRecord) or record.game == game.name
            _law(known, "reading gives records and BadRecords", position, record)


def _check_archive(game: Game, line: list[Position]) -> None:
    """A game goes through a store: every position of it comes back, with the move made there."""
    last, archive = line[-1], game.archive
    record: GameRecord = game.records.of_game(PlayedGame(last, ("A", "B"), last.result or "", "", 1, "", "", ""))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"game{game.suffixes[0]}"
        path.write_text(game.records.write(record), encoding="utf-8")
        chunks = archive.chunks([GameFile(str(path), path)], lambda _: None)
        read = [archive.read(chunk, None, 0) for chunk in chunks if chunk.pieces]
    _law([len(part.files) for part in read] == [1], "a record becomes a row of the store", last, read)
    stored = archive.flat([read[0].batch])
    turns = np.arange(len(line))
    chosen = np.zeros(len(line), np.int64)
    records = np.zeros(len(line), game.kernels.dtype)
    stored.replay(chosen, turns, records)
    for turn, position in enumerate(line):
        _law(_same(records[turn : turn + 1], position.record), "a stored game's positions come back", position)
    played = stored.next_moves(chosen[1:], turns[:-1])
    first = stored.first_to_move(chosen[1:], turns[:-1])
    for position, following, move, is_first in zip(line, line[1:], played.tolist(), first.tolist(), strict=False):
        name = game.kernels.name(position, move, game.kernels.side(position.record[0]))
        same = _same(position.play(name).record, following.record)
        _law(same, "a stored game's moves come back", following, name)
        _law(is_first == (position.to_play == game.letters[0]), "a stored game knows who is to move", position)


def _check_playing(game: Game, line: list[Position]) -> None:
    playing, last = game.playing, line[-1]
    start = playing.start()
    _law(start.game == game.name and not start.is_over, "a match begins", start)
    _law(playing.moves_to_come(last) > 0, "moves to come are more than 0", last)
    verdict = playing.outcome(last)
    _law(last.is_over or verdict is None, "no outcome before the end", last, verdict)
    _law(verdict is None or verdict.winner in (0, 1, None), "a winner is a side's number", last, verdict)
    for winner in (0, 1, None):
        _law(playing.result(winner), "a result in words", last, winner)
    try:
        openings = playing.openings(start, 0)
    except BadRequest:
        return
    keys = {opening.position.record.tobytes() for opening in openings}
    _law(len(keys) == len(openings), "openings differ", start, len(openings) - len(keys))
    _law(not any(opening.position.is_over for opening in openings), "openings leave a game to play", start)


def _same(one: Records, other: Records) -> bool:
    """Have two records the same fields? The room between fields may differ."""
    names = one.dtype.names
    if names is None:
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    return all(_same(one[name], other[name]) for name in names)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
