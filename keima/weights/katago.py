"""KataGo's own network files (`.bin.gz`, `.txt.gz`, or unpacked) ↔ `KataGoNetwork`, model versions 8 to 17.

The layers stand in the file in a fixed order, each as a name, its sizes and its floats; convolutions as y, x, in, out
and matrices as in, out, both turned into PyTorch's order (`katago_read`, `katago_write`; the words and float blocks
below them in `katago_tokens`). Names differ between KataGo's generations and mean nothing to it, so they are checked to
be names and no more.
"""

from __future__ import annotations

import os
import re

from keima.errors import BadWeights, UnsupportedNetwork
from keima.networks.katago import KataGoNetwork
from keima.networks.network import Pedigree
from keima.weights.files import atomic_write, read_bytes, sha256_of
from keima.weights.katago_read import NetworkReader
from keima.weights.katago_tokens import TokenReader, TokenWriter
from keima.weights.katago_write import NetworkWriter

_HEAD = re.compile(rb"\s*[!-~]*[A-Za-z_][!-~]*\s+[0-9]{1,4}\s+[0-9]{1,4}\s+[0-9]{1,4}\s+([0-9.]+\s|[A-Za-z])")


def looks_like_katago(data: bytes) -> bool:
    """Whether unpacked file contents begin like a KataGo network: a name, three small integers, a number or a name."""
    return _HEAD.match(data[:4096]) is not None


def read_katago(path: str | os.PathLike[str]) -> KataGoNetwork:
    """Open a KataGo network file, text or binary, gzipped or not, whatever its name.

    Returns:
        The network in evaluation mode, its `pedigree` telling the file, its version and its sha256.

    Raises:
        BadWeights: the file is missing, cut short, corrupt, or its layers do not fit together; names layer and byte.
        UnsupportedNetwork: a version below 8 or above 17, or a feature that KataGo itself does not run.
    """
    source = os.fspath(path)
    network = decode_katago(read_bytes(path), source)
    known = network.pedigree
    network.pedigree = Pedigree(known.name, source, known.format, sha256_of(path))
    return network


def write_katago(network: KataGoNetwork, path: str | os.PathLike[str]) -> None:
    """Write a file that KataGo loads: binary when the name holds `.bin`, else text; gzipped when it ends in `.gz`.

    The weights are exactly those of the network, and the file is written whole or not at all. KataGo tells binary from
    text by the name, so keep the ending.

    Raises:
        UnsupportedNetwork: the name ends in none of .bin, .bin.gz, .txt, .txt.gz.
        BadWeights: the file cannot be written, or a weight is not a finite number.
    """
    plain = os.fspath(path).lower().removesuffix(".gz")
    if not plain.endswith((".bin", ".txt")):
        raise UnsupportedNetwork("a KataGo file's name ends in .bin.gz, .txt.gz, .bin or .txt", source=os.fspath(path))
    try:
        atomic_write(path, encode_katago(network, binary=plain.endswith(".bin")))
    except BadWeights as error:
        raise error.at(source=os.fspath(path)) from error


def decode_katago(data: bytes, source: str = "network") -> KataGoNetwork:
    """The network in the unpacked contents of a KataGo file.

    Raises:
        BadWeights, UnsupportedNetwork: as by `read_katago`; `source` names the file in them.
    """
    return NetworkReader(TokenReader(data, source)).network()


def encode_katago(network: KataGoNetwork, binary: bool = True) -> bytes:
    """The contents of a KataGo file, not gzipped, with binary or text floats.

    Raises:
        BadWeights: a weight is not a finite number (KataGo would refuse it).
    """
    writer = NetworkWriter(TokenWriter(binary), network.config.version)
    writer.network(network)
    return writer.tokens.result()
