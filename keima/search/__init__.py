"""Monte Carlo tree search over any evaluator of the family: tree, presets of each system, limits and clock.

    >>> from keima.search import Limits
    >>> Limits(visits=800).visits
    800

The package itself can be called, so that `keima.search(evaluator, position)` reads as in `keima.search.api.search`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from keima.search.alphago import PolicyAndValue
from keima.search.api import search, search_batch
from keima.search.limits import Clock, Limits
from keima.search.presets import PRESETS, Parameters
from keima.search.result import MoveInfo, SearchResult
from keima.search.search import Search

__all__ = [
    "PRESETS",
    "Clock",
    "Limits",
    "MoveInfo",
    "Parameters",
    "PolicyAndValue",
    "Search",
    "SearchResult",
    "search",
    "search_batch",
]


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> SearchResult:
        return search(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
