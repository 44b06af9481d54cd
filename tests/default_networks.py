"""Small networks in the place of those that come with keima."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from keima.systems.files import defaults

LACKS = "this installation has no default network for"


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, **files: Path) -> None:
    """Let keima's own networks be copies of these files, by game; those not named are missing.

    Args:
        monkeypatch: undoes it after the test.
        folder: an empty folder to hold them.
        files: by game, "go" and "chess".
    """
    table = {}
    for game, known in defaults.DEFAULT_NETWORKS.items():
        digest = ""
        if game in files:
            shutil.copyfile(files[game], folder / known.file)
            digest = hashlib.sha256(files[game].read_bytes()).hexdigest()
        table[game] = defaults.DefaultNetwork(
            file=known.file,
            name=f"small-{game}",
            sha256=digest,
            licence="CC0",
            recipe=f"recipes/small-{game}.toml",
            training_data="no games at all",
        )
    monkeypatch.setattr(defaults, "FOLDER", folder)
    monkeypatch.setattr(defaults, "DEFAULT_NETWORKS", table)
