"""What one training step differentiates: network, then loss, as one module; and the trunk's memory.

Network and loss stand in one module because Lightning Fabric and `DistributedDataParallel` wrap what is called: its
outputs are a dictionary of scalars, and mixed precision covers both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from keima.systems.layers import BatchStatistics
from keima.systems.loss import Objective
from keima.systems.network import Network
from keima.systems.registry import kind_of
from keima.systems.targets import TensorBatch

TOTAL = "loss"
"""The name of the sum of all terms, the number that is minimised."""


class TrainingStep(nn.Module):
    """A network and its loss.

    Args:
        network: the network that is trained.
        loss: of its outputs and a batch.
        share: the mean over the processes that train together; None for one process.
    """

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
    """Have each block of the trunk forget its inner values and make them anew in the backward pass.

    The same numbers come out (batch norms keep their running statistics still the second time); memory falls from all
    inner values to one activation a block, for about a third more time.

    Returns:
        How many blocks were changed.
    """
    blocks = list(_blocks(network))
    for block in blocks:
        contexts = partial(_contexts, block)
        block.forward = partial(checkpoint, block.forward, use_reentrant=False, context_fn=contexts)
    return len(blocks)


def _blocks(network: Network) -> Iterator[nn.Module]:
    """The trunk's blocks: what stands directly in its sequences."""
    for name in kind_of(network).trunk:
        module = getattr(network, name)
        if isinstance(module, (nn.Sequential, nn.ModuleList)):
            yield from (block for block in module if any(True for _ in block.parameters()))


def _contexts(block: nn.Module) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    return nullcontext(), _statistics_held(block)


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
