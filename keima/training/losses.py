"""What each system's networks are trained to make small.

A loss takes the outputs of `network.forward` and a `TrainingBatch` of tensors, and gives named terms, each the mean
over the positions that have its target, and 0 where none has; `total` is their weighted sum. Everything is computed in
float32, whatever precision the network runs in, and cross-entropies from logits.

| system                   | terms and weights                        | source                                         |
| ------------------------ | ---------------------------------------- | ---------------------------------------------- |
| alphago, policy          | policy 1: −log p(a given s)              | Silver et al. 2016, Methods, "Policy network"  |
| alphago, value           | value 1: (z − v)²                        | the same, "Value network: regression"          |
| alphago-zero, leela-zero | policy 1, value 1, l2 c = 1e-4:          | Silver et al. 2017, Methods                    |
|                          | (z − v)² − π · log p + c‖θ‖²             |                                                |
| katago-guide             | policy 1, value 1, score 0.02,           | ours: the guide tells its heads and no weights |
|                          | ownership 0.15                           |                                                |
| katago                   | policy 0.93 (1 up to version 11),        | KataGo: `python/katago/train/`                 |
|                          | optimistic 0.2, value 0.72,              | `metrics_pytorch.py`, and the defaults of      |
|                          | score 0.0015, stdev 0.001, lead 0.006,   | `python/train.py`                              |
|                          | ownership 1.5                            |                                                |
| lc0                      | policy 1, value 1, moves left 1          | lczero-training `tf/tfprocess.py`,             |
|                          |                                          | `tf/configs/example.yaml`                      |
| alphago-rollout          | policy 1, moves the policy considers     | Silver et al. 2016, Methods, "Rollout policy"  |

**L2.** c‖θ‖² is left to the optimiser by default: SGD's weight decay of 2c adds the same 2cθ to the gradient
(`weight_decay`). With `l2=c` the loss computes the term itself; then leave the optimiser's at 0. Of AdamW's decoupled
decay neither is true.

**Supervised learning.** The AlphaGo Zero paper weighs the value by 0.01 when learning from human games, where many
positions share one outcome (Methods, "Supervised learning"): `loss_for(network, {"value": 0.01})`.

**KataGo.** Its files hold fewer heads than its training has, and records of games tell less than its self-play does:

* value: cross-entropy of win, loss, no result, 1.2 times `-value-loss-scale` 0.6; a game without a winner counts half
  won, half lost.
* score and lead: Huber losses of the final lead in points (δ 12 and 8). KataGo's lead is a search's estimate.
* stdev: KataGo regresses it on the spread of a score distribution that its files leave out; here on |score − mean| ·
  √(π/2), whose mean is the spread of a normal distribution (Huber, δ 10).
* ownership: cross-entropy of each point, averaged over the known points of a board, then over boards.
* optimistic policy: the policy of games that went better than expected, weighed by win² + σ(3 (excess − 1.5)), at most
  1, where excess is the final score over the predicted mean in predicted spreads. KataGo trains such a head on the
  whole game and exports another, made with short-term values that records do not tell, of scale 0.2, which is kept.
* nothing teaches the time variance, the short-term errors and the action values (outputs that searches use little).

**Lc0.** Value: cross-entropy of win, draw, loss, or squared error for a single number. Moves left: Huber, δ 10 plies,
both sides divided by 20. Lc0 can leave illegal moves out of its policy loss; here they are learned to be unlikely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from keima.errors import BadRequest
from keima.networks.rollout_softmax import NOT_CONSIDERED
from keima.training.batches import TrainingBatch

L2 = 1e-4
"""c of the AlphaGo Zero paper."""
KATAGO_VALUE = 1.2 * 0.6
KATAGO_OPTIMISTIC_FROM = 12
"""The first model version with an optimistic policy; from it on the plain policy weighs 0.93."""
MOVES_LEFT_SCALE = 20.0
_PLAIN, _OPTIMISTIC = 0, 1
_LEAST = 1e-6  # divides the sum of a term without targets, which is 0


@dataclass(frozen=True)
class LossTerms:
    """A loss of one batch.

    Attributes:
        total: float32 scalar, the weighted sum, to go backward from.
        named: float32 scalars by name, unweighted: nats, squared errors.
        present: float32 scalars by name: how many positions had the term's target.
    """

    total: Tensor
    named: dict[str, Tensor]
    present: dict[str, Tensor]


@dataclass(frozen=True)
class Samples:
    """A term before it is averaged: float32 [N] each.

    Attributes:
        losses: the loss of each position, finite everywhere, anything where the target is missing.
        weights: 1 where the target is there, 0 where it is missing.
    """

    losses: Tensor
    weights: Tensor


Term = Callable[[Any, TrainingBatch], Samples]
Share = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Loss:
    """A weighted sum of terms.

    Attributes:
        terms: by name, what computes each position's loss from (outputs, batch).
        weights: by the same names.
        targets: what the loader should make (`keima.training.targets.TARGETS`).
        l2: c of an explicit c‖θ‖²; 0 leaves it to the optimiser.
        parameters: what θ is, for `l2`.
    """

    terms: Mapping[str, Term]
    weights: Mapping[str, float]
    targets: frozenset[str]
    l2: float = 0.0
    parameters: tuple[Tensor, ...] = field(default=(), repr=False)

    def __call__(self, outputs: Any, batch: TrainingBatch, share: Share | None = None) -> LossTerms:
        """The loss of a batch of tensors.

        Args:
            outputs: what `network.forward` returned.
            batch: of the same positions, on the same device.
            share: where this batch is a part of a larger one (several processes): takes how many positions have each
                term's target here (float32 [terms]), and returns what to divide their sums by instead, the mean of
                these numbers over the parts. Then the mean of the parts' losses, and of their gradients, is the large
                batch's, however unevenly missing targets are spread.
        """
        samples = {name: term(outputs, batch) for name, term in self.terms.items()}
        present = torch.stack([(found.weights > 0).sum().float() for found in samples.values()])
        divisors = (present if share is None else share(present)).clamp(min=_LEAST)
        named: dict[str, Tensor] = {}
        for (name, found), divisor in zip(samples.items(), divisors, strict=True):
            named[name] = (found.losses * found.weights).sum() / divisor
        total = torch.stack([self.weights[name] * loss for name, loss in named.items()]).sum()
        if self.l2:
            named["l2"] = squared_norm(self.parameters)
            total = total + self.l2 * named["l2"]
        return LossTerms(total, named, dict(zip(samples, present, strict=True)))


def weight_decay(l2: float = L2) -> float:
    """The weight decay of SGD that does what c‖θ‖² in the loss does: 2c."""
    return 2 * l2


def squared_norm(parameters: Iterable[Tensor]) -> Tensor:
    """‖θ‖², float32 scalar."""
    return torch.stack([parameter.float().square().sum() for parameter in parameters]).sum()


def loss_for(network: Any, weights: Mapping[str, float] | None = None, *, l2: float = 0.0) -> Loss:
    """The loss of a network's system.

    Args:
        network: a `Network`, or a `RolloutPolicy`.
        weights: by term, in place of the system's own; 0 switches a term off.
        l2: c of an explicit c‖θ‖², 0 to leave it to the optimiser's weight decay.

    Raises:
        BadRequest: a system without a loss, or a weight for a term that its loss does not have.
    """
    system = getattr(network, "system", "alphago")
    maker = _LOSSES.get(system)
    if maker is None:
        raise BadRequest(f"no loss for {system!r} networks; there are {', '.join(_LOSSES)}")
    terms, own = maker(network)
    given = dict(weights or {})
    for name, weight in given.items():
        if name not in own:
            raise BadRequest(f"this network's loss has no term {name!r}; its terms are {', '.join(own)}")
        if not (isinstance(weight, (int, float)) and math.isfinite(weight)):
            raise BadRequest(f"the weight of {name} must be a number, not {weight!r}")
    merged = {**own, **given}
    kept = {name: term for name, term in terms.items() if merged[name] != 0}
    if not kept:
        raise BadRequest("every term of the loss has weight 0")
    targets = frozenset(target for name in kept for target in _NEEDS[name])
    parameters = tuple(network.parameters()) if l2 else ()
    return Loss(kept, {name: merged[name] for name in kept}, targets, l2, parameters)


def policy_term(logits_of: Callable[[Any], Tensor]) -> Term:
    """Cross-entropy of the move played, in nats; a soft target, where the batch has one, takes its place.

    Args:
        logits_of: picks logits [N, A] from the outputs. A move with an index of A or more (a pass, where the policy has
            none) is a missing target.
    """

    def term(outputs: Any, batch: TrainingBatch) -> Samples:
        logits = logits_of(outputs).float()
        if batch.policy_soft is not None:
            soft = _without_pass(batch.policy_soft.float(), logits.shape[1])
            entropy = -(soft * F.log_softmax(logits, dim=1)).sum(dim=1)
            return Samples(entropy, (soft.sum(dim=1) > 0).float())
        if batch.policy is None:
            return _nothing(logits[:, 0])
        there = (batch.policy >= 0) & (batch.policy < logits.shape[1])
        index = torch.where(there, batch.policy, 0)
        return Samples(F.cross_entropy(logits, index, reduction="none"), there.float())

    return term


def _without_pass(soft: Tensor, moves: int) -> Tensor:
    """A soft target [N, A] for a policy of that many moves: for one without a pass, the rest brought to 1 again."""
    if soft.shape[1] == moves:
        return soft
    kept = soft[:, :moves]
    return kept / kept.sum(dim=1, keepdim=True).clamp(min=_LEAST)


def value_term(outputs: Any, batch: TrainingBatch) -> Samples:
    """(z − v)² for outputs whose `value` [N] is the side to move's, in [−1, 1]."""
    return _regression(outputs.value, batch.value, lambda v, z: (v - z).square())


def black_value_term(outputs: Any, batch: TrainingBatch) -> Samples:
    """The same for outputs whose `value` is Black's (Leela Zero's version 2 files)."""
    black = outputs.value.new_ones(len(outputs.value), dtype=torch.bool)
    if batch.first_to_move is not None:
        black = batch.first_to_move
    return _regression(torch.where(black, outputs.value, -outputs.value), batch.value, lambda v, z: (v - z).square())


def _guide_score_term(outputs: Any, batch: TrainingBatch) -> Samples:
    """Huber loss of the final lead in points, δ 12 as KataGo's."""
    return _regression(outputs.score, batch.score, lambda lead, target: F.huber_loss(lead, target, "none", 12.0))


def _guide_ownership_term(outputs: Any, batch: TrainingBatch) -> Samples:
    """Squared error of the owner of each point, [N, H, W] in [−1, 1], averaged over a board's points."""
    return _per_point(outputs.ownership, batch, lambda own, target: (own - target).square())


def _wdl_term(outputs: Any, batch: TrainingBatch) -> Samples:
    """Lc0's value: cross-entropy of logits [N, 3] of win, draw, loss, or the squared error of tanh of [N, 1]."""
    raw = outputs.value.float()
    if raw.shape[1] == 1:
        return _regression(raw[:, 0].tanh(), batch.value, lambda v, z: (v - z).square())
    if batch.wdl is not None:
        return _outcomes(raw, batch.wdl)
    return _outcome(raw, batch.value, lambda z: torch.stack([z.clamp(min=0), 1 - z.abs(), (-z).clamp(min=0)], dim=1))


def _moves_left_term(outputs: Any, batch: TrainingBatch) -> Samples:
    """Lc0's moves left: Huber with δ 10 plies, on a scale of 20 plies."""

    def huber(plies: Tensor, target: Tensor) -> Tensor:
        scaled = plies / MOVES_LEFT_SCALE, target / MOVES_LEFT_SCALE
        return F.huber_loss(*scaled, "none", 10.0 / MOVES_LEFT_SCALE)

    return _regression(outputs.moves_left, batch.moves_left, huber)


class _KataGoTerms:
    """KataGo's terms, for the multipliers of one network."""

    def __init__(self, config: Any) -> None:
        self.times = config.multipliers

    def mean(self, outputs: Any) -> Tensor:
        """Score mean, points [N]."""
        points: Tensor = outputs.score[:, 0].float() * self.times.score_mean
        return points

    def spread(self, outputs: Any) -> Tensor:
        """Score stdev, points [N]."""
        points: Tensor = F.softplus(outputs.score[:, 1].float()) * self.times.score_stdev
        return points

    def value(self, outputs: Any, batch: TrainingBatch) -> Samples:
        """Cross-entropy of logits [N, 3] of win, loss, no result."""
        if batch.wdl is not None:
            return _outcomes(outputs.value.float(), batch.wdl[:, [0, 2, 1]])
        return _outcome(
            outputs.value.float(),
            batch.value,
            lambda z: torch.stack([(1 + z) / 2, (1 - z) / 2, torch.zeros_like(z)], dim=1),
        )

    def score(self, outputs: Any, batch: TrainingBatch) -> Samples:
        """Huber loss of the score mean, δ 12 points."""
        return _regression(self.mean(outputs), batch.score, lambda x, y: F.huber_loss(x, y, "none", 12.0))

    def lead(self, outputs: Any, batch: TrainingBatch) -> Samples:
        """Huber loss of the lead, δ 8 points."""
        lead = outputs.score[:, 2].float() * self.times.lead
        return _regression(lead, batch.score, lambda x, y: F.huber_loss(x, y, "none", 8.0))

    def stdev(self, outputs: Any, batch: TrainingBatch) -> Samples:
        """Huber loss of the score's spread, δ 10 points."""
        mean = self.mean(outputs).detach()

        def huber(spread: Tensor, score: Tensor) -> Tensor:
            return F.huber_loss(spread, (score - mean).abs() * math.sqrt(math.pi / 2), "none", 10.0)

        return _regression(self.spread(outputs), batch.score, huber)

    def ownership(self, outputs: Any, batch: TrainingBatch) -> Samples:
        """Cross-entropy of each point's owner; (1 + ownership) / 2 is its probability, σ(2x) the network's."""

        def entropy(raw: Tensor, target: Tensor) -> Tensor:
            return F.binary_cross_entropy_with_logits(2 * raw, (1 + target) / 2, reduction="none")

        return _per_point(outputs.ownership, batch, entropy)

    def optimistic(self, outputs: Any, batch: TrainingBatch) -> Samples:
        """Cross-entropy of the optimistic policy's logits, weighed by how well the game went."""
        samples = policy_term(lambda found: found.policy[:, _OPTIMISTIC])(outputs, batch)
        if batch.value is None:
            return _nothing(samples.losses)
        z, known = _known(batch.value)
        weight = ((1 + z) / 2).square() * known
        if batch.score is not None:
            score, scored = _known(batch.score)
            spread = (self.spread(outputs).detach().square() + 0.25).sqrt()
            excess = (score - self.mean(outputs).detach()) / spread
            weight = weight + torch.sigmoid(3 * (excess - 1.5)) * scored * known
        return Samples(samples.losses * weight.clamp(0, 1), samples.weights * known)


def _known(target: Tensor) -> tuple[Tensor, Tensor]:
    """The target with 0 where it is missing (NaN), and 1 where it is there."""
    known = ~torch.isnan(target)
    return torch.where(known, target, 0).float(), known.float()


def _nothing(like: Tensor) -> Samples:
    """A term whose target is missing everywhere; its gradient is 0, not absent."""
    return Samples(like.float() * 0, torch.zeros_like(like, dtype=torch.float32))


def _regression(prediction: Tensor, target: Tensor | None, error: Callable[[Tensor, Tensor], Tensor]) -> Samples:
    """The error [N] of one number a position."""
    prediction = prediction.float()
    if target is None:
        return _nothing(prediction)
    wanted, known = _known(target)
    return Samples(error(prediction, wanted), known)


def _outcome(logits: Tensor, value: Tensor | None, probabilities: Callable[[Tensor], Tensor]) -> Samples:
    """The cross-entropy [N] of the outcomes' logits, given how an outcome z in [−1, 1] is shared among them."""
    if value is None:
        return _nothing(logits[:, 0])
    z, known = _known(value)
    return Samples(-(probabilities(z) * F.log_softmax(logits, dim=1)).sum(dim=1), known)


def _outcomes(logits: Tensor, wanted: Tensor) -> Samples:
    """The cross-entropy [N] of the outcomes' logits, given their probabilities [N, 3]; NaN where unknown."""
    probabilities, known = _known(wanted)
    return Samples(-(probabilities * F.log_softmax(logits, dim=1)).sum(dim=1), known[:, 0])


def _per_point(prediction: Tensor, batch: TrainingBatch, error: Callable[[Tensor, Tensor], Tensor]) -> Samples:
    """The mean error [N] over a position's points that are known and on the board."""
    prediction = prediction.float()
    if batch.ownership is None:
        return _nothing(prediction.flatten(1)[:, 0])
    target, known = _known(batch.ownership)
    if batch.mask is not None:
        known = known * batch.mask
    points = known.sum(dim=(1, 2))
    losses = (error(prediction, target) * known).sum(dim=(1, 2)) / points.clamp(min=1)
    return Samples(losses, (points > 0).float())


def policy_logits(network: Any) -> Callable[[Any], Tensor]:
    """Picks a network's policy, logits [N, A], from its outputs; KataGo's plain one."""
    return _plain_policy if network.system == "katago" else _policy_of


def _policy_of(outputs: Any) -> Tensor:
    logits: Tensor = outputs.policy
    return logits


def _plain_policy(outputs: Any) -> Tensor:
    logits: Tensor = outputs.policy[:, _PLAIN]
    return logits


def _alphago(network: Any) -> tuple[dict[str, Term], dict[str, float]]:
    if getattr(network, "output_names", ("policy",)) == ("value",):
        return {"value": value_term}, {"value": 1.0}
    return {"policy": policy_term(_policy_of)}, {"policy": 1.0}


def _rollout(network: Any) -> tuple[dict[str, Term], dict[str, float]]:
    term = policy_term(_policy_of)

    def considered(outputs: Any, batch: TrainingBatch) -> Samples:
        """A move the policy never makes (it fills an own eye, say) is a missing target."""
        found = term(outputs, batch)
        return Samples(found.losses, found.weights * (found.losses < -NOT_CONSIDERED / 2))

    return {"policy": considered}, {"policy": 1.0}


def _two_heads(network: Any) -> tuple[dict[str, Term], dict[str, float]]:
    value = black_value_term if getattr(network, "value_for_black", False) else value_term
    return {"policy": policy_term(_policy_of), "value": value}, {"policy": 1.0, "value": 1.0}


def _guide(network: Any) -> tuple[dict[str, Term], dict[str, float]]:
    terms: dict[str, Term] = {
        "policy": policy_term(_policy_of),
        "value": value_term,
        "score": _guide_score_term,
        "ownership": _guide_ownership_term,
    }
    return terms, {"policy": 1.0, "value": 1.0, "score": 0.02, "ownership": 0.15}


def _katago(network: Any) -> tuple[dict[str, Term], dict[str, float]]:
    katago = _KataGoTerms(network.config)
    terms: dict[str, Term] = {
        "policy": policy_term(_plain_policy),
        "value": katago.value,
        "score": katago.score,
        "stdev": katago.stdev,
        "lead": katago.lead,
        "ownership": katago.ownership,
    }
    weights = {"policy": 1.0, "value": KATAGO_VALUE, "score": 0.0015, "stdev": 0.001, "lead": 0.006, "ownership": 1.5}
    if network.config.version >= KATAGO_OPTIMISTIC_FROM and network.config.policy.outputs > 1:
        terms["optimistic"] = katago.optimistic
        weights.update(policy=0.93, optimistic=0.2)
    return terms, weights


def _lc0(network: Any) -> tuple[dict[str, Term], dict[str, float]]:
    terms: dict[str, Term] = {"policy": policy_term(_policy_of), "value": _wdl_term}
    if "moves_left" in network.output_names:
        terms["moves_left"] = _moves_left_term
    return terms, dict.fromkeys(terms, 1.0)


_LOSSES: dict[str, Callable[[Any], tuple[dict[str, Term], dict[str, float]]]] = {
    "alphago": _alphago,
    "alphago-rollout": _rollout,
    "alphago-zero": _two_heads,
    "leela-zero": _two_heads,
    "katago-guide": _guide,
    "katago": _katago,
    "lc0": _lc0,
}

_NEEDS: dict[str, tuple[str, ...]] = {
    "policy": ("policy",),
    "optimistic": ("policy", "value", "score"),
    "value": ("value",),
    "score": ("score",),
    "stdev": ("score",),
    "lead": ("score",),
    "ownership": ("ownership",),
    "moves_left": ("moves_left",),
}
"""The targets each term learns from."""
