"""A second opinion: another program that judges every position of a game, by the protocol its players speak."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from keima.errors import BadRequest
from keima.games.game import GAMES, Game
from keima.games.playing import Opinions

NODES = 100_000
"""Of one position, where nothing is said; a tenth of a second of Stockfish."""
_WRITTEN = re.compile(r"(?P<protocol>[a-z]+)(?:,nodes=(?P<nodes>[1-9]\d{0,11}))?:(?P<command>.*\S.*)", re.S)


@dataclass
class SecondJudge:
    """A program, started when the first game needs it."""

    protocol: str
    command: str
    nodes: int = NODES
    _started: Opinions | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """As a command line names it, every number said."""
        return f"{self.protocol},nodes={self.nodes}:{self.command}"

    def judges(self, game: Game) -> bool:
        """Is it a program of this game's protocol?"""
        return game.playing.protocol == self.protocol

    def check(self, games: Collection[str]) -> None:
        """Raise BadRequest where it judges none of these games."""
        if games and not any(self.judges(GAMES[name]) for name in games):
            there = [game.title for game in GAMES.values() if self.judges(game)]
            titles = " and ".join(GAMES[name].title for name in games)
            spoken = f"programs that speak {self.protocol} play {' and '.join(there)}" if there else "no game has it"
            raise BadRequest(f"--judge {self.protocol}: {spoken}, not {titles}")

    def opinions(self, game: Game) -> Opinions | None:
        """The program, running; None for a game that it does not judge. Raises BadRequest: it does not start."""
        if not self.judges(game):
            return None
        if self._started is None:
            self._started = game.playing.program(self.command, self.nodes)
        return self._started

    def close(self) -> None:
        """End the program."""
        if self._started is not None:
            self._started.close()


def names_program(text: str) -> bool:
    """Is that a program, as `read_judge` reads it, and no file?"""
    return text.replace(",", ":").split(":")[0] in _protocols() and not Path(text).exists()


def _protocols() -> list[str]:
    return sorted({game.playing.protocol for game in GAMES.values() if game.playing.protocol})


def read_judge(text: str) -> SecondJudge:
    """A judge as a command line names it: "uci:stockfish", "uci,nodes=500000:stockfish". Raises BadRequest."""
    found = _WRITTEN.fullmatch(text)
    if found is None or found["protocol"] not in _protocols():
        raise BadRequest(f"--judge takes PROTOCOL:COMMAND or PROTOCOL,nodes=N:COMMAND, as uci:stockfish; not {text!r}")
    return SecondJudge(found["protocol"], found["command"].strip(), int(found["nodes"] or NODES))
