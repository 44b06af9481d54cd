"""What folding and pruning ask of a system: which layers read and write which channels, and how a network shrinks.

A *group* is a set of channels that live or die together. The trunk is one: the stem and every block add to it, every
block and head reads it. The channels inside a block are groups of their own; a block with global pooling has two. A
`Layer` names the groups at both ends of a convolution or a linear layer, and the norms on the way. A system's
`layout.py` declares `LAYOUT`, a `SystemLayout`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from keima.systems.network import Network

TRUNK = "trunk"

N = TypeVar("N", bound=Network)


@dataclass(frozen=True)
class Layer:
    """A convolution or linear layer that reads or writes a group of channels."""

    name: str  # of the module
    reads: str | None = None  # the group at its input; None where its channels stay
    writes: str | None = None  # likewise at its output
    # how often the group stands there one after the other (three times after pooling: mean,
    # scaled mean, maximum; twice at the end of squeeze-and-excitation)
    read_tiles: int = 1
    write_tiles: int = 1
    before: str | None = None  # the norm between the group it reads and the layer
    after: str | None = None  # the norm between the layer and the group it writes
    offset: str | None = None  # the norm that can take a constant added to its output
    skip: str | None = None  # the block whose input is added to what it writes


@dataclass(frozen=True)
class Layout:
    """A network's layers by what they read and write, each part in the order of evaluation."""

    prefix: str  # of its blocks' names, which are numbers
    stem: tuple[Layer, ...]  # the layers before the blocks
    blocks: Mapping[int, tuple[Layer, ...]]  # number → layers of each block that is kept
    heads: tuple[Layer, ...]  # those after them
    sizes: Mapping[str, int]  # group → how many channels it has; the trunk first, then outer before inner

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
        """A module's or weight's name once the blocks left out are gone; None for what belongs to one of those."""
        if not name.startswith(self.prefix):
            return name
        number, *rest = name.removeprefix(self.prefix).split(".")
        kept = list(self.blocks)
        if int(number) not in kept:
            return None
        return ".".join([f"{self.prefix}{kept.index(int(number))}", *rest])


def share(size: int, channels: int, trunk: int) -> int:
    """What is left of `size` channels when a trunk of `trunk` keeps `channels`; multiples of 8 where both are."""
    step = 8 if size % 8 == 0 and channels % 8 == 0 else 1
    return min(size, max(step, step * round(size * channels / trunk / step)))


class SystemLayout(Generic[N]):
    """What a system's `layout.py` says of its networks."""

    prunes = ""  # which of its networks can be pruned, for messages
    refolds = False  # a folded network's configuration says which norms are left, so that it can still be pruned

    def blocks(self, network: Network) -> Sequence[nn.Module] | None:
        """The blocks of the trunk, in order; None for a network that is not pruned."""
        raise NotImplementedError

    def layout(self, network: N, blocks: Sequence[int]) -> Layout:
        """The layers of a network with these of its blocks; raises UnsupportedNetwork for a part that is not pruned."""
        raise NotImplementedError

    def widths(self, sizes: Mapping[str, int], channels: int) -> dict[str, int]:
        """Group → channels to keep, for a trunk of `channels`; here, the same for all."""
        return dict.fromkeys(sizes, channels)

    def narrower(self, network: N, layout: Layout, sizes: Mapping[str, int]) -> Network:
        """A network of the same class with the layout's blocks and these group sizes, its weights not yet set."""
        raise NotImplementedError

    def run_heads(self, network: N, x: Tensor, *along: object) -> None:
        """Evaluate all heads on the output [N, C, H, W] of the last block and what came along with it."""
        for name in ("policy_head", "value_head", "moves_left_head"):
            head = getattr(network, name, None)
            if head is not None:
                head(x)

    def scale(self, norm: nn.Module) -> Tensor | None:
        """What a norm multiplies its channels by in evaluation, [C]; None for 1."""
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_var is not None
        scale: Tensor = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        return scale

    def fold(self, network: N) -> Network | None:
        """A folded copy, where the system has norms of its own; None where only batch norms after convolutions fold."""
        return None

    def after_folding(self, network: N) -> None:
        """Says in a folded network's configuration what is gone."""
