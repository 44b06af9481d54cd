"""From a tree to a `SearchResult`: the moves in order, their averages and variations, the move to play."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keima.games.position import Position
from keima.search.memory import Tree
from keima.search.puct import exploration
from keima.search.tree import (
    COLUMNS,
    DRAW_MEAN,
    LEAD_MEAN,
    LEFT_MEAN,
    LOWER,
    PLIES,
    PRIOR,
    SCORE_MEAN,
    SCORE_SQ_MEAN,
    UPPER,
    UTILITY_MEAN,
    UTILITY_SQ,
    VALUE_MEAN,
    VISITS,
    WEIGHT,
    describe,
    principal_variation,
)
from keima.systems.parameters import Choice, Parameters


@dataclass(frozen=True)
class MoveInfo:
    """One move at the root. Every value is for the **side to move at the root**.

    Attributes:
        move: GTP vertex or "pass", or UCI.
        order: 0 for the best move, then 1, 2, ...
        visits: visits of the move.
        prior: the policy's probability P, after root temperature and noise.
        value: Q = win − loss in [−1, 1].
        win, draw, loss: probabilities (Go: draw is "no result").
        utility: what the search maximised: value plus whatever the preset adds (score, moves left).
        lcb: lower confidence bound of `utility`; −inf below two visits.
        lead: points ahead (Go networks with a score head), else None.
        score_stdev: standard deviation of the final score in points, else None.
        moves_left: plies to the end (chess networks with such a head), else None.
        pv: the principal variation, beginning with this move.
        mate: solved result: plies to a forced win (positive) or loss (negative), 0 for a solved draw, else None.
    """

    move: str
    order: int
    visits: int
    prior: float
    value: float
    win: float
    draw: float
    loss: float
    utility: float
    lcb: float
    lead: float | None = None
    score_stdev: float | None = None
    moves_left: float | None = None
    pv: tuple[str, ...] = ()
    mate: int | None = None


@dataclass(frozen=True)
class SearchResult:
    """The root of a search. Every value is for the **side to move at the root**.

    Attributes:
        position: the root.
        best: the move to play by the preset's rule (visits, or KataGo's LCB).
        moves: every visited move, best first.
        visits: of the root.
        value, win, draw, loss, utility, lead, score_stdev, moves_left: of the root, averaged over the tree; value, win,
            draw and loss are the proven result where there is one.
        ownership: float32 [ysize, xsize] averaged over the tree, +1 = the root's side to move owns it; None unless
            asked for and the network has it.
        policy: the network's own probability of every legal move at the root, before noise and temperature.
        raw_value, raw_lead: the network's own answer for the root.
        seconds: wall-clock time of this search.
        evaluations: positions the network evaluated in it.
        depth, max_depth: average and greatest length of the paths searched.
        stopped_by: "visits", "seconds", "clock", "early", "stopped", "solved", "memory" or "running".
    """

    position: Position
    best: str
    moves: tuple[MoveInfo, ...]
    visits: int
    value: float
    win: float
    draw: float
    loss: float
    utility: float
    lead: float | None = None
    score_stdev: float | None = None
    moves_left: float | None = None
    ownership: NDArray[np.float32] | None = None
    policy: dict[str, float] = field(default_factory=dict)
    raw_value: float = 0.0
    raw_lead: float | None = None
    seconds: float = 0.0
    evaluations: int = 0
    depth: float = 0.0
    max_depth: int = 0
    stopped_by: str = "running"

    @property
    def principal_variation(self) -> tuple[str, ...]:
        """The best move and the expected answers to it."""
        return self.moves[0].pv if self.moves else ()

    def move(self, name: str) -> MoveInfo | None:
        """The root move of that name, if it was visited."""
        return next((info for info in self.moves if info.move == name), None)


if TYPE_CHECKING:
    from keima.search.batches import RootedTree

PV_LENGTH = 40
"""Most moves of a principal variation."""


@dataclass
class RootAnswer:
    """The network's own answer for the root.

    Attributes:
        policy: probability of each legal move by name.
        value: win − loss for the side to move.
        lead: points, or None.
        has_score: whether the network knows points.
        has_moves_left: whether it knows the game's length.
    """

    policy: dict[str, float]
    value: float
    lead: float | None
    has_score: bool
    has_moves_left: bool


@dataclass
class Ownership:
    """Ownership summed over the positions evaluated, +1 = the root's side to move."""

    total: NDArray[np.float64] | None = None
    count: int = 0

    def add(self, points: NDArray[np.float32], sign: float) -> None:
        """Add one position's ownership [ysize, xsize] with the sign of its side to move."""
        if self.total is None:
            self.total = np.zeros(points.shape, np.float64)
        self.total += sign * points
        self.count += 1

    @property
    def mean(self) -> NDArray[np.float32] | None:
        """The average, float32 [ysize, xsize]; None where nothing was added."""
        return None if self.total is None else (self.total / self.count).astype(np.float32)


@dataclass
class RootTable:
    """The visited moves of a root.

    Attributes:
        edges: int64 [k], their places in the ROOT record.
        rows: float64 [k, COLUMNS], `describe` of each child, for the side to move **there**.
        lcb: float64 [k], lower confidence bound of the utility, for the side to move at the root.
        radius: float64 [k], by how much it lies below the mean.
        value: float64 [k], what the final choice is made by; the order of the moves.
    """

    edges: NDArray[np.int64]
    rows: NDArray[np.float64]
    lcb: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    radius: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    value: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def order(self) -> list[int]:
        """Rows, the move to play first."""
        order: list[int] = np.argsort(-self.value, kind="stable").tolist()
        return order


def root_table(tree: Tree) -> RootTable:
    """The root's visited and allowed moves with everything the choice needs."""
    root = tree.roots[0]
    count = int(root["count"])
    children, allowed = root["child"][:count], root["allowed"][:count]
    opened = np.flatnonzero((children >= 0) & (allowed == 1))
    rows = np.zeros((len(opened), COLUMNS))
    for k, e in enumerate(opened.tolist()):
        describe(tree.nodes, int(children[e]), rows[k])
    visited = rows[:, VISITS] > 0
    table = RootTable(opened[visited], rows[visited])
    table.lcb, table.radius = lower_bounds(table.rows, tree.parameters)
    table.value = _choice_values(tree, table)
    return table


def lower_bounds(rows: NDArray[np.float64], p: Parameters) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(lower confidence bounds for the side to move at the root, radii), float64 [k].

    KataGo `cpp/search/searchhelpers.cpp`, `getSelfUtilityLCBAndRadius`, with the weight for its sample's size.
    """
    widest = 1 + p.utility.static_score + p.utility.dynamic_score
    n = np.maximum(rows[:, WEIGHT], 1e-6)
    mean = rows[:, UTILITY_MEAN]
    prior = 1.0 / (n * n)
    square = np.maximum(rows[:, UTILITY_SQ], mean * mean + 1e-8)
    square = (square * n + (square + widest * widest) * prior) / (n + prior)
    sample = (n + prior) ** 2 / (n + prior * prior)
    radius = p.final_choice.lcb_stdevs * np.sqrt(np.maximum(square - mean * mean, 0.0) / sample)
    return -mean - radius, radius


def _choice_values(tree: Tree, table: RootTable) -> NDArray[np.float64]:
    """What each visited move is chosen by, higher is better."""
    rule, rows = tree.parameters.final_choice.choice, table.rows
    visits = rows[:, VISITS]
    fine = (1 - rows[:, UTILITY_MEAN] / 4) / 4 + rows[:, PRIOR] * 1e-3
    if not len(rows):
        return visits
    if rule == Choice.LCB:
        return _values_by_bound(tree, table) + fine * 1e-3
    values = visits + fine
    if rule == Choice.PROVEN:
        won, lost = rows[:, UPPER] == -1, rows[:, LOWER] == 1
        values = np.where(won, 1e12 - rows[:, PLIES], values)
        values = np.where(lost, -1e12 + rows[:, PLIES], values)
    return values


def _values_by_bound(tree: Tree, table: RootTable) -> NDArray[np.float64]:
    """KataGo's play-selection values (`cpp/search/searchresults.cpp`, `getPlaySelectionValues`).

    Visits that exploration in hindsight would not have spent are taken off; then the best bound among the moves with
    enough visits is lifted as if it had been searched as widely as the others.
    """
    p, rows = tree.parameters, table.rows
    visits, prior = rows[:, WEIGHT], rows[:, PRIOR]
    stable = int(np.argmax(visits * np.maximum(rows[:, VISITS] - 1, 0) / np.maximum(rows[:, VISITS], 1) + 2 * prior))
    scale = exploration(tree.nodes[0], tree.record[0])
    q = -rows[:, UTILITY_MEAN]
    target = q[stable] + scale * prior[stable] / (1 + visits[stable])
    gap = target - q
    wanted = np.where(gap > 0, np.maximum(scale * prior / np.maximum(gap, 1e-12) - 1, 0), np.inf)
    values = np.ceil(np.minimum(visits, wanted))
    values[stable] = visits[stable]
    eligible = (values > 0) & (values >= p.final_choice.lcb_min_visits * visits[stable])
    best = int(np.argmax(np.where(eligible, table.lcb, -np.inf)))
    excess = table.lcb[best] - table.lcb
    factor = (table.radius + excess) / (table.radius + 0.2 * excess)
    rivals = np.where(excess >= 0, factor * factor * values, 0.0)
    rivals[best] = 0.0
    values[best] = max(values[best], float(rivals.max()) + 1e-3)
    return values


def choose_edge(table: RootTable, temperature: float, rng: np.random.Generator) -> int:
    """The place in `table` of the move to play: the best, or drawn with probability ∝ N^(1/temperature).

    Under a rule with more than visits (bounds, proofs) the choice's own values take the visits' place.
    """
    if temperature <= 0:
        return table.order[0]
    values = np.clip(table.value, 0.0, 1e9)
    if values.max() <= 0:
        return table.order[0]
    weights = np.exp((np.log(np.maximum(values, 1e-9)) - math.log(values.max())) / temperature)
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def move_infos(rooted: RootedTree, table: RootTable, answer: RootAnswer) -> tuple[MoveInfo, ...]:
    """The visited moves, best first."""
    infos = []
    tree = rooted.tree
    side = int(tree.nodes["side"][0])
    root = tree.roots[0]
    codes = np.empty(PV_LENGTH, np.int16)
    for order, k in enumerate(table.order):
        row, e = table.rows[k], int(table.edges[k])
        child = int(root["child"][e])
        move = rooted.name(int(root["move"][e]), side)
        length = principal_variation(tree.nodes, child, codes)
        names, mover = [], side
        for code in codes[:length].tolist():
            mover = rooted.other(mover)
            names.append(rooted.name(code, mover))
        value, draw = -row[VALUE_MEAN], row[DRAW_MEAN]
        infos.append(
            MoveInfo(
                move=move,
                order=order,
                visits=int(row[VISITS]),
                prior=float(root["prior"][e]),
                value=float(value),
                win=float((1 - draw + value) / 2),
                draw=float(draw),
                loss=float((1 - draw - value) / 2),
                utility=float(-row[UTILITY_MEAN]),
                lcb=float(table.lcb[k]) if row[VISITS] >= 2 else -math.inf,
                lead=float(-row[LEAD_MEAN]) if answer.has_score else None,
                score_stdev=_stdev(row) if answer.has_score else None,
                moves_left=float(row[LEFT_MEAN] + 1) if answer.has_moves_left else None,
                pv=(move, *names),
                mate=_mate(row),
            )
        )
    return tuple(infos)


def _stdev(row: NDArray[np.float64]) -> float:
    return math.sqrt(max(0.0, float(row[SCORE_SQ_MEAN] - row[SCORE_MEAN] ** 2)))


def _mate(row: NDArray[np.float64]) -> int | None:
    """The proven result of a move: plies to the win or (negative) loss of the side that makes it, 0 a draw."""
    if row[LOWER] != row[UPPER]:
        return None
    if row[UPPER] == -1:
        return int(row[PLIES]) + 1
    return -(int(row[PLIES]) + 1) if row[LOWER] == 1 else 0


def make_result(rooted: RootedTree, answer: RootAnswer | None, seconds: float, stopped_by: str) -> SearchResult:
    """The tree as it stands."""
    tree, ownership = rooted.tree, rooted.ownership
    if answer is None:
        return SearchResult(rooted.position, "", (), tree.visits, 0.0, 0.0, 0.0, 0.0, 0.0, stopped_by=stopped_by)
    table = root_table(tree)
    moves = move_infos(rooted, table, answer)
    row = np.zeros(COLUMNS)
    describe(tree.nodes, 0, row)
    head = tree.heads[0]
    value, draw = float(row[VALUE_MEAN]), float(row[DRAW_MEAN])
    if tree.solved:
        value, draw = float(row[LOWER]), float(row[LOWER] == 0)
    return SearchResult(
        position=rooted.position,
        best=moves[0].move if moves else best_by_policy(rooted),
        moves=moves,
        visits=int(row[VISITS]),
        value=value,
        win=(1 - draw + value) / 2,
        draw=draw,
        loss=(1 - draw - value) / 2,
        utility=float(row[UTILITY_MEAN]),
        lead=float(row[LEAD_MEAN]) if answer.has_score else None,
        score_stdev=_stdev(row) if answer.has_score else None,
        moves_left=float(row[LEFT_MEAN]) if answer.has_moves_left else None,
        ownership=ownership.mean if ownership else None,
        policy=dict(answer.policy),
        raw_value=answer.value,
        raw_lead=answer.lead,
        seconds=seconds,
        evaluations=int(head["evaluations"]),
        depth=float(head["depths"]) / max(int(head["descents"]), 1),
        max_depth=int(head["max_depth"]),
        stopped_by=stopped_by,
    )


def best_by_policy(rooted: RootedTree) -> str:
    """The likeliest allowed move of a root whose moves have no visits; "" where there is none."""
    root = rooted.tree.roots[0]
    for e in range(int(root["count"])):
        if root["allowed"][e]:
            return rooted.name(int(root["move"][e]), rooted.side)
    return ""
