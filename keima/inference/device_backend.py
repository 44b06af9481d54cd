"""PyTorch on CUDA devices, in turn: channels-last, in float32, bfloat16 or float16, replayed as CUDA graphs.

A request has `batch_size` rows, the last one repeated where there are fewer, so that a board shape has one graph. Each
device holds the weights and, for a shape, two *slots*: pinned memory for inputs and outputs, a stream, and the graph of
everything between (to the device, through the network, back). While one slot computes, the other is filled or read. A
slot is used again once its answers are copied out, which holds a caller to two requests a device.

A layer that works number by number is one kernel (`Pointwise`), made by `torch.compile`, where Triton and a C compiler
are there; several without them.

The same code runs on the CPU, without streams, graphs and compiling, which is how it is tested without a device.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from keima.inference.backend import TensorsOnly
from keima.systems.encoding import Array
from keima.systems.layers import Pointwise
from keima.systems.network import Network

SLOTS = 2
_WARM_UPS = 3  # runs before a capture, in which libraries choose their kernels and allocate what they keep
_SHAPES = 1024  # a layer is compiled for, before it runs as it stands; b18c384nbt has 14 a board
HALVES = {"bf16": torch.bfloat16, "f16": torch.float16}
"""A precision's type, where it is not float32."""


class DeviceBackend:
    """Runs copies of the network, taken when the backend is made, in evaluation mode.

    TensorFloat-32 is off and cuDNN is held to deterministic kernels: float32 means float32, run after run.

    Args:
        precision: "f32"; "bf16" or "f16", in which convolutions and linear layers are computed.
        batch_size: rows of a request.
        devices: by PyTorch's names; None takes every CUDA device that the process sees.
    """

    name = "torch"

    def __init__(self, network: Network, precision: str, batch_size: int, devices: Sequence[str] | None = None) -> None:
        names = devices or [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        self._devices = [_Device(network, precision, torch.device(name)) for name in names]
        self._turns = itertools.cycle(self._devices)
        self._lock = threading.Lock()
        self._batch_size = batch_size
        self._input_names, self._output_names = network.input_names, network.output_names
        self.precision = precision
        self.device = self._devices[0].device.type

    def submit(self, inputs: Mapping[str, Array]) -> DeviceJob:
        """Queue the batch, request by request, each on the next device; waits for a slot where all are taken."""
        rows = self._batch_size
        tickets = []
        for start in range(0, len(inputs["planes"]), rows):
            with self._lock:
                device = next(self._turns)
            tickets.append(device.start([inputs[name][start : start + rows] for name in self._input_names], rows))
        return DeviceJob(self._output_names, tickets)


def fuse(network: nn.Module) -> None:
    """Let `torch.compile` make one kernel of each of its layers that work number by number, when it is first used."""
    for module in network.modules():
        if isinstance(module, Pointwise):
            module.compute = _compiled(type(module).compute)


@cache
def _compiled(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """For all networks, anew for every shape: with a variable number of channels it takes 2.3 times as long."""
    made = torch.compile(compute, dynamic=False)

    def run(*given: Tensor | Callable[..., Tensor] | None) -> Tensor:
        with torch._dynamo.config.patch(cache_size_limit=_SHAPES, accumulated_cache_size_limit=_SHAPES):
            found: Tensor = made(*(each.detach() if isinstance(each, Tensor) else each for each in given))
        return found

    return run


@cache
def _can_compile(device: torch.device) -> bool:
    """Are Triton and a C compiler there?"""
    try:
        torch.compile(torch.square)(torch.ones(8, device=device))
    except Exception:  # of many kinds, by what is missing
        return False
    return True


class DeviceJob:
    """Requests under way."""

    def __init__(self, names: tuple[str, ...], tickets: Sequence[_Ticket]) -> None:
        self._names = names
        self._tickets = tickets

    def result(self) -> dict[str, Array]:
        """Wait for the devices; the outputs, float32 [N, ...] by name."""
        columns = zip(*(ticket.collect() for ticket in self._tickets), strict=True)
        return {name: np.concatenate(column) for name, column in zip(self._names, columns, strict=True)}


class _Device:
    """The network on one device, and its slots by the shapes of their inputs."""

    def __init__(self, network: Network, precision: str, device: torch.device) -> None:
        self.device = device
        self.half = HALVES.get(precision)
        self.module = TensorsOnly(copy.deepcopy(network)).eval().to(device)
        for module in self.module.modules():
            if self.half is not None and isinstance(module, nn.Conv2d | nn.Linear):
                module.to(self.half)  # once, where autocast would at every request
        for parameter in self.module.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
        if device.type == "cuda" and _can_compile(device):
            fuse(self.module)
        self._slots: dict[tuple[tuple[int, ...], ...], deque[_Slot]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """How the network computes on it."""
        with (
            torch.inference_mode(),
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
            torch.autocast(self.device.type, self.half, enabled=self.half is not None, cache_enabled=False),
        ):
            yield

    def start(self, arrays: Sequence[Array], rows: int) -> _Ticket:
        """Queue one request of at most `rows` rows in the slot that has waited longest."""
        shapes = tuple((rows, *array.shape[1:]) for array in arrays)
        with self._lock:
            if shapes not in self._slots:
                self._slots[shapes] = deque(_Slot(self, shapes) for _ in range(SLOTS))
            slot = self._slots[shapes][0]
            self._slots[shapes].rotate(-1)
        return slot.start(arrays)


class _Slot:
    """Room for one request of fixed shapes, and its way to the device, through the network and back."""

    def __init__(self, device: _Device, shapes: Sequence[tuple[int, ...]]) -> None:
        self._device = device
        self._pin = device.device.type == "cuda"
        self._filled = [torch.zeros(shape, pin_memory=self._pin) for shape in shapes]
        self._inputs = [torch.zeros(shape, device=device.device) for shape in shapes]
        self._last: _Ticket | None = None
        self._lock = threading.Lock()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream(device.device) if self._pin else None  # type: ignore[no-untyped-call]
        self.outputs: list[Tensor] = []
        if self._stream is not None:
            self._capture(self._stream)

    def start(self, arrays: Sequence[Array]) -> _Ticket:
        """Fill the slot, once its last answers are out, and queue it; other slots are filled meanwhile."""
        with self._lock:
            if self._last is not None:
                self._last.collect()
            count = len(arrays[0])
            for room, array in zip(self._filled, arrays, strict=True):
                rows = room.numpy()
                rows[:count] = array
                rows[count:] = array[-1]
            done = None
            with torch.cuda.stream(self._stream):  # None: on the CPU, nothing
                if self._graph is None:
                    self._run()
                else:
                    self._graph.replay()
                if self._stream is not None:
                    done = self._stream.record_event()
            self._last = _Ticket(self, count, done)
            return self._last

    def _run(self) -> None:
        """To the device, through the network, back."""
        with self._device.computing():
            for inside, filled in zip(self._inputs, self._filled, strict=True):
                inside.copy_(filled, non_blocking=True)
            planes = [
                each.contiguous(memory_format=torch.channels_last) if each.ndim == 4 else each for each in self._inputs
            ]
            found = self._device.module(*planes)
            if not self.outputs:
                self.outputs = [torch.empty(each.shape, pin_memory=self._pin) for each in found]
            for room, each in zip(self.outputs, found, strict=True):
                room.copy_(each.float(), non_blocking=True)

    def _capture(self, stream: torch.cuda.Stream) -> None:
        """Make the graph of a run, its kernels chosen before."""
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                self._run()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            self._run()
        self._graph = graph


class _Ticket:
    """One request under way; its answers lie in the slot until they are collected."""

    def __init__(self, slot: _Slot, count: int, done: torch.cuda.Event | None) -> None:
        self._slot: _Slot | None = slot
        self._count = count
        self._done = done
        self._lock = threading.Lock()
        self._rows: list[Array] = []

    def collect(self) -> list[Array]:
        """Wait for the device; the outputs, float32 [n, ...], in memory of their own."""
        with self._lock:
            if self._slot is not None:
                if self._done is not None:
                    self._done.synchronize()
                self._rows = [output[: self._count].numpy().copy() for output in self._slot.outputs]
                self._slot = None
            return self._rows
