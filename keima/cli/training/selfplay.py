"""`keima selfplay`: learning from zero, by games of search."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, Typer
from typer.core import TyperGroup

from keima.cli import common
from keima.cli.training.train import check_installed

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from keima.training.selfplay.roles.role import Role
    from keima.training.selfplay.roles.status import Overview
    from keima.training.selfplay.roles.supervisor import RunWatcher

EXAMPLES = """Examples:

\b
  keima selfplay recipes/selfplay/connect-four.toml -o runs/four
  keima selfplay recipes/selfplay/connect-four.toml -o runs/four --workers 1 --set games.side_by_side=128
  keima selfplay worker --store s3://bucket/four
  keima selfplay learner --store s3://bucket/four

Started again on the same folder, it goes on where it was, whatever was killed. docs/selfplay.md tells the rest.
"""
RUN_EXAMPLES = """Examples:

\b
  keima selfplay recipes/selfplay/connect-four.toml -o runs/four
  keima selfplay recipes/selfplay/connect-four.toml -o runs/four --set run.seed=2 --quiet
  keima selfplay recipes/selfplay/connect-four.toml -o s3://bucket/four --ray auto
"""
WORKER_EXAMPLES = """Examples:

\b
  keima selfplay worker --store /mnt/shared/four
  keima selfplay worker --store s3://bucket/four --name spot-17 --folder /var/tmp/four
"""
LEARNER_EXAMPLES = """Examples:

\b
  keima selfplay learner --store s3://bucket/four --recipe recipes/selfplay/connect-four.toml
  keima selfplay learner --store s3://bucket/four
"""
JUDGE_EXAMPLES = """Examples:

\b
  keima selfplay judge --store s3://bucket/four
"""
_PLAIN_SECONDS = 30.0


class RecipeGroup(TyperGroup):
    """A group whose first word is a recipe where it is no command: `keima selfplay RECIPE` is `… run RECIPE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """An option at the beginning is the run's, too."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names, or the run."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["run", *args])


app = Typer(
    cls=RecipeGroup,
    help="Learn from zero: play by search, learn from the games, play with what was learned.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXAMPLES,
)

StoreAddress = Annotated[str, Option("--store", metavar="ADDRESS", help="The run: a folder, or s3://…, gs://….")]
Name = Annotated[str, Option("--name", help="Its own among all of the run; made from the host's if not given.")]
Folder = Annotated[Path | None, Option("--folder", metavar="DIR", help="What it keeps here; the store if a folder.")]
Turns = Annotated[bool, Option("--turns", help="Take turns with the run's other roles here.")]
Parent = Annotated[int, Option("--parent", hidden=True)]


@app.callback()
def _selfplay() -> None:
    """Learn from zero: play by search, learn from the games, play with what was learned."""


@app.command("run", epilog=RUN_EXAMPLES, short_help="Everything on this machine: `keima selfplay RECIPE`.")
def run(
    recipe: common.RecipeArgument,
    output: common.RunFolder = None,
    settings: common.Settings = None,
    workers: Annotated[int | None, Option(min=1, help="Processes that play; by the machine if not given.")] = None,
    ray: Annotated[
        str | None, Option(metavar="ADDRESS", help="Run on this Ray cluster: auto, HOST:PORT, ray://…, or local.")
    ] = None,
    quiet: common.Quiet = False,
) -> None:
    """Play and learn on this machine by a recipe, or go on with a run that was stopped."""
    check_installed()
    from keima.training.selfplay.recipe import read_loop
    from keima.training.selfplay.roles import forks

    overrides = tuple(settings or ())
    read = read_loop(recipe, overrides)
    folder = output or str(Path("runs") / Path(recipe).stem)
    if ray is not None:
        from keima.training.selfplay.roles import cluster

        print(cluster.run(read, folder, ray, overrides, workers, watcher(quiet)))
        return
    forks.begin()
    from keima.training.selfplay.roles import supervisor

    print(supervisor.run(read, folder, overrides, workers, watcher(quiet)))


@app.command("worker", epilog=WORKER_EXAMPLES, short_help="Play games for a run.")
def worker(
    store: StoreAddress,
    name: Name = "",
    folder: Folder = None,
    threads: common.Threads = None,
    turns: Turns = False,
    parent: Parent = 0,
) -> None:
    """Play games for the run in a store, with its newest network, until the run is over."""
    _role(store, folder, turns, parent).work(name, threads)


@app.command("learner", epilog=LEARNER_EXAMPLES, short_help="Learn from the games of a run.")
def learner(
    store: StoreAddress,
    recipe: Annotated[str | None, Option(metavar="RECIPE", help="Begin the run with it, if it is not begun.")] = None,
    settings: common.Settings = None,
    name: Name = "",
    folder: Folder = None,
    turns: Turns = False,
    parent: Parent = 0,
) -> None:
    """Learn from the games of the run in a store, and publish its networks; there is one learner."""
    role = _role(store, folder, turns, parent)
    if recipe is not None:
        from keima.training.selfplay.checks import check_loop, write_run
        from keima.training.selfplay.recipe import read_loop

        overrides = tuple(settings or ())
        read = read_loop(recipe, overrides)
        check_loop(read)
        write_run(role.store, read, overrides)
    role.learn(name)


@app.command("judge", epilog=JUDGE_EXAMPLES, short_help="Play a run's networks against each other.")
def judge(
    store: StoreAddress, name: Name = "", folder: Folder = None, turns: Turns = False, parent: Parent = 0
) -> None:
    """Play the networks of the run in a store against earlier ones: Elo, and with judge.gate who plays."""
    _role(store, folder, turns, parent).judge(name)


def _role(store: str, folder: Path | None, turns: bool, parent: int) -> Role:
    check_installed()
    from keima.training.selfplay.roles.role import Role, tell

    return Role(store, tell, folder, turns, parent)


# --- What is shown ----------------------------------------------------------------------------------------------------


def watcher(quiet: bool) -> RunWatcher:
    """What shows how a run goes: a live table on a terminal; else, or quiet, a line now and then."""
    from rich.console import Console
    from rich.live import Live

    from keima.training.selfplay.roles.supervisor import RunWatcher

    console = Console(stderr=True)

    class Plain(RunWatcher):
        def __init__(self) -> None:
            self._told = time.monotonic()

        def show(self, overview: Overview) -> None:
            if time.monotonic() - self._told > _PLAIN_SECONDS:
                self._told = time.monotonic()
                common.say(", ".join(f"{name} {text}" for name, text in facts(overview)))

        def say(self, message: str) -> None:
            common.say(message)

    class Table(RunWatcher):
        def __init__(self) -> None:
            self._live = Live(console=console, transient=True, auto_refresh=False)

        def show(self, overview: Overview) -> None:
            self._live.start()
            self._live.update(_table(overview, console), refresh=True)

        def say(self, message: str) -> None:
            console.print(message, markup=False, highlight=False, soft_wrap=True)

        def end(self) -> None:
            self._live.stop()

    return Plain() if quiet or not console.is_terminal else Table()


def facts(overview: Overview) -> list[tuple[str, str]]:
    """What is shown of a run, each with its name."""
    found = [("generation", f"{overview.generation:,} of {overview.generations:,}")]
    found.append(("step", f"{overview.step:,} of {overview.steps:,}"))
    found.append(("games", f"{overview.games:,} ({overview.games_per_second:,.1f}/s)"))
    found.append(("moves/s", f"{overview.moves_per_second:,.0f}"))
    share = f" ({100 * overview.share:.0f} % of the evaluators' own)" if overview.share else ""
    known = f", {overview.known_per_second:,.0f} known" if overview.known_per_second else ""
    found.append(("evaluations/s", f"{overview.evaluations_per_second:,.0f}{share}{known}"))
    if overview.window:
        found.append(("window", f"{overview.window:,} positions"))
    if overview.losses:
        found.append(("losses", " ".join(f"{name} {value:.3f}" for name, value in overview.losses.items())))
    if overview.elo is not None:
        found.append(("Elo", f"{overview.elo.elo:+.0f} ± {overview.elo.half:.0f} (generation {overview.rated:,})"))
    left = overview.seconds_left
    found.append(("time left", "not known yet" if left is None else _duration(left)))
    return found


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"


def _table(overview: Overview, console: Console) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, text in facts(overview):
        table.add_row(Text(name, style="dim"), Text(text))
    for role in overview.roles[: max(1, console.height - table.row_count - 2)]:
        title = role["role"] if role["role"] == role["name"] else f"{role['role']} {role['name']}"
        table.add_row(Text(title, style="dim"), Text(str(role.get("doing", "")), overflow="ellipsis", no_wrap=True))
    return table
