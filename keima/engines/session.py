"""A search on a thread of its own: started, watched and ended by engines that must keep listening meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypedDict

from keima.search.limits import Limits
from keima.search.report import SearchResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from keima.games.position import Position
    from keima.search.search import Search

_POLL = 0.01
"""Seconds between looks at a search that was asked to stop; it is asked again at each."""
_PREPARING_VISITS = 24


class Watch(TypedDict, total=False):
    """What `Search.run` takes beside its limits."""

    on_update: Callable[[SearchResult], None]
    update_seconds: float
    allow_moves: Collection[str] | None
    avoid_moves: Collection[str] | None
    ownership: bool


OnEnd = Callable[["SearchResult | None", "BaseException | None"], None]


class SearchThread:
    """One search at a time, on a thread of its own.

    `start`, `wait` and `cancel` belong to one thread; `stop` may be called from any. A search that ends with an error
    hands it to `wait`, and to `on_end`.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._search: Search | None = None
        self._asked_to_stop = threading.Event()
        self._found: Future[SearchResult] = Future()
        self.seconds = 0.0
        """Wall-clock time of the last search that ended."""

    @property
    def running(self) -> bool:
        """Is a search under way?"""
        return self._thread is not None and self._thread.is_alive()

    def start(self, search: Search, limits: Limits, *, on_end: OnEnd | None = None, **options: Unpack[Watch]) -> None:
        """Start a search whose position is set; one still under way is cancelled first.

        `on_end` is called on the search's thread with its result, or with the error that ended it; `options` are those
        of `Search.run`.
        """
        self.cancel()
        self._asked_to_stop.clear()
        self._search = search
        found = self._found = Future()

        def work() -> None:
            started = time.monotonic()
            result, problem = None, None
            try:
                result = search.run(limits, **options)
                found.set_result(result)
            except BaseException as error:
                problem = error
                found.set_exception(error)
            self.seconds = time.monotonic() - started
            if on_end is not None:
                on_end(result, problem)

        self._thread = threading.Thread(target=work, name="search", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the search to end; returns at once."""
        self._asked_to_stop.set()
        if (search := self._search) is not None:
            search.stop()

    @property
    def asked_to_stop(self) -> bool:
        """Was the last search asked to end before its limits?"""
        return self._asked_to_stop.is_set()

    def wait(self) -> SearchResult:
        """The result of the search, when it has ended; an error that ended it is raised here."""
        self._join()
        return self._found.result(timeout=0)

    def cancel(self) -> None:
        """End the search if one is under way, and wait for its end."""
        if self._thread is not None and not self._found.done():
            self.stop()
        self._join()

    def _join(self) -> None:
        """Wait for the thread; a stop that came before the search was listening is said again, unless it is over."""
        thread = self._thread
        while thread is not None and thread.is_alive():
            thread.join(_POLL)
            if self._asked_to_stop.is_set() and not self._found.done():
                self.stop()


def prepare(search: Search, position: Position) -> None:
    """Search a little, so that no later search pays, its clock running, for what is compiled at the first one.

    Raises:
        KeimaError: the search cannot run with this network and these options.
    """
    search.set_position(position)
    search.run(Limits(visits=_PREPARING_VISITS))
    search.clear()
