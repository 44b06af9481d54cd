"""Which channels of a network belong together, layer by layer: what pruning can cut, and where.

A *group* is a set of channels that live or die together. The trunk is one: the stem and every block add to it, every
block and head reads it, so one channel less of it is one less everywhere. The channels inside a block are groups of
their own; a block with global pooling has two. A `Layer` names the groups at both ends of a convolution or a linear
layer, and the norms on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from keima.errors import BadRequest, UnsupportedNetwork
from keima.networks.alphago_zero import AlphaGoZeroNetwork
from keima.networks.katago import BottleneckBlock, KataGoNetwork, NormAct, PoolingBlock, ResidualBlock
from keima.networks.katago_config import BlockConfig, BottleneckConfig, KataGoConfig, PoolingConfig, ResidualConfig
from keima.networks.lc0 import Lc0Network
from keima.networks.leela_zero import LeelaZeroNetwork
from keima.networks.network import Network

TRUNK = "trunk"
SUPPORTED = "residual and nested bottleneck KataGo, AlphaGo Zero and Leela Zero, residual Lc0 networks"


@dataclass(frozen=True)
class Layer:
    """A convolution or linear layer that reads or writes a group of channels.

    Attributes:
        name: of the module.
        reads, writes: the groups at its input and output; None where its channels stay.
        read_tiles, write_tiles: how often the group stands there one after the other (three times after pooling: mean,
            scaled mean, maximum; twice at the end of squeeze-and-excitation).
        before: the norm between the group it reads and the layer.
        after: the norm between the layer and the group it writes.
        offset: the norm that can take a constant added to its output.
        skip: the block whose input is added to what it writes.
    """

    name: str
    reads: str | None = None
    writes: str | None = None
    read_tiles: int = 1
    write_tiles: int = 1
    before: str | None = None
    after: str | None = None
    offset: str | None = None
    skip: str | None = None


@dataclass(frozen=True)
class Layout:
    """A network's layers by what they read and write, each part in the order of evaluation.

    Attributes:
        prefix: of its blocks' names, which are numbers.
        stem, heads: layers before and after the blocks.
        blocks: number → layers of each block that is kept.
        sizes: group → how many channels it has; the trunk first, then outer before inner.
    """

    prefix: str
    stem: tuple[Layer, ...]
    blocks: Mapping[int, tuple[Layer, ...]]
    heads: tuple[Layer, ...]
    sizes: Mapping[str, int]

    def layers(self) -> Iterator[Layer]:
        """All of them."""
        yield from self.stem
        for block in self.blocks.values():
            yield from block
        yield from self.heads

    def norms(self) -> dict[str, str]:
        """Norm → the group whose channels it has."""
        found = {layer.before: layer.reads for layer in self.layers()}
        found |= {layer.after: layer.writes for layer in self.layers()}
        return {norm: group for norm, group in found.items() if norm and group}

    def renamed(self, name: str) -> str | None:
        """What a module or weight is called once the blocks left out are gone and the others counted anew.

        Returns:
            None for what belongs to a block left out.
        """
        if not name.startswith(self.prefix):
            return name
        number, *rest = name.removeprefix(self.prefix).split(".")
        kept = list(self.blocks)
        if int(number) not in kept:
            return None
        return ".".join([f"{self.prefix}{kept.index(int(number))}", *rest])


def blocks_of(network: Network) -> Sequence[nn.Module]:
    """The blocks of the trunk, in order.

    Raises:
        UnsupportedNetwork: a network that pruning does not know, or one without blocks.
        BadRequest: its batch norms have been folded away, which leaves other layers than its configuration says.
    """
    if isinstance(network, KataGoNetwork):
        blocks: Any = network.blocks
    elif isinstance(network, LeelaZeroNetwork | Lc0Network) or (
        isinstance(network, AlphaGoZeroNetwork) and network.config["tower"] == "residual"
    ):
        blocks = network.tower
    else:
        kind = type(network).__name__
        raise UnsupportedNetwork(f"cannot prune {network.pedigree.name} ({kind}); it prunes {SUPPORTED}")
    if not len(blocks):
        raise UnsupportedNetwork(f"cannot prune {network.pedigree.name}: it has no blocks")
    if getattr(network, "folded", None) and not isinstance(network, Lc0Network):
        raise BadRequest(f"{network.pedigree.name} has been folded; prune first, fold afterwards")
    return list(blocks)


def layout_of(network: Network, blocks: Iterable[int]) -> Layout:
    """The layout of a network with these of its blocks.

    Raises:
        UnsupportedNetwork: a network, or a block of one, that pruning does not know.
    """
    if isinstance(network, KataGoNetwork):
        return _katago(network, list(blocks))
    return _lc0(network, list(blocks)) if isinstance(network, Lc0Network) else _alphago_zero(network, list(blocks))


def narrower_sizes(network: Network, sizes: Mapping[str, int], channels: int) -> dict[str, int]:
    """Group → channels to keep, for a trunk of `channels`.

    KataGo's blocks may have any width inside and keep the trunk's share, in multiples of 8 where both were such
    multiples. The other systems have one width for all.
    """
    trunk = sizes[TRUNK]
    if not isinstance(network, KataGoNetwork):
        return dict.fromkeys(sizes, channels)
    return {group: channels if group == TRUNK else _share(size, channels, trunk) for group, size in sizes.items()}


def _share(size: int, channels: int, trunk: int) -> int:
    step = 8 if size % 8 == 0 and channels % 8 == 0 else 1
    return min(size, max(step, step * round(size * channels / trunk / step)))


def narrower(network: Network, layout: Layout, sizes: Mapping[str, int]) -> Network:
    """A network of the same class with the layout's blocks and these group sizes, its weights not yet set."""
    config: Any = network.config
    if isinstance(network, KataGoNetwork):
        return KataGoNetwork(_katago_config(config, layout, sizes))
    if isinstance(network, Lc0Network):
        widths = tuple(config.se_channels[block] for block in layout.blocks)
        renamed = (_renamed_convolution(name, layout) for name in config.batch_norm)
        norms = tuple(name for name in renamed if name)
        return Lc0Network(
            replace(config, blocks=len(layout.blocks), channels=sizes[TRUNK], se_channels=widths, batch_norm=norms)
        )
    made: Network = type(network)(**{**config, "blocks": len(layout.blocks), "channels": sizes[TRUNK]})
    return made


# --- KataGo -----------------------------------------------------------------------------------------------------------


def _katago(network: KataGoNetwork, blocks: list[int]) -> Layout:
    if not isinstance(network.tip, NormAct):
        raise UnsupportedNetwork(f"cannot prune a network with an RMS norm at the tip; keima prunes {SUPPORTED}")
    sizes = {TRUNK: network.config.channels}
    first = [f"blocks.{block}.norm1" for block in blocks]
    stem = [Layer("conv", writes=TRUNK), Layer("linear", writes=TRUNK)]
    if network.metadata is not None:
        stem.append(Layer("metadata.linear3", writes=TRUNK))
    found = {
        block: tuple(_katago_block(f"blocks.{block}", network.blocks[block], TRUNK, following, sizes))
        for block, following in zip(blocks, [*first[1:], "tip"], strict=True)
    }
    heads = (("policy.pool_conv", "policy.pool_norm"), ("policy.conv", "policy.norm"), ("value.conv", "value.norm"))
    return Layout(
        "blocks.",
        tuple(stem),
        found,
        tuple(Layer(name, reads=TRUNK, before="tip", offset=norm) for name, norm in heads),
        sizes,
    )


def _katago_block(name: str, block: nn.Module, trunk: str, following: str, sizes: dict[str, int]) -> Iterator[Layer]:
    """The layers of a block on a trunk; `following` is the next norm that reads the trunk."""
    if not isinstance(block, ResidualBlock | PoolingBlock | BottleneckBlock):
        raise UnsupportedNetwork(f"cannot prune a network with transformer blocks; keima prunes {SUPPORTED}")
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
        parts = [
            _katago_block(one, module, inner, after, sizes)
            for one, module, after in zip(names, block.blocks, norms[1:], strict=True)
        ]
        inside = [layer for part in parts for layer in part]
    yield Layer(inner, reads=trunk, writes=inner, before=norm1, offset=offset)
    yield from inside
    yield Layer(f"{name}.conv2", inner, trunk, before=norm2, offset=following, skip=name)


def _katago_config(config: KataGoConfig, layout: Layout, sizes: Mapping[str, int]) -> KataGoConfig:
    blocks = tuple(_katago_block_config(f"blocks.{block}", config.blocks[block], sizes) for block in layout.blocks)
    middle, regular, dilated, pooled = (_share(size, sizes[TRUNK], config.channels) for size in config.nominal)
    nominal = (middle, regular, dilated, pooled)
    return replace(config, channels=sizes[TRUNK], blocks=blocks, nominal=nominal)


def _katago_block_config(name: str, config: BlockConfig, sizes: Mapping[str, int]) -> BlockConfig:
    inner = sizes[f"{name}.conv1"]
    match config:
        case ResidualConfig():
            return replace(config, channels=inner)
        case PoolingConfig():
            return replace(config, channels=inner, pooled=sizes[f"{name}.pool_conv"])
        case BottleneckConfig():
            numbered = enumerate(config.blocks)
            blocks = tuple(_katago_block_config(f"{name}.blocks.{number}", one, sizes) for number, one in numbered)
            return replace(config, channels=inner, blocks=blocks)
        case _:
            raise TypeError(type(config).__name__)


# --- AlphaGo Zero, Leela Zero -----------------------------------------------------------------------------------------


def _alphago_zero(network: Network, blocks: list[int]) -> Layout:
    config: Any = network.config
    inner = {block: f"tower.{block}.convolution1" for block in blocks}
    found = {block: tuple(_alphago_zero_block(f"tower.{block}", inner[block])) for block in blocks}
    heads = [Layer(f"{head}.convolution", reads=TRUNK, offset=f"{head}.norm") for head in ("policy_head", "value_head")]
    sizes = dict.fromkeys([TRUNK, *inner.values()], int(config["channels"]))
    stem = Layer("stem.convolution", writes=TRUNK, after="stem.norm", offset="stem.norm")
    return Layout("tower.", (stem,), found, tuple(heads), sizes)


def _alphago_zero_block(name: str, inner: str) -> Iterator[Layer]:
    norm1, norm2 = f"{name}.norm1", f"{name}.norm2"
    yield Layer(inner, reads=TRUNK, writes=inner, after=norm1, offset=norm1)
    yield Layer(f"{name}.convolution2", reads=inner, writes=TRUNK, after=norm2, offset=norm2, skip=name)


# --- Lc0 --------------------------------------------------------------------------------------------------------------


def _lc0(network: Lc0Network, blocks: list[int]) -> Layout:
    found = {block: tuple(_lc0_block(network, f"tower.{block}")) for block in blocks}
    groups = [TRUNK, *(f"tower.{block}.conv1.conv" for block in blocks)]
    heads: list[Layer] = []
    match network.config.policy:
        case "convolution":
            groups.append("policy_head.policy1.conv")
            heads.append(_lc0_layer(network, "policy_head.policy1", TRUNK, groups[-1]))
            heads.append(_lc0_layer(network, "policy_head.policy", groups[-1]))
        case "classical":
            heads.append(_lc0_layer(network, "policy_head.policy", TRUNK))
        case _:
            heads.append(Layer("policy_head.embedding", reads=TRUNK))
    heads.append(_lc0_layer(network, "value_head.value", TRUNK))
    if network.moves_left_head is not None:
        heads.append(_lc0_layer(network, "moves_left_head.moves_left", TRUNK))
    sizes = dict.fromkeys(groups, network.config.channels)
    return Layout("tower.", (_lc0_layer(network, "stem", None, TRUNK),), found, tuple(heads), sizes)


def _lc0_block(network: Lc0Network, name: str) -> Iterator[Layer]:
    inner = f"{name}.conv1.conv"
    yield _lc0_layer(network, f"{name}.conv1", TRUNK, inner)
    last = _lc0_layer(network, f"{name}.conv2", inner, TRUNK)
    if isinstance(network.get_submodule(f"{name}.se"), nn.Identity):
        yield replace(last, skip=name)
        return
    yield last
    yield Layer(f"{name}.se.fc1", reads=TRUNK)
    yield Layer(f"{name}.se.fc2", writes=TRUNK, write_tiles=2)


def _lc0_layer(network: Lc0Network, block: str, reads: str | None, writes: str | None = None) -> Layer:
    """The convolution of a `ConvBlock`, and its norm where it has one."""
    has_norm = isinstance(network.get_submodule(f"{block}.norm"), nn.BatchNorm2d)
    norm = f"{block}.norm" if has_norm else None
    return Layer(f"{block}.conv", reads, writes, after=norm if writes else None, offset=norm)


def _renamed_convolution(name: str, layout: Layout) -> str | None:
    """A convolution's name in an `Lc0Config` ("residual.3.conv1") once the blocks left out are gone."""
    if not name.startswith("residual."):
        return name
    renamed = layout.renamed(name.replace("residual.", layout.prefix))
    return renamed and renamed.replace(layout.prefix, "residual.")
