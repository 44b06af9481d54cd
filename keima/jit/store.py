"""Machine code on disk: a file for each kernel, kind of arguments, processor and version of what made it.

What came with the installation lies in `READY`, made by `keima.precompile` for a common processor. Everything
else is kept in NUMBA_CACHE_DIR where that is set; else in `__pycache__` beside the kernel's source; where that
cannot be written, in keima's cache folder (`keima.places`).
A file's name holds the digest of what the kernel runs: after an edit the old file is not looked at, and removed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any
from uuid import uuid4

import numba
from llvmlite import binding
from numba.core import compiler, config, serialize, types
from numba.core.codegen import CPUCodegen
from numba.core.cpu import CPUContext

from keima.jit.digest import digest_of
from keima.jit.library import Outer
from keima.places import cache_folder, say_once, usable, writable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Types = tuple[types.Type, ...]
Target = tuple[str, str | None, str]
"""What code is generated for: LLVM's triple, processor and features."""

_VERSIONS = f"{numba.__version__} {sys.implementation.cache_tag} 2"
"""What else the contents of a file depend on; the last number is of its layout."""

COMPILING = "compiling kernels for this machine, once: this takes up to a minute ..."

READY = Path(__file__).parent / "ready"
"""Machine code that came with the installation; nothing is written here but by `keima.precompile`."""

_LEVELS = {"x86_64": ("x86-64-v3", "avx2 bmi bmi2 f16c fma lzcnt movbe"), "aarch64": ("generic", "")}
"""Kind of processor → what `READY` is made for: LLVM's name, and what a processor must have for it."""


@cache
def ready_level() -> str | None:
    """The processors `READY` is made for, by LLVM's name, where this is one of them."""
    name, needed = _LEVELS.get(platform.machine().lower().replace("amd64", "x86_64"), (None, ""))
    has = binding.get_host_cpu_features()
    return name if all(has.get(feature) for feature in needed.split()) else None


class Store:
    """The machine code of one kernel. Numba asks it first (`load_overload`) and tells it what was made."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._kinds: dict[tuple[Types, Target], str] = {}

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(folder_of(self._function.__code__.co_filename))

    def load_overload(self, sig: Types, context: CPUContext) -> compiler.CompileResult | None:
        """What was made for these arguments, or None."""
        context.refresh()
        codegen = context.codegen()
        target = codegen.magic_tuple()
        data = _read(self._path(sig, codegen))
        if data is None and ready_level() is not None:
            data = _read(READY / self._name(sig, (target[0], ready_level(), "")))
        if data is None:
            say_once(COMPILING)
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
            for old in path.parent.glob(f"{self._versions_of(sig, result.library.codegen.magic_tuple())}-*.nbc"):
                old.unlink(missing_ok=True)
            part.write_bytes(data)
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            say_once(f"compiled kernels cannot be kept in {path.parent}: {error.strerror}")

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
        return folder_of(self._function.__code__.co_filename) / self._name(sig, codegen.magic_tuple())

    def _name(self, sig: Types, target: Target) -> str:
        return f"{self._versions_of(sig, target)}-{digest_of(self._function)[:16]}.nbc"

    def _versions_of(self, sig: Types, target: Target) -> str:
        """What the names of its files begin with, whatever the kernel was like."""
        if (sig, target) not in self._kinds:
            what = f"{', '.join(map(repr, sig))} {target} {_VERSIONS}"
            self._kinds[sig, target] = hashlib.sha256(what.encode()).hexdigest()[:16]
        return f"{self._function.__module__}.{self._function.__qualname__}.{self._kinds[sig, target]}"


def _read(path: Path) -> Any:
    """What a file holds; None where it is not there, or cut short."""
    try:
        return pickle.loads(path.read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


@cache
def folder_of(source: str) -> Path:
    """The folder for the kernels of a source file, made if need be."""
    if config.CACHE_DIR:
        return usable(Path(config.CACHE_DIR), "NUMBA_CACHE_DIR")
    beside = Path(source).parent / "__pycache__"
    return beside if writable(beside) else usable(cache_folder() / "kernels")
