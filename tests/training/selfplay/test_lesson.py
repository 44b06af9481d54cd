"""The lesson's notebook: every cell is run, in the small version."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[3] / "docs/tutorials/connect-four-from-zero.ipynb"


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_every_cell_is_python_and_none_has_outputs():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            ast.parse("".join(cell["source"]))
            assert cell["outputs"] == []


@pytest.mark.slow
def test_the_small_version_runs_from_the_first_cell_to_the_last(tmp_path: Path):
    script = tmp_path / "lesson.py"
    script.write_text("\n\n".join(cells()), encoding="utf-8")
    environment = {**os.environ, "KEIMA_LESSON": "small", "MPLBACKEND": "agg"}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr[-3000:]
    assert (tmp_path / "runs/lesson/networks/000004.safetensors").exists()
    assert "learned first" in found.stdout
    assert found.stdout.rstrip().endswith("first player (X) to move")
