"""What the verbs share: options, output that is written whole or not at all, errors as messages, evaluators.

Imports here are light: `keima --help` must not load torch, numba or openvino.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from keima.atomic import replacing
from keima.errors import BadRequest, KeimaError

if TYPE_CHECKING:
    from keima.games.positions import PositionLine
    from keima.inference.evaluator import Evaluator
    from keima.systems.network import Network

FAILED = 2
"""Exit status when something could not be read or done."""
INTERRUPTED = 130
STDIN = STDOUT = "-"

NetArgument = Annotated[
    str, typer.Argument(metavar="NET", help="Network file, of any supported format; go or chess: the default network.")
]
Backend = Annotated[str, typer.Option(help="auto, torch or openvino.")]
Precision = Annotated[str, typer.Option(help="auto, f32 or bf16.")]
Symmetry = Annotated[str, typer.Option(help="0 to 7 (1 flips rows, 2 columns, 4 transposes), or average.")]
Temperature = Annotated[float, typer.Option(help="Of the policy: below 1 sharper, above 1 flatter.")]
BatchSize = Annotated[int, typer.Option("--batch", min=1, help="Positions evaluated together.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores if not given.")]
NetworkOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the network: profile=rank_5k. Repeatable."),
]
Output = Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where to write; - is standard output.")]

RunFolder = Annotated[str | None, typer.Option("-o", "--output", metavar="RUN", help="Folder; runs/NAME if not given.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value, as run.steps=100.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]


class Group(TyperGroup):
    """The command group: errors of ours become one line on stderr and status 2, never a traceback."""

    def invoke(self, ctx: Any) -> object:
        """Run the verb, and turn what goes wrong into a message and an exit status."""
        try:
            return super().invoke(ctx)
        except KeimaError as error:
            complain(str(error))
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt as error:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            _drop_stdout()  # the reader (`| head`) has gone
            raise typer.Exit(0) from error


def _drop_stdout() -> None:
    """Point standard output at nothing, so that what is left in it is no error when it is closed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    """Print a message to standard error."""
    print(message, file=sys.stderr)


def complain(message: str) -> None:
    """Print a message to standard error, in the program's name."""
    print(f"keima: {message}", file=sys.stderr)


@contextmanager
def open_output(path: str) -> Iterator[IO[str]]:
    """A text stream to `path` that takes its place when the block ends well; `-` is standard output.

    Raises:
        BadRequest: it cannot be written there.
    """
    if path == STDOUT:
        try:
            yield sys.stdout
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            _drop_stdout()
            raise BadRequest(f"cannot be written: {error.strerror or error}", source="standard output") from error
        return
    try:
        with replacing(path, "w") as stream:
            yield stream
    except OSError as error:
        raise BadRequest(f"cannot be written: {error.strerror or error}", source=path) from error


def write_line(stream: IO[str], line: Mapping[str, object]) -> None:
    """One JSON object a line; escaped to ASCII where the stream's encoding lacks a character (or it is half of one)."""
    text = json.dumps(line, ensure_ascii=False)
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(line)
    stream.write(text + "\n")


def read_symmetry(text: str) -> int | str:
    """A symmetry option's value: 0–7, or "average".

    Raises:
        BadRequest: neither.
    """
    if text == "average":
        return text
    if text.isdecimal() and int(text) <= 7:
        return int(text)
    raise BadRequest(f"--symmetry takes 0 to 7 or average, not {text!r}")


def read_options(texts: list[str] | None) -> dict[str, object]:
    """Options of a network by name, for `Evaluator.bind`; a value that is a number is one.

    Raises:
        BadRequest: a text that is no NAME=VALUE.
    """
    found: dict[str, object] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadRequest(f"--option takes NAME=VALUE, not {text!r}")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found


def line_options(line: PositionLine) -> dict[str, object]:
    """The options of networks that a POSITIONS line carries."""
    from keima.systems.system import SYSTEMS

    names = {name for system in SYSTEMS.values() for name in system.options}
    return {name: value for name, value in line.others.items() if name in names}


def network_file(net: str | None, game: str) -> str:
    """The file of the network that was named, else of the default network of that game.

    Raises:
        BadWeights: this installation lacks the default network.
    """
    from keima.systems.files.defaults import default_network, find_network

    return str(default_network(game)) if net is None else find_network(net)


def open_network(net: str) -> Network:
    """Load a network: a file, or for a game's name its default network where no file is called so.

    Raises:
        BadWeights, UnsupportedNetwork: as `keima.load`.
    """
    from keima.systems.files.defaults import find_network
    from keima.systems.files.load import load

    return load(find_network(net))


def open_evaluator(
    network: Network,
    backend: str,
    precision: str,
    batch: int,
    threads: int | None = None,
    options: Mapping[str, object] | None = None,
) -> Evaluator:
    """An evaluator of a loaded network, with the network's own options bound.

    Raises:
        BadRequest: an option it does not know.
    """
    from keima.inference.evaluator import Evaluator

    evaluator = Evaluator(network, backend=backend, precision=precision, batch_size=batch, threads=threads)
    return evaluator.bind(**options) if options else evaluator
