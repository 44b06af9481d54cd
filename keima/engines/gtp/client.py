"""Driving another Go engine by GTP, also as a player of a match: a process of its own, answers waited for so long.

The protocol is GTP 2 (Farnebäck, draft 2): a command a line; the answer begins with `=` or `?` and ends at an empty
line. Whatever an engine may do, the caller gets an answer, a refusal or an `EngineFault` within the time it gave.
"""

from __future__ import annotations

import os
import queue
import re
import shlex
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from subprocess import PIPE, Popen, TimeoutExpired
from typing import IO

from keima.engines.match.players import PASS, RESIGN, Choice, GameState, Settings, Spec, most_seconds
from keima.errors import BadRequest, IllegalMove, KeimaError
from keima.games.go.position import Position
from keima.games.go.vertices import vertex_to_xy, xy_to_vertex

LONGEST_ANSWER = 1 << 20
"""Bytes of one answer; an engine that writes more is talking nonsense."""
_STDERR_LINES = 20
_EXTRA_FOLDERS = ("/usr/games", "/usr/local/games")
"""Where Debian puts games, GNU Go and Stockfish among them; not on every PATH."""


class EngineFault(KeimaError):
    """An engine's `kind` of fault: "crash", "timeout" (it hung), "nonsense" it talked, or an "illegal" move."""

    def __init__(self, kind: str, message: str, *, source: str | None = None, place: str | None = None) -> None:
        super().__init__(message, source=source, place=place)
        self.kind = kind


class EngineRefusal(KeimaError):
    """An engine answered a command with `?`: it does not know it, or cannot do it here."""


def split_command(command: str) -> list[str]:
    """Program (on PATH, or where Debian puts games) and arguments of a command line. Raises BadRequest: none."""
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise BadRequest(f"command line {command!r}: {error}") from None
    if not parts:
        raise BadRequest("an empty command line; expected a program and its arguments")
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_EXTRA_FOLDERS))
    program = shutil.which(parts[0], path=path)
    if program is None:
        raise BadRequest(f"no program {parts[0]!r} here; install it, or give its full path")
    return [program, *parts[1:]]


class GtpClient:
    """One running GTP engine, whose answers may take `timeout` seconds. For one thread at a time, except `kill`.

    Raises:
        EngineFault: it cannot be started, or does not answer.
    """

    def __init__(self, command: Sequence[str], timeout: float = 60.0) -> None:
        self.timeout = timeout
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._complaints: deque[str] = deque(maxlen=_STDERR_LINES)
        self._closed = threading.Event()
        self._hung = False
        try:
            self._process = Popen(list(command), stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)
        except OSError as error:
            raise EngineFault("crash", f"cannot be started: {error.strerror or error}", source=command[0]) from error
        self._threads = [
            threading.Thread(target=_pump_answers, args=(self._process.stdout, self._lines, self._closed), daemon=True),
            threading.Thread(target=_pump_complaints, args=(self._process.stderr, self._complaints), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        try:
            self.commands = frozenset(self.send("list_commands").split())
        except EngineRefusal:
            self.commands = frozenset()
        except BaseException:
            self.close(grace=0)
            raise

    @property
    def alive(self) -> bool:
        """Is the process still running?"""
        return self._process.poll() is None

    def send(self, command: str, timeout: float | None = None) -> str:
        """Send one command; its answer without `=` and the white space around it.

        Raises:
            EngineRefusal: the engine answered `?`.
            EngineFault: it died, did not answer in time, or answered what is no GTP.
        """
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise self._dead(command) from None
        answer = self._answer(command, deadline)
        match = re.match(r"([=?])[0-9]*(?:[ \t]|$|(?=\n))", answer)
        if not match:
            raise EngineFault("nonsense", f"no GTP: {command!r} was answered by {answer[:80]!r}")
        text = answer[match.end() :].strip()
        if match[1] == "?":
            raise EngineRefusal(f"{command!r} was refused: {text[:200]}")
        return text

    def close(self, grace: float = 2.0) -> None:
        """Ask the engine to quit; after `grace` seconds, or at once if it hung, kill it and what it started."""
        if grace > 0 and self.alive and not self._hung:
            with suppress(OSError, ValueError):
                assert self._process.stdin is not None
                self._process.stdin.write(b"quit\n")
                self._process.stdin.close()
            with suppress(TimeoutExpired):
                self._process.wait(grace)
        self._closed.set()
        self.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(1.0)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError, ValueError):
                assert stream is not None
                stream.close()

    def kill(self) -> None:
        """End the engine and its children at once; from any thread."""
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:  # Windows knows no process groups of this kind
                self._process.kill()

    def _answer(self, command: str, deadline: float) -> str:
        """The lines up to an empty one; empty lines before the first are passed over."""
        lines: list[bytes] = []
        size = 0
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self._hung = True
                raise EngineFault("timeout", f"no answer to {command!r} in time") from None
            if line is None:
                self._lines.put(None)
                raise self._dead(command)
            size += len(line)
            if size > LONGEST_ANSWER:
                raise EngineFault("nonsense", f"the answer to {command!r} does not end")
            if line.strip():
                lines.append(line)
            elif lines:
                return b"".join(lines).decode("utf-8", "replace").replace("\r", "")

    def _dead(self, command: str) -> EngineFault:
        """The fault of an engine that has ended, with its exit status and last words."""
        with suppress(TimeoutExpired):
            self._process.wait(1.0)
        self._threads[1].join(0.5)
        status = self._process.poll()
        how = "closed its output" if status is None else f"ended with status {status}"
        said = f"; it said: {self._complaints[-1]}" if self._complaints else ""
        return EngineFault("crash", f"the engine {how} at {command!r}{said}")


def _pump_answers(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None], closed: threading.Event) -> None:
    """Move lines (or pieces of endless ones) from the engine's output to the queue; None at the end."""
    with suppress(OSError, ValueError):
        while line := stream.readline(LONGEST_ANSWER + 1):
            lines.put(line)
            while lines.qsize() > 1000 and not closed.is_set():  # nobody asked for so much: let the engine wait
                time.sleep(0.01)
    lines.put(None)


def _pump_complaints(stream: IO[bytes], complaints: deque[str]) -> None:
    """Keep the last lines of the engine's standard error."""
    with suppress(OSError, ValueError):
        while line := stream.readline(1 << 16):
            if text := line.decode("utf-8", "replace").strip():
                complaints.append(text[:200])


class GtpPlayer:
    """A player of a match; told the rules where it knows `kata-set-rules`, else they are for its command line.

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
        """Start the program unless it runs, and set up the opening. Raises EngineFault: it does not take it."""
        self._told = 0
        position = state.start
        assert isinstance(position, Position)
        try:
            client = self._running()
            xsize, ysize = position.xsize, position.ysize
            client.send(f"boardsize {xsize}" if xsize == ysize else f"rectangular_boardsize {xsize} {ysize}")
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
        client, position = self._running(), _board(state)
        cleans = state.clean_up and "kgs-genmove_cleanup" in client.commands
        command = f"{'kgs-genmove_cleanup' if cleans else 'genmove'} {position.to_play}"
        try:
            self._tell_moves(state)
            answer = self._timed(client, command, state)
        except EngineRefusal as error:
            raise EngineFault("nonsense", str(error)) from None
        move = answer.lower()
        if move == RESIGN:
            return Choice(RESIGN)
        try:
            xy = vertex_to_xy(move, position.xsize, position.ysize)
        except (IllegalMove, IndexError):
            raise EngineFault("nonsense", f"{command!r} was answered by {answer[:80]!r}") from None
        self._told += 1  # the program has played its own move
        return Choice(PASS if xy is None else xy_to_vertex(*xy, position.ysize))

    def dead_stones(self, state: GameState) -> frozenset[str] | None:
        """By `final_status_list dead`; None where the program does not know it."""
        try:
            vertices = self._tell_moves(state).send("final_status_list dead").split()
        except EngineRefusal:
            return None
        stones = _board(state).stones
        ysize, xsize = stones.shape
        try:
            points = [vertex_to_xy(vertex, xsize, ysize) for vertex in vertices]
        except IllegalMove as error:
            raise EngineFault("nonsense", f"final_status_list: {error.message}") from None
        return frozenset(xy_to_vertex(*xy, ysize) for xy in points if xy is not None and stones[xy[1], xy[0]])

    def final_score(self, state: GameState) -> float | None:
        """White's points minus Black's by `final_score`; None where the program does not know it."""
        try:
            answer = self._tell_moves(state).send("final_score").upper()
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

    def _tell_moves(self, state: GameState) -> GtpClient:
        """The program, which then knows all moves."""
        client = self._running()
        for colour, vertex in state.moves[self._told :]:
            client.send(f"play {colour} {vertex}")
        self._told = len(state.moves)
        return client

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


def _board(state: GameState) -> Position:
    assert isinstance(state.position, Position)
    return state.position
