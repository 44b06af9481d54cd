"""AlphaGo's rollout policy: a linear softmax over fast local features, for playing games out in microseconds a move.

Source: Silver et al. 2016, Methods ("Rollout policy") and Extended Data Table 4. The features and the incremental
kernels stand in `local_features` and `playout`; this is the policy that holds their weights.

    >>> from keima.games.go import Position
    >>> policy = RolloutPolicy()                       # no pattern known yet: uniform over sensible moves
    >>> policy.play_out(Position.start(9), games=100, seed=1).moves_per_game > 50
    True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.games.go.board import MAX_POINTS
from keima.games.go.vertices import loc_to_vertex
from keima.systems.alphago.local_features import NAKADE_PATTERNS, TABLE_SIZE, WEIGHTS, insert_all, move_probabilities
from keima.systems.alphago.playout import play_out_many, play_out_once
from keima.systems.encoding import check_game
from keima.systems.playouts import Playouts

MAX_PATTERNS = TABLE_SIZE // 2
"""How many patterns of a kind a policy can know (131,072; the paper's has 69,338 and 32,207)."""


@dataclass(frozen=True)
class PlayOuts:
    """The outcome of playing one position out many times.

    Attributes:
        scores: float64 [games], area points, Black's minus White's, komi taken off.
        moves: moves made in all games together, passes included.
    """

    scores: NDArray[np.float64]
    moves: int

    @property
    def black_wins(self) -> float:
        """The share of games Black won; a draw counts half."""
        return float(np.mean(self.scores > 0) + np.mean(self.scores == 0) / 2)

    @property
    def moves_per_game(self) -> float:
        """The mean length of the games in moves."""
        return self.moves / len(self.scores)


class RolloutPolicy:
    """The linear softmax policy. Weights are log-odds: a feature with weight w multiplies a move's odds by e^w."""

    def __init__(
        self,
        patterns: Mapping[int, float] | None = None,
        responses: Mapping[int, float] | None = None,
        nakade: NDArray[np.float32] | None = None,
        neighbour: NDArray[np.float32] | None = None,
        response: float = 0.0,
        save_atari: float = 0.0,
    ) -> None:
        """A policy of these weights; what is not given weighs 0.

        Args:
            patterns: 3×3 code (24 bits, as `local_features` makes them) → weight.
            responses: response key (diamond and the move's place in it) → weight.
            nakade: float32 [8192].
            neighbour: float32 [8], row by row from the top left of the previous move.
            response: for matching any known response pattern.
            save_atari: for saving own stones from capture.

        Raises:
            BadRequest: more patterns than the tables hold, or arrays of another shape.
        """
        self.weights: NDArray[Any] = np.zeros(1, WEIGHTS)
        table = self.weights[0]
        table["response"] = np.exp(response)
        table["save_atari"] = np.exp(save_atari)
        table["neighbour"] = _exponential(neighbour, 8, "neighbour")
        table["nakade"] = _exponential(nakade, NAKADE_PATTERNS, "nakade")
        _fill(table["response_keys"], table["response_values"], responses or {}, "response")
        _fill(table["pattern_keys"], table["pattern_values"], patterns or {}, "3×3")

    @property
    def pattern_count(self) -> tuple[int, int]:
        """How many 3×3 and how many response patterns have a weight."""
        table = self.weights[0]
        return int(np.count_nonzero(table["pattern_keys"])), int(np.count_nonzero(table["response_keys"]))

    def probabilities(self, position: Any) -> dict[str, float]:
        """The probability of every move the policy considers; {"pass": 1.0} when there is none.

        Raises:
            UnsupportedPosition: not a Go position.
        """
        check_game(position, "go", "a rollout policy")
        probabilities = np.empty(MAX_POINTS, np.float64)
        move_probabilities(position.board[0], position.history[0], self.weights[0], probabilities)
        size = position.xsize, position.ysize
        points = np.flatnonzero(probabilities).tolist()
        return {loc_to_vertex(loc, *size): float(probabilities[loc]) for loc in points} or {"pass": 1.0}

    def play_out(self, position: Any, games: int = 1, seed: int = 0) -> PlayOuts:
        """Play the position out to the end many times, both sides by this policy; the same seed, the same games.

        The end is scored by area on the final board, komi included, whatever the position's own scoring.

        Raises:
            UnsupportedPosition: not a Go position.
            BadRequest: fewer than one game.
        """
        check_game(position, "go", "a rollout policy")
        if games < 1:
            raise BadRequest(f"cannot play {games} games")
        scores = np.empty(games, np.int32)
        random = np.random.default_rng(seed).integers(1, 2**63, 1, np.uint64)
        moves = play_out_many(position.board[0], position.history[0], self.weights[0], scores, random)
        return PlayOuts(scores - position.komi, int(moves))


def _exponential(weights: NDArray[np.float32] | None, size: int, name: str) -> NDArray[np.float32]:
    """e^w of an optional weight vector of a fixed size."""
    if weights is None:
        return np.ones(size, np.float32)
    if np.shape(weights) != (size,):
        raise BadRequest(f"{name} weights must have shape ({size},), not {np.shape(weights)}")
    return np.exp(np.asarray(weights, np.float32))


def _fill(keys: NDArray[np.uint64], values: NDArray[np.float32], weights: Mapping[int, float], name: str) -> None:
    """Put a mapping pattern → weight into a hash table as e^w."""
    if len(weights) > MAX_PATTERNS:
        raise BadRequest(f"{len(weights):,} {name} patterns; a policy holds at most {MAX_PATTERNS:,}")
    factors = np.exp(np.fromiter(weights.values(), np.float64, len(weights)))
    insert_all(keys, values, np.fromiter(weights, np.uint64, len(weights)), factors.astype(np.float32))


PLAYOUTS = Playouts("go", play_out_once, RolloutPolicy)
