"""Which layers of a KataGo network read and write which channels, and how its norms fold."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from keima.errors import UnsupportedNetwork
from keima.systems.katago.config import BlockConfig, BottleneckConfig, NormConfig, PoolingConfig, ResidualConfig
from keima.systems.katago.layers import NormAct
from keima.systems.katago.network import (
    BottleneckBlock,
    KataGoNetwork,
    PolicyHead,
    PoolingBlock,
    ResidualBlock,
    ValueHead,
)
from keima.systems.layout import TRUNK, Layer, Layout, SystemLayout, share
from keima.systems.network import Network

FOLDED_EPSILON = 1e-20  # what KataGo writes as epsilon where the variance is already merged


class _KataGoLayout(SystemLayout[KataGoNetwork]):
    """Blocks may have any width inside and keep the trunk's share of it."""

    prunes = "residual and nested bottleneck KataGo networks"

    def blocks(self, network: Network) -> Sequence[nn.Module] | None:
        return list(network.blocks) if isinstance(network, KataGoNetwork) else None

    def layout(self, network: KataGoNetwork, blocks: Sequence[int]) -> Layout:
        if not isinstance(network.tip, NormAct):
            raise UnsupportedNetwork("cannot prune a network with an RMS norm at the tip")
        sizes = {TRUNK: network.config.channels}
        first = [f"blocks.{block}.norm1" for block in blocks]
        stem = [Layer("conv", writes=TRUNK), Layer("linear", writes=TRUNK)]
        if network.metadata is not None:
            stem.append(Layer("metadata.linear3", writes=TRUNK))
        found = {
            block: tuple(_block(f"blocks.{block}", network.blocks[block], TRUNK, following, sizes))
            for block, following in zip(blocks, [*first[1:], "tip"], strict=True)
        }
        heads = (("policy.pool_conv", "policy.pool_norm"), ("policy.conv", "policy.norm"), ("value.conv", "value.norm"))
        outer = tuple(Layer(name, reads=TRUNK, before="tip", offset=norm) for name, norm in heads)
        return Layout("blocks.", tuple(stem), found, outer, sizes)

    def widths(self, sizes: Mapping[str, int], channels: int) -> dict[str, int]:
        trunk = sizes[TRUNK]
        return {group: channels if group == TRUNK else share(size, channels, trunk) for group, size in sizes.items()}

    def narrower(self, network: KataGoNetwork, layout: Layout, sizes: Mapping[str, int]) -> Network:
        config = network.config
        blocks = tuple(_narrower_block(f"blocks.{block}", config.blocks[block], sizes) for block in layout.blocks)
        middle, regular, dilated, pooled = (share(size, sizes[TRUNK], config.channels) for size in config.nominal)
        nominal = (middle, regular, dilated, pooled)
        return KataGoNetwork(replace(config, channels=sizes[TRUNK], blocks=blocks, nominal=nominal))

    def run_heads(self, network: KataGoNetwork, x: Tensor, *along: object) -> None:
        trunk = network.tip(x, *along)
        network.policy(trunk, *along)
        network.value(trunk, *along)

    def scale(self, norm: nn.Module) -> Tensor | None:
        assert isinstance(norm, NormAct)
        return norm.merged()[0]

    def fold(self, network: KataGoNetwork) -> Network:
        with torch.device("meta"):
            folded = KataGoNetwork(_fold_config(network.config), network.pedigree)
        folded.load_state_dict(_fold_weights(network), strict=True, assign=True)
        return folded.eval()


LAYOUT = _KataGoLayout()


# --- Channels ---------------------------------------------------------------------------------------------------------


def _block(name: str, block: nn.Module, trunk: str, following: str, sizes: dict[str, int]) -> Iterator[Layer]:
    """The layers of a block on a trunk; `following` is the next norm that reads the trunk."""
    if not isinstance(block, ResidualBlock | PoolingBlock | BottleneckBlock):
        raise UnsupportedNetwork("cannot prune a network with transformer blocks")
    inner = f"{name}.conv1"
    sizes[inner] = block.conv1.out_channels
    norm1, norm2 = f"{name}.norm1", f"{name}.norm2"
    inside: Iterable[Layer] = ()
    offset = norm2
    if isinstance(block, PoolingBlock):
        pooled = f"{name}.pool_conv"
        sizes[pooled] = block.pool_conv.out_channels
        pool_norm = f"{name}.pool_norm"
        yield Layer(pooled, reads=trunk, writes=pooled, before=norm1, offset=pool_norm)
        yield Layer(f"{name}.pool_linear", pooled, inner, read_tiles=3, before=pool_norm, offset=norm2)
    elif isinstance(block, BottleneckBlock):
        names = [f"{name}.blocks.{number}" for number in range(len(block.blocks))]
        norms = [*(f"{one}.norm1" for one in names), norm2]
        offset = norms[0]
        inner_blocks = zip(names, block.blocks, norms[1:], strict=True)
        inside = [layer for one in inner_blocks for layer in _block(one[0], one[1], inner, one[2], sizes)]
    yield Layer(inner, reads=trunk, writes=inner, before=norm1, offset=offset)
    yield from inside
    yield Layer(f"{name}.conv2", inner, trunk, before=norm2, offset=following, skip=name)


def _narrower_block(name: str, config: BlockConfig, sizes: Mapping[str, int]) -> BlockConfig:
    inner = sizes[f"{name}.conv1"]
    match config:
        case ResidualConfig():
            return replace(config, channels=inner)
        case PoolingConfig():
            return replace(config, channels=inner, pooled=sizes[f"{name}.pool_conv"])
        case BottleneckConfig():
            numbered = enumerate(config.blocks)
            blocks = tuple(_narrower_block(f"{name}.blocks.{number}", one, sizes) for number, one in numbered)
            return replace(config, channels=inner, blocks=blocks)
        case _:
            raise TypeError(type(config).__name__)


# --- Folding ----------------------------------------------------------------------------------------------------------


_TAKEN = {"second", "pool", "board", "norm"}
"""Norms, by their names in configurations, whose scale the convolution before them takes over."""


def _fold_config(config: Any) -> Any:
    """A configuration, or a part of one, with every norm's statistics merged into scale and bias."""
    if isinstance(config, tuple):
        return tuple(map(_fold_config, config))
    if not is_dataclass(config) or isinstance(config, type):
        return config
    folded = replace(config, **{each.name: _fold_config(getattr(config, each.name)) for each in fields(config)})
    for name in _TAKEN & vars(folded).keys():
        folded = replace(folded, **{name: replace(getattr(folded, name), scale=False)})
    if isinstance(folded, NormConfig) and folded.statistics:
        return replace(folded, scale=True, bias=True, statistics=False, epsilon=FOLDED_EPSILON)
    return folded


def _fold_weights(network: KataGoNetwork) -> dict[str, Tensor]:
    """The weights of the folded network by name, computed in float64."""
    weights = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
    writers = dict(_norms_after_linear_layers(network))
    for name, norm in network.named_modules():
        if not isinstance(norm, NormAct):
            continue
        scale, bias = _scale_and_bias(norm)
        for gone in ("weight", "running_mean", "running_var"):
            weights.pop(f"{name}.{gone}", None)
        if bias is not None:
            weights[f"{name}.bias"] = bias.float()
        if scale is None:
            continue
        for layer in writers.get(name, ()):
            weight = weights[f"{layer}.weight"]
            weights[f"{layer}.weight"] = (weight.double() * scale.reshape(-1, *[1] * (weight.ndim - 1))).float()
        if name not in writers:
            weights[f"{name}.weight"] = scale.float()
    return weights


def _scale_and_bias(norm: NormAct) -> tuple[Tensor | None, Tensor | None]:
    """What the norm multiplies by and adds in evaluation, float64 [C]; None for 1 and 0."""
    with torch.no_grad():
        return copy.deepcopy(norm).double().merged()


def _norms_after_linear_layers(network: KataGoNetwork) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of norms that read nothing but linear layers' (summed) outputs, with the names of those layers."""
    for name, module in network.named_modules():
        match module:
            case ResidualBlock():
                yield f"{name}.norm2", (f"{name}.conv1",)
            case PoolingBlock():
                yield f"{name}.pool_norm", (f"{name}.pool_conv",)
                yield f"{name}.norm2", (f"{name}.conv1", f"{name}.pool_linear")
            case PolicyHead():
                yield f"{name}.pool_norm", (f"{name}.pool_conv",)
                yield f"{name}.norm", (f"{name}.conv", f"{name}.pool_linear")
            case ValueHead():
                yield f"{name}.norm", (f"{name}.conv",)
