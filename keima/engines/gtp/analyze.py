"""`lz-analyze`, `kata-analyze` and their kin: their arguments read, and what a search found in their words.

The formats are Leela Zero's (`src/UCTSearch.cpp`, `src/GTP.cpp`) and KataGo's (`docs/GTP_Extensions.md`,
`cpp/command/gtp.cpp`). Win rates, leads and ownership are for the **side the analysis is for**, KataGo's
`reportAnalysisWinratesAs = SIDETOMOVE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from keima.engines.gtp.words import Refusal, read_bool, read_colour, read_int, read_number
from keima.engines.tree_view import Inside
from keima.games.go import Position
from keima.games.go.vertices import loc_to_vertex, vertex_to_loc
from keima.plain import Data
from keima.search.report import MoveInfo, SearchResult
from keima.systems.parameters import Parameters

SHORTEST_INTERVAL = 0.02
"""Seconds between two reports, however short an interval is asked for."""
_LONGEST = 2.0**31

KATA_FLAGS = {
    "rootInfo": "root_info",
    "ownership": "ownership",
    "movesOwnership": "moves_ownership",
    "pvVisits": "pv_visits",
    "pvEdgeVisits": "pv_edge_visits",
    "noResultValue": "no_result",
}


@dataclass(frozen=True)
class Analysis:
    """What an analysis was asked to show.

    Attributes:
        style: "lz" (ten-thousandths), "kata" (fractions), or "sabaki" (fractions, always with a decimal point).
        colour: "B" or "W", whom it is for.
        interval: seconds between two reports, None for none.
        least_moves: show so many moves, unvisited ones if need be.
        most_moves: show no more.
        avoid: moves of `colour` not to search.
        allow: the only moves of `colour` to search, None for all.
        root_info, ownership, moves_ownership, pv_visits, pv_edge_visits, no_result: further fields, KataGo's.
    """

    style: str
    colour: str
    interval: float | None = None
    least_moves: int = 0
    most_moves: int = 10_000_000
    avoid: frozenset[str] = frozenset()
    allow: frozenset[str] | None = None
    root_info: bool = False
    ownership: bool = False
    moves_ownership: bool = False
    pv_visits: bool = False
    pv_edge_visits: bool = False
    no_result: bool = False


def read_analysis(style: str, words: list[str], position: Position) -> Analysis:
    """Read `[colour] [interval] [key value ...]`.

    Args:
        style: see `Analysis`.
        words: the command's arguments.
        position: the game's.

    Raises:
        Refusal: a key or value that is none; a vertex off the board; no legal move left to search.
    """
    return _Reader(style, words, position).read()


@dataclass
class _Reader:
    """Reads the arguments one by one."""

    style: str
    words: list[str]
    position: Position
    restrictions: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def read(self) -> Analysis:
        words = self.words = list(self.words)
        asked = Analysis(self.style, self.position.to_play)
        if words and words[0].lower() in ("b", "w", "black", "white"):
            asked = replace(asked, colour=read_colour(words.pop(0)))
        if words and words[0][0] in "+-.0123456789":
            asked = replace(asked, interval=self._interval(words.pop(0)))
        while words:
            key = words.pop(0)
            if not words:
                raise Refusal(f"{key!r} needs a value")
            asked = self._field(asked, key, words.pop(0))
        avoid = self.restrictions.get(("avoid", asked.colour), set())
        allow = self.restrictions.get(("allow", asked.colour))
        asked = replace(asked, avoid=frozenset(avoid), allow=None if allow is None else frozenset(allow))
        self._check_moves_left(asked)
        return asked

    def _field(self, asked: Analysis, key: str, value: str) -> Analysis:
        if key == "interval":
            return replace(asked, interval=self._interval(value))
        if key in ("avoid", "allow"):
            self._restrict(key, value)
            return asked
        if key == "minmoves":
            return replace(asked, least_moves=read_int(value, key, 0, 10**9))
        if key == "maxmoves":
            return replace(asked, most_moves=read_int(value, key, 0, 10**9))
        if self.style != "lz" and key in KATA_FLAGS:
            flags: Data = {KATA_FLAGS[key]: read_bool(value, key)}
            return replace(asked, **flags)
        known = ["interval", "minmoves", "maxmoves", "avoid", "allow", *(KATA_FLAGS if self.style != "lz" else ())]
        raise Refusal(f"unknown key {key!r}; known are {', '.join(known)}")

    def _interval(self, word: str) -> float | None:
        return max(read_number(word, "interval", 0.0, _LONGEST) / 100, SHORTEST_INTERVAL)

    def _restrict(self, key: str, colour_word: str) -> None:
        """Read `COLOUR VERTEX,VERTEX,... UNTIL_DEPTH`."""
        if len(self.words) < 2:
            raise Refusal(f"{key} takes a colour, vertices parted by commas, and a depth")
        colour, size = read_colour(colour_word), (self.position.xsize, self.position.ysize)
        vertices = [word for word in self.words.pop(0).split(",") if word]
        read_int(self.words.pop(0), f"{key}'s depth", 1, 10**9)
        if ("allow", colour) in self.restrictions or (key == "allow" and ("avoid", colour) in self.restrictions):
            raise Refusal("allow can be given once for a colour, and not together with avoid")
        named = {loc_to_vertex(vertex_to_loc(vertex, *size), *size) for vertex in vertices}
        self.restrictions.setdefault((key, colour), set()).update(named)

    def _check_moves_left(self, asked: Analysis) -> None:
        if not asked.avoid and asked.allow is None:
            return
        legal = set(self.position.with_to_play(asked.colour).legal())
        if not (legal if asked.allow is None else legal & asked.allow) - asked.avoid:
            raise Refusal("avoid and allow leave no legal move to search")


class Reporter:
    """Turns results of one search into the lines of an analysis.

    Args:
        asked: what to show.
        parameters: of the search.
        raw: further numbers of the network for the root, KataGo's names; for `rootInfo`.
        moves_ownership: ownership after each of the root's moves, [ysize, xsize], +1 = `asked.colour` owns the point.
    """

    def __init__(
        self,
        asked: Analysis,
        parameters: Parameters,
        raw: dict[str, float] | None = None,
        moves_ownership: Callable[[str], NDArray[np.floating] | None] | None = None,
    ) -> None:
        self._asked = asked
        self._widest = 1 + parameters.utility.static_score + parameters.utility.dynamic_score
        self._raw = raw or {}
        self._inside: Inside | None = None
        self._moves_ownership = moves_ownership

    def line(self, result: SearchResult, inside: Inside | None) -> str:
        """One line, without its end; "" as long as there is no move to tell of.

        Args:
            result: of the search.
            inside: what its tree tells beside; None: final scores are the lead, and visits along variations unknown.
        """
        asked = self._asked
        self._inside = inside
        moves = self._moves(result)
        if not moves:
            return ""
        tell = self._leela_zero if asked.style == "lz" else self._katago
        parts = [tell(info) for info in moves]
        if asked.root_info:
            parts.append(self._root(result))
        if asked.ownership and result.ownership is not None:
            parts.append("ownership " + self._points(result.ownership))
        return " ".join(parts)

    def _moves(self, result: SearchResult) -> list[MoveInfo]:
        """The moves to show, best first; then unvisited ones, likeliest first, if more are asked for."""
        asked, moves = self._asked, list(result.moves)
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
        fields: dict[str, float | int] = {
            "visits": info.visits,
            "winrate": round(_winrate(info.value) * 10000),
            "prior": round(info.prior * 10000),
            "lcb": round(self._winrate_bound(info) * 10000),
            "order": info.order,
        }
        return f"info move {info.move} {_pairs(fields)} pv {' '.join(info.pv)}"

    def _katago(self, info: MoveInfo) -> str:
        fields: dict[str, float | int] = {"visits": info.visits, "edgeVisits": info.visits, "utility": info.utility}
        fields["winrate"] = _winrate(info.value)
        inside = self._inside
        fields |= _score_fields(info.lead, info.score_stdev, inside.scores.get(info.move) if inside else None)
        if self._asked.no_result:
            fields["noResultValue"] = info.draw
        fields |= {"prior": info.prior, "lcb": self._winrate_bound(info), "utilityLcb": self._bound(info)}
        fields |= {"weight": float(info.visits), "order": info.order}
        text = f"info move {info.move} {self._pairs(fields)} pv {' '.join(info.pv)}"
        if inside is not None:
            along = " ".join(map(str, inside.pv_visits.get(info.move, (0,))))
            text += f" pvVisits {along}" if self._asked.pv_visits else ""
            text += f" pvEdgeVisits {along}" if self._asked.pv_edge_visits else ""
        if self._asked.moves_ownership and self._moves_ownership is not None:
            points = self._moves_ownership(info.move)
            if points is not None:
                text += " movesOwnership " + self._points(points)
        return text

    def _root(self, result: SearchResult) -> str:
        fields: dict[str, float | int] = {"visits": result.visits, "utility": result.utility}
        fields["winrate"] = _winrate(result.value)
        fields |= _score_fields(result.lead, result.score_stdev, self._inside.score if self._inside else None)
        fields |= {"weight": float(result.visits), **self._raw}
        return "rootInfo " + self._pairs(fields)

    def _bound(self, info: MoveInfo) -> float:
        """The utility's lower confidence bound; below two visits KataGo's "anything may be"."""
        return info.lcb if math.isfinite(info.lcb) else -2 * self._widest

    def _winrate_bound(self, info: MoveInfo) -> float:
        """The same as a win rate: its radius scaled by the share of winning in the utility (KataGo `playutils.cpp`)."""
        radius = info.utility - info.lcb if math.isfinite(info.lcb) else 2 * self._widest
        return _winrate(info.value) - radius / self._widest / 2

    def _pairs(self, fields: dict[str, float | int]) -> str:
        return _pairs(fields, always_point=self._asked.style == "sabaki")

    def _points(self, points: NDArray[np.floating]) -> str:
        return " ".join(_number(float(value), self._asked.style == "sabaki") for value in points.ravel())


def _unvisited(move: str, prior: float, order: int, result: SearchResult) -> MoveInfo:
    """A move without visits: the root's own numbers stand for it."""
    return MoveInfo(
        move,
        order,
        0,
        prior,
        result.value,
        result.win,
        result.draw,
        result.loss,
        result.utility,
        -math.inf,
        lead=result.lead,
        score_stdev=result.score_stdev,
        pv=(move,),
    )


def _score_fields(lead: float | None, stdev: float | None, score: float | None) -> dict[str, float | int]:
    """KataGo's four names for points; none for networks that know no points."""
    if lead is None:
        return {}
    selfplay = lead if score is None else score
    return {"scoreMean": lead, "scoreStdev": stdev or 0.0, "scoreLead": lead, "scoreSelfplay": selfplay}


def _winrate(value: float) -> float:
    """From win − loss to [0, 1]; a draw is half a win."""
    return (value + 1) / 2


def _pairs(fields: dict[str, float | int], always_point: bool = False) -> str:
    return " ".join(f"{name} {_number(value, always_point)}" for name, value in fields.items())


def _number(value: float | int, always_point: bool) -> str:
    """Six significant digits, as C++ streams print them."""
    if isinstance(value, int):
        return str(value)
    return f"{value:#g}" if always_point else f"{value:g}"
