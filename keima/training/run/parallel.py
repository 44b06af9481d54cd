"""Batch norm over all processes' positions, so that two processes train exactly as one with the whole batch.

PyTorch has `SyncBatchNorm` for CUDA only; this is the same in a few lines of differentiable collectives, on any device.
`nn.BatchNorm2d` is replaced inside the network and keeps its parameters, statistics and name; norms of ours
(`BatchStatistics`) are told how to work out their moments.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce as _all_reduce

from keima.systems.layers import BatchStatistics
from keima.systems.network import Network


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


def all_reduce(x: Tensor) -> Tensor:
    """The sum over the processes; gradients go back through it."""
    found: Tensor = _all_reduce(x)  # type: ignore[no-untyped-call]
    return found


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
    """Let the network's batch norms work over all processes; a network without any stays as it is."""
    for name, module in list(network.named_modules()):
        if type(module) is nn.BatchNorm2d:
            network.set_submodule(name, _shared_batch_norm(module))
        elif isinstance(module, BatchStatistics):
            module.moments = shared_moments


def _shared_batch_norm(norm: nn.BatchNorm2d) -> nn.Module:
    """A shared norm with the very tensors of the norm it stands for."""
    shared = SharedBatchNorm(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    for name, parameter in norm.named_parameters(recurse=False):
        setattr(shared, name, parameter)
    for name, buffer in norm.named_buffers(recurse=False):
        setattr(shared, name, buffer)
    return shared.train(norm.training)
