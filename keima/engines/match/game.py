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
    """Seconds for each side: main time, and an increment a move or Japanese byo-yomi periods of `period` each."""

    main: float
    increment: float = 0.0
    periods: int = 0
    period: float = 0.0

    @staticmethod
    def parse(text: str) -> TimeControl:
        """Read "300", "60+0.6" (increment) or "60/3x10" (periods of ten seconds). Raises BadRequest: none of these."""
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
        return None if used >= clock.periods else replace(clock, main=0.0, periods=clock.periods - used)


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
        notes: what else happened.
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
    """A game under way; when it has stopped, the `keima.games.playing.Table` that `Playing.settle` sees."""

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
        self.limit = rules.max_plies
        self.names = (players[FIRST].name, players[SECOND].name)
        self.scorer = rules.scorer.name if rules.scorer else None
        self.note = self.notes.append

    @property
    def position(self) -> Position:
        return self.state.position

    def play(self, seeds: Sequence[int]) -> Ending:
        for side, (player, seed) in enumerate(zip(self.players, seeds, strict=True)):
            try:
                player.new_game(self.state, seed)
            except EngineFault as fault:
                self._unless_interrupted()
                return self._forfeit(side, fault.kind, str(fault))
        self._moves(self.limit)
        verdict = None if self.lost else self.playing.settle(self)
        if verdict is not None:
            return self._ending(verdict)
        assert self.lost is not None
        return self.lost

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
        letter = self.sides[side]
        if self.rules.time and state.clocks and not state.clean_up:
            clock = self.rules.time.after(state.clocks[letter], spent)
            if clock is None:
                return self._lost(side, "T", "time")
            state.clocks[letter] = clock
        state.moves.append((letter, choice.move))
        state.position = state.position.play(choice.move)
        self.record = self.playing.follow(self.record, letter, choice.move)
        return None

    def _lost(self, side: int, how: str, reason: str, fault: Fault | None = None) -> Ending:
        winner = 1 - side
        return self._ending(Verdict(winner, self.playing.result(winner, how), reason), fault)

    def _forfeit(self, side: int, kind: str, detail: str) -> Ending:
        reason = f"{kind} of {self.players[side].name}"
        self.notes.append(f"{reason}: {detail}")
        return self._lost(side, "F", reason, Fault(side, kind, detail))

    def _ending(self, verdict: Verdict, fault: Fault | None = None) -> Ending:
        how = (verdict.winner, verdict.result, verdict.reason, fault)
        seconds = (self.seconds[0], self.seconds[1])
        return Ending(self.record, *how, seconds, len(self.state.moves), tuple(self.notes))

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

    def dead_stones(self) -> tuple[frozenset[str], frozenset[str]]:
        """Both players' words."""
        return self._opinion(self.players[FIRST]), self._opinion(self.players[SECOND])

    def _opinion(self, player: Player) -> frozenset[str]:
        """The stones dead for that player; none if it cannot say."""
        try:
            return player.dead_stones(self.state) or frozenset()
        except EngineFault as fault:
            self._unless_interrupted()
            self.notes.append(f"{player.name} cannot name dead stones: {fault}")
            return frozenset()
