"""The `keima` command: one verb a file, each loading what it needs when it runs."""

from __future__ import annotations

import atexit
import gc
from typing import Annotated

from typer import Exit, Option, Typer, echo

from keima.cli import analysis, bench, convert, eval, gtp, match, planes, recipes, review, show, uci, web
from keima.cli.common import Group
from keima.cli.training import compress, data, selfplay, study, train

app = Typer(
    cls=Group,
    name="keima",
    help="The AlphaGo family of networks: evaluate positions, review games, look inside, convert files.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from keima import __version__

        echo(f"keima {__version__}")
        raise Exit


@app.callback()
def _options(
    version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Carry the options of the command itself."""


_VERBS = (
    ("review", review.review, review.EXAMPLES, "Review SGF and PGN games: HTML pages and JSON."),
    ("web", web.web, web.EXAMPLES, "A board in the browser: play, analyse, review."),
    ("match", match.match, match.EXAMPLES, "Play two players against each other; Elo with its error."),
    ("gtp", gtp.gtp, gtp.EXAMPLES, "A Go engine for Sabaki, GoGui, Lizzie: the Go Text Protocol."),
    ("uci", uci.uci, uci.EXAMPLES, "A chess engine for GUIs."),
    ("analysis", analysis.analysis, analysis.EXAMPLES, "An engine for KaTrain and scripts: KataGo's JSON protocol."),
    ("eval", eval.evaluate, eval.EXAMPLES, "A network's answers, one JSON line a position."),
    ("planes", planes.planes, planes.EXAMPLES, "The input planes of positions."),
    ("show", show.show, show.EXAMPLES, "What a network is made of; its policy drawn."),
    ("convert", convert.convert, convert.EXAMPLES, "Write a network in another file format."),
    ("recipes", recipes.recipes, recipes.EXAMPLES, "Recipes and examples that came along: list, copy."),
    ("train", train.train, train.EXAMPLES, "Train a network by a recipe, or go on from a file."),
    ("study", study.study, study.EXAMPLES, "Train variants under one budget and compare them."),
)
for _name, _verb, _examples, _short in _VERBS:
    app.command(_name, epilog=_examples, short_help=_short)(_verb)
app.add_typer(bench.app, name="bench", short_help="How fast it is here, beside the limit.")
app.add_typer(data.app, name="data", short_help="Game stores: import, play, info, score, export, split.")
app.add_typer(selfplay.app, name="selfplay", short_help="Learn from zero: networks from their own games by search.")
app.add_typer(compress.app, name="compress", short_help="Make a network smaller: fold, prune, distill.")


def main() -> None:
    """Run the command line; never returns."""
    gc.set_threshold(50_000, 20, 50)  # importing PyTorch makes a million objects that all stay
    atexit.register(gc.freeze)  # else the interpreter's last collection walks all of PyTorch, for most of a second
    app()
