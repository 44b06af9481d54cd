"""The rollout policy's loss: −log p(a given s) over the moves it considers.

Source: Silver et al., Nature 529 (2016), Methods, "Rollout policy".
"""

from __future__ import annotations

from collections.abc import Mapping

from keima.systems.alphago.rollout_network import NOT_CONSIDERED, RolloutOutput, RolloutSoftmax
from keima.systems.loss import Samples, SystemLoss, Weighted, policy_term
from keima.systems.targets import TensorBatch

_POLICY = policy_term()


def _considered(outputs: RolloutOutput, batch: TensorBatch) -> Samples:
    """A move the policy never makes (it fills an own eye, say) is a missing target."""
    found = _POLICY(outputs, batch)
    return Samples(found.losses, found.weights * (found.losses < -NOT_CONSIDERED / 2))


def _terms(network: RolloutSoftmax) -> Mapping[str, Weighted]:
    return {"policy": Weighted(_considered, 1.0, ("policy",))}


LOSS = SystemLoss(_terms)
