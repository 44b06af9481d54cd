"""A game of self-play: what was played, and what the search said of every move."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keima.games.playing import Verdict
from keima.games.position import Position

OPENING, FAST, FULL = 0, 1, 2
"""Kinds of move: not searched (random openings, the moves before a branch); by a small search; by one that teaches."""


@dataclass(frozen=True, eq=False)
class Ply:
    """One move, and the search that chose it."""

    move: str
    kind: int  # OPENING, FAST or FULL
    value: float = float("nan")  # `root_value`; NaN where nothing was searched
    network: int = 0  # generation of the network that searched
    # π, the policy to learn: int16 [k] as the game's kernels write moves, float32 [k] summing to 1; only of FULL
    moves: NDArray[np.int16] = field(default_factory=lambda: np.zeros(0, np.int16))
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))


@dataclass
class SelfplayGame:
    """A game by its number; a function of the run's seed, the number and the networks that played it."""

    number: int
    start: Position  # where it begins
    position: Position  # where it stands
    plies: list[Ply] = field(default_factory=list)  # all moves between the two
    verdict: Verdict | None = None  # how it ended; None while it goes on
    played_out: bool = False  # nobody resigns in it, so that it shows how often resigning would have been wrong
