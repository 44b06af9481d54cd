"""Answers of KataGo's JSON analysis protocol: a search's result as the fields documented there.

Sources: KataGo v1.17.2 `docs/Analysis_Engine.md`; `cpp/search/searchresults.cpp`, `getAnalysisJson`;
`cpp/program/playutils.cpp`, `getHackedLCBForWinrate`. What differs here stands in `docs/analysis.md`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.engines.analysis_query import Task
from keima.engines.analysis_settings import BLACK, WHITE
from keima.engines.tree_view import Inside
from keima.inference.evaluation import Evaluation
from keima.search.presets import Parameters
from keima.search.result import MoveInfo, SearchResult

Json = dict[str, Any]


@dataclass(frozen=True)
class Ownerships:
    """Ownership beyond a search's own average, each [ysize, xsize], +1 = the side to move at the root.

    Attributes:
        moves: after each move.
        moves_stdev: its standard deviation along the move's variation.
        root_stdev: the root's, over all variations.
    """

    moves: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    moves_stdev: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    root_stdev: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Findings:
    """Everything an answer is made of.

    Attributes:
        result: of the search.
        parameters: it searched with.
        inside: numbers from the tree, or None.
        raw: the network's answer for the root, or None.
        human: the human network's, or None.
        ownerships: of moves.
    """

    result: SearchResult
    parameters: Parameters
    inside: Inside | None = None
    raw: Evaluation | None = None
    human: Evaluation | None = None
    ownerships: Ownerships = Ownerships()


def no_results(task: Task) -> Json:
    """The answer for a task terminated before anything was searched."""
    return {"id": task.id, "isDuringSearch": False, "noResults": True, "turnNumber": task.turn}


def make_answer(task: Task, findings: Findings, during: bool) -> Json:
    """The answer for a task.

    Args:
        task: what was asked.
        findings: what was found.
        during: whether the search goes on.
    """
    result = with_outcome(task, findings.result)
    findings = replace(findings, result=result)
    sign = _sign(task)
    answer: Json = {
        "id": task.id,
        "isDuringSearch": during,
        "moveInfos": [_move_info(task, findings, info, sign) for info in result.moves],
        "rootInfo": _root_info(task, findings, sign),
        "turnNumber": task.turn,
    }
    if "includePolicy" in task.include:
        answer["policy"] = _policy(task, result.policy)
        if findings.human is not None:
            answer["humanPolicy"] = _policy(task, findings.human.policy)
    if "includeOwnership" in task.include and result.ownership is not None:
        answer["ownership"] = _points(sign * result.ownership)
    if "includeOwnershipStdev" in task.include and findings.ownerships.root_stdev is not None:
        answer["ownershipStdev"] = _points(findings.ownerships.root_stdev)
    return answer


def with_outcome(task: Task, result: SearchResult) -> SearchResult:
    """The result, with the value of the outcome where a chess game has ended."""
    outcome = task.position.outcome if task.game == "chess" else None
    if outcome is None:
        return result
    value = 0.0 if outcome.winner is None else (1.0 if outcome.winner == task.position.to_play else -1.0)
    win, draw, loss = float(value > 0), float(value == 0), float(value < 0)
    return replace(result, moves=(), value=value, win=win, draw=draw, loss=loss, utility=value, moves_left=0.0)


def _sign(task: Task) -> float:
    """1 where values are reported for the side to move, −1 where for the other."""
    perspective = task.settings.perspective
    if perspective is None:
        perspective = BLACK if task.game == "go" else WHITE
    return -1.0 if perspective and perspective != task.to_play else 1.0


def _move_info(task: Task, findings: Findings, info: MoveInfo, sign: float) -> Json:
    """One of `moveInfos`."""
    lcb, utility_lcb = _bounds(info, findings.parameters)
    most = max(other.visits for other in findings.result.moves)
    found: Json = {
        "move": info.move,
        "order": info.order,
        "visits": info.visits,
        "edgeVisits": info.visits,
        "weight": float(info.visits),
        "edgeWeight": float(info.visits),
        "playSelectionValue": float(most if info.order == 0 else info.visits),
        "winrate": _winrate(sign * info.value),
        "utility": _rounded(sign * info.utility),
        "lcb": _rounded(lcb if sign > 0 else 1 - lcb),
        "utilityLcb": _rounded(sign * utility_lcb),
        "prior": _rounded(info.prior),
        "pv": list(info.pv[: task.settings.pv_length + 1]),
    }
    inside = findings.inside
    if task.game == "chess":
        found |= _chess_values(info, sign)
    elif info.lead is not None:
        score = inside.scores.get(info.move, info.lead) if inside else info.lead
        found |= _scores(sign * info.lead, sign * score, info.score_stdev)
        found["scoreMean"] = found["scoreLead"]
    if findings.human is not None:
        found["humanPrior"] = _rounded(findings.human.policy.get(info.move, 0.0))
    if "includeNoResultValue" in task.include:
        found["noResultValue"] = _rounded(info.draw)
    if "includePVVisits" in task.include and inside is not None:
        visits = list(inside.pv_visits[info.move][: len(found["pv"])])
        found |= {"pvVisits": visits, "pvEdgeVisits": visits}
    if "includeMovesOwnership" in task.include and info.move in findings.ownerships.moves:
        found["ownership"] = _points(sign * findings.ownerships.moves[info.move])
    if "includeMovesOwnershipStdev" in task.include and info.move in findings.ownerships.moves_stdev:
        found["ownershipStdev"] = _points(findings.ownerships.moves_stdev[info.move])
    return found


def _bounds(info: MoveInfo, parameters: Parameters) -> tuple[float, float]:
    """Lower confidence bounds for the side to move: of the win rate, in [0, 1] and beyond, and of the utility.

    As in KataGo, the radius is the utility's, scaled by what winning counts in it. Moves of a single visit have a bound
    twice the whole range below.
    """
    widest = 1 + parameters.static_score + parameters.dynamic_score
    bound = info.lcb if math.isfinite(info.lcb) else -2 * widest
    radius = info.utility - info.lcb if math.isfinite(info.lcb) else 2 * widest
    return 0.5 * (1 + info.value) - 0.5 * radius / widest, bound


def _chess_values(info: MoveInfo | SearchResult, sign: float) -> Json:
    """What chess has in place of points: win, draw, loss; plies left; a forced mate."""
    win, loss = (info.win, info.loss) if sign > 0 else (info.loss, info.win)
    found: Json = {"wdl": [_rounded(win), _rounded(info.draw), _rounded(loss)]}
    if info.moves_left is not None:
        found["movesLeft"] = _rounded(info.moves_left)
    if isinstance(info, MoveInfo) and info.mate is not None:
        found["mate"] = int(sign * info.mate)
    return found


def _scores(lead: float, score: float, stdev: float | None) -> Json:
    found = {"scoreLead": _rounded(lead), "scoreSelfplay": _rounded(score)}
    return found if stdev is None else {**found, "scoreStdev": _rounded(stdev)}


def _root_info(task: Task, findings: Findings, sign: float) -> Json:
    """`rootInfo`."""
    result = findings.result
    found: Json = {
        "currentPlayer": task.to_play,
        "visits": result.visits,
        "weight": float(result.visits),
        "winrate": _winrate(sign * result.value),
        "utility": _rounded(sign * result.utility),
        "rawWinrate": _winrate(sign * result.raw_value),
        **_hashes(task),
    }
    if task.game == "chess":
        return found | _chess_values(result, sign)
    if result.lead is not None:
        score = findings.inside.score if findings.inside else result.lead
        found |= _scores(sign * result.lead, sign * score, result.score_stdev)
    if result.raw_lead is not None:
        found["rawLead"] = _rounded(sign * result.raw_lead)
    if findings.raw is not None:
        found |= _raw_numbers(findings.raw, sign)
    if findings.human is not None:
        found |= _human_numbers(findings.human, sign)
    return found


def _raw_numbers(raw: Evaluation, sign: float) -> Json:
    """What the network itself says of the root."""
    names = {
        "rawScoreSelfplayStdev": ("score_stdev", 1.0),
        "rawStWrError": ("shortterm_winloss_error", 0.5),
        "rawStScoreError": ("shortterm_score_error", 1.0),
        "rawVarTimeLeft": ("variance_time", 1.0),
    }
    found = {name: _rounded(raw.extra[key] * factor) for name, (key, factor) in names.items() if key in raw.extra}
    if raw.value is not None:
        found["rawWinrate"] = _winrate(sign * raw.value)
    if raw.lead is not None:
        found["rawLead"] = _rounded(sign * raw.lead)
    if raw.draw is not None:
        found["rawNoResultProb"] = _rounded(raw.draw)
    if "score_mean" in raw.extra:
        found["rawScoreSelfplay"] = _rounded(sign * raw.extra["score_mean"])
    return found


def _human_numbers(human: Evaluation, sign: float) -> Json:
    """What the human network says of the root."""
    names = {
        "humanScoreStdev": ("score_stdev", 1.0),
        "humanStWrError": ("shortterm_winloss_error", 0.5),
        "humanStScoreError": ("shortterm_score_error", 1.0),
    }
    found = {name: _rounded(human.extra[key] * factor) for name, (key, factor) in names.items() if key in human.extra}
    if human.value is not None:
        found["humanWinrate"] = _winrate(sign * human.value)
    if "score_mean" in human.extra:
        found["humanScoreMean"] = _rounded(sign * human.extra["score_mean"])
    return found


def _policy(task: Task, policy: Mapping[str, float]) -> list[float] | dict[str, float]:
    """Go: every point from the top left, row by row, then the pass, −1 where illegal. Chess: legal moves by name."""
    if task.game == "chess":
        return {move: _rounded(probability) for move, probability in policy.items()}
    from keima.games.go.vertices import xy_to_vertex

    xsize, ysize = task.position.xsize, task.position.ysize
    names = [xy_to_vertex(x, y, ysize) for y in range(ysize) for x in range(xsize)]
    return [_rounded(policy[name]) if name in policy else -1.0 for name in (*names, "pass")]


def _hashes(task: Task) -> Json:
    """Names of the position: stones, side to move and simple ko; `symHash` is the same for all its reflections."""
    if task.game == "chess":
        return {"thisHash": f"{task.position.key:016X}"}
    from keima.games.go.vertices import board_locs

    position = task.position
    points = np.array(position.stones, np.int8)
    points[board_locs(position.xsize, position.ysize) == int(position.board[0]["ko"])] = 3
    reflections = [grid[::rows, ::columns] for grid in (points, points.T) for rows in (1, -1) for columns in (1, -1)]
    hashes = [_hash(grid, task.to_play) for grid in reflections]
    return {"thisHash": hashes[0], "symHash": min(hashes)}


def _hash(points: NDArray[np.int8], to_play: str) -> str:
    digest = hashlib.blake2b(points.tobytes(), digest_size=16, person=b"keima")
    digest.update(f"{points.shape} {to_play}".encode())
    return digest.hexdigest().upper()


def _points(ownership: NDArray[Any]) -> list[float]:
    """A board's numbers in one row, from the top left."""
    return [round(number, 6) + 0.0 for number in ownership.ravel().tolist()]


def _winrate(value: float) -> float:
    return _rounded(0.5 * (1 + value))


def _rounded(number: float) -> float:
    """Nine significant digits, as KataGo writes; never minus zero."""
    return float(f"{number:.9g}") + 0.0


def spread(rows: Sequence[NDArray[Any]], weights: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean and standard deviation of maps of one shape, float64 [ysize, xsize]."""
    stacked = np.asarray(rows, np.float64)
    shares = np.asarray(weights, np.float64)
    shares = (shares / shares.sum())[:, None, None]
    mean = (shares * stacked).sum(axis=0)
    return mean, np.sqrt((shares * (stacked - mean) ** 2).sum(axis=0))
