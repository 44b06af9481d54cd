"""What must hold for every network of the family, whichever it is: small helpers for the tests beside this file."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
import torch
from numpy.typing import NDArray
from torch import Tensor

from keima.inference.openvino_backend import convert
from keima.systems.conformance import lively as lively
from keima.systems.network import Network
from keima.systems.registry import example_inputs

TOLERANCE = 2e-4
"""Between PyTorch and OpenVINO in float32, relative to the largest output (deep fresh networks grow)."""


def random_inputs(network: Network, n: int, side: int | None = None, seed: int = 0) -> dict[str, Tensor]:
    """N random positions, as far as a network can tell: planes of zeros and ones, other inputs normal."""
    generator = torch.Generator().manual_seed(seed)
    inputs = {}
    for name, example in example_inputs(network, n).items():
        shape = list(example.shape)
        if name == "planes" and side is not None:
            shape[2:] = [side, side]
        if network.system == "alphago-rollout":  # planes of numbers: every pattern known is met
            numbers = torch.randint(0, 8192, shape, generator=generator)
            inputs[name] = (numbers % torch.tensor([10, 9, 9, 8192, 2])[:, None, None]).float()
            continue
        noise = torch.randn(shape, generator=generator)
        inputs[name] = (noise > 0.5).float() if name == "planes" else noise
    return inputs


def answers(network: Network, inputs: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    """The network's raw outputs by name, from PyTorch."""
    with torch.no_grad():
        output = network(**inputs)
    return {name: getattr(output, name).numpy() for name in network.output_names}


def openvino_answers(network: Network, inputs: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    """The same from OpenVINO on the CPU, in float32: converted by one row, as its backend does, then reshaped."""
    arrays = [inputs[name].numpy() for name in network.input_names]
    model = convert(network, {name: inputs[name][:1].numpy() for name in network.input_names})
    model.reshape({i: list(array.shape) for i, array in enumerate(arrays)})
    settings = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    compiled = openvino.compile_model(model, "CPU", settings)
    results = compiled(arrays)
    return {name: results[i] for i, name in enumerate(network.output_names)}


def assert_same(found: dict[str, NDArray[Any]], expected: dict[str, NDArray[Any]], tolerance: float) -> None:
    """Both have the same outputs, equal to within `tolerance` of each output's largest number (or of 1)."""
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].shape == values.shape
        scale = max(1.0, float(np.abs(values).max()))
        np.testing.assert_allclose(found[name], values, rtol=0, atol=tolerance * scale, err_msg=name)


def assert_rows_independent(network: Network, inputs: dict[str, Tensor]) -> None:
    """A position's answer does not depend on what else is in its batch."""
    together = answers(network, inputs)
    for row in range(len(inputs["planes"])):
        alone = answers(network, {name: tensor[row : row + 1] for name, tensor in inputs.items()})
        assert_same(alone, {name: values[row : row + 1] for name, values in together.items()}, 1e-5)


def assert_learns(network: Network, inputs: dict[str, Tensor]) -> None:
    """Every parameter gets a gradient from the outputs, finite and somewhere not zero."""
    network.train()
    output = network(**inputs)
    weights = torch.Generator().manual_seed(1)
    total = torch.zeros(())
    for name in network.output_names:
        values = getattr(output, name)
        total = total + (values * torch.randn(values.shape, generator=weights)).sum()
    total.backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, f"{name} has a zero gradient"
    network.zero_grad()
    network.eval()
