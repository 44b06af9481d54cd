"""keima: the AlphaGo family of networks in Python.

Open the files people have, evaluate with them as their own engines do, review games, read the architectures.

    >>> import keima
    >>> position = keima.go.Position.start(size=9, rules="japanese", komi=6.5).play("E5", "C3")
    >>> position.to_play
    'B'

The names below are imported from the file that owns each of them, on first use, so `import keima` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keima import errors, games

if TYPE_CHECKING:
    from keima.conformance import check_system as check_system
    from keima.errors import *  # noqa: F403
    from keima.games import *  # noqa: F403
    from keima.games.conformance import check_game as check_game
    from keima.inference.activations import activations as activations
    from keima.inference.evaluation import Evaluation as Evaluation
    from keima.inference.evaluator import Evaluator as Evaluator
    from keima.search import Search as Search
    from keima.search import SearchResult as SearchResult
    from keima.search import search as search  # type: ignore[no-redef, unused-ignore]  # the package itself
    from keima.search import search_batch as search_batch
    from keima.systems.files.load import load as load
    from keima.systems.files.load import load_default as load_default
    from keima.systems.files.load import save as save
    from keima.systems.forms import convert as convert
    from keima.systems.network import Network as Network
    from keima.systems.network import Pedigree as Pedigree
    from keima.systems.registry import create as create
    from keima.systems.registry import list_networks as list_networks

__version__ = "0.1.0"

# The front door: the packages it opens, and public names by the module that owns them.
_PACKAGES = {
    **{name: f"{games.__name__}.{name}" for name in games.__all__},
    "search": "keima.search",  # it can be called, `keima.search(evaluator, position, visits=800)`
    "compress": "keima.compress",
}
_NAMES = {
    "keima.systems.files.load": ("load", "load_default", "save"),
    "keima.systems.forms": ("convert",),
    "keima.systems.registry": ("create", "list_networks"),
    "keima.systems.network": ("Network", "Pedigree"),
    "keima.inference.evaluator": ("Evaluator",),
    "keima.inference.evaluation": ("Evaluation",),
    "keima.inference.activations": ("activations",),
    "keima.search": ("search_batch", "Search", "SearchResult"),
    "keima.games.conformance": ("check_game",),  # the laws a newcomer's game or system must keep
    "keima.conformance": ("check_system",),
    "keima.errors": tuple(name for name, value in vars(errors).items() if isinstance(value, type)),
}
_OWNERS = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_PACKAGES, *_OWNERS]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'keima' has no attribute {name!r}")
    value = import_module(_PACKAGES[name]) if name in _PACKAGES else getattr(import_module(_OWNERS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
