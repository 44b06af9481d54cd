"""A few inputs of every kind of fuzzing; `.ci/run` has more, and `python -m tests.fuzz` as many as one likes."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import KINDS, fuzz


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_uncaught(kind: str) -> None:
    assert fuzz(kind, 200) == []
