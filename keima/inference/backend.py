"""What a backend offers: encoded inputs in, the network's raw outputs back, possibly while the next batch runs.

A backend splits what it is given into requests of a fixed number of rows, the same for a board shape whatever the
caller's batch is, and pads the last one. So a position meets the same kernels alone as among others, and its answer is
the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from keima.systems.encoding import Array
from keima.systems.network import Network

POINTS_PER_REQUEST = 361
"""Board points one request aims at: one 19×19 board, four chess boards. Measured with b6c96 and Maia 6×64 on two cores
(`benchmarks/bench_evaluator.py`): larger requests leave the cache, smaller ones pay their start more often."""


class Pending(Protocol):
    """A batch under way."""

    def result(self) -> dict[str, Array]:
        """Wait for the batch; its raw outputs, float32 [N, ...] by `Network.output_names`. May be called again."""
        ...


class Backend(Protocol):
    """Runs one network at one precision. Safe to call from several threads."""

    name: str
    """"torch" or "openvino"."""
    precision: str
    """"f32" or "bf16"."""
    device: str
    """"cpu" or "cuda"."""

    def submit(self, inputs: Mapping[str, Array]) -> Pending:
        """Start on N positions of one board shape. The inputs are copied: they may be changed once this returns.

        Args:
            inputs: float32 arrays by `Network.input_names`, first axis N ≥ 1; `planes` is [N, C, H, W].
        """
        ...


def rows_per_request(height: int, width: int, batch_size: int) -> int:
    """How many positions of H × W points one request holds: a power of two, at most `batch_size`."""
    wanted = max(1, min(POINTS_PER_REQUEST // (height * width), batch_size))
    return 1 << (wanted.bit_length() - 1)


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
