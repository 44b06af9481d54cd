"""ENTRY of docs/web.md: what a search or a network alone says of a position, as `positions` of a review have it."""

from __future__ import annotations

from keima.games.position import Position
from keima.inference.evaluation import Evaluation
from keima.plain import Data
from keima.review.entries import names_of, ownership_entry, policy_entry, side_of
from keima.review.games import numbers
from keima.review.variations import CANDIDATES, VARIATION_LENGTH
from keima.search.report import MoveInfo, SearchResult

WRITTEN = 8
"""Moves of a variation that are written as people write them."""


def of_search(result: SearchResult) -> Data:
    """What a search has found."""
    position = result.position
    raw: Data = {"value": round(float(result.raw_value), 5)}
    if result.raw_lead is not None:
        raw["lead"] = round(float(result.raw_lead), 5)
    entry = {**numbers(result), "visits": result.visits, **policy_entry(position, result.policy), "raw": raw}
    entry["candidates"] = [_candidate(position, info) for info in result.moves[:CANDIDATES]]
    entry |= {"depth": round(result.depth, 2), "evaluations": result.evaluations}
    return entry | ownership_entry(result.ownership)


def of_network(position: Position, evaluation: Evaluation) -> Data:
    """What the network alone says."""
    return {
        **numbers(evaluation),
        "visits": 0,
        **policy_entry(position, evaluation.policy),
        **ownership_entry(evaluation.ownership),
    }


def judgement(position: Position, result: SearchResult) -> Data:
    """`judged` of a node."""
    found = numbers(result)
    found.pop("moves_left", None)
    return {**found, "visits": result.visits, "to_play": side_of(position)}


def _candidate(position: Position, info: MoveInfo) -> Data:
    """As a searched review has it; of its variation the first moves as people write them."""
    found: Data = {"move": info.move, "visits": info.visits, "prior": round(info.prior, 5), **numbers(info)}
    found["pv"] = list(info.pv[:VARIATION_LENGTH])
    if info.mate is not None:
        found["mate"] = info.mate
    written = names_of(position, info.pv[: WRITTEN if info.order < 3 else 1])
    return found if written is None else {**found, "pv_san": written}
