"""The other process compiles what the first search needs, under the same signatures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEARCH = """
import keima
from keima.jit.kernel import _OuterCompiler
made = []
compile = _OuterCompiler.compile
def counted(self, args, kind):
    made.append(self._inner.py_func.__name__)
    return compile(self, args, kind)
_OuterCompiler.compile = counted
evaluator = keima.Evaluator(keima.create("alphago-zero-connect-four"), backend="torch")
keima.search(evaluator, keima.connect_four.Position.start(), visits=30)
print(*made)
"""


@pytest.mark.slow
def test_two_processes_share_the_work_of_the_first_search(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def compiled() -> set[str]:
        done = subprocess.run([sys.executable, "-c", SEARCH], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return set(done.stdout.split())

    here = compiled()
    assert not any("gather" in name for name in here), "the other process made it"
    assert compiled() == set(), "all was kept"
