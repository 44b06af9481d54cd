"""A whole game judged by a network, alone or with a search: every position, each move's loss, the worst mistakes first.

Without a search a move's loss is the network's judgement after its own first choice minus its judgement after the
move that was played, both for the player who moved: two positions with the same side to move. (The judgement before
the move would be no fair measure: a network's values lean a little towards, or against, whoever is to move, and the
lean would be read as a mistake on every second move.) A single number is as rough as one look of the network; averages
over a game say more. A move that is the network's own first choice loses nothing.

With a search (`visits` in the options) every position is searched, and a move's loss is the value of the search's best
move before it, as averaged over that move's part of the tree, minus the value of the search of the position after the
move played, both for the player who moved. Again both judge positions in which the other side is to move. A move that
is the search's own choice loses nothing.

The result is plain data, the JSON described in `docs/review-json.md`.
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
from keima.review.games import ReviewGame
from keima.review.numbers import Json, numbers

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator

FORMAT = "keima-review"
FORMAT_VERSION = 1
TOP_MOVES = 20
"""How many of the network's moves a position keeps, at most."""
GRADES = (("blunder", 0.20), ("mistake", 0.10), ("inaccuracy", 0.05))
"""Name and least loss of winning chances (win + draw / 2) of each grade; below the last a move is "good"."""


class Judge(Protocol):
    """What evaluates positions: `keima.Evaluator`, or anything that answers like it."""

    def __call__(self, positions: Sequence[Position], symmetry: int | str = 0) -> list[Evaluation]:
        """Evaluate positions in their order."""
        ...


def review_game(
    game: ReviewGame,
    judge: Judge,
    network: Json,
    options: Json,
    on_progress: Callable[[int], None] | None = None,
    chunk: int = 32,
) -> Json:
    """Judge a game.

    Args:
        game: the game, played through.
        judge: evaluates positions.
        network: the report's `network` object: name, system, format, sha256.
        options: the report's `options` object: symmetry (0–7 or "average"), precision; where positions are to be
            searched also visits, preset and seed, and the judge is then an evaluator; the network's own options that
            are bound to the judge.
        on_progress: told how many further positions are done, after each chunk; `work(game)` of them in all at most.
        chunk: positions handed to the judge at a time.

    Returns:
        The review (docs/review-json.md).

    Raises:
        UnsupportedPosition: the network cannot take this game (another game, board size or rules).
        BadRequest: a search with a network that judges no position.
    """
    from keima import __version__

    evaluations = _evaluate(game, judge, options["symmetry"], on_progress, chunk)
    if options.get("visits"):
        positions, moves = _by_search(game, evaluations, judge, options, on_progress)
    else:
        positions = _positions(game, evaluations)
        choices = _judge_choices(game, evaluations, judge, options["symmetry"], on_progress, chunk)
        moves = [
            _move(game, number, positions, evaluations[number - 1], choices.get(number))
            for number in range(1, len(game.moves) + 1)
        ]
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


def work(game: ReviewGame) -> int:
    """How many positions a review of this game looks at, at most: each, and the network's choice beside each move.

    With a search, each is evaluated and then searched: one more.
    """
    return len(game.positions) + len(game.moves)


def review_key(game: ReviewGame, network_sha256: str, options: Json) -> str:
    """A digest of all that decides a review: the network file, the game as played, the options, the format's version.

    A stored review with the same key need not be made again.
    """
    facts = {"format": FORMAT_VERSION, "network": network_sha256, "game": game.identity, "options": options}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _evaluate(
    game: ReviewGame, judge: Judge, symmetry: int | str, on_progress: Callable[[int], None] | None, chunk: int
) -> list[Evaluation | None]:
    """One evaluation a position; None where the game is over, so that there is nothing to judge."""
    last = len(game.positions) - 1
    over = [
        position.is_over and (ply == last or _outcome(position) is not None)
        for ply, position in enumerate(game.positions)
    ]
    alive = [position for position, ended in zip(game.positions, over, strict=True) if not ended]
    answers = _in_chunks(alive, judge, symmetry, on_progress, chunk)
    return [None if ended else next(answers) for ended in over]


def _judge_choices(
    game: ReviewGame,
    evaluations: Sequence[Evaluation | None],
    judge: Judge,
    symmetry: int | str,
    on_progress: Callable[[int], None] | None,
    chunk: int,
) -> dict[int, Json]:
    """By move number: what the network says of the position after its own first choice, where another was played."""
    afterwards: dict[int, Position] = {}
    for number, played in enumerate(game.moves, 1):
        evaluation = evaluations[number - 1]
        side = side_of(game.positions[number - 1])
        if evaluation is None or evaluation.win is None or side != game.players[number - 1]:
            continue
        if evaluation.best == played:
            if on_progress:
                on_progress(1)
        else:
            before = game.positions[number - 1]
            afterwards[number] = game.game.playing.follow(before, before.to_play, evaluation.best)
    alive = [position for position in afterwards.values() if not position.is_over]
    answers = _in_chunks(alive, judge, symmetry, on_progress, chunk)
    choices = {}
    for number, position in afterwards.items():
        if position.is_over and _outcome(position) is None:
            continue  # a pass that ends the game: what it is worth, agreement about dead stones decides
        judged = _final(position, None) if position.is_over else numbers(next(answers))
        choices[number] = {"to_play": side_of(position), **judged}
    return choices


def _by_search(
    game: ReviewGame,
    evaluations: Sequence[Evaluation | None],
    judge: Judge,
    options: Json,
    on_progress: Callable[[int], None] | None,
) -> tuple[list[Json], list[Json]]:
    """The report's `positions` and `moves`, by search; what the network alone says is kept beside it."""
    from keima.review import variations

    if any(evaluation is not None and evaluation.win is None for evaluation in evaluations):
        raise BadRequest("this network judges no position, it only proposes moves; review with 0 visits")
    results = variations.search_positions(game.positions, cast("Evaluator", judge), options, on_progress)
    searched = [
        None if result is None else variations.searched_numbers(position, result)
        for position, result in zip(game.positions, results, strict=True)
    ]
    positions = _positions(game, evaluations, searched)
    moves = []
    for number, (played, player) in enumerate(zip(game.moves, game.players, strict=True), 1):
        result, choice, facts = results[number - 1], None, {}
        if result is not None and side_of(game.positions[number - 1]) == player:
            facts = variations.against_search(game.positions[number - 1], played, result)
            other = next(side for side in game.game.sides if side != player)
            choice = positions[number] if facts.get("place") == 1 else variations.after_best(result, other)
        moves.append(_move(game, number, positions, evaluations[number - 1], choice, facts))
    return positions, moves


def _in_chunks(
    positions: Sequence[Position],
    judge: Judge,
    symmetry: int | str,
    on_progress: Callable[[int], None] | None,
    chunk: int,
) -> Iterator[Evaluation]:
    evaluations: list[Evaluation] = []
    for begin in range(0, len(positions), chunk):
        part = positions[begin : begin + chunk]
        evaluations += judge(part, symmetry=symmetry)
        if on_progress:
            on_progress(len(part))
    return iter(evaluations)


def side_of(position: Position) -> str:
    """The side to move, in words."""
    return GAMES[position.game].side(position.to_play)


def _outcome(position: Position) -> Verdict | None:
    return GAMES[position.game].playing.outcome(position)


def _positions(
    game: ReviewGame, evaluations: Sequence[Evaluation | None], searched: Sequence[Json | None] | None = None
) -> list[Json]:
    """The report's `positions`; where one was searched, with the search's word in place of the network's."""
    drawing = game.game.drawing
    result: list[Json] = []
    found = searched or [None] * len(evaluations)
    for ply, (position, evaluation, search) in enumerate(zip(game.positions, evaluations, found, strict=True)):
        entry: Json = {"ply": ply, "to_play": side_of(position), **drawing.board(position)}
        if evaluation is None:
            entry.update(_final(position, result[-1] if result else None))
        else:
            entry.update(_judged(position, evaluation))
            entry.update({"raw": numbers(evaluation), **search} if search else {})
        result.append(entry)
    return result


def _judged(position: Position, evaluation: Evaluation) -> Json:
    """What the network says of a position that is not over."""
    entry = numbers(evaluation)
    ranked = sorted(evaluation.policy.items(), key=lambda item: -item[1])[:TOP_MOVES]
    entry["policy"] = {move: round(float(p), 5) for move, p in ranked if p >= 0.0005 or move == ranked[0][0]}
    san = written(position, list(entry["policy"])[:8])
    if san is not None:
        entry["san"] = san
    if evaluation.ownership is not None:
        entry["ownership"] = [[round(float(point), 2) for point in row] for row in evaluation.ownership]
    return entry


def written(position: Position, moves: Sequence[str]) -> Json | None:
    """Move → how people write it; None where its own name serves. A move that is not legal is left out."""
    drawing = GAMES[position.game].drawing
    found = {move: drawing.written(position, [move]) for move in moves}
    if any(names is None for names in found.values()):
        return None
    return {move: names[0] for move, names in found.items() if names}


def _final(position: Position, before: Json | None) -> Json:
    """What is known where the game is over: its result by the rules, else the network's word before the last move."""
    outcome = _outcome(position)
    if outcome is not None:
        to_play = GAMES[position.game].letters.index(position.to_play)
        win, draw = float(outcome.winner == to_play), float(outcome.winner is None)
        loss = 1.0 - win - draw
        return {"win": win, "draw": draw, "loss": loss, "value": win - loss, "policy": {}, "outcome": outcome.reason}
    entry: Json = {"policy": {}, "outcome": "the game is over"}
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
    positions: Sequence[Json],
    evaluation: Evaluation | None,
    choice: Json | None,
    searched: Json | None = None,
) -> Json:
    """One move: what was played, what would have been played by the network or the search, what the difference cost."""
    played, before, after = game.moves[number - 1], positions[number - 1], positions[number]
    player = game.players[number - 1]
    move: Json = {"number": number, "player": player, "move": played}
    san = written(game.positions[number - 1], [played])
    if san is not None:
        move["san"] = san.get(played, played)
    if evaluation is not None and before["to_play"] == player:
        move.update(_against_policy(played, evaluation, before))
    move.update(searched or {})
    if choice is None and move.get("rank") == 1:
        choice = after
    if "win" in before and "win" in after:
        move.update(winrate_before=winrate(before, player), winrate_after=winrate(after, player))
        if choice:
            move["winrate_best"] = winrate(choice, player)
            move["winrate_loss"] = round(move["winrate_best"] - move["winrate_after"], 5)
            move["grade"] = grade(move["winrate_loss"])
    if "lead" in before and "lead" in after:
        move.update(lead_before=lead(before, player), lead_after=lead(after, player))
        if choice:
            move["lead_best"] = lead(choice, player)
            move["points_loss"] = round(move["lead_best"] - move["lead_after"], 5)
    return move


def _against_policy(played: str, evaluation: Evaluation, before: Json) -> Json:
    """The played move in the network's policy: its probability, its rank, and the move it liked best."""
    prior = evaluation.policy.get(played)
    if prior is None:
        return {}
    best = evaluation.best
    facts: Json = {
        "prior": round(float(prior), 5),
        "rank": 1 + sum(p > prior for p in evaluation.policy.values()),
        "best": best,
        "best_prior": round(float(evaluation.policy[best]), 5),
    }
    if best in before.get("san", {}):
        facts["best_san"] = before["san"][best]
    return facts


def winrate(position: Json, side: str) -> float:
    """The chances of `side` in a position of the review: win + draw / 2."""
    won = position["win"] if position["to_play"] == side else position["loss"]
    return round(float(won + position["draw"] / 2), 5)


def lead(position: Json, side: str) -> float:
    """The points `side` is ahead in a position of the review."""
    return float(position["lead"] if position["to_play"] == side else -position["lead"])


def grade(loss: float) -> str:
    """ "good", "inaccuracy", "mistake" or "blunder" for a loss of winning chances."""
    return next((name for name, least in GRADES if loss >= least), "good")


def summarise(moves: Sequence[Json]) -> Json:
    """One player's averages over their moves; losses below zero count as none.

    How often a move was the first choice is counted by the search's order where there was one, else by the policy's.
    """
    count = len(moves)
    summary: Json = {"moves": count}
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
