"""`keima compress`: networks made smaller and faster for deployment."""

from __future__ import annotations

from typing import Annotated

import typer

from keima.cli.common import open_network, say

FOLD_EXAMPLES = """Examples:

\b
  keima compress fold kata1-b6c96.bin.gz b6c96-folded.bin.gz
  keima compress fold lc0-unfolded.pb.gz folded.safetensors
"""

app = typer.Typer(
    help="Make a network smaller and faster for deployment.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=FOLD_EXAMPLES,
)


@app.callback()
def _compress() -> None:
    """Make a network smaller and faster for deployment."""


@app.command("fold", epilog=FOLD_EXAMPLES)
def fold(
    source: Annotated[str, typer.Argument(metavar="IN", help="Network file, of any supported format.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Its ending chooses the format.")],
) -> None:
    """Fold batch norms into the convolutions before them: fewer operations, the same answers to 1e-5."""
    from keima.compress.fold import fold as fold_network
    from keima.weights.load import save

    network = open_network(source)
    before = sum(parameter.numel() for parameter in network.parameters())
    folded = fold_network(network)
    after = sum(parameter.numel() for parameter in folded.parameters())
    save(folded, target)
    say(f"{target}: {before:,} parameters before, {after:,} after")
