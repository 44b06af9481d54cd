"""How far two networks of one encoding agree: the same first move, the same value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from keima.systems.encoding import decoding_context
from keima.systems.network import Array, Heads, Network


@dataclass(frozen=True)
class Agreement:
    """Two networks beside each other.

    Attributes:
        positions: how many.
        top1: share in [0, 1] of them in which both have the same first move, legal or not.
        value: mean |Δvalue| in [0, 2]; None without values.
    """

    positions: int
    top1: float
    value: float | None

    def summary(self) -> str:
        """One line for people."""
        value = "" if self.value is None else f", mean |Δvalue| {self.value:.3f}"
        return f"the same first move in {self.top1:.1%} of {self.positions:,} positions{value}"


@torch.no_grad()
def agreement(first: Network, second: Network, batches: Sequence[Mapping[str, Tensor]]) -> Agreement:
    """Compare two networks in evaluation mode.

    Args:
        first, second: of one encoding.
        batches: their inputs by name.
    """
    same: list[Array] = []
    apart: list[Array] = []
    for inputs in batches:
        one, other = _heads(first, inputs), _heads(second, inputs)
        same.append(one.policy.argmax(axis=1) == other.policy.argmax(axis=1))
        if one.value is not None and other.value is not None:
            apart.append(np.abs(one.value - other.value))
    hits = np.concatenate(same)
    return Agreement(len(hits), float(hits.mean()), float(np.concatenate(apart).mean()) if apart else None)


def _heads(network: Network, inputs: Mapping[str, Tensor]) -> Heads:
    """A network's answers, games of no result left out."""
    return network.answers(network(**inputs), decoding_context(np.ones(len(inputs["planes"]), np.bool_)))
