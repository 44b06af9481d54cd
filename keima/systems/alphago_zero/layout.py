"""Which layers of a residual AlphaGo Zero or Leela Zero network read and write which channels: one width for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import nn

from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from keima.systems.alphago_zero.network import AlphaGoZeroNetwork
from keima.systems.layout import TRUNK, Layer, Layout, SystemLayout
from keima.systems.network import Network


class _AlphaGoZeroLayout(SystemLayout[AlphaGoZeroNetwork | LeelaZeroNetwork]):
    """The same for both systems."""

    prunes = "residual AlphaGo Zero and Leela Zero networks"

    def blocks(self, network: Network) -> Sequence[nn.Module] | None:
        if isinstance(network, LeelaZeroNetwork) or (
            isinstance(network, AlphaGoZeroNetwork) and network.config["tower"] == "residual"
        ):
            return list(network.tower)
        return None

    def layout(self, network: AlphaGoZeroNetwork | LeelaZeroNetwork, blocks: Sequence[int]) -> Layout:
        inner = {block: f"tower.{block}.convolution1" for block in blocks}
        found = {block: tuple(_block(f"tower.{block}", inner[block])) for block in blocks}
        heads = [
            Layer(f"{head}.convolution", reads=TRUNK, offset=f"{head}.norm") for head in ("policy_head", "value_head")
        ]
        sizes = dict.fromkeys([TRUNK, *inner.values()], network.config["channels"])
        stem = Layer("stem.convolution", writes=TRUNK, after="stem.norm", offset="stem.norm")
        return Layout("tower.", (stem,), found, tuple(heads), sizes)

    def narrower(
        self, network: AlphaGoZeroNetwork | LeelaZeroNetwork, layout: Layout, sizes: Mapping[str, int]
    ) -> Network:
        return type(network)(**{**network.config, "blocks": len(layout.blocks), "channels": sizes[TRUNK]})


LAYOUT = _AlphaGoZeroLayout()


def _block(name: str, inner: str) -> Iterator[Layer]:
    norm1, norm2 = f"{name}.norm1", f"{name}.norm2"
    yield Layer(inner, reads=TRUNK, writes=inner, after=norm1, offset=norm1)
    yield Layer(f"{name}.convolution2", reads=inner, writes=TRUNK, after=norm2, offset=norm2, skip=name)
