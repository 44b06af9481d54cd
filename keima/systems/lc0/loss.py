"""Lc0's loss: policy 1, value 1, moves left 1.

Value: cross-entropy of win, draw, loss, or squared error for a single number. Moves left: Huber, δ 10 plies, both sides
divided by 20. Lc0 can leave illegal moves out of its policy loss; here they are learned to be unlikely.
Source: lczero-training, `tf/tfprocess.py` and `tf/configs/example.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from keima.systems.lc0.network import Lc0Output
from keima.systems.loss import Samples, SystemLoss, Weighted, nothing, outcome, policy_term, regression
from keima.systems.network import Network
from keima.systems.targets import TensorBatch

_SCALE = 20.0  # plies


def _value(outputs: Lc0Output, batch: TensorBatch) -> Samples:
    """Logits [N, 3] of win, draw, loss; or [N, 1], before tanh."""
    raw = outputs.value.float()
    if raw.shape[1] == 1:
        return regression(raw[:, 0].tanh(), batch.value, lambda v, z: (v - z).square())

    def outcomes(z: Tensor) -> Tensor:
        return torch.stack([z.clamp(min=0), 1 - z.abs(), (-z).clamp(min=0)], dim=1)

    return outcome(raw, batch.value, batch.wdl, outcomes)


def _moves_left(outputs: Lc0Output, batch: TensorBatch) -> Samples:
    def error(plies: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(plies / _SCALE, target / _SCALE, "none", 10.0 / _SCALE)

    if outputs.moves_left is None:
        return nothing(outputs.policy[:, 0])
    return regression(outputs.moves_left, batch.moves_left, error)


def _terms(network: Network) -> Mapping[str, Weighted]:
    terms = {"policy": Weighted(policy_term(), 1.0, ("policy",)), "value": Weighted(_value, 1.0, ("value",))}
    if "moves_left" in network.output_names:
        terms["moves_left"] = Weighted(_moves_left, 1.0, ("moves_left",))
    return terms


LOSS = SystemLoss(_terms)
