"""A running average of a network's weights (EMA): smoother than the last step's, often better.

Source: Polyak & Juditsky 1992, in the exponential form that Lc0 and KataGo train with (KataGo calls its own stochastic
weight averaging). The decay rises from 0.1: min(decay, (1 + n) / (10 + n)) after n updates, as TensorFlow's
`ExponentialMovingAverage` does it, so that the first weights do not weigh forever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class RunningAverage:
    """Averages of a network's parameters and running statistics, in their own type.

    Attributes:
        state: name → average; whole numbers are the network's latest.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        """Begin at the network's present weights.

        Args:
            network: what is averaged.
            decay: share of the old average kept by an update, in [0, 1).
        """
        self.decay = decay
        self.state = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}

    @torch.no_grad()
    def update(self, network: nn.Module, updates: int) -> None:
        """Take in the network's present weights, after `updates` earlier times."""
        decay = min(self.decay, (1 + updates) / (10 + updates))
        for name, tensor in network.state_dict().items():
            if tensor.is_floating_point():
                self.state[name].lerp_(tensor, 1 - decay)
            else:
                self.state[name].copy_(tensor)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state kept."""
        for name, tensor in self.state.items():
            tensor.copy_(state[name])

    @contextmanager
    def applied(self, network: nn.Module) -> Iterator[None]:
        """For a while, the network's weights are the averages."""
        own = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
        network.load_state_dict(self.state)
        try:
            yield
        finally:
            network.load_state_dict(own)
