"""The losses of AlphaGo's networks, each after Silver et al., Nature 529 (2016), Methods.

policy network   policy 1: −log p(a given s)                                        "Policy network"
value network    value 1: (z − v)²                                                  "Value network: regression"
rollout policy   policy 1: −log p(a given s) over the moves it considers            "Rollout policy"
"""

from __future__ import annotations

from collections.abc import Mapping

from keima.systems.alphago.rollout_network import NOT_CONSIDERED, RolloutOutput
from keima.systems.loss import Samples, SystemLoss, Weighted, policy_term, value_term
from keima.systems.network import Network
from keima.systems.targets import TensorBatch

_POLICY = policy_term()


def _considered(outputs: RolloutOutput, batch: TensorBatch) -> Samples:
    """A move the policy never makes (it fills an own eye, say) is a missing target."""
    found = _POLICY(outputs, batch)
    return Samples(found.losses, found.weights * (found.losses < -NOT_CONSIDERED / 2))


def _terms(network: Network) -> Mapping[str, Weighted]:
    if "value" in network.output_names:
        return {"value": Weighted(value_term, 1.0, ("value",))}
    return {"policy": Weighted(_considered if network.for_playouts else _POLICY, 1.0, ("policy",))}


LOSS = SystemLoss(_terms)
