"""Compiling the search's kernels beside its first evaluation, in a process of its own.

The first search on a machine compiles two large kernels, the network's encoder and the game's gather. With two cores
that need not happen one after the other: the other process searches with answers made up, and the encoder left out.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from keima.games.position import Position
from keima.jit import is_kept
from keima.systems.encoding import Encoding
from keima.systems.parameters import Parameters

_started: list[subprocess.Popen[bytes]] = []
"""They are not waited for."""


@dataclass(frozen=True)
class Work:
    """What the other process searches."""

    position: Position
    parameters: Parameters
    encoding: Encoding
    system: str
    outputs: tuple[str, ...]


class _Network(Protocol):
    @property
    def system(self) -> str: ...
    @property
    def output_names(self) -> tuple[str, ...]: ...


class _Evaluator(Protocol):
    @property
    def network(self) -> _Network: ...
    @property
    def encoding(self) -> Encoding: ...


class MadeUp:
    """An evaluator that needs no other process: it stands in one."""


def beside(gather: object, evaluator: _Evaluator, parameters: Parameters, position: Position) -> None:
    """Start the other process, unless the gather is compiled already, or this is that process."""
    if isinstance(evaluator, MadeUp) or is_kept(gather):
        return
    network = evaluator.network
    work = Work(position, parameters, evaluator.encoding, network.system, network.output_names)
    with suppress(OSError, pickle.PicklingError, TypeError, AttributeError):  # then this process compiles alone
        data = pickle.dumps(work)
        command, nowhere = [sys.executable, "-m", "keima.search.prepare"], subprocess.DEVNULL
        helper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere)
        assert helper.stdin is not None
        helper.stdin.write(data)
        helper.stdin.close()
        _started.append(helper)
