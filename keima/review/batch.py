"""Many games reviewed one after another: where each report goes, what is finished already, what failed.

A finished report is its own cache: where the key in it (`analysis.review_key`) is the one wanted, nothing is evaluated
again. So a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keima.errors import BadRecord, BadRequest, KeimaError, UnsupportedPosition
from keima.games.files import stem_of
from keima.games.records import GameRecord
from keima.games.streams import GameFile
from keima.plain import Data
from keima.review.analysis import Judge, review_game, review_key
from keima.review.games import ReviewGame, open_game
from keima.review.report import read_review, render_html, write_text

Record = GameRecord | BadRecord
"""A game, or what was wrong with it."""


@dataclass(frozen=True)
class Task:
    """One game to review, and where its report goes."""

    record: Record
    page: Path


@dataclass(frozen=True)
class Result:
    """What came of one game."""

    page: Path
    review: Data | None = None  # None if it failed
    error: KeimaError | None = None  # why
    reused: bool = False  # the report was finished already and nothing was evaluated


class Reviewer:
    """Judges games with one network, which is opened when the first game needs it. Raises BadWeights.

    Args:
        net: the network file.
        options: the report's `options`, see `review_game`.
        open_judge: opens the network; returns what evaluates positions and the report's `network` object.
    """

    def __init__(self, net: str, options: Data, open_judge: Callable[[], tuple[Judge, Data]]) -> None:
        from keima.systems.files.contents import sha256_of

        self.sha256 = sha256_of(net)
        self.options = options
        self._open_judge = open_judge
        self._opened: tuple[Judge, Data] | None = None

    def review(self, game: ReviewGame, on_progress: Callable[[int], None] | None = None) -> Data:
        """Judge a game. Raises UnsupportedPosition, or what opening the network raises."""
        if self._opened is None:
            self._opened = self._open_judge()
        judge, network = self._opened
        if network["game"] != game.facts["game"]:
            raise UnsupportedPosition(f"a game of {game.facts['game']}; {network['name']} plays {network['game']}")
        return review_game(game, judge, {**network, "sha256": self.sha256}, self.options, on_progress)


def plan(records: Sequence[Record], output: str) -> list[Task]:
    """Where each game's report goes: a folder, or for a single game a file named .html. Raises BadRequest."""
    target = Path(output)
    if target.suffix.lower() in (".html", ".htm") and not target.is_dir():
        if len(records) > 1:
            raise BadRequest(f"{len(records)} games do not fit in one page; name a folder", source=output)
        return [Task(record, target) for record in records]
    taken: dict[str, int] = {}
    return [Task(record, target / _page_name(record, taken)) for record in records]


def _page_name(record: Record, taken: dict[str, int]) -> str:
    """A name after the record's file, with the game's number from the second on, and never the same one twice."""
    name = (record.source or "game").rsplit("!", 1)[-1]
    stem, index = stem_of(GameFile(name, Path(name))), getattr(record, "index", 1)
    base = stem if index == 1 else f"{stem}-{index}"
    taken[base] = taken.get(base, 0) + 1
    return f"{base}.html" if taken[base] == 1 else f"{base}~{taken[base]}.html"


def review_task(
    task: Task, reviewers: Mapping[str, Reviewer], on_progress: Callable[[int], None] | None = None
) -> Result:
    """Review one game by its game's reviewer and write its page, unless a finished one lies there.

    `on_progress` is told how many further positions are judged. What goes wrong is in the result.
    """
    if isinstance(task.record, KeimaError):
        return Result(task.page, error=task.record)
    try:
        game = open_game(task.record)
        reviewer = reviewers[task.record.game]
        stored = read_review(task.page)
        reused = stored is not None and stored.get("key") == review_key(game, reviewer.sha256, reviewer.options)
        review = {**stored, "game": game.facts} if stored and reused else reviewer.review(game, on_progress)
        page = render_html(review)
        if not reused or task.page.read_text(encoding="utf-8") != page:
            write_text(task.page, page)
    except KeimaError as error:
        number = f": game {task.record.index}" if task.record.index > 1 else ""
        return Result(task.page, error=error if error.source else error.at(source=f"{task.record.source}{number}"))
    return Result(task.page, review, reused=reused)
