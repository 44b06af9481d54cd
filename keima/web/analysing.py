"""A session's analysis: searches that follow the board and stream what they find; hints; policies side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from keima.errors import BadRequest, KeimaError
from keima.games.position import Position
from keima.games.trees.tree import TreeNode
from keima.plain import Data, Note
from keima.search.report import SearchResult
from keima.web import entries
from keima.web import messages as m
from keima.web.board import Board
from keima.web.networks import Offered
from keima.web.pool import Ask, Found, Kept, Running

HINT_SECONDS = 10.0


@dataclass(eq=False)
class _Column:
    """One of the networks side by side."""

    mover: m.Mover
    offered: Offered
    kept: Kept = field(default_factory=Kept)
    running: Running | None = None
    node: TreeNode | None = None
    position: Position | None = None
    entry: Data | None = None


class Analysing:
    """What a session analyses."""

    def __init__(self, session: Board) -> None:
        self._session = session
        self._columns: list[_Column] = []
        self._on = False
        self._ownership = True
        self._every = 0.1
        self._generation = 0

    def known(self) -> Data:
        """What was found of the current position: a field of the event `position`."""
        for column in self._columns:
            if column.node is self._session.document.current and column.entry is not None:
                return {"entry": column.entry}
        return {}

    def start(self, request: m.Analyse) -> None:
        """Begin, or go on. Raises KeimaError: a network is not ready, or plays something else."""
        columns = []
        for number, mover in enumerate(request.networks):
            offered = self.choose(mover.network, f"networks.{number}.network")
            if "value" not in offered.gives:
                raise m.BadMessage(
                    Note("{name} judges no position; ask for its policy", "error.novalue", name=offered.name),
                    f"networks.{number}",
                )
            same = [one.kept for one in self._columns[number : number + 1] if one.offered is offered]
            columns.append(_Column(mover, offered, same[0] if same else Kept()))
        self.stop()
        self._columns = columns  # none runs yet
        self._ownership, self._every = request.ownership, request.every
        self._on = True
        self.follow()

    def choose(self, name: str | None, field: str = "network") -> Offered:
        """The network that is meant, ready and of this game. Raises BadMessage."""
        session = self._session
        try:
            if name is None:
                first = session.networks.first(session.game.name)
                if first is None:
                    raise BadRequest(Note("no network for this game is ready; open one", "error.nonetwork"))
                return first
            offered = session.networks.ready(name)
        except KeimaError as error:
            raise m.BadMessage(error.words, field) from None
        if offered.game != session.game.name:
            raise m.BadMessage(Note("{name} plays another game", "error.othergame", name=offered.name), field)
        return offered

    def stop(self) -> None:
        """Pause: searches end at once."""
        self._on = False
        self._halt()

    def _halt(self) -> None:
        for column in self._columns:
            if column.running is not None:
                column.running.stop()

    def follow(self) -> None:
        """Search the current position, if analysing."""
        if not self._on or self._is_followed():
            return
        self._halt()
        self._generation += 1
        session, generation = self._session, self._generation
        if any(column.offered.game != session.game.name for column in self._columns):
            self._on = False
            return
        position, node = session.position, session.document.current
        for number, column in enumerate(self._columns):
            column.running, column.node, column.position, column.entry = None, node, position, None
            if position.is_over or column.offered.pool is None:
                continue
            ask = Ask(
                position,
                visits=column.mover.visits,
                seconds=column.mover.seconds,
                ownership=self._ownership and "ownership" in column.offered.gives,
                every=self._every,
                profile=column.mover.profile,
            )
            ask.on_update = self._reporter(generation, number)
            ask.on_end = self._ender(generation, number)
            column.running = column.offered.pool.start(ask, column.kept)

    def _is_followed(self) -> bool:
        """Is the current position what is being searched already?"""
        now = self._session.document.current, self._session.position
        return all((one.node, one.position) == now and one.running is not None for one in self._columns)

    def _reporter(self, generation: int, number: int) -> Callable[[SearchResult], None]:
        """Makes the entry on the search's thread and hands it over."""

        def report(result: SearchResult) -> None:
            entry = entries.of_search(result)
            judged = entries.judgement(result.position, result)
            self._session.later(self._arrived, generation, number, result, entry, judged, "")

        return report

    def _ender(self, generation: int, number: int) -> Callable[[Found], None]:
        report_end = self._session.later

        def end(found: Found) -> None:
            if found.error is not None:
                report_end(self._broke, generation, found.error)
            elif found.result is not None:
                result = found.result
                entry, judged = entries.of_search(result), entries.judgement(result.position, result)
                report_end(self._arrived, generation, number, result, entry, judged, result.stopped_by)

        return end

    def _broke(self, generation: int, error: BaseException) -> None:
        if generation == self._generation:
            self._session.failed("analysis", error)

    def _arrived(
        self, generation: int, number: int, result: SearchResult, entry: Data, judged: Data, stopped_by: str
    ) -> None:
        if generation != self._generation or number >= len(self._columns):
            return
        session, column = self._session, self._columns[number]
        assert column.node is not None
        column.entry = entry
        if number == 0:
            session.document.judge(column.node, judged)
        event: Data = {
            "event": "analysis",
            "node": session.document.number(column.node),
            "number": number,
            "network": column.offered.name,
            "running": not stopped_by,
            "stopped_by": stopped_by,
            "entry": entry,
            "visits_per_second": round(result.evaluations / result.seconds, 1) if result.seconds > 0 else 0.0,
        }
        if column.mover.profile:
            event["profile"] = column.mover.profile
        if not stopped_by or self._on:
            session.tell(event)
        else:
            session.tell({**event, "running": False})
        if stopped_by and number == 0:
            session.show_tree()
            session.keep()

    async def hint(self, request: m.Hint) -> Data:
        """A move to consider."""
        session = self._session
        offered = self.choose(request.network)
        position = session.position
        if position.is_over:
            raise BadRequest(Note("the game is over", "error.over"))
        found = await self.search(offered, Ask(position, visits=request.visits, seconds=HINT_SECONDS))
        assert found.result is not None
        names = session.game.drawing.written(position, [found.result.best])
        answer: Data = {"move": found.result.best, "entry": entries.of_search(found.result)}
        return {**answer, "san": names[0]} if names else answer

    async def search(self, offered: Offered, ask: Ask) -> Found:
        """One search, waited for. Raises the error that ended it."""
        loop = self._session.loop
        future = loop.create_future()

        def arrive(found: Found) -> None:
            if not future.done():
                future.set_result(found)

        ask.on_end = lambda found: self._session.later(arrive, found)
        assert offered.pool is not None
        ask.profile = ask.profile or offered.usual_profile
        offered.pool.start(ask)
        found: Found = await future
        if found.error is not None:
            raise found.error
        if found.result is None:
            raise BadRequest(Note("the search was stopped", "error.stopped"))
        return found

    async def policies(self, request: m.Policies) -> Data:
        """What every loaded network of the game would play, without a search."""
        session = self._session
        position = session.document.position(session.document.node(request.node))
        found: list[Data] = []
        for offered in session.networks:
            if offered.state != "ready" or offered.game != session.game.name:
                continue
            for profile in (request.profiles or offered.profiles[:1]) if offered.profiles else [None]:
                one: Data = {"network": offered.name} | ({"profile": profile} if profile else {})
                try:
                    evaluation = await session.aside(offered.evaluate, position, profile)
                    one["entry"] = entries.of_network(position, evaluation)
                except KeimaError as error:
                    one["error"] = str(error)
                found.append(one)
        return {"policies": found}
