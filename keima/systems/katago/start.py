"""How a fresh KataGo network begins: weights that keep the variance of what passes through.

After `initialize` in KataGo's `python/katago/train/model_pytorch.py`. Batch norm looks after the residual sum by
itself. Where there is none ("fixed scaling"), block i of a stack starts with its first norm scaled by 1/√i, the norm
behind a stack of n blocks by 1/√(n + 1): what batch norm would do if every block added unit variance. A batch norm's
running variance starts at the same i and n + 1, so that a deep network answers sensibly before it has learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from keima.systems.katago.config import NormConfig
from keima.systems.katago.layers import AttentionBlock, FeedForwardBlock
from keima.systems.layers import initialise

if TYPE_CHECKING:
    from keima.systems.katago.network import KataGoNetwork, PolicyHead, ValueHead


def start(network: KataGoNetwork) -> None:
    """Give every weight of the network its starting value, in place; nothing where it has no memory yet (meta)."""
    if network.conv.weight.is_meta:
        return
    activation = network.config.tip.activation
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            initialise(module.weight, activation)
        elif isinstance(module, nn.Linear):
            initialise(module.weight)
    initialise(network.conv.weight, activation, 0.8)
    initialise(network.linear.weight, activation, 0.6)
    if network.metadata is not None:
        for layer in (network.metadata.linear1, network.metadata.linear2):
            initialise(layer.weight, activation, 0.8)
            initialise(layer.bias, activation, 0.2, layer.in_features)
        initialise(network.metadata.linear3.weight, activation, 0.8)
    _start_stack(network.blocks, activation)
    _scale(network.tip, len(network.blocks) + 1)
    _start_policy(network.policy, activation)
    _start_value(network.value, activation)


def _start_stack(blocks: Iterable[Any], activation: str) -> None:
    """The blocks of a trunk, or of a nested bottleneck, in order."""
    for number, block in enumerate(blocks, start=1):
        if isinstance(block, AttentionBlock | FeedForwardBlock):
            initialise(block.out.weight, scale=number**-0.5)
            if isinstance(block, AttentionBlock) and block.config.rotary == "learned":
                nn.init.normal_(block.frequencies, std=0.1)
            continue
        _scale(block.norm1, number)
        if hasattr(block, "pool_linear"):
            initialise(block.conv1.weight, activation, 0.8)
            initialise(block.pool_linear.weight, activation, 0.6)
        if hasattr(block, "blocks"):
            _start_stack(block.blocks, activation)
            _scale(block.norm2, len(block.blocks) + 1)


def _scale(norm: Any, terms: int) -> None:
    """Prepare a norm for a sum of `terms` parts of unit variance: by its running variance, or else by its scale."""
    with torch.no_grad():
        if getattr(norm.config, "statistics", False):
            norm.running_var.fill_(terms)
        elif isinstance(norm.config, NormConfig) and norm.weight is not None:
            norm.weight.fill_(terms**-0.5)


def _start_policy(head: PolicyHead, activation: str) -> None:
    initialise(head.conv.weight, activation, 0.8)
    initialise(head.pool_linear.weight, activation, 0.6)
    initialise(head.out.weight, scale=0.3)
    if head.pass_hidden is not None:
        initialise(head.pass_hidden.weight, activation)
        initialise(head.pass_hidden.bias, activation, 0.2, head.pass_hidden.in_features)
    initialise(head.pass_out.weight, scale=0.3)


def _start_value(head: ValueHead, activation: str) -> None:
    initialise(head.linear.weight, activation)
    initialise(head.linear.bias, activation, 0.2, head.linear.in_features)
    for layer, scale in ((head.value, 1.0), (head.score, 0.3)):
        initialise(layer.weight, scale=scale)
        initialise(layer.bias, scale=0.2 * scale, fan_in=layer.in_features)
    initialise(head.ownership.weight, scale=0.3)
