"""A session's game against a network: whose turn, the clocks, the engine's moves, how it ends."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from keima.engines.match.game import TimeControl
from keima.errors import BadRequest, IllegalMove
from keima.games.game import Game
from keima.games.trees.tree import TreeNode
from keima.plain import Data, Note, told
from keima.search.limits import Clock, budget
from keima.web import messages as m
from keima.web.analysing import Analysing
from keima.web.board import Board
from keima.web.networks import Offered
from keima.web.pool import Ask, Found, Kept, Running

USUAL_VISITS = 200
"""Of an engine that is given nothing else."""


class Playing:
    """The game that a session plays.

    Attributes:
        on: is one being played?
        engine: the sides a network has, by letter.
    """

    def __init__(self, session: Board, analysing: Analysing) -> None:
        self._session = session
        self._analysing = analysing
        self.on = False
        self.engine: dict[str, tuple[m.Mover, Offered]] = {}
        self.result = ""
        self.reason: str | None = None
        self._control: TimeControl | None = None
        self._clocks: dict[str, Clock] = {}
        self._since = 0.0  # when the running clock was started
        self._flag: asyncio.TimerHandle | None = None
        self._running: Running | None = None
        self._kept: dict[str, Kept] = {}
        self._generation = 0

    def to_json(self) -> Data:
        """The event `game`."""
        session = self._session
        game, position = session.game, session.position
        to_play = position.to_play
        clocks = None
        if self._control is not None and self._clocks:
            now = {letter: self._left(letter) for letter in self._clocks}
            clocks = {game.side(letter): _clock_json(clock) for letter, clock in now.items()}
        kept = session.keeper.path(session.name)
        return {
            "event": "game",
            "playing": self.on,
            "engine": {game.side(letter): mover.model_dump() for letter, (mover, _) in self.engine.items()},
            "thinking": game.side(to_play) if self._running is not None else None,
            "clocks": clocks,
            "running": game.side(to_play) if self.on and clocks and not position.is_over else None,
            "result": self.result,
            "reason": told(self.reason),
            "to_score": self.on and position.is_over and game.playing.outcome(position) is None,
            "kept": None if kept is None else kept.name,
        }

    def _left(self, letter: str) -> Clock:
        """A side's clock at this moment."""
        clock = self._clocks[letter]
        if not self.on or letter != self._session.position.to_play or self._control is None:
            return clock
        after = self._control.after(clock, time.monotonic() - self._since)
        if after is None:
            return replace(clock, main=0.0, periods=0)
        return replace(after, main=max(0.0, after.main - clock.increment)) if after.main else after

    def start(self, request: m.StartGame) -> None:
        """Play on from the current position. Raises KeimaError."""
        session = self._session
        engine = {}
        for side, mover in request.engine.items():
            letter = session.letter(side, f"engine.{side}")
            offered = self._analysing.choose(mover.network, f"engine.{side}.network")
            mover = mover.model_copy(update={"profile": mover.profile or offered.usual_profile})
            engine[letter] = (mover, offered)
        if session.position.is_over:
            raise BadRequest(Note("the game is over in this position; go to another, or begin anew", "error.ended"))
        self.stop("")
        self._analysing.stop()
        self.engine = engine
        self._kept = {letter: Kept() for letter in engine}
        self._control = None
        control = request.clock
        if control is not None and (control.main or control.increment or control.periods * control.period):
            self._control = TimeControl(control.main, control.increment, control.periods, control.period)
            self._clocks = {letter: self._control.start() for letter in session.game.letters}
        self.on, self.result, self.reason = True, "", None
        tree = session.document.tree
        for letter in session.game.letters:
            if letter in engine:
                tree.players[letter] = " ".join(filter(None, (engine[letter][1].name, engine[letter][0].profile)))
        session.show_tree()
        self._turn()

    def stop(self, result: str, reason: str | None = None) -> None:
        """End the game, with a result or without."""
        self._generation += 1
        if self._running is not None:
            self._running.stop()
            self._running = None
        if self._flag is not None:
            self._flag.cancel()
            self._flag = None
        if self.on and self._control is not None:
            self._clocks = {letter: self._left(letter) for letter in self._clocks}
        self.on = False
        if result:
            self.result, self.reason = result, reason
            self._session.document.tree.result = result
            self._session.show_tree()
            self._session.keep()
            self._session.tell(self.to_json())

    def human_moves(self, move: str) -> TreeNode:
        """Make the player's move. Raises KeimaError: it is not their turn, or illegal."""
        session = self._session
        if session.position.to_play in self.engine:
            raise IllegalMove(
                Note("it is the network's turn; take back, or stop the game, to move for it", "error.turn")
            )
        return self._move(move)

    def _move(self, move: str) -> TreeNode:
        session = self._session
        side, current = session.position.to_play, session.document.current
        node = session.document.play(move, current)
        if self._control is not None:
            after = self._control.after(self._clocks[side], time.monotonic() - self._since)
            if after is not None:
                self._clocks[side] = after
        session.moved()
        self._turn()
        return node

    def _turn(self) -> None:
        """Whoever is to move begins to think."""
        session = self._session
        self._generation += 1
        if self._flag is not None:
            self._flag.cancel()
            self._flag = None
        position, game = session.position, session.game
        self._since = time.monotonic()
        if game.playing.stops(position):
            verdict = game.playing.outcome(position)
            if verdict is not None or not position.is_over:
                verdict = verdict or game.playing.count(position)
                self.stop(verdict.result, verdict.reason)
                return
        if position.is_over:
            session.tell(self.to_json())  # to be scored
            return
        side = position.to_play
        if self._control is not None:
            clock = self._clocks[side]
            seconds = clock.main + clock.periods * clock.period
            self._flag = session.loop.call_later(seconds + 0.02, self._flag_falls, self._generation, side)
        if side in self.engine:
            self._think(side)
        session.tell(self.to_json())

    def _flag_falls(self, generation: int, side: str) -> None:
        if generation == self._generation and self.on:
            game = self._session.game
            winner = 1 - game.letters.index(side)
            self._clocks[side] = replace(self._clocks[side], main=0.0, periods=0)
            self.stop(
                game.playing.result(winner, "T"), Note("{side} ran out of time", "reason.time", side=_named(game, side))
            )

    def _think(self, side: str) -> None:
        session, generation = self._session, self._generation
        mover, offered = self.engine[side]
        position = session.position
        ask = Ask(position, mover.visits, mover.seconds, temperature=mover.temperature, profile=mover.profile)
        if self._control is not None:
            share = budget(self._clocks[side], session.game.playing.moves_to_come(position)).target
            ask.seconds = share if ask.seconds is None else min(ask.seconds, share)
        elif ask.visits is None and ask.seconds is None:
            ask.visits = USUAL_VISITS
        if "value" not in offered.gives or ask.visits == 1:
            session.loop.create_task(self._by_policy(generation, side))
            return
        ask.on_end = lambda found: session.later(self._thought, generation, found)
        assert offered.pool is not None
        self._running = offered.pool.start(ask, self._kept[side])

    async def _by_policy(self, generation: int, side: str) -> None:
        """A network without a value, or of one visit, moves by its policy: the likeliest, or drawn by temperature."""
        import numpy as np

        session = self._session
        mover, offered = self.engine[side]
        position = session.position
        try:
            evaluation = await session.aside(offered.evaluate, position, mover.profile)
        except Exception as error:
            session.failed("engine", error)
            return
        if generation != self._generation or not self.on:
            return
        move = evaluation.best
        if mover.temperature > 0:
            policy = evaluation.at_temperature(mover.temperature).policy
            move = str(np.random.default_rng().choice(list(policy), p=list(policy.values())))
        self._move(move)

    def _thought(self, generation: int, found: Found) -> None:
        if generation != self._generation or not self.on:
            return
        self._running = None
        if found.error is not None or not found.move:
            self._session.failed("engine", found.error or BadRequest(Note("the network found no move", "error.nomove")))
            self.stop("")
            self._session.tell(self.to_json())
            return
        if found.result is not None:
            from keima.web.entries import judgement

            session = self._session
            session.document.judge(session.document.current, judgement(session.position, found.result))
        self._move(found.move)

    def take_back(self) -> TreeNode:
        """Back to where the player was last to move. Raises BadRequest: there is no such place."""
        session = self._session
        node = session.document.current
        while node.parent is not None:
            node = node.parent
            if session.document.position(node).to_play not in self.engine or not self.on:
                break
        else:
            raise BadRequest(Note("there is no move to take back", "error.takeback"))
        if session.document.position(node).to_play in self.engine and self.on:
            raise BadRequest(Note("there is no move of yours to take back", "error.yours"))
        if self._running is not None:
            self._running.stop()
            self._running = None
        session.document.current = node
        session.document.tree.result = ""
        self.result, self.reason = "", None
        session.moved(changed=False)
        if self.on:
            self._turn()
        return node

    def resign(self, side: str | None) -> str:
        """Give up. Raises BadRequest: no game is played."""
        session = self._session
        if not self.on:
            raise BadRequest(Note("no game is being played", "error.nogame"))
        game = session.game
        humans = [letter for letter in game.letters if letter not in self.engine]
        letter = side or (humans[0] if len(humans) == 1 else session.position.to_play)
        result = game.playing.result(1 - game.letters.index(letter), "R")
        self.stop(result, Note("{side} resigned", "reason.resigned", side=_named(game, letter)))
        return result

    async def score(self, request: m.Score) -> Data:
        """The score of the current position, by ownership or with the dead stones named."""
        session = self._session
        game, position = session.game, session.position
        editing = game.editing
        outcome = game.playing.outcome(position) if position.is_over else None
        if outcome is not None or not game.playing.scored:
            if outcome is None:
                raise BadRequest(Note("the rules decide this game, and it is not over", "error.rules"))
            return {"dead": [], "result": outcome.result, "final": True}
        answer: Data = {}
        if request.dead is None:
            offered = self._analysing.choose(request.network)
            if "ownership" not in offered.gives:
                unable = Note(
                    "{name} has no ownership; mark the dead stones by hand", "error.noownership", name=offered.name
                )
                raise m.BadMessage(unable, "network")

            def judged() -> frozenset[str] | None:
                with offered.lock:
                    found: frozenset[str] | None = editing.dead(position, offered.judge)
                    return found

            dead = await session.aside(judged) or frozenset()
            from keima.web.entries import of_network

            entry = of_network(position, await session.aside(offered.evaluate, position))
            answer |= {name: entry[name] for name in ("ownership", "lead") if name in entry}
        else:
            for number, point in enumerate(request.dead):
                if not editing.is_point(position, point):
                    raise m.BadMessage(
                        Note("{point} is no point of this board", "error.nopoint", point=repr(point)), f"dead.{number}"
                    )
            dead = frozenset(request.dead)
        result = editing.score(position, dead)
        answer |= {"dead": sorted(dead), "result": result, "final": request.final}
        if request.final and result is not None:
            self.stop(result, Note("score", "reason.score"))
        return answer


def _named(game: Game, letter: str) -> Note:
    """A side in words."""
    return Note(game.side(letter), f"side.{game.side(letter)}")


def _clock_json(clock: Clock) -> Data:
    return {"main": round(clock.main, 2), "period": clock.period, "periods": clock.periods}
