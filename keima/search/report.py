"""From a tree to a `SearchResult`: the moves in order, their averages and variations, the move to play."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keima.games.position import Position
from keima.jit import Records
from keima.plain import Data
from keima.search.gumbel import score_root
from keima.search.puct import exploration
from keima.search.tree import OPEN, RootAnswer, Tree, principal_variation
from keima.systems.parameters import Choice

PV_LENGTH = 40
"""Most moves of a principal variation."""


@dataclass(frozen=True)
class MoveInfo:
    """One move at the root. Every value is for the **side to move at the root**; None is what the network lacks."""

    move: str  # GTP vertex or "pass", or UCI
    order: int  # 0 for the best move, then 1, 2, ...
    visits: int
    prior: float  # the policy's probability P, after root temperature and noise
    value: float  # Q = win − loss in [−1, 1]
    win: float  # probabilities; in Go `draw` is "no result"
    draw: float
    loss: float
    utility: float  # what the search maximised: value plus whatever the preset adds (score, moves left)
    lcb: float  # lower confidence bound of `utility`; −inf below two visits
    lead: float | None = None  # points ahead (Go networks with a score head)
    score_stdev: float | None = None  # standard deviation of the final score in points
    moves_left: float | None = None  # plies to the end (chess networks with such a head)
    pv: tuple[str, ...] = ()  # the principal variation, beginning with this move
    mate: int | None = None  # proven: plies to a forced win, minus those to a loss, 0 for a draw; None: nothing proven


@dataclass(frozen=True)
class SearchResult:
    """The root of a search. Every value is for the **side to move at the root**, averaged over the tree (`MoveInfo` has
    the units); value, win, draw and loss are the proven result where there is one.
    """

    position: Position
    best: str  # the move to play by the preset's rule (visits, or KataGo's LCB)
    moves: tuple[MoveInfo, ...]  # every visited move, best first
    visits: int
    value: float
    win: float
    draw: float
    loss: float
    utility: float
    lead: float | None = None
    score_stdev: float | None = None
    moves_left: float | None = None
    ownership: NDArray[np.float32] | None = None  # [ysize, xsize], +1 = the root's side owns it; None unless asked for
    policy: dict[str, float] = field(default_factory=dict)  # the network's, before noise and temperature
    raw_value: float = 0.0  # the network's own answer for the root
    raw_lead: float | None = None
    seconds: float = 0.0  # wall-clock time of this search
    evaluations: int = 0  # positions the network evaluated in it
    depth: float = 0.0  # average and greatest length of the paths searched
    max_depth: int = 0
    stopped_by: str = "running"  # "visits", "seconds", "clock", "early", "stopped", "solved", "memory" or "running"

    def __repr__(self) -> str:
        lead = f", lead={self.lead:.2f}" if self.lead is not None else ""
        line = " ".join(self.principal_variation[:6])
        numbers = f"visits={self.visits}, value={self.value:.3f}{lead}"
        return f"<SearchResult best={self.best!r}, {numbers}, {len(self.moves)} moves, pv: {line}>"

    @property
    def principal_variation(self) -> tuple[str, ...]:
        """The best move and the expected answers to it."""
        return self.moves[0].pv if self.moves else ()

    def move(self, name: str) -> MoveInfo | None:
        """The root move of that name, if it was visited."""
        return next((info for info in self.moves if info.move == name), None)


def mean(nodes: Records, name: str) -> NDArray[np.float64]:
    """The mean over the visits of what NODE records sum up under a name, for their own sides to move."""
    average: NDArray[np.float64] = nodes[name] / np.maximum(nodes["visits"], 1)
    return average


class RootTable:
    """The k visited and allowed moves of a root, with everything the choice needs."""

    def __init__(self, tree: Tree) -> None:
        root = tree.roots[0]
        children = np.where(root["allowed"] == 1, root["child"], -1)[: int(root["count"])]
        opened = np.flatnonzero(children >= 0)
        self.edges = opened[tree.nodes["visits"][children[opened]] > 0]  # their places in the ROOT record
        self.nodes = tree.nodes[children[self.edges]]  # NODE [k], whose numbers are for the side to move **there**
        self.lcb, self.radius = self._bounds(tree)
        self.value = self._values(tree)  # float64 [k], what the final choice is made by
        self.order: list[int] = np.argsort(-self.value, kind="stable").tolist()  # the move to play first

    def _bounds(self, tree: Tree) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower confidence bounds of the utility, float64 [k] for the side to move at the root, and their radii.

        KataGo `cpp/search/searchhelpers.cpp`, `getSelfUtilityLCBAndRadius`, with the weight for its sample's size.
        """
        p = tree.parameters
        widest = 1 + p.utility.static_score + p.utility.dynamic_score
        n = np.maximum(self.nodes["weight"], 1e-6)
        utility = mean(self.nodes, "utility")
        prior = 1.0 / (n * n)
        square = np.maximum(mean(self.nodes, "utility_sq"), utility * utility + 1e-8)
        square = (square * n + (square + widest * widest) * prior) / (n + prior)
        sample = (n + prior) ** 2 / (n + prior * prior)
        radius = p.final_choice.lcb_stdevs * np.sqrt(np.maximum(square - utility * utility, 0.0) / sample)
        return -utility - radius, radius

    def _values(self, tree: Tree) -> NDArray[np.float64]:
        """What each move is chosen by, higher is better."""
        rule, nodes = tree.parameters.final_choice.choice, self.nodes
        fine = (1 - mean(nodes, "utility") / 4) / 4 + nodes["prior"].astype(np.float64) * 1e-3
        values: NDArray[np.float64] = nodes["visits"] + fine
        if rule == Choice.LCB and len(nodes):
            values = self._values_by_bound(tree) + fine * 1e-3
        elif rule == Choice.GUMBEL:
            root = tree.roots[0]
            scores = score_root(tree.nodes, root, tree.record[0])[self.edges]
            better = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
            values = nodes["visits"] - root["base"][self.edges] + better / max(1, len(scores))
        if tree.parameters.solver.solve or rule in (Choice.PROVEN, Choice.GUMBEL):
            values = np.where(nodes["upper"] == -1, 1e12 - nodes["plies"], values)
            values = np.where(nodes["lower"] == 1, -1e12 + nodes["plies"], values)
        return values

    def _values_by_bound(self, tree: Tree) -> NDArray[np.float64]:
        """KataGo's play-selection values (`cpp/search/searchresults.cpp`, `getPlaySelectionValues`).

        Visits that exploration in hindsight would not have spent are taken off; then the best bound among the moves
        with enough visits is lifted as if it had been searched as widely as the others.
        """
        weights, visits, prior = self.nodes["weight"], self.nodes["visits"], self.nodes["prior"].astype(np.float64)
        stable = int(np.argmax(weights * np.maximum(visits - 1, 0) / np.maximum(visits, 1) + 2 * prior))
        scale = exploration(tree.nodes[0], tree.record[0])
        q = -mean(self.nodes, "utility")
        gap = q[stable] + scale * prior[stable] / (1 + weights[stable]) - q
        wanted = np.where(gap > 0, np.maximum(scale * prior / np.maximum(gap, 1e-12) - 1, 0), np.inf)
        values: NDArray[np.float64] = np.ceil(np.minimum(weights, wanted))
        values[stable] = weights[stable]
        eligible = (values > 0) & (values >= tree.parameters.final_choice.lcb_min_visits * weights[stable])
        best = int(np.argmax(np.where(eligible, self.lcb, -np.inf)))
        excess = self.lcb[best] - self.lcb
        factor = (self.radius + excess) / (self.radius + 0.2 * excess)
        rivals = np.where(excess >= 0, factor * factor * values, 0.0)
        rivals[best] = 0.0
        values[best] = max(values[best], float(rivals.max()) + 1e-3)
        return values


def lines_within(tree: Tree, count: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """The moves from the root to so many of the positions the tree has evaluated, drawn by lot; the root is none."""
    nodes = tree.nodes[: int(tree.heads["nodes"][0])]
    there = np.flatnonzero(nodes["state"] == OPEN)
    return [_line(tree, k) for k in rng.permutation(there[there > 0])[:count].tolist()]


def _line(tree: Tree, k: int) -> tuple[str, ...]:
    """The moves from the root to a node."""
    moves: list[str] = []
    while k:
        up = int(tree.nodes["parent"][k])
        moves.append(tree.name(int(tree.nodes["move"][k]), int(tree.nodes["side"][up])))
        k = up
    return tuple(reversed(moves))


def choose(tree: Tree, temperature: float, rng: np.random.Generator) -> str:
    """The move to play: the best, or drawn with probability ∝ N^(1/temperature); "" where there is none.

    Under a rule with more than visits (bounds, proofs) the choice's own values take the visits' place.
    """
    table = RootTable(tree)
    if not len(table.edges):
        return _best_by_policy(tree)
    k = table.order[0]
    values = np.clip(table.value, 0.0, 1e9)
    if temperature > 0 and values.max() > 0:
        weights = np.exp((np.log(np.maximum(values, 1e-9)) - math.log(values.max())) / temperature)
        k = int(rng.choice(len(weights), p=weights / weights.sum()))
    return tree.name(int(tree.roots[0]["move"][table.edges[k]]), tree.side)


def _best_by_policy(tree: Tree) -> str:
    """The likeliest allowed move of a root whose moves have no visits; "" where there is none."""
    root = tree.roots[0]
    odds = root["prior"][: int(root["count"])]
    if tree.parameters.final_choice.choice == Choice.GUMBEL:
        odds = score_root(tree.nodes, root, tree.record[0])
    allowed = np.flatnonzero(root["allowed"][: len(odds)])
    return tree.name(int(root["move"][allowed[np.argmax(odds[allowed])]]), tree.side) if len(allowed) else ""


def _averages(nodes: Records, answer: RootAnswer, sign: int) -> list[Data]:
    """Fields of a result for each node: the root (`sign` 1), or moves for the side that made them (−1)."""
    value, draw = sign * mean(nodes, "value"), mean(nodes, "draw")
    if sign == 1:
        lower, solved = nodes["lower"], nodes["lower"] == nodes["upper"]
        value, draw = np.where(solved, lower, value), np.where(solved, lower == 0, draw)
    fields = {"value": value, "win": (1 - draw + value) / 2, "draw": draw, "loss": (1 - draw - value) / 2}
    fields["utility"] = sign * mean(nodes, "utility")
    if answer.lead is not None:
        variance = [
            square - score**2 for square, score in zip(mean(nodes, "score_sq"), mean(nodes, "score"), strict=True)
        ]
        fields["lead"], fields["score_stdev"] = sign * mean(nodes, "lead"), np.sqrt(np.maximum(variance, 0.0))
    if answer.has_moves_left:
        fields["moves_left"] = mean(nodes, "moves_left") + (sign < 0)
    rows = zip(*(column.tolist() for column in fields.values()), strict=True)
    return [dict(zip(fields, row, strict=True)) for row in rows]


def _move_infos(tree: Tree, answer: RootAnswer, most: int | None) -> tuple[MoveInfo, ...]:
    """The visited moves, best first."""
    table, root, side = RootTable(tree), tree.roots[0], tree.side
    averages = _averages(table.nodes, answer, -1)
    codes = np.empty(PV_LENGTH, np.int16)
    infos = []
    for order, k in enumerate(table.order[:most]):
        node, e = table.nodes[k], int(table.edges[k])
        length = principal_variation(tree.nodes, int(root["child"][e]), codes)
        mover, pv = side, []
        for code in (int(root["move"][e]), *codes[:length].tolist()):
            pv.append(tree.name(code, mover))
            mover = tree.kernels.other(mover)
        infos.append(
            MoveInfo(
                move=pv[0],
                order=order,
                visits=int(node["visits"]),
                prior=float(root["prior"][e]),
                lcb=float(table.lcb[k]) if node["visits"] >= 2 else -math.inf,
                pv=tuple(pv),
                mate=_mate(int(node["lower"]), int(node["upper"]), int(node["plies"])),
                **averages[k],
            )
        )
    return tuple(infos)


def _mate(lower: int, upper: int, plies: int) -> int | None:
    """The proven result of a move: plies to the win or (negative) loss of the side that makes it, 0 a draw."""
    return -lower * (plies + 1) if lower == upper else None


def make_result(tree: Tree, seconds: float, stopped_by: str, most: int | None = None) -> SearchResult:
    """The tree as it stands; with `most`, so many of its moves, the best ones."""
    answer, head, visits = tree.answer, tree.heads[0], tree.visits
    if answer is None:
        return SearchResult(tree.position, "", (), visits, 0.0, 0.0, 0.0, 0.0, 0.0, stopped_by=stopped_by)
    moves = _move_infos(tree, answer, most)
    return SearchResult(
        position=tree.position,
        best=moves[0].move if moves else _best_by_policy(tree),
        moves=moves,
        visits=visits,
        ownership=tree.ownership.mean if tree.ownership else None,
        policy=dict(answer.policy),
        raw_value=answer.value,
        raw_lead=answer.lead,
        seconds=seconds,
        evaluations=int(head["evaluations"]),
        depth=float(head["depths"]) / max(int(head["descents"]), 1),
        max_depth=int(head["max_depth"]),
        stopped_by=stopped_by,
        **_averages(tree.nodes[:1], answer, 1)[0],
    )
