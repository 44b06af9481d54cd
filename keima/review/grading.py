"""How bad a move is: grades by winning chances and by points, accuracy, a player's averages.

Points are graded as KaTrain does (`config.json`, trainer/eval_thresholds: 12, 6, 3, 1.5, 0.5): in a game that is
decided already, or at a handicap, the winning chances hardly move and large losses would go unnamed. Accuracy is
Lichess's (lila, `modules/analyse/src/main/AccuracyPercent.scala`; https://lichess.org/page/accuracy), on the judge's
own winning chances in place of those that Lichess takes from centipawns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, harmonic_mean, pstdev

from keima.games.playing import Playing
from keima.games.position import Position
from keima.games.records import GameRecord
from keima.plain import Data

AnyPlaying = Playing[Position, GameRecord]
GOOD = "good"
GRADES = (("blunder", 0.20), ("mistake", 0.10), ("inaccuracy", 0.05))
"""Name and least loss of winning chances (win + draw / 2) of each grade; below the last a move is "good"."""
_NAMES = [name for name, _ in GRADES]
_PLURALS = dict(zip(_NAMES, ("blunders", "mistakes", "inaccuracies"), strict=True))
_LEAST_WEIGHT, _MOST_WEIGHT = 0.5, 12.0  # of a move, by how much the chances swing around it, in per cent


def grade(loss: float) -> str:
    """ "good", "inaccuracy", "mistake" or "blunder" for a loss of winning chances."""
    return next((name for name, least in GRADES if loss >= least), GOOD)


def thresholds(playing: AnyPlaying) -> list[Data]:
    """The report's `grades`: each one's least losses, of winning chances and where the game has them of points."""
    points = playing.points_lost or (None,) * len(GRADES)
    return [
        {"name": name, "winrate": least} | ({"points": lost} if lost is not None else {})
        for (name, least), lost in zip(GRADES, points, strict=True)
    ]


def severity(move: Data, playing: AnyPlaying) -> float:
    """The larger of a move's losses, of winning chances and of points, each in parts of a blunder's least."""
    losses = [move["winrate_loss"] / GRADES[0][1]] if "winrate_loss" in move else [0.0]
    if playing.points_lost and "points_loss" in move:
        losses.append(move["points_loss"] / playing.points_lost[0])
    return max(losses)


def grades_of(move: Data, playing: AnyPlaying) -> Data:
    """`grade`, and where a loss in points has a grade too, both in `grades`; {} for a move without a loss."""
    if "winrate_loss" not in move:
        return {}
    found = {"winrate": grade(move["winrate_loss"])}
    if playing.points_lost and "points_loss" in move:
        limits = zip(_NAMES, playing.points_lost, strict=True)
        found["points"] = next((name for name, least in limits if move["points_loss"] >= least), GOOD)
    worst = min(found.values(), key=[*_NAMES, GOOD].index)
    return {"grade": worst} | ({"grades": found} if len(found) > 1 else {})


def accuracy(before: float, after: float) -> float:
    """Lichess's accuracy of a move, 0–100, from the mover's chances in [0, 1] with the best move and with this one."""
    if after >= before:
        return 100.0
    raw = 103.1668100711649 * math.exp(-0.04354415386753951 * 100 * (before - after)) - 3.166924740191411
    return min(100.0, max(0.0, raw + 1))  # one more for a judgement that may err, as Lichess gives


def game_accuracy(chances: Sequence[float], moves: Sequence[tuple[str, float]], side: str) -> float | None:
    """A side's accuracy over a game, 0–100: between the mean weighted by how sharp the play was and the harmonic mean.

    Args:
        chances: of one player, the same throughout, in [0, 1]: before the first move and after each.
        moves: (side, `accuracy`) of each move.
        side: whose.
    """
    own = [value for mover, value in moves if mover == side]
    if not own:
        return None
    size = min(8, max(2, len(moves) // 10))
    starts = [0] * (min(size, len(chances)) - 2) + list(range(len(chances) - size + 1))
    swings = [100 * pstdev(chances[start : start + size]) for start in starts]
    pairs = [(min(_MOST_WEIGHT, max(_LEAST_WEIGHT, swing)), move) for swing, move in zip(swings, moves, strict=False)]
    weights = [weight for weight, (mover, _) in pairs if mover == side]
    weighted = fmean(own)
    if weights:  # as fmean with weights, which Python 3.10 lacks
        weighted = math.fsum(weight * value for weight, value in zip(weights, own, strict=False)) / math.fsum(weights)
    return (weighted + harmonic_mean([max(1.0, value) for value in own])) / 2


def summarise(moves: Sequence[Data]) -> Data:
    """One player's averages over their moves; losses below zero count as none, ranks are the search's if it had any."""
    summary: Data = {"moves": len(moves)}
    for name, digits in (("winrate_loss", 5), ("points_loss", 4), ("cp_loss", 1)):
        losses = [max(0.0, move[name]) for move in moves if name in move]
        if losses:
            summary[f"mean_{name}"] = round(fmean(losses), digits)
    ranks: list[int] = [move.get("place") or move["rank"] for move in moves if "rank" in move]
    if ranks:
        summary["first_choice"] = round(sum(rank == 1 for rank in ranks) / len(ranks), 4)
        summary["among_three"] = round(sum(rank <= 3 for rank in ranks) / len(ranks), 4)
        summary["mean_prior"] = round(sum(move["prior"] for move in moves if "prior" in move) / len(ranks), 5)
    for name, plural in _PLURALS.items():
        summary[plural] = sum(move.get("grade") == name for move in moves)
    return summary
