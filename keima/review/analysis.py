"""A whole game judged by a network, alone or with a search: every position, each move's loss, the worst mistakes first.

A move's loss, for the player who moved, is the judgement after the first choice (the network's, or with `visits` the
search's, averaged over that move's part of the tree) minus the judgement after the move played; the first choice itself
loses nothing. So two positions with the same side to move are compared: a network's values lean a little towards, or
against, whoever is to move, and against the position before, the lean would look like a mistake on every second move.
A move to which the search gave no visit is compared on equal terms: both positions, after it and after the search's
choice, are searched by themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from keima.errors import BadRequest
from keima.games.playing import Opinion, Opinions
from keima.games.position import Position
from keima.inference.evaluation import Evaluation
from keima.plain import Data, Note
from keima.review.entries import (
    Evaluations,
    final_numbers,
    move_entry,
    outcome_of,
    position_entries,
    second_of_move,
    side_of,
    variation,
    winrate_of,
)
from keima.review.games import ReviewGame, numbers
from keima.review.grading import GOOD, GRADES, game_accuracy, severity, thresholds
from keima.review.grading import grade as grade
from keima.review.grading import summarise as summarise

if TYPE_CHECKING:
    from keima.inference.evaluator import Evaluator
    from keima.search import SearchResult

FORMAT = "keima-review"
FORMAT_VERSION = 2
CONTINUED = 6
"""Moves of a better variation where the network alone judges: its first choices, one after another."""
DOUBTFUL = 0.5
"""A move that loses this part of an inaccuracy is looked at again where mistakes are (`deeper`)."""

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
    second: Opinions | None = None,
) -> Data:
    """Judge a game: the review as docs/review-json.md describes it.

    Args:
        game: played through.
        judge: evaluates positions.
        network: the report's `network` object: name, system, format, sha256; `caution` and `boards` become warnings.
        options: the report's `options` object: symmetry (0–7 or "average"), precision; where positions are to be
            searched also visits, preset and seed, and the judge is then an evaluator, and `deeper` where the mistakes
            are to be searched again with more visits; the network's own options that are bound to the judge.
        on_progress: told how many further positions are done, `steps` in all.
        chunk: positions handed to the judge at a time.
        second: another program that judges every position too.

    Raises:
        UnsupportedPosition: the network cannot take this game (another game, board size or rules).
        BadRequest: a search with a network that judges no position; the second judge fails.
    """
    work = _Review(game, judge, network, options, on_progress, chunk, second)
    *_, review = work.passes(quick=not options.get("visits"))
    return review


def review_passes(
    game: ReviewGame,
    judge: Judge,
    network: Data,
    options: Data,
    on_progress: Callable[[int], None] | None = None,
    chunk: int = 32,
    second: Opinions | None = None,
) -> Iterator[Data]:
    """The same review as it grows, to be shown at once: by the network alone; searched, where `options` have visits;
    with the mistakes searched again, where they have `deeper`. Arguments and errors are those of `review_game`.
    """
    return _Review(game, judge, network, options, on_progress, chunk, second).passes(quick=True)


def steps(game: ReviewGame, options: Data) -> int:
    """How many positions `review_game` tells of in all."""
    return len(game.positions) if options.get("visits") else len(game.positions) + len(game.moves)


def review_key(game: ReviewGame, network_sha256: str, options: Data) -> str:
    """A digest of all that decides a review; a stored one with the same key need not be made again."""
    facts = {"format": FORMAT_VERSION, "network": network_sha256, "game": game.identity, "options": options}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class _Review:
    """A review on its way: what is known so far, and the report made of it."""

    def __init__(
        self,
        game: ReviewGame,
        judge: Judge,
        network: Data,
        options: Data,
        on_progress: Tell | None,
        chunk: int,
        second: Opinions | None,
    ) -> None:
        self.game, self.judge, self.network, self.options, self.chunk = game, judge, network, options, chunk
        self.tell: Tell = on_progress or (lambda count: None)
        self.second = second
        last = len(game.positions) - 1
        self.over = [p.is_over and (ply == last or outcome_of(p) is not None) for ply, p in enumerate(game.positions)]
        self.opinions: Sequence[Opinion | None] = [None] * len(game.positions)
        self.evaluations: Evaluations = []
        self.results: dict[int, SearchResult | None] = {}  # searched, by ply
        self.beside: dict[int, Data] = {}  # by move number: the position after the search's choice, searched by itself

    def passes(self, quick: bool) -> Iterator[Data]:
        """The reports, one better than the other; by the network alone only if that is `quick`ly wanted."""
        searched = self.options.get("visits")
        alive = [position for position, over in zip(self.game.positions, self.over, strict=True) if not over]
        answers = iter(self._ask(alive, told=not searched))
        self.evaluations = [None if over else next(answers) for over in self.over]
        if self.second is not None:
            self.opinions = list(self.second(self.game.positions))
        if quick:
            yield self._alone(told=not searched)
        if not searched:
            return
        if any(evaluation is not None and evaluation.win is None for evaluation in self.evaluations):
            raise BadRequest("this network judges no position, it only proposes moves; review with 0 visits")
        self._search(range(len(self.game.positions)), searched, all_beside=False)
        report = self._searched()
        yield report
        if self.options.get("deeper"):
            again = [move["number"] for move in report["moves"] if self._deserves_more(move)]
            plies = sorted({ply for number in again for ply in (number - 1, number)})
            self._search(plies, self.options["deeper"], all_beside=True, numbers_beside=again, told=False)
            yield self._searched()

    def _deserves_more(self, move: Data) -> bool:
        return severity(move, self.game.game.playing) >= DOUBTFUL * GRADES[-1][1] / GRADES[0][1]

    def _ask(self, asked: Sequence[Position], told: bool = True) -> Iterator[Evaluation]:
        for begin in range(0, len(asked), self.chunk):
            part = asked[begin : begin + self.chunk]
            answers = self.judge(part, symmetry=self.options["symmetry"])
            if told:
                self.tell(len(part))
            yield from answers

    # ---- by the network alone -----------------------------------------------------------------------------------

    def _alone(self, told: bool) -> Data:
        positions = self._positions([None] * len(self.evaluations))
        choices, afterwards = self._judge_choices(told)
        moves = [
            move_entry(self.game, number, positions, self.evaluations[number - 1], choices.get(number), {})
            for number in range(1, len(positions))
        ]
        blamed = [move for move in moves if move.get("grade", GOOD) != GOOD and "best" in move]
        lines = {move["number"]: [move["best"]] for move in blamed}
        self._continue({number: afterwards[number] for number in lines if number in afterwards}, lines)
        for move in blamed:
            move |= variation(self.game.positions[move["number"] - 1], lines[move["number"]], "best_pv")
        return self._report(positions, moves)

    def _judge_choices(self, told: bool) -> tuple[dict[int, Data], dict[int, tuple[Position, Evaluation]]]:
        """By move number, where another move than the network's first choice was played: what it says of the position
        after that choice, and where the game goes on there the position and the whole evaluation.
        """
        afterwards: dict[int, Position] = {}
        for number, evaluation in enumerate(self.evaluations[: len(self.game.moves)], 1):
            if evaluation is None or evaluation.win is None or not self._is_movers_turn(number):
                continue
            if evaluation.best == self.game.moves[number - 1]:
                if told:
                    self.tell(1)
            else:
                afterwards[number] = self._after(number, evaluation.best)
        answers = iter(self._ask([position for position in afterwards.values() if not position.is_over], told))
        choices: dict[int, Data] = {}
        going: dict[int, tuple[Position, Evaluation]] = {}
        for number, position in afterwards.items():
            if not position.is_over:
                going[number] = position, next(answers)
                choices[number] = {"to_play": side_of(position), **numbers(going[number][1])}
            elif outcome_of(position) is not None:  # else what it is worth, agreement about dead stones decides
                choices[number] = {"to_play": side_of(position), **final_numbers(position, None)}
        return choices, going

    def _continue(self, going: dict[int, tuple[Position, Evaluation]], lines: dict[int, list[str]]) -> None:
        """Lengthen variations by the network's first choices, all of them at once, ply by ply."""
        for left in reversed(range(CONTINUED - 1)):
            following: dict[int, Position] = {}
            for number, (position, evaluation) in going.items():
                lines[number].append(evaluation.best)
                after = self.game.game.playing.follow(position, position.to_play, evaluation.best)
                if left and not after.is_over:
                    following[number] = after
            answers = iter(self._ask(list(following.values()), told=False))
            going = {number: (position, next(answers)) for number, position in following.items()}

    def _is_movers_turn(self, number: int) -> bool:
        return side_of(self.game.positions[number - 1]) == self.game.players[number - 1]

    def _after(self, number: int, move: str) -> Position:
        before = self.game.positions[number - 1]
        return self.game.game.playing.follow(before, before.to_play, move)

    # ---- by search ----------------------------------------------------------------------------------------------

    def _search(
        self,
        plies: Sequence[int],
        visits: int,
        all_beside: bool,
        numbers_beside: Collection[int] | None = None,
        told: bool = True,
    ) -> None:
        """Search positions by ply, and beside moves that got no visit (or `all_beside`: that are not the search's
        choice; of `numbers_beside`, if given) the position after the choice.
        """
        from keima.review import variations

        evaluator = cast("Evaluator", self.judge)
        step = variations.together(visits)
        for first in range(0, len(plies), step):
            part = plies[first : first + step]
            found = variations.search_positions(
                [self.game.positions[ply] for ply in part], evaluator, self.options, visits
            )
            self.results.update(zip(part, found, strict=True))
            if told:
                self.tell(len(part))
            wanted = [ply + 1 for ply in part if self._is_unsearched(ply, all_beside)]
            wanted = [number for number in wanted if numbers_beside is None or number in numbers_beside]
            self._search_choices(wanted, evaluator, visits)

    def _is_unsearched(self, ply: int, also_searched: bool) -> bool:
        """Was another move played than the search's choice, and did it get no visit?"""
        result = self.results[ply]
        if result is None or not result.moves or ply == len(self.game.moves) or not self._is_movers_turn(ply + 1):
            return False
        played = self.game.moves[ply]
        return played != result.moves[0].move if also_searched else result.move(played) is None

    def _search_choices(self, wanted: Sequence[int], evaluator: Evaluator, visits: int) -> None:
        """Search the positions after the search's own choices in place of moves, by number."""
        from keima.review import variations

        choices = {number: result.moves[0].move for number in wanted if (result := self.results[number - 1])}
        afterwards = [self._after(number, move) for number, move in choices.items()]
        found = variations.search_positions(afterwards, evaluator, self.options, visits)
        for (number, move), position, result in zip(choices.items(), afterwards, found, strict=True):
            if result is not None:
                told = {**numbers(result), "pv": result.principal_variation}
            elif outcome_of(position) is not None:
                told = final_numbers(position, None)
            else:
                continue
            self.beside[number] = {"to_play": side_of(position), "choice": move, **told}

    def _beside(self, number: int, choice: str | None) -> Data | None:
        """What the search of the position after this choice in place of a move says, where it was made."""
        found = self.beside.get(number)
        return found if found is not None and found["choice"] == choice else None

    def _searched(self) -> Data:
        """The report by search; what the network alone says is kept beside it."""
        from keima.review import variations

        results = [self.results[ply] for ply in range(len(self.game.positions))]
        searched = [
            None if result is None else variations.searched_numbers(position, result)
            for position, result in zip(self.game.positions, results, strict=True)
        ]
        positions = self._positions(searched)
        moves = []
        for number, played in enumerate(self.game.moves, 1):
            before, result, choice, facts = self.game.positions[number - 1], results[number - 1], None, {}
            if result is not None and self._is_movers_turn(number):
                facts = variations.against_search(before, played, result)
                after = results[number]
                facts |= {"after_visits": after.visits} if after is not None else {}
                other = next(side for side in self.game.game.sides if side != self.game.players[number - 1])
                choice = positions[number] if facts.get("place") == 1 else variations.after_best(result, other)
                if facts.get("place") != 1 and self._beside(number, facts.get("best")):
                    choice = self._beside(number, facts.get("best"))
            move = move_entry(self.game, number, positions, self.evaluations[number - 1], choice, facts)
            if move.get("grade", GOOD) != GOOD and result is not None and result.moves:
                line = result.moves[0].pv
                longer = (line[0], *(self._beside(number, line[0]) or {}).get("pv", ()))
                line = max(line, longer, key=len)[: variations.VARIATION_LENGTH]
                move |= variation(before, line, "best_pv")
            moves.append(move)
        return self._report(positions, moves)

    # ---- the report ---------------------------------------------------------------------------------------------

    def _positions(self, searched: Sequence[Data | None]) -> list[Data]:
        return position_entries(self.game, self.evaluations, searched, self.opinions)

    def _report(self, positions: list[Data], moves: list[Data]) -> Data:
        game, playing = self.game, self.game.game.playing
        if self.second is not None:
            for move in moves:
                told = second_of_move(game, move["number"], self.opinions)
                move |= {"second": told} if told else {}
        network = {name: fact for name, fact in self.network.items() if name != "caution"}
        report: Data = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "keima": _version(),
            "key": review_key(game, network["sha256"], self.options),
            "network": network,
            "options": self.options,
            "warnings": list(_warnings(game, self.network, self.second is not None)),
            "grades": thresholds(playing),
            "game": game.facts,
            "positions": positions,
            "moves": moves,
            "mistakes": _mistakes(moves, lambda move: severity(move, playing)),
            "players": {side: self._player(side, positions, moves) for side in sorted(game.game.sides)},
        }
        return report | ({"second": self._second_facts()} if self.second is not None else {})

    def _second_facts(self) -> Data:
        assert self.second is not None
        return {"name": self.second.name, "judge": self.options.get("judge", "")}

    def _player(self, side: str, positions: Sequence[Data], moves: Sequence[Data]) -> Data:
        """One player's averages, and by the second judge's word `second`."""
        own = [move for move in moves if move["player"] == side]
        summary = summarise(own)
        first = self.game.game.sides[0]
        chances = [winrate_of(position, first) for position in positions if "win" in position]
        summary |= _accuracy(chances, moves, side)
        told = [{**move["second"], "player": move["player"]} for move in moves if "second" in move]
        if told:
            mine = summarise([move for move in told if move["player"] == side])
            second = [_of(position, first) for position in positions if "second" in position]
            summary["second"] = {**mine, **_accuracy(second, told, side)}
        return summary


def _of(position: Data, side: str) -> float:
    chances: float = position["second"]["winrate"]
    return chances if position["to_play"] == side else 1 - chances


def _accuracy(chances: Sequence[float], moves: Sequence[Data], side: str) -> Data:
    judged = [(move["player"], float(move["accuracy"])) for move in moves if "accuracy" in move]
    found = game_accuracy(chances, judged, side)
    return {} if found is None else {"accuracy": round(found, 2)}


def _mistakes(moves: Iterable[Data], severe: Callable[[Data], float]) -> list[int]:
    """The numbers of the moves that a judge blames, worst first; the second judge's word goes before the first's."""
    blamed = []
    for move in moves:
        second = move.get("second", {})
        if (move.get("grade", GOOD), second.get("grade", GOOD)) != (GOOD, GOOD):
            blamed.append((severe(second) if second else severe(move), severe(move), move["number"]))
    return [number for *_, number in sorted(blamed, key=lambda entry: (-entry[0], -entry[1], entry[2]))]


def _warnings(game: ReviewGame, network: Data, has_second: bool) -> Iterator[str]:
    """What a reader should know before trusting the review."""
    if game.problem is not None:
        yield game.facts["problem"]
    if network.get("caution") and not has_second:
        yield network["caution"]
    boards, sides = network.get("boards"), [game.facts.get(name) for name in ("xsize", "ysize")]
    if boards and any(side is not None and not boards[0] <= side <= boards[1] for side in sides):
        yield Note(
            "{name} learned on boards from {least}×{least} to {most}×{most}; "
            "what it says of a {xsize}×{ysize} board may be far off",
            "warning.boards",
            name=network["name"],
            least=boards[0],
            most=boards[1],
            xsize=sides[0],
            ysize=sides[1],
        )


def _version() -> str:
    from keima import __version__

    return __version__
