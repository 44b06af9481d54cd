"""A toy game and a toy network whose answers one can work out by hand.

A `Grid` is a rectangle of numbers. The network sees it as one plane, and a plane of ones; it answers

    policy     logit of a point = the number there; of pass = the mean of the numbers
    value      tanh of the mean
    lead       the first of the globals, which is what `shift` asks for
    ownership  tanh of the number

Legal are the points that hold no zero, and pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from keima.errors import BadRequest, UnsupportedPosition
from keima.systems.encoding import Array, Batch, LegalMoves
from keima.systems.network import Heads, Network, Pedigree


@dataclass(frozen=True)
class Grid:
    rows: tuple[tuple[float, ...], ...]

    @property
    def array(self) -> Array:
        return np.array(self.rows, np.float32)


def grid(*rows: Sequence[float]) -> Grid:
    return Grid(tuple(tuple(float(number) for number in row) for row in rows))


def random_grid(height: int, width: int, seed: int) -> Grid:
    rng = np.random.default_rng(seed)
    return grid(*rng.normal(size=(height, width)))


def turn(points: Array, symmetry: int) -> Array:
    """The board as the network sees it: rows flipped (1), columns flipped (2), then transposed (4)."""
    points = points[::-1] if symmetry & 1 else points
    points = points[:, ::-1] if symmetry & 2 else points
    return points.T if symmetry & 4 else points


def unturn(points: Array, symmetry: int) -> Array:
    points = points.T if symmetry & 4 else points
    points = points[:, ::-1] if symmetry & 2 else points
    return points[::-1] if symmetry & 1 else points


class GridEncoding:
    name = "grid"
    game = "grid"
    planes = 2
    globals = 1
    symmetries = tuple(range(8))
    options = ("shift",)

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def bind(self, **options: Any) -> GridEncoding:
        if options.keys() - {"shift"}:
            raise BadRequest(f"no option {next(iter(options))!r}; it takes shift")
        return GridEncoding(options.get("shift", self.shift))

    def check(self, position: Any) -> None:
        if not isinstance(position, Grid):
            raise UnsupportedPosition(f"takes grids, not {type(position).__name__}")

    def shape(self, position: Grid, symmetry: int = 0) -> tuple[int, int]:
        height, width = turn(position.array, symmetry).shape
        return height, width

    def encode(self, positions: Sequence[Grid], symmetries: Sequence[int] | int = 0) -> Batch:
        each = [symmetries] * len(positions) if isinstance(symmetries, int) else symmetries
        numbers = np.stack([turn(p.array, s) for p, s in zip(positions, each, strict=True)])
        shift = np.full((len(positions), 1), self.shift, np.float32)
        return Batch({"planes": np.stack([numbers, np.ones_like(numbers)], axis=1), "globals": shift}, {"shift": shift})

    def legal_moves(self, position: Grid, symmetry: int = 0) -> LegalMoves:
        names = np.array([[f"{y},{x}" for x in range(len(row))] for y, row in enumerate(position.rows)])
        seen, numbers = turn(names, symmetry).ravel(), turn(position.array, symmetry).ravel()
        indices = np.append(np.flatnonzero(numbers), len(seen)).astype(np.int64)
        return LegalMoves(indices, [*seen[numbers != 0].tolist(), "pass"])

    def restore(self, points: Array, position: Grid, symmetry: int) -> Array:
        return unturn(points, symmetry)


@dataclass(frozen=True)
class GridOutput:
    policy: Tensor
    value: Tensor
    lead: Tensor
    ownership: Tensor


class GridNetwork(Network):
    """The answers of this file's table, through a 1×1 convolution whose weights are known."""

    system = "grid"

    def __init__(self) -> None:
        super().__init__()
        self.encoding = GridEncoding()
        self.pedigree = Pedigree("grid")
        self.input_names = ("planes", "globals")
        self.output_names = ("policy", "value", "lead", "ownership")
        self.tower = nn.Sequential(nn.Conv2d(2, 3, 1), nn.Conv2d(3, 1, 1))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()
            self.tower[0].weight[0, 0] = 2.0
            self.tower[0].weight[1, 1] = 1.0
            self.tower[1].weight[0, 0] = 0.5

    def forward(self, planes: Tensor, globals: Tensor) -> GridOutput:
        points = self.tower(planes)[:, 0]
        mean = points.mean(dim=(1, 2))
        policy = torch.cat([points.flatten(1), mean[:, None]], dim=1)
        return GridOutput(policy, mean.tanh(), globals[:, 0], points.tanh())

    def decode(self, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
        assert len(context["shift"]) == len(outputs["value"])
        value = outputs["value"]
        return Heads(
            policy=outputs["policy"],
            wdl=np.stack([(1 + value) / 2, 0 * value, (1 - value) / 2], axis=1),
            value=value,
            lead=outputs["lead"],
            ownership=outputs["ownership"],
            extra={"score_mean": 10 * value, "score_stdev": np.full_like(value, 3.0)},
        )
