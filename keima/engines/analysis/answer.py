"""Answers of KataGo's JSON analysis protocol: a search's result as the fields documented there.

Sources: KataGo v1.17.2 `docs/Analysis_Engine.md`; `cpp/search/searchresults.cpp`, `getAnalysisJson`. What differs here
stands in `docs/analysis.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from keima.engines.analysis.query import Task
from keima.engines.analysis.settings import TO_MOVE
from keima.engines.tree_view import Inside, lower_bounds
from keima.games.analysis import rounded
from keima.inference.evaluation import Evaluation
from keima.plain import Data
from keima.search.report import MoveInfo, SearchResult
from keima.systems.parameters import Parameters

Json = Data


@dataclass(frozen=True)
class Ownerships:
    """Ownership beyond a search's own average, each [ysize, xsize], +1 = the side to move at the root.

    After each move, its standard deviation along the move's variation, and the root's over all variations.
    """

    moves: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    moves_stdev: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    root_stdev: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Findings:
    """Everything an answer is made of: of the search, and of the root what the network (`raw`) and the human's say."""

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
    """The answer for a task, while its search goes on or in the end."""
    result = _with_outcome(task, findings.result)
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
        answer["policy"] = task.game.policy(task.position, result.policy)
        if findings.human is not None:
            answer["humanPolicy"] = task.game.policy(task.position, findings.human.policy)
    if "includeOwnership" in task.include and result.ownership is not None:
        answer["ownership"] = _points(sign * result.ownership)
    if "includeOwnershipStdev" in task.include and findings.ownerships.root_stdev is not None:
        answer["ownershipStdev"] = _points(findings.ownerships.root_stdev)
    return answer


def _with_outcome(task: Task, result: SearchResult) -> SearchResult:
    """The result, with the value of the outcome where the game has ended and no search goes on."""
    value = task.game.outcome(task.position)
    if value is None:
        return result
    win, draw, loss = float(value > 0), float(value == 0), float(value < 0)
    return replace(result, moves=(), value=value, win=win, draw=draw, loss=loss, utility=value, moves_left=0.0)


def _sign(task: Task) -> float:
    """1 where values are reported for the side to move, −1 where for the other."""
    perspective, sides = task.settings.perspective, task.game.sides
    side = sides.get(perspective or "", next(iter(sides.values())))
    return 1.0 if perspective == TO_MOVE or side == task.to_play else -1.0


def _move_info(task: Task, findings: Findings, info: MoveInfo, sign: float) -> Json:
    lcb, utility_lcb = lower_bounds(info, findings.parameters)
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
        "utility": rounded(sign * info.utility),
        "lcb": rounded(lcb if sign > 0 else 1 - lcb),
        "utilityLcb": rounded(sign * utility_lcb),
        "prior": rounded(info.prior),
        "pv": list(info.pv[: task.settings.pv_length + 1]),
    }
    inside = findings.inside
    if not task.game.has_points:
        found |= _chances(info, sign)
    elif info.lead is not None:
        score = inside.scores.get(info.move, info.lead) if inside else info.lead
        found |= _scores(sign * info.lead, sign * score, info.score_stdev)
        found["scoreMean"] = found["scoreLead"]
    if findings.human is not None:
        found["humanPrior"] = rounded(findings.human.policy.get(info.move, 0.0))
    if "includeNoResultValue" in task.include:
        found["noResultValue"] = rounded(info.draw)
    if "includePVVisits" in task.include and inside is not None:
        visits = list(inside.pv_visits[info.move][: len(found["pv"])])
        found |= {"pvVisits": visits, "pvEdgeVisits": visits}
    if "includeMovesOwnership" in task.include and info.move in findings.ownerships.moves:
        found["ownership"] = _points(sign * findings.ownerships.moves[info.move])
    if "includeMovesOwnershipStdev" in task.include and info.move in findings.ownerships.moves_stdev:
        found["ownershipStdev"] = _points(findings.ownerships.moves_stdev[info.move])
    return found


def _chances(info: MoveInfo | SearchResult, sign: float) -> Json:
    """What games without points have in their place: win, draw, loss; plies left; a forced win or loss."""
    win, loss = (info.win, info.loss) if sign > 0 else (info.loss, info.win)
    found: Json = {"wdl": [rounded(win), rounded(info.draw), rounded(loss)]}
    if info.moves_left is not None:
        found["movesLeft"] = rounded(info.moves_left)
    if isinstance(info, MoveInfo) and info.mate is not None:
        found["mate"] = int(sign * info.mate)
    return found


def _scores(lead: float, score: float, stdev: float | None) -> Json:
    found = {"scoreLead": rounded(lead), "scoreSelfplay": rounded(score)}
    return found if stdev is None else {**found, "scoreStdev": rounded(stdev)}


def _root_info(task: Task, findings: Findings, sign: float) -> Json:
    result = findings.result
    found: Json = {
        "currentPlayer": task.to_play,
        "visits": result.visits,
        "weight": float(result.visits),
        "winrate": _winrate(sign * result.value),
        "utility": rounded(sign * result.utility),
        "rawWinrate": _winrate(sign * result.raw_value),
        **task.game.hashes(task.position),
    }
    if not task.game.has_points:
        return found | _chances(result, sign)
    if result.lead is not None:
        score = findings.inside.score if findings.inside else result.lead
        found |= _scores(sign * result.lead, sign * score, result.score_stdev)
    if result.raw_lead is not None:
        found["rawLead"] = rounded(sign * result.raw_lead)
    if findings.raw is not None:
        found |= _raw_numbers(findings.raw, sign)
    if findings.human is not None:
        found |= _human_numbers(findings.human, sign)
    return found


def _raw_numbers(raw: Evaluation, sign: float) -> Json:
    """What the network itself says of the root; of a short-term error that it does not know, −1 as KataGo has it."""
    found: Json = {}
    if raw.value is not None:
        found["rawWinrate"] = _winrate(sign * raw.value)
    if raw.lead is not None:
        found["rawLead"] = rounded(sign * raw.lead)
    if raw.draw is not None:
        found["rawNoResultProb"] = rounded(raw.draw)
    if "score_mean" in raw.extra:
        found["rawScoreSelfplay"] = rounded(sign * raw.extra["score_mean"])
        found["rawScoreSelfplayStdev"] = rounded(raw.extra["score_stdev"])
        found["rawStWrError"] = rounded(0.5 * raw.extra.get("shortterm_winloss_error", -1.0))
        found["rawStScoreError"] = rounded(raw.extra.get("shortterm_score_error", -1.0))
        found["rawVarTimeLeft"] = rounded(raw.extra.get("variance_time", -1.0))
    return found


def _human_numbers(human: Evaluation, sign: float) -> Json:
    names = {
        "humanScoreMean": ("score_mean", sign),
        "humanScoreStdev": ("score_stdev", 1.0),
        "humanStWrError": ("shortterm_winloss_error", 0.5),
        "humanStScoreError": ("shortterm_score_error", 1.0),
    }
    found = {name: rounded(human.extra[key] * factor) for name, (key, factor) in names.items() if key in human.extra}
    return found if human.value is None else {**found, "humanWinrate": _winrate(sign * human.value)}


def _points(ownership: NDArray[np.floating]) -> list[float]:
    """A board's numbers in one row, from the top left."""
    return [round(number, 6) + 0.0 for number in ownership.ravel().tolist()]


def _winrate(value: float) -> float:
    return rounded(0.5 * (1 + value))


def spread(
    rows: Sequence[NDArray[np.floating]], weights: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean and standard deviation of maps of one shape, float64 [ysize, xsize]."""
    stacked = np.asarray(rows, np.float64)
    shares = np.asarray(weights, np.float64)
    shares = (shares / shares.sum())[:, None, None]
    mean = (shares * stacked).sum(axis=0)
    return mean, np.sqrt((shares * (stacked - mean) ** 2).sum(axis=0))
