"""The guide's loss: policy 1, value 1, score 0.002, ownership 0.15.

The weights are ours: the guide tells its heads only. Ten times as much for the score, in points, would be as large as
the policy's, and take from it (docs/studies/tower-studies.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from keima.systems.katago_guide.network import KataGoGuideOutput
from keima.systems.loss import Samples, SystemLoss, Weighted, huber, per_point, policy_term, regression, value_term
from keima.systems.network import Network
from keima.systems.targets import TensorBatch


def _score(outputs: KataGoGuideOutput, batch: TensorBatch) -> Samples:
    return regression(outputs.score, batch.score, huber(12.0))  # δ in points, as KataGo's


def _ownership(outputs: KataGoGuideOutput, batch: TensorBatch) -> Samples:
    return per_point(outputs.ownership, batch, lambda own, target: (own - target).square())


def _terms(network: Network) -> Mapping[str, Weighted]:
    return {
        "policy": Weighted(policy_term(), 1.0, ("policy",)),
        "value": Weighted(value_term, 1.0, ("value",)),
        "score": Weighted(_score, 0.002, ("score",)),
        "ownership": Weighted(_ownership, 0.15, ("ownership",)),
    }


LOSS = SystemLoss(_terms)
