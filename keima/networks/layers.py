"""What two systems or more really share: activations by name, and the start of training.

Everything else of an architecture stands in the architecture's own file.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_ACTIVATIONS: dict[str, tuple[type[nn.Module], float]] = {
    "identity": (nn.Identity, 1.0),
    "relu": (nn.ReLU, math.sqrt(2.0)),
    "mish": (nn.Mish, math.sqrt(2.210277)),
    "silu": (nn.SiLU, math.sqrt(2.0)),
}
"""Layer, and the gain that keeps the variance of what passes through it (He et al. 2015; KataGo's `compute_gain`)."""

_TRUNCATED_STD = 0.87962566103423978
"""Standard deviation of a unit normal cut off at ±2."""


def activation_layer(name: str) -> nn.Module:
    """The layer of an activation by name: "identity", "relu", "mish" or "silu".

    Raises:
        KeyError: no such activation.
    """
    return _ACTIVATIONS[name][0]()


def activate_rows(activation: nn.Module, rows: Tensor) -> Tensor:
    """activation(rows) for rows [N, C] between two linear layers, with a third axis for the while.

    OpenVINO 2026.4 fails to compile linear → mish → linear for 4 to 15 rows of two axes ("Supported precisions set is
    not available for Mish operation").
    """
    activated: Tensor = activation(rows.unsqueeze(2)).squeeze(2)
    return activated


@torch.no_grad()
def initialise(weight: Tensor, activation: str = "identity", scale: float = 1.0, fan_in: int | None = None) -> None:
    """Fill a weight [out, in, ...] from a normal cut off at ±2σ, with σ = scale · gain(activation) / √fan_in.

    Args:
        weight: changed in place.
        activation: of what comes after the layer, by name.
        scale: on top of the gain; 0 fills with zeros.
        fan_in: inputs of one output; counted from the weight's shape when absent (give it for biases).
    """
    inputs = weight[0].numel() if fan_in is None else fan_in
    std = scale * _ACTIVATIONS[activation][1] / math.sqrt(inputs) / _TRUNCATED_STD
    if std == 0.0:
        nn.init.zeros_(weight)
    else:
        nn.init.trunc_normal_(weight, 0.0, std, -2.0 * std, 2.0 * std)
