"""Records and positions of unknown kind: whose they are, and the game that is wanted of them."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from dataclasses import dataclass, field
from itertools import islice

from keima.errors import BadRecord, KeimaError
from keima.games.files import game_of
from keima.games.game import GAMES, Game
from keima.games.positions import parse_json, parse_position
from keima.games.trees.editing import tree_of_position
from keima.games.trees.tree import GameTree
from keima.plain import Data, Note
from keima.web.messages import LARGEST_RECORD, BadMessage

LISTED = 200
"""Games of a file that are listed."""


@dataclass(frozen=True)
class Opened:
    """The game that was wanted, and what else stands beside it."""

    tree: GameTree
    index: int
    games: list[Data] = field(default_factory=list)  # index, title, error


def read_any(text: str | None, data: str | None, name: str, index: int) -> Opened:
    """Read what was pasted (`text`) or dropped (`data`, base64). Raises KeimaError: it is nothing that can be read."""
    if (text is None) == (data is None):
        raise BadMessage("text: exactly one of text and data is needed", "text")
    raw = text.encode("utf-8", "replace") if text is not None else _bytes(data or "")
    return read_bytes(raw, name, index)


def read_bytes(raw: bytes, name: str, index: int = 1) -> Opened:
    """Read the game of that number. Raises KeimaError."""
    if not raw.strip():
        raise BadRecord(Note("is empty", "error.empty"), source=name or None)
    start = raw.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] == b"{":
        return Opened(tree_of_position(parse_position(parse_json(raw.strip())).position), 1)
    games: list[Data] = []
    wanted: GameTree | None = None
    problem: KeimaError | None = None
    most = max(LISTED, index)
    for number, found in enumerate(islice(_game(raw, name).editing.trees(raw, name), most), 1):
        if isinstance(found, BadRecord):
            problem = problem or found
            games.append({"index": number, "title": name or "?", "error": str(found)})
            continue
        games.append({"index": number, "title": title(found)})
        if number == index:
            wanted = found
    if wanted is None:
        problem = BadRecord(games[index - 1]["error"]) if len(games) >= index else problem
        raise problem or BadRecord(
            Note("holds {n} games, not {index}", "error.nogames", n=len(games), index=index), source=name or None
        )
    return Opened(wanted, index, games[:LISTED])


def _bytes(data: str) -> bytes:
    try:
        raw = base64.b64decode(data, validate=True)
        if raw[:2] == b"\x1f\x8b":
            unpack = zlib.decompressobj(31)
            raw = unpack.decompress(raw, LARGEST_RECORD)
            if unpack.unconsumed_tail:
                raise BadMessage(
                    Note("data: unpacks to more than {most} MB", "error.large", most=LARGEST_RECORD >> 20), "data"
                )
    except (binascii.Error, ValueError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        if isinstance(error, KeimaError):
            raise
        raise BadMessage(f"data: {error}", "data") from None
    return raw


def _game(raw: bytes, name: str) -> Game:
    """Whose record it is: by what stands in it, else by its name. Raises BadRecord: nobody's."""
    text = raw[:100_000].decode("utf-8", "replace").removeprefix("\ufeff").strip()
    best = max(GAMES.values(), key=lambda game: game.editing.recognises(text))
    if best.editing.recognises(text):
        return best
    named = game_of(name)
    if named is None:
        kinds = ", ".join(game.records.name for game in GAMES.values())
        raise BadRecord(
            Note("is no game or position: neither {kinds} nor FEN nor JSON", "error.unknown", kinds=kinds),
            source=name or None,
        )
    return GAMES[named]


def title(tree: GameTree) -> str:
    """A line that tells one game from others: players, date, result."""
    names = [
        tree.players.get(letter) or side.capitalize()
        for letter, side in zip(tree.game.letters, tree.game.sides, strict=True)
    ]
    return ", ".join(filter(None, (f"{names[0]} – {names[1]}", tree.date, tree.result)))
