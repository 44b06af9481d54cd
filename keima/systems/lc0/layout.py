"""Which layers of a residual Lc0 network read and write which channels: one width for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from torch import nn

from keima.systems.layout import TRUNK, Layer, Layout, SystemLayout
from keima.systems.lc0.network import Lc0Network
from keima.systems.network import Network

_CONVS = ("conv1", "conv2")


class _Lc0Layout(SystemLayout[Lc0Network]):
    """The configuration names the convolutions with batch norm."""

    prunes = "residual Lc0 networks"
    refolds = True

    def blocks(self, network: Network) -> Sequence[nn.Module] | None:
        return list(network.tower) if isinstance(network, Lc0Network) else None

    def layout(self, network: Lc0Network, blocks: Sequence[int]) -> Layout:
        found = {block: tuple(_block(network, f"tower.{block}")) for block in blocks}
        groups = [TRUNK, *(f"tower.{block}.conv1.conv" for block in blocks)]
        heads: list[Layer] = []
        match network.config.policy:
            case "convolution":
                groups.append("policy_head.policy1.conv")
                heads.append(_layer(network, "policy_head.policy1", TRUNK, groups[-1]))
                heads.append(_layer(network, "policy_head.policy", groups[-1]))
            case "classical":
                heads.append(_layer(network, "policy_head.policy", TRUNK))
            case _:
                heads.append(Layer("policy_head.embedding", reads=TRUNK))
        heads.append(_layer(network, "value_head.value", TRUNK))
        if network.moves_left_head is not None:
            heads.append(_layer(network, "moves_left_head.moves_left", TRUNK))
        sizes = dict.fromkeys(groups, network.config.channels)
        return Layout("tower.", (_layer(network, "stem", None, TRUNK),), found, tuple(heads), sizes)

    def narrower(self, network: Lc0Network, layout: Layout, sizes: Mapping[str, int]) -> Network:
        config = network.config
        widths = tuple(config.se_channels[block] for block in layout.blocks)
        norms = [name for name in config.batch_norm if not name.startswith("residual.")]
        for new, old in enumerate(layout.blocks):
            norms += [f"residual.{new}.{conv}" for conv in _CONVS if config.has_norm(f"residual.{old}.{conv}")]
        return Lc0Network(
            replace(config, blocks=len(layout.blocks), channels=sizes[TRUNK], se_channels=widths, batch_norm=norms)
        )

    def after_folding(self, network: Lc0Network) -> None:
        if isinstance(network, Lc0Network):
            network.config = replace(network.config, batch_norm=())


LAYOUT = _Lc0Layout()


def _block(network: Lc0Network, name: str) -> Iterator[Layer]:
    inner = f"{name}.conv1.conv"
    yield _layer(network, f"{name}.conv1", TRUNK, inner)
    last = _layer(network, f"{name}.conv2", inner, TRUNK)
    if isinstance(network.get_submodule(f"{name}.se"), nn.Identity):
        yield replace(last, skip=name)
        return
    yield last
    yield Layer(f"{name}.se.fc1", reads=TRUNK)
    yield Layer(f"{name}.se.fc2", writes=TRUNK, write_tiles=2)


def _layer(network: Lc0Network, block: str, reads: str | None, writes: str | None = None) -> Layer:
    """The convolution of a `ConvBlock`, and its norm where it has one."""
    has_norm = isinstance(network.get_submodule(f"{block}.norm"), nn.BatchNorm2d)
    norm = f"{block}.norm" if has_norm else None
    return Layer(f"{block}.conv", reads, writes, after=norm if writes else None, offset=norm)
