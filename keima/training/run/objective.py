"""What one training step differentiates, network and then loss as one module; the trunk's memory; shared batch norms.

Network and loss stand in one module because Lightning Fabric and `DistributedDataParallel` wrap what is called: its
outputs are a dictionary of scalars, and mixed precision covers both parts. With several processes batch norms are over
all positions, so that two train exactly as one with the whole batch: PyTorch has `SyncBatchNorm` for CUDA only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

import torch
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce as _all_reduce
from torch.utils.checkpoint import checkpoint

from keima.systems.layers import BatchStatistics
from keima.systems.loss import Objective
from keima.systems.network import Network
from keima.systems.registry import kind_of
from keima.systems.targets import TensorBatch

TOTAL = "loss"
"""The name of the sum of all terms, the number that is minimised."""


class TrainingStep(nn.Module):
    """A network and its loss; `share`: the mean over the processes that train together, None for one process."""

    def __init__(self, network: Network, loss: Objective, share: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.network = network
        self.loss = loss
        self.share = share

    def forward(self, given: Whole) -> dict[str, Tensor]:
        """A batch of tensors → the terms of its loss, float32 scalars, and `TOTAL`, their weighted sum."""
        batch = given.batch
        terms = self.loss(self.network(**batch.inputs), batch, self.share)
        return {TOTAL: terms.total, **terms.named}


class Whole:
    """A batch as Lightning Fabric passes it on unchanged: it takes frozen dataclasses apart, and this not."""

    def __init__(self, batch: TensorBatch) -> None:
        self.batch = batch


def checkpoint_trunk(network: Network) -> int:
    """Have each block of the trunk forget its inner values and make them anew in the backward pass; how many blocks.

    The same numbers come out (batch norms keep their running statistics still the second time); memory falls from all
    inner values to one activation a block, for about a third more time.
    """
    blocks = list(_blocks(network))
    for block in blocks:
        contexts = partial(lambda block: (nullcontext(), _statistics_held(block)), block)
        block.forward = partial(checkpoint, block.forward, use_reentrant=False, context_fn=contexts)
    return len(blocks)


def _blocks(network: Network) -> Iterator[nn.Module]:
    """The trunk's blocks: what stands directly in its sequences."""
    for name in kind_of(network).trunk:
        module = getattr(network, name)
        if isinstance(module, (nn.Sequential, nn.ModuleList)):
            yield from (block for block in module if any(True for _ in block.parameters()))


@contextmanager
def _statistics_held(block: nn.Module) -> Iterator[None]:
    """Batch norms inside use the batch's statistics and remember nothing of them."""
    norms = [module for module in block.modules() if isinstance(module, nn.BatchNorm2d | BatchStatistics)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
            if isinstance(norm, nn.BatchNorm2d) and norm.num_batches_tracked is not None:
                norm.num_batches_tracked.sub_(1)


# --- Several processes ------------------------------------------------------------------------------------------------


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
    """Let the network's batch norms work over all processes; a network without any stays as it is.

    `nn.BatchNorm2d` is replaced and keeps its parameters, statistics and name; norms of ours (`BatchStatistics`) are
    told how to work out their moments.
    """
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
