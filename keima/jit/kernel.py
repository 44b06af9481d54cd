"""Kernels: Numba's dispatchers with one version for all integers, whose machine code `keima.jit.store` keeps."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType

from numba.core import compiler, dispatcher, sigutils, types, typing
from numba.core.registry import CPUDispatcher
from numba.core.typing import Signature

from keima.jit.digest import digest_of
from keima.jit.library import Inner, Outer
from keima.jit.store import Store

Types = tuple[types.Type, ...]


def plain(kinds: Iterable[types.Type]) -> Types:
    """The types a kernel is compiled for: a signed integer of any size, also a literal one, is an int64."""
    unliteral = map(types.unliteral, kinds)
    return tuple(types.int64 if isinstance(t, types.Integer) and t.signed else t for t in unliteral)


_DEFAULTS = {name: option.default for name, option in compiler.Flags.options.items()}


class _Flags(compiler.Flags):  # type: ignore[misc]
    """Numba's, compared in a twentieth of the time, as it does a hundred thousand times."""

    __slots__ = ()

    def values(self) -> dict[str, object]:
        """Every flag by its name."""
        return {**_DEFAULTS, **self._values}


class _Typing(typing.Context):  # type: ignore[misc]
    """Numba's rules of types, remembering: what an int64 and an int64 add up to is asked thousands of times."""

    def __init__(self, context: typing.Context) -> None:
        self.__dict__ = context.__dict__
        self._known: dict[tuple[types.Function, Types], object] = {}

    def resolve_function_type(self, func: types.Type, args: Types, kws: dict[str, types.Type]) -> object:
        """The signature of a call; None where there is none."""
        if kws or not isinstance(func, types.Function):
            return super().resolve_function_type(func, args, kws)
        key = func, tuple(args)
        if key not in self._known:
            found = super().resolve_function_type(func, args, kws)
            if found is None:
                return None
            self._known[key] = found
        return self._known[key]


_typing = cache(_Typing)


class _Pipeline(compiler.Compiler):  # type: ignore[misc]
    """Numba's, with symbols named for what a kernel runs, the same in every process."""

    def _compile_bytecode(self) -> compiler.CompileResult:
        self.state.func_id.unique_id = digest_of(self.state.func_id.func)[:16]
        return super()._compile_bytecode()


class _InnerCompiler(dispatcher._FunctionCompiler):  # type: ignore[misc]
    def fold_argument_types(self, args: Types, kws: dict[str, types.Type]) -> tuple[object, Types]:
        signature, args = super().fold_argument_types(args, kws)
        return signature, plain(args)

    def _compile_core(self, args: Types, return_type: types.Type | None) -> compiler.CompileResult:
        flags = _Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        context = self.targetdescr.target_context
        return compiler.compile_extra(
            _typing(self.targetdescr.typing_context),
            context,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals={},
            library=Inner(context.codegen(), self.py_func.__qualname__),
            pipeline_class=_Pipeline,
        )


class _Inner(CPUDispatcher):  # type: ignore[misc]
    """A kernel as others call it."""

    def __init__(self, function: FunctionType) -> None:
        options = {"nopython": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=options, pipeline_class=_Pipeline)
        self._compiler = _InnerCompiler(function, self.targetdescr, options, {}, _Pipeline)


class _OuterCompiler:
    """Makes of an inner kernel one that Python can call."""

    def __init__(self, inner: _Inner) -> None:
        self._inner = inner
        self.fold_argument_types = inner._compiler.fold_argument_types

    def compile(self, args: Types, return_type: types.Type | None) -> compiler.CompileResult:
        with _no_collection():
            self._inner.compile(args)
            made = self._inner.overloads[args]
            context = made.target_context  # one that counts references
            library = Outer(context.codegen(), made.fndesc.qualname)
            library.enable_object_caching()
            library.add_linking_library(made.library)
            context.create_cpython_wrapper(library, made.fndesc, made.environment, made.call_helper, release_gil=True)
            entry = context.get_executable(library, made.fndesc, made.environment)
        result = made._replace(library=library, entry_point=entry, metadata={})
        environments = result._find_referenced_environments()
        for environment in environments:
            library.codegen.set_env(environment.env_name, environment)
        return result._replace(referenced_envs=environments)


@contextmanager
def _no_collection() -> Iterator[None]:
    """A compiler's objects live until it is done: looking for dead ones among them costs a seventh of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function: called from Python, or taken in by the kernels that call it."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function, targetoptions={"nopython": True, "nogil": True})
        self._inner = _Inner(function)
        self._compiler = _OuterCompiler(self._inner)
        self._cache = Store(function)

    def compile(self, sig: object) -> object:
        """The machine code for these types of arguments, from the cache where it is there."""
        args = plain(sigutils.normalize_signature(sig)[0])
        if args in self.overloads:
            return self.overloads[args].entry_point
        with self._cache.one_at_a_time(args, self.targetctx):
            return super().compile(args)

    @property
    def is_compiling(self) -> bool:
        """Whether a version of it is being made: what it calls by its own name is then itself."""
        return bool(self._compiling_counter) or bool(self._inner._compiling_counter)

    def get_call_template(self, args: Types, kws: dict[str, types.Type]) -> object:
        """How a kernel calls it."""
        return self._inner.get_call_template(args, kws)

    def get_overload(self, sig: Signature) -> object:
        """The version that a kernel calls."""
        return self._inner.get_overload(sig)
