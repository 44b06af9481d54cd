"""`keima data`: collections of games made ready for training."""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from keima.cli import common
from keima.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keima.training.data.importing import ImportReport, Progress

IMPORT_EXAMPLES = """Examples:

\b
  keima data import games/ -o games.parquet
  keima data import 2010-0?.sgf.gz -o games.parquet --broken broken.txt
  keima data import lichess.pgn.gz -o lichess.parquet --min-moves 20
"""
INFO_EXAMPLES = """Examples:

\b
  keima data info games.parquet
  keima data info games.parquet --json
"""
PLAY_EXAMPLES = """Examples:

\b
  keima data play kata1-b6c96.bin.gz -o nine.parquet --games 1000 --size 9
  keima data play maia-1100.pb.gz maia-1900.pb.gz -o chess.parquet --games 5000
  keima data play strong.bin.gz weak.safetensors -o games.parquet --temperature 0.8 --rules tromp-taylor
"""
SEARCH_EXAMPLES = """Examples:

\b
  keima data search games.parquet b6c96.bin.gz -o searched.parquet --visits 200 --share 0.1
  keima data search chess.parquet uci,nodes=2000:stockfish -o searched.parquet --moves 5
  keima data search chess.parquet uci,nodes=600:stockfish -o trees.parquet --share 0.1 --within chess
"""
SCORE_EXAMPLES = """Examples:

\b
  keima data score maia-1500.pb.gz test.parquet
  keima data score runs/mine/network.pb.gz test.parquet --positions 20000 --json
  keima data score default-chess.safetensors searched.parquet --searches
"""
SPLIT_EXAMPLES = """Examples:

\b
  keima data split games.parquet -o split --test-fraction 0.02
  keima data split games.parquet -o split --test-date 2010-06
  keima data split games.parquet -o split --test-source 'tygem-2010-06*'
"""
EXPORT_EXAMPLES = """Examples:

\b
  keima data export games.parquet -o games.sgf
  keima data export runs/four/games -o games.c4 --number 17 --number 18
  keima data export runs/four/games --json
"""
_SHOWN_BROKEN = 5
_SHOWN_VALUES = 8
_SEARCHED_TOGETHER = 4
"""Games whose positions a network searches side by side."""
_SEARCHED_BATCH = 32
"""Positions it evaluates together."""
_TELL_SECONDS = 30.0

app = Typer(
    help="Collections of games made ready for training.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=IMPORT_EXAMPLES,
)

StoreArgument = Annotated[str, Argument(metavar="STORE", help="A .parquet game store, or a folder of them.")]


@app.callback()
def _data() -> None:
    """Collections of games made ready for training."""


@app.command("import", epilog=IMPORT_EXAMPLES)
def import_(
    paths: Annotated[list[str], Argument(metavar="PATH...", help="SGF or PGN; .gz, .zip, folders too.")],
    output: Annotated[str, Option("-o", "--output", metavar="STORE", help="The .parquet file to write.")],
    game: Annotated[str | None, Option(help="go, chess or connect_four, where a folder holds several.")] = None,
    rules: Annotated[str | None, Option(help="Go rules where a record names none.  [default: chinese]")] = None,
    min_moves: Annotated[int, Option(min=0, help="Leave out games with fewer moves (plies).")] = 10,
    workers: Annotated[int | None, Option(min=1, help="Processes; all cores if not given.")] = None,
    broken: Annotated[str | None, Option(metavar="FILE", help="List every broken game there.")] = None,
    as_json: Annotated[bool, Option("--json", help="The report as JSON on standard output.")] = False,
) -> None:
    """Read game records into a store; broken games and duplicates are left out, and counted."""
    from keima.training.data.importing import import_games

    with _progress() as progress:
        report = import_games(
            paths, output, game=game, rules=rules, min_moves=min_moves, workers=workers, progress=progress
        )
    if broken is not None:
        with common.open_output(broken) as stream:
            for source, reason in report.broken:
                stream.write(f"{source}: {reason}\n")
    if as_json:
        with common.open_output("-") as stream:
            common.write_line(stream, vars(report))
        return
    _tell_import(report, output, listed=broken)


@app.command("play", epilog=PLAY_EXAMPLES)
def play(
    net: common.NetArgument,
    opponent: Annotated[str | None, Argument(metavar="[OPPONENT]", help="The same network if not given.")] = None,
    output: Annotated[str, Option("-o", "--output", metavar="STORE", help="The .parquet file to write.")] = "",
    games: Annotated[int, Option(min=1, help="How many games.")] = 1000,
    size: Annotated[int, Option(min=0, max=19, help="Go board; the network's own, or 19, if not given.")] = 0,
    rules: Annotated[str, Option(help="Rules that count area.")] = "chinese-kgs",
    komi: Annotated[float, Option(help="Points for White.")] = 7.5,
    temperature: Annotated[float, Option(min=0.01, help="Of the policies.")] = 1.0,
    seed: Annotated[int, Option(min=0, help="Of everything random.")] = 0,
    precision: common.Precision = "auto",
    backend: common.Backend = "auto",
) -> None:
    """Let policies play each other, without a search, and write their games to a store.

    Each move is drawn from the policy; in Go among the moves that fill no own true eye, and after two passes, or three
    times as many moves as points, the area is counted with every stone alive. Chess of 400 plies is drawn.
    """
    from keima.inference.evaluator import Evaluator
    from keima.training.reinforce.games import play_store, set_table
    from keima.training.run.recipe import SelfplayRecipe

    if not output:
        raise BadRequest("name the store to write: -o STORE.parquet")
    first = Evaluator(common.open_network(net), backend, precision)
    second = first if opponent is None else Evaluator(common.open_network(opponent), backend, precision)
    wanted = SelfplayRecipe(size=size, rules=rules, komi=komi, temperature=temperature)
    table = set_table(wanted, first.network, second.network)
    moves = play_store((first, second), table, games, output, seed=seed, progress=lambda n: common.say(f"{n:,} games"))
    common.say(f"{output}: {games:,} games, {moves:,} moves")


@app.command("search", epilog=SEARCH_EXAMPLES)
def search(
    store: StoreArgument,
    by: Annotated[str, Argument(metavar="BY", help="A network, or a program: uci,nodes=2000:stockfish.")],
    output: Annotated[str, Option("-o", "--output", metavar="STORE", help="The .parquet file to write.")],
    share: Annotated[float, Option(min=0.0, max=1.0, help="Of the positions, by lot.")] = 1.0,
    visits: Annotated[int, Option(min=1, help="Of a network's search.")] = 100,
    preset: Annotated[str, Option(help="Of a network's search: auto or one of `keima.search.PRESETS`.")] = "auto",
    moves: Annotated[int, Option(min=1, max=100, help="A program's best moves of a position.")] = 5,
    temperature: Annotated[float, Option(min=0.001, help="Of a program's moves, in winning chances.")] = 0.03,
    programs: Annotated[int | None, Option(min=1, help="Run at once; one a core if not given.")] = None,
    seed: Annotated[int, Option(min=0, help="Of the lot.")] = 0,
    within: Annotated[
        str | None,
        Option(metavar="NET", help="Search, in place of the positions, those in the tree of a search from each."),
    ] = None,
    within_visits: Annotated[int, Option(min=2, help="Of each such search.")] = 100,
    lines: Annotated[int, Option(min=1, help="Positions drawn from each such tree.")] = 24,
    even: Annotated[float, Option(min=0.0, max=1.0, help="No tree whose root is further from a draw than this.")] = 0.8,
    precision: common.Precision = "auto",
    backend: common.Backend = "auto",
    threads: common.Threads = None,
) -> None:
    """Search positions of games, and keep what was found beside the moves, for `data.searches` of a training.

    Of a network's search that is π, the share of visits, and Q; of a program the softmax of its best moves' winning
    chances, and the winning chance.

    With --within the positions are those that NET's own search looks at, most of them after a mistake: each is a game
    of its own in the store, without a result.
    """
    from keima.games.game import GAMES
    from keima.review.second import names_program, read_judge
    from keima.training.data.store import GameStore
    from keima.training.distill.searches import Within, network_searcher, program_searcher, search_games

    games = GameStore.open(store)
    with ExitStack() as stack:
        together = 1
        if names_program(by):
            judge = read_judge(by)
            judge.check([games.game])
            searchers = []
            for _ in range(programs or os.cpu_count() or 1):
                program = GAMES[games.game].playing.program(judge.command, judge.nodes, moves)
                stack.callback(program.close)
                searchers.append(program_searcher(program, temperature))
        else:
            evaluator = common.open_player(common.open_network(by), backend, precision, _SEARCHED_BATCH, threads)
            searchers, together = [network_searcher(evaluator, visits, preset)], _SEARCHED_TOGETHER
        trees = None
        if within is not None:
            grower = common.open_player(common.open_network(within), backend, precision, _SEARCHED_BATCH, threads)
            trees, together = Within(grower, within_visits, lines, even), _SEARCHED_TOGETHER
        told = _Told(len(games))
        positions = search_games(
            games, output, searchers, share=share, together=together, seed=seed, within=trees, progress=told
        )
    common.say(f"{output}: {len(games):,} games, {positions:,} positions searched")


class _Told:
    """Says now and then how far a search of games is, and how long it will take."""

    def __init__(self, games: int) -> None:
        self._games, self._began = games, time.monotonic()
        self._told = self._began

    def __call__(self, games: int, positions: int) -> None:
        now = time.monotonic()
        if now - self._told >= _TELL_SECONDS:
            self._told = now
            left = (now - self._began) * (self._games / games - 1) / 60
            common.say(f"{games:,} of {self._games:,} games, {positions:,} positions searched, {left:.0f} min left")


@app.command("info", epilog=INFO_EXAMPLES)
def info(
    store: StoreArgument,
    as_json: Annotated[bool, Option("--json", help="As JSON.")] = False,
    output: common.Output = "-",
) -> None:
    """What a store holds: games, sizes, rules, results, ranks, dates; of self-play also its searches and networks."""
    from keima.training.data.store import GameStore
    from keima.training.selfplay.columns import ShardCounts

    found = GameStore.open(store).info(ShardCounts)
    with common.open_output(output) as stream:
        if as_json:
            stream.write(json.dumps(found, indent=2) + "\n")
            return
        for name, value in found.items():
            stream.write(f"{name.replace('_', ' '):<16}{_shown(value)}\n")


@app.command("score", epilog=SCORE_EXAMPLES)
def score(
    net: common.NetArgument,
    store: StoreArgument,
    positions: Annotated[int, Option(min=1, help="How many; the same ones for every network.")] = 4096,
    searches: Annotated[bool, Option(help="Guess what searches found: their first moves and Q.")] = False,
    as_json: Annotated[bool, Option("--json", help="As JSON, with phases of the game and calibration.")] = False,
    output: common.Output = "-",
) -> None:
    """How well a network guesses the games of a store: first moves, results, and how far off it is."""
    from keima.training.data.store import GameStore
    from keima.training.distill.comparison import evaluate_on
    from keima.training.distill.searches import searched_games

    network, opened = common.open_network(net), GameStore.open(store)
    if searches:
        said = searched_games(opened)
        found = evaluate_on(network, said.games, positions, **said.targets(0.0))
    else:
        found = evaluate_on(network, opened, positions)
    with common.open_output(output) as stream:
        stream.write(json.dumps(found.to_json(), indent=2) + "\n" if as_json else f"{net}: {found.summary()}\n")


@app.command("export", epilog=EXPORT_EXAMPLES)
def export(
    store: StoreArgument,
    output: common.Output = "-",
    number: Annotated[list[int] | None, Option(min=0, help="Only these: self-play's numbers, or from 1.")] = None,
    as_json: Annotated[bool, Option("--json", help="JSON lines, with what self-play's searches said.")] = False,
) -> None:
    """Games as records of their game (SGF, PGN, .c4), or as JSON lines."""
    from keima.games.game import GAMES
    from keima.training.data.export import export as games_of
    from keima.training.data.export import to_json
    from keima.training.data.store import GameStore
    from keima.training.selfplay.columns import describe_row

    opened = GameStore.open(store)
    write = GAMES[opened.game].records.write
    count = 0
    with common.open_output(output) as stream:
        for found in games_of(opened, number or ()):
            if as_json:
                common.write_line(stream, to_json(found, describe_row))
            else:
                stream.write(write(found.record).rstrip("\n") + "\n\n")
            count += 1
    if output != "-":
        common.say(f"{output}: {count:,} games")


@app.command("split", epilog=SPLIT_EXAMPLES)
def split(
    store: StoreArgument,
    output: Annotated[str, Option("-o", "--output", metavar="DIR", help="For train.parquet, test.parquet.")],
    test_source: Annotated[str | None, Option(metavar="GLOB", help="Test games by their file's name.")] = None,
    test_date: Annotated[str | None, Option(metavar="DATE", help="Test games by date: 2010-06.")] = None,
    test_fraction: Annotated[float | None, Option(metavar="PART", help="About this part: 0.02.")] = None,
) -> None:
    """Divide a store into games to train on and games to test on."""
    from keima.training.data.store import GameStore, TestGames, split_store

    chosen = TestGames(test_source, test_date, test_fraction)
    report = split_store(GameStore.open(store), output, chosen)
    common.say(f"{output}: {report.train:,} games in train.parquet, {report.test:,} in test.parquet")


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A line that counts games on a terminal's standard error; None elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status("reading") as status:
        yield lambda games, done, files: status.update(f"{games:,} games, {done:,} of {files:,} files")


def _tell_import(report: ImportReport, output: str, listed: str | None) -> None:
    left_out = {"duplicates": report.duplicates, "too short": report.short, "broken": len(report.broken)}
    rate = (report.games + sum(left_out.values())) / max(report.seconds, 1e-9)
    size, speed = f"{report.bytes / 1e6:,.1f} MB", f"{report.seconds:.1f} s ({rate:,.0f} read a second)"
    games = f"{report.games:,} games of {report.game}, {report.moves:,} moves, {size}"
    common.say(f"{output}: {games}, from {report.files:,} files in {speed}")
    if any(left_out.values()):
        common.say("left out: " + ", ".join(f"{count:,} {name}" for name, count in left_out.items() if count))
    for source, reason in report.broken[:_SHOWN_BROKEN]:
        common.say(f"  {source}: {reason}")
    more = len(report.broken) - _SHOWN_BROKEN
    if more > 0:
        common.say(f"  and {more:,} more; " + (f"all are listed in {listed}" if listed else "--broken FILE lists all"))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        parts = [f"{name} {_shown(inner)}" for name, inner in value.items() if inner not in ("", {})]
        more = len(parts) - _SHOWN_VALUES
        return ", ".join(parts[:_SHOWN_VALUES]) + (f", … {more} more" if more > 0 else "")
    return f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
