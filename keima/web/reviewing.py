"""A session's review, made in the background pass by pass; its largest mistakes as exercises."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from keima.errors import BadRequest, KeimaError
from keima.games.position import Position
from keima.games.trees.tree import TreeNode
from keima.plain import Data, Note, told, told_words
from keima.review.analysis import review_passes, steps
from keima.review.games import ReviewGame, network_entry
from keima.systems.files.defaults import judging_facts
from keima.web import entries
from keima.web import messages as m
from keima.web.analysing import Analysing
from keima.web.board import Board
from keima.web.document import position_json
from keima.web.networks import Offered
from keima.web.pool import Ask

if TYPE_CHECKING:
    from keima.inference.evaluation import Evaluation
    from keima.inference.evaluator import Evaluator

JUDGING_VISITS = 200
JUDGING_SECONDS = 8.0
"""Of the searches that judge a move tried in an exercise."""
RIGHT, GOOD = 0.02, 0.05
"""Losses of winning chances below which a move tried is right, or good."""
_EVERY = 0.25
"""Seconds between reports of progress."""


class _Stopped(Exception):
    """The review is not wanted any more."""


class _Judge:
    """An evaluator that stops when it is told to, and counts what it is asked."""

    def __init__(self, evaluator: Evaluator, stop: threading.Event, work: _Work) -> None:
        self._evaluator = evaluator
        self._stop = stop
        self._work = work

    def __call__(self, positions: Sequence[Position], symmetry: int | str = 0) -> list[Evaluation]:
        if self._stop.is_set():
            raise _Stopped
        found = self._evaluator(positions, symmetry=symmetry)
        if self._work.state == "fast":
            self._work.progress(len(positions))
        return found

    def __getattr__(self, name: str) -> object:
        if self._stop.is_set():
            raise _Stopped
        return getattr(self._evaluator, name)


class _Work:
    """One review on its thread."""

    def __init__(
        self, owner: Reviewing, session: Board, offered: Offered, game: ReviewGame, nodes: list[TreeNode], visits: int
    ) -> None:
        self.owner = owner
        self.session = session
        self.offered = offered
        self.game = game
        self.nodes = nodes
        self.visits = visits
        self.stop = threading.Event()
        self.state, self.message = "waiting", ""
        self.done, self.total = 0, len(game.positions)
        self.report: Data | None = None
        self._began = time.monotonic()
        self._told = 0.0
        threading.Thread(target=self._run, name="review", daemon=True).start()

    def _run(self) -> None:
        try:
            with self._reviewer() as evaluator:
                self._review(evaluator)
            self.state = "done"
        except _Stopped:
            self.state = "stopped"
        except Exception as error:
            self.state, self.message = "failed", error.words if isinstance(error, KeimaError) else str(error)
        self.tell()

    @contextmanager
    def _reviewer(self) -> Iterator[Evaluator]:
        """The network's evaluator for reviews, one review at a time."""
        while not self.offered.reviewing.acquire(timeout=0.1):
            if self.stop.is_set():
                raise _Stopped
        try:
            yield self.offered.reviewer
        finally:
            self.offered.reviewing.release()

    def _review(self, evaluator: Evaluator) -> None:
        self._phase("fast")
        options: Data = {"symmetry": 0, "precision": evaluator.precision}
        searched = self.visits >= 2 and "value" in self.offered.gives
        if searched:
            options |= {"visits": max(2, self.visits // 4), "preset": "auto", "seed": 0, "deeper": self.visits}
        if self.offered.profiles:
            evaluator = evaluator.bind(profile=self.offered.usual_profile)
        network = self.offered.network
        assert network is not None
        facts = {**network_entry(network), **judging_facts(network), "sha256": network.pedigree.sha256}
        judge = _Judge(evaluator, self.stop, self)
        total = steps(self.game, options)

        def progress(count: int) -> None:
            if self.stop.is_set():
                raise _Stopped
            if self.state != "fast":
                self.progress(count)

        for report in review_passes(self.game, judge, facts, options, progress, 8):
            self._arrived(report)
            if searched:
                self._phase("deep", total)

    def _phase(self, state: str, total: int | None = None) -> None:
        self.state, self.done, self.total = state, 0, self.total if total is None else total
        self._began = time.monotonic()
        self.tell()

    def progress(self, count: int) -> None:
        """So many further positions are done."""
        self.done = min(self.total, self.done + count)
        if time.monotonic() - self._told > _EVERY:
            self.tell()

    def _arrived(self, report: Data) -> None:
        old = self.report
        self.report = report
        known = old["positions"] if old else []
        changed = [one for k, one in enumerate(report["positions"]) if k >= len(known) or one != known[k]]
        self._told = time.monotonic()
        self.session.later(self.owner.arrived, self, {**report, "positions": changed})

    def tell(self) -> None:
        """Tell how far it is."""
        self._told = time.monotonic()
        self.session.later(self.owner.tell, self, None)

    def to_json(self, report: Data | None) -> Data:
        """The event `review`."""
        spent = time.monotonic() - self._began
        left = round(spent / self.done * (self.total - self.done), 1) if self.done >= 3 else None
        event: Data = {"event": "review", "state": self.state, **told_words("message", self.message), "done": self.done}
        event |= {"total": self.total, "seconds_left": left if self.state in ("fast", "deep") else None}
        event["nodes"] = [self.session.document.number(node) for node in self.nodes]
        if report is None:
            return event
        return {**event, "report": {**report, "warnings": [told(warning) for warning in report["warnings"]]}}


_NONE: Data = {
    "event": "review",
    "state": "none",
    "message": "",
    "done": 0,
    "total": 0,
    "seconds_left": None,
    "nodes": [],
}


class Reviewing:
    """The review of a session."""

    def __init__(self, session: Board, analysing: Analysing) -> None:
        self._session = session
        self._analysing = analysing
        self._work: _Work | None = None
        self._exercises: list[int] = []

    def to_json(self, whole: bool = False) -> Data:
        """The event `review`; `whole`: with the report as it stands."""
        return _NONE if self._work is None else self._work.to_json(self._work.report if whole else None)

    def start(self, request: m.Review) -> None:
        """Begin. Raises KeimaError: no such network, nothing to review."""
        session = self._session
        offered = self._analysing.choose(request.network)
        game, nodes = self._game()
        self.stop()
        self._exercises = []
        self._work = _Work(self, session, offered, game, nodes, request.visits)

    def _game(self) -> tuple[ReviewGame, list[TreeNode]]:
        """The main line as a review takes it, and the node of each of its positions."""
        document = self._session.document
        game = document.tree.game
        nodes: list[TreeNode] = []
        moves: list[str] = []
        players: list[str] = []
        comments: dict[str, str] = {}
        for node in document.tree.root.main_line():
            if node.move is not None or not nodes:
                nodes.append(node)
            else:
                nodes[-1] = node  # a board changed in mid-game stands in its move's place
            if node.move is not None:
                moves.append(node.move[1])
                players.append(game.side(node.move[0]))
            if node.comment:
                comments[str(len(moves))] = node.comment
        if not moves:
            raise BadRequest(Note("there is no move to review", "error.nothing"))
        facts = {**document.facts(), "source": "", "index": 1, "comments": comments}
        setup = game.editing.facts(document.tree.start)
        positions = [document.position(node) for node in nodes]
        return ReviewGame(facts, setup, positions, moves, players, [{} for _ in moves]), nodes

    def stop(self) -> None:
        """Stop it; what is finished stays."""
        if self._work is not None:
            self._work.stop.set()

    def clear(self) -> None:
        """Another game has come: the review of the old one goes."""
        self.stop()
        self._work, self._exercises = None, []

    def tell(self, work: _Work, report: Data | None) -> None:
        """Send how far it is."""
        if work is self._work:
            self._session.tell(work.to_json(report))

    def arrived(self, work: _Work, report: Data) -> None:
        """A pass is finished: its judgements go to the tree, its report to the page."""
        if work is not self._work or work.report is None:
            return
        session = self._session
        for node, entry in zip(work.nodes, work.report["positions"], strict=True):
            names = ("win", "draw", "loss", "value", "lead", "to_play")
            judged = {name: entry[name] for name in names if name in entry}
            if "value" in judged:
                session.document.judge(node, {**judged, "visits": entry.get("visits", 0)})
        for node, move in zip(work.nodes[1:], work.report["moves"], strict=False):
            grade = move.get("grade", "good")
            node.grade = "" if grade == "good" else grade
            session.document.changed.add(node)
        self.tell(work, report)
        session.show_tree()
        session.keep()

    # --- Exercises ----------------------------------------------------------------------------------------------------

    def exercises(self, request: m.Exercises) -> Data:
        """The largest mistakes. Raises BadRequest: nothing is reviewed yet."""
        report = self._report()
        session = self._session
        if request.player is not None:
            session.letter(request.player, "player")
        moves = {move["number"]: move for move in report["moves"]}
        numbers = [n for n in report["mistakes"] if request.player in (None, moves[n]["player"])][: request.count]
        self._exercises = numbers
        return {"exercises": [self._exercise(k, moves[n]) for k, n in enumerate(numbers, 1)]}

    def _report(self) -> Data:
        if self._work is None or self._work.report is None:
            raise BadRequest(Note("review the game first", "error.noreview"))
        return self._work.report

    def _exercise(self, number: int, move: Data) -> Data:
        assert self._work is not None
        document, node = self._session.document, self._work.nodes[move["number"] - 1]
        position = {**position_json(document, node), "comment": "", "marks": []}
        found: Data = {"exercise": number, "node": document.number(node), "number": move["number"]}
        found |= {"player": move["player"], "loss": move.get("winrate_loss"), "position": position}
        return found | ({"points": move["points_loss"]} if "points_loss" in move else {})

    async def answer(self, request: m.Answer) -> Data:
        """Judge a move tried: search the position, and the one after the move. Raises KeimaError."""
        report, work = self._report(), self._work
        if not 1 <= request.exercise <= len(self._exercises):
            raise m.BadMessage(Note("there is no exercise {n}", "error.noexercise", n=request.exercise), "exercise")
        assert work is not None
        number = self._exercises[request.exercise - 1]
        position = work.game.positions[number - 1]
        if not position.is_legal(request.move):
            raise m.BadMessage(Note("move: {move} is not legal here", "error.illegal", move=repr(request.move)), "move")
        analysing, playing = self._analysing, work.game.game.playing
        before = (await analysing.search(work.offered, Ask(position, JUDGING_VISITS, JUDGING_SECONDS))).result
        assert before is not None
        best = before.moves[0].move if before.moves else before.best
        after_best, lead_best, _ = await self._after(work, position, best)
        reply: list[str] = []
        tried, lead_tried = after_best, lead_best
        if request.move != best:
            tried, lead_tried, reply = await self._after(work, position, request.move)
        elif before.moves:
            reply = list(before.moves[0].pv[1:])
        loss = round(after_best - tried, 4)
        verdict = "right" if request.move == best or loss < RIGHT else "good" if loss < GOOD else "wrong"
        points = None if lead_best is None or lead_tried is None else round(lead_best - lead_tried, 2)
        if points is not None and playing.points_lost is not None and points >= playing.points_lost[2]:
            verdict = "wrong" if request.move != best else verdict
        answer: Data = {"verdict": verdict, "loss": max(0.0, loss), "best": best, "reply": reply[:12]}
        answer |= {"played": report["moves"][number - 1]["move"], "entry": entries.of_search(before)}
        names = work.game.game.drawing.written(position, [best])
        answer |= {"best_san": names[0]} if names else {}
        return answer | ({"points": points} if points is not None else {})

    async def _after(self, work: _Work, position: Position, move: str) -> tuple[float, float | None, list[str]]:
        """A move's worth for the side that makes it: its chances, its lead, and how it is answered."""
        game = work.game.game
        after = position.play(move)
        if after.is_over:
            verdict = game.playing.outcome(after)
            mover = game.letters.index(position.to_play)
            if verdict is not None:
                return (0.5 if verdict.winner is None else float(verdict.winner == mover)), None, []
            evaluation = await self._session.aside(work.offered.evaluate, position, None)
            return 0.5 * (1 + (evaluation.value or 0.0)), evaluation.lead, []
        result = (await self._analysing.search(work.offered, Ask(after, JUDGING_VISITS, JUDGING_SECONDS))).result
        assert result is not None
        return 0.5 * (1 - result.value), None if result.lead is None else -result.lead, list(result.principal_variation)
