"""Batch norm over all processes' positions, so that two processes train exactly as one with the whole batch.

PyTorch has `SyncBatchNorm` for CUDA only; this is the same in a few lines of differentiable collectives, on any device.
Batch norms are replaced inside the network and keep their parameters, statistics and names.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

from keima.networks.katago import NormAct
from keima.networks.katago_board import Board
from keima.networks.network import Network


class SharedBatchNorm(nn.BatchNorm2d):
    """`BatchNorm2d` whose batch is that of all processes together."""

    def forward(self, input: Tensor) -> Tensor:
        """[N, C, H, W] → [N, C, H, W]."""
        if not self.training:
            return super().forward(input)
        momentum = 0.1 if self.momentum is None else self.momentum
        tracked = self.track_running_stats and self.running_mean is not None and self.running_var is not None
        mean, var, points = shared_moments(input, None)
        if tracked:
            with torch.no_grad():
                self.running_mean.lerp_(mean, momentum)  # type: ignore[union-attr]
                self.running_var.lerp_(var * points / (points - 1), momentum)  # type: ignore[union-attr]
                if self.num_batches_tracked is not None:
                    self.num_batches_tracked.add_(1)
        x = (input - mean[:, None, None]) * torch.rsqrt(var + self.eps)[:, None, None]
        if self.weight is not None:
            x = x * self.weight[:, None, None]
        return x if self.bias is None else x + self.bias[:, None, None]


class SharedNormAct(NormAct):
    """KataGo's batch norm whose batch is that of all processes together."""

    def _batch_norm(self, x: Tensor, board: Board) -> Tensor:
        """As `NormAct`, with the moments of all processes' points on the board."""
        mean, var, points = shared_moments(x, board.mask)
        unbiased = var if board.mask is not None else var * points / (points - 1)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(unbiased, self.momentum)
        x = (x - mean[:, None, None]) * torch.rsqrt(var + self.config.epsilon)[:, None, None]
        x = x if self.weight is None else x * self.weight[:, None, None]
        x = x if self.bias is None else x + self.bias[:, None, None]
        return board.on_board(x)


def shared_moments(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Mean [C] and variance [C] of the channels over all processes' positions and points, and how many points.

    Args:
        x: [N, C, H, W].
        mask: [N, 1, H, W], 1 on the board; None where every point is.
    """
    kept = x.float() if mask is None else x.float() * mask
    count = x.new_tensor(x.numel() // x.shape[1], dtype=torch.float32) if mask is None else mask.float().sum()
    sums = all_reduce(torch.cat([kept.sum(dim=(0, 2, 3)), count[None]]))
    points = sums[-1].detach()
    mean = sums[:-1] / points
    centred = x.float() - mean[:, None, None]
    if mask is not None:
        centred = centred * mask
    var = all_reduce(centred.square().sum(dim=(0, 2, 3))) / points
    return mean, var, points


def share_batch_norms(network: Network) -> None:
    """Replace the network's batch norms by shared ones; a network without any stays as it is."""
    for name, module in list(network.named_modules()):
        if type(module) is nn.BatchNorm2d:
            network.set_submodule(name, _shared_batch_norm(module))
        elif type(module) is NormAct and module.config.statistics:
            network.set_submodule(name, _adopt(SharedNormAct(module.channels, module.config), module))


def _shared_batch_norm(norm: nn.BatchNorm2d) -> nn.Module:
    shared = SharedBatchNorm(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    return _adopt(shared, norm)


def _adopt(shared: nn.Module, norm: nn.Module) -> nn.Module:
    """Give a shared norm the very tensors of the norm it stands for."""
    for name, parameter in norm.named_parameters(recurse=False):
        setattr(shared, name, parameter)
    for name, buffer in norm.named_buffers(recurse=False):
        setattr(shared, name, buffer)
    return shared.train(norm.training)


def processes() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
