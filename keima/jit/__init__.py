"""The one way keima compiles its kernels: Numba, without the GIL, cached on disk.

`digest` says what a kernel runs: its own bytecode, that of every kernel it calls, and the constants they read. The
cache (`store`) is keyed by it, so that an edit recompiles what it touches and nothing else, and stale machine code is
never loaded. `library` and `kernel` see to it that each kernel is lowered once and optimised once.

A kernel may call itself, not another that calls it back: the tests look through all kernels for circles.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numba.core import config
from numpy.typing import NDArray

from keima.jit.kernel import Kernel

__all__ = ["Record", "Records", "instantiate", "njit"]

F = TypeVar("F", bound=Callable[..., Any])

Records = NDArray[np.void]
"""A structured array as kernels take it."""


class Record(Protocol):
    """One element of a structured array inside a kernel: its fields by name, read and written in place."""

    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __getitem__(self, name: str) -> Any: ...


def njit(function: F) -> F:
    """Compile `function` in Numba's nopython mode, without the GIL, cached by what it runs.

    Signed integers of any size, and literal ones, are taken as int64: one version for them all.
    """
    return function if config.DISABLE_JIT else cast(F, Kernel(cast(FunctionType, function)))


def instantiate(template: Callable[..., Any], name: str, **names: Any) -> Any:
    """Compile a kernel from the source of another, with some of the names it reads bound to other kernels or numbers.

    One source for what differs only in what it calls: `instantiate(gather, "gather_go", play=go.play)`. Unlike a
    function made in a factory, the result has no closure, so that its cache is found again.

    Args:
        template: a plain function.
        name: of the kernel, unique in the template's file.
        names: what the template's global names stand for.

    Raises:
        TypeError: the template reads no such name.
    """
    function = cast(FunctionType, template)
    unknown = names.keys() - set(function.__code__.co_names)
    if unknown:
        raise TypeError(f"{function.__qualname__} reads no {', '.join(sorted(unknown))}")
    made = FunctionType(function.__code__, {**function.__globals__, **names}, name, function.__defaults__)
    made.__qualname__ = name
    made.__module__ = function.__module__
    return njit(made)
