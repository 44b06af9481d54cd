"""Small recipes and runs of self-play for the tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import keima
from keima.inference.evaluator import Evaluator
from keima.training.selfplay.game import SelfplayGame
from keima.training.selfplay.journal import Journal
from keima.training.selfplay.play import Player, Players
from keima.training.selfplay.recipe import LoopRecipe, build_loop

SMALL = {
    "network": {"name": "connect-four", "blocks": 1, "channels": 8, "value_hidden": 8},
    "search": {"visits": 12, "root_noise": 0.25},
    "games": {"side_by_side": 8, "block": 4, "temperature_plies": 10},
    "window": {"steps": 4, "reuse": 4.0, "first": 100},
    "judge": {"games": 0},
    "optimizer": {"learning_rate": 0.02, "momentum": 0.9},
    "run": {"steps": 12, "batch_size": 16, "threads": 1, "seed": 3, "log_every": 4, "checkpoint_every": 3},
}


def recipe(**sections: dict[str, Any]) -> LoopRecipe:
    """`SMALL` with some keys changed, or another network."""
    network = sections.pop("network", SMALL["network"])
    merged = {name: {**SMALL.get(name, {}), **sections.get(name, {})} for name in {*SMALL, *sections}}
    return build_loop({**merged, "network": network}, {}, "small.toml", "")


def evaluator(small: LoopRecipe, seed: int = 0) -> Evaluator:
    """A fresh network of the recipe's."""
    import torch

    torch.manual_seed(seed)
    network = keima.create(small.training.network.name, **small.training.network.sizes)
    return Evaluator(network, batch_size=4, threads=1)


def play(players: Players, games: int) -> Iterator[SelfplayGame]:
    """Step until so many games have ended; all of the last step's."""
    found = 0
    while found < games and not players.idle:
        ended = players.step()
        found += len(ended)
        yield from ended


def started(small: LoopRecipe, ev: Evaluator, journal: Journal | None = None, **options: Any) -> Players:
    """Games from number 0 on."""
    counter = itertools.count()
    return Players(small, [Player(ev, 5, options.pop("resign", None))], lambda: next(counter), journal, **options)


def told(game: SelfplayGame) -> list[tuple[object, ...]]:
    """Everything a game's moves say."""
    return [(p.move, p.kind, repr(p.value), p.network, p.moves.tolist(), p.weights.tolist()) for p in game.plies]


def by_number(games: list[SelfplayGame], below: int) -> dict[int, list[tuple[object, ...]]]:
    return {game.number: told(game) for game in games if game.number < below}
