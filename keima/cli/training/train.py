"""`keima train`: from a recipe to a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keima.cli import common
from keima.errors import BadRequest
from keima.plain import Fields

if TYPE_CHECKING:
    from keima.training.run.loop import Watcher

EXAMPLES = """Examples:

\b
  keima train recipes/alphago-policy.toml -o runs/policy
  keima train recipes/alphago-policy.toml --set run.steps=100 --set data.train=games.parquet
  torchrun --nproc-per-node 4 -m keima train recipes/alphago-zero.toml -o runs/zero

Started again on the same folder, it goes on where the last checkpoint stands. docs/training.md tells the rest.
"""


def train(
    recipe: common.RecipeArgument,
    output: common.RunFolder = None,
    settings: common.Settings = None,
    quiet: common.Quiet = False,
) -> None:
    """Train a network by a recipe, or go on with a run that was stopped."""
    check_installed()
    from keima.training.run.loop import train as train_network
    from keima.training.run.recipe import read_recipe

    read = read_recipe(recipe, settings or ())
    folder = output or str(Path("runs") / Path(recipe).stem)
    result = train_network(read, folder, watcher(quiet))
    print(result.network)


def check_installed() -> None:
    """Say how to install what training needs and playing does not. Raises BadRequest: it is missing."""
    from importlib.util import find_spec

    missing = [name for name in ("lightning_fabric", "pyarrow") if find_spec(name) is None]
    if missing:
        raise BadRequest(f"training needs {', '.join(missing)}: pip install 'keima[train]'")


def watcher(quiet: bool) -> Watcher:
    """What shows how a run goes: a progress bar, or only what matters."""
    from keima.training.run.loop import Watcher

    class Plain(Watcher):
        def say(self, message: str) -> None:
            common.say(message)

    class Bar(Watcher):
        def __init__(self) -> None:
            self.progress = common.progress_bar("step", "{task.description}")
            self.task = self.progress.add_task("", total=None)

        def begin(self, step: int, total: int) -> None:
            self.progress.update(self.task, completed=step, total=total)
            self.progress.start()

        def advance(self, step: int, line: Fields | None) -> None:
            self.progress.update(self.task, completed=step)
            if line is not None:
                unit = "games" if "games" in line else "positions"
                words = f"loss {line['loss']:.4f}, {line[f'{unit}_per_second']:,.1f} {unit}/s"
                words += f", won {100 * line['won']:.0f} %" if "won" in line else ""
                self.progress.update(self.task, description=words)

        def say(self, message: str) -> None:
            self.progress.console.print(message, markup=False, highlight=False, soft_wrap=True)

        def end(self) -> None:
            self.progress.stop()

    return Plain() if quiet else Bar()
