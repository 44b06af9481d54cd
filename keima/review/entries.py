"""The entries of a report (docs/review-json.md): what is told of each position and of each move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from keima.games.game import GAMES
from keima.games.playing import Opinion, Verdict
from keima.games.position import Position
from keima.inference.evaluation import Evaluation
from keima.plain import Data
from keima.review.games import ReviewGame, numbers
from keima.review.grading import accuracy, grade, grades_of

TOP_MOVES = 20
"""How many of the network's moves a position keeps, at most."""
_MOST_CENTIPAWNS = 1000
"""Where losses in centipawns are counted from and to, as on Lichess: beyond, the game is decided."""

Evaluations = Sequence[Evaluation | None]
"""One a position; None where the game is over, so that there is nothing to judge."""


def side_of(position: Position) -> str:
    """The side to move, in words."""
    return GAMES[position.game].side(position.to_play)


def outcome_of(position: Position) -> Verdict | None:
    """How the game ended here by its rules alone."""
    return GAMES[position.game].playing.outcome(position)


def position_entries(
    game: ReviewGame, evaluations: Evaluations, searched: Sequence[Data | None], opinions: Sequence[Opinion | None]
) -> list[Data]:
    """The report's `positions`; where one was searched, with the search's word in place of the network's."""
    result: list[Data] = []
    rows = zip(game.positions, evaluations, searched, opinions, strict=True)
    for ply, (position, evaluation, search, opinion) in enumerate(rows):
        entry: Data = {"ply": ply, "to_play": side_of(position), **game.game.drawing.board(position)}
        if evaluation is None:
            entry.update(final_numbers(position, result[-1] if result else None))
        else:
            entry.update(_judged(position, evaluation))
            entry.update({"raw": numbers(evaluation), **search} if search else {})
            _add_centipawns(game, entry)
        if opinion is not None:
            entry["second"] = _told(position, opinion)
        result.append(entry)
    return result


def _add_centipawns(game: ReviewGame, entry: Data) -> None:
    """`cp`, or where an end was proved `mate`."""
    candidates = entry.get("candidates")
    mate = candidates[0].get("mate") if candidates else None
    found = game.game.playing.centipawns(entry["value"]) if "value" in entry else None
    if found is not None:
        entry |= {"mate": mate} if mate else {"cp": found}


def _judged(position: Position, evaluation: Evaluation) -> Data:
    """What the network says of a position that is not over."""
    policy = policy_entry(position, evaluation.policy)
    return {**numbers(evaluation), **policy, **ownership_entry(evaluation.ownership)}


def policy_entry(position: Position, policy: Mapping[str, float]) -> Data:
    """`policy`, its likeliest moves; and `san`, some of them as people write them, where that differs."""
    ranked = sorted(policy.items(), key=lambda item: -item[1])[:TOP_MOVES]
    told = {move: round(float(p), 5) for move, p in ranked if p >= 0.0005 or move == ranked[0][0]}
    san = written(position, list(told)[:8])
    return {"policy": told} | ({"san": san} if san is not None else {})


def ownership_entry(ownership: NDArray[np.float32] | None) -> Data:
    """`ownership` [H][W], where there is one."""
    return {} if ownership is None else {"ownership": [[round(float(point), 2) for point in row] for row in ownership]}


@lru_cache(maxsize=4096)
def names_of(position: Position, moves: tuple[str, ...]) -> list[str] | None:
    """A variation as people write it; kept, since a search under way tells the same ones many times."""
    return GAMES[position.game].drawing.written(position, moves)


def written(position: Position, moves: Sequence[str]) -> Data | None:
    """Move → how people write it; None where its own name serves. A move that is not legal is left out."""
    found = {move: names_of(position, (move,)) for move in moves}
    if any(names is None for names in found.values()):
        return None
    return {move: names[0] for move, names in found.items() if names}


def variation(position: Position, moves: Sequence[str], name: str) -> Data:
    """A variation from a position under `name`, and as people write it under `name`_san where that differs."""
    names = GAMES[position.game].drawing.written(position, list(moves))
    return {name: list(moves)} | ({f"{name}_san": names} if names is not None else {})


def final_numbers(position: Position, before: Data | None) -> Data:
    """Where the game is over: its result by the rules, else the network's word before the last move."""
    outcome = outcome_of(position)
    if outcome is not None:
        to_play = GAMES[position.game].letters.index(position.to_play)
        win, draw = float(outcome.winner == to_play), float(outcome.winner is None)
        loss = 1.0 - win - draw
        return {"win": win, "draw": draw, "loss": loss, "value": win - loss, "policy": {}, "outcome": outcome.reason}
    entry: Data = {"policy": {}, "outcome": "the game is over"}
    if before and "win" in before:
        entry.update(win=before["loss"], draw=before["draw"], loss=before["win"], value=-before["value"])
    if before and "lead" in before:
        entry["lead"] = -before["lead"]
    if before and "ownership" in before:
        entry["ownership"] = [[-point for point in row] for row in before["ownership"]]
    return entry


def move_entry(
    game: ReviewGame,
    number: int,
    positions: Sequence[Data],
    evaluation: Evaluation | None,
    choice: Data | None,
    searched: Mapping[str, object],
) -> Data:
    """What was played, what the network or the search would have played, what the difference cost.

    Args:
        number: of the move, from 1.
        positions: the report's.
        evaluation: of the position before the move.
        choice: `to_play` and the numbers of the position after the judge's first choice; None: not known.
        searched: what the search adds, in place of what the network says.
    """
    played, player = game.moves[number - 1], game.players[number - 1]
    before, after = positions[number - 1], positions[number]
    move: Data = {"number": number, "player": player, "move": played, **game.times[number - 1]}
    san = written(game.positions[number - 1], [played])
    if san is not None:
        move["san"] = san.get(played, played)
    if evaluation is not None and before["to_play"] == player:
        move.update(_against_policy(played, evaluation, before))
    move.update(searched)
    if choice is None and move.get("rank") == 1:
        choice = after
    if "win" in before and "win" in after:
        move.update(winrate_before=winrate_of(before, player), winrate_after=winrate_of(after, player))
        if choice:
            move["winrate_best"] = winrate_of(choice, player)
            move["winrate_loss"] = round(move["winrate_best"] - move["winrate_after"], 5)
            move["accuracy"] = round(accuracy(move["winrate_best"], move["winrate_after"]), 2)
            best, left = _centipawns(game, choice, player), _centipawns(game, after, player)
            if best is not None and left is not None:
                move["cp_loss"] = best - left
    if "lead" in before and "lead" in after:
        move.update(lead_before=_lead(before, player), lead_after=_lead(after, player))
        if choice:
            move["lead_best"] = _lead(choice, player)
            move["points_loss"] = round(move["lead_best"] - move["lead_after"], 5)
    return move | grades_of(move, game.game.playing)


def _against_policy(played: str, evaluation: Evaluation, before: Data) -> Data:
    """The played move in the network's policy: its probability, its rank, and the move it liked best."""
    prior, best = evaluation.policy.get(played), evaluation.best
    if prior is None:
        return {}
    facts: Data = {
        "prior": round(float(prior), 5),
        "rank": 1 + sum(p > prior for p in evaluation.policy.values()),
        "best": best,
        "best_prior": round(float(evaluation.policy[best]), 5),
    }
    if best in before.get("san", {}):
        facts["best_san"] = before["san"][best]
    return facts


def winrate_of(position: Data, side: str) -> float:
    """The chances of `side` in a position of the report: win + draw / 2."""
    won = position["win"] if position["to_play"] == side else position["loss"]
    return round(float(won + position["draw"] / 2), 5)


def _lead(position: Data, side: str) -> float:
    return float(position["lead"] if position["to_play"] == side else -position["lead"])


def _centipawns(game: ReviewGame, position: Data, side: str) -> int | None:
    """Of `side`, within ±`_MOST_CENTIPAWNS`; None in a game that does not count so."""
    found = game.game.playing.centipawns(position["value"])
    return None if found is None else _bounded(found if position["to_play"] == side else -found)


def _bounded(centipawns: int) -> int:
    return max(-_MOST_CENTIPAWNS, min(_MOST_CENTIPAWNS, centipawns))


# ---- the second judge -----------------------------------------------------------------------------------------------


def _told(position: Position, opinion: Opinion) -> Data:
    """`second` of a position."""
    entry: Data = {"winrate": round(opinion.winrate, 5)}
    entry |= {"mate": opinion.mate} if opinion.mate is not None else {"cp": opinion.centipawns}
    if opinion.pv:
        entry["best"] = opinion.pv[0]
        entry |= variation(position, opinion.pv, "pv")
        entry |= {"best_san": entry["pv_san"][0]} if entry.get("pv_san") else {}
    return entry


def second_of_move(game: ReviewGame, number: int, opinions: Sequence[Opinion | None]) -> Data:
    """`second` of a move: what it cost in the second judge's eyes; {} where it was not asked."""
    before, after = opinions[number - 1], opinions[number]
    if before is None:
        return {}
    left = _left_after(game.positions[number], after)
    if left is None:
        return {}
    chances, centipawns = left
    same = bool(before.pv) and before.pv[0] == game.moves[number - 1]
    lost = 0.0 if same else round(before.winrate - chances, 5)
    facts: Data = {"winrate_loss": lost, "accuracy": round(accuracy(before.winrate, before.winrate - lost), 2)}
    facts |= {"cp_loss": 0 if same else _counted(before) - centipawns, "grade": grade(lost)}
    if before.pv:
        facts["best"] = before.pv[0]
        facts |= variation(game.positions[number - 1], before.pv, "best_pv")
        facts |= {"best_san": facts["best_pv_san"][0]} if facts.get("best_pv_san") else {}
    return facts


def _left_after(position: Position, opinion: Opinion | None) -> tuple[float, int] | None:
    """(chances, centipawns) of who has just moved."""
    if opinion is not None:
        return 1 - opinion.winrate, -_counted(opinion)
    outcome = outcome_of(position)
    if outcome is None:
        return None
    if outcome.winner is None:
        return 0.5, 0
    won = outcome.winner != GAMES[position.game].letters.index(position.to_play)
    return float(won), _MOST_CENTIPAWNS if won else -_MOST_CENTIPAWNS


def _counted(opinion: Opinion) -> int:
    if opinion.mate is not None:
        return _MOST_CENTIPAWNS if opinion.mate > 0 else -_MOST_CENTIPAWNS
    return _bounded(opinion.centipawns or 0)
