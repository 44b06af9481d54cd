"""`lz-analyze`, `kata-analyze` and their kin: their arguments read, and what a search found in their words.

The formats are Leela Zero's (`src/UCTSearch.cpp`, `src/GTP.cpp`) and KataGo's (`docs/GTP_Extensions.md`,
`cpp/command/gtp.cpp`). Win rates, leads and ownership are for the **side the analysis is for**, KataGo's
`reportAnalysisWinratesAs = SIDETOMOVE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keima.engines.gtp.words import Refusal, read_bool, read_colour, read_int, read_number
from keima.engines.tree_view import Inside, lower_bounds
from keima.games.go import Position
from keima.games.go.vertices import loc_to_vertex, vertex_to_loc
from keima.plain import Data
from keima.search.report import MoveInfo, SearchResult
from keima.systems.parameters import Parameters

SHORTEST_INTERVAL = 0.02
"""Seconds between two reports, however short an interval is asked for."""
_LONGEST = 2.0**31
_COUNTS = {"minmoves": "least_moves", "maxmoves": "most_moves"}
KATA_FLAGS = ("rootInfo", "ownership", "movesOwnership", "pvVisits", "pvEdgeVisits", "noResultValue")


@dataclass(frozen=True)
class Analysis:
    """What an analysis was asked to show.

    Attributes:
        style: "lz" (ten-thousandths), "kata" (fractions), or "sabaki" (fractions, always with a decimal point).
        colour: "B" or "W", whom it is for.
        interval: seconds between two reports, None for none.
        least_moves, most_moves: show so many moves, unvisited ones if need be; and no more.
        avoid, allow: moves of `colour` not to search, or the only ones to search (None: all).
        fields: further ones, of `KATA_FLAGS`.
    """

    style: str
    colour: str
    interval: float | None = None
    least_moves: int = 0
    most_moves: int = 10_000_000
    avoid: frozenset[str] = frozenset()
    allow: frozenset[str] | None = None
    fields: frozenset[str] = frozenset()


_Restrictions = dict[tuple[str, str], frozenset[str]]
"""Vertices by "avoid" or "allow" and colour."""


def read_analysis(style: str, words: list[str], position: Position) -> Analysis:
    """Read `[colour] [interval] [key value ...]`; for `style` see `Analysis`. Raises Refusal: what it cannot be."""
    words, colour, numbers, restrictions = list(words), position.to_play, Data(), _Restrictions()
    flags = dict.fromkeys(() if style == "lz" else KATA_FLAGS, False)
    if words and words[0].lower() in ("b", "w", "black", "white"):
        colour = read_colour(words.pop(0))
    if words and words[0][0] in "+-.0123456789":
        words.insert(0, "interval")
    while words:
        key = words.pop(0)
        if not words:
            raise Refusal(f"{key!r} needs a value")
        value = words.pop(0)
        if key == "interval":
            numbers[key] = max(read_number(value, key, 0.0, _LONGEST) / 100, SHORTEST_INTERVAL)
        elif key in ("avoid", "allow"):
            _restrict(restrictions, key, value, words, position)
        elif key in _COUNTS:
            numbers[_COUNTS[key]] = read_int(value, key, 0, 10**9)
        elif key in flags:
            flags[key] = read_bool(value, key)
        else:
            known = ["interval", *_COUNTS, "avoid", "allow", *flags]
            raise Refusal(f"unknown key {key!r}; known are {', '.join(known)}")
    avoid, allow = restrictions.get(("avoid", colour), frozenset()), restrictions.get(("allow", colour))
    if avoid or allow is not None:
        legal = set(position.with_to_play(colour).legal())
        if not (legal if allow is None else legal & allow) - avoid:
            raise Refusal("avoid and allow leave no legal move to search")
    fields = frozenset(key for key, asked in flags.items() if asked)
    return Analysis(style, colour, avoid=avoid, allow=allow, fields=fields, **numbers)


def _restrict(restrictions: _Restrictions, key: str, colour_word: str, words: list[str], position: Position) -> None:
    """Read `COLOUR VERTEX,VERTEX,... UNTIL_DEPTH`; all but the colour are taken from `words`."""
    if len(words) < 2:
        raise Refusal(f"{key} takes a colour, vertices parted by commas, and a depth")
    colour, size = read_colour(colour_word), (position.xsize, position.ysize)
    vertices = [word for word in words.pop(0).split(",") if word]
    read_int(words.pop(0), f"{key}'s depth", 1, 10**9)
    if ("allow", colour) in restrictions or (key == "allow" and ("avoid", colour) in restrictions):
        raise Refusal("allow can be given once for a colour, and not together with avoid")
    named = {loc_to_vertex(vertex_to_loc(vertex, *size), *size) for vertex in vertices}
    restrictions[key, colour] = restrictions.get((key, colour), frozenset()) | named


@dataclass(frozen=True)
class Reporter:
    """Turns results of one search into the lines of an analysis.

    For `rootInfo` it takes `raw` numbers of the network by KataGo's names, for `movesOwnership` the ownership after
    each of the root's moves, [ysize, xsize], +1 = `asked.colour` owns the point.
    """

    asked: Analysis
    parameters: Parameters
    raw: Mapping[str, float]
    moves_ownership: Callable[[str], NDArray[np.floating] | None]

    def line(self, result: SearchResult, inside: Inside | None) -> str:
        """One line, without its end; "" as long as there is no move to tell of.

        Without what is `inside` its tree, final scores are the lead, and visits along variations unknown.
        """
        asked = self.asked
        moves = self._moves(result)
        if not moves:
            return ""
        parts = [self._leela_zero(info) if asked.style == "lz" else self._katago(info, inside) for info in moves]
        if "rootInfo" in asked.fields:
            parts.append(self._root(result, inside))
        if "ownership" in asked.fields and result.ownership is not None:
            parts.append("ownership " + self._points(result.ownership))
        return " ".join(parts)

    def _moves(self, result: SearchResult) -> list[MoveInfo]:
        """The moves to show, best first; then unvisited ones, likeliest first, if more are asked for."""
        asked, moves = self.asked, list(result.moves)
        if len(moves) < asked.least_moves:
            seen = {info.move for info in moves} | asked.avoid
            others = sorted(result.policy.items(), key=lambda pair: -pair[1])
            for move, prior in others:
                if len(moves) >= asked.least_moves:
                    break
                if move not in seen and (asked.allow is None or move in asked.allow):
                    moves.append(_unvisited(move, prior, len(moves), result))
        return moves[: asked.most_moves]

    def _leela_zero(self, info: MoveInfo) -> str:
        fields = {
            "visits": info.visits,
            "winrate": round(_winrate(info.value) * 10000),
            "prior": round(info.prior * 10000),
            "lcb": round(lower_bounds(info, self.parameters)[0] * 10000),
            "order": info.order,
        }
        return f"info move {info.move} {self._pairs(fields)} pv {' '.join(info.pv)}"

    def _katago(self, info: MoveInfo, inside: Inside | None) -> str:
        lcb, utility_lcb = lower_bounds(info, self.parameters)
        fields = {"visits": info.visits, "edgeVisits": info.visits, "utility": info.utility}
        fields["winrate"] = _winrate(info.value)
        fields |= _score_fields(info.lead, info.score_stdev, inside.scores.get(info.move) if inside else None)
        if "noResultValue" in self.asked.fields:
            fields["noResultValue"] = info.draw
        fields |= {"prior": info.prior, "lcb": lcb, "utilityLcb": utility_lcb}
        fields |= {"weight": float(info.visits), "order": info.order}
        text = f"info move {info.move} {self._pairs(fields)} pv {' '.join(info.pv)}"
        if inside is not None:
            along = " ".join(map(str, inside.pv_visits.get(info.move, (0,))))
            text += "".join(f" {name} {along}" for name in ("pvVisits", "pvEdgeVisits") if name in self.asked.fields)
        if "movesOwnership" in self.asked.fields and (points := self.moves_ownership(info.move)) is not None:
            text += " movesOwnership " + self._points(points)
        return text

    def _root(self, result: SearchResult, inside: Inside | None) -> str:
        fields = {"visits": result.visits, "utility": result.utility, "winrate": _winrate(result.value)}
        fields |= _score_fields(result.lead, result.score_stdev, inside.score if inside else None)
        return "rootInfo " + self._pairs({**fields, "weight": float(result.visits), **self.raw})

    def _pairs(self, fields: Mapping[str, float]) -> str:
        return " ".join(f"{name} {self._number(value)}" for name, value in fields.items())

    def _points(self, points: NDArray[np.floating]) -> str:
        return " ".join(map(self._number, points.ravel().tolist()))

    def _number(self, value: float) -> str:
        """Six significant digits, as C++ streams print them."""
        if isinstance(value, int):
            return str(value)
        return f"{value:#g}" if self.asked.style == "sabaki" else f"{value:g}"


def _unvisited(move: str, prior: float, order: int, result: SearchResult) -> MoveInfo:
    """A move without visits: the root's own numbers stand for it."""
    chances = (result.value, result.win, result.draw, result.loss, result.utility)
    return MoveInfo(move, order, 0, prior, *chances, -math.inf, result.lead, result.score_stdev, pv=(move,))


def _score_fields(lead: float | None, stdev: float | None, score: float | None) -> dict[str, float]:
    """KataGo's four names for points; none for networks that know no points."""
    if lead is None:
        return {}
    selfplay = lead if score is None else score
    return {"scoreMean": lead, "scoreStdev": stdev or 0.0, "scoreLead": lead, "scoreSelfplay": selfplay}


def _winrate(value: float) -> float:
    """From win − loss to [0, 1]; a draw is half a win."""
    return (value + 1) / 2
