"""A student beside its teacher: how well each guesses held-out games, how large and how fast each is."""

from __future__ import annotations

import time
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from keima.games.archive import FlatGames
from keima.inference.evaluator import Evaluator, Handle
from keima.plain import Data
from keima.systems.encoding import Batch
from keima.systems.network import Network
from keima.training.data.batches import Loader, PositionFilter
from keima.training.data.store import GameStore
from keima.training.run.evaluation import Evaluation, report, tally_batches

_BATCH = 64
_SEED = 0


@dataclass(frozen=True)
class Standing:
    """One network's figures: on held-out positions, the same for all, and evaluations a second of its `Evaluator`."""

    name: str
    parameters: int
    evaluation: Evaluation
    per_second: float

    def to_json(self) -> Data:
        """As plain data."""
        return {
            "name": self.name,
            "parameters": self.parameters,
            "evaluations_per_second": round(self.per_second, 1),
            "evaluation": self.evaluation.to_json(),
        }


def first_board(games: GameStore, network: Network) -> tuple[int, int]:
    """(columns, rows) of the board that a store's first game was played on."""
    of, positions = games.flat().kinds()
    height, width = network.encoding.shape(positions[of[0]])
    return width, height


def evaluate_on(network: Network, games: GameStore | FlatGames, count: int = 4096, **options: Any) -> Evaluation:
    """How well a network in evaluation mode guesses about so many positions of games, the same ones for every network.

    Args:
        options: of the `Loader`: which positions, and what searches found there.

    Raises:
        BadRequest: the games and the network do not fit.
    """
    options |= {"symmetries": False, "targets": frozenset({"policy", "value"})}
    with Loader(games, network.encoding, _BATCH, seed=_SEED, **options) as made:
        batches = max(1, min(count, made.positions) // _BATCH)
        return report(tally_batches(network, (next(made).torch() for _ in range(batches)), nullcontext))


def standing(
    network: Network,
    games: GameStore | FlatGames,
    *,
    positions: int = 4096,
    chosen: PositionFilter | None = None,
    precision: str = "auto",
    seconds: float = 2.0,
) -> Standing:
    """Measure a network in evaluation mode on so many positions of held-out games; `seconds` are spent on timing.

    Raises:
        BadRequest: the games and the network do not fit.
    """
    evaluation, encoding = evaluate_on(network, games, positions, positions=chosen), network.encoding
    with Loader(games, encoding, _BATCH, symmetries=False, targets=(), positions=chosen, also=encoding) as made:
        batch = next(made).also
    assert batch is not None
    speed = per_second(network, batch, precision, seconds)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return Standing(network.pedigree.name, parameters, evaluation, speed)


def per_second(network: Network, batch: Batch, precision: str, seconds: float) -> float:
    """Evaluations a second of batches of the evaluator's own size, two under way, as a search asks for them."""
    evaluator = Evaluator(network, precision=precision)
    n = evaluator.batch_size
    part = batch[:n]
    part.inputs.pop("mask", None)
    evaluator.infer(part)
    under_way: deque[Handle] = deque([evaluator.submit(part)])
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        under_way.append(evaluator.submit(part))
        under_way.popleft().result()
        done += n
    return done / (time.perf_counter() - started)
