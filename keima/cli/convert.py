"""`keima convert`: a network file in another format, or the same one written anew."""

from __future__ import annotations

from keima.cli import common

EXAMPLES = """Examples:

\b
  keima convert kata1-b6c96.bin.gz b6c96.safetensors
  keima convert b6c96.safetensors b6c96.bin.gz       (KataGo loads it)
  keima convert maia-1900.pb.gz maia.safetensors
"""


def convert(source: common.InArgument, target: common.OutArgument) -> None:
    """Write a network in the format that OUT's ending names: .safetensors, .bin.gz, .pb.gz, .txt.gz."""
    from keima.systems.files.load import save

    network = common.open_network(source)
    save(network, target)
    common.say(f"{target}: {network.system} network {network.pedigree.name}")
