"""`keima eval`: a network's raw answers, one JSON line a position."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from itertools import islice
from queue import Queue
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit

from keima.cli import common
from keima.errors import BadRequest, KeimaError

if TYPE_CHECKING:
    from keima.games.positions import BadLine, PositionLine
    from keima.inference.evaluator import Evaluator

EXAMPLES = """Examples:

\b
  keima eval kata1-b6c96.bin.gz positions.jsonl
  keima eval maia-1900.pb.gz positions.jsonl -o answers.jsonl
  echo '{"game": "chess", "moves": ["e2e4"]}' | keima eval maia-1900.pb.gz -
  keima eval maia-1900.pb.gz positions.jsonl --temperature 0.5
  keima eval kata1-b18c384nbt.bin.gz positions.jsonl.gz --symmetry average --precision bf16
  keima eval b18c384nbt-humanv0.bin.gz positions.jsonl --option profile=rank_5k

A line: {"id": 7, "game": "go", "rules": "chinese", "komi": 7.5, "moves": [["B","Q16"],["W","D4"]]}
"""

CHUNK = 256
"""Most lines that are evaluated together. On standard input, what has come by then is answered at once."""


def evaluate(
    net: common.NetArgument,
    positions: Annotated[str, Argument(metavar="POSITIONS.jsonl", help="One position a line; - is stdin.")],
    backend: common.Backend = "auto",
    precision: common.Precision = "auto",
    symmetry: common.Symmetry = "0",
    temperature: common.Temperature = 1.0,
    batch: common.BatchSize = 8,
    threads: common.Threads = None,
    option: common.NetworkOptions = None,
    output: common.Output = "-",
) -> None:
    """Evaluate positions: policy, win/draw/loss, lead, ownership, for the side to move.

    A line that cannot be read is answered with {"id": …, "error": "…"}, the others as usual; the exit status is then 2.
    """
    from keima.games.positions import read_positions

    usual = common.read_symmetry(symmetry)
    if not 0 < temperature < math.inf:
        raise BadRequest(f"--temperature takes a number above 0, not {temperature}")
    evaluator = common.open_evaluator(
        common.open_network(net), backend, precision, batch, threads, common.read_options(option)
    )
    failed = False
    with common.open_output(output) as stream:
        for chunk in _chunks(read_positions(positions), waits=positions == common.STDIN):
            for answer in answer_lines(chunk, evaluator, usual, temperature):
                failed = failed or "error" in answer
                common.write_line(stream, answer)
            stream.flush()
    if failed:
        common.complain('some lines could not be answered; see their "error"')
        raise Exit(common.FAILED)


def _chunks(lines: Iterator[PositionLine | BadLine], waits: bool) -> Iterator[list[PositionLine | BadLine]]:
    """The lines, some at a time; where the next one may have to be waited for, those that are there."""
    if not waits:
        while chunk := list(islice(lines, CHUNK)):
            yield chunk
        return
    ready: Queue[PositionLine | BadLine | BaseException | None] = Queue(CHUNK)
    threading.Thread(target=_read_ahead, args=(lines, ready), daemon=True).start()
    ended = False
    while not ended:
        chunk = []
        while not (chunk and (len(chunk) == CHUNK or ready.empty())):
            item = ready.get()
            ended = item is None or isinstance(item, BaseException)
            if item is None or isinstance(item, BaseException):
                break
            chunk.append(item)
        if chunk:
            yield chunk
    if isinstance(item, BaseException):
        raise item


def _read_ahead(
    lines: Iterator[PositionLine | BadLine], ready: Queue[PositionLine | BadLine | BaseException | None]
) -> None:
    """Put the lines where they can be fetched; None, or the error that ended them, comes last."""
    last = None
    try:
        for line in lines:
            ready.put(line)
    except BaseException as error:
        last = error
    ready.put(last)


def answer_lines(
    lines: list[PositionLine | BadLine], evaluator: Evaluator, symmetry: int | str, temperature: float = 1.0
) -> Iterator[dict[str, object]]:
    """The answers of some lines, in their order; positions the network cannot take become errors of their own."""
    from keima.games.positions import BadLine

    answers: dict[int, dict[str, object]] = {}
    good: list[tuple[int, PositionLine]] = []
    for number, line in enumerate(lines):
        if isinstance(line, BadLine):
            answers[number] = {"id": line.id, "error": str(line.error)}
        else:
            good.append((number, line))
    try:
        found = _evaluate([line for _, line in good], evaluator, symmetry, temperature)
        answers.update({number: answer for (number, _), answer in zip(good, found, strict=True)})
    except KeimaError:
        for number, line in good:  # one of them is at fault: ask one by one
            try:
                answers[number] = _evaluate([line], evaluator, symmetry, temperature)[0]
            except KeimaError as error:
                answers[number] = {"id": line.id, "error": str(error.at(source=line.source, place=line.place))}
    return (answers[number] for number in range(len(lines)))


def _evaluate(
    lines: list[PositionLine], evaluator: Evaluator, symmetry: int | str, temperature: float
) -> list[dict[str, object]]:
    found = [common.line_options(line) for line in lines]
    names = dict.fromkeys(name for options in found for name, value in options.items() if value != 0)
    evaluations = evaluator(
        [line.position for line in lines],
        symmetry=[symmetry if line.symmetry is None else line.symmetry for line in lines],
        temperature=temperature,
        **{name: [options.get(name) for options in found] for name in names},
    )
    return [{"id": line.id, **answer.to_json()} for line, answer in zip(lines, evaluations, strict=True)]
