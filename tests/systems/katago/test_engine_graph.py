"""The ONNX files that KataGo runs: its contract (its docs/ONNX_Model_Files.md), and answers under a mask as alone."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest

import keima
from keima.compress.quantize import quantize
from keima.errors import BadRequest
from keima.systems.katago.engine_graph import engine_graph
from keima.systems.layers import quantized
from tests.systems.katago.katago_tiny import tiny
from tests.systems.laws import answers, random_inputs

SIDE = 9

# What KataGo wants of every file, and what of later model versions; it refuses any other name in "katago.".
NAMED = {
    "": "metadataVersion name modelVersion metaEncoderVersion preferPassAliveUnderSuicideRules "
    "preferExcludeTerritoryAdjacentToAtari",
    "num": "InputChannels InputGlobalChannels InputMetaChannels PolicyChannels ValueChannels ScoreValueChannels "
    "OwnershipChannels",
    "build.": "nnXLen nnYLen requireExactNNLen",
    "postProcess.": "tdScoreMultiplier scoreMeanMultiplier scoreStdevMultiplier leadMultiplier varianceTimeMultiplier "
    "shorttermValueErrorMultiplier shorttermScoreErrorMultiplier",
}


def said(model: onnx.ModelProto) -> dict[str, str]:
    own = (each for each in model.metadata_props if each.key.startswith("katago."))
    return {each.key.removeprefix("katago."): each.value for each in own}


@pytest.mark.parametrize(
    "name",
    ["v15-metadata", *(pytest.param(name, marks=pytest.mark.slow) for name in ("v8-residual", "v17-transformer"))],
)
def test_katagos_contract_and_the_answers_of_boards_alone(name: str, tmp_path: Path) -> None:
    network = tiny(name)
    network.pedigree = keima.Pedigree("a/name of 2")
    path = tmp_path / "engine.onnx"
    path.write_bytes(engine_graph(network, SIDE))
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    human, policies = name == "v15-metadata", {"v8-residual": 1, "v15-metadata": 2, "v17-transformer": 4}[name]
    scores = 4 if name == "v8-residual" else 6

    facts = said(model)
    assert sorted(facts) == sorted(group + name for group, names in NAMED.items() for name in names.split())
    assert re.fullmatch("[A-Za-z0-9_-]{1,96}", facts["name"])
    assert (facts["metadataVersion"], facts["modelVersion"]) == ("1", name[1:].split("-")[0])
    assert (facts["build.nnXLen"], facts["build.nnYLen"], facts["build.requireExactNNLen"]) == ("9", "9", "false")
    assert (facts["numInputMetaChannels"], facts["metaEncoderVersion"]) == (("192", "1") if human else ("0", "0"))
    assert float(facts["postProcess.shorttermScoreErrorMultiplier"]) == (30 if name == "v8-residual" else 120.5)
    wanted = {"InputSpatial": (22, SIDE), "InputGlobal": (19, 1), "InputMeta": (192, 1), "InputMask": (1, SIDE),
              "OutputPolicyPass": (policies, 1), "OutputPolicy": (policies, SIDE), "OutputValue": (3, 1),
              "OutputScoreValue": (scores, 1), "OutputOwnership": (1, SIDE)}  # fmt: skip
    ends = [*model.graph.input, *model.graph.output]
    assert [each.name for each in ends] == [each for each in wanted if human or each != "InputMeta"]
    for each in ends:
        channels, side = wanted[each.name]
        found = [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        assert (found, each.type.tensor_type.elem_type) == (["N", channels, side, side], onnx.TensorProto.FLOAT)

    boards = (9, 7, 9)
    inputs = [random_inputs(network, 1, side, seed=number) for number, side in enumerate(boards)]
    feeds = {name: np.zeros((3, n, SIDE, SIDE), np.float32) for name, n in (("InputSpatial", 22), ("InputMask", 1))}
    feeds["InputGlobal"] = np.stack([each["globals"][0].numpy()[:, None, None] for each in inputs])
    if human:
        feeds["InputMeta"] = np.stack([each["metadata"][0].numpy()[:, None, None] for each in inputs])
    for row, (side, each) in enumerate(zip(boards, inputs, strict=True)):
        feeds["InputSpatial"][row, :, :side, :side] = each["planes"][0].numpy()
        feeds["InputMask"][row, :, :side, :side] = 1
    names = [each.name for each in model.graph.output]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for run in (session.run(names, feeds), list(compiled(feeds).values())):
        out = dict(zip(names, run, strict=True))
        for row, (side, each) in enumerate(zip(boards, inputs, strict=True)):
            alone = {key: value[0] for key, value in answers(network, each).items()}
            pairs = [
                (out["OutputPolicyPass"][row, :, 0, 0], alone["policy"][:, -1]),
                (out["OutputPolicy"][row, :, :side, :side].reshape(policies, -1), alone["policy"][:, :-1]),
                (out["OutputValue"][row, :, 0, 0], alone["value"]),
                (out["OutputScoreValue"][row, :, 0, 0], alone["score"]),
                (out["OutputOwnership"][row, 0, :side, :side], alone["ownership"]),
            ]
            for found, right in pairs:
                np.testing.assert_allclose(found, right, rtol=0, atol=2e-5 * max(1.0, np.abs(right).max()))


@pytest.mark.slow
def test_int8(tmp_path: Path) -> None:
    plain = tiny("v8-residual")
    network = quantize(plain, [random_inputs(plain, 8, SIDE, seed=number) for number in range(3)])
    (tmp_path / "engine.onnx").write_bytes(engine_graph(network, SIDE, "int8"))
    inputs = random_inputs(network, 4, SIDE, seed=50)
    exact, rounded = answers(plain, inputs), answers(quantized(network), inputs)
    session = onnxruntime.InferenceSession(tmp_path / "engine.onnx", providers=["CPUExecutionProvider"])
    rows = inputs["globals"].numpy()[:, :, None, None]
    feeds = {
        "InputSpatial": inputs["planes"].numpy(),
        "InputGlobal": rows,
        "InputMask": np.ones((4, 1, 9, 9), np.float32),
    }
    (value,) = session.run(["OutputValue"], feeds)
    assert np.abs(value[:, :, 0, 0] - rounded["value"]).mean() < np.abs(exact["value"] - rounded["value"]).mean() / 4


def test_what_katago_does_not_take_is_refused() -> None:
    with pytest.raises(BadRequest, match="KataGo's are of 2 to 19"):
        engine_graph(tiny("v8-residual"), 20)
    with pytest.raises(BadRequest, match="f32 or int8"):
        engine_graph(tiny("v8-residual"), 9, "f16")
