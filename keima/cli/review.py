"""`keima review`: whole games judged by a network, alone or with a search, as HTML pages and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from keima.cli import common
from keima.errors import BadRecord
from keima.plain import Data

if TYPE_CHECKING:
    from keima.review.analysis import Judge
    from keima.review.batch import Result, Reviewer, Task

EXAMPLES = """Examples:

\b
  keima review game.sgf
  keima review game.sgf --net kata1-b6c96.bin.gz
  keima review game.sgf --net kata1-b6c96.bin.gz -o report.html --json report.json
  keima review my-games/ archive.zip --net kata1-b18c384nbt.bin.gz -o reports --symmetry average
  keima review game.sgf --net kata1-b18c384nbt.bin.gz --visits 50
  keima review games.pgn --net maia-1900.pb.gz
  keima review game.sgf --net b18c384nbt-humanv0.bin.gz --option profile=rank_5k

Without --net, keima's own small network of the game judges (docs/default-networks.md).

With --visits N every position is searched with N visits, which finds what one look of the network misses and shows the
variations; it takes about N / 2 times as long. Without it the network judges alone: many games in a short time, on any
machine, and the figures are the network's own.

Run it again, and finished games are not evaluated again: each page carries its review and the key of network, game
and options. --json writes the review of docs/review-json.md: one object, or for several games one a line.
"""


def review(
    games: Annotated[list[str], Argument(metavar="GAME...", help="Records: files, .gz, .zip, folders.")],
    net: Annotated[
        str | None, Option(metavar="NET", help="Network file that judges; keima's own if not given.")
    ] = None,
    output: Annotated[
        str, Option("-o", "--output", metavar="OUT", help="FILE.html for one game, or a folder.")
    ] = "reports",
    json_path: Annotated[str | None, Option("--json", metavar="FILE", help="Also write JSON; - is stdout.")] = None,
    backend: common.Backend = "auto",
    precision: common.Precision = "auto",
    symmetry: common.Symmetry = "0",
    batch: common.BatchSize = 8,
    threads: common.Threads = None,
    option: common.NetworkOptions = None,
    visits: Annotated[
        int, Option(min=0, help="Search each position with N visits; 0: the network alone, the quickest.")
    ] = 0,
    preset: Annotated[str, Option(help="Search: auto, alphago, alphago-zero, katago, lc0 or gumbel.")] = "auto",
    seed: Annotated[int, Option(min=0, help="Search: of everything random.")] = 0,
    limit: Annotated[int | None, Option(min=1, help="Only the first N games.")] = None,
) -> None:
    """Review games: every position and move judged, the largest mistakes first, one HTML page a game.

    The pages' names are printed. A game that cannot be read is reported, the others go on; the exit status is then 2.
    """
    from itertools import islice

    from keima.games.files import read_records
    from keima.review.batch import Reviewer, plan
    from keima.review.report import render_index, write_text
    from keima.systems.files.defaults import default_network, find_network

    own = common.read_options(option)
    options: dict[str, object] = {
        "symmetry": common.read_symmetry(symmetry),
        "precision": "f32" if precision == "auto" else precision,
        **({"network": own} if own else {}),
    }
    if visits:
        from keima.review.variations import check_search

        options |= {"visits": visits, "preset": preset, "seed": seed}
        check_search(options)

    def reviewer(path: str) -> Reviewer:
        return Reviewer(path, options, lambda: _open_judge(path, backend, precision, batch, threads, own))

    named = None if net is None else reviewer(find_network(net))
    records = list(islice(read_records(games), limit))
    played = sorted({record.game for record in records if not isinstance(record, BadRecord)})
    reviewers = {game: named or reviewer(str(default_network(game))) for game in played}
    tasks = plan(records, output)
    with common.open_output(json_path) if json_path else nullcontext() as stream:
        results = _run(tasks, reviewers, stream, quiet=json_path == "-")
    if len(tasks) > 1:
        entries = [(result.page.name, result.review) for result in results if result.review is not None]
        if entries:  # a page that lists the games, beside theirs
            index = Path(output) / "index.html"
            write_text(index, render_index(entries))
            print(index)
    if any(result.error for result in results):
        raise Exit(common.FAILED)


def _open_judge(
    net: str, backend: str, precision: str, batch: int, threads: int | None, own: dict[str, object]
) -> tuple[Judge, Data]:
    network = common.open_network(net)
    pedigree = network.pedigree
    facts = {"name": pedigree.name, "game": network.encoding.game, "system": network.system, "format": pedigree.format}
    return common.open_evaluator(network, backend, precision, batch, threads, own), facts


def _run(
    tasks: list[Task], reviewers: Mapping[str, Reviewer], json_stream: IO[str] | None, quiet: bool
) -> list[Result]:
    """Review every game; prints each page's name, writes each review to the JSON stream, complains about failures."""
    from dataclasses import replace

    from keima.review.batch import review_task

    results = []
    with _progress(len(tasks)) as (begin, advance):
        for number, task in enumerate(tasks, 1):
            begin(number, task)
            result = review_task(task, reviewers, advance)
            if result.error:
                common.complain(str(result.error))
            elif not quiet:
                print(result.page, flush=True)
            if json_stream is not None and result.review is not None:
                json_stream.write(json.dumps(result.review, ensure_ascii=False, separators=(",", ":")) + "\n")
            results.append(replace(result, review=result.review and {**result.review, "positions": []}))
    reused = sum(result.reused for result in results)
    failed = sum(result.error is not None for result in results)
    done = f"{len(results) - failed} of {len(results)} games reviewed"
    print(f"{done}, {reused} of them already before" if reused else done, file=sys.stderr)
    return results


Begin = Callable[[int, "Task"], None]


@contextmanager
def _progress(total: int) -> Iterator[tuple[Begin, Callable[[int], None] | None]]:
    """A progress bar on standard error where that is a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield (lambda number, task: None), None
        return
    # Where stdout is a pipe, the pages' names belong there and not on the terminal.
    with common.progress_bar("{task.description}", "", redirect_stdout=sys.stdout.isatty()) as progress:
        games = progress.add_task("games", total=total) if total > 1 else None
        positions = progress.add_task("positions", total=None)

        def begin(number: int, task: Task) -> None:
            length = 1 if isinstance(task.record, BadRecord) else 2 * len(task.record.turns) + 1
            progress.reset(positions, total=length, description=task.page.stem[:40])
            if games is not None:
                progress.update(games, completed=number - 1)

        yield begin, lambda count: progress.advance(positions, count)
