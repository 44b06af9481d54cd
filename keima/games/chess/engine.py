"""Another program's word on chess positions, by UCI: Stockfish, or what else speaks it. python-chess runs the program.

Its centipawns become winning chances by Lichess's formula (https://lichess.org/page/accuracy), fitted to games of
people: 50 % + 50 % · (2 / (1 + exp(−0.00368208 · centipawns)) − 1).
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace

from chess.engine import BaseCommand, EngineError, Protocol, SimpleEngine

from keima.errors import BadRequest, IllegalMove
from keima.games.chess.position import Position
from keima.games.playing import Opinion
from keima.games.position import Position as AnyPosition

_SECONDS = 60.0
"""To start; a program that takes longer is taken for dead."""
_FOLDERS = "/usr/games:/usr/local/games"
"""Where Debian puts engines; not everyone's search path has it."""
_RANK = re.compile(r"\bmultipv (\d+)")
_Line = list[str]
"""The words of an `info` of UCI."""


class Engine:
    """A UCI program, started. Raises BadRequest: it is not there, or does not speak UCI."""

    def __init__(self, command: str, nodes: int, moves: int = 1) -> None:
        self.command, self.nodes, self.moves = command, nodes, moves
        try:
            program, *arguments = shlex.split(command)
        except ValueError as error:
            raise BadRequest(f"no command: {error}", source=command) from error
        found = shutil.which(program) or shutil.which(program, path=_FOLDERS)
        if found is None:
            raise BadRequest("no such program; install it, or give its whole path", source=program)
        try:
            self._engine = SimpleEngine.popen_uci([found, *arguments], timeout=_SECONDS)
        except (EngineError, OSError, TimeoutError) as error:
            raise BadRequest(f"does not start as a UCI program: {error}", source=command) from error
        self.name = self._engine.id.get("name", program)
        self._options = {*self._engine.options}

    def __call__(self, positions: Sequence[AnyPosition]) -> Iterator[Opinion | None]:
        """As `Opinions`; the program's tables are emptied first, so the same positions get the same answers."""
        setup: list[str] | None = None
        for position in positions:
            assert isinstance(position, Position)
            if position.is_over:
                yield None
                continue
            if setup is None:
                setup = self._setup(position.chess960)
            yield self._judge(position, setup)
            setup = []

    def _setup(self, chess960: bool) -> list[str]:
        """What the program is told before the first position of a game. Raises BadRequest: it cannot play it."""
        values = {"UCI_AnalyseMode": "true", "UCI_Chess960": str(chess960).lower(), "MultiPV": str(self.moves)}
        for option, needed in (("UCI_Chess960", chess960), ("MultiPV", self.moves > 1)):
            if needed and option not in self._options:
                raise BadRequest(f"has no option {option}", source=self.name)
        told = [f"setoption name {name} value {value}" for name, value in values.items() if name in self._options]
        return [*told, "ucinewgame"]

    def _judge(self, position: Position, setup: list[str]) -> Opinion:
        moves = f" moves {' '.join(position.moves)}" if position.moves else ""
        asked = [f"position fen {position.start_fen}{moves}", f"go nodes {self.nodes}"]
        try:
            lines = self._engine.communicate(lambda program: _Search(program, setup, asked))
            found = [_opinion(position, line) for line in lines]
        except (EngineError, LookupError, ValueError) as error:
            raise BadRequest(
                f"failed at {position.fen()}: {error or type(error).__name__}", source=self.name
            ) from error
        return replace(found[0], moves=tuple(found)) if self.moves > 1 else found[0]

    def close(self) -> None:
        """End the program."""
        try:
            self._engine.quit()
        except (EngineError, TimeoutError):
            self._engine.close()


class _Search(BaseCommand[list[_Line]]):
    """A search, and the last `info` on each of its best moves, the best first.

    `SimpleEngine.analyse` reads every line to its end, which takes longer than a search of a thousand nodes.
    """

    def __init__(self, program: Protocol, setup: list[str], asked: list[str]) -> None:
        super().__init__(program)
        self._program, self._setup, self._asked = program, setup, asked
        self._last: dict[int, str] = {}

    def start(self) -> None:
        self._send([*self._setup, "isready"] if self._setup else self._asked)

    def _send(self, lines: list[str]) -> None:
        for line in lines:
            self._program.send_line(line)

    def line_received(self, line: str) -> None:
        kind, _, told = line.partition(" ")
        if kind == "readyok":
            self._send(self._asked)
        elif kind == "bestmove":
            lines = [self._last[rank].split() for rank in sorted(self._last)]
            self.result.set_result(lines) if lines else self.result.set_exception(EngineError("told no score"))
            self.set_finished()
        elif kind == "info" and "score " in told and not told.startswith("string"):
            rank = _RANK.search(told)
            self._last[int(rank[1]) if rank else 1] = told


def _opinion(position: AnyPosition, words: _Line) -> Opinion:
    """Of what the program told last of a move. Raises LookupError or ValueError where it is no line of UCI."""
    unit, number = words[words.index("score") + 1], int(words[words.index("score") + 2])
    pv: list[str] = []
    for move in words[words.index("pv") + 1 :] if "pv" in words else ():
        try:
            position = position.play(move)
        except IllegalMove:
            break
        pv.append(move)
    if unit == "mate":
        return Opinion(float(number > 0), mate=2 * number - 1 if number > 0 else 2 * number, pv=tuple(pv))
    return Opinion(chances(number), centipawns=number, pv=tuple(pv))


def chances(centipawns: float) -> float:
    """Win + draw / 2 of centipawns, by Lichess's formula."""
    return 1 / (1 + math.exp(-0.00368208 * centipawns))
