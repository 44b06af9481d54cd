"""ENTRY of docs/web.md: what a search or a network alone says of a position, as `positions` of a review have it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from keima.games.game import GAMES
from keima.games.position import Position
from keima.inference.evaluation import Evaluation
from keima.plain import Data
from keima.review.games import numbers
from keima.review.variations import CANDIDATES, VARIATION_LENGTH
from keima.search.report import MoveInfo, SearchResult

TOP_MOVES = 20
WRITTEN = 8
"""Moves whose names are written as people write them."""


def of_search(result: SearchResult) -> Data:
    """What a search has found."""
    position = result.position
    raw: Data = {"value": round(float(result.raw_value), 5)}
    if result.raw_lead is not None:
        raw["lead"] = round(float(result.raw_lead), 5)
    entry = {**numbers(result), "visits": result.visits, **_policy(position, result.policy), "raw": raw}
    entry["candidates"] = [_candidate(position, info) for info in result.moves[:CANDIDATES]]
    entry |= {"depth": round(result.depth, 2), "evaluations": result.evaluations}
    return entry | _ownership(result.ownership)


def of_network(position: Position, evaluation: Evaluation) -> Data:
    """What the network alone says."""
    return {
        **numbers(evaluation),
        "visits": 0,
        **_policy(position, evaluation.policy),
        **_ownership(evaluation.ownership),
    }


def judgement(position: Position, result: SearchResult) -> Data:
    """`judged` of a node."""
    found = numbers(result)
    found.pop("moves_left", None)
    return {**found, "visits": result.visits, "to_play": GAMES[position.game].side(position.to_play)}


def _candidate(position: Position, info: MoveInfo) -> Data:
    """As a searched review has it; of its variation the first moves as people write them."""
    found: Data = {"move": info.move, "visits": info.visits, "prior": round(info.prior, 5), **numbers(info)}
    found["pv"] = list(info.pv[:VARIATION_LENGTH])
    if info.mate is not None:
        found["mate"] = info.mate
    written = _written(position, info.pv[: WRITTEN if info.order < 3 else 1])
    return found if written is None else {**found, "pv_san": written}


@lru_cache(maxsize=4096)
def _written(position: Position, moves: tuple[str, ...]) -> list[str] | None:
    """Kept, since a search reports the same variations many times."""
    return GAMES[position.game].drawing.written(position, moves)


def _policy(position: Position, policy: Mapping[str, float]) -> Data:
    ranked = sorted(policy.items(), key=lambda item: -item[1])[:TOP_MOVES]
    found: Data = {"policy": {move: round(float(p), 5) for move, p in ranked if p >= 0.0005 or move == ranked[0][0]}}
    if _written(position, ()) is not None:
        names = {move: _written(position, (move,)) for move in list(found["policy"])[:WRITTEN]}
        found["san"] = {move: name[0] for move, name in names.items() if name}
    return found


def _ownership(ownership: NDArray[np.float32] | None) -> Data:
    if ownership is None:
        return {}
    return {"ownership": np.round(ownership.astype(np.float64), 2).tolist()}
