"""What every encoding offers: the bridge between a game's positions and a network's tensors.

An encoding turns positions into a `Batch` of named float32 inputs, tells which policy index stands for which legal
move, and turns per-point outputs back to the board's own orientation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Batch:
    """The encoded form of N positions that share one board shape.

    Attributes:
        inputs: what the network's `forward` takes, by name and in its order, float32: `planes` [N, C, H, W], then
            where the system has them `globals` [N, G], `metadata` [N, M], `mask`.
        context: per-position facts that decoding needs and the network does not see (first axis N).
    """

    inputs: dict[str, Array]
    context: dict[str, Array] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """N, the number of positions."""
        return int(self.inputs["planes"].shape[0])


def decoding_context(
    first_to_move: NDArray[np.bool_], no_result_allowed: NDArray[np.bool_] | None = None
) -> dict[str, Array]:
    """What `Network.decode` needs of N positions besides a network's outputs.

    Args:
        first_to_move: bool [N], Black (Go) or White (chess) moves next.
        no_result_allowed: bool [N], the game may end without a result by its rules; nowhere if not given.
    """
    n = len(first_to_move)
    return {
        "black_to_play": np.asarray(first_to_move, np.bool_),
        "no_result_allowed": np.zeros(n, np.bool_) if no_result_allowed is None else no_result_allowed,
        "policy_optimism": np.zeros(n, np.float32),
    }


@dataclass(frozen=True)
class LegalMoves:
    """The legal moves of one position in a network's policy.

    Attributes:
        indices: int64 [k], the policy index of each legal move, in the orientation the planes were encoded in.
        names: the k moves' names in the board's own orientation: GTP vertices and "pass", or UCI.
    """

    indices: NDArray[np.int64]
    names: list[str]


class Encoding(Protocol):
    """Position → planes, policy index ↔ move, for one system."""

    name: str
    """The name `keima planes` takes or prints: "katago", "lc0", "alphago", ..."""
    game: str
    """"go" or "chess"."""
    planes: int
    """C, the number of input planes."""
    globals: int
    """G, the number of global inputs; 0 where the system has none."""
    symmetries: int
    """How many symmetries a position may be encoded in: 8 for Go, 1 for chess."""

    def check(self, position: Any) -> None:
        """Raise `UnsupportedPosition` unless this encoding can take the position (game, size, rules)."""
        ...

    def shape(self, position: Any, symmetry: int = 0) -> tuple[int, int]:
        """(H, W) of the planes of this position under this symmetry; positions of one batch share it."""
        ...

    def encode(
        self,
        positions: Sequence[Any],
        symmetries: Sequence[int] | int = 0,
        options: Mapping[str, Sequence[Any]] | None = None,
    ) -> Batch:
        """Encode N positions that share one shape.

        Args:
            positions: N positions.
            symmetries: one symmetry for all, or N of them (0–7 by bits: 1 flips rows, 2 flips columns, 4 transposes).
            options: per-position options by name, each a sequence of N (KataGo: "profile", "policy_optimism").
        """
        ...

    def legal_moves(self, position: Any, symmetry: int = 0) -> LegalMoves:
        """The legal moves with their policy indices under this symmetry."""
        ...

    def restore(self, points: Array, position: Any, symmetry: int) -> Array:
        """Turn a per-point output [H, W] of planes encoded under `symmetry` back to the board [ysize, xsize]."""
        ...
