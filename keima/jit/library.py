"""Where Numba puts the code of kernels, so that each is optimised once.

Numba optimises and translates every function by itself, and again inside each of its callers: a tree of calls costs
its depth many times over. Here a kernel stays as it was lowered (`Inner`) until one that Python calls (`Outer`) takes
it in, with all that it calls, and the whole is optimised and translated at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import binding
from numba.core.codegen import CodeLibrary, CPUCodegen, JITCodeLibrary
from numba.core.environment import Environment


class _NoEngine:
    """A code generator whose code has no addresses."""

    def __init__(self, codegen: CPUCodegen) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> object:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Environment) -> None:
        """Nothing: there is no variable yet that would hold it."""


class _Library(JITCodeLibrary):  # type: ignore[misc]
    def _optimize_functions(self, module: binding.ModuleRef) -> None:
        """No passes over single functions: those over the whole do their work."""
        module.data_layout = self._codegen._data_layout


class Inner(_Library):
    """A kernel as it was lowered, for others to take in."""

    @property
    def codegen(self) -> _NoEngine:
        """Numba's, without an engine."""
        return _NoEngine(self._codegen)

    def finalize(self) -> None:
        """Nothing is added any more. What the kernel calls stays in libraries of its own."""
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """0: no machine code."""
        self._ensure_finalized()
        return 0


class Outer(_Library):
    """Machine code: a kernel as Python calls it, with all that it calls."""

    def finalize(self) -> None:
        """Take in what is called, optimise, translate."""
        self._raise_if_finalized()
        for library in self._called():
            self._reload_init.update(library._reload_init)
            module = library._final_module if isinstance(library, Inner) else library._get_module_for_linking()
            self._final_module.link_in(module, preserve=True)
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()

    def _called(self) -> Iterator[CodeLibrary]:
        """Each library once: those linked here, and those that inner ones left outside."""
        seen: set[CodeLibrary] = set()
        waiting = self._linking_libraries[::-1]
        while waiting:
            library = waiting.pop()
            if library not in seen:
                seen.add(library)
                yield library
                if isinstance(library, Inner):
                    waiting.extend(reversed(library._linking_libraries))

    def machine_code(self) -> tuple[str, bytes, list[str]]:
        """Name, object code, and the symbols defined in it."""
        self._ensure_finalized()
        module = self._final_module
        values = [*module.functions, *module.global_variables]
        return self.name, self._get_compiled_object(), [value.name for value in values if not value.is_declaration]

    @classmethod
    def from_machine_code(cls, codegen: CPUCodegen, name: str, code: bytes, symbols: list[str]) -> Outer:
        """What `machine_code` gave, in the engine again."""
        self = cls(codegen, name)
        self.enable_object_caching()
        self._set_compiled_object(code)
        self._finalize_final_module()
        codegen._engine._defined_symbols.update(symbols)
        return self
