"""KataGo's JSON analysis protocol: queries on one side, answers on the other, several positions searched at once.

    engine = AnalysisEngine(evaluator, lambda bound, parameters: Search(bound, **parameters), Settings(visits=200))
    engine.run(sys.stdin.buffer, write=print)

One thread reads; as many as `Settings.workers` search, the task of the highest priority first. Whatever comes in is
answered, and every position asked for ends with exactly one answer that is not `isDuringSearch`, or with an error.

Source: KataGo v1.17.2 `docs/Analysis_Engine.md` and `cpp/command/analysis.cpp`. What differs: `docs/analysis.md`.
"""

from __future__ import annotations

import heapq
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, cast

from keima import __version__
from keima.engines.analysis.answer import Findings, Json, Ownerships, make_answer, no_results, spread
from keima.engines.analysis.query import Task, read_query, read_turn_numbers
from keima.engines.analysis.settings import Settings
from keima.engines.tree_view import Inside, look_inside
from keima.errors import BadPosition, KeimaError
from keima.games.analysis import Move, QueryError
from keima.games.position import Position
from keima.games.positions import MAX_LINE, parse_json
from keima.inference.evaluator import Evaluator
from keima.search.limits import Limits
from keima.search.report import SearchResult
from keima.search.search import Search
from keima.systems.parameters import Number

OpenSearch = Callable[[Evaluator, Mapping[str, Number]], Search]
PROFILE = "profile"
"""The option of an encoding that `humanSLProfile` sets."""
PROTOCOL = "1.17.2"
"""The KataGo release whose protocol this is; `query_version` answers it."""
_LONGEST_PATH = 8
"""Positions along a variation looked at for standard deviations of ownership."""


@dataclass(eq=False)
class _Job:
    """A task on its way: queued until a worker takes it, then with the search that works on it."""

    task: Task
    search: Search | None = None
    taken: bool = False
    terminated: bool = False

    def terminate(self) -> None:
        self.terminated = True
        if self.search is not None:
            self.search.stop()


class AnalysisEngine:
    """Answers queries until the input ends.

    Args:
        open_search: makes a search of an evaluator with a query's options bound, some parameters set by their names.
        settings: what holds where queries say nothing.
        models: what `query_models` answers.
        human: evaluator of a human network, asked for `humanPolicy` where a query names a profile.
        log: takes messages for whoever watches the engine; None: standard error.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        open_search: OpenSearch,
        settings: Settings,
        *,
        models: Sequence[Json] = (),
        human: Evaluator | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self._evaluator = evaluator
        self._open_search = open_search
        self._settings = settings
        self._models = list(models)
        self._human = human
        self._log = log or (lambda message: print(f"keima: {message}", file=sys.stderr, flush=True))
        self._write_line: Callable[[str], object] = print
        self._written = threading.Lock()
        self._changed = threading.Condition()
        self._queue: list[tuple[int, int, _Job]] = []
        self._open: dict[_Job, None] = {}
        self._queued = 0
        self._closing = False
        self._workers: list[_Worker] = []
        self._told: set[str] = set()

    def run(self, lines: Iterable[bytes], write: Callable[[str], object], wait: bool = True) -> None:
        """Read queries, a JSON object a line, and write answers, until the lines end.

        Args:
            write: takes each answer, a line without its end; called by one thread at a time.
            wait: finish what was asked for first; False: give it up.
        """
        self._write_line = write
        self._workers = [_Worker(self) for _ in range(self._settings.workers)]
        for worker in self._workers:
            worker.start()
        try:
            for line in lines:
                self.handle(line)
        except BaseException:
            wait = False
            raise
        finally:
            with self._changed:
                self._closing = True
                for job in () if wait else self._open:
                    job.terminate()
                self._changed.notify_all()
            for worker in self._workers:
                worker.join()

    def handle(self, line: bytes) -> None:
        """Take one line of input."""
        if not line.strip():
            return
        try:
            if len(line) > MAX_LINE:
                raise BadPosition(f"the line is longer than {MAX_LINE >> 20} MB")
            fields = parse_json(line)
        except KeimaError as error:
            shown = line[:80].decode("utf-8", "replace").strip()
            self.write({"error": f"{error} - could not parse input line as json request: {shown}"})
            return
        identity = fields.get("id")
        if not isinstance(identity, str):
            self.write({"error": 'Request must have a string "id" field'})
            return
        try:
            if isinstance(fields.get("action"), str):
                self._act(fields)
            else:
                self._enqueue(fields, identity)
        except QueryError as error:
            self.write({"error": error.message, "field": error.field, "id": identity})
        except RecursionError:
            self.write({"error": "The query is nested too deeply", "id": identity})

    def write(self, answer: Json) -> None:
        """Write one answer."""
        text = json.dumps(answer, allow_nan=False, separators=(",", ":"))
        with self._written:
            self._write_line(text)

    def _enqueue(self, fields: Json, identity: str) -> None:
        query = read_query(fields, identity, self._settings)
        for field, message in query.warnings:
            self.write({"field": field, "id": identity, "warning": message})
        for name in query.idle:
            if name not in self._told:
                self._told.add(name)
                self._log(f"the setting {name} does nothing here")
        with self._changed:
            for task in query.tasks:
                job = _Job(task)
                self._open[job] = None
                heapq.heappush(self._queue, (-task.priority, self._queued, job))
                self._queued += 1
            self._changed.notify_all()

    def _act(self, fields: Json) -> None:
        action, found = fields["action"], Json()
        if action == "query_version":
            found = {"version": PROTOCOL, "git_hash": "<omitted>", "keima": __version__}
        elif action == "query_models":
            found = {"models": self._models}
        elif action == "clear_cache":
            for worker in self._workers:
                worker.forget()
        elif action == "terminate":
            if not isinstance(fields.get("terminateId"), str):
                raise QueryError("terminateId", 'A terminate action must have a string "terminateId" field')
            self._terminate(fields["terminateId"], read_turn_numbers(fields))
        elif action == "terminate_all":
            self._terminate(None, read_turn_numbers(fields))
        else:
            known = "query_version, query_models, clear_cache, terminate or terminate_all"
            raise QueryError("action", f"'action' field must be {known}")
        self.write({**fields, **found})

    def _terminate(self, identity: str | None, turns: frozenset[int] | None) -> None:
        """End the tasks of a query (None: of all), on some turns (None: on all)."""
        unsearched = []
        with self._changed:
            for job in list(self._open):
                if (identity is None or job.task.id == identity) and (turns is None or job.task.turn in turns):
                    job.terminate()
                    if not job.taken:
                        del self._open[job]
                        unsearched.append(job)
        for job in unsearched:
            self.write(no_results(job.task))

    def take(self) -> _Job | None:
        """The next job, waited for; None when there will be no more."""
        with self._changed:
            while self._queue or not self._closing:
                if not self._queue:
                    self._changed.wait()
                elif not (job := heapq.heappop(self._queue)[2]).terminated:
                    job.taken = True
                    return job
            return None

    def begin(self, job: _Job, search: Search) -> bool:
        """Say that a search, its position set, is about to run for a job; False if the job was terminated."""
        with self._changed:
            job.search = search
            return not job.terminated

    def end(self, job: _Job) -> None:
        """A job is done with."""
        with self._changed:
            job.search = None
            self._open.pop(job, None)

    def answer(self, job: _Job, search: Search, result: SearchResult, during: bool) -> None:
        """Write what a job's search found so far, or in the end."""
        task = job.task
        if result.visits == 0 and task.position.legal():
            if not during:
                self.write(no_results(task))
            return
        findings = Findings(result, search.parameters, look_inside(search))
        if not during and not job.terminated:
            findings = self._complete(task, search, findings)
        self.write(make_answer(task, findings, during))

    def _complete(self, task: Task, search: Search, findings: Findings) -> Findings:
        """With what only the last answer has: the networks' own answers, and ownership beyond the root's."""
        evaluator, profile = cast(Evaluator, search.evaluator), task.settings.profile
        raw = human = None
        if evaluator.encoding.options:  # such networks say more of a position than a search keeps
            raw = evaluator([task.position])[0]
        if profile is not None and self._human is not None:
            human = self._human.bind(profile=profile)([task.position])[0]
        elif profile is not None and PROFILE in evaluator.encoding.options:
            human = raw
        ownerships = _ownerships(task, evaluator, findings.result, findings.inside)
        return replace(findings, raw=raw, human=human, ownerships=ownerships)

    def search_with(self, settings: Settings) -> Search:
        """A search with these settings. Raises QueryError: a value that the network or its search does not take."""
        evaluator = self._evaluator
        try:
            if settings.profile is not None and PROFILE in evaluator.encoding.options:
                evaluator = evaluator.bind(profile=settings.profile)
            return self._open_search(evaluator, dict(settings.parameters))
        except KeimaError as error:
            raise QueryError("overrideSettings", f"Could not set settings: {error.message}") from error


class _Worker(threading.Thread):
    """Searches one position after another, with one search as long as their parameters are the same."""

    def __init__(self, engine: AnalysisEngine) -> None:
        super().__init__(name="analysis", daemon=True)
        self._engine = engine
        self._search: Search | None = None
        self._made_of: tuple[object, ...] = ()
        self._kind: tuple[object, ...] = ()
        self._forget = threading.Event()
        self._searching = threading.Lock()

    def forget(self) -> None:
        """Drop the tree: at once, or after the search under way."""
        self._forget.set()
        if self._searching.acquire(blocking=False):
            self._forget_if_asked()
            self._searching.release()

    def run(self) -> None:
        while (job := self._engine.take()) is not None:
            with self._searching:
                self._forget_if_asked()
                try:
                    self._work(job)
                except QueryError as error:
                    self._refuse(job, error.field, error.message)
                except KeimaError as error:
                    self._refuse(job, None, str(error))
                except Exception as error:  # one bad task must not end the engine
                    traceback.print_exc()
                    self._refuse(job, None, f"internal error: {type(error).__name__}: {error}")
                finally:
                    self._engine.end(job)
                self._forget_if_asked()

    def _forget_if_asked(self) -> None:
        if self._forget.is_set():
            self._forget.clear()
            self._search = None

    def _refuse(self, job: _Job, field: str | None, message: str) -> None:
        """Answer a job with an error; without a tree that may be broken."""
        self._search = None
        place = {} if field is None else {"field": field}
        self._engine.write({"error": message, **place, "id": job.task.id, "turnNumber": job.task.turn})

    def _work(self, job: _Job) -> None:
        """Search a job's position and answer it."""
        task = job.task
        allowed = task.allowed_moves()
        search = self._search_for(task, allowed)
        search.set_position(task.position)
        if not self._engine.begin(job, search):
            self._engine.write(no_results(task))
            return
        first, every = task.report_first, task.report_every
        seconds = 1.0 if first is None else min(first, every)
        due = time.monotonic() + (first or 0.0)

        def report(found: SearchResult) -> None:
            nonlocal due
            now = time.monotonic()
            if now + seconds / 10 >= due:
                due = now + every
                self._engine.answer(job, search, found, during=True)

        result = search.run(
            Limits(visits=task.settings.visits, seconds=task.settings.seconds),
            on_update=None if first is None else report,
            update_seconds=seconds,
            allow_moves=allowed,
            ownership=task.wants_ownership and "ownership" in search.evaluator.network.output_names,
        )
        self._engine.answer(job, search, result, during=False)

    def _search_for(self, task: Task, allowed: list[str] | None) -> Search:
        """The search to use: the last one, with its tree, where that can serve.

        Visits spent on moves that are forbidden now, or whose ownership was not kept, would only pretend to be there.
        """
        search, made_of = self._search, (task.settings.profile, task.settings.parameters)
        if search is None or made_of != self._made_of:
            search = self._search = self._engine.search_with(task.settings)
            self._made_of, self._kind = made_of, ()
        identity = task.position if task.wants_ownership else None
        kind = (task.wants_ownership, identity, None if allowed is None else tuple(allowed))
        if kind != self._kind:
            search.clear()
        self._kind = kind
        return search


def _ownerships(task: Task, evaluator: Evaluator, result: SearchResult, inside: Inside | None) -> Ownerships:
    """Ownership after each move and how it varies along the variations, as far as the task asks, evaluated anew."""
    each = task.include & {"includeMovesOwnership", "includeMovesOwnershipStdev"}
    stdevs = task.include & {"includeOwnershipStdev", "includeMovesOwnershipStdev"}
    if not (each or stdevs) or "ownership" not in evaluator.network.output_names or not result.moves:
        return Ownerships()
    paths = [info.pv[: _LONGEST_PATH if stdevs else 1] for info in result.moves]
    visits = [_ends(inside, info.move, info.visits, len(path)) for info, path in zip(result.moves, paths, strict=True)]
    positions = [position for path in paths for position in _positions_along(task, path)]
    maps = []
    for evaluation, position in zip(evaluator(positions), positions, strict=True):
        assert evaluation.ownership is not None
        maps.append(evaluation.ownership if task.game.side(position) == task.to_play else -evaluation.ownership)
    moves, moves_stdev, rest = {}, {}, iter(maps)
    for info, weights in zip(result.moves, visits, strict=True):
        moves[info.move], moves_stdev[info.move] = spread(list(islice(rest, len(weights))), weights)
    root_stdev = spread(maps, [weight for weights in visits for weight in weights])[1]
    return Ownerships(moves, moves_stdev, root_stdev)


def _ends(inside: Inside | None, move: str, visits: int, length: int) -> list[float]:
    """How many visits ended at each of the first positions of a variation, or left it there; at least one."""
    along = [visits] + [1] * (length - 1) if inside is None else list(inside.pv_visits[move][:length])
    return [float(max(here - after, 1)) for here, after in zip(along, [*along[1:], 0], strict=True)]


def _positions_along(task: Task, path: Sequence[str]) -> Iterator[Position]:
    position = task.position
    for name in path:
        position = task.game.play(position, Move(name))
        yield position


def read_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream; of one longer than `MAX_LINE` only a part that is still too long."""
    while line := stream.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE and not line.endswith(b"\n"):
            while (rest := stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass
        yield line
