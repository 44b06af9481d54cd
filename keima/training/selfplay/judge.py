"""The judge: games between the networks of a run, for Elo and, with judge.gate, to choose who plays.

A generation meets, in pairs of games from one opening with colours swapped and without noise:

- with judge.gate first the one accepted last: the sequential test (SPRT, `keima.elo`) of judge.elo0 against judge.elo1,
  at most judge.games games; if it is undecided then, the likelier of the two hypotheses holds (LLR above 0). AlphaGo
  Zero asked for 55 % of 400 games, +35 Elo;
- the generation judged before it, and one about half as old;
- the files in judge.opponents.

The pairs count in the order of their numbers, so a match's result follows from its networks and the run's seed,
whichever games end first. A journal keeps every move, so a judge that was killed goes on where it stood.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from keima.elo import Sprt, Tally
from keima.inference.evaluator import Evaluator
from keima.plain import Fields
from keima.systems.network import Network
from keima.training.selfplay.checks import DONE, opponent, read_run
from keima.training.selfplay.game import SelfplayGame
from keima.training.selfplay.journal import Journal
from keima.training.selfplay.learner import Turns
from keima.training.selfplay.networks import list_networks, read_network
from keima.training.selfplay.play import GROUPS, Player, Players
from keima.training.selfplay.ratings import Rating, Result, best_network, draw_curve, list_ratings, write_rating
from keima.training.selfplay.recipe import LoopRecipe
from keima.training.selfplay.store import Store

POLL_SECONDS = 1.0
"""Between two looks for networks."""


def judge(
    store: Store,
    folder: Path,
    tell: Callable[[Fields], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
    turns: Turns | None = None,
) -> None:
    """Judge the networks of a run, oldest first, until the learner has finished and all are judged.

    Args:
        store: of the run.
        folder: on this machine, where journals of its matches are kept.
        tell: is told what it is doing: generation, opponent, wins, draws, losses.
        stopped: asked between two batches; it returns once this is true.
        turns: of this machine, where a learner is on it too.

    Raises:
        BadStore, BadRequest: the run cannot be read, or its networks cannot meet.
    """
    recipe = read_run(store)
    if not recipe.judge.games:
        return
    court = _Court(store, recipe, folder, tell, stopped, turns)
    while not stopped():
        finished = store.exists(DONE)
        judged = set(list_ratings(store))
        waiting = [each for each in list_networks(store) if each and each % recipe.judge.every == 0]
        waiting = [each for each in waiting if each not in judged]
        if waiting:
            court.judge(waiting[0])
        elif finished:
            return
        else:
            tell({"doing": "waits for a network"})
            time.sleep(POLL_SECONDS)


class _Court:
    """What all matches of a run share."""

    def __init__(
        self,
        store: Store,
        recipe: LoopRecipe,
        folder: Path,
        tell: Callable[[Fields], None],
        stopped: Callable[[], bool],
        turns: Turns | None,
    ) -> None:
        self.store, self.recipe, self.folder = store, recipe, folder
        self.tell, self.stopped, self.turns = tell, stopped, turns

    def judge(self, generation: int) -> None:
        """Play a generation's matches and keep what they say, unless it is stopped meanwhile."""
        rules, network = self.recipe.judge, read_network(self.store, generation)
        accepted, reason = True, ""
        results = []
        champion = best_network(self.store, self.recipe) if rules.gate else None
        if champion is not None:
            test = Sprt(rules.elo0, rules.elo1)
            tally = self._match(generation, network, champion, read_network(self.store, champion), test)
            if tally is None:
                return
            results.append(_result(champion, tally))
            accepted, reason = decide(test, tally)
        for other in opponents_of(generation, rules.every):
            if other != champion:
                tally = self._match(generation, network, other, read_network(self.store, other))
                if tally is None:
                    return
                results.append(_result(other, tally))
        for name in rules.opponents:
            tally = self._match(generation, network, name, opponent(self.recipe, name, network))
            if tally is None:
                return
            results.append(_result(name, tally))
        write_rating(self.store, Rating(generation, tuple(results), accepted, reason))
        for journal in self.folder.glob(f"match-{generation:06d}-*.jsonl"):
            journal.unlink()
        draw_curve(self.store)

    def _match(
        self, generation: int, network: Network, other: int | str, opposed: Network, test: Sprt | None = None
    ) -> Tally | None:
        """The result of a match, of the generation; None where it was stopped."""
        rules = self.recipe.judge
        games = 2 * max(1, rules.games // 2)
        places = min(self.recipe.games.side_by_side, games)
        recipe = replace(self.recipe, games=replace(self.recipe.games, side_by_side=places))
        options = self.recipe.search.precision, max(1, places // GROUPS), self.recipe.training.run.threads or None
        name = f"{other:06d}" if isinstance(other, int) else f"file{rules.opponents.index(other)}"
        journal = Journal(self.folder / f"match-{generation:06d}-{name}.jsonl")
        numbers = (number for number in range(games) if number not in journal.games)
        named = ((network, generation), (opposed, other if isinstance(other, int) else -1))
        both = [Player(Evaluator(each, "auto", *options), number) for each, number in named]
        record = Record(test)
        with closing(journal):
            players = Players(recipe, both, lambda: next(numbers, None), journal, rules.visits or None)
            for game in self._games(players):
                record.add(game)
                counts = {"wins": record.tally.wins, "draws": record.tally.draws, "losses": record.tally.losses}
                self.tell({"doing": "plays a match", "generation": generation, "opponent": other, **counts})
                if record.over:
                    break
        return record.tally if record.over or record.games == games else None

    def _games(self, players: Players) -> Iterator[SelfplayGame]:
        """The games as they end, until there are no more or it is stopped."""
        while not players.idle and not self.stopped():
            if self.turns is not None:
                self.turns.wait(self.stopped)
            yield from players.step()


class Record:
    """The games of a match, of the first network.

    Args:
        test: with whose verdict it ends.

    Attributes:
        tally: of the pairs from number 0 on that are whole, up to the one with which the test ends.
        over: has it ended?
    """

    def __init__(self, test: Sprt | None = None) -> None:
        self.tally = Tally()
        self.over = False
        self._test = test
        self._points: dict[int, float] = {}

    @property
    def games(self) -> int:
        """How many have been added."""
        return len(self._points)

    def add(self, game: SelfplayGame) -> None:
        """A game has ended: in those of even numbers the first side is the first network's."""
        assert game.verdict is not None
        won = game.verdict.winner
        self._points[game.number] = 0.5 if won is None else float(won == game.number % 2)
        while not self.over and {self.tally.games, self.tally.games + 1} <= self._points.keys():
            both = [self._points[self.tally.games + k] for k in (0, 1)]
            pairs = [count + (k == 2 * sum(both)) for k, count in enumerate(self.tally.pairs)]
            wins, draws, losses = self.tally.wins, self.tally.draws, self.tally.losses
            self.tally = Tally(
                wins + both.count(1.0),
                draws + both.count(0.5),
                losses + both.count(0.0),
                (pairs[0], pairs[1], pairs[2], pairs[3], pairs[4]),
            )
            self.over = self._test is not None and self._test.verdict(self.tally) is not None


def opponents_of(generation: int, every: int) -> list[int]:
    """The earlier generations that one meets: the one judged before it, and one about half as old."""
    half = generation // 2 // every * every
    return list(dict.fromkeys((generation - every, half)))


def decide(test: Sprt, tally: Tally) -> tuple[bool, str]:
    """Is a generation accepted, and why."""
    ratio, verdict = test.ratio(tally), test.verdict(tally)
    counted = f"{tally.wins} wins, {tally.draws} draws, {tally.losses} losses"
    how = f"LLR {ratio:.2f} of ({test.lower:.2f}, {test.upper:.2f})"
    if verdict is None:
        return ratio > 0, f"undecided after {tally.games} games ({counted}; {how}): the likelier holds"
    return verdict == "H1", f"{verdict} ({counted}; {how})"


def _result(opponent: int | str, tally: Tally) -> Result:
    return Result(opponent, tally.wins, tally.draws, tally.losses, tally.pairs)
