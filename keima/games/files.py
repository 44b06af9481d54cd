"""Where game records lie: files, members of a `.zip`, whole folders.

Everything is read as a stream, so a file that unpacks to gigabytes costs no more memory than its longest game.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from keima.errors import BadRecord
from keima.games.game import GAMES
from keima.games.records import GameRecord
from keima.games.streams import READ_ERRORS, GameFile, reason_of


def game_of_file(file: GameFile) -> str:
    """Whose records a file holds, by the name's ending; those of the first of `GAMES` where that tells nothing."""
    return game_of(file.inner_name) or next(iter(GAMES))


def stem_of(file: GameFile) -> str:
    """The bare file name without folders and endings: `games/a.sgf.gz` → `a`."""
    name = file.inner_name.rsplit("/", 1)[-1]
    ending = next((suffix for suffix in sorted(suffixes(), key=len)[::-1] if name.lower().endswith(suffix)), "")
    return (name[: len(name) - len(ending)] if ending else re.sub(r"\.gz$", "", name, flags=re.I)) or "game"


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
            for found, record in enumerate(GAMES[game_of_file(file)].records.read(stream, file.name), 1):  # noqa: B007
                yield record
    except BadRecord as error:
        yield error.at(place=f"after game {found}") if found else error


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
        yield BadRecord(f"not a readable zip archive: {reason_of(error)}", source=str(path))
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
