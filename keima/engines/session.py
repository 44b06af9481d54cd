"""A search on a thread of its own: started, watched and ended by engines that must keep listening meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypedDict

from keima.search.limits import Limits
from keima.search.report import SearchResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from keima.games.position import Position
    from keima.search.search import Search

_POLL = 0.01
"""Seconds between looks at a search that was asked to stop; it is asked again at each."""


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
        self._over = threading.Event()
        self._result: SearchResult | None = None
        self._error: BaseException | None = None
        self.seconds = 0.0
        """Wall-clock time of the last search that ended."""

    @property
    def running(self) -> bool:
        """Is a search under way?"""
        return self._thread is not None and self._thread.is_alive()

    def start(
        self,
        search: Search,
        limits: Limits,
        *,
        on_end: OnEnd | None = None,
        **options: Unpack[Watch],
    ) -> None:
        """Start a search; one still under way is cancelled first.

        Args:
            search: its position is set already.
            limits: when it ends of itself.
            on_end: called on the search's thread with its result, or with the error that ended it.
            options: of `Search.run`.
        """
        self.cancel()
        self._asked_to_stop.clear()
        self._over.clear()
        self._search, self._result, self._error = search, None, None

        def work() -> None:
            started = time.monotonic()
            try:
                self._result = search.run(limits, **options)
            except BaseException as error:
                self._error = error
            self._over.set()
            self.seconds = time.monotonic() - started
            if on_end is not None:
                on_end(self._result, self._error)

        self._thread = threading.Thread(target=work, name="search", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the search to end; returns at once."""
        self._asked_to_stop.set()
        search = self._search
        if search is not None:
            search.stop()

    @property
    def asked_to_stop(self) -> bool:
        """Was the last search asked to end before its limits?"""
        return self._asked_to_stop.is_set()

    def wait(self) -> SearchResult:
        """The result of the search, when it has ended; an error that ended it is raised here."""
        self._join()
        if self._error is not None:
            raise self._error
        assert self._result is not None, "no search was started"
        return self._result

    def cancel(self) -> SearchResult | None:
        """End the search if one is under way, and return what it found; None if there is none, or it failed."""
        if self._thread is None:
            return None
        if not self._over.is_set():
            self.stop()
        self._join()
        return self._result

    def _join(self) -> None:
        """Wait for the thread; a stop that came before the search was listening is said again.

        Not to a search that is over, whose thread may still be telling its result: the stop would end the next run.
        """
        thread = self._thread
        while thread is not None and thread.is_alive():
            thread.join(_POLL)
            if self._asked_to_stop.is_set() and not self._over.is_set() and self._search is not None:
                self._search.stop()


_PREPARING_VISITS = 24


def prepare(search: Search, position: Position) -> None:
    """Search a little, so that no later search pays, its clock running, for what is compiled at the first one.

    Raises:
        KeimaError: the search cannot run with this network and these options.
    """
    search.set_position(position)
    search.run(Limits(visits=_PREPARING_VISITS))
    search.clear()
