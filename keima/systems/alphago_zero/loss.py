"""AlphaGo Zero's loss: (z − v)² − π · log p + c‖θ‖².

z is the outcome in [−1, 1] and v the value, both of the side to move; π the move played (or a search's visits, or a
teacher's policy) and p the policy; θ the weights, c = 1e-4. Source: Silver et al., Nature 550 (2017), Methods,
"Optimization". Leela Zero's networks, and the trunks of the comparison, learn the same.

c‖θ‖² is left to SGD's weight decay of 2c (`keima.systems.loss`). Learning from human games, where many positions share
one outcome, the paper weighs the value by 0.01 (Methods, "Supervised learning"): `value = 0.01` in a recipe's [loss].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from keima.systems.loss import Samples, SystemLoss, Weighted, policy_term, regression, value_term
from keima.systems.network import Network
from keima.systems.targets import TensorBatch


def _black_value_term(outputs: Any, batch: TensorBatch) -> Samples:
    """(z − v)² for outputs whose `value` [N] is Black's (Leela Zero's version 2 files)."""
    value = outputs.value
    black = batch.first_to_move
    if black is None:
        black = torch.ones_like(value, dtype=torch.bool)
    return regression(torch.where(black, value, -value), batch.value, lambda v, z: (v - z).square())


def _terms(network: Network) -> Mapping[str, Weighted]:
    value = _black_value_term if getattr(network, "value_for_black", False) else value_term
    return {"policy": Weighted(policy_term(), 1.0, ("policy",)), "value": Weighted(value, 1.0, ("value",))}


LOSS = SystemLoss(_terms)
