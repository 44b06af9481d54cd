"""`keima recipes`: the recipes and sample games that the documents use, which an installation brings along."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from keima.cli import common
from keima.errors import BadRequest

EXAMPLES = """Examples:

\b
  keima recipes                                    what there is
  keima recipes -o .                               all of it: ./recipes and ./examples, as the documents name them
  keima recipes recipes/maia-finetune.toml -o .    one of them

Files that are there already stay as they are.
"""

_PACKAGE = Path(__file__).parents[1]
FOLDERS = ("recipes", "examples")
_ENDINGS = (".toml", ".py", ".sgf", ".pgn")


def recipes(
    names: Annotated[list[str] | None, Argument(metavar="[NAME...]", help="Only these, as the list has them.")] = None,
    output: Annotated[str | None, Option("-o", "--output", metavar="DIR", help="Copy them into this folder.")] = None,
) -> None:
    """List the recipes and examples that come with keima, or copy them."""
    found = dict(shipped())
    for name in names or ():
        if name not in found:
            raise BadRequest(f"no recipe or example {name!r} came with keima; keima recipes lists them")
    for name in names or found:
        if output is None:
            print(f"{name:44} {_title(found[name])}".rstrip())
        else:
            _copy(found[name], Path(output) / name)


def shipped() -> Iterator[tuple[str, Path]]:
    """Every recipe and example by its path in the documents, and its file: of the installation, else of the clone."""
    root = _PACKAGE / "shipped"
    root = root if root.is_dir() else _PACKAGE.parent
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _ENDINGS:
                yield path.relative_to(root).as_posix(), path


def _title(path: Path) -> str:
    """A recipe's first comment."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.strip('#" ') if first.startswith(("#", '"""')) else ""


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        common.say(f"{target}: is there already")
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except OSError as error:
        raise BadRequest(f"cannot be written: {error.strerror or error}", source=str(target)) from error
    print(target)
