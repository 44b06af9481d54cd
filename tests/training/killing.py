"""Runs that are killed and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import keima
from keima.training.run import loop
from keima.training.run.loop import train
from keima.training.run.recipe import Recipe


class Killed(BaseException):
    """As SIGKILL: nothing may be written any more."""


def train_killed(
    recipe: Recipe, folder: Path, batches: type[Any], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Train until batch `number` of this class is asked for, be killed, and go on to the end."""
    next_batch = batches.__next__

    def killed(self: Any) -> Any:
        if self._next == number:
            raise Killed
        return next_batch(self)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "__next__", killed)
        patch.setattr(loop.Trainer, "_rescue", lambda *_: None)
        with pytest.raises(Killed):
            train(recipe, folder)
    train(recipe, folder)


def weights(folder: Path) -> dict[str, bytes]:
    """The weights of a run's network, to the last bit."""
    state = keima.load(folder / "network.safetensors").state_dict()
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}
