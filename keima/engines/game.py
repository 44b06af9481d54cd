"""One game between two players: moves checked, clocks kept, faults scored, the end counted."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keima.engines.go_scoring import bonuses, result_of, score_without, without_history
from keima.engines.gtp_client import EngineFault
from keima.engines.players import PASS, RESIGN, Choice, GameState, Player
from keima.errors import BadRequest
from keima.games import chess, go
from keima.search.limits import Clock

FIRST, SECOND = 0, 1
"""Black and White in Go, White and Black in chess."""


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
        position: the last one, with all moves (Go: those of a clean-up too).
        winner: 0 (moved first), 1, or None for a draw.
        result: as SGF or PGN writes it.
        reason: how it ended, in words: "score (agreed)", "resignation", "checkmate", "timeout of NAME", ...
        fault: of the engine that lost by one.
        seconds: thinking time of each side.
        plies: moves made after the opening.
        notes: what else happened, for the record.
    """

    position: Any
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
        max_plies: moves after the opening at which a game ends: Go is counted as it stands, chess drawn.
        scorer: a third player that decides which stones are dead.
    """

    max_plies: int
    time: TimeControl | None = None
    scorer: Player | None = None


def play_game(
    players: Sequence[Player],
    start: Any,
    rules: GameRules,
    seeds: Sequence[int] = (0, 1),
    interrupted: Callable[[], bool] = lambda: False,
) -> Ending:
    """Play a game from `start`; `players[0]` has the first colour (Black in Go, White in chess).

    A player that raises `EngineFault` or makes an illegal move loses.

    Raises:
        Interrupted: `interrupted()` said so.
        KeimaError: not a fault of an engine but of the match: a network that cannot take this board, say.
    """
    return _Game(players, start, rules, interrupted).play(seeds)


class _Game:
    def __init__(
        self, players: Sequence[Player], start: Any, rules: GameRules, interrupted: Callable[[], bool]
    ) -> None:
        self.players = players
        self.rules = rules
        self.interrupted = interrupted
        self.is_go = isinstance(start, go.Position)
        self.sides = ("B", "W") if self.is_go else ("w", "b")
        clocks = {side: rules.time.start() for side in self.sides} if rules.time else None
        self.state = GameState(start, start, [], clocks)
        self.record = start  # as `state.position`, with the moves before a clean-up
        self.seconds = [0.0, 0.0]
        self.notes: list[str] = []

    def play(self, seeds: Sequence[int]) -> Ending:
        """Play it to the end."""
        for side, (player, seed) in enumerate(zip(self.players, seeds, strict=True)):
            try:
                player.new_game(self.state, seed)
            except EngineFault as fault:
                self._unless_interrupted()
                return self._forfeit(side, fault.kind, str(fault))
        ending = self._moves(self.rules.max_plies)
        if ending is not None:
            return ending
        return self._count() if self.is_go else self._chess_result()

    def _unless_interrupted(self) -> None:
        """Go on, unless the match was asked to stop: what goes wrong then is nobody's fault."""
        if self.interrupted():
            raise Interrupted from None

    def _moves(self, most: int) -> Ending | None:
        """Move by move until the rules end the game, or so many were made; an ending if someone lost before."""
        for _ in range(most):
            if self._over():
                return None
            ending = self._one_move(self.sides.index(self.state.position.to_play))
            if ending is not None:
                return ending
        return None

    def _over(self) -> bool:
        position = self.state.position
        return bool(position.is_over or (not self.is_go and position.claimable))

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
        self.record = self.record.play_as(side, move) if self.is_go else state.position

    def _lost(self, side: int, how: str, reason: str, fault: Fault | None = None) -> Ending:
        """The side loses."""
        winner = 1 - side
        result = f"{self.sides[winner]}+{how}" if self.is_go else ("1-0", "0-1")[winner]
        return self._ending(winner, result, reason, fault)

    def _forfeit(self, side: int, kind: str, detail: str) -> Ending:
        """The side loses by a fault."""
        reason = f"{kind} of {self.players[side].name}"
        self.notes.append(f"{reason}: {detail}")
        return self._lost(side, "F", reason, Fault(side, kind, detail))

    def _ending(self, winner: int | None, result: str, reason: str, fault: Fault | None = None) -> Ending:
        plies = len(self.state.moves)
        seconds = (self.seconds[0], self.seconds[1])
        return Ending(self.record, winner, result, reason, fault, seconds, plies, tuple(self.notes))

    def _chess_result(self) -> Ending:
        position: chess.Position = self.state.position
        outcome = position.outcome or position.claimable
        if outcome is None:
            return self._ending(None, "1/2-1/2", f"{self.rules.max_plies} plies without an end")
        winner = None if outcome.winner is None else self.sides.index(outcome.winner)
        return self._ending(winner, outcome.result, outcome.reason)

    def _count(self) -> Ending:
        """Score a game of Go (`go_scoring`)."""
        position = self.state.position
        if position.is_no_result:
            return self._ending(None, "Void", "no result: a position occurred three times")
        if not position.is_over:
            return self._scored(score_without(position), f"score at {self.rules.max_plies} moves")
        scored = self._by_scorer() if self.rules.scorer else None
        if scored is not None:
            return self._scored(scored, f"score (by {self.rules.scorer.name})")  # type: ignore[union-attr]
        opinions = [self._opinion(player) for player in self.players]
        scores = [score_without(position, dead) for dead in opinions]
        if scores[0] == scores[1]:
            self._note_dead("dead", opinions[0])
            return self._scored(scores[0], "score (agreed)")
        for player, dead, score in zip(self.players, opinions, scores, strict=True):
            self._note_dead(f"{player.name} counts {result_of(score)}, dead", dead)
        if position.rules.scoring == "TERRITORY":
            return self._scored(score_without(position, opinions[0] & opinions[1]), "score (dead for both)")
        return self._clean_up()

    def _by_scorer(self) -> float | None:
        """The score a third player gives; None if it fails."""
        scorer = self.rules.scorer
        assert scorer is not None
        try:
            scorer.new_game(self.state, 0)
            dead = scorer.dead_stones(self.state)
            if dead is not None:
                self._note_dead("dead", dead)
                return score_without(self.state.position, dead)
            score: float | None = getattr(scorer, "final_score", lambda state: None)(self.state)
        except EngineFault as fault:
            self._unless_interrupted()
            self.notes.append(f"scorer {scorer.name}: {fault}")
            scorer.close()
            return None
        if score is None:
            self.notes.append(f"scorer {scorer.name} cannot score")
        return score

    def _opinion(self, player: Player) -> frozenset[str]:
        """The stones dead for that player; none if it cannot say."""
        try:
            return player.dead_stones(self.state) or frozenset()
        except EngineFault as fault:
            self._unless_interrupted()
            self.notes.append(f"{player.name} cannot name dead stones: {fault}")
            return frozenset()

    def _note_dead(self, what: str, dead: frozenset[str]) -> None:
        self.notes.append(f"{what}: {' '.join(sorted(dead)) or 'none'}")

    def _clean_up(self) -> Ending:
        """Play on until dead stones are taken off; then all that stand are alive."""
        bonus = bonuses(self.state.position)
        self.state.position = without_history(self.state.position)
        self.state.clean_up = True
        points = self.state.position.xsize * self.state.position.ysize
        ending = self._moves(2 * points)
        if ending is not None:
            return ending
        return self._scored(self.state.position.score() + bonus, "score (after clean-up)")

    def _scored(self, score: float, reason: str) -> Ending:
        winner = None if score == 0 else SECOND if score > 0 else FIRST
        return self._ending(winner, result_of(score), reason)
