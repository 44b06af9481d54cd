"""What a match leaves on disk: `match.json` (which match), `games.jsonl` (a line a game), one record a game.

A game's record is written whole, then its line is appended and forced to disk. A line cut off by a kill is dropped, and
its game played again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import IO

from keima.atomic import replacing
from keima.engines.match.game import Ending
from keima.errors import BadRecord, BadRequest
from keima.games.game import GAMES
from keima.games.playing import Opening
from keima.games.records import PlayedGame
from keima.plain import Data


class MatchFolder:
    """The folder of one match; a context manager that keeps other processes out of it.

    Raises:
        BadRequest: it cannot be made, or holds another match.
    """

    def __init__(self, path: Path, description: Mapping[str, object]) -> None:
        self.path = path
        self._suffix = GAMES[str(description["game"])].suffixes[0]
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

    def lines(self) -> list[Data]:
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

    def keep(self, number: int, record: str, line: Mapping[str, object]) -> None:
        """Write a game's record, then its line."""
        assert self._games is not None
        write_whole(self.path / f"{number:04d}{self._suffix}", record)
        self._games.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._games.flush()
        os.fsync(self._games.fileno())

    def write_summary(self, summary: Mapping[str, object]) -> None:
        """Write `summary.json`."""
        write_whole(self.path / "summary.json", json.dumps(summary, ensure_ascii=False, indent=2) + "\n")

    def _check(self, description: Mapping[str, object]) -> None:
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


def record_text(number: int, names: tuple[str, str], opening: Opening, ending: Ending) -> str:
    """The game as a record; the reason of its end, faults and notes are in it.

    Args:
        number: the game's number in the match.
        names: who had the first side, who the second.
        opening: where it began.
        ending: how it went.
    """
    records = GAMES[ending.position.game].records
    today = date.today().isoformat()
    return records.write(
        records.of_game(
            PlayedGame(
                ending.position,
                names,
                ending.result,
                "keima match",
                number,
                opening.name,
                ending.reason,
                today,
                ending.notes,
            )
        )
    )
