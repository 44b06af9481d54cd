"""A network and a search whose answers are plain to see, and a controller that talks to an engine in the same process.

The fake network likes points near the middle best, gives every stone its own point with `sure` and leaves the rest
open; chains at `dead` are given to the other side. `value` and `lead` are for Black.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from keima.engines.gtp.commands import COMMANDS
from keima.engines.gtp.engine import Engine, Options
from keima.games.go import Position
from keima.games.go.vertices import vertex_to_xy, xy_to_vertex
from keima.inference.evaluation import Evaluation
from keima.search.limits import Limits
from keima.search.report import MoveInfo, SearchResult
from keima.systems.katago.inputs import KataGoEncoding
from keima.systems.network import Pedigree
from keima.systems.presets import PRESETS


class FakeNetwork:
    system = "katago"
    pedigree = Pedigree("middle", "middle.bin.gz", "KataGo model version 8")
    input_names = ("planes", "globals")

    def __init__(self) -> None:
        self.encoding = KataGoEncoding()


@cache
def weights_of(xsize: int, ysize: int) -> dict[str, float]:
    """Every move's weight on a board of that size: the farther from the middle the less, rows before columns."""
    weights = {"pass": 1e-3}
    for y, x in np.ndindex(ysize, xsize):
        away = abs(x - (xsize - 1) / 2) + 1.01 * abs(y - (ysize - 1) / 2)
        weights[xy_to_vertex(x, y, ysize)] = float(np.exp(-away))
    return weights


@dataclass
class FakeEvaluator:
    value: float = 0.2
    lead: float | None = 1.6
    sure: float | None = 0.9
    dead: Collection[str] = ()
    likes: dict[str, float] = field(default_factory=dict)
    network: Any = field(default_factory=FakeNetwork)
    bound: dict[str, Any] = field(default_factory=dict)
    batch_size: int = 1
    precision: str = "f32"
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def encoding(self) -> Any:
        return self.network.encoding

    def bind(self, **options: Any) -> FakeEvaluator:
        self.encoding.bind(**options)
        return replace(self, bound={**self.bound, **options})

    def __call__(self, positions: Any, symmetry: Any = 0) -> list[Evaluation]:
        self.asked.append({"symmetry": symmetry, **self.bound})
        return [self._one(position) for position in positions]

    def _one(self, position: Position) -> Evaluation:
        sign = 1 if position.to_play == "B" else -1
        usual = weights_of(position.xsize, position.ysize)
        weights = {vertex: self.likes.get(vertex, usual[vertex]) for vertex in position.legal()}
        total = sum(weights.values())
        value = sign * self.value
        return Evaluation(
            policy={vertex: weight / total for vertex, weight in weights.items()},
            logits=weights,
            win=(1 + value) / 2,
            draw=0.0,
            loss=(1 - value) / 2,
            value=value,
            lead=None if self.lead is None else sign * self.lead,
            ownership=None if self.sure is None else sign * self._for_black(position),
            extra={"score_mean": sign * 1.5, "score_stdev": 2.0},
        )

    def _for_black(self, position: Position) -> np.ndarray:
        assert self.sure is not None
        owned = np.where(position.stones == 1, self.sure, np.where(position.stones == 2, -self.sure, 0.0))
        for vertex in self.dead:
            x, y = vertex_to_xy(vertex, position.xsize, position.ysize) or (0, 0)
            owned[y, x] *= -1
        return owned.astype(np.float32)


class FakeSearch:
    """Visits the network's likeliest moves; without limits it goes on until it is stopped."""

    def __init__(self, evaluator: FakeEvaluator, patience: float = 30.0, **overrides: float) -> None:
        self.evaluator = evaluator
        self.parameters = PRESETS["katago"]
        self.patience = patience
        self.runs: list[tuple[Position, Limits, dict[str, Any]]] = []
        self.position: Any = None
        self.slow = False
        self._stop = threading.Event()

    def set_position(self, position: Position) -> None:
        self.evaluator.network.encoding.check(position)
        self.position = position
        self._stop.clear()

    def stop(self) -> None:
        self._stop.set()

    def clear(self) -> None:
        self.position = None

    def run(
        self,
        limits: Limits,
        *,
        on_update: Callable[[SearchResult], None] | None = None,
        update_seconds: float = 1.0,
        allow_moves: Collection[str] | None = None,
        avoid_moves: Collection[str] | None = None,
        ownership: bool = False,
    ) -> SearchResult:
        options = {"allow": allow_moves, "avoid": avoid_moves, "ownership": ownership}
        self.runs.append((self.position, limits, options))
        end = time.monotonic() + self.patience
        unlimited = limits.visits is None and limits.seconds is None and limits.clock is None
        visits = 10
        while (unlimited or self.slow) and time.monotonic() < end and not self._stop.wait(min(update_seconds, 0.01)):
            if on_update is not None:
                on_update(self._result(visits, allow_moves, avoid_moves, ownership))
            visits += 10
        return self._result(limits.visits or visits, allow_moves, avoid_moves, ownership)

    def result(self) -> SearchResult:
        return self._result(10, None, None, False)

    def _result(self, visits: int, allow: Any, avoid: Any, ownership: bool) -> SearchResult:
        seen = self.evaluator([self.position])[0]
        policy = {
            vertex: prior
            for vertex, prior in sorted(seen.policy.items(), key=lambda pair: -pair[1])
            if (allow is None or vertex in allow) and vertex not in (avoid or ())
        }
        assert seen.value is not None
        assert seen.win is not None
        assert seen.loss is not None
        common = {"value": seen.value, "win": seen.win, "draw": 0.0, "loss": seen.loss, "lead": seen.lead}
        stdev = None if seen.lead is None else 3.25
        moves = tuple(
            MoveInfo(
                vertex,
                order,
                visits >> (order + 1),
                prior,
                utility=seen.value,
                lcb=seen.value - 0.14,
                score_stdev=stdev,
                pv=(vertex, "pass"),
                **common,
            )
            for order, (vertex, prior) in enumerate(list(policy.items())[:3])
        )
        return SearchResult(
            self.position,
            moves[0].move,
            moves,
            visits,
            utility=seen.value,
            score_stdev=stdev,
            ownership=seen.ownership if ownership else None,
            policy=seen.policy,
            **common,
        )


class Controller:
    """An engine on a thread, its pipes, and a way to talk to it."""

    def __init__(self, evaluator: Any = None, options: Options | None = None, make_search: Any = None) -> None:
        self.evaluator = evaluator or FakeEvaluator()
        self.searches: list[Any] = []

        def make(evaluator: Any, overrides: Any) -> Any:
            build = make_search or FakeSearch
            self.searches.append(build(evaluator, **overrides))
            return self.searches[-1]

        self.engine = Engine(self.evaluator, make, options or Options(rules="tromp-taylor"), COMMANDS)
        to_engine, self._to = os.pipe()
        self._from, from_engine = os.pipe()
        self._input, self._output = os.fdopen(to_engine, "rb"), os.fdopen(from_engine, "wb")
        self._reply = os.fdopen(self._from, "r", encoding="utf-8")
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        self.engine.run(self._input, self._output)
        self._output.close()

    @property
    def search(self) -> Any:
        return self.engine.search

    def send(self, *lines: str) -> None:
        os.write(self._to, "".join(f"{line}\n" for line in lines).encode())

    def line(self) -> str:
        return self._reply.readline().rstrip("\n")

    def answer(self) -> list[str]:
        """The lines of the next answer, without the empty one."""
        lines = []
        while line := self._reply.readline():
            if line == "\n":
                return lines
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"the engine ended in the midst of an answer: {lines}")

    def ask(self, command: str) -> str:
        self.send(command)
        return "\n".join(self.answer())

    def close(self) -> None:
        os.close(self._to)
        self.thread.join(20)
        assert not self.thread.is_alive(), "the engine goes on after the end of its input"
        self._input.close()
        self._reply.close()

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
