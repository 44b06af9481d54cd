"""Driving another Go engine by GTP: a process of its own, every answer waited for with a time-out.

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
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from keima.errors import BadRequest, KeimaError

LONGEST_ANSWER = 1 << 20
"""Bytes of one answer; an engine that writes more is talking nonsense."""
_STDERR_LINES = 20
_EXTRA_FOLDERS = ("/usr/games", "/usr/local/games")
"""Where Debian puts games, GNU Go and Stockfish among them; not on every PATH."""


class EngineFault(KeimaError):
    """An engine that crashed, hung, talked nonsense, or made an illegal move.

    Attributes:
        kind: "crash", "timeout", "nonsense" or "illegal".
    """

    def __init__(self, kind: str, message: str, *, source: str | None = None, place: str | None = None) -> None:
        super().__init__(message, source=source, place=place)
        self.kind = kind


class EngineRefusal(KeimaError):
    """An engine answered a command with `?`: it does not know it, or cannot do it here."""


def split_command(command: str) -> list[str]:
    """A command line as program and arguments, the program found on PATH or where Debian puts games.

    Raises:
        BadRequest: empty, quotes that do not close, or no such program.
    """
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
    """One running GTP engine. Not for several threads at once, except `kill`.

    Args:
        command: program and arguments.
        timeout: seconds an answer may take unless the call says otherwise.

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
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
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
            with suppress(subprocess.TimeoutExpired):
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
        with suppress(subprocess.TimeoutExpired):
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
