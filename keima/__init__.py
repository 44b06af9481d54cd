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

from keima import games

if TYPE_CHECKING:
    from keima.conformance import check_system as check_system
    from keima.errors import BadPosition as BadPosition
    from keima.errors import BadRecord as BadRecord
    from keima.errors import BadRequest as BadRequest
    from keima.errors import BadStore as BadStore
    from keima.errors import BadWeights as BadWeights
    from keima.errors import ConformanceError as ConformanceError
    from keima.errors import IllegalMove as IllegalMove
    from keima.errors import KeimaError as KeimaError
    from keima.errors import UnsupportedNetwork as UnsupportedNetwork
    from keima.errors import UnsupportedPosition as UnsupportedPosition
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
    from keima.systems.network import Network as Network
    from keima.systems.network import Pedigree as Pedigree
    from keima.systems.registry import create as create
    from keima.systems.registry import list_networks as list_networks

__version__ = "0.1.0"

# The front door: public name → (module that owns it, name there; None for the module itself).
_OWNERS: dict[str, tuple[str, str | None]] = {
    # games, each a package
    **{name: (f"{games.__name__}.{name}", None) for name in games.__all__},
    # networks and their files
    "load": ("keima.systems.files.load", "load"),
    "load_default": ("keima.systems.files.load", "load_default"),
    "save": ("keima.systems.files.load", "save"),
    "create": ("keima.systems.registry", "create"),
    "list_networks": ("keima.systems.registry", "list_networks"),
    "Network": ("keima.systems.network", "Network"),
    "Pedigree": ("keima.systems.network", "Pedigree"),
    # answers
    "Evaluator": ("keima.inference.evaluator", "Evaluator"),
    "Evaluation": ("keima.inference.evaluation", "Evaluation"),
    "activations": ("keima.inference.activations", "activations"),
    # search: a package that can be called, `keima.search(evaluator, position, visits=800)`
    "search": ("keima.search", None),
    "search_batch": ("keima.search", "search_batch"),
    "Search": ("keima.search", "Search"),
    "SearchResult": ("keima.search", "SearchResult"),
    # deployment and reports, as modules
    "compress": ("keima.compress", None),
    # the laws a newcomer's game or system must keep
    "check_game": ("keima.games.conformance", "check_game"),
    "check_system": ("keima.conformance", "check_system"),
    # errors
    "KeimaError": ("keima.errors", "KeimaError"),
    "IllegalMove": ("keima.errors", "IllegalMove"),
    "BadPosition": ("keima.errors", "BadPosition"),
    "BadRecord": ("keima.errors", "BadRecord"),
    "BadStore": ("keima.errors", "BadStore"),
    "BadWeights": ("keima.errors", "BadWeights"),
    "BadRequest": ("keima.errors", "BadRequest"),
    "UnsupportedNetwork": ("keima.errors", "UnsupportedNetwork"),
    "UnsupportedPosition": ("keima.errors", "UnsupportedPosition"),
    "ConformanceError": ("keima.errors", "ConformanceError"),
}

__all__ = ["__version__", *_OWNERS]


def __getattr__(name: str) -> Any:
    if name not in _OWNERS:
        raise AttributeError(f"module 'keima' has no attribute {name!r}")
    module_name, attribute = _OWNERS[name]
    module = import_module(module_name)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
