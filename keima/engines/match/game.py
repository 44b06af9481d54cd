"""One game between two players: moves checked, clocks kept, faults scored, the end settled by the game's `Playing`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from keima.engines.gtp.client import EngineFault
from keima.engines.match.players import PASS, RESIGN, Choice, GameState, Player
from keima.errors import BadRequest
from keima.games.game import GAMES
from keima.games.playing import Verdict
from keima.games.position import Position
from keima.search.limits import Clock

FIRST, SECOND = 0, 1
"""The first and the second of the game's sides."""


class Interrupted(Exception):
    """The game was broken off; it does not count."""


@dataclass(frozen=True)
class TimeControl:
    """Time for each side: main time, and either an increment a move or Japanese byo-yomi periods.

    Attributes:
        main: seconds.
        increment: seconds added after each move.
        periods: byo-yomi periods.
        period: seconds of each.
    """

    main: float
    increment: float = 0.0
    periods: int = 0
    period: float = 0.0

    @staticmethod
    def parse(text: str) -> TimeControl:
        """Read "300", "60+0.6" (increment) or "60/3x10" (three periods of ten seconds).

        Raises:
            BadRequest: none of these.
        """
        number = r"[0-9]+(?:\.[0-9]+)?"
        match = re.fullmatch(rf"({number})(?:\+({number})|/([1-9][0-9]?)x({number}))?", text)
        if not match or (not float(match[1]) and not match[2] and not match[3]):
            raise BadRequest(f"--time {text!r}: expected MAIN, MAIN+INCREMENT or MAIN/PERIODSxSECONDS, in seconds")
        return TimeControl(float(match[1]), float(match[2] or 0), int(match[3] or 0), float(match[4] or 0))

    def start(self) -> Clock:
        """The clock before the first move."""
        return Clock(self.main, self.increment, self.period, self.periods)

    def after(self, clock: Clock, seconds: float) -> Clock | None:
        """The clock after a move that took so long; None if the flag fell."""
        left = clock.main - seconds
        if left >= 0:
            return replace(clock, main=left + self.increment)
        used = int(-left // clock.period) if clock.period else 0
        if used >= clock.periods:
            return None
        return replace(clock, main=0.0, periods=clock.periods - used)


@dataclass(frozen=True)
class Fault:
    """What an engine did wrong: who (0 moved first), what kind (`EngineFault.kind`), in words."""

    side: int
    kind: str
    detail: str


@dataclass(frozen=True)
class Ending:
    """A game that has been played.

    Attributes:
        position: the last one, with all moves, also those made while the score was settled.
        winner: 0 (the first side), 1, or None for a draw.
        result: as the game's records write it.
        reason: how it ended, in words: "score (agreed)", "resignation", "checkmate", "timeout of NAME", ...
        fault: of the engine that lost by one.
        seconds: thinking time of each side.
        plies: moves made after the opening.
        notes: what else happened, for the record.
    """

    position: Position
    winner: int | None
    result: str
    reason: str
    fault: Fault | None
    seconds: tuple[float, float]
    plies: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GameRules:
    """How games are played.

    Attributes:
        time: time control; None: no clock.
        max_plies: moves after the opening at which a game ends; what it is worth then, the game's `Playing` says.
        scorer: a third player that decides which stones are dead.
    """

    max_plies: int
    time: TimeControl | None = None
    scorer: Player | None = None


def play_game(
    players: Sequence[Player],
    start: Position,
    rules: GameRules,
    seeds: Sequence[int] = (0, 1),
    interrupted: Callable[[], bool] = lambda: False,
) -> Ending:
    """Play a game from `start`; `players[0]` has the first side.

    A player that raises `EngineFault` or makes an illegal move loses.

    Raises:
        Interrupted: `interrupted()` said so.
        KeimaError: not a fault of an engine but of the match: a network that cannot take this board, say.
    """
    return _Game(players, start, rules, interrupted).play(seeds)


class _Game:
    def __init__(
        self, players: Sequence[Player], start: Position, rules: GameRules, interrupted: Callable[[], bool]
    ) -> None:
        self.players = players
        self.rules = rules
        self.interrupted = interrupted
        self.playing = GAMES[start.game].playing
        self.sides = GAMES[start.game].letters
        clocks = {side: rules.time.start() for side in self.sides} if rules.time else None
        self.state = GameState(start, start, [], clocks)
        self.record = start  # as `state.position`, with the moves before a clean-up
        self.seconds = [0.0, 0.0]
        self.notes: list[str] = []
        self.lost: Ending | None = None

    def play(self, seeds: Sequence[int]) -> Ending:
        """Play it to the end."""
        for side, (player, seed) in enumerate(zip(self.players, seeds, strict=True)):
            try:
                player.new_game(self.state, seed)
            except EngineFault as fault:
                self._unless_interrupted()
                return self._forfeit(side, fault.kind, str(fault))
        self._moves(self.rules.max_plies)
        verdict = None if self.lost else self.playing.settle(_Table(self))
        if verdict is None:
            assert self.lost is not None
            return self.lost
        return self._ending(verdict)

    def _unless_interrupted(self) -> None:
        """Go on, unless the match was asked to stop: what goes wrong then is nobody's fault."""
        if self.interrupted():
            raise Interrupted from None

    def _moves(self, most: int) -> None:
        """Move by move until the rules end the game, someone has `lost`, or so many were made."""
        for _ in range(most):
            if self.lost or self.playing.stops(self.state.position):
                return
            self.lost = self._one_move(self.sides.index(self.state.position.to_play))

    def play_on(self, position: Position, most: int) -> Position | None:
        """Play from another position, in which nothing is agreed on; see `Table.play_on`."""
        self.state.position = position
        self.state.clean_up = True
        self._moves(most)
        return None if self.lost else self.state.position

    def _one_move(self, side: int) -> Ending | None:
        """Ask for a move and make it."""
        state, began = self.state, time.monotonic()
        self._unless_interrupted()
        try:
            choice = self.players[side].move(state)
        except EngineFault as fault:
            self._unless_interrupted()
            return self._forfeit(side, fault.kind, str(fault))
        spent = time.monotonic() - began
        self.seconds[side] += spent
        self._unless_interrupted()
        if choice.move == RESIGN and state.clean_up:
            choice = Choice(PASS)
        if choice.move == RESIGN:
            return self._lost(side, "R", "resignation")
        if not state.position.is_legal(choice.move):
            return self._forfeit(side, "illegal", f"illegal move {choice.move}")
        if state.clocks and not state.clean_up and not self._tick(side, spent):
            return self._lost(side, "T", "time")
        self._make(choice.move)
        return None

    def _tick(self, side: int, spent: float) -> bool:
        """Take the time off the side's clock; False if its flag fell."""
        assert self.state.clocks is not None
        assert self.rules.time is not None
        letter = self.sides[side]
        clock = self.rules.time.after(self.state.clocks[letter], spent)
        if clock is not None:
            self.state.clocks[letter] = clock
        return clock is not None

    def _make(self, move: str) -> None:
        state = self.state
        side = state.position.to_play
        state.moves.append((side, move))
        state.position = state.position.play(move)
        self.record = self.playing.follow(self.record, side, move)

    def _lost(self, side: int, how: str, reason: str, fault: Fault | None = None) -> Ending:
        """The side loses."""
        winner = 1 - side
        return self._ending(Verdict(winner, self.playing.result(winner, how), reason), fault)

    def _forfeit(self, side: int, kind: str, detail: str) -> Ending:
        """The side loses by a fault."""
        reason = f"{kind} of {self.players[side].name}"
        self.notes.append(f"{reason}: {detail}")
        return self._lost(side, "F", reason, Fault(side, kind, detail))

    def _ending(self, verdict: Verdict, fault: Fault | None = None) -> Ending:
        plies = len(self.state.moves)
        seconds = (self.seconds[0], self.seconds[1])
        notes = tuple(self.notes)
        return Ending(self.record, verdict.winner, verdict.result, verdict.reason, fault, seconds, plies, notes)

    def ask_scorer(self) -> frozenset[str] | float | None:
        """See `Table.ask_scorer`; what it does wrong is noted."""
        scorer = self.rules.scorer
        assert scorer is not None
        try:
            scorer.new_game(self.state, 0)
            dead = scorer.dead_stones(self.state)
            said = scorer.final_score(self.state) if dead is None else dead
        except EngineFault as fault:
            self._unless_interrupted()
            self.notes.append(f"scorer {scorer.name}: {fault}")
            scorer.close()
            return None
        if said is None:
            self.notes.append(f"scorer {scorer.name} cannot score")
        return said

    def opinion(self, player: Player) -> frozenset[str]:
        """The stones dead for that player; none if it cannot say."""
        try:
            return player.dead_stones(self.state) or frozenset()
        except EngineFault as fault:
            self._unless_interrupted()
            self.notes.append(f"{player.name} cannot name dead stones: {fault}")
            return frozenset()


class _Table:
    """A stopped game as `Playing.settle` sees it; the protocol `keima.games.playing.Table`."""

    def __init__(self, game: _Game) -> None:
        self._game = game
        self.position = game.state.position
        self.limit = game.rules.max_plies
        self.names = (game.players[FIRST].name, game.players[SECOND].name)
        self.scorer = game.rules.scorer.name if game.rules.scorer else None
        self.ask_scorer = game.ask_scorer
        self.play_on = game.play_on
        self.note = game.notes.append

    def dead_stones(self) -> tuple[frozenset[str], frozenset[str]]:
        """Both players' words."""
        return self._game.opinion(self._game.players[FIRST]), self._game.opinion(self._game.players[SECOND])
