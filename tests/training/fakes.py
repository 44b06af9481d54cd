"""A training run without games: batches of random planes whose moves and results can be learned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from keima.systems.network import Network
from keima.systems.targets import TrainingBatch
from keima.training.run.preflight import World
from keima.training.run.recipe import Recipe, read_recipe
from keima.training.run.sources import Sources

SIZE = 5
RECIPE = """
[network]
name = "alphago-zero"
blocks = 1
channels = 4
board_size = 5
value_hidden = 4

[data]
train = "none.parquet"

[optimizer]
learning_rate = 0.05
momentum = 0.9
weight_decay = 1e-4

[schedule]
kind = "step"
every = 4

[run]
steps = 10
batch_size = 8
ema = 0.9
checkpoint_every = 4
evaluate_every = 5
evaluate_positions = 16
log_every = 3
device = "cpu"
threads = 1
seed = 3
"""


def recipe(folder: Path, *overrides: str) -> Recipe:
    """The recipe above, written to a file and read with some values changed."""
    path = folder / "recipe.toml"
    path.write_text(RECIPE)
    return read_recipe(path, overrides)


@dataclass
class Terms:
    """As `LossTerms`."""

    total: Tensor
    named: dict[str, Tensor]


def loss(output: Any, batch: Any, share: Any = None) -> Terms:
    """Policy and value as AlphaGo Zero's."""
    policy = F.cross_entropy(output.policy, batch.policy)
    value = F.mse_loss(output.value, batch.value)
    return Terms(policy + value, {"policy": policy, "value": value})


class FakeBatches:
    """Batch k is a function of (seed, k); rank r of w takes its rows."""

    positions = 1000

    def __init__(self, size: int, seed: int, planes: int = 17, rank: int = 0, world: int = 1) -> None:
        self.size, self.seed, self.planes, self.rank, self.world = size, seed, planes, rank, world
        self.step = 0
        self.closed = False

    def seek(self, step: int) -> None:
        self.step = step

    def close(self) -> None:
        self.closed = True

    def __next__(self) -> Any:
        random = np.random.default_rng([self.seed, self.step])
        self.step += 1
        n = self.size * self.world
        planes = random.integers(0, 2, (n, self.planes, SIZE, SIZE)).astype(np.float32)
        policy = planes[:, 0].reshape(n, -1).argmax(axis=1)
        value = np.where(planes[:, 1].mean(axis=(1, 2)) > 0.5, 1.0, -1.0).astype(np.float32)
        rows = slice(self.rank * self.size, (self.rank + 1) * self.size)
        tensors = {
            "inputs": {"planes": torch.from_numpy(planes[rows])},
            "policy": torch.from_numpy(policy[rows]),
            "value": torch.from_numpy(value[rows]),
            "ply": torch.from_numpy(random.integers(0, 200, n)[rows]),
        }
        return TrainingBatch(**tensors)


def open_fakes(recipe: Recipe, network: Network, world: World) -> Sources:
    """As `keima.training.run.sources.open_games`."""
    size = recipe.run.batch_size // (recipe.run.accumulate * world.size)
    planes = network.encoding.planes
    train = FakeBatches(size, recipe.run.seed, planes, world.rank, world.size)
    return Sources(train, FakeBatches(size, 999, planes, world.rank, world.size), loss)
