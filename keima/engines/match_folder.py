"""What a match leaves on disk: `match.json` (which match), `games.jsonl` (a line a game), one SGF or PGN a game.

A game's record is written whole, then its line is appended and forced to disk. A line cut off by a kill is dropped, and
its game played again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import IO, Any

from keima.atomic import replacing
from keima.engines.game import Ending
from keima.engines.openings import Opening
from keima.errors import BadRecord, BadRequest
from keima.games import chess, go


class MatchFolder:
    """The folder of one match; a context manager that keeps other processes out of it.

    Raises:
        BadRequest: it cannot be made, or holds another match.
    """

    def __init__(self, path: Path, description: Mapping[str, Any]) -> None:
        self.path = path
        self._suffix = ".sgf" if description["game"] == "go" else ".pgn"
        self._games: IO[bytes] | None = None
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._check(description)
        except OSError as error:
            raise BadRequest(f"cannot be written: {error.strerror or error}", source=str(path)) from error

    def __enter__(self) -> MatchFolder:
        file = (self.path / "games.jsonl").open("ab")
        try:
            _lock(file)
        except OSError:
            file.close()
            raise BadRequest("another process is playing this match", source=str(self.path)) from None
        self._games = file
        self._drop_torn_line()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._games is not None
        self._games.close()
        self._games = None

    def lines(self) -> list[dict[str, Any]]:
        """What is known of the games that have ended.

        Raises:
            BadRecord: a line that is no JSON object.
        """
        path = self.path / "games.jsonl"
        if not path.exists():
            return []
        found = []
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
            try:
                fields = json.loads(line)
                found.append({**fields, "seconds": tuple(fields["seconds"]), "notes": tuple(fields["notes"])})
            except (ValueError, TypeError, KeyError) as error:
                raise BadRecord("no game's line; remove it", source=str(path), place=f"line {number}") from error
        return found

    def keep(self, number: int, record: str, line: Mapping[str, Any]) -> None:
        """Write a game's record, then its line."""
        assert self._games is not None
        write_whole(self.path / f"{number:04d}{self._suffix}", record)
        self._games.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._games.flush()
        os.fsync(self._games.fileno())

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write `summary.json`."""
        write_whole(self.path / "summary.json", json.dumps(summary, ensure_ascii=False, indent=2) + "\n")

    def _check(self, description: Mapping[str, Any]) -> None:
        """Is this the match the folder holds? An empty folder is made its own."""
        path = self.path / "match.json"
        if not path.exists():
            write_whole(path, json.dumps(description, ensure_ascii=False, indent=2) + "\n")
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BadRequest("is no match's description; choose another folder", source=str(path)) from error
        for name in sorted({*found, *description}):
            if found.get(name) != description.get(name):
                raise BadRequest(
                    f"holds another match: {name} was {found.get(name)!r}, now {description.get(name)!r}; "
                    "choose another folder",
                    source=str(self.path),
                )

    def _drop_torn_line(self) -> None:
        """Cut off what follows the last newline."""
        path = self.path / "games.jsonl"
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)


def _lock(file: IO[bytes]) -> None:
    """Take the file for this process; freed when it is closed. Raises OSError where another has it."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows
        return
    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with replacing(path, "w") as stream:
        stream.write(text)


def record_text(number: int, names: Sequence[str], opening: Opening, ending: Ending) -> str:
    """The game as SGF or PGN; the reason of its end, faults and notes are in it.

    Args:
        number: the game's number in the match.
        names: who moved first, who second.
        opening: where it began.
        ending: how it went.
    """
    today = date.today().isoformat()
    end = "\n".join((f"{ending.result}: {ending.reason}", *ending.notes))
    if isinstance(ending.position, go.Position):
        return _sgf(number, names, opening, ending, today, end)
    from keima.games.chess.pgn import GameRecord, format_pgn

    position: chess.Position = ending.position
    headers = {
        "Event": "keima match",
        "Site": "?",
        "Date": today.replace("-", "."),
        "Round": str(number),
        "White": names[0],
        "Black": names[1],
        "Result": ending.result,
        "Opening": opening.name,
        "Termination": ending.reason,
    }
    record = GameRecord.of(position, headers, ending.result)
    comment = "\n".join(ending.notes).replace("{", "(").replace("}", ")")
    return format_pgn(GameRecord(record.start, record.line, headers, ending.result, comment))


def _sgf(number: int, names: Sequence[str], opening: Opening, ending: Ending, today: str, end: str) -> str:
    from keima.games.go.sgf import GameRecord, write_sgf

    position: go.Position = ending.position
    black = tuple(vertex for colour, vertex in position.setup if colour == "B")
    white = tuple(vertex for colour, vertex in position.setup if colour == "W")
    to_play = position.moves[0][0] if position.moves else position.to_play
    handicap = black if black and not white and to_play == "W" else ()
    comments = {0: f"keima match, game {number}, {opening.name}"}
    last = len(position.moves)
    comments[last] = "\n".join(filter(None, (comments.get(last), end)))
    record = GameRecord(
        xsize=position.xsize,
        ysize=position.ysize,
        rules=position.rules,
        komi=position.komi,
        handicap=handicap,
        black_setup=() if handicap else black,
        white_setup=white,
        to_play=to_play,
        moves=position.moves,
        result=ending.result,
        players={"B": names[0], "W": names[1]},
        date=today,
        event=f"keima match, game {number}",
        comments=comments,
    )
    return write_sgf(record)
