"""A program that speaks GTP as a player of a match, a process of its own."""

from __future__ import annotations

import re

from keima.engines.gtp.client import EngineFault, EngineRefusal, GtpClient, split_command
from keima.engines.match.players import PASS, RESIGN, Choice, GameState, Settings, Spec, most_seconds
from keima.errors import IllegalMove
from keima.games.go.position import Position
from keima.games.go.vertices import vertex_to_xy, xy_to_vertex


class GtpPlayer:
    """It is told the rules where it knows `kata-set-rules`, else they are for its command line.

    Options: timeout (seconds an answer may take), name.
    """

    def __init__(self, spec: Spec, settings: Settings) -> None:
        self.name = spec.name
        self._command = split_command(spec.target)
        self._timeout = spec.number("timeout", settings.timeout) or settings.timeout
        self._client: GtpClient | None = None
        self._told = 0
        self._stopped = False

    def new_game(self, state: GameState, seed: int) -> None:
        """Start the program unless it runs, and set up the opening.

        Raises:
            EngineFault: it cannot be started, or does not take this board.
        """
        self._told = 0
        position = state.start
        assert isinstance(position, Position)
        try:
            client = self._running()
            square = position.xsize == position.ysize
            size = f"boardsize {position.xsize}"
            client.send(size if square else f"rectangular_boardsize {position.xsize} {position.ysize}")
            client.send("clear_board")
            if "kata-set-rules" in client.commands:
                client.send(f"kata-set-rules {position.rules}")
            client.send(f"komi {position.komi:g}")
            for colour, vertex in (*position.setup, *position.moves):
                client.send(f"play {colour} {vertex}")
            self._tell_time_control(client, state)
        except EngineRefusal as error:
            raise EngineFault("nonsense", f"cannot set up the game: {error}") from None

    def move(self, state: GameState) -> Choice:
        """What `genmove` answers (`kgs-genmove_cleanup` in the clean-up, where the program knows it)."""
        client, position = self._running(), _board(state)
        side = position.to_play
        command = f"genmove {side}"
        if state.clean_up and "kgs-genmove_cleanup" in client.commands:
            command = f"kgs-genmove_cleanup {side}"
        try:
            self._tell_moves(client, state)
            answer = self._timed(client, command, state)
        except EngineRefusal as error:
            raise EngineFault("nonsense", str(error)) from None
        move = answer.lower()
        if move == RESIGN:
            return Choice(RESIGN)
        try:
            xy = vertex_to_xy(move, position.xsize, position.ysize)
        except (IllegalMove, IndexError):
            raise EngineFault("nonsense", f"{command!r} was answered by {answer[:80]!r}") from None
        self._told += 1  # the program has played its own move
        return Choice(PASS if xy is None else xy_to_vertex(*xy, position.ysize))

    def dead_stones(self, state: GameState) -> frozenset[str] | None:
        """By `final_status_list dead`; None where the program does not know it."""
        try:
            client = self._running()
            self._tell_moves(client, state)
            vertices = client.send("final_status_list dead").split()
        except EngineRefusal:
            return None
        position = _board(state)
        xsize, ysize = position.xsize, position.ysize
        try:
            points = [vertex_to_xy(vertex, xsize, ysize) for vertex in vertices]
        except IllegalMove as error:
            raise EngineFault("nonsense", f"final_status_list: {error.message}") from None
        stones = position.stones
        return frozenset(xy_to_vertex(*xy, ysize) for xy in points if xy is not None and stones[xy[1], xy[0]])

    def final_score(self, state: GameState) -> float | None:
        """White's points minus Black's by `final_score`; None where the program does not know it."""
        try:
            client = self._running()
            self._tell_moves(client, state)
            answer = client.send("final_score").upper()
        except EngineRefusal:
            return None
        if answer in ("0", "DRAW", "JIGO"):
            return 0.0
        match = re.fullmatch(r"([BW])\+([0-9]+(?:\.[0-9]+)?)", answer)
        if not match:
            raise EngineFault("nonsense", f"'final_score' was answered by {answer[:80]!r}")
        return float(match[2]) * (1 if match[1] == "W" else -1)

    def stop(self) -> None:
        """Kill the program, so that whoever waits for it stops waiting."""
        self._stopped = True
        if self._client is not None:
            self._client.kill()

    def close(self) -> None:
        """End the program."""
        if self._client is not None:
            self._client.close(grace=0.0 if self._stopped else 2.0)
            self._client = None

    def _running(self) -> GtpClient:
        if self._client is not None and not self._client.alive and self._told == 0:
            self.close()
        if self._client is None:
            self._client = GtpClient(self._command, self._timeout)
        return self._client

    def _tell_moves(self, client: GtpClient, state: GameState) -> None:
        """Play the moves it has not heard of yet."""
        for colour, vertex in state.moves[self._told :]:
            client.send(f"play {colour} {vertex}")
        self._told = len(state.moves)

    def _timed(self, client: GtpClient, command: str, state: GameState) -> str:
        """Tell the clocks, if there are any, and send a command that thinks."""
        if not state.clocks or state.clean_up:
            return client.send(command)
        for side, clock in state.clocks.items():
            in_period = clock.main <= 0 and clock.period > 0
            seconds, stones = (clock.period, clock.periods) if in_period else (clock.main, 0)
            if "time_left" in client.commands:
                client.send(f"time_left {side} {int(seconds)} {stones}")
        return client.send(command, most_seconds(state.clocks[state.position.to_play]))

    def _tell_time_control(self, client: GtpClient, state: GameState) -> None:
        """Tell it main time and periods as GTP 2 knows them, Japanese and Fischer time as KataGo does."""
        if not state.clocks:
            return
        clock = next(iter(state.clocks.values()))
        if "kata-time_settings" in client.commands and (clock.increment or clock.periods):
            fischer = f"fischer {clock.main:g} {clock.increment:g}"
            byoyomi = f"byoyomi {clock.main:g} {clock.period:g} {clock.periods}"
            client.send(f"kata-time_settings {fischer if clock.increment else byoyomi}")
        elif "time_settings" in client.commands:
            client.send(f"time_settings {int(clock.main)} {int(clock.period)} {1 if clock.period else 0}")


def _board(state: GameState) -> Position:
    """The position now."""
    assert isinstance(state.position, Position)
    return state.position
