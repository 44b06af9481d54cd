"""Structured pruning: a narrower or shallower network of the same system, made of the channels that matter most.

What is left is dense and smaller, runs faster everywhere and is written in the same file format. It answers worse than
the original and is meant to be trained on (`keima compress distill`).

Which channels stay:

- Without positions, by the weights alone: how much is written to a channel times how much is read from it, as norms of
  the filters (Li et al. 2017, "Pruning Filters for Efficient ConvNets", arXiv:1608.08710) times the scales of the norms
  on the way (Liu et al. 2017, "Network Slimming", arXiv:1708.06519).
- With positions, one channel after the other goes: always the one whose loss does least harm to the layers that read
  it once their other weights have made up for it. For inputs of covariance H and weights w_c of channel c that harm is
  |w_c|² / [H⁻¹]_cc (Hassibi & Stork 1993, "Optimal Brain Surgeon"; for whole channels Kurtic et al. 2023, "ZipLM",
  arXiv:2302.04089), as a share of what the layer puts out. Then all layers are fitted anew (`keima.compress.refit`).

Which blocks stay: those that change their input most, |block(x) − x| / |x|; by weights, those that write most.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from keima.compress.refit import Inputs, Moments, Sample, blocks_of, layout_of, refit, scale_of, watching
from keima.errors import BadRequest
from keima.systems.encoding import decoding_context
from keima.systems.layout import TRUNK, Layer, Layout
from keima.systems.network import Array, Heads, Network, Pedigree

RIDGE = 1e-4
"""Added to a covariance before it is inverted, as a share of the mean variance."""


@torch.no_grad()
def prune(
    network: Network,
    channels: int | None = None,
    *,
    blocks: int | None = None,
    batches: Sequence[Inputs] = (),
    tell: Callable[[str], None] = lambda words: None,
) -> Network:
    """A network of fewer channels, fewer blocks, or both, for evaluation; its pedigree names the original.

    KataGo's blocks keep the same share of their inner channels; the other systems have one width for all. The heads
    stay as large as they are.

    Args:
        network: a residual network; left as it is.
        channels, blocks: to keep, of the trunk; all if None.
        batches: the network's inputs by name, `mask` among them where boards are padded: positions to measure by and to
            fit the weights on. About 2,000 positions are enough; none: by the weights alone.
        tell: hears what is being done.

    Raises:
        UnsupportedNetwork: a system or an architecture that is not pruned.
        BadRequest: sizes that cannot be, or that leave the network as it is.
    """
    original = copy.deepcopy(network).eval()
    depth = len(blocks_of(original))
    system = layout_of(original)
    everything = system.layout(original, range(depth))
    width = everything.sizes[TRUNK]
    _check("channels", channels, width)
    _check("blocks", blocks, depth)
    if channels in (None, width) and blocks in (None, depth):
        raise BadRequest(f"nothing to prune: {network.pedigree.name} has {depth} blocks of {width} channels")
    tell("measuring the channels")
    seen = _Seen(original, everything, batches)
    layout = system.layout(original, seen.strongest_blocks(blocks or depth))
    kept: dict[str, Tensor] = {}
    for group, size in system.widths(layout.sizes, channels or width).items():
        tell(f"choosing {size} channels: {group}")
        kept[group] = seen.strongest_channels(layout, group, size, kept)
    pruned = _cut(original, layout, kept)
    if batches:
        refit(original, pruned, layout, kept, batches, tell)
    pruned.pedigree = _pedigree(network.pedigree, len(layout.blocks), len(kept[TRUNK]))
    return pruned


def _check(what: str, wanted: int | None, has: int) -> None:
    if wanted is not None and not 1 <= wanted <= has:
        raise BadRequest(f"cannot keep {wanted} {what} of {has}; choose 1 to {has}")


def _pedigree(known: Pedigree, blocks: int, channels: int) -> Pedigree:
    """Of a pruned network: named after the original, which the details tell."""
    details = {**known.details, "pruned from": known.origin, "pruned from sha256": known.sha256}
    details = {name: text for name, text in details.items() if text}
    return replace(known, name=f"{known.name}-pruned-b{blocks}c{channels}", sha256="", details=details)


# --- What matters -----------------------------------------------------------------------------------------------------


class _Seen:
    """What is known of a network's channels and blocks: by its weights, and by positions where there are any."""

    def __init__(self, network: Network, layout: Layout, batches: Sequence[Inputs]) -> None:
        self.network = network
        self.layout = layout
        self.weights = network.state_dict()
        self.readers = {layer.name: layer for layer in layout.layers() if layer.reads}
        self.moments = {name: Moments() for name in self.readers}
        self.changes = dict.fromkeys(layout.blocks, (0.0, 0.0))
        for number, inputs in enumerate(batches):
            self._look(inputs, Sample.of(inputs, number))
        self.has_positions = bool(batches)

    def _look(self, inputs: Inputs, sample: Sample) -> None:
        blocks = {f"{self.layout.prefix}{number}": number for number in self.layout.blocks}

        def see(name: str, taken: Tensor, written: Tensor) -> None:
            x = sample.of_map(taken)
            if name in blocks:
                change, size = self.changes[blocks[name]]
                change += float((sample.of_map(written) - x).square().sum())
                self.changes[blocks[name]] = change, size + float(x.square().sum())
            else:
                x = x.reshape(-1, x.shape[1] // self.readers[name].read_tiles)
                self.moments[name].add(x, x[:, :0])

        with watching(self.network, [*blocks, *self.readers], see):
            self.network(**inputs)

    def strongest_blocks(self, count: int) -> list[int]:
        if self.has_positions:
            strength = {number: change / max(size, 1e-30) for number, (change, size) in self.changes.items()}
        else:
            strength = {
                number: sum(float(self._written(layer).sum()) for layer in layers if layer.writes == TRUNK)
                for number, layers in self.layout.blocks.items()
            }
        return sorted(sorted(strength, key=lambda number: -strength[number])[:count])

    def strongest_channels(self, layout: Layout, group: str, count: int, kept: Mapping[str, Tensor]) -> Tensor:
        """The channels of a group to keep, int64 [count], in order; `kept` are those of groups already cut."""
        if count == layout.sizes[group]:
            return torch.arange(count)
        readers = [layer for layer in layout.layers() if layer.reads == group]
        if self.has_positions:
            weights = [self._read_weights(layer, kept) for layer in readers]
            covariances = [self.moments[layer.name].covariances()[0] for layer in readers]
            return _eliminate(covariances, weights, count)
        written = sum(self._written(layer) for layer in layout.layers() if layer.writes == group)
        read = torch.zeros((), dtype=torch.float64)
        for layer in readers:
            energy = self._scaled(self._read_weights(layer, kept).square().sum(1), layer.before)
            read = read + energy / energy.sum().clamp(min=1e-30)
        return torch.topk(written * read, count).indices.sort().values

    def _read_weights(self, layer: Layer, kept: Mapping[str, Tensor]) -> Tensor:
        """Float64 [C, all else]: what a layer reads from each channel of its group."""
        weight = self.weights[f"{layer.name}.weight"].double()
        if layer.writes and layer.writes in kept:
            weight = weight[kept[layer.writes]]
        by_channel: Tensor = weight.reshape(len(weight), layer.read_tiles, -1, *weight.shape[2:]).transpose(0, 2)
        return by_channel.flatten(1)

    def _written(self, layer: Layer) -> Tensor:
        """Float64 [C]: the energy that a layer writes to each channel of its group, for inputs of unit variance."""
        weight = self.weights[f"{layer.name}.weight"].double()
        energy = weight.flatten(1).square().sum(1).reshape(layer.write_tiles, -1).sum(0)
        return self._scaled(energy, layer.after)

    def _scaled(self, energy: Tensor, norm: str | None) -> Tensor:
        scale = scale_of(self.network, norm)
        return energy if scale is None else energy * scale.double().square()


def _eliminate(covariances: Sequence[Tensor], weights: Sequence[Tensor], count: int) -> Tensor:
    """Take channels out one by one, always the one whose loss the readers can best make up for; the `count` that stay.

    Args:
        covariances: [C, C] of each reader's inputs.
        weights: [C, O] of each reader; copied.
    """
    size = len(covariances[0])
    readers = []
    for covariance, weight in zip(covariances, weights, strict=True):
        ridge = RIDGE * covariance.diagonal().mean().clamp(min=1e-30)
        covariance = covariance + ridge * torch.eye(size, dtype=covariance.dtype)
        output = float((weight * (covariance @ weight)).sum())
        readers.append((torch.linalg.inv(covariance), weight.clone(), max(output, 1e-30)))
    gone = torch.zeros(size, dtype=torch.bool)
    for _ in range(size - count):
        harm = torch.zeros(size, dtype=torch.float64)
        for inverse, weight, output in readers:
            harm += weight.square().sum(1) / inverse.diagonal().clamp(min=1e-30) / output
        channel = int(harm.masked_fill(gone, torch.inf).argmin())
        gone[channel] = True
        for inverse, weight, _output in readers:
            column = inverse[:, channel] / inverse[channel, channel]
            weight -= torch.outer(column, weight[channel])
            inverse -= torch.outer(column, inverse[channel])
    return torch.nonzero(~gone).flatten()


def _cut(network: Network, layout: Layout, kept: Mapping[str, Tensor]) -> Network:
    weights = dict(network.state_dict())
    for layer in layout.layers():
        weight = weights[f"{layer.name}.weight"]
        if layer.writes:
            rows = _tiled(kept[layer.writes], layout.sizes[layer.writes], layer.write_tiles)
            weight = weight[rows]
            if f"{layer.name}.bias" in weights:
                weights[f"{layer.name}.bias"] = weights[f"{layer.name}.bias"][rows]
        if layer.reads:
            weight = weight[:, _tiled(kept[layer.reads], layout.sizes[layer.reads], layer.read_tiles)]
        weights[f"{layer.name}.weight"] = weight
    for norm, group in layout.norms().items():
        for name in ("weight", "bias", "running_mean", "running_var"):
            if f"{norm}.{name}" in weights:
                weights[f"{norm}.{name}"] = weights[f"{norm}.{name}"][kept[group]]
    pruned = layout_of(network).narrower(network, layout, {group: len(channels) for group, channels in kept.items()})
    renamed = ((layout.renamed(name), tensor) for name, tensor in weights.items())
    pruned.load_state_dict({name: tensor for name, tensor in renamed if name}, strict=True)
    return pruned.eval()


def _tiled(channels: Tensor, size: int, tiles: int) -> Tensor:
    """Where these channels of a group of `size` are, when the group stands there `tiles` times."""
    return torch.cat([channels + tile * size for tile in range(tiles)])


@dataclass(frozen=True)
class Agreement:
    """Two networks beside each other: the share with the same first move, legal or not; mean |Δvalue| in [0, 2]; the
    second policy's KL divergence from the first, in nats."""

    positions: int
    top1: float
    value: float | None
    divergence: float

    def summary(self) -> str:
        """One line for people."""
        value = "" if self.value is None else f", mean |Δvalue| {self.value:.3f}"
        moves = f"the same first move in {self.top1:.1%} of {self.positions:,} positions, KL {self.divergence:.4f}"
        return moves + value


@torch.no_grad()
def agreement(first: Network, second: Network, batches: Sequence[Mapping[str, Tensor]]) -> Agreement:
    """Compare two networks of one encoding in evaluation mode on inputs by name."""
    same: list[Array] = []
    apart: list[Array] = []
    divergences: list[Array] = []
    for inputs in batches:
        one, other = _heads(first, inputs), _heads(second, inputs)
        same.append(one.policy.argmax(axis=1) == other.policy.argmax(axis=1))
        wanted, found = (torch.from_numpy(each.policy).double().log_softmax(1) for each in (one, other))
        divergences.append(divergence(wanted, found).numpy())
        if one.value is not None and other.value is not None:
            apart.append(np.abs(one.value - other.value))
    hits = np.concatenate(same)
    value = float(np.concatenate(apart).mean()) if apart else None
    return Agreement(len(hits), float(hits.mean()), value, float(np.concatenate(divergences).mean()))


def divergence(wanted: Tensor, found: Tensor) -> Tensor:
    """KL divergence [...] in nats of logarithms of probabilities [..., A] from those wanted."""
    return (wanted.exp() * (wanted - found)).sum(-1)


def _heads(network: Network, inputs: Mapping[str, Tensor]) -> Heads:
    """A network's answers, games of no result left out."""
    return network.answers(network(**inputs), decoding_context(np.ones(len(inputs["planes"]), np.bool_)))
