"""The losses of AlphaGo's policy and value networks.

policy network   policy 1: −log p(a given s)   Silver et al., Nature 529 (2016), Methods, "Policy network"
value network    value 1: (z − v)²             the same, "Value network: regression"
"""

from __future__ import annotations

from collections.abc import Mapping

from keima.systems.loss import SystemLoss, Weighted, policy_term, value_term
from keima.systems.network import Network


def _terms(network: Network) -> Mapping[str, Weighted]:
    if "value" in network.output_names:
        return {"value": Weighted(value_term, 1.0, ("value",))}
    return {"policy": Weighted(policy_term(), 1.0, ("policy",))}


LOSS = SystemLoss(_terms)
