"""A run's numbers as they come: metrics.jsonl, one JSON object a line, and TensorBoard's event files.

A line is written in one piece. After a stop, lines of steps later than the checkpoint the run goes on from are cut
off, so the file reads as if the run had never stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keima.atomic import replacing
from keima.plain import Data, Fields

FILE = "metrics.jsonl"


def read_metrics(path: Path) -> list[Data]:
    """The lines of a metrics.jsonl; none where it is missing. A last line cut short is left out."""
    if not path.exists():
        return []
    return list(_objects(path.read_text(encoding="utf-8")))


def _objects(text: str) -> Iterator[Data]:
    for line in text.splitlines():
        try:
            parsed = json.loads(line)
        except ValueError:
            continue
        if isinstance(parsed, dict) and isinstance(parsed.get("step"), int):
            yield parsed


class Metrics:
    """Writes a run's numbers. One process of a run has it."""

    def __init__(self, folder: Path, step: int) -> None:
        """Open for a run that goes on from a step (0 for a fresh one); later lines are cut off.

        Raises:
            OSError: it cannot be written there.
        """
        self.path = folder / FILE
        self.lines = [line for line in read_metrics(self.path) if line["step"] <= step]
        with replacing(self.path, "w") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in self.lines)
        self._stream = self.path.open("a", encoding="utf-8")
        self._board = _board(folder / "tensorboard", step)

    def write(self, line: Fields) -> None:
        """Add a line.

        Raises:
            OSError: the disk is full.
        """
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()
        self.lines.append(dict(line))
        if self._board is not None:
            for name, number in _scalars(line):
                self._board.add_scalar(name, number, line["step"])
            self._board.flush()

    def close(self) -> None:
        """Close the files."""
        self._stream.close()
        if self._board is not None:
            self._board.close()


def _board(folder: Path, step: int) -> Any:
    """TensorBoard's writer; None where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1 if step else None)


def _scalars(line: Fields) -> Iterator[tuple[str, float]]:
    """Numbers by TensorBoard's names: "training/loss", "held-out/top1"."""
    for name, value in line.items():
        numbers = {f"training/{name}": value}
        if name == "evaluation":
            numbers = {f"held-out/{inner}": number for inner, number in value.items()}
        for label, number in numbers.items():
            if isinstance(number, (int, float)) and math.isfinite(number) and label != "training/step":
                yield label, float(number)
