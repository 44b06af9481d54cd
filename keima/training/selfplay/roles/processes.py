"""What every role's process needs: a parent it dies with, a lock that says it is the only one, an end asked for."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from keima.errors import BadRequest

try:
    import fcntl
except ImportError as error:
    raise BadRequest("the roles of self-play need file locks of a Unix system") from error

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.5


def follow_parent(parent: int) -> None:
    """Let this process be killed as soon as process `parent`, which started it, is no longer there."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=look, name="follow-parent", daemon=True).start()


def follow_pipe(pipe: Connection) -> None:
    """Let this process be killed as soon as nobody holds the other end of a pipe that nothing is written to."""

    def look() -> None:
        with suppress(EOFError, OSError):
            pipe.recv_bytes()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=look, name="follow-pipe", daemon=True).start()


def take_lock(path: Path, patience: float = 0.0) -> IO[str] | None:
    """The lock of a file, kept as long as what is returned is open; None if another process keeps it so long (s).

    The file says by which process it is held.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = path.open("a+", encoding="utf-8")
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= end:
                stream.close()
                return None
            time.sleep(0.1)
    stream.truncate(0)
    stream.write(f"{os.getpid()}\n")
    stream.flush()
    return stream


def holder(path: Path) -> str:
    """Which process holds a lock, in words."""
    try:
        return f"process {int(path.read_text(encoding='utf-8'))}"
    except (OSError, ValueError):
        return "another process"


class Stop:
    """Becomes true once SIGTERM or SIGINT asks this process to end; a second one ends it at once."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._signal)

    def _signal(self, number: int, _frame: object) -> None:
        if self._asked.is_set():
            raise KeyboardInterrupt
        self._asked.set()

    def __call__(self) -> bool:
        """Was it asked to end?"""
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep so long, or until it is asked to end; was it?"""
        return self._asked.wait(seconds)
