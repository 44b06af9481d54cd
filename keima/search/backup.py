"""Backup: an evaluation added to its node and all above; KataGo's averages, in which good moves count for more."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keima.jit import Record, Records, njit
from keima.search.tree import OPEN


@njit
def back_up(nodes: Records, i: int, pending: int, p: Record) -> None:
    """Add node i's own evaluation to it and all above, as one visit; `pending` 1 ends the descent it belongs to."""
    nd = nodes[i]
    back_up_result(nodes, i, pending, float(nd.raw_value), float(nd.raw_draw), float(nd.raw_utility))
    if p.value_weight_exponent > 0 or p.noise_prune_scale > 0:
        i = nd.parent
        while i >= 0:
            if nodes[i].state == OPEN:
                average(nodes, i, p)
            i = nodes[i].parent


@njit
def back_up_result(nodes: Records, i: int, pending: int, value: float, draw: float, utility: float) -> None:
    """`back_up` with a value, draw and utility other than the node's own (a playout's), all weighing the same."""
    nd = nodes[i]
    nd.own += 1
    score, score_sq, lead = float(nd.raw_score), float(nd.raw_score_sq), float(nd.raw_lead)
    moves_left = float(nd.raw_moves_left)
    square = utility * utility
    while i >= 0:
        nd = nodes[i]
        nd.visits += 1
        nd.weight += 1
        nd.pending -= pending
        nd.value += value
        nd.draw += draw
        nd.utility += utility
        nd.utility_sq += square
        nd.score += score
        nd.score_sq += score_sq
        nd.lead += lead
        nd.moves_left += moves_left
        value, utility, score, lead = -value, -utility, -score, -lead
        moves_left += 1
        i = nd.parent


@njit
def average(nodes: Records, i: int, p: Record) -> None:
    """Set a node's averages to those of its own evaluation and its children, good children weighing more.

    KataGo `cpp/search/searchupdatehelpers.cpp`, `recomputeNodeStats` (without its bias of subtrees): visits that a bad
    move got beyond its share are taken off, then weight is shifted from moves that look bad to those that look good.
    """
    nd = nodes[i]
    count = 0
    c = nd.child
    while c >= 0:
        count += 1 if nodes[c].visits > 0 else 0
        c = nodes[c].sibling
    if count == 0:
        return
    children, weights, means = np.empty(count, np.int32), np.empty(count), np.empty(count)
    k = count
    c = nd.child
    while c >= 0:
        ch = nodes[c]
        if ch.visits > 0:
            k -= 1
            children[k] = c
            weights[k] = ch.weight
            means[k] = -ch.utility / ch.visits
        c = ch.sibling
    if count > 1 and p.noise_prune_scale > 0:
        prune_noise(nodes, children, weights, means, p.noise_prune_scale)
    if count > 1 and p.value_weight_exponent > 0:
        favour_good(weights, means, p.value_weight_exponent)
    _set_averages(nodes, i, children, weights)


@njit
def prune_noise(
    nodes: Records, children: NDArray[np.int32], weights: NDArray[np.float64], means: NDArray[np.float64], scale: float
) -> None:
    """Take weight off children worse than the likelier ones before them that have over twice their share by prior.

    KataGo `searchupdatehelpers.cpp`, `pruneNoiseWeight`; `scale` is its `noisePruneUtilityScale`: the gap of utility at
    which 1 − 1/e of the excess goes. The k children stand in the order they were opened; `means` are their utilities
    for the side to move at the parent.
    """
    utility_sum, weight_sum, prior_sum = 0.0, 0.0, 0.0
    for k in range(len(children)):
        prior = max(float(nodes[children[k]].prior), 1e-30)
        if weight_sum > 0:
            gap = utility_sum / weight_sum - means[k]
            excess = weights[k] - 2.0 * weight_sum * prior / prior_sum
            if gap > 0 and excess > 0:
                weights[k] -= excess * (1.0 - math.exp(-gap / scale))
        utility_sum += means[k] * weights[k]
        weight_sum += weights[k]
        prior_sum += prior


@njit
def favour_good(weights: NDArray[np.float64], means: NDArray[np.float64], exponent: float) -> None:
    """Multiply each weight by P(it is no worse than the average)^exponent, the sum kept.

    KataGo `searchupdatehelpers.cpp`, `downweightBadChildrenAndNormalizeWeight`; the probability is Student's with three
    degrees of freedom, in closed form here and a table there; `exponent` is its `valueWeightExponent`.
    """
    total, utility_sum = 0.0, 0.0
    for k in range(len(weights)):
        total += weights[k]
        utility_sum += means[k] * weights[k]
    if total <= 0:
        return
    mean, new_total = utility_sum / total, 0.0
    for k in range(len(weights)):
        stdev = math.sqrt(1e-8 + 1.0 / (1.5 * math.sqrt(max(weights[k], 1e-12))))
        chance = student_cdf((means[k] - mean) / stdev) + 0.0001
        weights[k] *= math.sqrt(math.sqrt(chance)) if exponent == 0.25 else chance**exponent
        new_total += weights[k]
    for k in range(len(weights)):
        weights[k] *= total / new_total


@njit
def student_cdf(z: float) -> float:
    """Student's distribution function with three degrees of freedom."""
    x = z / math.sqrt(3.0)
    return 0.5 + (x / (1.0 + x * x) + math.atan(x)) / math.pi


@njit
def _set_averages(nodes: Records, i: int, children: NDArray[np.int32], weights: NDArray[np.float64]) -> None:
    """Set a node's averages to the weighted ones of its own evaluations (a weight of 1 each) and its children."""
    nd = nodes[i]
    own = float(nd.own)
    total = own
    value, draw, utility = own * nd.raw_value, own * nd.raw_draw, own * nd.raw_utility
    square = own * nd.raw_utility * nd.raw_utility
    score, score_sq, lead = own * nd.raw_score, own * nd.raw_score_sq, own * nd.raw_lead
    left = own * nd.raw_moves_left
    for k in range(len(children)):
        ch = nodes[children[k]]
        share = weights[k] / ch.visits
        total += weights[k]
        value -= share * ch.value
        draw += share * ch.draw
        utility -= share * ch.utility
        square += share * ch.utility_sq
        score -= share * ch.score
        score_sq += share * ch.score_sq
        lead -= share * ch.lead
        left += share * ch.moves_left + weights[k]
    scale = nd.visits / total
    nd.weight = total
    nd.value = value * scale
    nd.draw = draw * scale
    nd.utility = utility * scale
    nd.utility_sq = square * scale
    nd.score = score * scale
    nd.score_sq = score_sq * scale
    nd.lead = lead * scale
    nd.moves_left = left * scale
