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

from typer import Argument, Exit, Option
from typer.core import TyperGroup

from keima.atomic import replacing
from keima.errors import BadRequest, KeimaError

if TYPE_CHECKING:
    from rich.progress import Progress

    from keima.games.positions import PositionLine
    from keima.inference.evaluator import Evaluator
    from keima.systems.network import Network

FAILED = 2
"""Exit status when something could not be read or done."""
INTERRUPTED = 130
STDIN = STDOUT = "-"

NetArgument = Annotated[
    str, Argument(metavar="NET", help="Network file of any format; go, chess or connect_four: the default one.")
]
Backend = Annotated[str, Option(help="auto, torch, openvino or onnx.")]
Precision = Annotated[str, Option(help="auto, f32, bf16, int8 for a quantized network, f16 for an ONNX file that is.")]
Symmetry = Annotated[str, Option(help="0 to 7 (1 flips rows, 2 columns, 4 transposes), or average.")]
Temperature = Annotated[float, Option(help="Of the policy: below 1 sharper, above 1 flatter.")]
BatchSize = Annotated[int, Option("--batch", min=1, help="Positions evaluated together.")]
Threads = Annotated[int | None, Option(min=1, help="CPU threads; all cores if not given.")]
NetworkOptions = Annotated[
    list[str] | None,
    Option("--option", metavar="NAME=VALUE", help="An option of the network: profile=rank_5k. Repeatable."),
]
ValueNetwork = Annotated[
    str | None, Option("--value", metavar="NET", help="A value network beside a policy network (AlphaGo's).")
]
Rollout = Annotated[
    str | None, Option("--rollout", metavar="FILE", help="Rollout policy for the playouts of preset alphago.")
]
Overrides = Annotated[
    list[str] | None,
    Option(
        "--override-config", "-override-config", metavar="NAME=VALUE,...", help="Settings, KataGo's or the search's."
    ),
]
Output = Annotated[str, Option("-o", "--output", metavar="FILE", help="Where to write; - is standard output.")]

InArgument = Annotated[str, Argument(metavar="IN", help="Network file, of any supported format.")]
OutArgument = Annotated[str, Argument(metavar="OUT", help="Its ending chooses the format.")]
RecipeArgument = Annotated[str, Argument(metavar="RECIPE", help="A recipe, TOML.")]
RunFolder = Annotated[str | None, Option("-o", "--output", metavar="RUN", help="Folder; runs/NAME if not given.")]
Settings = Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="Another value, as run.steps=100.")]
Quiet = Annotated[bool, Option("--quiet", help="No progress bar.")]


class Group(TyperGroup):
    """The command group: errors of ours become one line on stderr and status 2, never a traceback."""

    def invoke(self, ctx: Any) -> object:
        """Run the verb, and turn what goes wrong into a message and an exit status."""
        try:
            return super().invoke(ctx)
        except KeimaError as error:
            complain(str(error))
            raise Exit(FAILED) from error
        except KeyboardInterrupt as error:
            complain("interrupted")
            raise Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            _drop_stdout()  # the reader (`| head`) has gone
            raise Exit(0) from error


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
    """A text stream to `path` (- is standard output) that takes its place when the block ends well."""
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
    """A symmetry option's value: 0–7, or "average". Raises BadRequest: neither."""
    if text == "average":
        return text
    if text.isdecimal() and int(text) <= 7:
        return int(text)
    raise BadRequest(f"--symmetry takes 0 to 7 or average, not {text!r}")


def read_options(texts: list[str] | None) -> dict[str, object]:
    """Options of a network by name, for `Evaluator.bind`, from NAME=VALUE; a value that is a number is one."""
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
    """The file of the network that was named, else of the default network of that game; BadWeights without one."""
    from keima.systems.files.defaults import default_network, find_network

    return str(default_network(game)) if net is None else find_network(net)


def open_network(net: str, value: str | None = None) -> Network:
    """Load a network: a file, or for a game's name its default network where no file is called so.

    With the file of a value network, one of both.
    """
    from keima.systems.files.defaults import find_network
    from keima.systems.files.load import load

    network = load(find_network(net))
    return network if value is None else network.with_value(load(value))


def open_evaluator(
    network: Network,
    backend: str,
    precision: str,
    batch: int,
    threads: int | None = None,
    options: Mapping[str, object] | None = None,
) -> Evaluator:
    """An evaluator of a loaded network, with the network's own options bound; BadRequest for an unknown one."""
    from keima.inference.evaluator import Evaluator

    evaluator = Evaluator(network, backend=backend, precision=precision, batch_size=batch, threads=threads)
    return evaluator.bind(**options) if options else evaluator


def open_player(network: Network, backend: str, precision: str, batch: int, threads: int | None) -> Evaluator:
    """The evaluator of an engine's network; its preparation is told on standard error."""
    say(f"keima: preparing {network.pedigree.name} ({network.system})")
    return open_evaluator(network, backend, precision, batch, threads)


def progress_bar(before: str, after: str, **options: Any) -> Progress:
    """A bar on standard error that is gone when it ends, with a text before and after it; rich's `options`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    texts = [[TextColumn(text)] if text else [] for text in (before, after)]
    columns = (*texts[0], BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), *texts[1])
    return Progress(*columns, console=Console(stderr=True), transient=True, **options)
