"""What engines report from inside a search tree, beyond its result: final scores, visits along variations, memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from keima.search.report import PV_LENGTH, MoveInfo, mean
from keima.search.search import Search
from keima.search.tree import Tree, principal_variation
from keima.systems.parameters import Parameters


@dataclass(frozen=True)
class Inside:
    """A tree's numbers that a `SearchResult` leaves out.

    Attributes:
        score: mean final score of the root, points for its side to move.
        scores: the same after each visited move, likewise for the root's side to move.
        pv_visits: by move, the visits of each position along its variation, as long as `MoveInfo.pv`.
    """

    score: float
    scores: dict[str, float]
    pv_visits: dict[str, tuple[int, ...]]


def look_inside(search: Search) -> Inside | None:
    """The numbers of a search that is not running, or from its own `on_update`; None where it has no tree."""
    tree = getattr(search, "tree", None)
    if tree is None or search.position is None:
        return None
    nodes, root = tree.nodes, tree.roots[0]
    side = int(nodes["side"][0])
    codes = np.empty(PV_LENGTH, np.int16)
    score = float(mean(nodes[:1], "score")[0])
    scores: dict[str, float] = {}
    pv_visits: dict[str, tuple[int, ...]] = {}
    for e in range(int(root["count"])):
        child = int(root["child"][e])
        if child < 0:
            continue
        if nodes["visits"][child] > 0:
            name = search.move_name(int(root["move"][e]), side)
            scores[name] = -float(mean(nodes[child : child + 1], "score")[0])
            length = principal_variation(nodes, child, codes)
            pv_visits[name] = _visits_along(tree, child, codes[:length].tolist())
    return Inside(score, scores, pv_visits)


def lower_bounds(info: MoveInfo, parameters: Parameters) -> tuple[float, float]:
    """Lower confidence bounds for the side to move: of the win rate, in [0, 1] and beyond, and of the utility.

    The win rate's radius is the utility's, scaled by what winning counts in it (KataGo v1.17.2
    `cpp/program/playutils.cpp`, `getHackedLCBForWinrate`); below two visits it is twice the whole range.
    """
    widest = 1 + parameters.utility.static_score + parameters.utility.dynamic_score
    bound = info.lcb if math.isfinite(info.lcb) else -2 * widest
    radius = info.utility - info.lcb if math.isfinite(info.lcb) else 2 * widest
    return 0.5 * (1 + info.value) - 0.5 * radius / widest, bound


@dataclass(frozen=True)
class Usage:
    """How many visits a search's last run made, and which share of the memory it may take its tree has `filled`."""

    descents: int
    filled: float


def look_at_usage(search: Search) -> Usage | None:
    """The usage of a search; None where it has no tree."""
    tree = getattr(search, "tree", None)
    return None if tree is None else Usage(int(tree.heads[0]["descents"]), min(1.0, tree.bytes / tree.memory))


def _visits_along(tree: Tree, node: int, codes: list[int]) -> tuple[int, ...]:
    """Visits of a node, and of those its moves lead to one after another."""
    return tuple(int(tree.nodes["visits"][one]) for one in accumulate(codes, tree.child, initial=node))
