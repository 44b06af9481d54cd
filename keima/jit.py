"""The one way keima compiles its kernels: Numba, cached on disk, without the GIL.

Numba's own cache looks only at the file a function stands in, so a kernel that calls one in another file would keep
running the old machine code after an edit there. Here the cache is keyed by every kernel file of the package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba

F = TypeVar("F", bound=Callable[..., Any])


@lru_cache(maxsize=1)
def _kernel_stamp() -> str:
    """A digest of name, size and time of every source file that may hold a kernel (games, encodings, search)."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for room in ("games", "encodings", "search", "training"):
        for path in sorted((package / room).rglob("*.py")):
            status = path.stat()
            digest.update(f"{path.relative_to(package)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@overload
def njit(function: F) -> F: ...
@overload
def njit(*, inline: str = "never") -> Callable[[F], F]: ...
def njit(function: F | None = None, *, inline: str = "never") -> Any:
    """Compile `function` with `numba.njit(cache=True, nogil=True)`, its cache valid for these kernel sources only."""

    def compile_lazily(function: F) -> Any:
        dispatcher = numba.njit(function, cache=True, nogil=True, inline=inline)
        cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if cache_file is not None and hasattr(cache_file, "_source_stamp"):
            cache_file._source_stamp = _kernel_stamp()
        return dispatcher

    return compile_lazily if function is None else compile_lazily(function)
