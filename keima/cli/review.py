"""`keima review`: whole games judged by a network, alone or with a search, as HTML pages and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from keima.cli import common
from keima.errors import BadRecord, BadRequest
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
  keima review game.sgf --net kata1-b18c384nbt.bin.gz --visits 50 --deeper 800
  keima review game.sgf --sgf game-reviewed.sgf
  keima review games.pgn --net maia-1900.pb.gz --pgn reviewed
  keima review game.pgn --judge uci:stockfish
  keima review game.sgf --net b18c384nbt-humanv0.bin.gz --option profile=rank_5k

Without --net, keima's own small network of the game judges (docs/default-networks.md).

With --visits N every position is searched with N visits, which finds what one look of the network misses and shows the
variations; it takes about N / 2 times as long. Without it the network judges alone: many games in a short time, on any
machine, and the figures are the network's own. --deeper M searches the mistakes once more, with M visits.

--judge asks another program too (uci,nodes=N:COMMAND; 100,000 nodes a position if not given): what both blame is sure.

--sgf, --pgn or --record write the record again with the review in it, as it came besides: variations and comments are
kept, mistakes get a comment and the better variation, positions their values.

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
    deeper: Annotated[
        int | None, Option(min=2, metavar="N", help="Search: the mistakes once more, with N visits.")
    ] = None,
    preset: Annotated[
        str | None, Option(help="Search: auto (if not given), alphago, alphago-zero, katago, lc0 or gumbel.")
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Search: of everything random; 0 if not given.")] = None,
    judge: Annotated[
        str | None, Option(metavar="JUDGE", help="A second opinion: uci:COMMAND, or uci,nodes=N:COMMAND.")
    ] = None,
    record: Annotated[
        str | None,
        Option("--record", "--sgf", "--pgn", metavar="OUT", help="Annotated records: a file, or a folder."),
    ] = None,
    limit: Annotated[int | None, Option(min=1, help="Only the first N games.")] = None,
) -> None:
    """Review games: every position and move judged, the largest mistakes first, one HTML page a game.

    The pages' names are printed. A game that cannot be read is reported, the others go on; one that breaks off or
    breaks the rules is reviewed up to there. The exit status is 2 in both cases.
    """
    from itertools import islice

    from keima.games.files import read_records
    from keima.review.batch import Reviewer, plan
    from keima.review.index import write_index
    from keima.review.second import read_judge
    from keima.systems.files.defaults import default_network, find_network

    own = common.read_options(option)
    options: dict[str, object] = {
        "symmetry": common.read_symmetry(symmetry),
        "precision": "f32" if precision == "auto" else precision,
        **({"network": own} if own else {}),
        **_search_options(visits, {"deeper": deeper, "preset": preset, "seed": seed}),
    }
    second = None if judge is None else read_judge(judge)
    if second is not None:
        options["judge"] = str(second)

    def reviewer(path: str) -> Reviewer:
        return Reviewer(path, options, lambda: _open_judge(path, backend, precision, batch, threads, own), second)

    named = None if net is None else reviewer(find_network(net))
    records = list(islice(read_records(games), limit))
    games_of = {getattr(found.partial if isinstance(found, BadRecord) else found, "game", "") for found in records}
    played = sorted(games_of - {""})
    if second is not None:
        second.check(played)
    reviewers = {game: named or reviewer(str(default_network(game))) for game in played}
    tasks = plan(records, output, record)
    with ExitStack() as stack:
        if second is not None:
            stack.callback(second.close)
        stream = stack.enter_context(common.open_output(json_path)) if json_path else None
        results = _run(tasks, reviewers, stream, quiet=json_path == "-")
    if len(tasks) > 1 and any(result.review for result in results):  # a page that lists the games, beside theirs
        index = write_index(results, output)
        print(index)
    if any(result.error for result in results):
        raise Exit(common.FAILED)


def _search_options(visits: int, chosen: Mapping[str, object]) -> dict[str, object]:
    """The report's options of a search. Raises BadRequest: some are given, but no visits; or they cannot be."""
    from keima.review.variations import check_search

    given = {name: value for name, value in chosen.items() if value is not None}
    if not visits:
        if given:
            named = " and ".join(f"--{name}" for name in given)
            raise BadRequest(f"{named} belongs to a search: give --visits N too")
        return {}
    options: dict[str, object] = {"visits": visits, "preset": "auto", "seed": 0, **given}
    check_search(options)
    return options


def _open_judge(
    net: str, backend: str, precision: str, batch: int, threads: int | None, own: dict[str, object]
) -> tuple[Judge, Data]:
    from keima.review.games import network_entry
    from keima.systems.files.defaults import judging_facts

    network = common.open_network(net)
    facts = {**network_entry(network), **judging_facts(network)}
    return common.open_evaluator(network, backend, precision, batch, threads, own), facts


def _run(
    tasks: list[Task], reviewers: Mapping[str, Reviewer], json_stream: IO[str] | None, quiet: bool
) -> list[Result]:
    """Review every game; prints each page's name, writes each review to the JSON stream, complains about failures."""
    from dataclasses import replace

    from keima.review.annotate import Sources
    from keima.review.batch import review_task

    results, sources = [], Sources()
    with _progress(len(tasks)) as (start, begin, advance):
        for number, task in enumerate(tasks, 1):
            start(number, task)
            result = review_task(task, reviewers, advance, begin, sources)
            if result.error:
                common.complain(str(result.error))
            if result.review is not None:
                if not quiet:
                    print(*filter(None, (result.page, result.record)), sep="\n", flush=True)
                if json_stream is not None:
                    json_stream.write(json.dumps(result.review, ensure_ascii=False, separators=(",", ":")) + "\n")
                result = replace(result, review={**result.review, "positions": result.review["positions"][-1:]})
            results.append(result)
    reused = sum(result.reused for result in results)
    done = sum(result.review is not None for result in results)
    broken = sum(result.review is not None and result.error is not None for result in results)
    told = [f"{done} of {len(results)} games reviewed"]
    told += [f"{broken} of them up to where they break off"] if broken else []
    told += [f"{reused} of them already before"] if reused else []
    print(", ".join(told), file=sys.stderr)
    return results


Start = Callable[[int, "Task"], None]
Count = Callable[[int], None]


@contextmanager
def _progress(total: int) -> Iterator[tuple[Start, Count | None, Count | None]]:
    """A progress bar on standard error where that is a terminal, else nothing: a game is taken up, begins, advances."""
    if not sys.stderr.isatty():
        yield (lambda number, task: None), None, None
        return
    # Where stdout is a pipe, the pages' names belong there and not on the terminal.
    with common.progress_bar("{task.description}", "", redirect_stdout=sys.stdout.isatty()) as progress:
        games = progress.add_task("games", total=total) if total > 1 else None
        positions = progress.add_task("positions", total=None)

        def start(number: int, task: Task) -> None:
            progress.reset(positions, total=None, description=task.page.stem[:40])
            if games is not None:
                progress.update(games, completed=number - 1)

        def begin(length: int) -> None:
            progress.reset(positions, total=length)

        yield start, begin, lambda count: progress.advance(positions, count)
