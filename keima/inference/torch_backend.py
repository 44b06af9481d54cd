"""The reference backend: the network's own PyTorch modules, on the CPU or a CUDA device."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from keima.inference.backend import TensorsOnly, padded
from keima.systems.encoding import Array
from keima.systems.network import Network


class TorchBackend:
    """Runs a copy of the network, taken when the backend is made, in evaluation mode.

    On the CPU positions are run one by one: PyTorch's matrix kernels round differently from row to row of a batch. On
    CUDA the weights lie channels-last, every request has `batch_size` rows, TensorFloat-32 is off and cuDNN is held
    to deterministic kernels: float32 means float32 there too.

    Args:
        network: any network.
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
        """Run the batch: at once on the CPU, queued on a CUDA device."""
        size = len(inputs["planes"])
        rows = self._batch_size if self.device == "cuda" else 1
        parts: list[list[Tensor]] = []
        with torch.inference_mode(), _threads(self._threads), self._arithmetic():
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
        return [_to_pinned(output.float()) for output in outputs]

    @contextmanager
    def _arithmetic(self) -> Iterator[None]:
        """Exact float32, or automatic mixed precision with bfloat16, the same kernels every time."""
        with (
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
            torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bf16"),
        ):
            yield


class TorchJob:
    """Requests already run (CPU), or queued (CUDA) and finished when `done` is."""

    def __init__(
        self, names: tuple[str, ...], parts: list[list[Tensor]], size: int, done: torch.cuda.Event | None
    ) -> None:
        self._names = names
        self._parts = parts
        self._size = size
        self._done = done

    def result(self) -> dict[str, Array]:
        """Wait for the device, then the outputs, float32 [N, ...] by name."""
        if self._done is not None:
            self._done.synchronize()
        columns = zip(*self._parts, strict=True)
        joined = [np.concatenate([part.numpy() for part in column])[: self._size] for column in columns]
        return dict(zip(self._names, joined, strict=True))


def _to_pinned(output: Tensor) -> Tensor:
    """Queue the copy of a CUDA tensor to pinned memory of the CPU."""
    return torch.empty(output.shape, dtype=output.dtype, pin_memory=True).copy_(output, non_blocking=True)


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
