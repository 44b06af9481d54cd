"""UCI, the protocol of chess GUIs: lines in, `info` and `bestmove` out, a search in between.

The thread that reads never waits for a search: `stop`, `ponderhit`, `isready` and `quit` are heard at once. What cannot
be understood is answered with an `info string`.

Sources: the UCI specification of April 2006 (Huber, Meyer-Kahlen); the fields of `info` as Lc0 v0.33 sends them
(`src/search/classic/search.cc`, `SendUciInfo`; `src/chess/uciloop.cc`).
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keima import __version__
from keima.engines.session import SearchThread
from keima.engines.tree_view import Usage, look_at_usage
from keima.engines.uci.options import Values
from keima.errors import BadRequest, KeimaError
from keima.games.chess.playing import centipawns
from keima.games.chess.position import Position
from keima.search.limits import Clock, Limits
from keima.search.report import MoveInfo, SearchResult

if TYPE_CHECKING:
    from keima.search.search import Search

_SECONDS_BETWEEN_INFOS = 1.0
_UPDATE, _QUICK_UPDATE = 0.25, 0.02
"""Seconds between looks at a search; quicker where it is to stop at a depth or a mate."""
_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][nbrq]?")
_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "movetime", "mate")
_WORDS = (*_NUMBERS, "infinite", "ponder", "searchmoves")


@dataclass(frozen=True)
class Go:
    """What a `go` command asks for."""

    numbers: dict[str, int] = field(default_factory=dict)  # by word; times in milliseconds
    infinite: bool = False  # search until told to stop
    ponder: bool = False  # likewise, or until `ponderhit` makes the rest of the command count
    moves: tuple[str, ...] = ()  # consider only these; empty for all

    @classmethod
    def parse(cls, words: Sequence[str]) -> Go:
        """Read the words after `go`. Raises BadRequest."""
        numbers: dict[str, int] = {}
        flags: set[str] = set()
        moves: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word in _NUMBERS:
                numbers[word] = _whole(word, rest.pop(0) if rest else "")
            elif word in ("infinite", "ponder"):
                flags.add(word)
            elif word == "searchmoves":
                while rest and rest[0] not in _WORDS:
                    moves.append(rest.pop(0))
            else:
                raise BadRequest(f"go: unknown word {_shown(word)}")
        return cls(numbers, "infinite" in flags, "ponder" in flags, tuple(moves))

    def limits(self, to_play: str, overhead: int) -> Limits:
        """When the search ends; `overhead` milliseconds are lost between engine and clock."""
        seconds = clock = None
        if "movetime" in self.numbers:
            milliseconds = max(self.numbers["movetime"], 1)
            seconds = (milliseconds - min(overhead, milliseconds / 2)) / 1000
        if not self.infinite and f"{to_play}time" in self.numbers:
            clock = Clock(
                main=max(self.numbers[f"{to_play}time"] - overhead, 0) / 1000,
                increment=max(self.numbers.get(f"{to_play}inc", 0), 0) / 1000,
                moves_to_go=max(self.numbers.get("movestogo", 0), 0) or None,
            )
        nodes = self.numbers.get("nodes")
        visits = None if nodes is None else min(max(nodes, 1), 1 << 30)
        return Limits(visits=visits, seconds=seconds, clock=clock, early_stop=clock is not None)

    def is_reached(self, result: SearchResult) -> bool:
        """Has the search reached the depth or found the mate that was asked for?"""
        if "depth" in self.numbers and result.depth >= self.numbers["depth"]:
            return True
        mate = result.moves[0].mate if result.moves and "mate" in self.numbers else None
        return mate is not None and 0 < (mate + 1) // 2 <= max(self.numbers["mate"], 1)


@dataclass(eq=False)
class _Job:
    """A `go` being carried out."""

    go: Go
    position: Position
    search: Search
    endless: bool  # it ends only when told to, or with a mate that was asked for
    pondering: bool
    abandoned: bool = False  # says nothing more
    result: SearchResult | None = None  # what was found, where it may not be said yet
    told_at: float = 0.0  # when infos were last written
    told: tuple[str, int] = ("", 0)  # the best move and depth they spoke of

    @property
    def must_wait(self) -> bool:
        """`bestmove` is forbidden until the GUI says `stop`."""
        return self.pondering or self.go.infinite or (self.endless and "mate" not in self.go.numbers)


class UciEngine:
    """One engine, driven line by line; `open_search` is called again when options may have changed."""

    def __init__(self, open_search: Callable[[Values], Search], values: Values, write: Callable[[str], object]) -> None:
        self._open_search = open_search
        self._values = values
        self._write_line = write
        self._written = threading.Lock()
        self._state = threading.RLock()
        self._thread = SearchThread()
        self._search: Search | None = None
        self._position: Position | None = None
        self._job: _Job | None = None
        self._restricted: tuple[str, ...] = ()
        self._debug = False

    def write(self, *lines: str) -> None:
        """Write lines that belong together."""
        with self._written:
            for line in lines:
                self._write_line(line)

    def _tell(self, message: str, *lines: str) -> None:
        """Write a message, on one line of ASCII, and what comes after it."""
        self.write("info string " + " ".join(message.split()).encode("ascii", "replace").decode(), *lines)

    def handle(self, line: str) -> bool:
        """Carry out a command; False after `quit`."""
        words = line.split()
        while len(words) > 1 and words[0] not in _COMMANDS and words[0] != "quit":
            words = words[1:]  # the specification: skip unknown words before a command
        if words[:1] == ["quit"]:
            self.close()
            return False
        if words and words[0] not in _COMMANDS:
            self._tell(f"unknown command {_shown(line.strip())}")
        elif words:
            try:
                _COMMANDS[words[0]](self, words[1:])
            except KeimaError as error:
                self._tell(str(error))
        return True

    def finish(self) -> None:
        """Wait for a search that ends of itself, stop one that does not: what to do when the input ends."""
        job = self._job
        if job is not None and (job.pondering or job.endless):
            self._stop([])
        while self._thread.running:
            time.sleep(0.005)

    def close(self) -> None:
        """End a search under way and say nothing of it."""
        with self._state:
            if self._job is not None:
                self._job.abandoned = True
                self._job = None
        self._thread.cancel()

    def _uci(self, words: list[str]) -> None:
        self.write(f"id name keima {__version__}", "id author The keima authors", *self._values.announce(), "uciok")

    def _isready(self, words: list[str]) -> None:
        try:
            if not self._thread.running:
                self._open()
        except KeimaError as error:
            self._tell(str(error))
        self.write("readyok")

    def _setoption(self, words: list[str]) -> None:
        if words[:1] != ["name"] or len(words) < 2:
            raise BadRequest("setoption: expected name NAME value VALUE")
        end = words.index("value") if "value" in words else len(words)
        option = self._values.set(" ".join(words[1:end]), " ".join(words[end + 1 :]))
        if option.kind == "button":
            self._ucinewgame([])

    def _debugging(self, words: list[str]) -> None:
        if words not in (["on"], ["off"]):
            raise BadRequest("debug: expected on or off")
        self._debug = words == ["on"]

    def _ucinewgame(self, words: list[str]) -> None:
        self.close()
        if self._search is not None:
            self._search.clear()

    def _set_position(self, words: list[str]) -> None:
        end = words.index("moves") if "moves" in words else len(words)
        start, moves = words[:end], words[end + 1 :]
        if start[:1] == ["fen"] and len(start) > 1:
            fen: str | None = " ".join(start[1:])
        elif start == ["startpos"]:
            fen = None
        else:
            raise BadRequest("position: expected startpos or fen FEN, then moves")
        self._position = Position.from_fen(fen, moves, chess960=self._values["UCI_Chess960"])

    def _go(self, words: list[str]) -> None:
        go = Go.parse(words)
        if self._job is not None:
            self._stop([])
            self._thread.cancel()
        position = self._position = self._position or Position.start()
        if not position.legal():
            score = "mate 0" if position.in_check else "cp 0"
            self.write(f"info depth 0 score {score}", "bestmove (none)")
            return
        try:
            search = self._open()
            moves = self._searchmoves(go, position)
            if moves or self._restricted:
                search.clear()
            self._restricted = moves
            search.set_position(position)
        except KeimaError as error:
            self._tell(str(error), "bestmove (none)")
            return
        self._begin(go, position, search, go.ponder)

    def _searchmoves(self, go: Go, position: Position) -> tuple[str, ...]:
        """The legal ones of the moves to consider, as the position names them; empty: all."""
        legal = []
        for move in go.moves:
            if _MOVE.fullmatch(move) and position.is_legal(move):
                legal.append(position.play(move).moves[-1])
            else:
                self._tell(f"searchmoves: {_shown(move)} is not a legal move here")
        return tuple(legal)

    def _begin(self, go: Go, position: Position, search: Search, pondering: bool) -> None:
        """Start the search; while pondering, no limits hold."""
        limits = go.limits(position.to_play, self._values["MoveOverheadMs"])
        bounded = any((limits.visits, limits.seconds, limits.clock, "depth" in go.numbers))
        self._job = job = _Job(go, position, search, go.infinite or not bounded, pondering)
        self._thread.start(
            search,
            Limits() if pondering else limits,
            on_end=lambda result, error: self._ended(job, result, error),
            on_update=lambda result: self._update(job, result),
            update_seconds=_UPDATE if {"depth", "mate"}.isdisjoint(go.numbers) else _QUICK_UPDATE,
            allow_moves=self._restricted or None,
        )

    def _update(self, job: _Job, result: SearchResult) -> None:
        """Tell what is new; end the search where it has got as far as was asked."""
        if job.abandoned:
            return
        told = (result.best, int(result.depth))
        now = time.monotonic()
        if result.moves and (told != job.told or now - job.told_at >= _SECONDS_BETWEEN_INFOS):
            job.told, job.told_at = told, now
            self.write(*self._infos(job, result))
        if not job.pondering and job.go.is_reached(result):
            job.search.stop()

    def _ended(self, job: _Job, result: SearchResult | None, error: BaseException | None) -> None:
        """The search is over: say what it found, unless the GUI has yet to ask for it."""
        with self._state:
            if job.abandoned:
                return
            if error is not None or result is None:
                self._job = None
                reason = str(error) if isinstance(error, KeimaError) else f"internal error: {error!r}"
                self._tell(reason, "bestmove (none)")
            elif job.must_wait and not self._thread.asked_to_stop:
                job.result = result
                self.write(*self._infos(job, result))
            else:
                self._say_best(job, result)

    def _say_best(self, job: _Job, result: SearchResult) -> None:
        """The last infos and `bestmove`."""
        self._job = None
        temperature = self._values["Temperature"]
        best = job.search.choose(temperature) if temperature > 0 else result.best
        info = result.move(best)
        line = f"bestmove {best}"
        if info is not None and len(info.pv) > 1:
            line += f" ponder {info.pv[1]}"
        lines = self._infos(job, result)
        if self._debug:
            raw = f"raw value {result.raw_value:+.3f}"
            lines.append(f"info string stopped by {result.stopped_by}, {result.evaluations} evaluations, {raw}")
        self.write(*lines, line)

    def _stop(self, words: list[str]) -> None:
        with self._state:
            job = self._job
            if job is not None and job.result is not None:
                self._say_best(job, job.result)
            elif job is not None:
                self._thread.stop()

    def _ponderhit(self, words: list[str]) -> None:
        with self._state:
            job = self._job
            if job is None or not job.pondering:
                raise BadRequest("ponderhit without go ponder")
            job.abandoned = True
        self._thread.cancel()
        job.search.set_position(job.position)
        self._begin(job.go, job.position, job.search, pondering=False)

    def _open(self) -> Search:
        self._search = search = self._open_search(self._values)
        return search

    def _infos(self, job: _Job, result: SearchResult) -> list[str]:
        usage = look_at_usage(job.search)
        count = self._values["MultiPV"]
        return [self._info(result, info, number, usage) for number, info in enumerate(result.moves[:count], 1)]

    def _info(self, result: SearchResult, info: MoveInfo, number: int, usage: Usage | None) -> str:
        milliseconds = round(result.seconds * 1000)
        words = [
            f"info depth {max(1, int(result.depth))} seldepth {max(1, result.max_depth)}",
            f"time {milliseconds} nodes {result.visits} score {score_of(info)}",
        ]
        if self._values["UCI_ShowWDL"]:
            words.append("wdl {} {} {}".format(*permille(info.win, info.loss)))
        if self._values["UCI_ShowMovesLeft"] and info.moves_left is not None:
            words.append(f"movesleft {max(0, int((1 + info.moves_left) / 2))}")
        made = result.evaluations
        if usage is not None:
            words.append(f"hashfull {round(usage.filled * 1000)}")
            made = usage.descents
        if milliseconds > 0:
            words.append(f"nps {round(made * 1000 / milliseconds)}")
        return " ".join([*words, f"multipv {number} pv", *info.pv])


_COMMANDS: dict[str, Callable[[UciEngine, list[str]], None]] = {
    "uci": UciEngine._uci,
    "isready": UciEngine._isready,
    "setoption": UciEngine._setoption,
    "debug": UciEngine._debugging,
    "ucinewgame": UciEngine._ucinewgame,
    "position": UciEngine._set_position,
    "go": UciEngine._go,
    "stop": UciEngine._stop,
    "ponderhit": UciEngine._ponderhit,
}


def score_of(info: MoveInfo) -> str:
    """A move's score in UCI's words: "cp 34", or "mate 3" (moves of the winner; negative: the side to move loses)."""
    if info.mate:
        return f"mate {int(math.copysign((abs(info.mate) + 1) // 2, info.mate))}"
    return f"cp {centipawns(info.value)}"


def permille(win: float, loss: float) -> tuple[int, int, int]:
    """(win, draw, loss) in thousandths that sum to 1000, as Lc0 rounds them."""
    wins, losses = max(0, round(1000 * win)), max(0, round(1000 * loss))
    draws = 1000 - wins - losses
    if draws < 0:
        wins = min(1000, max(0, wins + draws // 2))
        losses, draws = 1000 - wins, 0
    return wins, draws, losses


def _whole(word: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise BadRequest(f"go: {word} needs a whole number, found {_shown(text)}")
    return int(text)


def _shown(text: str) -> str:
    """Someone else's words, fit for one line of ours."""
    return repr(text if len(text) <= 60 else text[:57] + "...").encode("ascii", "replace").decode()
