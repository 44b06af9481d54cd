"""What engines report from inside a search tree, beyond its result: final scores, visits along variations, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from keima.search.report import PV_LENGTH
from keima.search.tree import COLUMNS, SCORE_MEAN, VISITS, describe, principal_variation

if TYPE_CHECKING:
    from keima.search.memory import Tree
    from keima.search.search import Search


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
    tree = _tree_of(search)
    if tree is None or search.position is None:
        return None
    nodes, root = tree.nodes, tree.roots[0]
    side = int(nodes["side"][0])
    row, codes = np.zeros(COLUMNS), np.empty(PV_LENGTH, np.int16)
    describe(nodes, 0, row)
    score = float(row[SCORE_MEAN])
    scores: dict[str, float] = {}
    pv_visits: dict[str, tuple[int, ...]] = {}
    for e in range(int(root["count"])):
        child = int(root["child"][e])
        if child < 0:
            continue
        describe(nodes, child, row)
        if row[VISITS] > 0:
            name = search.move_name(int(root["move"][e]), side)
            scores[name] = -float(row[SCORE_MEAN])
            length = principal_variation(nodes, child, codes)
            pv_visits[name] = _visits_along(tree, child, codes[:length].tolist())
    return Inside(score, scores, pv_visits)


@dataclass(frozen=True)
class Usage:
    """How much a search has done and taken.

    Attributes:
        descents: visits made in its last run, those kept from before not included.
        filled: share of the memory the tree may take, 0 to 1.
    """

    descents: int
    filled: float


def look_at_usage(search: Search) -> Usage | None:
    """The usage of a search; None where it has no tree."""
    tree = _tree_of(search)
    if tree is None:
        return None
    return Usage(int(tree.heads[0]["descents"]), min(1.0, tree.bytes / tree.memory))


def _tree_of(search: Search) -> Tree | None:
    """The `keima.search.memory.Tree` of a search; None for what has none."""
    return getattr(search, "tree", None)


def _visits_along(tree: Tree, node: int, codes: list[int]) -> tuple[int, ...]:
    """Visits of a node, and of those its moves lead to one after another."""
    visits = [int(tree.nodes["visits"][node])]
    for code in codes:
        node = tree.child(node, code)
        visits.append(int(tree.nodes["visits"][node]))
    return tuple(visits)
