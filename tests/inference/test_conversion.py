"""Conversion to OpenVINO, by several threads at once: a match opens its two networks so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from keima.inference.openvino_backend import convert
from keima.systems.registry import create, example_inputs


def test_networks_are_converted_side_by_side():
    """PyTorch's tracer mixes up networks that two threads trace together; most of these failed."""
    networks = [create("alphago-policy", filters=4, layers=3, board_size=5).eval() for _ in range(6)]

    def work(network):
        return convert(network, {name: tensor.numpy() for name, tensor in example_inputs(network).items()})

    with ThreadPoolExecutor(6) as pool:
        models = list(pool.map(work, networks))
    assert [len(model.outputs) for model in models] == [1] * 6
