"""What moves the weights at a step: the optimizer, its learning rate, and the running average of what comes out.

**Learning rates** are functions of the step alone, so a run that goes on after a stop has nothing to remember. Sources:
halving in steps, Silver et al. 2016, Methods ("initialized to 0.003 and halved every 80 million training steps"); drops
at given steps, Silver et al. 2017, Extended Data Table 3; half a cosine, Loshchilov & Hutter 2017 (arXiv:1608.03983),
without restarts; linear warm-up, Goyal et al. 2017 (arXiv:1706.02677).

**Running average** (EMA): Polyak & Juditsky 1992, in the exponential form that Lc0 and KataGo train with. The decay
rises from 0.1: min(decay, (1 + n) / (10 + n)) after n updates, as TensorFlow's `ExponentialMovingAverage` does it, so
that the first weights do not weigh forever.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from keima.plain import Data
from keima.systems.network import Network
from keima.training.run.recipe import Recipe, ScheduleRecipe


def make_optimizer(recipe: Recipe, network: Network) -> torch.optim.Optimizer:
    """The recipe's optimizer over the network's trained parameters, in two groups: those that decay, and the others."""
    options = recipe.optimizer
    decayed: list[Tensor] = []
    others: list[Tensor] = []
    for parameter in network.parameters():
        if parameter.requires_grad:
            (decayed if options.decay == "all" or parameter.dim() > 1 else others).append(parameter)
    both = ((decayed, options.weight_decay), (others, 0.0))
    groups: list[Data] = [{"params": members, "weight_decay": decay} for members, decay in both if members]
    if options.kind == "adamw":
        betas = (options.beta1, options.beta2)
        return torch.optim.AdamW(groups, lr=options.learning_rate, betas=betas, eps=options.epsilon)
    return torch.optim.SGD(groups, lr=options.learning_rate, momentum=options.momentum, nesterov=options.nesterov)


def multiplier(schedule: ScheduleRecipe, step: int, total_steps: int) -> float:
    """What the recipe's learning rate is multiplied by at a step, counted from 0, of a run of so many.

    >>> halving = ScheduleRecipe(kind="step", every=100)
    >>> [multiplier(halving, step, 1000) for step in (0, 99, 100, 250)]
    [1.0, 1.0, 0.5, 0.25]
    """
    rise = min(1.0, (step + 1) / schedule.warmup) if schedule.warmup else 1.0
    return rise * _after_warmup(schedule, max(step, schedule.warmup), total_steps)


def _after_warmup(schedule: ScheduleRecipe, step: int, total_steps: int) -> float:
    if schedule.kind == "constant":
        return 1.0
    if schedule.kind == "step":
        drops = step // schedule.every if schedule.every else bisect_right(schedule.milestones, step)
        return float(schedule.factor**drops)
    length = max(1, total_steps - 1 - schedule.warmup)
    done = min(1.0, (step - schedule.warmup) / length)
    return schedule.minimum + (1 - schedule.minimum) * (1 + math.cos(math.pi * done)) / 2


class RunningAverage:
    """Averages of a network's parameters and running statistics, in their own type; whole numbers are the latest.

    Args:
        network: whose present weights are the first average.
        decay: share of the old average kept by an update, in [0, 1).
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.state = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}

    @torch.no_grad()
    def update(self, network: nn.Module, updates: int) -> None:
        """Take in the network's present weights, after `updates` earlier times."""
        decay = min(self.decay, (1 + updates) / (10 + updates))
        for name, tensor in network.state_dict().items():
            if tensor.is_floating_point():
                self.state[name].lerp_(tensor, 1 - decay)
            else:
                self.state[name].copy_(tensor)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state kept."""
        for name, tensor in self.state.items():
            tensor.copy_(state[name])

    @contextmanager
    def applied(self, network: nn.Module) -> Iterator[None]:
        """For a while, the network's weights are the averages."""
        own = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
        network.load_state_dict(self.state)
        try:
            yield
        finally:
            network.load_state_dict(own)
