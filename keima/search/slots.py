"""Leaves on their way to the network: which nodes, their legal moves, and where those stand in the policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Slots:
    """Room for the leaves of one batch.

    Attributes:
        nodes: int32 [capacity], node numbers in their trees.
        moves: int16 [capacity, M], legal moves as the game's kernel writes them.
        indices: int32 [capacity, M], the moves' places in the policy, in the orientation of the planes.
        counts: int32 [capacity], how many moves.
    """

    def __init__(self, capacity: int, max_moves: int) -> None:
        self.nodes: NDArray[np.int32] = np.zeros(capacity, np.int32)
        self.moves: NDArray[np.int16] = np.zeros((capacity, max_moves), np.int16)
        self.indices: NDArray[np.int32] = np.zeros((capacity, max_moves), np.int32)
        self.counts: NDArray[np.int32] = np.zeros(capacity, np.int32)
