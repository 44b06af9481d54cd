"""Monte Carlo tree search over any evaluator of the family: tree, presets of each system, limits and clock.

    >>> from keima.search import Limits
    >>> Limits(visits=800).visits
    800

The package itself can be called, so that `keima.search(evaluator, position)` reads as in `search`.
"""

from __future__ import annotations

import sys
from inspect import signature
from types import ModuleType
from typing import Any

from keima.search.limits import Clock, Limits
from keima.search.report import MoveInfo, SearchResult
from keima.search.search import Search, search, search_batch
from keima.systems.parameters import Parameters
from keima.systems.presets import PRESETS

__all__ = ["PRESETS", "Clock", "Limits", "MoveInfo", "Parameters", "Search", "SearchResult", "search", "search_batch"]


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> SearchResult:
        return search(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
__doc__ = f"{__doc__}\nsearch{signature(search)}\n\n{search.__doc__}"  # what `help(keima.search)` shows
