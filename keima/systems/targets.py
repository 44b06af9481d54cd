"""What positions teach: a batch of a network's inputs with the targets of its loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keima.plain import Data
from keima.systems.encoding import Batch

A = TypeVar("A", bound="NDArray[Any] | Tensor")

TARGETS = frozenset({"policy", "value", "score", "ownership", "moves_left", "reply"})
"""What a game's records may tell (`FlatGames.tells`), or its searches (the "reply"), and a loss may ask for."""
NO_MOVE = -1  # in `TrainingBatch.policy`, where no move is to be learned


@dataclass(frozen=True, eq=False)
class TrainingBatch(Generic[A]):
    """N positions with what they teach; NumPy arrays as the loader makes them, tensors after `torch`.

    Everything is for the side to move, in the orientation of the planes. A missing target is −1 in `policy` and NaN
    elsewhere; a target the loader was not asked for is None.
    """

    # as `Batch.inputs`; `mask` [N, H, W] is 1 on the board where not every board fills its planes
    inputs: Mapping[str, A]
    ply: A | None = None  # int32 [N], moves made before the position
    policy: A | None = None  # int64 [N], index of the move played
    value: A | None = None  # float32 [N], the outcome: +1 won, −1 lost, 0 drawn or no result
    score: A | None = None  # float32 [N], the final lead in points
    ownership: A | None = None  # float32 [N, H, W], who owned the point at the end, from −1 to +1
    moves_left: A | None = None  # float32 [N], plies to the end of the game, the next one included
    # float32 [N, A], a distribution to learn in place of `policy`; a row of zeros is missing
    policy_soft: A | None = None
    # float32 [N, A], the other side's policy after the move played, indexed as this position's moves; zeros: missing
    reply_soft: A | None = None
    # float32 [N, 3], probabilities of win, draw (or no result) and loss to learn in place of `value`; NaN where unknown
    wdl: A | None = None
    game: A | None = None  # int64 [N], the number of the game in the store
    first_to_move: A | None = None  # bool [N], the first of `Game.sides` moves next
    context: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)  # NumPy arrays, as `Batch.context`
    # the same positions in another encoding; where the loader was asked for one
    also: Batch | None = field(default=None, repr=False)

    @property
    def planes(self) -> A:
        """Of the inputs."""
        return self.inputs["planes"]

    def __len__(self) -> int:
        """N."""
        return len(self.planes)

    def torch(self, device: torch.device | str = "cpu") -> TensorBatch:
        """The same as tensors on a device; to a GPU without waiting for the copy."""
        there = torch.device(device)
        kept = _pinned if there.type == "cuda" else torch.as_tensor
        return self._changed(lambda array: kept(array).to(there, non_blocking=True))  # type: ignore[return-value]

    def pinned(self) -> TrainingBatch[A]:
        """The same in memory that a GPU reads by itself, so that `torch` has nothing to copy before it does."""
        return self._changed(lambda array: _pinned(array).numpy())

    def _changed(self, change: Callable[[NDArray[Any] | Tensor], Any]) -> TrainingBatch[A]:
        """The same with every array changed, those of the context apart."""
        found: Data = {"inputs": {name: change(array) for name, array in self.inputs.items()}}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray | Tensor):
                found[each.name] = change(value)
        return replace(self, **found)


def _pinned(array: NDArray[Any] | Tensor) -> Tensor:
    """In pinned memory, as it is if it lies there; a GPU's stays where it is."""
    found = torch.as_tensor(array)
    return found.pin_memory() if found.device.type == "cpu" else found


ArrayBatch: TypeAlias = TrainingBatch[NDArray[Any]]
TensorBatch: TypeAlias = TrainingBatch[Tensor]
