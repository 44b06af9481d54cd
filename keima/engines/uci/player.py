"""A program that speaks UCI as a player of a match, through python-chess, a process of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import subprocess
import time
from contextlib import suppress

import chess
from chess.engine import EngineError, EngineTerminatedError, Limit, SimpleEngine

from keima.engines.gtp.client import EngineFault, split_command
from keima.engines.match.players import CLOCK_GRACE, RESIGN, Choice, GameState, Settings, Spec, most_seconds
from keima.errors import BadRequest
from keima.games.chess.position import Position


class UciPlayer:
    """A chess program by UCI, through python-chess.

    Options: nodes, depth or seconds a move (needed unless the match has a clock), timeout, name, and the program's own
    as `option.NAME=VALUE` ("uci,nodes=1000,option.Threads=1:stockfish").
    """

    def __init__(self, spec: Spec, settings: Settings) -> None:
        self.name = spec.name
        self._spec = spec
        self._command = split_command(spec.target)
        self._timeout = spec.number("timeout", settings.timeout) or settings.timeout
        numbers = {name: spec.number(name) for name in ("nodes", "depth", "seconds")}
        self._limits = {name: number for name, number in numbers.items() if number is not None}
        self._engine: SimpleEngine | None = None
        self._game = 0
        self._hung = False
        self._stopped = False

    def new_game(self, state: GameState, seed: int) -> None:
        """Start the program unless it runs. Raises EngineFault, or BadRequest where nothing limits its thinking."""
        if not self._limits and not state.clocks:
            raise BadRequest(f"player {self._spec.text!r}: give it nodes, depth or seconds, or the match a --time")
        self._game += 1
        self._hung = False
        if self._engine is None:
            self._engine = self._start()

    def move(self, state: GameState) -> Choice:
        """What `go` answers."""
        position = state.position
        assert isinstance(position, Position)
        board = chess.Board(position.start_fen, chess960=position.chess960)
        for move in position.moves:
            board.push_uci(move)
        limit, seconds = self._limit(state)
        engine = self._engine
        assert engine is not None
        try:
            thinking = asyncio.wait_for(engine.protocol.play(board, limit, game=self._game), seconds)
            result = asyncio.run_coroutine_threadsafe(thinking, engine.protocol.loop).result(seconds + CLOCK_GRACE)
        except (asyncio.TimeoutError, concurrent.futures.TimeoutError):
            self._hung = True
            raise EngineFault("timeout", f"no move within {seconds:g} s") from None
        except EngineTerminatedError as error:
            raise EngineFault("crash", str(error)) from None
        except EngineError as error:
            kind = "illegal" if "illegal" in str(error) else "nonsense"
            raise EngineFault(kind, str(error)[:200]) from None
        except (RuntimeError, concurrent.futures.CancelledError) as error:  # its event loop has ended
            raise EngineFault("crash", f"the engine has ended ({error})") from None
        if result.resigned:
            return Choice(RESIGN)
        if result.move is None:
            raise EngineFault("nonsense", "the engine names no move")
        return Choice(board.uci(result.move))

    def dead_stones(self, state: GameState) -> frozenset[str] | None:
        """None: chess has none."""
        return None

    def final_score(self, state: GameState) -> float | None:
        """None: no program speaks of points."""
        return None

    def stop(self) -> None:
        """End the program, so that whoever waits for it stops waiting."""
        self._stopped = True
        if self._engine is not None:
            self._engine.close()

    def close(self) -> None:
        """End the program."""
        if self._engine is None:
            return
        if not self._stopped and not self._hung:
            with suppress(EngineError, asyncio.TimeoutError, TimeoutError, RuntimeError):
                self._engine.timeout = 2.0
                self._engine.quit()
        self._engine.close()
        self._engine = None

    def _start(self) -> SimpleEngine:
        options = {key[7:]: value for key, value in self._spec.options.items() if key.startswith("option.")}
        started = time.monotonic()
        engine: SimpleEngine | None = None
        try:
            engine = SimpleEngine.popen_uci(
                self._command, timeout=self._timeout, setpgrp=True, stderr=subprocess.DEVNULL
            )
            if options:
                engine.configure(dict(options))
        except (asyncio.TimeoutError, TimeoutError):
            raise EngineFault("timeout", f"no answer to 'uci' in {time.monotonic() - started:.0f} s") from None
        except EngineError as error:
            if engine is not None:
                engine.close()
            if "option" in str(error):
                raise BadRequest(f"player {self._spec.text!r}: {error}") from None
            raise EngineFault("crash", f"cannot be started: {error}") from None
        except OSError as error:
            raise EngineFault("crash", f"cannot be started: {error.strerror or error}") from None
        return engine

    def _limit(self, state: GameState) -> tuple[Limit, float]:
        """For this move, and the seconds after which the program counts as hung."""
        whole = {name: int(number) for name, number in self._limits.items() if name != "seconds"}
        limit = Limit(time=self._limits.get("seconds"), nodes=whole.get("nodes"), depth=whole.get("depth"))
        if not state.clocks:
            return limit, self._timeout + self._limits.get("seconds", 0.0)
        white, black = state.clocks["w"], state.clocks["b"]
        limit.white_clock, limit.black_clock = white.main + white.period, black.main + black.period
        limit.white_inc, limit.black_inc = white.increment, black.increment
        return limit, most_seconds(state.clocks[state.position.to_play])
