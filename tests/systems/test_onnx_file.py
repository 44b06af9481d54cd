"""ONNX files: the same network again, by any runtime; what is no such file is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
import torch
from onnx import numpy_helper

import keima
from keima.compress.quantize import quantize
from keima.errors import BadRequest, BadWeights, UnsupportedNetwork
from keima.inference.backend import TorchBackend
from keima.inference.onnx_backend import OnnxBackend, deviation
from keima.systems.files.onnx_file import any_size, write_onnx
from keima.systems.layers import quantized
from keima.systems.network import Network, Quantization
from keima.systems.registry import create, find
from tests.systems.katago.katago_tiny import tiny
from tests.systems.laws import answers, lively, random_inputs

REFERENCE = (
    "g170-b6c96-s175395328-d26788732.bin.gz",
    "katago-random-meta.bin.gz",
    "katago-random-nbt.bin.gz",
    "lc0-random-se-mlh.pb.gz",
)


def small() -> Network:
    network = keima.create("alphago-zero", blocks=1, channels=4, board_size=5).eval()
    for name, buffer in network.named_buffers():
        if name.endswith("num_batches_tracked"):
            buffer.fill_(3)
    return network


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Network, Path]:
    torch.manual_seed(0)
    network, path = small(), tmp_path_factory.mktemp("onnx") / "small.onnx"
    keima.save(network, path)
    return network, path


def changed(path: Path, target: Path, change: str) -> Path:
    model = onnx.load(path)
    if change == "foreign":
        del model.metadata_props[:]
    elif change == "elsewhere":
        tensor = model.graph.initializer[0]
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="/etc/passwd")
    elif change == "missing":
        for node in model.graph.node:
            node.input[:] = [name.replace("policy_head.linear.bias", "x") for name in node.input]
        next(t for t in model.graph.initializer if t.name == "policy_head.linear.bias").name = "x"
    elif change == "later":
        next(each for each in model.metadata_props if each.key == "keima.version").value = "99"
    elif change == "not finite":
        tensor = next(t for t in model.graph.initializer if t.name == "policy_head.linear.bias")
        array = numpy_helper.to_array(tensor).copy()
        array[0] = np.nan
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    elif change == "outputs":
        model.graph.output[0].name = "other"
        for node in model.graph.node:
            node.output[:] = ["other" if name == "policy" else name for name in node.output]
    elif change == "operator":
        model.graph.node[0].op_type = "Conv9"
    target.write_bytes(model.SerializeToString())
    return target


def test_a_file_opens_again_as_the_same_network(written: tuple[Network, Path], tmp_path: Path) -> None:
    network, path = written
    again = keima.load(path)
    assert type(again) is type(network)
    assert again.state_dict().keys() == network.state_dict().keys()
    assert all(torch.equal(tensor, network.state_dict()[name]) for name, tensor in again.state_dict().items())
    keima.save(network, tmp_path / "one.safetensors")
    keima.save(again, tmp_path / "two.safetensors")
    one, two = (keima.load(tmp_path / name) for name in ("one.safetensors", "two.safetensors"))
    assert one.config == two.config


def test_metadata_say_what_it_is(written: tuple[Network, Path]) -> None:
    model = onnx.load(written[1])
    onnx.checker.check_model(model, full_check=True)
    metadata = {each.key: each.value for each in model.metadata_props}
    assert (metadata["keima.system"], metadata["keima.encoding"]) == ("alphago-zero", "alphago-zero")
    assert (metadata["keima.version"], metadata["keima.precision"]) == ("1", "f32")
    assert json.loads(metadata["keima.pedigree"])["name"] == "alphago-zero"
    assert json.loads(metadata["keima.network"])["config"]["channels"] == 4
    shapes = {each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim] for each in
              (*model.graph.input, *model.graph.output)}  # fmt: skip
    assert shapes == {"planes": ["N", 17, 5, 5], "policy": ["N", 26], "value": ["N"]}


def test_onnx_runtime_and_openvino_answer_as_pytorch(written: tuple[Network, Path]) -> None:
    network, path = written
    planes = torch.rand(3, 17, 5, 5)
    with torch.no_grad():
        wanted = network(planes)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert not network.training
    others = (session.run(["policy", "value"], {"planes": planes.numpy()}), list(compiled(planes.numpy()).values()))
    for policy, value in others:
        assert np.abs(policy - wanted.policy.numpy()).max() <= 1e-5 * np.abs(policy).max()
        assert np.abs(value - wanted.value.numpy()).max() <= 1e-5


def test_the_backend_runs_the_files_own_graph(written: tuple[Network, Path], tmp_path: Path) -> None:
    """A bias added to the graph alone is seen by the backend onnx, and by no other; weights trained since are too."""
    model = onnx.load(written[1])
    name = model.graph.output[1].name
    for node in model.graph.node:
        node.output[:] = ["before" if each == name else each for each in node.output]
    model.graph.initializer.append(numpy_helper.from_array(np.float32([0.25]), "constant/more"))
    model.graph.node.append(onnx.helper.make_node("Add", ["before", "constant/more"], [name]))
    path = tmp_path / "more.onnx"
    onnx.save(model, path)
    network = keima.load(path)
    batch = {"planes": np.ones((1, 17, 5, 5), np.float32)}

    def values() -> list[float]:
        backends = TorchBackend(network, "f32", 1), OnnxBackend(network, "f32", 1, 1)
        return [float(backend.submit(batch).result()["value"][0]) for backend in backends]

    plain, ours = values()
    assert ours == pytest.approx(plain + 0.25)
    with torch.no_grad():
        network.value_head.linear2.bias.add_(0.5)
    plain, ours = values()
    assert ours == pytest.approx(plain)


def test_a_position_answers_the_same_alone_and_among_others(written: tuple[Network, Path]) -> None:
    positions = [keima.go.Position.start(size=5).play(move) for move in ("A1", "B2", "C3", "D4", "E5", "A5", "C1")]
    evaluator = keima.Evaluator(keima.load(written[1]), backend="onnx", batch_size=4)
    assert (evaluator.backend, evaluator.precision) == ("onnx", "f32")
    assert [evaluator([position])[0].to_json() for position in positions] == [e.to_json() for e in evaluator(positions)]


def test_half_precision(tmp_path: Path) -> None:
    network = keima.compress.fold(small())
    write_onnx(network, tmp_path / "half.onnx", "f16")
    half = keima.load(tmp_path / "half.onnx")
    assert half.onnx is not None
    assert keima.Evaluator(half, backend="onnx").precision == "f16"
    assert 1e-6 < deviation(network, half.onnx) < 5e-3
    with pytest.raises(BadRequest, match="f32 or as the network's ONNX file"):
        keima.Evaluator(half, backend="onnx", precision="bf16")
    with pytest.raises(BadRequest, match="backend onnx's"):
        keima.Evaluator(half, backend="openvino", precision="f16")


def in_int8(network: Network) -> Network:
    """Quantized, with the largest weights that there may be in the first of its layers."""
    found = quantize(network, [random_inputs(network, 8, seed=number) for number in range(3)])
    assert found.quantization is not None
    layers = dict(found.quantization.layers)
    first = next(iter(layers))
    weight = layers[first]["weight"].clone()
    weight[0], weight[1], weight[2, 0::2], weight[2, 1::2] = 64, -64, 127, 1
    layers[first] = {**layers[first], "weight": weight}
    found.quantization = Quantization(layers, found.quantization.weights)
    return found


@pytest.mark.parametrize("name", ["v8-residual", "maia-6x64"])
def test_int8(name: str, tmp_path: Path) -> None:
    """Exactly the quantized layers stand between QuantizeLinear and DequantizeLinear, and what runs them agrees."""
    torch.manual_seed(0)
    network = in_int8(tiny(name) if name.startswith("v8") else lively(create(name, **find(name).small)).eval())
    assert network.quantization is not None
    path = tmp_path / "whole.onnx"
    write_onnx(network, path, "int8")
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    made = {output: node for node in model.graph.node for output in node.output}
    weights = {made[node.input[1]].input[0] for node in model.graph.node
               if node.op_type == "Conv" and node.input[1] in made}  # fmt: skip
    assert weights == {f"int8/{layer}.weight" for layer in network.quantization.layers}
    kinds = [node.op_type for node in model.graph.node]
    assert (kinds.count("QuantizeLinear"), kinds.count("DequantizeLinear")) == (len(weights), 2 * len(weights))

    again = keima.load(path)
    assert again.quantization is not None
    for layer, tensors in network.quantization.layers.items():
        assert all(torch.equal(again.quantization.layers[layer][part], tensor) for part, tensor in tensors.items())
    for shape in ((9, 9), (13, 7)) if any_size(network) else (network.encoding.board,):
        inputs = random_inputs(network, 4, seed=50)
        inputs["planes"] = inputs["planes"][:, :, : shape[0], : shape[1]].contiguous()
        exact = answers(quantized(network), inputs)
        assert all(np.array_equal(exact[each], found) for each, found in answers(quantized(again), inputs).items())
        feeds = {each: inputs[each].numpy() for each in network.input_names}
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        for runs in (session.run(list(network.output_names), feeds), list(compiled(feeds).values())):
            for each, found in zip(network.output_names, runs, strict=True):
                largest = max(1.0, np.abs(exact[each]).max())
                assert np.abs(found - exact[each]).mean() <= 2e-3 * largest  # between two steps either will do
                assert np.abs(found - exact[each]).max() <= 0.05 * largest
        plain = answers(network, inputs)
        assert max(np.abs(plain[each] - exact[each]).max() / np.abs(plain[each]).max() for each in exact) > 0.05


def test_int8_by_the_backend(tmp_path: Path) -> None:
    plain = small()
    with pytest.raises(BadRequest, match="keima compress quantize makes them"):
        write_onnx(plain, tmp_path / "none.onnx", "int8")
    network = in_int8(plain)
    write_onnx(network, tmp_path / "whole.onnx", "int8")
    again = keima.load(tmp_path / "whole.onnx")
    inputs = {"planes": np.random.default_rng(0).integers(0, 2, (3, 17, 5, 5)).astype(np.float32)}
    by_file, drawn = (OnnxBackend(each, precision, 3, 1) for each, precision in ((again, "auto"), (network, "int8")))
    assert by_file.precision == drawn.precision == "int8"
    whole, same = by_file.submit(inputs).result(), drawn.submit(inputs).result()
    assert all(np.array_equal(whole[name], same[name]) for name in whole)
    assert keima.Evaluator(again, backend="onnx").precision == "int8"
    assert keima.Evaluator(network, backend="onnx").precision == "f32"
    model = onnx.load(tmp_path / "whole.onnx")
    tensor = next(each for each in model.graph.initializer if each.data_type == onnx.TensorProto.INT8)
    tensor.CopyFrom(numpy_helper.from_array(np.full(tuple(tensor.dims), -128, np.int8), tensor.name))
    onnx.save(model, tmp_path / "beyond.onnx")
    with pytest.raises(BadWeights, match="beyond ±127"):
        keima.load(tmp_path / "beyond.onnx")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("foreign", UnsupportedNetwork, "an ONNX file of another program"),
        ("elsewhere", UnsupportedNetwork, "keeps its numbers in another file"),
        ("missing", BadWeights, "1 tensors are missing, the first 'policy_head.linear.bias'"),
        ("later", UnsupportedNetwork, "version '99' of keima's format"),
        ("not finite", BadWeights, "policy_head.linear.bias: a number is not finite"),
        ("outputs", BadWeights, "the graph has other, value where the network has policy, value"),
        ("operator", BadWeights, "not a valid ONNX model"),
    ],
)
def test_files_that_are_not_ours_are_refused(
    written: tuple[Network, Path], tmp_path: Path, change: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        keima.load(changed(written[1], tmp_path / f"{change}.onnx", change))
    assert str(tmp_path) in str(caught.value)


def test_a_file_cut_short_is_refused(written: tuple[Network, Path], tmp_path: Path) -> None:
    data = written[1].read_bytes()
    for size in (1, 5, 100, len(data) // 2, len(data) - 10):
        (tmp_path / "cut.onnx").write_bytes(data[:size])
        with pytest.raises((BadWeights, UnsupportedNetwork)):
            keima.load(tmp_path / "cut.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_reference_networks_within_1e_5_of_pytorch(name: str, reference: Path, tmp_path: Path) -> None:
    network = keima.load(reference / "nets" / name)
    keima.save(network, tmp_path / "net.onnx")
    again = keima.load(tmp_path / "net.onnx")
    assert all(torch.equal(tensor, network.state_dict()[each]) for each, tensor in again.state_dict().items())
    assert again.onnx is not None
    assert any_size(network) == name.startswith(("g170", "katago"))
    assert deviation(network, again.onnx) <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE[1::2])
def test_reference_networks_in_int8(name: str, reference: Path, tmp_path: Path) -> None:
    network = keima.load(reference / "nets" / name)
    found = quantize(network, [random_inputs(network, 4, seed=number) for number in range(2)])
    write_onnx(found, tmp_path / "net.onnx", "int8")
    again = keima.load(tmp_path / "net.onnx")
    assert again.onnx is not None
    assert deviation(found, again.onnx) <= 0.05  # what lies between two steps may be rounded to either
