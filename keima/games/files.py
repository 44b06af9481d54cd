"""Where game records and position lists lie: plain files, `.gz`, members of a `.zip`, whole folders, standard input.

Everything is read as a stream, so a file that unpacks to gigabytes costs no more memory than its longest game.
"""

from __future__ import annotations

import gzip
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from keima.errors import BadRecord
from keima.games.game import GAMES
from keima.games.records import GameRecord

STDIN = "-"
READ_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What the standard library raises for a file that is missing, truncated, corrupt or encrypted."""


@dataclass(frozen=True)
class GameFile:
    """One file of game records: on disk, or a member of a zip archive."""

    name: str  # what messages call it: the path, or `archive.zip!member`
    path: Path  # the file on disk
    member: str | None = None  # its name inside a zip archive, else None

    @property
    def game(self) -> str:
        """Whose records it holds, by the name's ending; those of the first of `GAMES` where that tells nothing."""
        return game_of(self._inner_name()) or next(iter(GAMES))

    @property
    def stem(self) -> str:
        """The bare file name without folders and endings: `games/a.sgf.gz` → `a`."""
        name = self._inner_name().rsplit("/", 1)[-1]
        ending = next((suffix for suffix in sorted(suffixes(), key=len)[::-1] if name.lower().endswith(suffix)), "")
        return (name[: len(name) - len(ending)] if ending else re.sub(r"\.gz$", "", name, flags=re.I)) or "game"

    def _inner_name(self) -> str:
        return str(self.path) if self.member is None else self.member

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The unpacked bytes as a stream.

        Raises:
            BadRecord: the file cannot be opened or unpacked (also while the stream is read).
        """
        try:
            with open_stream(self.path, self.member) as stream:
                yield stream
        except READ_ERRORS as error:
            raise BadRecord(f"cannot be read: {_reason(error)}", source=self.name) from error


def suffixes() -> tuple[str, ...]:
    """Endings of every game's record files, in lower case."""
    plain = [suffix for game in GAMES.values() for suffix in game.suffixes]
    return (*plain, *(f"{suffix}.gz" for suffix in plain))


def game_of(name: str) -> str | None:
    """The game whose record files end like this name; None where no game's do."""
    lower = name.lower().removesuffix(".gz")
    return next((game.name for game in GAMES.values() if lower.endswith(game.suffixes or ("\0",))), None)


def read_records(paths: Iterable[Path | str]) -> Iterator[GameRecord | BadRecord]:
    """The records of all games in files, archives and folders, in order, one after another as they are asked for.

    A game or file that cannot be read comes as a `BadRecord` naming file, game and line; the rest go on.
    """
    for file in find_game_files(paths):
        if isinstance(file, BadRecord):
            yield file
        else:
            yield from read_file(file)


def read_file(file: GameFile) -> Iterator[GameRecord | BadRecord]:
    """The records of one file; yields as `read_records`."""
    found = 0
    try:
        with file.open() as stream:
            for found, record in enumerate(GAMES[file.game].records.read(stream, file.name), 1):  # noqa: B007
                yield record
    except BadRecord as error:
        yield error.at(place=f"after game {found}") if found else error


@contextmanager
def open_stream(path: Path | str, member: str | None = None) -> Iterator[IO[bytes]]:
    """A binary stream of a file (or a zip member), unpacked if it is gzip by content; `-` is standard input."""
    if str(path) == STDIN:
        yield sys.stdin.buffer
    elif member is not None:
        with zipfile.ZipFile(path) as archive, archive.open(member) as packed, _unpacked(packed) as stream:
            yield stream
    else:
        with Path(path).open("rb") as packed, _unpacked(packed) as stream:
            yield stream


@contextmanager
def _unpacked(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    magic = stream.read(2)
    stream.seek(0)
    if magic == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=stream) as plain:
            yield plain  # type: ignore[misc]  # GzipFile reads like any binary stream
    else:
        yield stream


def find_game_files(paths: Iterable[Path | str]) -> Iterator[GameFile | BadRecord]:
    """Every game file named by `paths`: files as they are, folders searched through, zip archives opened.

    Within a folder or an archive those with an ending of some game's records, plain or .gz, in natural order (game2
    before game10). What cannot be opened comes as a `BadRecord`.
    """
    for path in map(Path, paths):
        if path.is_dir():
            inside = [p for p in path.rglob("*") if p.name.lower().endswith((*suffixes(), ".zip"))]
            if not inside:
                yield BadRecord(f"no {_named()} files in this folder", source=str(path))
            yield from find_game_files(sorted(inside, key=lambda p: _natural(str(p))))
        elif path.suffix.lower() == ".zip":
            yield from _zip_members(path)
        elif path.is_file():
            yield GameFile(str(path), path)
        else:
            yield BadRecord("no such file", source=str(path))


def _zip_members(path: Path) -> Iterator[GameFile | BadRecord]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if n.lower().endswith(suffixes())]
    except READ_ERRORS as error:
        yield BadRecord(f"not a readable zip archive: {_reason(error)}", source=str(path))
        return
    if not names:
        yield BadRecord(f"no {_named()} files in this archive", source=str(path))
    for name in sorted(names, key=_natural):
        yield GameFile(f"{path}!{name}", path, name)


def _named() -> str:
    """The endings in words: ".sgf or .pgn"."""
    *first, last = [suffix for game in GAMES.values() for suffix in game.suffixes]
    return f"{', '.join(first)} or {last}"


def _natural(name: str) -> list[tuple[int, str]]:
    """A sorting key under which game2 comes before game10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name.lower())]


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
