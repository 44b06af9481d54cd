"""What a file format of networks is: how it is told from others, read and written.

A system's `file.py` declares `FORMATS`; `keima.load` and `keima.save` know formats only through it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from keima.systems.network import Network

Path: TypeAlias = "str | os.PathLike[str]"


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        title: as lists of what can be read name it, versions and endings included.
        looks_like: whether the first 4096 bytes of a file, decompressed, begin such a file.
        read: the network in a file, in evaluation mode; raises BadWeights or UnsupportedNetwork.
        write: writes a network whole or not at all; raises UnsupportedNetwork for one that the format cannot hold.
    """

    title: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[Path], Network]
    write: Callable[[Network, Path], None]
