"""What a kernel runs, as a digest: its own bytecode, that of every kernel it calls, and the constants they read."""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

_DIGESTS: dict[Callable[..., object], str] = {}


def digest_of(function: types.FunctionType) -> str:
    """SHA-256 (hex) of a plain function's bytecode and of all that it calls and reads.

    Raises:
        TypeError: it reads a global name whose value has no digest.
    """
    if function not in _DIGESTS:
        # Machine code tells its module.
        named = f"{function.__module__} {function.__qualname__} {function.__defaults__!r}"
        digest = hashlib.sha256(named.encode())
        _add_code(digest, function.__code__, function)
        _DIGESTS[function] = digest.hexdigest()
    return _DIGESTS[function]


def _add_code(digest: hashlib._Hash, code: types.CodeType, function: types.FunctionType | None) -> None:
    digest.update(code.co_code)
    documented = function is not None and code is function.__code__ and function.__doc__ is not None
    for constant in code.co_consts[documented:]:
        if isinstance(constant, types.CodeType):
            _add_code(digest, constant, function)
        else:
            digest.update(repr(constant).encode())
    for name in code.co_names:
        digest.update(name.encode())
        if function is not None and name in function.__globals__:
            _add_value(digest, name, function.__globals__[name], code.co_names, function)


def _add_value(
    digest: hashlib._Hash, name: str, value: object, names: tuple[str, ...], function: types.FunctionType
) -> None:
    """What a global name stands for; of a module, those of its names that the code mentions."""
    if isinstance(value, Dispatcher):
        digest.update(b"itself" if value.py_func is function else digest_of(value.py_func).encode())
    elif isinstance(value, types.ModuleType):
        if not value.__name__.startswith(("numpy", "math", "numba")):
            for inner in names:
                if hasattr(value, inner):
                    _add_value(digest, inner, getattr(value, inner), (), function)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (bool, int, float, str, bytes, np.generic, np.dtype, tuple, type(None))):
        digest.update(repr(value).encode())
    elif isinstance(value, _Intrinsic):
        _add_code(digest, value.__wrapped__.__code__, None)
    elif isinstance(value, (type, np.ufunc, types.BuiltinFunctionType, types.FunctionType)):
        digest.update(f"{getattr(value, '__module__', '')}.{value.__name__}".encode())
    else:
        raise TypeError(f"a kernel reads {name!r}, a {type(value).__name__}: no digest for it")
