"""What the tests of inference share: a cache of compiled networks of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled networks of this run go to a folder of this run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEIMA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
