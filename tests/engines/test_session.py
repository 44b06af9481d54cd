"""A search on its own thread: a stop belongs to one search, whatever the threads' timing."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from keima.engines.session import SearchThread
from keima.search.limits import Limits


class StoppableSearch:
    """Like `Search`: `stop` is remembered until a run ends or a position is set."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.stops = 0

    def set_position(self, position: Any) -> None:
        self.stopped.clear()

    def run(self, limits: Limits, **options: Any) -> Any:
        seconds = 30.0 if limits.seconds is None else limits.seconds
        was_stopped = self.stopped.wait(seconds)
        self.stopped.clear()
        return "stopped" if was_stopped else "seconds"

    def stop(self) -> None:
        self.stops += 1
        self.stopped.set()

    def clear(self) -> None:
        self.stopped.clear()


def test_a_search_started_while_the_last_one_still_tells_its_result_is_not_stopped() -> None:
    """A client answers `bestmove` with the next `go` before the thread that wrote `bestmove` has ended."""
    search, thread = StoppableSearch(), SearchThread()
    telling, may_end = threading.Event(), threading.Event()

    def tell(result: Any, error: BaseException | None) -> None:
        telling.set()
        may_end.wait(30)

    thread.start(search, Limits(seconds=0.0), on_end=tell)
    assert telling.wait(30)
    search.set_position(None)
    threading.Timer(0.05, may_end.set).start()
    thread.start(search, Limits(seconds=0.05))
    assert thread.wait() == "seconds"
    assert search.stops == 0


def test_a_stop_is_kept_for_a_search_that_has_not_begun() -> None:
    class LateSearch(StoppableSearch):
        def run(self, limits: Limits, **options: Any) -> Any:
            time.sleep(0.05)
            self.stopped.clear()
            return super().run(limits)

    search, thread = LateSearch(), SearchThread()
    thread.start(search, Limits())
    thread.stop()
    assert thread.asked_to_stop
    assert thread.wait() == "stopped"


def test_an_error_of_the_search_is_raised_where_it_is_waited_for() -> None:
    class BrokenSearch(StoppableSearch):
        def run(self, limits: Limits, **options: Any) -> Any:
            raise ValueError("broken")

    thread = SearchThread()
    thread.start(BrokenSearch(), Limits())
    with pytest.raises(ValueError, match="broken"):
        thread.wait()
    thread.cancel()
    assert not thread.running
