"""`keima convert`: a network file in another format, or the same one written anew."""

from __future__ import annotations

from typing import Annotated

import typer

from keima.cli.common import open_network, say

EXAMPLES = """Examples:

\b
  keima convert kata1-b6c96.bin.gz b6c96.safetensors
  keima convert b6c96.safetensors b6c96.bin.gz       (KataGo loads it)
  keima convert maia-1900.pb.gz maia.safetensors
"""


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Network file, of any supported format.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Its ending chooses the format.")],
) -> None:
    """Write a network in the format that OUT's ending names: .safetensors, .bin.gz, .pb.gz, .txt.gz."""
    from keima.systems.files.load import save

    network = open_network(source)
    save(network, target)
    say(f"{target}: {network.system} network {network.pedigree.name}")
