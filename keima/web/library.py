"""A folder of games: read in the background, searched by player, result, opening and words."""

from __future__ import annotations

import threading
from pathlib import Path

from keima.errors import BadRecord, BadRequest, KeimaError
from keima.games.files import find_game_files, game_of_file, read_file
from keima.games.game import GAMES
from keima.games.records import GameRecord
from keima.games.streams import GameFile
from keima.plain import Data, Note
from keima.web import messages as m

MOST_GAMES = 200_000
LARGEST = 64 << 20
"""Bytes of a file that is opened."""
OPENING = 12
"""Moves of a game that are told."""


class Library:
    """The games of a folder."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise BadRequest("no such folder", source=str(folder))
        self.folder = folder.resolve()
        self._games: list[Data] = []
        self._files: dict[str, GameFile] = {}
        self._seen: dict[str, float] = {}
        self.reading = True
        self._closed = False
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="library", daemon=True).start()

    def close(self) -> None:
        """Stop reading."""
        self._closed = True

    def _read(self) -> None:
        for file in find_game_files([self.folder]):
            if self._closed or len(self._games) >= MOST_GAMES:
                break
            if isinstance(file, BadRecord):
                continue
            name = self._name(file)
            self._files[name] = file
            if file.member is None and self._seen.get(name) == file.path.stat().st_mtime:
                continue
            self._seen[name] = file.path.stat().st_mtime
            for index, record in enumerate(read_file(file), 1):
                facts = _facts(name, index, game_of_file(file), record)
                with self._lock:
                    self._games.append(facts)
                if self._closed:
                    break
        self.reading = False

    def _name(self, file: GameFile) -> str:
        return file.name.removeprefix(str(self.folder)).lstrip("/\\")

    def find(self, request: m.Library) -> Data:
        """Games that match, in the order of the folder."""
        with self._lock:
            games = list(self._games)
        found = [game for game in games if _matches(game, request)]
        page = found[request.first : request.first + request.count]
        return {"games": page, "total": len(found), "reading": self.reading}

    def read(self, name: str) -> bytes:
        """A file's bytes. Raises BadRequest: it is none of the library's, or too large."""
        file = self._files.get(name)
        if file is None:
            raise BadRequest(Note("is no file of the library", "error.nolisted"), source=name[:80])
        try:
            with file.open() as stream:
                data = stream.read(LARGEST + 1)
        except KeimaError as error:
            raise BadRequest(error.words) from None
        if len(data) > LARGEST:
            raise BadRequest(Note("is larger than {most} MB", "error.largefile", most=LARGEST >> 20), source=name)
        return data


def _facts(name: str, index: int, game: str, record: GameRecord | BadRecord) -> Data:
    facts: Data = {"file": name, "index": index, "game": game}
    empty = {
        "title": name,
        "players": {},
        "ranks": {},
        "date": "",
        "event": "",
        "result": "",
        "moves": 0,
        "opening": "",
    }
    if isinstance(record, BadRecord):
        return {**facts, **empty, "error": str(record)}
    sides = GAMES[record.game]
    players = {sides.side(letter): text for letter, text in record.players.items()}
    names = [players.get(side) or side.capitalize() for side in sides.sides]
    return {
        **facts,
        "title": " – ".join(names),
        "players": players,
        "ranks": {sides.side(letter): text for letter, text in record.ranks.items() if text},
        "date": record.date,
        "event": record.event,
        "result": record.result,
        "moves": len(record.turns),
        "opening": " ".join(move for _, move in record.turns[:OPENING]),
    }


def _matches(game: Data, request: m.Library) -> bool:
    everything = " ".join((game["file"], game["event"], game["title"], game["date"])).lower()
    return (
        (not request.game or game["game"] == request.game)
        and all(word in everything for word in request.text.lower().split())
        and request.player.lower() in " ".join(game["players"].values()).lower()
        and game["result"].lower().startswith(request.result.lower())
        and game["opening"].lower().startswith(" ".join(request.opening.lower().split()))
    )
