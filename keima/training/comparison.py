"""A student beside its teacher: how well each guesses held-out games, how large and how fast each is."""

from __future__ import annotations

import time
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from keima.encodings.encoding import Batch, decoding_context
from keima.inference.evaluator import Evaluator
from keima.networks.network import Network
from keima.training.batches import Loader, PositionFilter
from keima.training.evaluation import Evaluation, report, tally_batches

_BATCH = 64
_SEED = 0


@dataclass(frozen=True)
class Standing:
    """One network's figures.

    Attributes:
        name: of the network.
        parameters: how many numbers it has.
        evaluation: on the held-out positions, the same ones for every network.
        per_second: evaluations a second of encoded batches, this machine's `Evaluator`.
    """

    name: str
    parameters: int
    evaluation: Evaluation
    per_second: float

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "parameters": self.parameters,
            "evaluations_per_second": round(self.per_second, 1),
            "evaluation": self.evaluation.to_json(),
        }


def standing(
    network: Network,
    games: Any,
    *,
    positions: int = 4096,
    chosen: PositionFilter | None = None,
    precision: str = "auto",
    seconds: float = 2.0,
) -> Standing:
    """Measure a network.

    Args:
        network: in evaluation mode.
        games: a `GameStore` of held-out games, or its `FlatGames`.
        positions: how many of their positions.
        chosen: which ones.
        precision: of the timed evaluator.
        seconds: spent on timing.

    Raises:
        BadRequest: the games and the network do not fit.
    """
    targets = frozenset({"policy", "value"})
    with Loader(
        games, network.encoding, _BATCH, seed=_SEED, symmetries=False, targets=targets, positions=chosen
    ) as made:
        count = max(1, min(positions, made.positions) // _BATCH)
        tally = tally_batches(network, (next(made).torch() for _ in range(count)), nullcontext)
        made.seek(0)
        batch = next(made)
        context = decoding_context(batch.first_to_move, made.no_result_allowed(batch.game))
    speed = _per_second(network, batch.inputs(), context, precision, seconds)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return Standing(network.pedigree.name, parameters, report(tally), speed)


def _per_second(
    network: Network, inputs: dict[str, Any], context: dict[str, Any], precision: str, seconds: float
) -> float:
    """Evaluations a second of batches of the evaluator's own size, two under way, as a search asks for them."""
    evaluator = Evaluator(network, precision=precision)
    n = evaluator.batch_size
    own = {name: inputs[name][:n] for name in network.input_names}
    part = Batch(own, {name: array[:n] for name, array in context.items()})
    evaluator.infer(part)
    under_way: deque[Any] = deque([evaluator.submit(part)])
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        under_way.append(evaluator.submit(part))
        under_way.popleft().result()
        done += n
    return done / (time.perf_counter() - started)
