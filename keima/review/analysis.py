"""A whole game judged by a network, alone or with a search: every position, each move's loss, the worst mistakes first.

A move's loss, for the player who moved, is the judgement after the first choice (the network's, or with `visits` the
search's, averaged over that move's part of the tree) minus the judgement after the move played; the first choice itself
loses nothing. So two positions with the same side to move are compared: a network's values lean a little towards, or
against, whoever is to move, and against the position before, the lean would look like a mistake on every second move.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from keima.errors import BadRequest
from keima.games.game import GAMES
from keima.games.playing import Verdict
from keima.games.position import Position
from keima.inference.evaluation import Evaluation
from keima.plain import Data
from keima.review.games import ReviewGame, numbers

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator

FORMAT = "keima-review"
FORMAT_VERSION = 1
TOP_MOVES = 20
"""How many of the network's moves a position keeps, at most."""
GRADES = (("blunder", 0.20), ("mistake", 0.10), ("inaccuracy", 0.05))
"""Name and least loss of winning chances (win + draw / 2) of each grade; below the last a move is "good"."""


Evaluations = Sequence[Evaluation | None]
"""One a position; None where the game is over, so that there is nothing to judge."""
Tell = Callable[[int], None]


class Judge(Protocol):
    """What evaluates positions: `keima.Evaluator`, or anything that answers like it."""

    def __call__(self, positions: Sequence[Position], symmetry: int | str = 0) -> list[Evaluation]:
        """Evaluate positions in their order."""
        ...


def review_game(
    game: ReviewGame,
    judge: Judge,
    network: Data,
    options: Data,
    on_progress: Callable[[int], None] | None = None,
    chunk: int = 32,
) -> Data:
    """Judge a game: the review as docs/review-json.md describes it.

    Args:
        game: played through.
        judge: evaluates positions.
        network: the report's `network` object: name, system, format, sha256.
        options: the report's `options` object: symmetry (0–7 or "average"), precision; where positions are to be
            searched also visits, preset and seed, and the judge is then an evaluator; the network's own options that
            are bound to the judge.
        on_progress: told how many further positions are done, after each chunk; in all at most each position of the
            game and, for each move, the network's choice beside it (with a search: the position again, searched).
        chunk: positions handed to the judge at a time.

    Raises:
        UnsupportedPosition: the network cannot take this game (another game, board size or rules).
        BadRequest: a search with a network that judges no position.
    """
    from keima import __version__

    tell: Tell = on_progress or (lambda count: None)

    def ask(asked: Sequence[Position]) -> Iterator[Evaluation]:
        answers: list[Evaluation] = []
        for begin in range(0, len(asked), chunk):
            part = asked[begin : begin + chunk]
            answers += judge(part, symmetry=options["symmetry"])
            tell(len(part))
        return iter(answers)

    last = len(game.positions) - 1
    over = [p.is_over and (ply == last or _outcome(p) is not None) for ply, p in enumerate(game.positions)]
    answers = ask([position for position, ended in zip(game.positions, over, strict=True) if not ended])
    evaluations = [None if ended else next(answers) for ended in over]
    if options.get("visits"):
        positions, moves = _by_search(game, evaluations, judge, options, tell)
    else:
        positions = _positions(game, evaluations)
        choices = _judge_choices(game, evaluations, ask, tell)
        moves = [_move(game, number, positions, evaluations, choices.get(number)) for number in range(1, last + 1)]
    graded = [move for move in moves if move.get("grade", "good") != "good"]
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "keima": __version__,
        "key": review_key(game, network["sha256"], options),
        "network": network,
        "options": options,
        "game": game.facts,
        "positions": positions,
        "moves": moves,
        "mistakes": [move["number"] for move in sorted(graded, key=lambda move: -move["winrate_loss"])],
        "players": {side: summarise([m for m in moves if m["player"] == side]) for side in sorted(game.game.sides)},
    }


def review_key(game: ReviewGame, network_sha256: str, options: Data) -> str:
    """A digest of all that decides a review; a stored one with the same key need not be made again."""
    facts = {"format": FORMAT_VERSION, "network": network_sha256, "game": game.identity, "options": options}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _judge_choices(
    game: ReviewGame, evaluations: Evaluations, ask: Callable[[Sequence[Position]], Iterator[Evaluation]], tell: Tell
) -> dict[int, Data]:
    """By move number: what the network says of the position after its own first choice, where another was played."""
    afterwards: dict[int, Position] = {}
    for number, (before, evaluation) in enumerate(zip(game.positions[:-1], evaluations, strict=False), 1):
        if evaluation is None or evaluation.win is None or _side_of(before) != game.players[number - 1]:
            continue
        if evaluation.best == game.moves[number - 1]:
            tell(1)
        else:
            afterwards[number] = game.game.playing.follow(before, before.to_play, evaluation.best)
    answers = ask([position for position in afterwards.values() if not position.is_over])
    choices = {}
    for number, position in afterwards.items():
        if position.is_over and _outcome(position) is None:
            continue  # a pass that ends the game: what it is worth, agreement about dead stones decides
        judged = _final(position, None) if position.is_over else numbers(next(answers))
        choices[number] = {"to_play": _side_of(position), **judged}
    return choices


def _by_search(
    game: ReviewGame, evaluations: Evaluations, judge: Judge, options: Data, tell: Tell
) -> tuple[list[Data], list[Data]]:
    """The report's `positions` and `moves`, by search; what the network alone says is kept beside it."""
    from keima.review import variations

    if any(evaluation is not None and evaluation.win is None for evaluation in evaluations):
        raise BadRequest("this network judges no position, it only proposes moves; review with 0 visits")
    results = variations.search_positions(game.positions, cast("Evaluator", judge), options, tell)
    searched = [
        None if result is None else variations.searched_numbers(position, result)
        for position, result in zip(game.positions, results, strict=True)
    ]
    positions = _positions(game, evaluations, searched)
    moves = []
    for number, (played, player) in enumerate(zip(game.moves, game.players, strict=True), 1):
        before, result, choice, facts = game.positions[number - 1], results[number - 1], None, {}
        if result is not None and _side_of(before) == player:
            facts = variations.against_search(before, played, result)
            other = next(side for side in game.game.sides if side != player)
            choice = positions[number] if facts.get("place") == 1 else variations.after_best(result, other)
        moves.append(_move(game, number, positions, evaluations, choice, facts))
    return positions, moves


def _side_of(position: Position) -> str:
    return GAMES[position.game].side(position.to_play)


def _outcome(position: Position) -> Verdict | None:
    return GAMES[position.game].playing.outcome(position)


def _positions(game: ReviewGame, evaluations: Evaluations, searched: Sequence[Data | None] | None = None) -> list[Data]:
    """The report's `positions`; where one was searched, with the search's word in place of the network's."""
    result: list[Data] = []
    found = searched or [None] * len(evaluations)
    for ply, (position, evaluation, search) in enumerate(zip(game.positions, evaluations, found, strict=True)):
        entry: Data = {"ply": ply, "to_play": _side_of(position), **game.game.drawing.board(position)}
        if evaluation is None:
            entry.update(_final(position, result[-1] if result else None))
        else:
            entry.update(_judged(position, evaluation))
            entry.update({"raw": numbers(evaluation), **search} if search else {})
        result.append(entry)
    return result


def _judged(position: Position, evaluation: Evaluation) -> Data:
    """What the network says of a position that is not over."""
    entry = numbers(evaluation)
    ranked = sorted(evaluation.policy.items(), key=lambda item: -item[1])[:TOP_MOVES]
    entry["policy"] = {move: round(float(p), 5) for move, p in ranked if p >= 0.0005 or move == ranked[0][0]}
    san = _written(position, list(entry["policy"])[:8])
    if san is not None:
        entry["san"] = san
    if evaluation.ownership is not None:
        entry["ownership"] = [[round(float(point), 2) for point in row] for row in evaluation.ownership]
    return entry


def _written(position: Position, moves: Sequence[str]) -> Data | None:
    """Move → how people write it; None where its own name serves. A move that is not legal is left out."""
    drawing = GAMES[position.game].drawing
    found = {move: drawing.written(position, [move]) for move in moves}
    if any(names is None for names in found.values()):
        return None
    return {move: names[0] for move, names in found.items() if names}


def _final(position: Position, before: Data | None) -> Data:
    """Where the game is over: its result by the rules, else the network's word before the last move."""
    outcome = _outcome(position)
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


def _move(
    game: ReviewGame,
    number: int,
    positions: Sequence[Data],
    evaluations: Evaluations,
    choice: Data | None,
    searched: Data | None = None,
) -> Data:
    """What was played, what the network or the search would have played, what the difference cost."""
    played, player, evaluation = game.moves[number - 1], game.players[number - 1], evaluations[number - 1]
    before, after = positions[number - 1], positions[number]
    move: Data = {"number": number, "player": player, "move": played}
    san = _written(game.positions[number - 1], [played])
    if san is not None:
        move["san"] = san.get(played, played)
    if evaluation is not None and before["to_play"] == player:
        move.update(_against_policy(played, evaluation, before))
    move.update(searched or {})
    if choice is None and move.get("rank") == 1:
        choice = after
    if "win" in before and "win" in after:
        move.update(winrate_before=_winrate(before, player), winrate_after=_winrate(after, player))
        if choice:
            move["winrate_best"] = _winrate(choice, player)
            move["winrate_loss"] = round(move["winrate_best"] - move["winrate_after"], 5)
            move["grade"] = grade(move["winrate_loss"])
    if "lead" in before and "lead" in after:
        move.update(lead_before=_lead(before, player), lead_after=_lead(after, player))
        if choice:
            move["lead_best"] = _lead(choice, player)
            move["points_loss"] = round(move["lead_best"] - move["lead_after"], 5)
    return move


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


def _winrate(position: Data, side: str) -> float:
    """The chances of `side` in a position of the review: win + draw / 2."""
    won = position["win"] if position["to_play"] == side else position["loss"]
    return round(float(won + position["draw"] / 2), 5)


def _lead(position: Data, side: str) -> float:
    return float(position["lead"] if position["to_play"] == side else -position["lead"])


def grade(loss: float) -> str:
    """ "good", "inaccuracy", "mistake" or "blunder" for a loss of winning chances."""
    return next((name for name, least in GRADES if loss >= least), "good")


def summarise(moves: Sequence[Data]) -> Data:
    """One player's averages over their moves; losses below zero count as none, ranks are the search's if it had any."""
    summary: Data = {"moves": len(moves)}
    losses = [max(0.0, move["winrate_loss"]) for move in moves if "winrate_loss" in move]
    points = [max(0.0, move["points_loss"]) for move in moves if "points_loss" in move]
    ranks: list[int] = [move.get("place") or move["rank"] for move in moves if "rank" in move]
    if losses:
        summary["mean_winrate_loss"] = round(sum(losses) / len(losses), 5)
    if points:
        summary["mean_points_loss"] = round(sum(points) / len(points), 4)
    if ranks:
        summary["first_choice"] = round(sum(rank == 1 for rank in ranks) / len(ranks), 4)
        summary["among_three"] = round(sum(rank <= 3 for rank in ranks) / len(ranks), 4)
        summary["mean_prior"] = round(sum(move["prior"] for move in moves if "prior" in move) / len(ranks), 5)
    for name, plural in (("inaccuracy", "inaccuracies"), ("mistake", "mistakes"), ("blunder", "blunders")):
        summary[plural] = sum(move.get("grade") == name for move in moves)
    return summary
