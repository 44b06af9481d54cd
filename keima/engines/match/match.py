"""A match: many games between two players, kept as they end, resumed after a kill, counted with their uncertainty.

    >>> from keima.engines.match.match import Match, MatchOptions
    >>> match = Match("net.bin.gz,visits=100", "gtp:gnugo --mode gtp", MatchOptions(games=40))  # doctest: +SKIP
    >>> match.run().tally.elo_interval  # doctest: +SKIP

What a folder says of games that have ended (`results`) is never played again. Openings and seeds follow from the
match's seed and the game's number, so a match that was interrupted continues as it would have gone.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from keima.elo import Sprt
from keima.engines.match.game import GameRules, Interrupted, TimeControl, play_game
from keima.engines.match.openings import BUILT_IN, load_openings
from keima.engines.match.players import Player, Settings, Spec, parse_player
from keima.engines.match.results import GameResult, MatchFolder, Summary, record_text, summarise
from keima.engines.match.roster import Networks, PolicyPlayer, SearchPlayer, make_player
from keima.errors import BadRequest, KeimaError
from keima.games.game import GAMES
from keima.plain import Data

A, B = 0, 1


class MatchStopped(KeimaError):
    """A match that cannot go on: an engine that fails game after game."""


@dataclass(frozen=True)
class MatchOptions:
    """How a match is played.

    Attributes:
        games: an odd number leaves one opening played once.
        size: (columns, rows), in a game that has a choice of boards; None for the usual one.
        rules, komi: of a game that has a choice of them; None for what every program of it can play, and for the usual
            komi of the rules.
        openings, opening_plies: source and plies as `load_openings` takes them.
        swap: each opening is played twice, colours swapped.
        seed: of openings, searches and random choices.
        parallel: games at once; None: one a core, or one in all where time counts.
        time: time control as `TimeControl.parse` reads it, or None.
        max_plies: moves at which a game ends; None: the game's own limit (Go 3 for each point, chess 600).
        max_faults: the match stops when one player was at fault in more games since it was begun or resumed.
        scorer: a third player that decides which stones are dead, in a game where players may differ.
        sprt: stop when this test is decided.
    """

    games: int = 100
    size: tuple[int, int] | None = None
    rules: str | None = None
    komi: float | None = None
    openings: str = BUILT_IN
    opening_plies: int | None = None
    swap: bool = True
    seed: int = 0
    parallel: int | None = None
    time: str | None = None
    max_plies: int | None = None
    max_faults: int = 5
    scorer: str | None = None
    sprt: Sprt | None = None
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if self.games < 1:
            raise BadRequest(f"a match has at least 1 game, not {self.games}")
        if self.parallel is not None and self.parallel < 1:
            raise BadRequest(f"parallel must be at least 1, not {self.parallel}")


class Match:
    """A match that is ready to run.

    Args:
        a, b: the players, as `parse_player` reads them.
        folder: where records and results are kept; None keeps nothing.

    Raises:
        BadRequest: players of different games, an option out of range, a folder that holds another match.
        BadWeights, UnsupportedNetwork: a network that cannot be loaded.
        UnsupportedPosition: a network that does not take this board or these rules.
    """

    def __init__(self, a: str, b: str, options: MatchOptions | None = None, folder: str | Path | None = None) -> None:
        self.options = options or MatchOptions()
        self.specs = (parse_player(a), parse_player(b))
        self._scorer = parse_player(self.options.scorer) if self.options.scorer else None
        self._all_specs = [spec for spec in (*self.specs, self._scorer) if spec is not None]
        self._networks = Networks()
        self.game = self._one_game()
        self.names = _names(self.specs)
        options = self.options
        self._start = start = GAMES[self.game].playing.start(options.size, options.rules, options.komi)
        self.openings = load_openings(options.openings, start, seed=options.seed, plies=options.opening_plies)
        self._rules = self._game_rules()
        self._check_players()
        self._folder = None if folder is None else MatchFolder(Path(folder), self._description())
        self._results: list[GameResult] = []
        self._players: list[Player] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def run(self, on_game: Callable[[GameResult, Summary], None] | None = None) -> Summary:
        """Play the games that have not been played yet; `on_game` hears of each that ends and where the match stands.

        Raises:
            MatchStopped: one player was at fault in too many games.
            KeimaError: whatever else made the match impossible.
        """
        self._stopping.clear()
        with self._folder or nullcontext() as folder:
            self._results = [GameResult(**line) for line in folder.lines()] if folder else []
            try:
                if not self.summary().decided:
                    self._play_on(folder, on_game)
            finally:
                if folder:
                    folder.write_summary(self.summary().to_json())
        return self.summary()

    def _play_on(self, folder: MatchFolder | None, on_game: Callable[[GameResult, Summary], None] | None) -> None:
        """Play what has not been played, keep each game that ends, stop where there is reason to."""
        done = {result.number for result in self._results}
        waiting = [number for number in range(1, self.options.games + 1) if number not in done]
        with closing(self._play(waiting)) as games:
            for result, record in games:
                if folder:
                    folder.keep(result.number, record, asdict(result))
                self._results.append(result)
                summary = self.summary()
                if on_game is not None:
                    on_game(result, summary)
                self._check_faults(result)
                if summary.decided:
                    return

    def summary(self) -> Summary:
        """Where the match stands."""
        return summarise(self._results, self.names, self.options.swap, self.options.sprt)

    @property
    def played(self) -> int:
        """Games that are in the folder already, or were played."""
        return len(self._results) or (len(self._folder.lines()) if self._folder is not None else 0)

    def stop(self) -> None:
        """End games under way, which then do not count; from any thread."""
        self._stopping.set()
        with self._lock:
            for player in self._players:
                player.stop()

    @property
    def parallel(self) -> int:
        """Games at once."""
        if self.options.parallel is not None:
            return self.options.parallel
        timed = self.options.time or any("seconds" in spec.options for spec in self.specs)
        return 1 if timed else os.cpu_count() or 1

    def _one_game(self) -> str:
        games = [self._networks.game(spec) for spec in self.specs]
        if games[0] != games[1]:
            raise BadRequest(f"A ({self.specs[A].text}) plays {games[0]}, B ({self.specs[B].text}) plays {games[1]}")
        if self._scorer is not None and self._networks.game(self._scorer) != games[0]:
            raise BadRequest(f"scorer {self._scorer.text!r}: does not play {games[0]}")
        if self._scorer is not None and not GAMES[games[0]].playing.scored:
            raise BadRequest(f"scorer {self._scorer.text!r}: the rules of {games[0]} leave nothing to score")
        return games[0]

    def _game_rules(self) -> GameRules:
        most = self.options.max_plies
        most = GAMES[self.game].playing.move_limit(self._start) if most is None else most
        if most < 1:
            raise BadRequest(f"max_plies must be at least 1, not {most}")
        return GameRules(most, TimeControl.parse(self.options.time) if self.options.time else None)

    def _check_players(self) -> None:
        """Find out before the first game what would stop every one: bad options, networks that cannot play this."""
        for spec in self._all_specs:
            player = make_player(spec, self._networks, self.options.settings)
            if isinstance(player, SearchPlayer | PolicyPlayer):
                player.warm_up(self.openings.get(0).position)
            else:
                spec.check_limits(self.options.time is not None)

    def _description(self) -> Data:
        """What makes this match this match; a folder goes on with the same only."""
        options = self.options
        line: Data = {"a": self.specs[A].text, "b": self.specs[B].text, "game": self.game}
        for spec, side in zip(self.specs, "ab", strict=True):
            if not spec.is_program:
                line[f"{side}_sha256"] = self._networks.network(spec).pedigree.sha256
        line |= {**GAMES[self.game].playing.table(self._start), "scorer": options.scorer}
        line |= {name: getattr(options.settings, name) for name in ("visits", "resign", "resign_turns")}
        line |= {"openings": self.openings.digest, "swap": options.swap, "seed": options.seed, "time": options.time}
        return {**line, "max_plies": self._rules.max_plies}

    def _check_faults(self, last: GameResult) -> None:
        if last.fault is None:
            return
        who = last.fault["player"]
        self._faults[who][last.fault["kind"]] += 1
        count = self._faults[who].total()
        if count > self.options.max_faults:
            kinds = ", ".join(f"{number} {kind}" for kind, number in self._faults[who].items())
            again = "Games played are kept; run the match again when it is mended, or allow more faults"
            faults = f"was at fault in {count} games ({kinds}); the last: {last.fault['detail']}"
            raise MatchStopped(f"{who} ({self.names['AB'.index(who)]}) {faults}. {again}")

    def _play(self, numbers: Sequence[int]) -> Generator[tuple[GameResult, str], None, None]:
        """Play these games, several at once; yields them, with their records, as they end."""
        self._faults: dict[str, Counter[str]] = {"A": Counter(), "B": Counter()}
        todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in numbers:
            todo.put(number)
        ended: queue.SimpleQueue[tuple[GameResult, str] | BaseException | None] = queue.SimpleQueue()
        workers = [
            threading.Thread(target=self._work, args=(todo, ended), name=f"game {index}", daemon=True)
            for index in range(min(self.parallel, len(numbers)))
        ]
        for worker in workers:
            worker.start()
        running = len(workers)
        try:
            while running:
                item = ended.get()
                if item is None:
                    running -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            self.stop()
            for worker in workers:
                worker.join(10.0)
            self._players.clear()

    def _work(self, todo: queue.SimpleQueue[int], ended: queue.SimpleQueue[Any]) -> None:
        """One thread: its own players, one game after another until there are none left."""
        players: list[Player] = []
        try:
            players += [make_player(spec, self._networks, self.options.settings) for spec in self._all_specs]
            with self._lock:
                self._players += players
            while not self._stopping.is_set():
                ended.put(self._one(todo.get_nowait(), players))
        except (queue.Empty, Interrupted):
            pass
        except BaseException as error:
            ended.put(error)
        finally:
            for player in players:
                player.close()
            ended.put(None)

    def _one(self, number: int, players: Sequence[Player]) -> tuple[GameResult, str]:
        """Play game `number`; its result and its record."""
        a_first = number % 2 == 1
        opening = self.openings.get((number - 1) // 2 if self.options.swap else number - 1)
        sides = players[:2] if a_first else players[1::-1]
        rules = self._rules if len(players) == 2 else replace(self._rules, scorer=players[2])
        seeds = [int(seed) for seed in np.random.SeedSequence([self.options.seed, number]).generate_state(2)]
        ending = play_game(sides, opening.position, rules, seeds, self._stopping.is_set)
        if ending.fault is not None:
            sides[ending.fault.side].close()
        names = self.names if a_first else self.names[::-1]
        return GameResult.of(number, opening, a_first, ending), record_text(number, names, opening, ending)


def _names(specs: tuple[Spec, Spec]) -> tuple[str, str]:
    """What the players are called; told apart."""
    a, b = (spec.name for spec in specs)
    return (f"{a} (A)", f"{b} (B)") if a == b else (a, b)
