"""The one way keima compiles its kernels: Numba, cached on disk, without the GIL.

Numba's own cache looks only at the file a function stands in, so a kernel that calls one in another file would keep
running the old machine code after an edit there. Here the cache is keyed by every kernel file of the package.

Recursion: Numba 0.68 cannot bring back from its cache what calls itself through a second compiled version: the program
crashes on its second start. So no two kernels call each other, and a kernel that calls itself is called with one set of
types only, the same from outside as from inside (`np.int64(0)` and `bool(x)` where a literal would make another). The
tests look through all kernels for circles, and count the versions of those that call themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

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


def njit(function: F) -> F:
    """Compile `function` with `numba.njit(cache=True, nogil=True)`, its cache valid for these kernel sources only."""
    dispatcher: Any = numba.njit(cache=True, nogil=True)(function)
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _kernel_stamp()
    return cast(F, dispatcher)
