"""What networks are trained to make small: the sum of a system's terms, and the forms of term that systems share.

A loss gives named terms, each the mean over the positions that have its target, and 0 where none has; `total` is their
weighted sum. Everything is computed in float32, whatever precision the network runs in, and cross-entropies from
logits. Each system's own terms and weights, with their sources, stand in its folder's `loss.py`.

**L2.** A term c‖θ‖² is left to the optimiser by default: SGD's weight decay of 2c adds the same 2cθ to the gradient
(AdamW's decoupled decay does not). With `l2=c` the loss computes the term itself; then leave the optimiser's at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from keima.errors import BadRequest
from keima.systems.network import Network
from keima.systems.system import SYSTEMS, system_of
from keima.systems.targets import TensorBatch

_LEAST = 1e-6  # divides the sum of a term without targets, which is 0


@dataclass(frozen=True)
class LossTerms:
    """A loss of one batch, float32 scalars."""

    total: Tensor  # the weighted sum, to go backward from
    named: dict[str, Tensor]  # by name, unweighted: nats, squared errors
    present: dict[str, Tensor]  # how many positions had the term's target


@dataclass(frozen=True)
class Samples:
    """A term before it is averaged: float32 [N] each."""

    losses: Tensor  # the loss of each position, finite everywhere, anything where the target is missing
    weights: Tensor  # 1 where the target is there, 0 where it is missing


Term = Callable[[Any, TensorBatch], Samples]  # (outputs of `forward`, batch) → the term of each position
Share = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Weighted:
    """A term of a system's loss, its weight in the sum, and what it learns from, names of `TARGETS`."""

    term: Term
    weight: float
    targets: tuple[str, ...]


_policy_of: Callable[[Any], Tensor] = attrgetter("policy")


@dataclass(frozen=True)
class SystemLoss:
    """A system's facet `LOSS`."""

    terms: Callable[[Any], Mapping[str, Weighted]]  # (network) → its terms by name
    policy: Callable[[Any], Tensor] = _policy_of  # (outputs) → logits [N, A] of the policy that is played


class Objective(Protocol):
    """What a run minimises: `Loss`, or another function of outputs and batch."""

    def __call__(self, outputs: Any, batch: TensorBatch, share: Share | None = None) -> LossTerms:
        """See `Loss`."""
        ...


@dataclass(frozen=True)
class Loss:
    """A weighted sum of terms by name."""

    terms: Mapping[str, Weighted]
    targets: frozenset[str]  # what the loader should make, of `TARGETS`
    l2: float = 0.0  # c of an explicit c‖θ‖² of the `parameters`; 0 leaves it to the optimiser
    parameters: tuple[Tensor, ...] = field(default=(), repr=False)

    def __call__(self, outputs: Any, batch: TensorBatch, share: Share | None = None) -> LossTerms:
        """The loss of what `network.forward` returned for a batch of tensors on the same device.

        `share`, where this batch is a part of a larger one (several processes), takes how many positions have each
        term's target here (float32 [terms]), and returns what to divide their sums by instead, the mean of these
        numbers over the parts. Then the mean of the parts' losses, and of their gradients, is the large batch's,
        however unevenly missing targets are spread.
        """
        samples = {name: each.term(outputs, batch) for name, each in self.terms.items()}
        present = torch.stack([(found.weights > 0).sum().float() for found in samples.values()])
        divisors = (present if share is None else share(present)).clamp(min=_LEAST)
        named: dict[str, Tensor] = {}
        for (name, found), divisor in zip(samples.items(), divisors, strict=True):
            named[name] = (found.losses * found.weights).sum() / divisor
        total = torch.stack([self.terms[name].weight * loss for name, loss in named.items()]).sum()
        if self.l2:
            named["l2"] = torch.stack([parameter.float().square().sum() for parameter in self.parameters]).sum()
            total = total + self.l2 * named["l2"]
        return LossTerms(total, named, dict(zip(samples, present, strict=True)))


def loss_for(network: Network, weights: Mapping[str, float] | None = None, *, l2: float = 0.0) -> Loss:
    """The loss of a network's system, some terms with other weights than its own (0: switched off); `l2` as in `Loss`.

    Raises:
        BadRequest: a system without a loss, or a weight for a term that its loss does not have.
    """
    own = system_loss(network).terms(network)
    merged = {name: each.weight for name, each in own.items()}
    for name, weight in (weights or {}).items():
        if name not in own:
            raise BadRequest(f"this network's loss has no term {name!r}; its terms are {', '.join(own)}")
        if not (isinstance(weight, int | float) and math.isfinite(weight)):
            raise BadRequest(f"the weight of {name} must be a number, not {weight!r}")
        merged[name] = weight
    kept = {name: Weighted(each.term, merged[name], each.targets) for name, each in own.items() if merged[name] != 0}
    if not kept:
        raise BadRequest("every term of the loss has weight 0")
    targets = frozenset(target for each in kept.values() for target in each.targets)
    return Loss(kept, targets, l2, tuple(network.parameters()) if l2 else ())


def system_loss(network: Network) -> SystemLoss:
    """The facet of a network's system; raises BadRequest if it has none."""
    found: SystemLoss | None = system_of(network).loss if network.system in SYSTEMS else None
    if found is None:
        raise BadRequest(f"no loss for {network.system!r} networks")
    return found


# --- Forms of term ----------------------------------------------------------------------------------------------------


def policy_term(logits_of: Callable[[Any], Tensor] = _policy_of) -> Term:
    """Cross-entropy of the move played, in nats; a soft target, where the batch has one, takes its place.

    `logits_of` picks logits [N, A] from the outputs. A move with an index of A or more (a pass, where the policy has
    none) is a missing target.
    """

    def term(outputs: Any, batch: TensorBatch) -> Samples:
        logits = logits_of(outputs).float()
        if batch.policy_soft is not None:
            soft = _without_pass(batch.policy_soft.float(), logits.shape[1])
            entropy = -(soft * F.log_softmax(logits, dim=1)).sum(dim=1)
            return Samples(entropy, (soft.sum(dim=1) > 0).float())
        if batch.policy is None:
            return nothing(logits[:, 0])
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


def value_term(outputs: Any, batch: TensorBatch) -> Samples:
    """(z − v)² for outputs whose `value` [N] is the side to move's, in [−1, 1]."""
    return regression(outputs.value, batch.value, lambda v, z: (v - z).square())


def known_part(target: Tensor) -> tuple[Tensor, Tensor]:
    """The target with 0 where it is missing (NaN), and 1 where it is there."""
    known = ~torch.isnan(target)
    return torch.where(known, target, 0).float(), known.float()


def nothing(like: Tensor) -> Samples:
    """A term whose target is missing everywhere; its gradient is 0, not absent."""
    return Samples(like.float() * 0, torch.zeros_like(like, dtype=torch.float32))


def regression(prediction: Tensor, target: Tensor | None, error: Callable[[Tensor, Tensor], Tensor]) -> Samples:
    """The error [N] of one number a position."""
    prediction = prediction.float()
    if target is None:
        return nothing(prediction)
    wanted, known = known_part(target)
    return Samples(error(prediction, wanted), known)


def huber(delta: float) -> Callable[[Tensor, Tensor], Tensor]:
    """The Huber loss, squared up to `delta` and linear beyond."""
    return lambda prediction, target: F.huber_loss(prediction, target, "none", delta)


def outcome(
    logits: Tensor, value: Tensor | None, wdl: Tensor | None, probabilities: Callable[[Tensor], Tensor]
) -> Samples:
    """The cross-entropy [N] of the outcomes' logits [N, 3], in any order of theirs.

    The target is `wdl` [N, 3] in that order, or else what `probabilities` makes of `value` [N] in [−1, 1]; NaN unknown.
    """
    if wdl is not None:
        wanted, known = known_part(wdl)
        known = known[:, 0]
    elif value is None:
        return nothing(logits[:, 0])
    else:
        z, known = known_part(value)
        wanted = probabilities(z)
    return Samples(-(wanted * F.log_softmax(logits, dim=1)).sum(dim=1), known)


def per_point(prediction: Tensor, batch: TensorBatch, error: Callable[[Tensor, Tensor], Tensor]) -> Samples:
    """The mean error [N] of each point's owner over a position's points that are known and on the board."""
    prediction = prediction.float()
    if batch.ownership is None:
        return nothing(prediction.flatten(1)[:, 0])
    target, known = known_part(batch.ownership)
    mask = batch.inputs.get("mask")
    if mask is not None:
        known = known * mask
    points = known.sum(dim=(1, 2))
    losses = (error(prediction, target) * known).sum(dim=(1, 2)) / points.clamp(min=1)
    return Samples(losses, (points > 0).float())
