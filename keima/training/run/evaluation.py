"""How good a network is on held-out games: the moves it would have guessed, how well its values are founded.

- *top-1, top-5*: share of positions in which the move played is the network's first, or among its first five. Over all
  moves, legal or not, as the papers count. AlphaGo reached 57.0 % of KGS moves (Silver et al. 2016, Extended Data
  Table 3), AlphaGo Zero's supervised network 60.4 % (2017, Extended Data Table 1).
- *cross-entropy*: mean −log p(move played), nats.
- *value MSE*: mean (v − z)², v and z in [−1, 1], side to move. The papers divide it by 4 (2017, Fig. 3c).
- *Brier*: mean (p − y)² of the expected result p = win + draw/2 against y: 1 won, ½ drawn, 0 lost.
- *calibration* (ECE): positions in ten bins by p; the mean distance of a bin's mean p and mean y, weighted by its
  positions (Guo et al. 2017, arXiv:1706.04599). The same for the policy: p of the first move, y whether it was played.
- *phases*: all of these by ply.

Of positions with a search's π and Q (`data.searches`) the move is π's first, and the result is Q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from keima.games.game import GAMES
from keima.plain import Data, Fields
from keima.systems.encoding import decoding_context
from keima.systems.network import Heads, Network
from keima.systems.targets import TensorBatch

Array = NDArray[Any]
Autocast = Callable[[], AbstractContextManager[Any]]
"""Makes the context of a run's precision."""

BINS = 10

_POLICY = ("policy", "top1", "top5", "cross_entropy")
_VALUE = ("value", "square", "brier", "right", "decided")
_CALIBRATION = ("value_count", "value_expected", "value_found", "policy_count", "policy_expected", "policy_found")


class Tally:
    """Sums over positions, by phase and by bin; tallies of several processes add up.

    Attributes:
        plies: of one phase, as the game has it.
        phases: float64 [9, phases], rows as `_POLICY` and `_VALUE` name them.
        bins: float64 [6, BINS], rows as `_CALIBRATION` names them.
    """

    def __init__(self, game: str) -> None:
        self.game = game
        self.plies, count = GAMES[game].playing.phases
        self.phases = np.zeros((len(_POLICY) + len(_VALUE), count))
        self.bins = np.zeros((len(_CALIBRATION), BINS))

    def add(self, heads: Heads, policy: Array | None, value: Array | None, ply: Array) -> None:
        """Take in N answers.

        Args:
            heads: the network's answers.
            policy: int64 [N], index of the move played, −1 where there is none; None for a network without a policy.
            value: float32 [N], result in [−1, 1] of the side to move, nan unknown; None where none is.
            ply: int [N], from 0.
        """
        phase = np.minimum(ply // self.plies, self.phases.shape[1] - 1)
        if policy is not None and (policy >= 0).any():
            known = policy >= 0
            self._add_policy(heads.policy[known], policy[known], phase[known])
        if heads.value is not None and value is not None and not np.isnan(value).all():
            known = ~np.isnan(value)
            self._add_value(heads.value[known], value[known], phase[known])

    def _add_policy(self, logits: Array, played: Array, phase: Array) -> None:
        logits = logits.astype(np.float64)
        shifted = logits - logits.max(axis=1, keepdims=True)
        log_probability = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        own = np.take_along_axis(logits, played[:, None], axis=1)
        better = (logits > own).sum(axis=1)
        equal_before = ((logits == own) & (np.arange(logits.shape[1]) < played[:, None])).sum(axis=1)
        rank = better + equal_before
        log_own = np.take_along_axis(log_probability, played[:, None], axis=1)[:, 0]
        self._add_rows(0, phase, np.ones(len(played)), rank < 1, rank < 5, -log_own)
        self._add_bins(3, np.exp(log_probability.max(axis=1)), rank < 1)

    def _add_value(self, found: Array, result: Array, phase: Array) -> None:
        found, result = found.astype(np.float64), result.astype(np.float64)
        expected, reached = (1 + found) / 2, (1 + result) / 2
        decided = result != 0
        right = decided & (np.sign(found) == np.sign(result))
        squares = (found - result) ** 2, (expected - reached) ** 2
        self._add_rows(len(_POLICY), phase, np.ones(len(found)), *squares, right, decided)
        self._add_bins(0, expected, reached)

    def _add_rows(self, first: int, phase: Array, *columns: Array) -> None:
        for row, numbers in enumerate(columns, first):
            np.add.at(self.phases[row], phase, numbers)

    def _add_bins(self, row: int, expected: Array, found: Array) -> None:
        bins = np.clip((expected * BINS).astype(np.int64), 0, BINS - 1)
        for offset, numbers in enumerate((np.ones(len(expected)), expected, found)):
            np.add.at(self.bins[row + offset], bins, numbers)

    def vector(self) -> Array:
        """All sums in one float64 vector."""
        return np.concatenate([self.phases.ravel(), self.bins.ravel()])

    def set_vector(self, sums: Array) -> None:
        """Put the sums of a vector in place of these."""
        split = self.phases.size
        self.phases = sums[:split].reshape(self.phases.shape)
        self.bins = sums[split:].reshape(self.bins.shape)


@dataclass(frozen=True)
class Evaluation:
    """The numbers of one evaluation; see the module's head. None where the network or the data has no such thing.

    Attributes:
        value_mse: in [0, 4]; `cross_entropy` is in nats, all others are shares in [0, 1].
        value_accuracy: share of decided games whose winner the sign of the value names.
        phases: for each phase its first ply and the same numbers, those of no positions left out.
        calibration: "value" and "policy" → for each bin in use its count, expected and found share.
    """

    positions: int
    top1: float | None
    top5: float | None
    cross_entropy: float | None
    value_mse: float | None
    value_accuracy: float | None
    brier: float | None
    value_ece: float | None
    policy_ece: float | None
    phases: list[dict[str, float]]
    calibration: dict[str, list[dict[str, float]]]

    def to_json(self) -> Data:
        """What is known, as plain data."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def summary(self) -> str:
        """One line for people."""
        shares = {"top-1": self.top1, "top-5": self.top5, "winner": self.value_accuracy}
        numbers = {"cross-entropy": self.cross_entropy, "value MSE": self.value_mse, "ECE": self.value_ece}
        words = [f"{name} {value:.2%}" for name, value in shares.items() if value is not None]
        words += [f"{name} {value:.4f}" for name, value in numbers.items() if value is not None]
        return f"{self.positions:,} held-out positions: {', '.join(words)}"


def change(before: Fields, after: Fields) -> str:
    """One line for people: what a training brought, from two evaluations' `to_json` on the same positions."""
    shares, numbers = ("top1", "top5", "value_accuracy"), ("cross_entropy", "value_mse")
    both = [name for name in (*shares, *numbers) if name in before and name in after]
    kinds = {name: ".2%" if name in shares else ".4f" for name in both}
    words = [f"{name} {before[name]:{kinds[name]}} → {after[name]:{kinds[name]}}" for name in both]
    return f"held-out games, before → after: {', '.join(words)}"


def report(tally: Tally) -> Evaluation:
    """The numbers that sums stand for."""
    columns = (_means(sums) for sums in tally.phases.T)
    phases = [{"ply": index * tally.plies, **numbers} for index, numbers in enumerate(columns) if numbers]
    totals = tally.phases.sum(axis=1)
    means = _means(totals)
    names = ("top1", "top5", "cross_entropy", "value_mse", "value_accuracy", "brier")
    return Evaluation(
        positions=int(max(totals[0], totals[len(_POLICY)])),
        **{name: means.get(name) for name in names},
        value_ece=_calibration_error(tally.bins[:3]),
        policy_ece=_calibration_error(tally.bins[3:]),
        phases=phases,
        calibration={"value": _bins(tally.bins[:3]), "policy": _bins(tally.bins[3:])},
    )


def _means(sums: Array) -> dict[str, float]:
    """Means of one column of sums; what no position has is left out."""
    policy, top1, top5, cross_entropy, value, square, brier, right, decided = sums.tolist()
    means: dict[str, float] = {}
    if policy:
        means |= {"positions": policy, "top1": top1 / policy, "top5": top5 / policy}
        means["cross_entropy"] = cross_entropy / policy
    if value:
        means |= {"positions": max(policy, value), "value_mse": square / value, "brier": brier / value}
    if decided:
        means["value_accuracy"] = right / decided
    return means


def _calibration_error(sums: Array) -> float | None:
    count, expected, found = sums
    return float(np.abs(expected - found).sum() / count.sum()) if count.sum() else None


def _bins(sums: Array) -> list[dict[str, float]]:
    return [
        {"positions": count, "expected": expected / count, "found": found / count}
        for count, expected, found in sums.T.tolist()
        if count
    ]


@torch.no_grad()
def tally_batches(network: Network, batches: Iterable[TensorBatch], autocast: Autocast) -> Tally:
    """Evaluate batches with a network in evaluation mode, on their device, each within a context of `autocast`."""
    tally = Tally(network.encoding.game)
    has_policy = "policy" in network.output_names
    for batch in batches:
        with autocast():
            output = network(**batch.inputs)
        first = batch.first_to_move
        first_to_move = np.zeros(len(batch), np.bool_) if first is None else first.cpu().numpy()
        heads = network.answers(output, decoding_context(first_to_move))
        target = batch.policy if batch.policy_soft is None else batch.policy_soft.argmax(dim=1)
        policy = target.cpu().numpy() if has_policy and target is not None else None
        if policy is not None and not network.has_pass:  # a pass says nothing of a policy that has none
            policy = np.where(policy < heads.policy.shape[1] - 1, policy, -1)
        ply = np.zeros(len(batch), np.int32) if batch.ply is None else batch.ply.cpu().numpy()
        tally.add(heads, policy, None if batch.value is None else batch.value.cpu().numpy(), ply)
    return tally
