"""A game's positions searched: their values averaged over a tree, the candidate moves, and the variations behind them.

Positions of one game do not depend on one another, so many are searched side by side and share batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from keima.errors import BadRequest
from keima.games.game import GAMES
from keima.games.position import Position
from keima.review.numbers import Json, numbers
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


def check_search(options: Json) -> None:
    """Check `visits` and `preset` of a review's options before anything is opened.

    Raises:
        BadRequest: one visit, which no move would get; or a preset that is not known.
    """
    from keima.systems.presets import find_preset

    if 0 < options["visits"] < LEAST_VISITS:
        raise BadRequest(f"visits: 0 for the network alone, or at least {LEAST_VISITS}")
    find_preset(options["preset"], "", {})


def search_positions(
    positions: Sequence[Position],
    evaluator: Evaluator,
    options: Json,
    on_progress: Callable[[int], None] | None = None,
) -> list[SearchResult | None]:
    """Search every position that is not over; None for one that is.

    Args:
        positions: of one game.
        evaluator: `keima.Evaluator`.
        options: the report's, with visits, preset and seed.
        on_progress: told how many further positions are done.

    Raises:
        UnsupportedPosition: the network cannot take a position.
        BadRequest: an unknown preset.
    """
    results: list[SearchResult | None] = [None] * len(positions)
    alive = [ply for ply, position in enumerate(positions) if not position.is_over]
    if on_progress and len(alive) < len(positions):
        on_progress(len(positions) - len(alive))
    step = max(1, min(SIDE_BY_SIDE, VISITS_TOGETHER // options["visits"]))
    for first in range(0, len(alive), step):
        plies = alive[first : first + step]
        found = search_batch(
            evaluator,
            [positions[ply] for ply in plies],
            visits=options["visits"],
            preset=options["preset"],
            seed=options["seed"],
        )
        for ply, result in zip(plies, found, strict=True):
            results[ply] = result
        if on_progress:
            on_progress(len(plies))
    return results


def searched_numbers(position: Position, result: SearchResult) -> Json:
    """What a search adds to, and puts in place of, the network's numbers in an entry of `positions`."""
    entry = {**numbers(result), "visits": result.visits}
    entry["candidates"] = [_candidate(position, info) for info in result.moves[:CANDIDATES]]
    return entry


def _candidate(position: Position, info: MoveInfo) -> Json:
    variation = list(info.pv[:VARIATION_LENGTH])
    candidate: Json = {
        "move": info.move,
        "visits": info.visits,
        "prior": round(info.prior, 5),
        **numbers(info),
        "pv": variation,
    }
    if info.mate is not None:
        candidate["mate"] = info.mate
    written = GAMES[position.game].drawing.written(position, variation)
    if written is not None:
        candidate["pv_san"] = written
    return candidate


def after_best(result: SearchResult, to_play: str) -> Json | None:
    """The search's word on the position after its best move, for `to_play`, the side to move there; None without moves.

    It is averaged over that move's part of the tree.
    """
    if not result.moves:
        return None
    best = result.moves[0]
    judged = {"win": best.loss, "draw": best.draw, "loss": best.win, "value": -best.value}
    if best.lead is not None:
        judged["lead"] = -best.lead
    return {"to_play": to_play, **{name: round(float(number), 5) for name, number in judged.items()}}


def against_search(position: Position, played: str, result: SearchResult) -> Json:
    """The played move among the moves searched: its visits, its place, and the move the search would have played."""
    if not result.moves:
        return {}
    info, best = result.move(played), result.moves[0]
    facts: Json = {
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
