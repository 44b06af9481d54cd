"""KataGo's loss, as far as its files hold its heads and records of games tell its targets.

| term       | weight              | what                                                                              |
| ---------- | ------------------- | --------------------------------------------------------------------------------- |
| policy     | 0.93 (1 before v12) | cross-entropy of the move played, plain policy                                    |
| optimistic | 0.2 (from v12)      | the same of the optimistic policy, in games that went better than expected        |
| reply      | 0.15                | cross-entropy of the opponent's reply, of a network that has a head for it        |
| value      | 1.2 · 0.6           | cross-entropy of win, loss, no result; without a winner, half won and half lost   |
| score      | 0.0015              | Huber loss of the score mean, δ 12 points                                         |
| stdev      | 0.001               | Huber loss of the score's spread, δ 10 points                                     |
| lead       | 0.006               | Huber loss of the lead, δ 8 points; KataGo's own target is a search's estimate    |
| ownership  | 1.5                 | cross-entropy of each point, averaged over a board's known points, then boards    |

* value: 1.2 times `-value-loss-scale` 0.6.
* stdev: KataGo regresses it on the spread of a score distribution that its files leave out; here on |score − mean| ·
  √(π/2), whose mean is the spread of a normal distribution.
* optimistic: weighed by win² + σ(3 (excess − 1.5)), at most 1, where excess is the final score over the predicted mean
  in predicted spreads. KataGo trains such a head on the whole game and exports another, made with short-term values
  that records do not tell, of scale 0.2, which is kept.
* nothing teaches the time variance, the short-term errors and the action values (outputs that searches use little).

Source: KataGo, `python/katago/train/metrics_pytorch.py`, and the defaults of `python/train.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from keima.systems.katago.network import KataGoNetwork, KataGoOutputs
from keima.systems.loss import (
    Samples,
    SystemLoss,
    Weighted,
    huber,
    known_part,
    nothing,
    outcome,
    per_point,
    policy_term,
    regression,
)
from keima.systems.targets import TensorBatch

VALUE = 1.2 * 0.6
OPTIMISTIC_FROM = 12  # the first model version with an optimistic policy; from it on the plain policy weighs 0.93
_PLAIN, _OPTIMISTIC = 0, 1


def _plain_policy(outputs: KataGoOutputs) -> Tensor:
    return outputs.policy[:, _PLAIN]


class _Terms:
    """The terms, for the multipliers of one network. Scores are in points [N]."""

    def __init__(self, network: KataGoNetwork) -> None:
        self.times = network.config.multipliers
        self.optimistic_policy = policy_term(lambda outputs: outputs.policy[:, _OPTIMISTIC])

    def reply(self, outputs: KataGoOutputs, batch: TensorBatch) -> Samples:
        if outputs.reply is None or batch.reply_soft is None:
            return nothing(outputs.value[:, 0])
        entropy = -(batch.reply_soft * F.log_softmax(outputs.reply.float(), dim=1)).sum(dim=1)
        return Samples(entropy, (batch.reply_soft.sum(dim=1) > 0).float())

    def mean(self, outputs: KataGoOutputs) -> Tensor:
        points: Tensor = outputs.score[:, 0].float() * self.times.score_mean
        return points

    def spread(self, outputs: KataGoOutputs) -> Tensor:
        points: Tensor = F.softplus(outputs.score[:, 1].float()) * self.times.score_stdev
        return points

    def value(self, outputs: KataGoOutputs, batch: TensorBatch) -> Samples:

        def outcomes(z: Tensor) -> Tensor:
            return torch.stack([(1 + z) / 2, (1 - z) / 2, torch.zeros_like(z)], dim=1)

        wdl = None if batch.wdl is None else batch.wdl[:, [0, 2, 1]]
        return outcome(outputs.value.float(), batch.value, wdl, outcomes)

    def score(self, outputs: KataGoOutputs, batch: TensorBatch) -> Samples:
        return regression(self.mean(outputs), batch.score, huber(12.0))

    def lead(self, outputs: KataGoOutputs, batch: TensorBatch) -> Samples:
        return regression(outputs.score[:, 2].float() * self.times.lead, batch.score, huber(8.0))

    def stdev(self, outputs: KataGoOutputs, batch: TensorBatch) -> Samples:
        mean = self.mean(outputs).detach()

        def error(spread: Tensor, score: Tensor) -> Tensor:
            return F.huber_loss(spread, (score - mean).abs() * math.sqrt(math.pi / 2), "none", 10.0)

        return regression(self.spread(outputs), batch.score, error)

    def ownership(self, outputs: KataGoOutputs, batch: TensorBatch) -> Samples:
        # (1 + ownership) / 2 is the probability of each point, σ(2x) the network's
        def entropy(raw: Tensor, target: Tensor) -> Tensor:
            return F.binary_cross_entropy_with_logits(2 * raw, (1 + target) / 2, reduction="none")

        return per_point(outputs.ownership, batch, entropy)

    def optimistic(self, outputs: KataGoOutputs, batch: TensorBatch) -> Samples:
        samples = self.optimistic_policy(outputs, batch)
        if batch.value is None:
            return nothing(samples.losses)
        z, known = known_part(batch.value)
        weight = ((1 + z) / 2).square() * known
        if batch.score is not None:
            score, scored = known_part(batch.score)
            spread = (self.spread(outputs).detach().square() + 0.25).sqrt()
            excess = (score - self.mean(outputs).detach()) / spread
            weight = weight + torch.sigmoid(3 * (excess - 1.5)) * scored * known
        return Samples(samples.losses * weight.clamp(0, 1), samples.weights * known)


def _terms(network: KataGoNetwork) -> Mapping[str, Weighted]:
    terms = _Terms(network)
    optimistic = network.config.version >= OPTIMISTIC_FROM and network.config.policy.outputs > 1
    found = {
        "policy": Weighted(policy_term(_plain_policy), 0.93 if optimistic else 1.0, ("policy",)),
        "value": Weighted(terms.value, VALUE, ("value",)),
        "score": Weighted(terms.score, 0.0015, ("score",)),
        "stdev": Weighted(terms.stdev, 0.001, ("score",)),
        "lead": Weighted(terms.lead, 0.006, ("score",)),
        "ownership": Weighted(terms.ownership, 1.5, ("ownership",)),
    }
    if optimistic:
        found["optimistic"] = Weighted(terms.optimistic, 0.2, ("policy", "value", "score"))
    if network.config.reply:
        found["reply"] = Weighted(terms.reply, 0.15, ("reply",))
    return found


LOSS = SystemLoss(_terms, _plain_policy)
