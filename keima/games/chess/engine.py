"""Another program's word on chess positions, by UCI (through python-chess): Stockfish, or what else speaks it.

Its centipawns become winning chances by Lichess's formula (https://lichess.org/page/accuracy), fitted to games of
people: 50 % + 50 % · (2 / (1 + exp(−0.00368208 · centipawns)) − 1).
"""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace

import chess
import chess.engine

from keima.errors import BadRequest
from keima.games.chess.position import Position
from keima.games.playing import Opinion
from keima.games.position import Position as AnyPosition

_SECONDS = 60.0
"""For one answer; a program that takes longer is taken for dead."""
_INFO = chess.engine.INFO_SCORE | chess.engine.INFO_PV
_FOLDERS = "/usr/games:/usr/local/games"
"""Where Debian puts engines; not everyone's search path has it."""


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
            self._engine = chess.engine.SimpleEngine.popen_uci([found, *arguments], timeout=_SECONDS)
        except (chess.engine.EngineError, OSError, TimeoutError) as error:
            raise BadRequest(f"does not start as a UCI program: {error}", source=command) from error
        self.name = self._engine.id.get("name", program)

    def __call__(self, positions: Sequence[AnyPosition]) -> Iterator[Opinion | None]:
        """As `Opinions`; the program's tables are emptied first, so the same positions get the same answers."""
        game = object()
        board, before = chess.Board(), Position.start()
        for position in positions:
            assert isinstance(position, Position)
            if position.is_over:
                yield None
                continue
            since = before.moves_to(position)
            if since is None:
                board, since = chess.Board(position.start_fen, chess960=position.chess960), [*position.moves]
            for move in since:
                board.push_uci(move)
            before = position
            yield self._judge(board, game)

    def _judge(self, board: chess.Board, game: object) -> Opinion:
        limit = chess.engine.Limit(nodes=self.nodes)
        try:
            if self.moves == 1:
                return _opinion(board, self._engine.analyse(board, limit, game=game, info=_INFO))
            lines = self._engine.analyse(board, limit, multipv=self.moves, game=game, info=_INFO)
            found = tuple(_opinion(board, line) for line in lines)
            return replace(found[0], moves=found)
        except (chess.engine.EngineError, TimeoutError, LookupError) as error:
            raise BadRequest(f"failed at {board.fen()}: {error or type(error).__name__}", source=self.name) from error

    def close(self) -> None:
        """End the program."""
        try:
            self._engine.quit()
        except (chess.engine.EngineError, TimeoutError):
            self._engine.close()


def _opinion(board: chess.Board, found: chess.engine.InfoDict) -> Opinion:
    """Of a line that the program tells. Raises KeyError where it tells no score."""
    score = found["score"].relative
    cp, moves = score.score(), score.mate()
    board, pv = board.copy(stack=False), []
    for expected in found.get("pv", []):
        pv.append(board.uci(expected))
        board.push(expected)
    if moves is not None:
        return Opinion(float(moves > 0), mate=2 * moves - 1 if moves > 0 else 2 * moves, pv=tuple(pv))
    return Opinion(chances(cp or 0), centipawns=cp, pv=tuple(pv))


def chances(centipawns: float) -> float:
    """Win + draw / 2 of centipawns, by Lichess's formula."""
    return 1 / (1 + math.exp(-0.00368208 * centipawns))
