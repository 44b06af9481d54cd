"""What a network's layers know: facts about points, read off each layer by a linear probe.

A probe (G. Alain and Y. Bengio 2016, arXiv:1610.01644) is a linear classifier from a layer's channels at a point to one
fact about that point, fitted on some positions and judged on others. Here it is a least-squares one with both classes
weighing the same, and its accuracy is balanced: the mean of the shares it finds of points that have the fact and of
those that have not, so that guessing is 50 % however rare the fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.games.position import Position
from keima.inference.activations import layer_outputs
from keima.systems.encoding import Encoding
from keima.systems.network import Network
from keima.systems.registry import kind_of

INPUT = "input"
"""The planes themselves, before the first layer."""
LEAST_POINTS = 20
"""Of a fact, on either side of the split; with fewer there is no accuracy to tell."""
_BATCH = 16
_RIDGE = 1e-4
"""Of the mean square of the channels: keeps channels that are always 0 from spoiling the solution."""


@dataclass(frozen=True)
class Probes:
    """Balanced accuracies in [0, 1] by layer, in the order the network has them, and by concept."""

    concepts: tuple[str, ...]
    layers: Mapping[str, tuple[float | None, ...]]  # as long as `concepts`; None: too few points have the fact
    points: tuple[int, ...]  # how many of the judged positions' points have each fact


def trunk_layers(network: Network) -> dict[str, nn.Module]:
    """The trunk's parts one level deep, in order, without convolutions and norms that something follows at once."""
    found: dict[str, nn.Module] = {}
    for name, part in network.named_children():
        if name in kind_of(network).trunk:
            found |= {f"{name}.{inner}": module for inner, module in part.named_children()} or {name: part}
    return {name: module for name, module in found.items() if not isinstance(module, nn.Conv2d | nn.BatchNorm2d)}


def probe(network: Network, known: Encoding, learned: Sequence[Position], judged: Sequence[Position]) -> Probes:
    """Fit the concepts of `known` to the layers of a network on some positions, and judge them on others.

    Args:
        network: of the positions' game, on boards that both it and `known` take.
        known: an encoding with `concepts`.
        learned, judged: positions of one board's shape; better of different games.

    Raises:
        BadRequest: no concepts, too few positions, or no layer of the trunk keeps the board's points apart.
        UnsupportedPosition: one that network or encoding cannot take.
    """
    if not known.concepts:
        raise BadRequest(f"the {known.name} encoding names no concepts")
    if not learned or not judged:
        raise BadRequest("probes need positions to learn from and others to judge by: games, two at least")
    layers = trunk_layers(network)
    sums: dict[str, _Sums] = {}
    for facts, outputs in _rows(network, known, learned, layers):
        for name, rows in outputs.items():
            sums.setdefault(name, _Sums(rows.shape[1], facts.shape[1])).add(rows, facts)
    if len(sums) < 2:
        raise BadRequest(f"no layer of {network.pedigree.name}'s trunk keeps the points of the board apart")
    weights = {name: one.solve() for name, one in sums.items()}
    right = {name: torch.zeros(2, len(known.concepts)) for name in sums}
    there = torch.zeros(2, len(known.concepts))
    for facts, outputs in _rows(network, known, judged, layers):
        there += torch.stack([facts.sum(0), (~facts).sum(0)])
        for name, rows in outputs.items():
            says = rows @ weights[name] > 0
            right[name] += torch.stack([(says & facts).sum(0), (~says & ~facts).sum(0)])
    learned_of = next(iter(sums.values())).count
    enough = (there.min(0).values >= LEAST_POINTS) & (learned_of >= LEAST_POINTS)
    accuracies = {name: (found / there).mean(0).tolist() for name, found in right.items()}
    table = {
        name: tuple(one if told else None for one, told in zip(each, enough.tolist(), strict=True))
        for name, each in accuracies.items()
    }
    return Probes(tuple(known.concepts), table, tuple(int(n) for n in there[0].tolist()))


class _Sums:
    """What a weighted least-squares fit of K facts to C channels and a constant needs of all points."""

    def __init__(self, channels: int, facts: int) -> None:
        self.all = torch.zeros(channels, channels, dtype=torch.float64)
        self.of = torch.zeros(facts, channels, channels, dtype=torch.float64)
        self.total = torch.zeros(channels, dtype=torch.float64)
        self.mean = torch.zeros(facts, channels, dtype=torch.float64)
        self.count = torch.zeros(facts)
        self.points = 0

    def add(self, rows: Tensor, facts: Tensor) -> None:
        """Points [P, C] and which facts they have, bool [P, K]."""
        self.all += rows.T @ rows
        self.total += rows.sum(0)
        self.points += len(rows)
        self.count += facts.sum(0)
        for k in range(facts.shape[1]):
            having = rows[facts[:, k]]
            self.of[k] += having.T @ having
            self.mean[k] += having.sum(0)

    def solve(self) -> Tensor:
        """Weights [C, K]: w·x is above 0 where the point has the fact."""
        ridge = _RIDGE * self.all.diagonal().mean().clamp(min=1e-12) / self.points * torch.eye(len(self.total))
        solved = []
        for k, count in enumerate(self.count.tolist()):
            have, lack = 0.5 / max(count, 1.0), 0.5 / max(self.points - count, 1.0)
            gram = have * self.of[k] + lack * (self.all - self.of[k]) + ridge
            solved.append(torch.linalg.solve(gram, have * self.mean[k] - lack * (self.total - self.mean[k])))
        return torch.stack(solved, 1)


def _rows(
    network: Network, known: Encoding, positions: Sequence[Position], layers: Mapping[str, nn.Module]
) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """Batch by batch: facts bool [P, K], and each layer's channels with a constant, float64 [P, C + 1]."""
    for first in range(0, len(positions), _BATCH):
        part = positions[first : first + _BATCH]
        planes = torch.from_numpy(known.encode(part).inputs["planes"])
        facts = torch.stack([planes[:, list(which)].amax(1) > 0 for which in known.concepts.values()], -1)
        batch = network.encoding.encode(part)
        found: dict[str, object] = {INPUT: torch.from_numpy(np.ascontiguousarray(batch.inputs["planes"]))}
        found |= layer_outputs(network, batch, layers)
        yield (
            facts.flatten(0, 2),
            {name: rows for name, one in found.items() if (rows := _points(one, facts)) is not None},
        )


def _points(output: object, facts: Tensor) -> Tensor | None:
    """A layer's output with a row for each point; None where it has no such rows."""
    if not isinstance(output, Tensor) or output.ndim != 4 or output.shape[2:] != facts.shape[1:3]:
        return None
    rows = output.detach().double().permute(0, 2, 3, 1).flatten(0, 2)
    return torch.cat([rows, rows.new_ones(len(rows), 1)], 1)
