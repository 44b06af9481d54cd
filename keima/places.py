"""Where keima keeps what it can make again: compiled kernels and networks; and what it says once where it cannot."""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

_listeners: list[Callable[[str], None]] = [partial(print, file=sys.stderr, flush=True)]
_said: set[str] = set()


def on_notice(tell: Callable[[str], None]) -> None:
    """Have `tell` called, in place of a line on stderr, when kernels are compiled, or cannot be kept: each once."""
    _listeners[:] = [tell]


def say_once(line: str) -> None:
    """Tell the listener, unless this process has done so before."""
    if line not in _said:
        _said.add(line)
        for tell in _listeners:
            tell(line)


def cache_folder() -> Path:
    """`usual_cache_folder()`; a private one for temporary files where that is read-only."""
    return usable(usual_cache_folder())


def usual_cache_folder() -> Path:
    """`KEIMA_CACHE`, or the user's cache folder + "keima"; it may be read-only, or not there."""
    return Path(os.environ.get("KEIMA_CACHE") or _of_the_user())


def usable(folder: Path, chosen_by: str = "KEIMA_CACHE") -> Path:
    """The folder, made if need be; where it cannot be written, a private one for temporary files, which is said."""
    if writable(folder):
        return folder
    say_once(f"what is compiled cannot be kept in {folder}: using {temporary()} ({chosen_by} chooses another)")
    return temporary()


def writable(folder: Path) -> bool:
    """Can files be made in the folder, itself made if need be?"""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def lend_matplotlib_a_folder() -> None:
    """Where the home cannot be written Matplotlib keeps its list of fonts among temporary files, from run to run."""
    if not writable(_of_the_user()):
        os.environ.setdefault("MPLCONFIGDIR", str(temporary() / "matplotlib"))


def home() -> Path:
    """The user's home; `os.devnull`, where nothing can be made, in a container started under a bare number."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def _of_the_user() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home() / "AppData" / "Local")) / "keima" / "cache"
    if sys.platform == "darwin":
        return home() / "Library" / "Caches" / "keima"
    return Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache") / "keima"


@cache
def temporary() -> Path:
    """A folder among the temporary files that is this user's alone: what lies in it is run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"keima-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        mine = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
        if folder.is_dir() and not folder.is_symlink() and mine:
            return folder
    return Path(tempfile.mkdtemp(prefix="keima-"))
