"""Evaluators without a network: answers worked out from the position alone, in Python.

A `Fake` takes a function from a position (its records, as encoders see them) to an `Answer`. It answers at once, or
after a delay in a thread of its own as an asynchronous backend would.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from keima.systems.encoding import Batch
from keima.systems.go_points import policy_places
from keima.systems.lc0.moves import policy_index
from keima.systems.network import Heads


@dataclass
class Answer:
    """Logits over the whole policy, and numbers for the side to move."""

    logits: np.ndarray
    value: float = 0.0
    draw: float = 0.0
    score: float | None = None
    stdev: float = 10.0
    moves_left: float | None = None
    ownership: np.ndarray | None = None


class PlainEncoding:
    """Passes the positions on, in the only orientation it knows; moves stand where the game's networks have them."""

    globals = 0
    symmetries = (0,)
    options = ()

    def __init__(self, game: str) -> None:
        self.game = game

    def bind(self, **options: Any) -> PlainEncoding:
        """Take no options."""
        assert not options
        return self

    def check(self, position: Any) -> None:
        """Take any position."""

    def shape(self, position: Any, symmetry: int = 0) -> tuple[int, int]:
        return (position.ysize, position.xsize) if self.game == "go" else (8, 8)

    def room(self, n: int, shape: tuple[int, int]) -> Batch:
        return Batch({"planes": np.zeros((n, 1, *shape), np.float32)})

    def write(self, records: Any, symmetries: Any, batch: Batch) -> None:
        batch.context["positions"] = [view_of(records[k : k + 1].copy()) for k in range(len(records))]

    def write_indices(self, moves: Any, counts: Any, symmetries: Any, batch: Batch, indices: Any) -> None:
        ysize, xsize = batch.inputs["planes"].shape[2:]
        for k, count in enumerate(counts.tolist()):
            if self.game == "go":
                indices[k, :count] = policy_places(xsize, ysize)[0, moves[k, :count]]
            else:
                indices[k, :count] = [policy_index(int(move), 0) for move in moves[k, :count]]

    def restore(self, points: Any, position: Any, symmetry: int) -> Any:
        return points


def view_of(record: Any) -> Any:
    """A position's record as answers read it."""
    if "board" in (record.dtype.names or ()):
        return SimpleNamespace(board=record["board"], history=record["history"])
    return SimpleNamespace(record=record)


class Fake:
    """What a search needs of an evaluator: `network`, `encoding`, `batch_size`, `submit`."""

    def __init__(
        self,
        game: str,
        answer: Callable[[Any], Answer],
        system: str = "",
        batch_size: int = 8,
        delay: float = 0.0,
        device: str = "cpu",
    ) -> None:
        self.batch_size = batch_size
        self.device = device
        self.network = SimpleNamespace(
            system=system or ("katago" if game == "go" else "lc0"), output_names=("policy", "value")
        )
        self.encoding = PlainEncoding(game)
        self.answer = answer
        self.asked = 0
        self.batches: list[int] = []
        self.under_way = 0
        self.most_under_way = 0
        self.delay = delay
        self._lock = threading.Lock()

    def submit(self, batch: Batch) -> Any:
        positions = batch.context["positions"]
        self.asked += len(positions)
        self.batches.append(len(positions))
        with self._lock:
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        answers = [self.answer(position) for position in positions]
        ready = time.perf_counter() + self.delay

        def result() -> Heads:
            time.sleep(max(0.0, ready - time.perf_counter()))
            with self._lock:
                self.under_way -= 1
            return heads_of(answers)

        return SimpleNamespace(result=result)


def heads_of(answers: list[Answer]) -> Heads:
    value = np.array([one.value for one in answers], np.float32)
    draw = np.array([one.draw for one in answers], np.float32)
    lead, extra, left, ownership = None, {}, None, None
    if answers[0].score is not None:
        lead = np.array([one.score for one in answers], np.float32)
        extra = {"score_mean": lead, "score_stdev": np.array([one.stdev for one in answers], np.float32)}
    if answers[0].moves_left is not None:
        left = np.array([one.moves_left for one in answers], np.float32)
    if answers[0].ownership is not None:
        ownership = np.stack([one.ownership for one in answers]).astype(np.float32)
    return Heads(
        policy=np.stack([one.logits for one in answers]).astype(np.float32),
        wdl=np.stack([(1 - draw + value) / 2, draw, (1 - draw - value) / 2], axis=1),
        value=value,
        lead=lead,
        ownership=ownership,
        moves_left=left,
        extra=extra,
    )


def seed_of(position: Any) -> int:
    """A number that two positions share only if stones (pieces), side to move and repetitions are the same."""
    if not hasattr(position, "board"):
        state = position.record[0]
        facts = (state["pieces"].tobytes(), int(state["ours"]), int(state["side"]), int(state["castling"]))
    else:
        facts = (position.board[0]["stones"].tobytes(), int(position.history[0]["to_play"]))
    return zlib.crc32(repr(facts).encode())


def random_answer(moves: int, spread: float = 1.0, score: bool = False, left: bool = False, bias: float = 0.0) -> Any:
    """Answers that look random and depend on the position alone; `bias` makes the side to move's values better."""

    def answer(position: Any) -> Answer:
        rng = np.random.default_rng(seed_of(position))
        logits = rng.normal(0, spread, moves).astype(np.float32)
        value = float(np.tanh(rng.normal(bias, 0.5)))
        return Answer(
            logits,
            value=value * 0.9,
            draw=0.1 * float(rng.random()),
            score=float(rng.normal(0, 6)) if score else None,
            stdev=float(rng.uniform(2, 9)),
            moves_left=float(rng.uniform(10, 90)) if left else None,
        )

    return answer


def uniform_answer(moves: int) -> Any:
    """Every move alike, every position even."""

    def answer(position: Any) -> Answer:
        return Answer(np.zeros(moves, np.float32))

    return answer
