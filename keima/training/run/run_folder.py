"""A run's folder: where its parts stand, which recipe it belongs to, and the reserve for a full disk.

RUN/
    recipe.toml, settings.json   what it was begun with
    metrics.jsonl, tensorboard/  its numbers
    plots/                       pictures of them
    checkpoints/                 the last few states
    pool/, selfplay/             past selves of reinforcement learning; games played for distillation
    reserve                      a checkpoint's room, given up when the disk is full; gone at the end
    network.*                    the result
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from keima.atomic import replacing
from keima.errors import BadRequest
from keima.plain import Data
from keima.training.run.recipe import SECTIONS, Recipe

CHECKPOINTS = "checkpoints"
POOL = "pool"
SELFPLAY = "selfplay"
PLOTS = "plots"
SETTINGS = "settings.json"
RESERVE = "reserve"

_MAY_CHANGE = {
    "data": {"train", "test", "workers"},
    "teacher": {"backend"},
    "schedule": None,
    "run": {
        "steps",
        "positions",
        "checkpoint_every",
        "keep",
        "evaluate_every",
        "evaluate_positions",
        "log_every",
        "device",
        "devices",
        "threads",
        "gradient_checkpointing",
        "compile",
    },
    "optimizer": {"learning_rate"},
}
"""Section → keys that may differ when a run goes on (None: all of them)."""


def _settings(recipe: Recipe) -> dict[str, Data]:
    """The recipe's values as plain data."""
    sections = {name: getattr(recipe, name) for name in SECTIONS}
    if not recipe.teacher.network:
        del sections["teacher"]
    written = {name: asdict(section) for name, section in sections.items() if section is not None}
    plain: dict[str, Data] = json.loads(json.dumps(written))
    return plain


def check_same_run(recipe: Recipe, folder: Path) -> None:
    """Refuse to go on with another recipe than the folder's run was begun with.

    Raises:
        BadRequest: what cannot change has changed; names the key's line.
    """
    try:
        before = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise BadRequest(f"not a run's settings: {error}", source=str(folder / SETTINGS)) from error
    settings = _settings(recipe)
    for section in sorted({*settings} ^ {*before}):
        found = "was not in" if section in settings else "is missing, and was in"
        raise recipe.error(section, f"{found} the recipe of the run in {folder}: choose another folder with -o")
    for section, values in settings.items():
        free = _MAY_CHANGE.get(section, set())
        for key, value in values.items():
            old = before[section].get(key)
            if free is not None and key not in free and old != value:
                message = f"is {value!r}; the run in {folder} was begun with {old!r}: choose another folder with -o"
                raise recipe.error(f"{section}.{'from' if key == 'source' else key}", message)


def write_settings(recipe: Recipe, folder: Path) -> None:
    """Write the recipe into the run's folder, as text and as the values it came to."""
    with replacing(folder / SETTINGS, "w") as stream:
        stream.write(json.dumps(_settings(recipe), indent=1) + "\n")
    with replacing(folder / "recipe.toml", "w") as stream:
        stream.write(recipe.text)


def take_reserve(folder: Path, size: int) -> None:
    """Take room on the disk for one checkpoint of `size` bytes."""
    path = folder / RESERVE
    if path.exists() and path.stat().st_size >= size:
        return
    with path.open("wb") as stream:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size)
        else:
            stream.write(bytes(size))


def free_reserve(folder: Path) -> None:
    """Give the room back."""
    (folder / RESERVE).unlink(missing_ok=True)
