"""Playouts: what a system offers that has leaves played out by a fast policy, beside a network or in its place.

playouts.py of a system:  PLAYOUTS = Playouts(...)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from keima.jit import Record, Records

PlayOut = Callable[[Record, Record, NDArray[np.uint64]], float]
"""Compiled: (position, weights, generator's state) → 1 a win of the side to move, −1 a loss, 0 a draw."""


class PlayoutPolicy(Protocol):
    """A fast policy."""

    weights: Records  # [1], what `Playouts.play_out` reads


@dataclass(frozen=True)
class Playouts:
    """A system's playouts of a game; `policy` gives the fast policy that is used where none is given."""

    game: str
    play_out: PlayOut
    policy: Callable[[], PlayoutPolicy]
