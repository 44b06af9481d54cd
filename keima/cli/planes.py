"""`keima planes`: the input planes themselves, one JSON line a position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit

from keima.cli import common
from keima.errors import BadRequest, KeimaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from keima.games.positions import PositionLine
    from keima.systems.encoding import Encoding

EXAMPLES = """Examples:

\b
  keima planes katago positions.jsonl
  keima planes lc0 positions.jsonl -o planes.jsonl
  echo '{"game": "go", "xsize": 9, "moves": [["B","E5"]]}' | keima planes alphago-zero -

Encodings: alphago, alphago-zero, leela-zero, katago, katago-guide, lc0.
"""


def planes(
    encoding: Annotated[str, Argument(metavar="ENCODING", help="The encoding's name, as listed below.")],
    positions: Annotated[str, Argument(metavar="POSITIONS.jsonl", help="One position a line; - is stdin.")],
    symmetry: common.Symmetry = "0",
    output: common.Output = "-",
) -> None:
    """Print the planes (C × H × W, rows from the top) and globals that a network would see.

    A line that cannot be read is answered with {"id": …, "error": "…"}, the others as usual; the exit status is then 2.
    """
    from keima.games.positions import BadLine, read_positions
    from keima.systems.system import get_encoding

    usual = common.read_symmetry(symmetry)
    chosen = get_encoding(encoding)
    failed = False
    with common.open_output(output) as stream:
        for line in read_positions(positions):
            if isinstance(line, BadLine):
                answer: dict[str, object] = {"id": line.id, "error": str(line.error)}
            else:
                try:
                    answer = {"id": line.id, **encode_line(line, chosen, usual)}
                except KeimaError as error:
                    answer = {"id": line.id, "error": str(error.at(line.source, line.place))}
            failed = failed or "error" in answer
            common.write_line(stream, answer)
    if failed:
        common.complain('some lines could not be encoded; see their "error"')
        raise Exit(common.FAILED)


def encode_line(line: PositionLine, encoding: Encoding, symmetry: int | str) -> dict[str, object]:
    """The `planes`, `globals` and `metadata` of one line, as far as the encoding has them, as nested lists.

    Raises:
        UnsupportedPosition: the encoding cannot take the position.
        BadRequest: a symmetry it does not have.
    """
    from keima.systems.encoding import symmetry_names

    chosen = symmetry if line.symmetry is None else line.symmetry
    if chosen not in encoding.symmetries:
        names = symmetry_names(encoding.symmetries)
        raise BadRequest(f"planes are made in one symmetry, for {encoding.name} {names}; not {chosen}")
    encoding.check(line.position)
    batch = encoding.bind(**common.line_options(line)).encode([line.position], chosen)
    answer: dict[str, object] = {"planes": _plain(batch.inputs["planes"][0])}
    for name in ("globals", "metadata"):
        if name in batch.inputs:
            answer[name] = _plain(batch.inputs[name][0])
    return answer


def _plain(array: NDArray[np.float32]) -> object:
    """Nested lists of numbers, whole ones as integers and the others as short as float32 allows."""
    if array.ndim:
        return [_plain(part) for part in array]
    number = float(str(array))
    return int(number) if number.is_integer() else number
