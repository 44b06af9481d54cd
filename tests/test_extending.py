"""docs/extending.md runs as it stands: its files are written to a folder, what is between them is executed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "extending.md"


def test_the_page_runs(tmp_path: Path) -> None:
    """In a process of its own, since it registers a game and a system."""
    script = []
    for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S):
        if match := re.match(r"# (\w+/\w+\.py)\n", block):
            path = tmp_path / match[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block, encoding="utf-8")
        else:
            script.append(block)
    assert len(script) == 3
    (tmp_path / "page.py").write_text("\n".join(script), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(DOCUMENT.parents[1])}
    subprocess.run([sys.executable, "page.py"], cwd=tmp_path, check=True, env=environment, timeout=500)
