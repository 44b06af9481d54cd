"""`keima study`: variants of a recipe, trained under one budget and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit

from keima.cli import common
from keima.errors import BadRequest
from keima.plain import Fields

if TYPE_CHECKING:
    from keima.training.study.file import StudyOptions
    from keima.training.study.study import Pairing, Play

EXAMPLES = """Examples:

\b
  keima study recipes/studies/dual-head.toml -o runs/dual-head
  keima study recipes/studies/depth.toml --set data.train=train.parquet --set data.test=test.parquet
  keima study recipes/studies/blocks.toml --set study.positions=100_000 --set study.games=0

Started again on the same folder, it goes on where it stopped. docs/studies.md tells the rest.
"""


def study(
    file: Annotated[str, Argument(metavar="STUDY", help="A study, TOML.")],
    output: common.RunFolder = None,
    settings: common.Settings = None,
    quiet: common.Quiet = False,
) -> None:
    """Train variants under one budget; compare accuracy, value error, speed and, by matches, Elo.

    Writes STUDY/study.json, table.md and study.png; prints the table.
    """
    from keima.cli.training.train import check_installed, watcher

    check_installed()
    from keima.training.study.file import read_study
    from keima.training.study.record import text_lines
    from keima.training.study.study import run_study

    read = read_study(file, settings or ())
    folder = Path(output or Path("runs") / Path(file).stem)
    if read.options.limits and "," in str(folder):
        raise BadRequest(
            "a match cannot be played with a file whose name has a comma; choose another with -o", source=str(folder)
        )
    contents = run_study(read, folder, player(read.options, quiet), watch=lambda: watcher(quiet), say=common.say)
    for line in text_lines(contents):
        print(line)
    failed = [name for name, known in contents["variants"].items() if "failed" in known]
    if failed:
        common.say(f"keima: not trained: {', '.join(failed)}")
        raise Exit(common.FAILED)


def player(options: StudyOptions, quiet: bool) -> Play:
    """What plays a study's matches, the variant as A."""

    def play(pairing: Pairing) -> Fields:
        from keima.cli.match import standing
        from keima.engines.match.match import Match, MatchOptions

        limits = f"{pairing.limit},precision={options.precision}"
        ours = f"{pairing.network},name={pairing.variant},{limits}"
        theirs = f"{pairing.reference_network},name={pairing.reference},{limits}"
        chosen = MatchOptions(games=options.games, size=pairing.size, openings=options.openings)
        match = Match(ours, theirs, chosen, pairing.folder)

        def show(result: Any, summary: Any) -> None:
            ended = f"{result.result}, {result.reason} | {standing(summary)}"
            common.say(f"  game {result.number} of {options.games}: {ended}")

        return match.run(None if quiet else show).to_json()

    return play
