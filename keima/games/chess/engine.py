"""Another program's word on chess positions, by UCI (through python-chess): Stockfish, or what else speaks it.

Its centipawns become winning chances by Lichess's formula (https://lichess.org/page/accuracy), fitted to games of
people: 50 % + 50 % · (2 / (1 + exp(−0.00368208 · centipawns)) − 1).
"""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Iterator, Sequence

import chess
import chess.engine

from keima.errors import BadRequest
from keima.games.chess.position import Position
from keima.games.playing import Opinion
from keima.games.position import Position as AnyPosition

_SECONDS = 60.0
"""For one answer; a program that takes longer is taken for dead."""
_FOLDERS = "/usr/games:/usr/local/games"
"""Where Debian puts engines; not everyone's search path has it."""


class Engine:
    """A UCI program, started. Raises BadRequest: it is not there, or does not speak UCI."""

    def __init__(self, command: str, nodes: int) -> None:
        self.command, self.nodes = command, nodes
        try:
            program, *arguments = shlex.split(command)
        except ValueError as error:
            raise BadRequest(f"no command: {error}", source=command) from error
        found = shutil.which(program) or shutil.which(program, path=_FOLDERS)
        if found is None:
            raise BadRequest("no such program; install it, or give its whole path", source=program)
        try:
            self._engine = chess.engine.SimpleEngine.popen_uci([found, *arguments], timeout=_SECONDS)
        except (chess.engine.EngineError, OSError, TimeoutError) as error:
            raise BadRequest(f"does not start as a UCI program: {error}", source=command) from error
        self.name = self._engine.id.get("name", program)

    def __call__(self, positions: Sequence[AnyPosition]) -> Iterator[Opinion | None]:
        """As `Opinions`; the program's tables are emptied first, so the same positions get the same answers."""
        game = object()
        for position in positions:
            assert isinstance(position, Position)
            yield None if position.is_over else self._judge(position, game)

    def _judge(self, position: Position, game: object) -> Opinion:
        board = chess.Board(position.start_fen, chess960=position.chess960)
        for move in position.moves:
            board.push_uci(move)
        try:
            found = self._engine.analyse(board, chess.engine.Limit(nodes=self.nodes), game=game)
            score = found["score"].relative
        except (chess.engine.EngineError, TimeoutError, KeyError) as error:
            raise BadRequest(
                f"failed at {position.fen()}: {error or type(error).__name__}", source=self.name
            ) from error
        cp, moves = score.score(), score.mate()
        pv = []
        for expected in found.get("pv", []):
            pv.append(board.uci(expected))
            board.push(expected)
        if moves is not None:
            return Opinion(float(moves > 0), mate=2 * moves - 1 if moves > 0 else 2 * moves, pv=tuple(pv))
        return Opinion(chances(cp or 0), centipawns=cp, pv=tuple(pv))

    def close(self) -> None:
        """End the program."""
        try:
            self._engine.quit()
        except (chess.engine.EngineError, TimeoutError):
            self._engine.close()


def chances(centipawns: float) -> float:
    """Win + draw / 2 of centipawns, by Lichess's formula."""
    return 1 / (1 + math.exp(-0.00368208 * centipawns))
