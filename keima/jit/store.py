"""Machine code on disk: a file for each kernel, kind of arguments, processor and version of what made it.

Its place is NUMBA_CACHE_DIR where that is set; else `__pycache__` beside the kernel's source; where that cannot be
written, the user's cache folder; and where there is none, a folder for temporary files that no one else can write.
A file's name holds the digest of what the kernel runs: after an edit the old file is not looked at, and removed.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from uuid import uuid4

import numba
from numba.core import compiler, config, serialize, types
from numba.core.codegen import CPUCodegen
from numba.core.cpu import CPUContext

from keima.jit.digest import digest_of
from keima.jit.library import Outer

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Types = tuple[types.Type, ...]

_VERSIONS = f"{numba.__version__} {sys.implementation.cache_tag} 2"
"""What else the contents of a file depend on; the last number is of its layout."""

COMPILING = "compiling kernels for this machine, once: this takes some seconds ..."

_listeners: list[Callable[[str], None]] = [partial(print, file=sys.stderr, flush=True)]
_said: set[str] = set()


def on_compile(tell: Callable[[str], None]) -> None:
    """Have `tell` called, in place of a line on stderr, when kernels are compiled, or cannot be kept: each once."""
    _listeners[:] = [tell]


def _say(line: str) -> None:
    if line not in _said:
        _said.add(line)
        for tell in _listeners:
            tell(line)


class Store:
    """The machine code of one kernel. Numba asks it first (`load_overload`) and tells it what was made."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._kinds: dict[Types, str] = {}

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(folder_of(self._function.__code__.co_filename))

    def load_overload(self, sig: Types, context: CPUContext) -> compiler.CompileResult | None:
        """What was made for these arguments, or None."""
        context.refresh()
        try:
            data = pickle.loads(self._path(sig, context.codegen()).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):  # not there, or cut short
            _say(COMPILING)
            return None
        code, description, environment, signature, reload_init, environments = data
        for initialize in reload_init:
            initialize()
        library = Outer.from_machine_code(context.codegen(), *code)
        entry = context.get_executable(library, description, environment)
        for other in environments:
            library.codegen.set_env(other.env_name, other)
        return compiler.compile_result(
            typing_context=context.typing_context,
            target_context=context,
            entry_point=entry,
            signature=signature,
            objectmode=False,
            lifted=(),
            fndesc=description,
            library=library,
            environment=environment,
            reload_init=reload_init,
            referenced_envs=environments,
        )

    def save_overload(self, sig: Types, result: compiler.CompileResult) -> None:
        """Keep what was made. A disk that cannot be written keeps nothing, and says so."""
        result.fndesc.typemap = result.fndesc.calltypes = None
        data = serialize.dumps(
            (
                result.library.machine_code(),
                result.fndesc,
                result.environment,
                result.signature,
                result.reload_init,
                tuple(result.referenced_envs),
            )
        )
        path = self._path(sig, result.library.codegen)
        part = path.with_name(f"{path.name}.{uuid4().hex[:8]}")
        try:
            for old in path.parent.glob(f"{self._stem()}.{self._kind(sig, result.library.codegen)}-*.nbc"):
                old.unlink(missing_ok=True)
            part.write_bytes(data)
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            _say(f"compiled kernels cannot be kept in {path.parent}: {error.strerror}")

    def holds_any(self) -> bool:
        """Whether there is machine code of the function as it is now."""
        folder = folder_of(self._function.__code__.co_filename)
        return any(folder.glob(f"{self._stem()}.*-{digest_of(self._function)[:16]}.nbc"))

    @contextmanager
    def one_at_a_time(self, sig: Types, context: CPUContext) -> Iterator[None]:
        """Others that want the same machine code wait until it is made. (Nothing where files cannot be locked.)"""
        path = self._path(sig, context.codegen())
        if fcntl is None or path.exists():
            yield
            return
        try:
            lock = path.with_suffix(".lock").open("wb")
        except OSError:
            yield
            return
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                with suppress(OSError):
                    os.unlink(lock.name)

    def _path(self, sig: Types, codegen: CPUCodegen) -> Path:
        name = f"{self._stem()}.{self._kind(sig, codegen)}-{digest_of(self._function)[:16]}.nbc"
        return folder_of(self._function.__code__.co_filename) / name

    def _stem(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}"

    def _kind(self, sig: Types, codegen: CPUCodegen) -> str:
        if sig not in self._kinds:
            what = f"{', '.join(map(repr, sig))} {codegen.magic_tuple()} {_VERSIONS}"
            self._kinds[sig] = hashlib.sha256(what.encode()).hexdigest()[:16]
        return self._kinds[sig]


@cache
def folder_of(source: str) -> Path:
    """The folder for the kernels of a source file, made if need be."""
    if config.CACHE_DIR:
        candidates = [Path(config.CACHE_DIR)]
    else:
        candidates = [Path(source).parent / "__pycache__"]
        with suppress(RuntimeError):  # no home
            home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            candidates.append(home / "keima" / "kernels")
    for folder in candidates:
        if _writable(folder):
            return folder
    folder = _temporary()
    _say(f"no folder to keep compiled kernels in (looked at {', '.join(map(str, candidates))}): using {folder}")
    return folder


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@cache
def _temporary() -> Path:
    """A folder among the temporary files that is this user's alone: what lies in it is run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"keima-kernels-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        mine = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
        if folder.is_dir() and not folder.is_symlink() and mine:
            return folder
    return Path(tempfile.mkdtemp(prefix="keima-kernels-"))
