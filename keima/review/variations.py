"""A game's positions searched: their values averaged over a tree, the candidate moves, and the variations behind them.

Positions of one game do not depend on one another, so many are searched side by side and share batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keima.errors import BadRequest
from keima.games.game import GAMES
from keima.games.position import Position
from keima.plain import Data
from keima.review.games import numbers
from keima.search import MoveInfo, SearchResult, search_batch

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator

CANDIDATES = 10
"""How many of the moves searched a position keeps, at most."""
VARIATION_LENGTH = 24
"""Most moves of a variation."""
SIDE_BY_SIDE = 32
"""Most positions searched together."""
VISITS_TOGETHER = 1 << 18
"""Most visits in the trees searched together; it bounds their memory."""
LEAST_VISITS = 2
"""Of one visit all goes to the position itself and none to a move."""


def check_search(options: Data) -> None:
    """Check `visits`, `deeper` and `preset` of a review's options before anything is opened. Raises BadRequest."""
    from keima.systems.presets import find_preset

    if 0 < options["visits"] < LEAST_VISITS:
        raise BadRequest(f"visits: 0 for the network alone, or at least {LEAST_VISITS}")
    if options.get("deeper") and options["deeper"] <= options["visits"]:
        raise BadRequest(f"deeper: more visits than the {options['visits']} of every position")
    find_preset(options["preset"], "", {})


def together(visits: int) -> int:
    """How many positions are searched side by side."""
    return max(1, min(SIDE_BY_SIDE, VISITS_TOGETHER // visits))


def search_positions(
    positions: Sequence[Position], evaluator: Evaluator, options: Data, visits: int
) -> list[SearchResult | None]:
    """Search those positions that are not over, by the report's `options`; None for one that is.

    Raises UnsupportedPosition, or BadRequest for an unknown preset.
    """
    alive = [position for position in positions if not position.is_over]
    wanted = {name: options[name] for name in ("preset", "seed")}
    results = iter(search_batch(evaluator, alive, visits, **wanted) if alive else ())
    return [None if position.is_over else next(results) for position in positions]


def searched_numbers(position: Position, result: SearchResult) -> Data:
    """What a search adds to, and puts in place of, the network's numbers in an entry of `positions`."""
    entry = {**numbers(result), "visits": result.visits}
    entry["candidates"] = [_candidate(position, info) for info in result.moves[:CANDIDATES]]
    return entry


def _candidate(position: Position, info: MoveInfo) -> Data:
    variation = list(info.pv[:VARIATION_LENGTH])
    written = GAMES[position.game].drawing.written(position, variation)
    candidate = {"move": info.move, "visits": info.visits, "prior": round(info.prior, 5), **numbers(info)}
    more = {"pv": variation, "mate": info.mate, "pv_san": written}
    return candidate | {name: fact for name, fact in more.items() if fact is not None}


def after_best(result: SearchResult, to_play: str) -> Data | None:
    """The search's word, averaged over its tree, on the position after its best move, for `to_play`, to move there."""
    if not result.moves:
        return None
    best = numbers(result.moves[0])
    judged = {"win": best["loss"], "draw": best["draw"], "loss": best["win"], "value": -best["value"]}
    return {"to_play": to_play, **judged} | ({"lead": -best["lead"]} if "lead" in best else {})


def against_search(position: Position, played: str, result: SearchResult) -> Data:
    """The played move among the moves searched: its visits, its place, and the move the search would have played."""
    if not result.moves:
        return {}
    info, best = result.move(played), result.moves[0]
    facts: Data = {
        "visits": info.visits if info else 0,
        "place": 1 + (info.order if info else len(result.moves)),
        "best": best.move,
        "best_prior": round(float(result.policy.get(best.move, best.prior)), 5),
        "best_visits": best.visits,
    }
    written = GAMES[position.game].drawing.written(position, [best.move])
    if written:
        facts["best_san"] = written[0]
    return facts
