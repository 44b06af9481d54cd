"""Any supported network file → `Network`, told apart by content, never by name; and back to a file by its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keima.errors import BadWeights, UnsupportedNetwork
from keima.networks.network import Network
from keima.weights.defaults import default_network, with_known_pedigree
from keima.weights.files import read_head
from keima.weights.katago import looks_like_katago, read_katago, write_katago
from keima.weights.lc0 import looks_like_lc0, read_lc0, write_lc0
from keima.weights.leela_zero import looks_like_leela_zero, read_leela_zero, write_leela_zero
from keima.weights.safetensors import looks_like_safetensors, read_safetensors, write_safetensors

READABLE = (
    "KataGo model versions 8–17 (.bin.gz, .txt.gz), Lc0 and Maia networks (.pb.gz), "
    "Leela Zero networks version 1–2 (.txt.gz), keima's own files (.safetensors)"
)

_FORMATS = (
    (looks_like_safetensors, read_safetensors),
    (looks_like_lc0, read_lc0),
    (looks_like_leela_zero, read_leela_zero),
    (looks_like_katago, read_katago),
)

_Writer = Callable[[Any, str | os.PathLike[str]], None]

# A file name's ending → what such a file holds, and the writer for each system (None: any registered network).
_WRITERS: dict[str, tuple[str, dict[str | None, _Writer]]] = {
    ".safetensors": ("any registered network", {None: write_safetensors}),
    ".bin": ("a KataGo network", {"katago": write_katago}),
    ".pb": ("an Lc0 network", {"lc0": write_lc0}),
    ".txt": ("a Leela Zero or KataGo network", {"leela-zero": write_leela_zero, "katago": write_katago}),
}


def load(path: str | os.PathLike[str]) -> Network:
    """Open a network file of any supported format.

    The file's own content decides its format; the name does not matter. Nothing from the file is executed.

    Args:
        path: KataGo `.bin.gz`/`.txt.gz`, Lc0 `.pb.gz`, Leela Zero `.txt.gz` or keima `.safetensors`.

    Returns:
        The network in evaluation mode, with `.encoding`, `.system` and `.pedigree`.

    Raises:
        BadWeights: the file is missing, truncated or corrupt, or of a kind that is not a network file at all.
        UnsupportedNetwork: a network file of a version or kind that keima does not run.
    """
    head = read_head(path)
    for looks_like, read in _FORMATS:
        if looks_like(head):
            network = read(path).eval()
            network.pedigree = with_known_pedigree(network.pedigree)
            return network
    found = "an empty file" if not head else f"a file that begins with {head[:16]!r}"
    raise BadWeights(f"not a network file that keima knows: found {found}; it reads {READABLE}", source=os.fspath(path))


def load_default(game: str) -> Network:
    """Open the network that keima uses for a game where none is named (docs/default-networks.md).

    Args:
        game: "go" or "chess".

    Raises:
        BadRequest: another game.
        BadWeights: this installation lacks the file, or it is damaged.
    """
    return load(default_network(game))


def save(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network in the format the file's name asks for, whole or not at all.

    `.safetensors` takes any registered network; `.bin[.gz]` and `.txt[.gz]` KataGo networks; `.txt[.gz]` Leela Zero
    networks; `.pb[.gz]` Lc0 networks. The original engines load what is written here.

    Raises:
        UnsupportedNetwork: the format cannot hold this network, or the name has no known ending.
        BadWeights: the file cannot be written.
    """
    name = Path(path).name.removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in _WRITERS:
        raise UnsupportedNetwork(f"unknown ending {suffix!r}; use one of {', '.join(_WRITERS)}", source=os.fspath(path))
    holds, writers = _WRITERS[suffix]
    write = writers.get(network.system) or writers.get(None)
    if write is None:
        message = f"a {suffix} file holds {holds}, not a {network.system} network; .safetensors holds any"
        raise UnsupportedNetwork(message, source=os.fspath(path))
    write(network, path)
