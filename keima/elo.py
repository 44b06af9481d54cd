"""What the results of a match say: score, Elo difference with its interval, sequential test (SPRT).

Everything is from the view of player A; a draw is half a point.

- Elo is logistic: a score of s is a difference of −400·log10(1/s − 1).
- Where each opening is played twice with colours swapped, the two games of a pair are not independent: an opening that
  favours one side gives each player one win. The unit is then the pair, with 0, ½, 1, 1½ or 2 points (*pentanomial*);
  else it is the game, with 0, ½ or 1 (*trinomial*). These are the formulas of Stockfish's fishtest
  (`server/fishtest/stats/stat_util.py`, `LLRcalc.py`), derived in Van den Bergh, *Normalized Elo* and *A practical
  introduction to the GSPRT* (cantate.be/Fishtest).
- The interval of the Elo difference is that of the score, mean ± 1.96 standard errors, through the formula above. It
  has no meaning where all results are alike, or where it leaves [0, 1]; Wilson's interval takes its place there.
- The interval of the score is Wilson's (*Probable inference*, 1927), draws counted as half a success. It is wider than
  need be where there are draws, and is widened where the games of a pair go the same way more often than by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from keima.errors import BadRequest

_NORMAL = NormalDist()
Z95 = _NORMAL.inv_cdf(0.975)
"""1.96: standard errors either side of the mean that hold 95 % of a normal distribution."""
_UNSEEN = 1e-3
"""Count given to a result that has not occurred, so that likelihoods are finite; fishtest's `regularize`."""


def elo_of(score: float) -> float:
    """The Elo difference at which that share of the points is expected; ±inf at 1 and 0."""
    if score <= 0:
        return -math.inf
    if score >= 1:
        return math.inf
    return 0.0 - 400 * math.log10(1 / score - 1)


def expected_score(elo: float) -> float:
    """The share of the points expected at that Elo difference."""
    return 1 / (1 + 10 ** (-elo / 400))


def wilson(score: float, trials: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval for a share `score` of successes in so many trials; (0, 1) for none."""
    if trials <= 0:
        return 0.0, 1.0
    scale = 1 + z * z / trials
    centre = (score + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(score * (1 - score) / trials + z * z / (4 * trials * trials))
    return 0.0 if score <= 0 else max(0.0, centre - half), 1.0 if score >= 1 else min(1.0, centre + half)


@dataclass(frozen=True)
class Tally:
    """The results of a match so far, of player A.

    Attributes:
        wins, draws, losses: games.
        pairs: finished pairs of games with colours swapped, in which A had 0, ½, 1, 1½ and 2 points; all zero where
            openings are not played twice.
    """

    wins: int = 0
    draws: int = 0
    losses: int = 0
    pairs: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)

    @property
    def games(self) -> int:
        """Finished games."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """A's points."""
        return self.wins + self.draws / 2

    @property
    def score(self) -> float:
        """A's share of the points, ½ before the first game."""
        return self.points / self.games if self.games else 0.5

    @property
    def units(self) -> tuple[int, ...]:
        """Counts of the independent units, from A's worst result to the best: pairs if there are any, else games."""
        return self.pairs if any(self.pairs) else (self.losses, self.draws, self.wins)

    @property
    def standard_error(self) -> float:
        """Of `score`, from the spread of the units; games of unfinished pairs count as if theirs were finished."""
        games_a_unit = 2 if len(self.units) == 5 else 1
        return math.sqrt(_variance(self.units) * games_a_unit / max(1, self.games))

    @property
    def score_interval(self) -> tuple[float, float]:
        """95 % interval of `score` (Wilson)."""
        trials, spread = float(self.games), self.score * (1 - self.score)
        if 0 < spread < self.standard_error**2 * trials:
            trials = spread / self.standard_error**2
        return wilson(self.score, trials)

    @property
    def elo(self) -> float:
        """A's Elo minus B's; ±inf where one of them has every point."""
        return elo_of(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 % interval of `elo`."""
        error = self.standard_error
        low, high = self.score - Z95 * error, self.score + Z95 * error
        if error == 0 or low <= 0 or high >= 1:
            low, high = self.score_interval
        return elo_of(low), elo_of(high)

    @property
    def superiority(self) -> float:
        """Probability that A is the stronger (LOS), by the normal approximation.

        Where all n units went the same way, that has no meaning: 1 − ½^(n+1) then, from a uniform prior.
        """
        error, ahead = self.standard_error, self.score - 0.5
        if error > 0:
            return _NORMAL.cdf(ahead / error)
        by_chance: float = 0.5 ** (sum(self.units) + 1)
        return 0.5 if ahead == 0 else 1 - by_chance if ahead > 0 else by_chance


@dataclass(frozen=True)
class Sprt:
    """Sequential probability ratio test: does A stand `elo1` above B (H1), or only `elo0` (H0)?

    The generalised test of fishtest: the log-likelihood ratio of the two hypotheses, each with the likeliest
    distribution of units that has its expected score. It ends when the ratio leaves (`lower`, `upper`).

    Attributes:
        elo0, elo1: logistic Elo differences, elo0 < elo1.
        alpha, beta: probabilities to accept H1 where H0 holds, and H0 where H1 holds.
    """

    elo0: float = 0.0
    elo1: float = 10.0
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not (math.isfinite(self.elo0) and math.isfinite(self.elo1) and self.elo0 < self.elo1):
            raise BadRequest(f"SPRT: elo0 must be below elo1, not {self.elo0:g} and {self.elo1:g}")
        if not (0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            raise BadRequest(f"SPRT: alpha and beta must lie between 0 and 0.5, not {self.alpha:g} and {self.beta:g}")

    @property
    def lower(self) -> float:
        """H0 is accepted at this ratio (Wald)."""
        return math.log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        """H1 is accepted at this ratio (Wald)."""
        return math.log((1 - self.beta) / self.alpha)

    def ratio(self, tally: Tally) -> float:
        """The log-likelihood ratio (LLR) of H1 to H0; 0 before the first result."""
        units = tally.units
        if not any(units):
            return 0.0
        counts = [count or _UNSEEN for count in units]
        null, other = (_likeliest(counts, expected_score(elo)) for elo in (self.elo0, self.elo1))
        return sum(count * math.log(q / p) for count, p, q in zip(counts, null, other, strict=True))

    def verdict(self, tally: Tally) -> str | None:
        """ "H1", "H0", or None while undecided."""
        ratio = self.ratio(tally)
        if ratio >= self.upper:
            return "H1"
        return "H0" if ratio <= self.lower else None


def _variance(counts: Sequence[float]) -> float:
    """Of units worth 0 … 1 in equal steps; 0 for none."""
    total, scores = sum(counts), _scores(counts)
    if not total:
        return 0.0
    mean = sum(count * score for count, score in zip(counts, scores, strict=True)) / total
    return sum(count * (score - mean) ** 2 for count, score in zip(counts, scores, strict=True)) / total


def _scores(counts: Sequence[float]) -> list[float]:
    return [index / (len(counts) - 1) for index in range(len(counts))]


def _likeliest(counts: Sequence[float], mean: float) -> list[float]:
    """The distribution of the units' scores with that mean under which the counts are likeliest.

    p_i / (1 + x (a_i − mean)), where x makes the mean right (Van den Bergh, *MLE for multinomial distributions*,
    proposition 1.1); found by bisection, as the sum falls from +inf to −inf between the poles.
    """
    total = sum(counts)
    shares = [count / total for count in counts]
    offsets = [score - mean for score in _scores(counts)]
    low, high = -1 / max(offsets), -1 / min(offsets)
    for _ in range(200):
        x = (low + high) / 2
        if sum(share * offset / (1 + x * offset) for share, offset in zip(shares, offsets, strict=True)) > 0:
            low = x
        else:
            high = x
    x = (low + high) / 2
    return [share / (1 + x * offset) for share, offset in zip(shares, offsets, strict=True)]
