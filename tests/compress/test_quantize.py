"""int8: the sums are those of whole numbers, on every backend; answers stay near; what is stored comes back."""

from __future__ import annotations

import importlib
import itertools
import random
from functools import partial

import numpy as np
import openvino
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import keima
from keima.compress.fold import fold
from keima.compress.prune import agreement
from keima.compress.quantize import near_enough, quantize, train
from keima.errors import BadRequest, BadWeights, UnsupportedNetwork
from keima.games.go import Position
from keima.inference.evaluator import Evaluator
from keima.inference.openvino_backend import OpenVINOBackend, Width, convert, float_precision
from keima.systems.files.int8 import pack
from keima.systems.files.onnx_file import any_size
from keima.systems.layers import QuantizedConvolution, digest, quantized, with_layers
from keima.systems.network import Network, Quantization
from keima.systems.registry import create, find
from tests.systems.katago.katago_tiny import tiny
from tests.systems.laws import TOLERANCE, answers, assert_same, lively, openvino_answers, random_inputs

torch.set_num_threads(1)

NETWORKS = (
    "alphago-zero",
    "comparison-inception",
    "v8-residual",
    "v14-nested",
    "v17-transformer",
    "maia-6x64",
    "alphago-policy",
)


def layer(inputs: int = 33, outputs: int = 7, kernel: int = 3, zero: int = 0) -> dict[str, Tensor]:
    """Random int8 numbers of a convolution, its largest among them, steps that are powers of two."""
    numbers = torch.Generator().manual_seed(inputs + zero)
    weight = torch.randint(-64, 65, (outputs, inputs, kernel, kernel), generator=numbers)
    weight[0], weight[1] = 64, -64
    weight[2, 0::2], weight[2, 1::2] = 127, 1
    return {
        "weight": weight.to(torch.int8),
        "scale": torch.full((outputs,), 2.0**-9),
        "input_scale": 2.0 ** -torch.randint(0, 5, (inputs,), generator=numbers).float(),
        "input_zero": torch.tensor([zero], dtype=torch.uint8),
        "bias": torch.arange(outputs).float(),
    }


def by_hand(numbers: dict[str, Tensor], steps: np.ndarray) -> np.ndarray:
    """What such a convolution writes for inputs in whole steps, int64 [N, I, H, W], padded by its half kernel."""
    weight = numbers["weight"].numpy().astype(np.int64)
    edge = weight.shape[2] // 2
    height, width = steps.shape[2:]
    wide = np.pad(steps, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    total = np.zeros((len(steps), len(weight), height, width), np.int64)
    for down in range(weight.shape[2]):
        for right in range(weight.shape[3]):
            part = wide[:, :, down : down + height, right : right + width]
            total += np.einsum("oi,nihw->nohw", weight[:, :, down, right], part)
    return total * 2.0**-9 + numbers["bias"].numpy()[:, None, None]


@pytest.mark.parametrize(("kernel", "zero"), [(3, 0), (1, 0), (3, 40)])
def test_every_backend_adds_whole_numbers(kernel, zero):
    """Also the largest, which processors without VNNI would cut off at 16 bits were neighbours together beyond 128."""
    numbers = layer(kernel=kernel, zero=zero)
    module = QuantizedConvolution(nn.Conv2d(33, 7, kernel, padding=kernel // 2), numbers).eval()
    steps = np.random.default_rng(0).integers(-zero, 256 - zero, (2, 33, 9, 9))
    steps[:, :, :4] = 255 - zero
    x = torch.from_numpy(steps).float() * numbers["input_scale"][:, None, None]
    beyond = torch.where(x.abs() == x.abs().max(), 3 * x, x)  # what is cut off
    read = np.rint((beyond / numbers["input_scale"][:, None, None]).numpy())
    wanted = by_hand(numbers, np.clip(read, -zero, 255 - zero).astype(np.int64))
    with torch.no_grad():
        np.testing.assert_array_equal(module(beyond).numpy(), wanted)
        model = openvino.convert_model(module, example_input=beyond)
    model.reshape(list(beyond.shape))
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    np.testing.assert_allclose(compiled(beyond.numpy())[0], wanted, rtol=1e-6)
    assert ["i8" in kernel for kernel in convolution_kernels(compiled)] == [True]


def convolution_kernels(compiled: openvino.CompiledModel) -> list[str]:
    """What OpenVINO computes each convolution with, in small letters: "jit_avx2_i8", …"""
    facts = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
    kinds = [(each["layerType"].astype(str), each["primitiveType"].astype(str)) for each in facts]
    return [kernel.lower() for layer, kernel in kinds if layer == "Convolution"]


def small(name: str) -> Network:
    torch.manual_seed(0)
    return tiny(name) if name.startswith("v") else lively(create(name, **find(name).small)).eval()


def batches(network: Network, count: int, first: int = 0) -> list[dict[str, Tensor]]:
    side = 9 if any_size(network) else None  # quicker than 19
    return [random_inputs(network, 8, side, seed=first + number) for number in range(count)]


def apart(one: Network, other: Network, inputs: dict[str, Tensor]) -> float:
    """The largest mean difference of an output, as a share of that output's spread."""
    ours, theirs = answers(one, inputs), answers(other, inputs)
    return max(float(np.abs(ours[name] - theirs[name]).mean() / (theirs[name].std() + 1e-9)) for name in theirs)


def test_however_deep_a_network_is_its_tower_is_in_int8():
    """Of 104 equal convolutions none has a hundredth of the multiplications."""
    network = lively(create("alphago-zero", blocks=52, channels=8, board_size=9)).eval()
    found = quantize(network, [random_inputs(network, 2, None, seed=0)])
    assert found.quantization is not None
    assert len(found.quantization.layers) >= 104


def test_layers_that_another_version_thought_worth_it_can_go_back_to_float(monkeypatch):
    network = small("v8-residual")
    with monkeypatch.context() as patched:
        patched.setattr(importlib.import_module("keima.compress.quantize"), "LEAST", 0.0)
        every = quantize(network, batches(network, 2))
    usual = quantize(network, batches(network, 2))
    assert every.quantization is not None
    assert usual.quantization is not None
    assert {*every.quantization.layers} > {*usual.quantization.layers}
    left = near_enough(every, batches(network, 1, first=50), limit=0.0)
    assert left.quantization is not None
    assert {*left.quantization.layers} < {*every.quantization.layers}


def test_boards_of_several_sizes_are_fitted_together():
    network = small("v8-residual")
    sides = [random_inputs(network, 8, side, seed=side) for side in (7, 9)]
    found = quantize(network, sides)
    assert found.quantization is not None
    for inputs in sides:
        assert 0 < apart(quantized(found), network, inputs) < 0.1
    alone = small("alphago-policy")
    with pytest.raises(BadRequest, match="boards of one size"):
        quantize(alone, [random_inputs(alone, 2, side, seed=0) for side in (7, 9)])


@pytest.mark.parametrize("name", NETWORKS)
def test_answers_stay_near_on_positions_it_was_not_fitted_to(name, tmp_path):
    network = small(name)
    before = digest(network)
    found = quantize(network, batches(network, 6))
    assert found.quantization is not None
    assert digest(found) == digest(network) == before
    computed, inputs = quantized(found), batches(network, 1, first=50)[0]
    assert 0 < apart(computed, network, inputs) < 0.1
    rough = with_layers(network, {k: {**v, "scale": v["scale"] * 2} for k, v in found.quantization.layers.items()})
    assert apart(rough, network, inputs) > 0.2  # the measure sees what is wrong
    fast, exact = openvino_answers(computed, inputs), answers(computed, inputs)
    for output, numbers in exact.items():  # what lies between two steps may be rounded to either
        assert np.abs(fast[output] - numbers).mean() <= TOLERANCE * max(1.0, np.abs(numbers).max())
        assert np.abs(fast[output] - numbers).max() <= 0.05 * max(1.0, np.abs(numbers).max())
    keima.save(found, tmp_path / "found.safetensors")
    again = keima.load(tmp_path / "found.safetensors")
    assert_same(answers(again, inputs), answers(network, inputs), 0)
    assert_same(answers(quantized(again), inputs), answers(computed, inputs), 0)
    planes = next(part for part in network.modules() if isinstance(part, nn.Conv2d))
    assert all(network.get_submodule(name) is not planes for name in found.quantization.layers)


@pytest.mark.parametrize("name", ["alphago-zero", "v8-residual", "maia-6x64"])
def test_openvino_computes_exactly_those_layers_in_int8(name):
    """As evaluators have it compiled: rounded weights that were taken for float constants gave the same answers."""
    network = small(name)
    found = quantize(network, batches(network, 4))
    assert found.quantization is not None
    example, computed = {key: each.numpy() for key, each in batches(network, 1)[0].items()}, quantized(found)
    backend = OpenVINOBackend(computed, "int8", 8, 1)
    for rows in (1, 4):
        kernels = convolution_kernels(backend._compile(example, partial(convert, computed, example), Width(rows, 1)))
        assert sum(kernel.endswith("i8") for kernel in kernels) == len(found.quantization.layers), kernels


def test_evaluators_compute_in_int8_when_asked_to():
    network = small("alphago-zero")
    found = quantize(network, batches(network, 4))
    positions = [Position.start(network.encoding.board[0]).play("A1")]
    same, whole, torch_whole = (
        Evaluator(found, backend, precision)(positions)[0].policy
        for backend, precision in (("openvino", "f32"), ("openvino", "int8"), ("torch", "int8"))
    )
    assert Evaluator(found, precision="int8").precision == "int8"
    assert same == Evaluator(network)(positions)[0].policy
    assert whole != same
    rest = 1e-5 if float_precision("int8") == "f32" else 1e-4  # what is not in int8 is in bfloat16 where there is that
    assert whole == pytest.approx(torch_whole, abs=rest)
    with pytest.raises(BadRequest, match="keima compress quantize makes them"):
        Evaluator(network, precision="int8")


def test_what_does_harm_goes_back_to_float():
    network = small("v8-residual")
    choice = batches(network, 2, first=50)
    every = quantize(network, batches(network, 4))
    some = near_enough(every, choice, limit=0.0)
    assert every.quantization is not None
    assert some.quantization is not None
    assert 0 < len(some.quantization.layers) < len(every.quantization.layers)
    near, far = (agreement(network, quantized(one), choice).divergence for one in (some, every))
    assert near < far
    assert near_enough(every, choice, limit=1.0) is every
    with pytest.raises(BadRequest, match="keima compress quantize makes them"):
        near_enough(network, choice)


def test_training_makes_good_what_is_wrong():
    network = small("alphago-zero")
    found = quantize(network, batches(network, 4))
    assert found.quantization is not None
    layers = {name: {**each, "scale": each["scale"] * 2} for name, each in found.quantization.layers.items()}
    found.quantization = Quantization(layers, found.quantization.weights)
    inputs = batches(network, 4, first=50)
    before = agreement(network, quantized(found), inputs)
    trained = train(found, itertools.islice(itertools.cycle(batches(network, 8, first=90)), 150), seconds=60)
    after = agreement(network, quantized(trained), inputs)
    assert after.divergence < before.divergence
    assert after.value < before.value / 2
    assert digest(trained) == digest(network)


def test_numbers_of_other_weights_are_not_used(tmp_path):
    network = small("alphago-zero")
    found = quantize(network, batches(network, 2))
    assert fold(found).quantization is None
    with torch.no_grad():
        next(found.parameters()).add_(0.1)
    with pytest.raises(BadRequest, match="changed after it was quantized"):
        quantized(found)
    keima.save(found, tmp_path / "found.safetensors")
    assert keima.load(tmp_path / "found.safetensors").quantization is None


@pytest.mark.parametrize(("name", "ending"), [("v8-residual", ".bin.gz"), ("maia-6x64", ".pb.gz")])
def test_in_other_programs_formats_they_stand_beside(name, ending, tmp_path):
    network = small(name)
    found = quantize(network, batches(network, 2))
    keima.save(found, tmp_path / f"found{ending}")
    keima.save(network, tmp_path / f"plain{ending}")
    assert (tmp_path / f"found{ending}").read_bytes() == (tmp_path / f"plain{ending}").read_bytes()
    assert keima.load(tmp_path / f"plain{ending}").quantization is None
    again = keima.load(tmp_path / f"found{ending}")
    inputs = batches(network, 1, first=50)[0]
    assert apart(quantized(again), network, inputs) < 0.1
    beside = tmp_path / f"found{ending}.int8"
    changes = beside.read_bytes()
    beside.write_bytes(changes[:-7])
    with pytest.raises(BadWeights, match="int8"):
        keima.load(tmp_path / f"found{ending}")
    save_file(pack(again), beside, {"keima.version": "1", "keima.weights": digest(again)})
    assert beside.stat().st_size > 1.5 * len(changes)
    expected = pack(found)
    for one in (again, keima.load(tmp_path / f"found{ending}")):
        numbers = pack(one)
        assert numbers.keys() == expected.keys()
        assert all(torch.equal(tensor, expected[name]) for name, tensor in numbers.items())
    save_file(pack(again), beside, {"keima.version": "1", "keima.weights": "0" * 64})
    with pytest.raises(BadWeights, match="int8 numbers of another network"):
        keima.load(tmp_path / f"found{ending}")
    with torch.no_grad():
        next(again.parameters()).add_(0.1)
    keima.save(again, tmp_path / f"changed{ending}")
    assert not (tmp_path / f"changed{ending}.int8").exists()


def _wrong(tensors: dict[str, Tensor], part: str, change) -> dict[str, Tensor]:
    name = next(name for name in tensors if name.startswith("int8/") and name.endswith(f".{part}"))
    return {**tensors, name: change(tensors[name])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: _wrong(found, "weight", lambda each: each.float()), "of the convolution's shape"),
        (lambda found: _wrong(found, "weight", lambda each: each[:1].clone()), "of the convolution's shape"),
        (lambda found: _wrong(found, "weight", lambda each: each.clone().fill_(-128)), "beyond ±127"),
        (lambda found: _wrong(found, "weight", lambda each: each.clone().fill_(65)), "beyond ±127"),
        (lambda found: _wrong(found, "scale", lambda each: each * 0), "not above 0"),
        (lambda found: _wrong(found, "input_scale", lambda each: each / 0), "not finite"),
        (lambda found: _wrong(found, "bias", lambda each: each * float("nan")), "not finite"),
        (lambda found: {k: v for k, v in found.items() if not k.endswith(".input_zero")}, "int8 numbers should be"),
        (lambda found: {**found, "int8/policy.linear.weight": torch.zeros(1)}, "no convolution"),
        (lambda found: {**found, "int8/": torch.zeros(1)}, "no convolution"),
    ],
)
def test_damaged_numbers_are_refused(change, message, tmp_path):
    network = small("alphago-zero")
    path = tmp_path / "found.safetensors"
    keima.save(quantize(network, batches(network, 1)), path)
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    save_file(change(load_file(path)), path, metadata)
    with pytest.raises(BadWeights, match=message):
        keima.load(path)


def test_a_network_without_convolutions_is_refused():
    network = create("alphago-rollout")
    with pytest.raises(UnsupportedNetwork, match="no convolutions"):
        quantize(network, batches(network, 1))


@pytest.mark.slow
def test_katagos_network_keeps_its_moves(reference):
    """On small boards, which are quick; docs/compress.md has its figures on 19×19."""
    network = keima.load(reference / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz")
    evaluator, draw = Evaluator(network, batch_size=64), random.Random(0)
    found, table = [], [Position.start(9, komi=7.0)] * 32
    while len(found) < 512:
        for number, answer in enumerate(evaluator(table)):
            table[number] = table[number].play(draw.choices(list(answer.policy), list(answer.policy.values()))[0])
            if table[number].is_over:
                table[number] = Position.start(9, komi=7.0)
        found += table
    draw.shuffle(found)
    encoded = [network.encoding.encode(found[start : start + 64]).inputs for start in range(0, 512, 64)]
    inputs = [{name: torch.from_numpy(each[name]) for name in network.input_names} for each in encoded]
    whole = quantize(network, inputs[:4])
    near = agreement(network, quantized(whole), inputs[4:])
    assert near.top1 >= 0.95
    assert near.value is not None
    assert near.value / 2 <= 0.008
    assert near.divergence <= 0.005
