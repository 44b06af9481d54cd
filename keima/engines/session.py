"""A search on a thread of its own: started, watched and ended by engines that must keep listening meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Protocol

from keima.search.limits import Limits
from keima.search.result import SearchResult

_POLL = 0.01
"""Seconds between looks at a search that was asked to stop; it is asked again at each."""


class Searcher(Protocol):
    """What engines need of `keima.search.search.Search`."""

    def set_position(self, position: Any) -> None:
        """Search from here; what is known of this position is kept."""
        ...

    def run(
        self,
        limits: Limits,
        *,
        on_update: Callable[[SearchResult], None] | None = None,
        update_seconds: float = 1.0,
        allow_moves: Collection[str] | None = None,
        avoid_moves: Collection[str] | None = None,
        ownership: bool = False,
        profile: str | None = None,
    ) -> SearchResult:
        """Search until a limit is reached or `stop` is called."""
        ...

    def stop(self) -> None:
        """End `run`, from any thread."""
        ...

    def clear(self) -> None:
        """Forget the tree."""
        ...


class SearchThread:
    """One search at a time, on a thread of its own.

    `start`, `wait` and `cancel` belong to one thread; `stop` may be called from any. A search that ends with an error
    hands it to `wait`, and to `on_end`.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._search: Searcher | None = None
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
        search: Searcher,
        limits: Limits,
        *,
        on_end: Callable[[SearchResult | None, BaseException | None], None] | None = None,
        **options: Any,
    ) -> None:
        """Start a search; one still under way is cancelled first.

        Args:
            search: its position is set already.
            limits: when it ends of itself.
            on_end: called on the search's thread with its result, or with the error that ended it.
            options: of `Searcher.run`.
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
