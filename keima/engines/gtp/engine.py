"""The Go Text Protocol, version 2: a network as an engine for Sabaki, GoGui, Lizzie, KGS and scripts.

    Engine(evaluator, make_search, Options(), COMMANDS).run(sys.stdin.buffer, sys.stdout.buffer)

Source: G. Farnebäck, *GTP 2 specification*, draft 2; the extensions of KataGo and Leela Zero are named where they are.
What each command does stands in `commands`. Lines come in on a thread of their own, searches run on another, and the
answers leave in the order of the commands. An analysis goes on until the next line comes in, which ends it within
50 ms; a `genmove` (KataGo's way) until `stop` or GoGui's `# interrupt`: it then plays the best move found so far.
"""

from __future__ import annotations

import os
import queue
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import IO, TYPE_CHECKING

from keima.engines.gtp import GAME
from keima.engines.gtp.clock import TimeControl
from keima.engines.gtp.game import Game, Start
from keima.engines.gtp.judge import Resigner
from keima.engines.gtp.words import Refusal, answer, clean_line
from keima.engines.session import OnEnd, SearchThread, Watch
from keima.errors import BadRequest, KeimaError
from keima.games.go import Position
from keima.games.go.rules import Rules
from keima.search.limits import Limits
from keima.search.report import SearchResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from keima.engines.named_settings import Value
    from keima.inference.evaluator import Evaluator
    from keima.search.search import Search
    from keima.systems.parameters import Number

    MakeSearch = Callable[[Evaluator, Mapping[str, Number]], Search]

LONGEST_LINE = 1 << 16
"""Bytes of one command line; of a longer one no more is read than to find its end."""
_WAITING_LINES = 10_000
_HIGHEST_ID = 2**31 - 1
DEFAULT_VISITS = 800
"""Visits of a `genmove` that no visits, seconds or clock limit."""


@dataclass
class Options:
    """How the engine plays; some of it changes by `kata-set-param`.

    Attributes:
        name: the answer to `name`. Lizzie asks KataGo's commands only of a program called "KataGo".
        komi: of the first game; None for the usual one.
        visits, seconds: at most, of a move; None: no limit, but 800 visits if nothing else limits it.
        ponder, ponder_seconds: search on while the other side thinks, and at most so long.
        resign_threshold, resign_turns: see `Resigner`.
        bound: options of the network by name ("profile": whom a human network imitates).
    """

    name: str = "keima"
    rules: str = "chinese"
    komi: float | None = None
    visits: int | None = None
    seconds: float | None = None
    ponder: bool = False
    ponder_seconds: float = 60.0
    resign_threshold: float = 0.05
    resign_turns: int = 3
    bound: dict[str, object] = field(default_factory=dict)


class Engine:
    """A GTP engine.

    Args:
        evaluator: of a Go network.
        make_search: makes a search of an evaluator, parameters overridden by name.
        commands: what it obeys, by name (`keima.engines.gtp.commands.COMMANDS`).

    Raises:
        BadRequest: the network plays no Go, or does not take an option that is to be bound.
        UnsupportedPosition: the network cannot play under these rules.
    """

    def __init__(
        self, evaluator: Evaluator, make_search: MakeSearch, options: Options, commands: Mapping[str, Handler]
    ) -> None:
        encoding = evaluator.encoding
        if encoding.game != GAME:
            raise BadRequest(f"GTP is for Go; this network plays {encoding.game} (its protocol is UCI: keima uci)")
        self.evaluator = evaluator.bind(**options.bound) if options.bound else evaluator
        self.options = options
        self._commands = commands
        self._make_search = make_search
        self.held: dict[str, Value] = {}
        """Parameters that controllers set and read back, and that nothing here asks for."""
        self._overrides: dict[str, Number] = {}
        self.search = make_search(self.evaluator, {})
        self.worker = SearchThread()
        rules, komi = Rules.parse_with_komi(options.rules)
        side = getattr(encoding, "board_size", None) or 19
        start = Start((side, side), rules, komi if options.komi is None else options.komi)
        self.game = Game(start, encoding.check)
        self.clocks: dict[str, TimeControl | None] = {"B": None, "W": None}
        self.resigner = Resigner(options.resign_threshold, options.resign_turns)
        self.thinking_seconds = 0.0
        self.wants_to_ponder = False
        self._write_lock = threading.Lock()
        self._out: IO[bytes] | None = None
        self._lines: queue.Queue[str | Refusal | None] = queue.Queue(_WAITING_LINES)
        self._deciding = False
        self._background: Callable[[], None] | None = None

    # The conversation

    def run(self, stream: IO[bytes], out: IO[bytes]) -> None:
        """Answer the commands of `stream` on `out` until `quit` or its end.

        Raises:
            BrokenPipeError: nobody reads the answers any more.
        """
        self._out = out
        threading.Thread(target=self._listen, args=(stream,), name="gtp-input", daemon=True).start()
        try:
            while (line := self._lines.get()) is not None:
                self.end_background()
                if isinstance(line, Refusal):
                    self.write(answer(False, None, str(line)))
                elif line and not self._obey(line):
                    break
                if self.wants_to_ponder and self.options.ponder:
                    self._ponder()
            self.end_background()
        finally:
            self.worker.cancel()

    def write(self, text: str) -> None:
        """Write to the controller; from any thread."""
        assert self._out is not None
        with self._write_lock:
            self._out.write(text.encode("utf-8", "replace"))
            self._out.flush()

    def _listen(self, stream: IO[bytes]) -> None:
        """Queue the lines of the input; `stop` and `# interrupt` end a `genmove` at once."""
        try:
            for raw in _lines_of(stream):
                if raw is None:
                    self._lines.put(Refusal(f"line longer than {LONGEST_LINE} bytes"))
                    continue
                line = clean_line(raw)
                if self._deciding and (re.fullmatch(r"\d*\s*stop", line) or raw.strip() == b"# interrupt"):
                    self.worker.stop()
                self._lines.put(line)
        except (OSError, ValueError):
            pass  # the stream was closed under us: the same as its end
        self._lines.put(None)

    def _obey(self, line: str) -> bool:
        """Carry out one command line; False after `quit`."""
        digits, rest = re.fullmatch(r"([0-9]*)(.*)", line).groups()  # type: ignore[union-attr]
        words = rest.split()
        number = int(digits) if len(digits) <= 10 and digits else None
        good, text = False, ""
        if len(digits) > 10 or (number or 0) > _HIGHEST_ID:
            number, text = None, f"command number above {_HIGHEST_ID}"
        elif not words:
            text = "empty command"
        elif words[0] not in self._commands:
            text = "unknown command"
        else:
            try:
                good, text = True, self._commands[words[0]](self, Command(words[0], words[1:], number)) or ""
                if text == WRITTEN:
                    return True
            except KeimaError as error:
                text = " ".join(str(error).split())
            except (OSError, MemoryError, RuntimeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                if isinstance(error, BrokenPipeError):
                    raise
                traceback.print_exc(file=sys.stderr)
                text = f"internal error: {type(error).__name__}: {error}"
        self.write(answer(good, number, text))
        return not (good and words[0] == "quit")

    # Searching

    @cached_property
    def has_ownership(self) -> bool:
        """Does the network tell whose each point will be?"""
        return self.evaluator([self.game.position])[0].ownership is not None

    def change_search(self, overrides: Mapping[str, Number]) -> None:
        """Set parameters of the search by name; its tree is forgotten. Raises BadRequest: a value it does not take."""
        overrides = {**self._overrides, **overrides}
        self.search, self._overrides = self._make_search(self.evaluator, overrides), overrides

    def bind(self, **options: object) -> None:
        """Fix options of the network, None takes one back; the tree is forgotten. Raises BadRequest: as it was."""
        evaluator = self.evaluator.bind(**options)
        self.search, self.evaluator = self._make_search(evaluator, self._overrides), evaluator
        found = {**self.options.bound, **options}
        self.options.bound = {name: value for name, value in found.items() if value is not None}

    def search_here(self, position: Position, limits: Limits, **options: Unpack[Watch]) -> SearchResult:
        """Search a position and wait for the result."""
        self.search.set_position(position)
        self.worker.start(self.search, limits, **options)
        return self.worker.wait()

    def decide(self, position: Position, **options: Unpack[Watch]) -> SearchResult:
        """Search for a move within the limits of play; `stop` cuts it short."""
        self._deciding = True
        try:
            return self.search_here(position, self.limits(position.to_play), **options)
        finally:
            self._deciding = False
            self.note_time(position.to_play)

    def note_time(self, colour: str) -> None:
        """Let the clock of that side run for the search that has just ended."""
        self.thinking_seconds += self.worker.seconds
        if clock := self.clocks[colour]:
            clock.spend(self.worker.seconds)

    def limits(self, colour: str) -> Limits:
        """What ends a search for a move of that side."""
        visits, seconds = self.options.visits, self.options.seconds
        if clock := self.clocks[colour]:
            seconds = clock.move_limit if seconds is None else min(seconds, clock.move_limit)
            return Limits(visits, seconds, clock.clock(), early_stop=True)
        return Limits(DEFAULT_VISITS if visits is None and seconds is None else visits, seconds, early_stop=True)

    def go_on_with(
        self,
        position: Position,
        limits: Limits,
        at_end: Callable[[], None] | None,
        on_end: OnEnd | None = None,
        **options: Unpack[Watch],
    ) -> None:
        """Search in the background until the next line comes in; then `at_end` ends the answer."""
        self.search.set_position(position)
        self._background = at_end
        self.worker.start(self.search, limits, on_end=on_end, **options)

    def end_background(self) -> None:
        """End an analysis, a cancellable search or pondering, if one is under way."""
        self.worker.cancel()
        at_end, self._background = self._background, None
        if at_end is not None:
            at_end()

    def _ponder(self) -> None:
        if self._background is None and not self.worker.running and not self.game.position.is_over:
            try:
                self.go_on_with(self.game.position, Limits(seconds=self.options.ponder_seconds), None)
            except KeimaError as error:
                print(f"keima: cannot ponder: {error}", file=sys.stderr)

    def forget_game(self) -> None:
        """Another game begins."""
        self.resigner.forget()
        self.wants_to_ponder = False
        for clock in filter(None, self.clocks.values()):
            clock.reset()


@dataclass(frozen=True)
class Command:
    """One command line: the command's name, its arguments, and its id if it has one."""

    name: str
    words: list[str]
    number: int | None


Handler = Callable[[Engine, Command], "str | None"]
"""Carries out a command: the text of a good answer, None for an empty one, `WRITTEN`; a refusal is a `KeimaError`."""
WRITTEN = "\0"
"""Returned by a command that has written its answer itself, or whose search will."""


def _lines_of(stream: IO[bytes]) -> Iterator[bytes | None]:
    """The lines of a stream as they come in, without their ends; None for one that is too long.

    A real file is read below Python's buffers: a thread that waits in them keeps the program from ending.
    """
    try:
        read: Callable[[int], bytes] = partial(os.read, stream.fileno())
    except (OSError, AttributeError):
        read = stream.read
    waiting, skipping = b"", False
    while chunk := read(LONGEST_LINE):
        *lines, waiting = (waiting + chunk).split(b"\n")
        for line in lines:
            if not skipping:
                yield line if len(line) <= LONGEST_LINE else None
            skipping = False
        if len(waiting) > LONGEST_LINE:
            if not skipping:
                yield None
            waiting, skipping = b"", True
    if waiting and not skipping:
        yield waiting
