"""The backend of CUDA devices, by the same code on the CPU: slots, turns and rows; graphs where there is a device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import keima
from keima.inference.backend import TorchBackend
from keima.inference.device_backend import SLOTS, DeviceBackend, fuse
from keima.systems.conformance import lively
from keima.systems.encoding import Array
from keima.systems.layers import Pointwise, activation_layer
from keima.systems.network import Network


def network() -> Network:
    return lively(keima.create("katago-b6c96", blocks=3)).eval()


def inputs(count: int, side: int = 9, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    planes = (rng.random((count, 22, side, side)) > 0.5).astype(np.float32)
    return {"planes": planes, "globals": rng.normal(size=(count, 19)).astype(np.float32)}


def assert_close(found: dict[str, Array], expected: dict[str, Array], within: float) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].shape == values.shape, name
        np.testing.assert_allclose(found[name], values, rtol=0, atol=within * np.abs(values).max(), err_msg=name)


@pytest.mark.parametrize("count", [1, 4, 11])
def test_answers_are_the_reference_backend_s(count: int) -> None:
    """Requests of four rows, a part of one too, in turn on two devices."""
    net = network()
    found = DeviceBackend(net, "f32", 4, ["cpu", "cpu"]).submit(inputs(count)).result()
    assert_close(found, TorchBackend(net, "f32", 4).submit(inputs(count)).result(), 1e-5)


def test_a_row_s_answer_is_the_same_whoever_shares_its_request() -> None:
    backend = DeviceBackend(network(), "f32", 4, ["cpu"])
    together = backend.submit(inputs(4)).result()
    first = {name: rows[:1] for name, rows in inputs(4).items()}
    alone = backend.submit(first).result()
    assert_close({name: rows[:1] for name, rows in together.items()}, alone, 1e-6)


@pytest.mark.parametrize(("precision", "within"), [("bf16", 0.1), ("f16", 0.02)])
def test_half_precision_is_near_float32_and_is_half(precision: str, within: float) -> None:
    net = network()
    exact = TorchBackend(net, "f32", 4).submit(inputs(4)).result()
    found = DeviceBackend(net, precision, 4, ["cpu"]).submit(inputs(4)).result()
    assert_close(found, exact, within)
    assert all(rows.dtype == np.float32 for rows in found.values())
    assert any(np.abs(found[name] - exact[name]).max() > 0 for name in exact)
    assert next(net.parameters()).dtype == torch.float32  # the caller's network is as it was


def test_more_requests_than_slots_keep_their_own_answers() -> None:
    """Boards of two sizes, results asked late, in any order and twice."""
    net = network()
    backend, reference = DeviceBackend(net, "f32", 2, ["cpu", "cpu"]), TorchBackend(net, "f32", 2)
    given = [inputs(2, side, seed) for seed in range(2 * SLOTS + 3) for side in (7, 9)]
    jobs = [backend.submit(each) for each in given]
    for each in given:
        each["planes"][:] = 0  # the backend has its own copy
    for seed, job in reversed(list(enumerate(jobs))):
        again = inputs(2, (7, 9)[seed % 2], seed // 2)
        assert_close(job.result(), reference.submit(again).result(), 1e-5)
        assert_close(job.result(), reference.submit(again).result(), 1e-5)


def test_threads_may_share_it() -> None:
    net = network()
    backend, reference = DeviceBackend(net, "f32", 2, ["cpu", "cpu"]), TorchBackend(net, "f32", 2)
    wrong: list[int] = []

    def ask(seed: int) -> None:
        for turn in range(4):
            given = inputs(2, 7, 10 * seed + turn)
            found = backend.submit(given).result()["policy"]
            if not np.allclose(found, reference.submit(given).result()["policy"], atol=1e-4):
                wrong.append(seed)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert wrong == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this processor has no CUDA device beside it")
@pytest.mark.parametrize("precision", ["f32", "bf16", "f16"])
def test_a_device_answers_as_the_cpu(precision: str) -> None:
    net = network()
    evaluator = keima.Evaluator(net, "torch", precision, batch_size=16)
    assert (evaluator.device, evaluator.precision) == ("cuda", precision)
    exact = TorchBackend(net, "f32", 1).submit(inputs(40, 19)).result()
    found = DeviceBackend(net, precision, 16).submit(inputs(40, 19)).result()
    assert_close(found, exact, {"f32": 1e-4, "bf16": 0.1, "f16": 0.02}[precision])


def test_mish_for_a_compiler_is_mish(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.linspace(-120, 120, 20_001, dtype=torch.float64, requires_grad=True)
    monkeypatch.setattr(torch.compiler, "is_dynamo_compiling", lambda: True)
    found = activation_layer("mish")(x)
    wanted = F.mish(x)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    slopes = (torch.autograd.grad(each.sum(), x)[0] for each in (found, wanted))
    torch.testing.assert_close(*slopes, rtol=1e-9, atol=1e-9)


@pytest.mark.slow  # compiles for half a minute
@pytest.mark.parametrize(("precision", "within"), [("f32", 1e-5), ("bf16", 0.02)])
def test_layers_made_one_kernel_answer_as_before(precision: str, within: float) -> None:
    """As on a CUDA device, compiled for the CPU; norms of several widths, with a mask and without."""
    net = lively(keima.create("katago-b18c384nbt", blocks=3)).eval()
    plain, fused = (DeviceBackend(net, precision, 2, ["cpu"]) for _ in range(2))
    module = fused._devices[0].module
    fuse(module)
    layers = [each for each in module.modules() if isinstance(each, Pointwise)]
    assert len({each.compute for each in layers}) == 1
    assert all(each.compute is not type(each).compute for each in layers)
    smaller = inputs(2, 9)
    smaller["planes"][:, 0] = 0
    smaller["planes"][:, 0, :7, :7] = 1
    for given in (inputs(2, 9), smaller, inputs(2, 7)):
        assert_close(fused.submit(given).result(), plain.submit(given).result(), within)
