"""Games of self-play made up at random: legal moves, any searches."""

from __future__ import annotations

import math

import numpy as np

from keima.games.game import GAMES
from keima.games.playing import Verdict
from keima.training.selfplay.game import FULL, OPENING, Ply, SelfplayGame

STARTS = {
    "go": [{"size": (5, 5)}, {"size": (7, 7), "rules": "japanese", "komi": 6.5}, {"size": (5, 7), "komi": -3.0}],
    "chess": [{}],
    "connect_four": [{}],
}


def made_game(game, number, *, start=0, longest=40, full=0.4, seed=0, most=12):
    """A game of random moves from one of `STARTS`, a function of its arguments."""
    facets, rng = GAMES[game], np.random.default_rng((seed, number))
    options = STARTS[game][start % len(STARTS[game])]
    first = position = facets.playing.start(**options)
    plies = []
    limit = int(rng.integers(longest + 1))
    while not position.is_over and len(plies) < limit:
        names = [str(name) for name in rng.permutation(position.legal())[: int(rng.integers(1, most + 1))]]
        kind = FULL if rng.random() < full else int(rng.integers(FULL))
        value = math.nan if kind == OPENING else float(rng.uniform(-1, 1))
        codes, weights = [], []
        if kind == FULL:
            codes = [facets.kernels.code(position, name) for name in names]
            weights = rng.random(len(codes)).astype(np.float32) + np.float32(1e-3)
            weights /= weights.sum()
        policy = np.array(codes, np.int16), np.array(weights, np.float32)
        plies.append(Ply(names[0], kind, value, number // 7, *policy))
        position = position.play(names[0])
    verdict = facets.playing.outcome(position) if position.is_over else None
    winner = int(rng.integers(2))
    verdict = verdict or Verdict(winner, facets.playing.result(winner, "R"), "resignation")
    return SelfplayGame(number, first, position, plies, verdict, bool(rng.random() < 0.3))
