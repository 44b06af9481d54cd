"""A search whose findings one can write down beforehand, for tests of engines that print them.

It visits the first three legal moves of the board's own order: half of the visits, a quarter, one. Their values for the
side to move are 0.5, 0.25 and 0; leads 5, 2.5 and 0; variations go on with the first legal answer. A limit of a million
visits or more, or none, is reached by `stop` alone.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import numpy as np

from keima.errors import UnsupportedPosition
from keima.inference.evaluation import Evaluation
from keima.search.limits import Limits
from keima.search.report import MoveInfo, SearchResult
from keima.systems.presets import PRESETS

ENDLESS = 1_000_000


class ScriptedEvaluator:
    """Every legal move is as likely; the side to move owns all points by half; profiles add to the value."""

    def __init__(self, system: str = "katago") -> None:
        inputs = ("planes",) if system == "lc0" else ("planes", "globals")
        outputs = ("policy", "value") if system == "lc0" else ("policy", "value", "score", "ownership")
        self.network = SimpleNamespace(system=system, input_names=inputs, output_names=outputs)
        options = () if system == "lc0" else ("profile", "policy_optimism")
        self.encoding = SimpleNamespace(game="chess" if system == "lc0" else "go", options=options)
        self.bound: dict[str, Any] = {}
        self.batch_size = 8
        self.asked: list[tuple[list[Any], dict[str, Any]]] = []

    def bind(self, **options: Any) -> ScriptedEvaluator:
        bound = copy.copy(self)
        bound.bound = {**self.bound, **options}
        return bound

    def __call__(self, positions: Any) -> list[Evaluation]:
        self.asked.append((list(positions), self.bound))
        return [self._one(position, self.bound.get("profile")) for position in positions]

    def _one(self, position: Any, profile: str | None) -> Evaluation:
        legal = position.legal()
        policy = {move: 1 / len(legal) for move in legal}
        value = 0.75 if profile else 0.25
        ownership = np.full((position.ysize, position.xsize), 0.5, np.float32)
        extra = {
            "score_mean": 4.0,
            "score_stdev": 8.0,
            "variance_time": 30.0,
            "shortterm_winloss_error": 0.5,
            "shortterm_score_error": 1.5,
        }
        return Evaluation(policy, policy, 0.6, 0.05, 0.35, value, 3.0, ownership, extra=extra)


class ScriptedSearch:
    """See this file's head. `journal` receives (position, options) of every run, shared among searches."""

    def __init__(self, evaluator: ScriptedEvaluator, journal: list[Any] | None = None, **overrides: float) -> None:
        self.evaluator = evaluator
        self.parameters = PRESETS["lc0" if evaluator.network.system == "lc0" else "katago"]
        self.overrides = overrides
        self.journal = journal if journal is not None else []
        self.running = threading.Event()
        self.cleared = 0
        self._position: Any = None
        self._stop = threading.Event()

    def set_position(self, position: Any) -> None:
        if position.game != self.evaluator.encoding.game:
            raise UnsupportedPosition(f"not a position of {self.evaluator.encoding.game}")
        self._position = position
        self._stop.clear()

    def stop(self) -> None:
        self._stop.set()

    def clear(self) -> None:
        self.cleared += 1

    def choose(self, temperature: float) -> str:
        assert temperature > 0
        return str(self._position.legal()[1])

    def run(
        self,
        limits: Limits,
        *,
        on_update: Callable[[SearchResult], None] | None = None,
        update_seconds: float = 1.0,
        allow_moves: Collection[str] | None = None,
        ownership: bool = False,
    ) -> SearchResult:
        options = {"limits": limits, "allow": allow_moves, "ownership": ownership}
        self.journal.append((self._position, {**options, **self.overrides}))
        self.running.set()
        visits, stopped_by = limits.visits or ENDLESS, "visits"
        if visits >= ENDLESS and limits.seconds is None and limits.clock is None:
            visits, stopped_by = 8, "stopped"
            while not self._stop.wait(min(update_seconds, 0.01)):
                if on_update is not None:
                    on_update(self.found(visits, "running", allow_moves, ownership))
                visits *= 2
        elif visits >= ENDLESS:
            visits, stopped_by = 8, "seconds"
        self.running.clear()
        return self.found(visits, stopped_by, allow_moves, ownership)

    def found(self, visits: int, by: str, allow: Collection[str] | None = None, owned: bool = False) -> SearchResult:
        position = self._position
        legal = position.legal()
        moves = [move for move in legal if allow is None or move in allow][:3]
        shares = (max(visits // 2, 1), max(visits // 4, 1), 1)
        infos = tuple(self._info(move, order, shares[order], len(legal)) for order, move in enumerate(moves))
        points = np.full((position.ysize, position.xsize), 0.25, np.float32) if owned else None
        policy = {move: 1 / len(legal) for move in legal}
        go = {} if self._is_chess else {"lead": 4.0, "score_stdev": 10.0, "raw_lead": 3.0, "ownership": points}
        chess = {"moves_left": 60.0} if self._is_chess else {}
        best = infos[0].move if infos else ""
        common = {"policy": policy, "raw_value": 0.25, "seconds": 0.5, "evaluations": visits, "stopped_by": by}
        depth = {"depth": math.log2(visits), "max_depth": 9}
        return SearchResult(position, best, infos, visits, 0.5, 0.7, 0.1, 0.2, 0.4, **common, **depth, **go, **chess)

    @property
    def _is_chess(self) -> bool:
        return self.evaluator.network.system == "lc0"

    def _info(self, move: str, order: int, visits: int, legal: int) -> MoveInfo:
        value = (0.5, 0.25, 0.0)[order]
        after = self._position.play(move)
        pv = (move, *after.legal()[:1])
        lcb = value - 0.28 if visits > 1 else -math.inf
        draw = 0.2
        win = (1 - draw + value) / 2
        go = {} if self._is_chess else {"lead": 10 * value, "score_stdev": 12.0}
        chess = {"moves_left": 58.4, "mate": 1 if not after.legal() else None} if self._is_chess else {}
        prior = 1 / legal
        return MoveInfo(move, order, visits, prior, value, win, draw, win - value, value, lcb, pv=pv, **go, **chess)
