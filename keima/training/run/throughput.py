"""How fast a training step is, beside what the machine's convolutions alone would allow.

Operations are counted as multiplications and additions of the convolutions, forward and backward: 2 · N · H · W · in ·
out · k² for each of forward, gradient of the input (but for the first layer) and gradient of the weights. Everything
else (norms, activations, heads, optimizer) counts as time only, so the share says how much of the machine is used for
what a network is made of.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from keima.systems.network import Network
from keima.systems.registry import example_inputs
from keima.systems.targets import TensorBatch, TrainingBatch
from keima.training.run.evaluation import Autocast

REFERENCE = (256, 256, 3)
"""Channels in, channels out, kernel of the convolution that stands for the machine's best."""


@dataclass(frozen=True)
class Convolution:
    """One convolution of a network on its board; the `first` stands on the network's inputs, which need no gradient."""

    inputs: int
    outputs: int
    kernel: int
    height: int
    width: int
    first: bool

    def operations(self, n: int) -> float:
        """Of forward and backward together, for n positions."""
        one = 2.0 * n * self.height * self.width * self.inputs * self.outputs * self.kernel**2
        return one * (2 if self.first else 3)


def convolutions(network: Network) -> list[Convolution]:
    """All convolutions of a network, as often as one evaluation runs them."""
    found: list[Convolution] = []

    def note(module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        assert isinstance(module, nn.Conv2d)
        _, channels, height, width = inputs[0].shape
        size = int(module.kernel_size[0])
        first = channels == network.encoding.planes and not found
        found.append(Convolution(channels, module.out_channels, size, height, width, first))

    layers = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    handles = [layer.register_forward_hook(note) for layer in layers]
    training = network.training
    try:
        with torch.no_grad():
            network.eval()(**example_inputs(network))
    finally:
        network.train(training)
        for handle in handles:
            handle.remove()
    return found


def random_batch(network: Network, n: int, seed: int = 0) -> TensorBatch:
    """A batch of random planes, moves and results, as tensors."""
    random = torch.Generator().manual_seed(seed)
    inputs = {name: torch.rand(zeros.shape, generator=random) for name, zeros in example_inputs(network, n).items()}
    value = torch.randint(0, 2, (n,), generator=random) * 2.0 - 1.0
    return TrainingBatch(
        inputs=inputs,
        policy=torch.randint(0, 20, (n,), generator=random),
        value=value,
        ply=torch.zeros(n, dtype=torch.int32),
    )


def seconds_of(run: Callable[[], None], device: torch.device, seconds: float, rounds: int = 3) -> float:
    """The shortest mean time of one call, over several rounds of about so many seconds."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    run()
    best = float("inf")
    for _ in range(rounds):
        wait()
        started, done = time.perf_counter(), 0
        while time.perf_counter() - started < seconds or not done:
            run()
            done += 1
            if device.type == "cuda" and done % 8 == 0:
                wait()
        wait()
        best = min(best, (time.perf_counter() - started) / done)
    return best


def convolution_alone(shape: Convolution, n: int, device: torch.device, autocast: Autocast, seconds: float) -> float:
    """Seconds of one convolution, forward and backward, for n positions; the faster of both memory layouts."""
    times = []
    for layout in (torch.contiguous_format, torch.channels_last):
        layer = nn.Conv2d(shape.inputs, shape.outputs, shape.kernel, padding=shape.kernel // 2, bias=False)
        layer = layer.to(device).to(memory_format=layout)  # type: ignore[call-overload]
        planes = torch.rand(n, shape.inputs, shape.height, shape.width, device=device)
        planes = planes.to(memory_format=layout).requires_grad_(not shape.first)
        with autocast():
            gradient = torch.ones_like(layer(planes))

        def run(layer: nn.Module = layer, planes: Tensor = planes, gradient: Tensor = gradient) -> None:
            with autocast():
                output = layer(planes)
            output.backward(gradient)
            layer.zero_grad()
            planes.grad = None

        times.append(seconds_of(run, device, seconds / 2))
    return min(times)


def bytes_kept(forward: Callable[[], Tensor]) -> int:
    """Bytes that a forward pass keeps for the backward one, weights aside: what gradient checkpointing saves."""
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        if not isinstance(tensor, torch.nn.Parameter):
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = forward()
    del loss
    return sum(kept.values())
