"""Fixtures every test may use: the reference data, where it is present."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DEFAULT_REFERENCE = Path(__file__).resolve().parents[2] / "shared"


def pytest_configure() -> None:
    """Several test processes have a part of the cores each: with threads on all of them they wait for one another."""
    worker, count = os.environ.get("PYTEST_XDIST_WORKER"), os.environ.get("PYTEST_XDIST_WORKER_COUNT")
    if worker is None or count is None or not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    part = max(1, len(cores) // int(count))
    first = int(worker.removeprefix("gw")) * part % len(cores)
    os.sched_setaffinity(0, cores[first : first + part])


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
    """Where the reference data are, a test that needs them and skips has failed: it would go unseen. What the processor
    lacks ("this processor ...") is the one other reason there may be.
    """
    report = pytest.TestReport.from_item_and_call(item, call)
    lacks = call.excinfo is not None and str(call.excinfo.value).removeprefix("Skipped: ").startswith("this processor")
    needs = "reference" in getattr(item, "fixturenames", ()) or item.get_closest_marker("reference") is not None
    unseen = report.skipped and not hasattr(report, "wasxfail") and needs and not lacks
    if unseen and (reference_folder() / "golden").is_dir():
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} skipped, though the reference data are there: {report.longrepr}"
    return report


def reference_folder() -> Path:
    """KEIMA_REFERENCE, default ../shared beside the checkout."""
    return Path(os.environ.get("KEIMA_REFERENCE", DEFAULT_REFERENCE))


@pytest.fixture(autouse=True, scope="module")
def _fresh_networks_of_a_module() -> None:
    """Networks that fixtures make with random weights are the same in every run."""
    _seed()


@pytest.fixture(autouse=True)
def _fresh_networks() -> None:
    """Networks that a test makes with random weights are the same in every run, whatever ran before."""
    _seed()


def _seed() -> None:
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(scope="session")
def reference() -> Path:
    """The reference folder (nets/, golden/, data/): KEIMA_REFERENCE, default ../shared beside the checkout."""
    folder = reference_folder()
    if not (folder / "golden").is_dir():
        pytest.skip(f"reference data not found at {folder} (set KEIMA_REFERENCE)")
    return folder


@pytest.fixture(scope="session")
def golden(reference: Path) -> Callable[[str], list[dict[str, Any]]]:
    """Read a golden file by name ("katago-g170-b6c96") as a list of JSON objects."""

    def read(name: str) -> list[dict[str, Any]]:
        with gzip.open(reference / "golden" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return read


@contextmanager
def _quick_training() -> Iterator[None]:
    """No pictures, which take longer than small trainings; PyTorch has one thread, and later as many as before."""
    import torch

    from keima.training.run import loop

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "draw_plots", lambda *_: None)
        yield
    torch.set_num_threads(threads)


@pytest.fixture
def quick_training() -> Iterator[None]:
    """Small trainings without what takes longer than they do."""
    with _quick_training():
        yield


@pytest.fixture(scope="module")
def quick_training_of_a_module() -> Iterator[None]:
    """The same, for trainings that several tests look at."""
    with _quick_training():
        yield
