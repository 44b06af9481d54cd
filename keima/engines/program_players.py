"""Other programs as players of a match: Go by GTP, chess by UCI, each a process of its own."""

from __future__ import annotations

import re
import time
from typing import Any

from keima.engines.gtp_client import EngineFault, EngineRefusal, GtpClient, split_command
from keima.engines.players import PASS, RESIGN, Choice, GameState, Settings, Spec
from keima.errors import BadRequest, IllegalMove
from keima.games.go.vertices import vertex_to_xy, xy_to_vertex
from keima.search.limits import Clock

CLOCK_GRACE = 5.0
"""Seconds past its clock that an engine is waited for before it counts as hung."""


class GtpPlayer:
    """A Go program by GTP. It is told the rules where it knows `kata-set-rules`, else they are for its command line.

    Options: timeout (seconds an answer may take), name.
    """

    def __init__(self, spec: Spec, settings: Settings) -> None:
        self.name = spec.name
        self._command = split_command(spec.target)
        self._timeout = spec.number("timeout", settings.timeout) or settings.timeout
        self._client: GtpClient | None = None
        self._told = 0
        self._stopped = False

    def new_game(self, state: GameState, seed: int) -> None:
        """Start the program unless it runs, and set up the opening.

        Raises:
            EngineFault: it cannot be started, or does not take this board.
        """
        self._told = 0
        position = state.start
        try:
            client = self._running()
            square = position.xsize == position.ysize
            size = f"boardsize {position.xsize}"
            client.send(size if square else f"rectangular_boardsize {position.xsize} {position.ysize}")
            client.send("clear_board")
            if "kata-set-rules" in client.commands:
                client.send(f"kata-set-rules {position.rules}")
            client.send(f"komi {position.komi:g}")
            for colour, vertex in (*position.setup, *position.moves):
                client.send(f"play {colour} {vertex}")
            self._tell_time_control(client, state)
        except EngineRefusal as error:
            raise EngineFault("nonsense", f"cannot set up the game: {error}") from None

    def move(self, state: GameState) -> Choice:
        """What `genmove` answers (`kgs-genmove_cleanup` in the clean-up, where the program knows it)."""
        client, side = self._running(), state.position.to_play
        command = f"genmove {side}"
        if state.clean_up and "kgs-genmove_cleanup" in client.commands:
            command = f"kgs-genmove_cleanup {side}"
        try:
            self._tell_moves(client, state)
            answer = self._timed(client, command, state)
        except EngineRefusal as error:
            raise EngineFault("nonsense", str(error)) from None
        move = answer.lower()
        if move == RESIGN:
            return Choice(RESIGN)
        try:
            xy = vertex_to_xy(move, state.position.xsize, state.position.ysize)
        except (IllegalMove, IndexError):
            raise EngineFault("nonsense", f"{command!r} was answered by {answer[:80]!r}") from None
        self._told += 1  # the program has played its own move
        return Choice(PASS if xy is None else xy_to_vertex(*xy, state.position.ysize))

    def dead_stones(self, state: GameState) -> frozenset[str] | None:
        """By `final_status_list dead`; None where the program does not know it."""
        try:
            client = self._running()
            self._tell_moves(client, state)
            vertices = client.send("final_status_list dead").split()
        except EngineRefusal:
            return None
        xsize, ysize = state.position.xsize, state.position.ysize
        try:
            points = [vertex_to_xy(vertex, xsize, ysize) for vertex in vertices]
        except IllegalMove as error:
            raise EngineFault("nonsense", f"final_status_list: {error.message}") from None
        stones = state.position.stones
        return frozenset(xy_to_vertex(*xy, ysize) for xy in points if xy is not None and stones[xy[1], xy[0]])

    def final_score(self, state: GameState) -> float | None:
        """White's points minus Black's by `final_score`; None where the program does not know it."""
        try:
            client = self._running()
            self._tell_moves(client, state)
            answer = client.send("final_score").upper()
        except EngineRefusal:
            return None
        if answer in ("0", "DRAW", "JIGO"):
            return 0.0
        match = re.fullmatch(r"([BW])\+([0-9]+(?:\.[0-9]+)?)", answer)
        if not match:
            raise EngineFault("nonsense", f"'final_score' was answered by {answer[:80]!r}")
        return float(match[2]) * (1 if match[1] == "W" else -1)

    def stop(self) -> None:
        """Kill the program, so that whoever waits for it stops waiting."""
        self._stopped = True
        if self._client is not None:
            self._client.kill()

    def close(self) -> None:
        """End the program."""
        if self._client is not None:
            self._client.close(grace=0.0 if self._stopped else 2.0)
            self._client = None

    def _running(self) -> GtpClient:
        if self._client is not None and not self._client.alive and self._told == 0:
            self.close()
        if self._client is None:
            self._client = GtpClient(self._command, self._timeout)
        return self._client

    def _tell_moves(self, client: GtpClient, state: GameState) -> None:
        """Play the moves it has not heard of yet."""
        for colour, vertex in state.moves[self._told :]:
            client.send(f"play {colour} {vertex}")
        self._told = len(state.moves)

    def _timed(self, client: GtpClient, command: str, state: GameState) -> str:
        """Tell the clocks, if there are any, and send a command that thinks."""
        if not state.clocks or state.clean_up:
            return client.send(command)
        for side, clock in state.clocks.items():
            in_period = clock.main <= 0 and clock.period > 0
            seconds, stones = (clock.period, clock.periods) if in_period else (clock.main, 0)
            if "time_left" in client.commands:
                client.send(f"time_left {side} {int(seconds)} {stones}")
        return client.send(command, most_seconds(state.clocks[state.position.to_play]))

    def _tell_time_control(self, client: GtpClient, state: GameState) -> None:
        """Tell it main time and periods as GTP 2 knows them, Japanese and Fischer time as KataGo does."""
        if not state.clocks:
            return
        clock = next(iter(state.clocks.values()))
        if "kata-time_settings" in client.commands and (clock.increment or clock.periods):
            fischer = f"fischer {clock.main:g} {clock.increment:g}"
            byoyomi = f"byoyomi {clock.main:g} {clock.period:g} {clock.periods}"
            client.send(f"kata-time_settings {fischer if clock.increment else byoyomi}")
        elif "time_settings" in client.commands:
            client.send(f"time_settings {int(clock.main)} {int(clock.period)} {1 if clock.period else 0}")


def most_seconds(clock: Clock) -> float:
    """How long an answer is waited for under that clock."""
    return clock.main + clock.increment + clock.period * clock.periods + CLOCK_GRACE


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
        self._engine: Any = None
        self._game = 0
        self._hung = False
        self._stopped = False

    def new_game(self, state: GameState, seed: int) -> None:
        """Start the program unless it runs; it hears of the new game with its first move.

        Raises:
            EngineFault: it cannot be started.
            BadRequest: nothing limits its thinking.
        """
        if not self._limits and not state.clocks:
            raise BadRequest(f"player {self._spec.text!r}: give it nodes, depth or seconds, or the match a --time")
        self._game += 1
        self._hung = False
        if self._engine is None:
            self._engine = self._start()

    def move(self, state: GameState) -> Choice:
        """What `go` answers."""
        import asyncio
        import concurrent.futures

        import chess as python_chess
        from chess.engine import EngineError, EngineTerminatedError

        position = state.position
        board = python_chess.Board(position.start_fen, chess960=position.chess960)
        for move in position.moves:
            board.push_uci(move)
        limit, seconds = self._limit(state)
        engine = self._engine
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

    def stop(self) -> None:
        """End the program, so that whoever waits for it stops waiting."""
        self._stopped = True
        if self._engine is not None:
            self._engine.close()

    def close(self) -> None:
        """End the program."""
        import asyncio
        from contextlib import suppress

        from chess.engine import EngineError

        if self._engine is None:
            return
        if not self._stopped and not self._hung:
            with suppress(EngineError, asyncio.TimeoutError, TimeoutError, RuntimeError):
                self._engine.timeout = 2.0
                self._engine.quit()
        self._engine.close()
        self._engine = None

    def _start(self) -> Any:
        import asyncio
        import subprocess

        from chess.engine import EngineError, SimpleEngine

        options = {key[7:]: value for key, value in self._spec.options.items() if key.startswith("option.")}
        started = time.monotonic()
        engine = None
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

    def _limit(self, state: GameState) -> tuple[Any, float]:
        """The program's limit for this move, and the seconds after which it counts as hung."""
        from chess.engine import Limit

        nodes, depth = self._limits.get("nodes"), self._limits.get("depth")
        limit = Limit(
            nodes=None if nodes is None else int(nodes),
            depth=None if depth is None else int(depth),
            time=self._limits.get("seconds"),
        )
        if not state.clocks:
            return limit, self._timeout + self._limits.get("seconds", 0.0)
        white, black = state.clocks["w"], state.clocks["b"]
        limit.white_clock, limit.black_clock = white.main + white.period, black.main + black.period
        limit.white_inc, limit.black_inc = white.increment, black.increment
        return limit, most_seconds(state.clocks[state.position.to_play])
