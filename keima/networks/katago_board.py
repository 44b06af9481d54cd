"""Which points of the planes are on the board, and how many: what masks and global pooling need."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Board:
    """The boards of one batch.

    Attributes:
        mask: float [N, 1, H, W], 1 on the board and 0 off it; None where every board fills its planes.
        width: √(points on the board), what KataGo scales pooled values by: [N, 1] with a mask, a scalar without.
    """

    mask: Tensor | None
    width: Tensor

    @staticmethod
    def of(planes: Tensor, mask: Tensor | None) -> Board:
        """The boards in planes [N, C, H, W] under a mask [N, 1, H, W], [N, H, W] or None."""
        if mask is None:
            return Board(None, torch.sqrt(planes.new_ones(()) * planes.shape[2] * planes.shape[3]))
        mask = mask.reshape(-1, 1, planes.shape[2], planes.shape[3]).to(planes.dtype)
        return Board(mask, torch.sqrt(mask.sum(dim=(2, 3))))

    def on_board(self, x: Tensor) -> Tensor:
        """x [N, C, H, W] with zeros off the board."""
        return x if self.mask is None else x * self.mask

    def mean(self, x: Tensor) -> Tensor:
        """Mean over the points on the board, [N, C, H, W] → [N, C]; x must be zero off the board."""
        return x.mean(dim=(2, 3)) if self.mask is None else x.sum(dim=(2, 3)) / self.width.square()

    def max(self, x: Tensor) -> Tensor:
        """Maximum over the points on the board, [N, C, H, W] → [N, C]."""
        if self.mask is not None:
            x = x.masked_fill(self.mask == 0, float("-inf"))
        return x.amax(dim=(2, 3))
