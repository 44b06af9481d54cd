"""Many games reviewed one after another: where each report goes, what is finished already, what failed.

A finished report is its own cache: where the key in it (`analysis.review_key`) is the one wanted, nothing is evaluated
again. So a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from keima.errors import BadRecord, BadRequest, KeimaError, UnsupportedPosition
from keima.games.files import game_of, stem_of
from keima.games.game import GAMES
from keima.games.records import GameRecord
from keima.games.streams import GameFile
from keima.plain import Data
from keima.review.analysis import Judge, review_game, review_key, steps
from keima.review.annotate import Sources, annotated
from keima.review.games import ReviewGame, open_game
from keima.review.report import read_review, render_html, write_text
from keima.review.second import SecondJudge

INDEX = "index.html"
"""The page that lists the others of its folder."""
Record = GameRecord | BadRecord
"""A game, or what was wrong with it."""


@dataclass(frozen=True)
class Task:
    """One game to review, and where its report goes."""

    record: Record
    page: Path
    index: str = ""  # the name of the page, beside it, that lists it with others
    annotated: Path | None = None  # where its annotated record goes, if one is wanted


@dataclass(frozen=True)
class Result:
    """What came of one game."""

    page: Path
    review: Data | None = None  # None if it failed
    record: Path | None = None  # the annotated record
    error: KeimaError | None = None  # why, or why the review stops short of the record's end
    reused: bool = False  # the report was finished already and nothing was evaluated


class Reviewer:
    """Judges games with one network, which is opened when the first game needs it. Raises BadWeights.

    Args:
        net: the network file.
        options: the report's `options`, see `review_game`.
        open_judge: opens the network; returns what evaluates positions and the report's `network` object.
        second: another program that judges too, or None.
    """

    def __init__(
        self,
        net: str,
        options: Data,
        open_judge: Callable[[], tuple[Judge, Data]],
        second: SecondJudge | None = None,
    ) -> None:
        from keima.systems.files.contents import sha256_of

        self.sha256 = sha256_of(net)
        self.options = options
        self.second = second
        self._open_judge = open_judge
        self._opened: tuple[Judge, Data] | None = None

    def review(self, game: ReviewGame, on_progress: Callable[[int], None] | None = None) -> Data:
        """Judge a game. Raises UnsupportedPosition, or what opening the network raises."""
        if self._opened is None:
            self._opened = self._open_judge()
        judge, network = self._opened
        if network["game"] != game.facts["game"]:
            raise UnsupportedPosition(f"a game of {game.facts['game']}; {network['name']} plays {network['game']}")
        network = {**network, "sha256": self.sha256}
        second = self.second.opinions(game.game) if self.second else None
        return review_game(game, judge, network, self.options, on_progress, second=second)


def plan(records: Sequence[Record], output: str, annotated: str | None = None) -> list[Task]:
    """Where each game's report and annotated record go: a folder, or for a single game a file. Raises BadRequest."""
    target = Path(output)
    index = INDEX if len(records) > 1 else ""
    if target.suffix.lower() in (".html", ".htm") and not target.is_dir():
        pages = [_only(records, target)]
    else:
        taken = {Path(INDEX).stem: 1}
        pages = [target / _page_name(record, taken) for record in records]
    copies: list[Path | None] = [None] * len(records)
    if annotated is not None:
        place = Path(annotated)
        if game_of(annotated) and not place.is_dir():
            copies = [_only(records, place)]
        else:
            copies = [
                place / page.with_suffix(_ending(record)).name for page, record in zip(pages, records, strict=True)
            ]
    return [Task(record, page, index, copy) for record, page, copy in zip(records, pages, copies, strict=True)]


def _only(records: Sequence[Record], file: Path) -> Path:
    if len(records) > 1:
        raise BadRequest(f"{len(records)} games do not fit in one file; name a folder", source=str(file))
    return file


def _ending(record: Record) -> str:
    """Of a record of this one's game."""
    played = _played(record)
    return GAMES[played.game].suffixes[0] if played else ""


def _page_name(record: Record, taken: dict[str, int]) -> str:
    """A name after the record's file, with the game's number from the second on, and never the same one twice."""
    stem, index = stem_of(GameFile.named(record.source or "game")), getattr(record, "index", 1)
    base = stem if index == 1 else f"{stem}-{index}"
    taken[base] = taken.get(base, 0) + 1
    return f"{base}.html" if taken[base] == 1 else f"{base}~{taken[base]}.html"


def review_task(
    task: Task,
    reviewers: Mapping[str, Reviewer],
    on_progress: Callable[[int], None] | None = None,
    on_begin: Callable[[int], None] | None = None,
    sources: Sources | None = None,
) -> Result:
    """Review one game by its game's reviewer and write its page, unless a finished one lies there.

    `on_begin` is told how many positions `on_progress` will tell of; `sources` keeps files between the games. What goes
    wrong is in the result, with a review of the game up to there, if it could be played so far.
    """
    try:
        game = open_game(task.record)
        reviewer = reviewers[game.facts["game"]]
        stored = read_review(task.page)
        reused = stored is not None and stored.get("key") == review_key(game, reviewer.sha256, reviewer.options)
        if on_begin is not None:
            on_begin(steps(game, reviewer.options))
        review = {**stored, "game": game.facts} if stored and reused else reviewer.review(game, on_progress)
        page = render_html(review, task.index)
        if not reused or task.page.read_text(encoding="utf-8") != page:
            write_text(task.page, page)
        if task.annotated is not None:
            write_text(task.annotated, annotated(_played(task.record), review, sources))
    except KeimaError as error:
        return Result(task.page, error=_placed(error, task.record))
    problem = game.problem and _placed(game.problem, task.record)
    return Result(task.page, review, task.annotated, problem, reused)


def _played(record: Record) -> GameRecord:
    """A record, or of a broken one what could be read."""
    return cast(GameRecord, record.partial if isinstance(record, BadRecord) else record)


def _placed(error: KeimaError, record: Record) -> KeimaError:
    """The error with the name of the file."""
    if error.source or isinstance(record, KeimaError):
        return error
    number = f": game {record.index}" if record.index > 1 else ""
    return error.at(source=f"{record.source}{number}")
