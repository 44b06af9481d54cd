"""Encoded inputs in, the network's raw outputs back, possibly while the next batch runs: what a backend offers, and the
reference backend, PyTorch on the CPU or a CUDA device.

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

POINTS_PER_REQUEST = 361
"""Board points one request aims at: one 19×19 board, four chess boards. Measured with b6c96 and Maia 6×64 on two cores
(`benchmarks/bench_evaluator.py`): larger requests leave the cache, smaller ones pay their start more often."""


class Pending(Protocol):
    """A batch under way."""

    def result(self) -> dict[str, Array]:
        """Wait for the batch; its raw outputs, float32 [N, ...] by `Network.output_names`. May be called again."""


class Backend(Protocol):
    """Runs one network at one precision. Safe to call from several threads."""

    name: str  # "torch", "openvino" or "onnx"
    precision: str  # "f32", "bf16" or "f16"
    device: str  # "cpu" or "cuda"

    def submit(self, inputs: Mapping[str, Array]) -> Pending:
        """Start on N ≥ 1 positions of one board shape: float32 by `Network.input_names`, `planes` [N, C, H, W].

        The inputs are copied: they may be changed once this returns.
        """


def rows_per_request(points: int, batch_size: int) -> int:
    """How many positions of so many points one request holds: a power of two, at most `batch_size`."""
    wanted = max(1, min(POINTS_PER_REQUEST // points, batch_size))
    return 1 << (wanted.bit_length() - 1)


@lru_cache
def source_digest(backend: str) -> str:
    """SHA-256 (hex) of the code that decides what a network computes: all files of the systems, and the backend's."""
    digest = hashlib.sha256(Path(backend).read_bytes())
    for path in sorted(Path(systems.__file__).parent.rglob("*.py")):
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
    """Runs a copy of the network, taken when the backend is made, in evaluation mode.

    On the CPU positions are run one by one: PyTorch's matrix kernels round differently from row to row of a batch. On
    CUDA the weights lie channels-last, every request has `batch_size` rows, TensorFloat-32 is off and cuDNN is held
    to deterministic kernels: float32 means float32 there too.

    Args:
        precision: "f32", or "bf16" for automatic mixed precision (convolutions and linear layers in bfloat16).
        batch_size: rows of a request on CUDA.
        threads: CPU threads of a request; None leaves PyTorch's setting.
        device: "cpu" or "cuda"; None takes CUDA where there is one.
    """

    name = "torch"

    def __init__(
        self, network: Network, precision: str, batch_size: int, threads: int | None = None, device: str | None = None
    ) -> None:
        self.precision = precision
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._batch_size = batch_size
        self._threads = threads
        self._input_names = network.input_names
        self._output_names = network.output_names
        self._module = TensorsOnly(copy.deepcopy(network)).eval().to(self.device)
        if self.device == "cuda":
            for parameter in self._module.parameters():
                if parameter.ndim == 4:
                    parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)

    def submit(self, inputs: Mapping[str, Array]) -> TorchJob:
        """Run the batch: at once on the CPU, queued on a CUDA device; the same kernels every time."""
        size = len(inputs["planes"])
        rows = self._batch_size if self.device == "cuda" else 1
        parts: list[list[Tensor]] = []
        with (
            torch.inference_mode(),
            _threads(self._threads),
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
            torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bf16"),
        ):
            for start in range(0, size, rows):
                request = [padded(inputs[name][start : start + rows], rows) for name in self._input_names]
                parts.append(self._run([torch.from_numpy(array) for array in request]))
        done = None
        if self.device == "cuda":
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record()
        return TorchJob(self._output_names, parts, size, done)

    def _run(self, tensors: list[Tensor]) -> list[Tensor]:
        """One request; the outputs as float32 on the CPU, on CUDA perhaps still on their way (see `TorchJob`)."""
        if self.device == "cpu":
            return [output.float() for output in self._module(*tensors)]
        outputs = self._module(*(tensor.pin_memory().to(self.device, non_blocking=True) for tensor in tensors))
        pinned = [torch.empty(output.shape, dtype=torch.float32, pin_memory=True) for output in outputs]
        return [to.copy_(output.float(), non_blocking=True) for to, output in zip(pinned, outputs, strict=True)]


@dataclass(frozen=True)
class TorchJob:
    """Requests already run (CPU), or queued (CUDA) and finished when `done` is."""

    names: tuple[str, ...]
    parts: list[list[Tensor]]
    size: int
    done: torch.cuda.Event | None

    def result(self) -> dict[str, Array]:
        """Wait for the device, then the outputs, float32 [N, ...] by name."""
        if self.done is not None:
            self.done.synchronize()
        columns = zip(*self.parts, strict=True)
        joined = [np.concatenate([part.numpy() for part in column])[: self.size] for column in columns]
        return dict(zip(self.names, joined, strict=True))


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
