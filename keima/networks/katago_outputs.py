"""From KataGo's raw outputs to win probabilities and points: the arithmetic after the last layer.

Follows `NNEvaluator::evaluate` in KataGo's `cpp/neuralnet/nneval.cpp`, kept in the perspective of the side to move
(KataGo turns everything to White's).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from keima.networks.katago_config import KataGoConfig
from keima.networks.network import Array, Heads

OFF_BOARD = -5000.0
"""Policy logit of a point outside the mask (`model_pytorch.py` subtracts as much)."""


@dataclass(frozen=True)
class KataGoOutputs:
    """Raw outputs, float32, for the side to move.

    Attributes:
        policy: [N, P, H·W + 1] logits, pass last. P = 1: policy; 2: policy, optimistic policy; 4: those, then the
            predicted win − loss and score after each move.
        value: [N, 3] logits of win, loss, no result (in this order).
        score: [N, 6] before scaling: score mean, stdev, lead, time variance, short-term errors of win − loss and of
            score; [N, 4] in version 8, which lacks the last two.
        ownership: [N, H, W] before tanh, positive = the side to move owns the point.
    """

    policy: Tensor
    value: Tensor
    score: Tensor
    ownership: Tensor


def decode(config: KataGoConfig, outputs: Mapping[str, Array], context: Mapping[str, Array]) -> Heads:
    """Turn raw outputs into answers for the side to move.

    Args:
        config: of the network the outputs come from.
        outputs: NumPy arrays by the field names of `KataGoOutputs`.
        context: `no_result_allowed`, bool [N]: the rules let a game end without a result (ko SIMPLE or scoring
            TERRITORY); `policy_optimism`, float32 [N]: how much of the optimistic policy to mix in.

    Returns:
        Heads; draw = no result. In `extra`, float32 [N]: `score_mean` and `score_stdev`, points, over all outcomes (no
        result counts 0); from version 9 on `variance_time` (expected turns that still swing the outcome),
        `shortterm_winloss_error` and `shortterm_score_error` (points). Version 8 holds a time variance too, but KataGo
        does not report it.
    """
    wdl = _win_draw_loss(outputs["value"], context["no_result_allowed"])
    lead, extra = _scores(config, outputs["score"], wdl[:, 1])
    return Heads(
        policy=_policy(config, outputs["policy"], context["policy_optimism"]),
        wdl=wdl.astype(np.float32),
        value=(wdl[:, 0] - wdl[:, 2]).astype(np.float32),
        lead=lead.astype(np.float32),
        ownership=np.tanh(outputs["ownership"]).astype(np.float32),
        extra={name: numbers.astype(np.float32) for name, numbers in extra.items()},
    )


def _policy(config: KataGoConfig, policy: Array, optimism: Array) -> Array:
    """Logits [N, A]: plain + optimism · (optimistic − plain); human networks have no optimism."""
    plain: Array = policy[:, 0].astype(np.float32)
    if policy.shape[1] == 1 or config.metadata is not None:
        return plain
    mixed: Array = plain + np.asarray(optimism, np.float32)[:, None] * (policy[:, 1] - plain)
    return mixed


def _win_draw_loss(value: Array, no_result_allowed: Array) -> Array:
    """Float64 [N, 3]: win, no result (exactly 0 where the rules exclude it), loss."""
    logits = value.astype(np.float64)[:, [0, 2, 1]]
    logits[~np.asarray(no_result_allowed, bool), 1] = -np.inf
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    wdl: Array = odds / odds.sum(axis=1, keepdims=True)
    return wdl


def _scores(config: KataGoConfig, score: Array, no_result: Array) -> tuple[Array, dict[str, Array]]:
    """Lead, and the further numbers by name, float64 [N]."""
    raw, times, played = score.astype(np.float64).T, config.multipliers, 1.0 - no_result
    mean = raw[0] * times.score_mean
    mean_square = (mean**2 + (_softplus(raw[1]) * times.score_stdev) ** 2) * played
    mean = mean * played
    extra = {"score_mean": mean, "score_stdev": np.sqrt(np.maximum(mean_square - mean**2, 0.0))}
    if config.version >= 9:
        extra["variance_time"] = _softplus(raw[3]) * times.variance_time
        extra["shortterm_winloss_error"] = _error(config, raw[4], times.shortterm_winloss_error, before_10=1.0)
        extra["shortterm_score_error"] = _error(config, raw[5], times.shortterm_score_error, before_10=10.0)
    return raw[2] * times.lead * played, extra


def _error(config: KataGoConfig, raw: Array, times: float, before_10: float) -> Array:
    """A short-term error: a squared softplus from version 14 on, a softplus of the square in 10–13, plain in 9."""
    if config.version >= 14:
        return _softplus(0.5 * raw) * float(np.sqrt(times))
    if config.version >= 10:
        root: Array = np.sqrt(_softplus(raw) * times)
        return root
    return _softplus(raw) * before_10


def _softplus(x: Array) -> Array:
    """log(1 + eˣ), stable."""
    result: Array = np.logaddexp(0.0, x)
    return result
