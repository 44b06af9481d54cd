"""Any supported network file → `Network`, told apart by content, never by name; and back to a file by its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from keima.errors import BadWeights, UnsupportedNetwork
from keima.systems.files.contents import FilePath, Format, read_head
from keima.systems.files.defaults import default_network, with_known_pedigree
from keima.systems.files.onnx_file import ONNX
from keima.systems.files.safetensors import SAFETENSORS, read_sidecar, write_sidecar
from keima.systems.forms import convert
from keima.systems.network import Network
from keima.systems.system import SYSTEMS, System, system_of

if TYPE_CHECKING:
    from keima.systems.alphago.rollout import RolloutPolicy

_OWN_ENDING = ".safetensors"
_FOR_ANY = {_OWN_ENDING: SAFETENSORS, ".onnx": ONNX}


def load(path: FilePath) -> Network:
    """Open a network file: KataGo `.bin.gz`/`.txt.gz`, Lc0 `.pb.gz`, Leela Zero `.txt.gz`, keima `.safetensors` or
    an `.onnx` file that keima wrote (with `keima[export]`).

    The file's own content decides its format; the name does not matter. Nothing from the file is executed.

    Returns:
        The network in evaluation mode, with `.encoding`, `.system` and `.pedigree`.

    Raises:
        BadWeights: the file is missing, truncated or corrupt, or of a kind that is not a network file at all.
        UnsupportedNetwork: a network file of a version or kind that keima does not run.
    """
    head = read_head(path)
    titles = []
    for known in _formats(os.fspath(path)):
        if known.looks_like(head):
            network = known.read(path).eval()
            network.pedigree = with_known_pedigree(network.pedigree, path)
            if network.quantization is None:
                network.quantization = read_sidecar(network, path)
            return network
        titles.append(known.title)
    found = "an empty file" if not head else f"a file that begins with {head[:16]!r}"
    message = f"not a network file that keima knows: found {found}; it reads {', '.join(titles)}"
    raise BadWeights(message, source=os.fspath(path))


def load_default(game: str) -> Network:
    """Open the network that keima uses for "go", "chess" or "connect_four" where none is named.

    docs/default-networks.md tells of them.

    Raises:
        BadRequest: another game.
        BadWeights: this installation lacks the file, or it is damaged.
    """
    return load(default_network(game))


def load_rollout(path: FilePath) -> RolloutPolicy:
    """Open a rollout policy (`Search(..., rollout_policy=...)`); raises BadWeights for a missing or damaged file."""
    from keima.systems.alphago.rollout_file import read_rollout

    return read_rollout(path)


def save(network: Network, path: FilePath) -> None:
    """Write a network in the format the file's name asks for, whole or not at all.

    `.safetensors` takes any registered network, and so does `.onnx` (with `keima[export]`); `.bin[.gz]` and `.txt[.gz]`
    KataGo networks; `.txt[.gz]` Leela Zero networks; `.pb[.gz]` Lc0 networks. The original engines load these; a
    quantized network's numbers for int8 go into a file beside, NAME.int8. Another system's network is written where it
    has the format's form (`keima.convert`).

    Raises:
        UnsupportedNetwork: the format cannot hold this network, or the name has no known ending.
        BadWeights: the file cannot be written.
    """
    name = os.fspath(path)
    for ending, own_format in _FOR_ANY.items():
        if _ends_in(name, ending):
            own_format.write(network, path)
            return
    owners = [system for system in _owners() if any(_ends_in(name, ending) for ending in system.endings)]
    if not owners:
        endings = dict.fromkeys(_plain(ending) for system in _owners() for ending in system.endings)
        message = f"unknown ending of the name; use one of {', '.join([*_FOR_ANY, *endings])}"
        raise UnsupportedNetwork(message, source=name)
    own = system_of(network)
    holder = own if own in owners else next((system for system in owners if system.name in own.forms), None)
    if holder is None:
        titles = " or ".join(system.title for system in owners)
        message = f"such a file holds {titles} networks, not {own.title} ones; {_OWN_ENDING} holds any"
        raise UnsupportedNetwork(message, source=name)
    if holder is not own:
        try:
            network = convert(network, holder.name)
        except UnsupportedNetwork as error:
            raise error.at(source=name) from error
    holder.formats[0].write(network, path)
    if network.quantization is not None:
        write_sidecar(network, path, holder.formats[0].read(path))


def _plain(ending: str) -> str:
    return ending.removesuffix(".gz")


def _ends_in(name: str, ending: str) -> bool:
    return _plain(name.lower()).endswith(_plain(ending))


def _owners() -> list[System]:
    return [system for system in SYSTEMS.values() if system.endings]


def _formats(name: str) -> Iterator[Format]:
    """Every format, the likely ones of that name first, so that the others need no import."""
    yield from _FOR_ANY.values()
    for system in sorted(_owners(), key=lambda system: not any(_ends_in(name, ending) for ending in system.endings)):
        yield from system.formats
