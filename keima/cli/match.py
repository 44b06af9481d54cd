"""`keima match`: games between two players, their Elo difference with its error, records kept."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from keima.cli import common
from keima.errors import BadRequest

if TYPE_CHECKING:
    from keima.elo import Sprt
    from keima.engines.match.results import GameResult, Summary

EXAMPLES = """Examples:

\b
  keima match go "gtp:gnugo --mode gtp --level 10" --size 9 --games 40
  keima match kata1-b6c96.bin.gz "gtp:gnugo --mode gtp --level 10" --games 40 -o vs-gnugo
  keima match NET,visits=400 NET,visits=100 --size 9 --games 200
  keima match NET,preset=katago NET,preset=alphago-zero --size 9 --sprt 0,35
  keima match b18c384nbt-humanv0.bin.gz,visits=40,profile=rank_5k go,visits=40 --size 9
  keima match maia-1900.pb.gz,visits=200 policy:maia-1900.pb.gz --games 200
  keima match maia-1900.pb.gz,visits=800 "uci,nodes=1000:stockfish" --openings book.pgn --time 60+0.6

Where a player's NET is go, chess or connect_four, keima's own network of that game plays (docs/default-networks.md).
Run it again with the same -o, and it goes on where it was interrupted.
"""

PLAYER_HELP = "NET[,visits=N,profile=P,...], policy:NET, gtp:COMMAND or uci,nodes=N:COMMAND."


def match(
    a: Annotated[str, Argument(metavar="A", help=PLAYER_HELP)],
    b: Annotated[str, Argument(metavar="B", help="The same.")],
    games: Annotated[int, Option(min=1, help="How many games.")] = 100,
    output: Annotated[
        str | None, Option("-o", "--output", metavar="DIR", help="Keep records and results; resume from there.")
    ] = None,
    visits: Annotated[int, Option(min=1, help="Visits a move of networks that name none.")] = 100,
    time: Annotated[str | None, Option(metavar="T", help="Clock: 300, 60+0.6 or 60/3x10, in seconds.")] = None,
    size: Annotated[str | None, Option(help="Go board: 9, or 13x9; 19 if not given.")] = None,
    rules: Annotated[str | None, Option(help="Go rules: area (default), or KataGo's names, JSON or shorthand.")] = None,
    komi: Annotated[float | None, Option(help="Go: the usual one of the rules if not given.")] = None,
    openings: Annotated[
        str, Option(metavar="O", help="balanced (built-in), none, random:PLIES, or an SGF, PGN or FEN file.")
    ] = "balanced",
    plies: Annotated[int | None, Option(min=0, help="Moves taken of each game of an openings file.")] = None,
    swap: Annotated[bool, Option("--swap/--no-swap", help="Each opening twice, colours swapped.")] = True,
    seed: Annotated[int, Option(min=0, help="Of openings and everything random.")] = 0,
    parallel: Annotated[int | None, Option(min=1, help="Games at once; one a core, or 1 where time counts.")] = None,
    threads: common.Threads = None,
    resign: Annotated[
        float, Option(min=0, max=0.5, help="Networks give up below this winning chance, 3 times in a row.")
    ] = 0.02,
    max_moves: Annotated[int | None, Option(min=1, help="Moves (plies) at which a game is ended.")] = None,
    timeout: Annotated[float, Option(min=0.01, help="Seconds after which an engine counts as hung.")] = 120.0,
    max_faults: Annotated[int, Option(min=0, help="Faults of one player that the match bears.")] = 5,
    scorer: Annotated[
        str | None, Option(metavar="PLAYER", help="Go: a third player that says which stones are dead.")
    ] = None,
    sprt: Annotated[
        str | None, Option(metavar="ELO0,ELO1[,ALPHA,BETA]", help="Stop when this test is decided.")
    ] = None,
    json_path: Annotated[
        str | None, Option("--json", metavar="FILE", help="Write the summary as JSON; - is stdout.")
    ] = None,
) -> None:
    """Play a match and say how much stronger A is: score, Elo difference, 95 % intervals.

    An engine that crashes, hangs, or answers nonsense loses that game, and is named. docs/matches.md tells the rest.
    """
    from keima.engines.match.match import Match, MatchOptions
    from keima.engines.match.players import Settings

    options = MatchOptions(
        games=games,
        size=None if size is None else _size(size),
        rules=None if rules == "area" else rules,
        komi=komi,
        openings=openings,
        opening_plies=plies,
        swap=swap,
        seed=seed,
        parallel=parallel,
        time=time,
        max_plies=max_moves,
        max_faults=max_faults,
        scorer=scorer,
        sprt=None if sprt is None else _sprt(sprt),
        settings=Settings(visits=visits, resign=resign, timeout=timeout, threads=threads),
    )
    played = Match(a, b, options, output)
    with common.open_output(json_path) if json_path else nullcontext() as stream:
        if played.played:
            print(f"{played.played} games of this match are played already", file=sys.stderr)
        with showing_games(games, played.played) as show:
            summary = played.run(lambda result, summary: show(game_line(result, summary), standing(summary)))
        if stream is not None:
            stream.write(json.dumps(summary.to_json(), ensure_ascii=False) + "\n")
    if json_path != "-":
        print("\n".join(describe(summary)))


def _size(text: str) -> tuple[int, int]:
    """A board size: "9", or "13x9" (columns x rows)."""
    found = re.fullmatch(r"([0-9]{1,2})(?:[x×]([0-9]{1,2}))?", text)
    if not found:
        raise BadRequest(f"--size {text!r}: expected a number, or COLUMNSxROWS")
    return int(found[1]), int(found[2] or found[1])


def _sprt(text: str) -> Sprt:
    from keima.elo import Sprt

    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3, 4):
        raise BadRequest(f"--sprt {text!r}: expected ELO0,ELO1 or ELO0,ELO1,ALPHA,BETA")
    return Sprt(*numbers)


@contextmanager
def showing_games(total: int, done: int) -> Iterator[Callable[[str, str], None]]:
    """A line a game on standard error, and where that is a terminal a bar below them with the standing."""
    if not sys.stderr.isatty():
        yield lambda line, stands: print(f"{line} | {stands}", file=sys.stderr, flush=True)
        return
    with common.progress_bar("", "{task.description}") as progress:
        task = progress.add_task("", total=total, completed=done)

        def show(line: str, stands: str) -> None:
            progress.console.print(line, markup=False, highlight=False)
            progress.update(task, advance=1, description=stands)

        yield show


def game_line(result: GameResult, summary: Summary) -> str:
    """One game in one line."""
    first, second = summary.names if result.first == "A" else summary.names[::-1]
    seconds = "+".join(f"{spent:.1f}" for spent in result.seconds)
    ended = f"{result.result}, {result.reason} ({result.plies} moves, A+B {seconds} s)"
    return f"game {result.number}: {first} – {second}: {ended}"


def standing(summary: Summary) -> str:
    """Where the match stands, in a few words."""
    tally = summary.tally
    words = f"A {tally.points:g}/{tally.games} ({100 * tally.score:.1f} %) Elo {_elo(summary)}"
    if summary.sprt is not None:
        words += f" LLR {summary.sprt[1]:.2f}"
    return words


def describe(summary: Summary) -> list[str]:
    """The summary in words."""
    tally = summary.tally
    low, high = tally.score_interval
    lines = [
        f"A: {summary.names[0]}",
        f"B: {summary.names[1]}",
        f"games {tally.games}: A wins {tally.wins}, draws {tally.draws}, loses {tally.losses} "
        f"(moving first {_wdl(summary.as_first)}, second {_wdl(summary.as_second)})",
        f"score {100 * tally.score:.1f} % (95 %: {100 * low:.1f} to {100 * high:.1f})",
        f"Elo {_elo(summary)} (95 %), A is the stronger with {100 * tally.superiority:.1f} %",
    ]
    if any(tally.pairs):
        lines.append(f"pairs with 0, ½, 1, 1½, 2 points for A: {', '.join(map(str, tally.pairs))}")
    if summary.repeated:
        lines.append(
            f"{summary.repeated} of the games repeat another move by move and tell nothing new (the intervals count "
            "them): try other --openings, or temperature=0.5,plies=6 of a player"
        )
    if summary.sprt is not None:
        test, ratio, verdict = summary.sprt
        decided = {"H1": f"H1: at least {test.elo1:g}", "H0": f"H0: at most {test.elo0:g}", None: "undecided"}[verdict]
        bounds = f"LLR {ratio:.2f} ({test.lower:.2f} to {test.upper:.2f})"
        lines.append(f"SPRT elo0 {test.elo0:g}, elo1 {test.elo1:g}: {bounds}, {decided}")
    for result in summary.faults:
        fault = result.fault or {}
        lines.append(f"fault in game {result.number}: {fault['kind']} of {fault['player']}: {fault['detail']}")
    return lines


def _elo(summary: Summary) -> str:
    elo, low, high = (_signed(number) for number in (summary.tally.elo, *summary.tally.elo_interval))
    return f"{elo} [{low}, {high}]"


def _signed(number: float) -> str:
    text = f"{number:+.0f}"
    return "0" if text in ("-0", "+0") else text


def _wdl(counts: tuple[int, int, int]) -> str:
    return "+{} ={} −{}".format(*counts)
