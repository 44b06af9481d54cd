"""Encoded inputs in, the network's raw outputs back, possibly while the next batch runs: what a backend offers, and the
reference backend, PyTorch on the CPU (on CUDA devices: `device_backend.py`).

A backend splits what it is given into requests of a fixed number of rows, the same for a board shape whatever the
caller's batch is, and pads the last one. So a position meets the same kernels alone as among others, and its answer is
the same to the last bit.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from keima import systems
from keima.systems.encoding import Array
from keima.systems.network import Network

POINTS_PER_REQUEST = 2304
"""Most board points of a request: six 19×19 boards, 28 of 9×9, 36 of chess. One Zen 4 core, µs a position in requests
of 1, 4, 8, 16, 24: in bfloat16 Maia 6×64 921, 471, 420, 400, 377 (int8: 884, 370, 303, 282, 272), b6c96 on 9×9 1,273,
820, 765, 734, 725, on 19×19 3,760 and 3,344; in float32 by `winograd.py` Maia 1,272, 690, 516, 457, 403. (Where rows ×
width × channels are a power of two, products in float32 copy what they multiply, 8 % slower.)"""


class Pending(Protocol):
    """A batch under way."""

    def result(self) -> dict[str, Array]:
        """Wait for the batch; its raw outputs, float32 [N, ...] by `Network.output_names`. May be called again."""


class Backend(Protocol):
    """Runs one network at one precision. Safe to call from several threads."""

    name: str  # "torch", "openvino" or "onnx"
    precision: str  # "f32", "bf16", "f16" or "int8"
    device: str  # "cpu" or "cuda"

    def submit(self, inputs: Mapping[str, Array]) -> Pending:
        """Start on N ≥ 1 positions of one board shape: float32 by `Network.input_names`, `planes` [N, C, H, W].

        The inputs are copied: they may be changed once this returns.
        """


def rows_per_request(points: int, batch_size: int, most: int = POINTS_PER_REQUEST) -> int:
    """How many positions of so many points a request of at most `most` holds, so that a batch fills its requests."""
    requests = -(-batch_size // max(1, most // points))
    return -(-batch_size // requests)


@lru_cache
def source_digest(*backend: str) -> str:
    """SHA-256 (hex) of the code that decides what a network computes: all files of the systems, and the backend's."""
    digest = hashlib.sha256()
    for path in (*map(Path, backend), *sorted(Path(systems.__file__).parent.rglob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class TensorsOnly(nn.Module):
    """A network whose `forward` returns a plain tuple in the order of `output_names`, as tracing wants it."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Inputs in the order of `input_names` → outputs [N, ...] in the order of `output_names`."""
        output = self.network(*inputs)
        return tuple(getattr(output, name) for name in self.network.output_names)


def padded(rows: Array, size: int) -> Array:
    """`rows` [n, ...] as a contiguous float32 array of exactly `size` ≥ n rows, the last row repeated."""
    if len(rows) == size:
        return np.ascontiguousarray(rows, dtype=np.float32)
    return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)]).astype(np.float32, copy=False)


def as_tensors(network: Network, inputs: Mapping[str, Array]) -> list[Tensor]:
    """The network's inputs as float32 tensors, in the order of `input_names`."""
    return [torch.from_numpy(np.ascontiguousarray(inputs[name], dtype=np.float32)) for name in network.input_names]


class TorchBackend:
    """Runs a copy of the network, taken when the backend is made, in evaluation mode, on the CPU.

    Positions are run one by one: PyTorch's matrix kernels round differently from row to row of a batch.

    Args:
        precision: "f32"; "bf16" for automatic mixed precision (convolutions, linear layers in bfloat16); "int8" for a
            network from `keima.systems.layers`.
        batch_size: not asked.
        threads: of a request; None leaves PyTorch's setting.
    """

    name, device = "torch", "cpu"

    def __init__(self, network: Network, precision: str, batch_size: int, threads: int | None = None) -> None:
        self.precision = precision
        self._threads = threads
        self._network = network
        self._module = TensorsOnly(copy.deepcopy(network)).eval()

    def submit(self, inputs: Mapping[str, Array]) -> TorchJob:
        """Run the batch."""
        with (
            torch.inference_mode(),
            _threads(self._threads),
            torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"),
        ):
            tensors = as_tensors(self._network, inputs)
            answers = [self._module(*(each[row : row + 1] for each in tensors)) for row in range(len(tensors[0]))]
            outputs = [torch.cat([output.float() for output in column]) for column in zip(*answers, strict=True)]
        names = self._network.output_names
        return TorchJob({name: output.numpy() for name, output in zip(names, outputs, strict=True)})


@dataclass(frozen=True)
class TorchJob:
    """Requests already run."""

    outputs: dict[str, Array]

    def result(self) -> dict[str, Array]:
        """The outputs, float32 [N, ...] by name."""
        return self.outputs


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """PyTorch with `count` CPU threads for the duration; None changes nothing."""
    before = torch.get_num_threads()
    if count is not None and count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
