"""A worker's journal: every move of games that are not reported yet, so that no stop loses more than a search.

One JSON line a move, `{"n": game, "m": move, "k": kind, "v": Q or null, "g": network, "pm": [...], "pw": [...]}`, and
at a game's end `{"n": game, "end": [winner, result, reason]}`. Lines are handed to the operating system as they are
made, which keeps them whatever becomes of the process; a line that is not whole is that of a move not made.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from keima.atomic import replacing
from keima.errors import BadStore
from keima.games.playing import Verdict
from keima.plain import Data
from keima.training.selfplay.game import Ply

_ROOM = 1 << 22
"""Bytes of forgotten games from which on the file is written anew."""


@dataclass
class JournalGame:
    """What the journal knows of a game."""

    plies: list[Ply] = field(default_factory=list)
    verdict: Verdict | None = None
    lines: list[bytes] = field(default_factory=list)


class Journal:
    """The journal in a file, made if need be; `games` by number are those it holds.

    Raises:
        BadStore: it cannot be read or written, or is no journal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.games: dict[int, JournalGame] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._read(path.read_bytes() if path.exists() else b"")
            self._write_anew()
        except OSError as error:
            raise BadStore(f"cannot keep a journal: {error.strerror or error}", source=str(path)) from error

    def _read(self, data: bytes) -> None:
        for number, line in enumerate(data.split(b"\n")[:-1], 1):  # what follows the last line end is not whole
            try:
                fields = json.loads(line)
                game = self.games.setdefault(int(fields["n"]), JournalGame())
                if "end" in fields:
                    game.verdict = Verdict(*fields["end"])
                else:
                    game.plies.append(_ply(fields))
            except (ValueError, KeyError, TypeError) as error:
                raise BadStore(f"damaged: {error!r}", source=str(self.path), place=f"line {number}") from error
            game.lines.append(line)

    def _write_anew(self) -> None:
        with replacing(self.path) as stream:
            for game in self.games.values():
                stream.writelines(line + b"\n" for line in game.lines)
        self._stream = open(self.path, "ab", buffering=0)  # noqa: SIM115 (open as long as the journal is)
        self._dead = 0

    def add(self, number: int, ply: Ply) -> None:
        """Keep a move of a game."""
        found: Data = {"n": number, "m": ply.move, "k": ply.kind, "g": ply.network}
        found["v"] = None if math.isnan(ply.value) else ply.value
        if len(ply.moves):
            found |= {"pm": ply.moves.tolist(), "pw": ply.weights.tolist()}
        self._append(number, found).plies.append(ply)

    def end(self, number: int, verdict: Verdict) -> None:
        """Keep how a game ended."""
        self._append(number, {"n": number, "end": [verdict.winner, verdict.result, verdict.reason]}).verdict = verdict

    def _append(self, number: int, fields: Data) -> JournalGame:
        line = json.dumps(fields, separators=(",", ":")).encode()
        game = self.games.setdefault(number, JournalGame())
        try:
            before = self._stream.tell()
            if self._stream.write(line + b"\n") != len(line) + 1:
                self._stream.truncate(before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301
        except OSError as error:
            raise BadStore(f"cannot be written: {error.strerror or error}", source=str(self.path)) from error
        game.lines.append(line)
        return game

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop games that are reported. After a kill they may come back, and are reported again."""
        for number in numbers:
            game = self.games.pop(number, None)
            self._dead += sum(map(len, game.lines)) if game is not None else 0
        if self._dead > _ROOM:
            self._stream.close()
            self._write_anew()

    def close(self) -> None:
        """Write it anew without what is forgotten, and close it."""
        self._stream.close()
        self._write_anew()
        self._stream.close()

    def __iter__(self) -> Iterator[tuple[int, JournalGame]]:
        return iter(sorted(self.games.items()))


def _ply(fields: Data) -> Ply:
    value = math.nan if fields["v"] is None else float(fields["v"])
    moves, weights = np.array(fields.get("pm", ()), np.int16), np.array(fields.get("pw", ()), np.float32)
    return Ply(str(fields["m"]), int(fields["k"]), value, int(fields["g"]), moves, weights)
