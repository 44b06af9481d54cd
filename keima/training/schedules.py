"""Learning rates: functions of the step alone, so a run that goes on after a stop has nothing to remember.

Sources: halving in steps, Silver et al. 2016, Methods ("initialized to 0.003 and halved every 80 million training
steps"); drops at given steps, Silver et al. 2017, Extended Data Table 3; half a cosine, Loshchilov & Hutter 2017
(arXiv:1608.03983), without restarts; linear warm-up, Goyal et al. 2017 (arXiv:1706.02677).
"""

from __future__ import annotations

import math
from bisect import bisect_right

from keima.training.recipe import ScheduleRecipe


def multiplier(schedule: ScheduleRecipe, step: int, total_steps: int) -> float:
    """What the recipe's learning rate is multiplied by at a step.

    Args:
        schedule: the recipe's section.
        step: from 0, the first.
        total_steps: of the whole run.

    Returns:
        More than 0 and, with factors up to 1, at most 1.

    >>> halving = ScheduleRecipe(kind="step", every=100)
    >>> [multiplier(halving, step, 1000) for step in (0, 99, 100, 250)]
    [1.0, 1.0, 0.5, 0.25]
    """
    if step < schedule.warmup:
        return (step + 1) / schedule.warmup * _after_warmup(schedule, schedule.warmup, total_steps)
    return _after_warmup(schedule, step, total_steps)


def _after_warmup(schedule: ScheduleRecipe, step: int, total_steps: int) -> float:
    if schedule.kind == "constant":
        return 1.0
    if schedule.kind == "step":
        drops = step // schedule.every if schedule.every else bisect_right(schedule.milestones, step)
        return float(schedule.factor**drops)
    length = max(1, total_steps - 1 - schedule.warmup)
    done = min(1.0, (step - schedule.warmup) / length)
    return schedule.minimum + (1 - schedule.minimum) * (1 + math.cos(math.pi * done)) / 2
