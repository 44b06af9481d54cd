"""Lc0's files: the original engine's answers reached, written files the same to the bit, everything broken refused.

`tests/data/lc0-random-*.pb.gz` hold small networks with random weights, written by `write_lc0`, and
`lc0-random-answers.npz` what lc0 v0.33-dev (BLAS backend, through its Python bindings) answers with those files on
two random inputs: [2, 112] masks (bit i is square i, a1 = 0) and values.
"""

from __future__ import annotations

import contextlib
import gzip
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.systems.lc0 import file_schema as schema
from keima.systems.lc0.attention import AttentionPolicyConfig, EncoderConfig, SmolgenConfig
from keima.systems.lc0.file import format_lc0, looks_like_lc0, parse_lc0, read_lc0, write_lc0
from keima.systems.lc0.file_layers import find, leaves, make
from keima.systems.lc0.file_params import Stored, decode, encode
from keima.systems.lc0.inputs import INPUT_FORMATS
from keima.systems.lc0.network import Lc0Config, Lc0Network
from keima.systems.lc0.protobuf import Message, parse, serialise
from keima.systems.lc0.transformer import Lc0Transformer, Lc0TransformerConfig, TokenHeadConfig
from keima.systems.network import Heads

DATA = Path(__file__).parents[2] / "data"
ANSWERED = [
    ("mish", "vanilla", "winner"),
    ("attention-policy", "vanilla", "winner"),
    ("transformer-map", "vanilla", "winner"),
    ("transformer-dense", "vanilla", "winner"),
    ("transformer-dense", "optimistic", "q"),
    ("transformer-dense", "soft", "st"),
    ("transformer-dense", "opponent", "winner"),
]
REFERENCE_NETS = [
    "maia-1100",
    "maia-1500",
    "maia-1900",
    "lc0-random-classical",
    "lc0-random-se-mlh",
    "lc0-random-canonical",
]
SMALL_NETS = sorted({name for name, _, _ in ANSWERED})
TINY: dict[str, Any] = {
    "blocks": 1,
    "channels": 2,
    "se_channels": 1,
    "policy_channels": 73,
    "value_channels": 1,
    "value_hidden": 2,
    "moves_left_channels": 1,
    "moves_left_hidden": 2,
}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def planes_of(masks: Any, values: Any) -> torch.Tensor:
    """[N, 112] bit masks and values → planes [N, 112, 8, 8]."""
    bits = np.asarray(masks, np.uint64)[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    planes = bits.astype(np.float32) * np.asarray(values, np.float32)[..., None]
    return torch.from_numpy(planes.reshape(*planes.shape[:2], 8, 8))


def answer(network: Lc0Network | Lc0Transformer, planes: torch.Tensor) -> Heads:
    with torch.inference_mode():
        out = network(planes)
    return network.decode({name: getattr(out, name).numpy() for name in network.output_names}, {})


def assert_same_weights(one: torch.nn.Module, other: torch.nn.Module) -> None:
    a, b = one.state_dict(), other.state_dict()
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def tiny(**changes: Any) -> Lc0Network:
    torch.manual_seed(3)
    return Lc0Network(Lc0Config(**{**TINY, **changes})).eval()


def tiny_transformer(**changes: Any) -> Lc0Transformer:
    torch.manual_seed(3)
    encoder = EncoderConfig(4, 4, SmolgenConfig(1, 2, 1))
    shape: dict[str, Any] = {
        "embedding": 4,
        "heads": 2,
        "encoders": (encoder,),
        "policy_heads": {"vanilla": AttentionPolicyConfig(4, 2)},
        "value_heads": {"winner": TokenHeadConfig(1, 2, 3)},
        "moves_left": TokenHeadConfig(1, 2, 1),
    }
    return Lc0Transformer(Lc0TransformerConfig(**{**shape, **changes})).eval()


def net_of(network: Lc0Network | Lc0Transformer) -> Message:
    """What the writer makes of a network, as a message to be damaged."""
    return parse(format_lc0(network), schema.NET)


# --- The engine's own answers ------------------------------------------------------------------------------------


@pytest.mark.reference
@pytest.mark.parametrize("collection", ["lc0-maia", "lc0-random"])
def test_golden_answers(
    reference: Path, golden: Callable[[str], list[dict[str, Any]]], collection: str, tmp_path: Path
) -> None:
    """Logits of all legal moves, q, d and m within 1e-4 of lc0's, read from its file and from our copy of it."""
    by_net: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in golden(collection):
        by_net[line["net"]].append(line)
    for name, lines in by_net.items():
        network = read_lc0(reference / "nets" / name)
        write_lc0(network, tmp_path / name)
        assert_golden(network, lines)
        assert_golden(read_lc0(tmp_path / name), lines)


def assert_golden(network: Lc0Network | Lc0Transformer, lines: list[dict[str, Any]]) -> None:
    masks, values = np.zeros((len(lines), 112), np.uint64), np.zeros((len(lines), 112), np.float32)
    for row, line in enumerate(lines):
        for plane, (mask, value) in line["planes"].items():
            masks[row, int(plane)], values[row, int(plane)] = int(mask, 16), value
    heads = answer(network, planes_of(masks, values))
    assert heads.wdl is not None
    assert heads.value is not None
    for row, line in enumerate(lines):
        np.testing.assert_allclose(heads.policy[row][line["policy_index"]], line["logits"], atol=1e-4)
        assert heads.value[row] == pytest.approx(line["q"], abs=1e-5)
        assert heads.wdl[row, 1] == pytest.approx(line["d"], abs=1e-5)
        assert heads.wdl[row].sum() == pytest.approx(1, abs=1e-6)
        if heads.moves_left is not None:
            assert heads.moves_left[row] == pytest.approx(line["m"], abs=1e-4)


@pytest.mark.parametrize(("name", "policy", "value"), ANSWERED)
def test_answers_of_lc0(name: str, policy: str, value: str) -> None:
    """Mish, mixed SE, batch norm, attention policies, transformers: all 1858 logits and the rest as lc0 gives them."""
    answers = np.load(DATA / "lc0-random-answers.npz")
    network = read_lc0(DATA / f"lc0-random-{name}.pb.gz")
    if isinstance(network, Lc0Transformer):
        network.select(policy, value)
    heads = answer(network, planes_of(answers["masks"], answers["values"]))
    expected = {field: answers[f"{name}/{policy}/{value}/{field}"] for field in ("policy", "q", "d", "m")}
    assert expected["policy"].std() > 0.1
    np.testing.assert_allclose(heads.policy, expected["policy"], atol=1e-4)
    np.testing.assert_allclose(heads.value, expected["q"], atol=1e-5)
    assert heads.wdl is not None
    np.testing.assert_allclose(heads.wdl[:, 1], expected["d"], atol=1e-5)
    if heads.moves_left is not None:
        np.testing.assert_allclose(heads.moves_left, expected["m"], atol=1e-4)


# --- Round trips -------------------------------------------------------------------------------------------------


@pytest.mark.reference
@pytest.mark.parametrize("name", REFERENCE_NETS)
def test_written_back_byte_for_byte(reference: Path, name: str) -> None:
    """What was read is written as the very same protobuf: LINEAR16 steps, formats, versions, training parameters."""
    original = gzip.decompress((reference / "nets" / f"{name}.pb.gz").read_bytes())
    assert format_lc0(parse_lc0(original)) == original


@pytest.mark.parametrize("name", SMALL_NETS)
@pytest.mark.parametrize("ending", [".pb", ".pb.gz"])
def test_round_trip(name: str, ending: str, tmp_path: Path) -> None:
    """Any network, compressed or not: the same weights, shape, formats and pedigree."""
    network = read_lc0(DATA / f"lc0-random-{name}.pb.gz")
    path = tmp_path / f"copy{ending}"
    write_lc0(network, path)
    assert path.read_bytes()[:2] == (b"\x1f\x8b" if ending == ".pb.gz" else b"\x0d\xc0")
    copy = read_lc0(path)
    assert_same_weights(network, copy)
    assert copy.config == network.config
    assert copy.pedigree.details == network.pedigree.details
    assert copy.pedigree.name == "copy"
    assert len(copy.pedigree.sha256) == 64


@pytest.mark.parametrize(
    ("encoding", "error"), [("linear16", 1e-4), ("float16", 1e-3), ("bfloat16", 8e-3), ("float32", 0)]
)
def test_encodings_of_a_fresh_network(encoding: str, error: float) -> None:
    """Each encoding moves a weight by no more than its own step; once written, the weights stay."""
    network = tiny()
    once = parse_lc0(format_lc0(network, encoding))
    for name, tensor in network.state_dict().items():
        spread = max(1.0, float(tensor.abs().max()))
        assert torch.allclose(tensor, once.state_dict()[name], rtol=0, atol=error * spread), name
    assert_same_weights(once, parse_lc0(format_lc0(once)))


def test_float_encodings_ask_for_their_lc0() -> None:
    """Only lc0 0.33 reads layers that are not LINEAR16; plain files load in older ones."""
    assert parse_lc0(format_lc0(tiny(), "float16")).pedigree.details["min_version"] == "0.33.0"
    assert parse_lc0(format_lc0(tiny())).pedigree.details["min_version"] == "0.21.0"
    assert parse_lc0(format_lc0(tiny(activation="mish"))).pedigree.details["min_version"] == "0.29.0"
    assert parse_lc0(format_lc0(tiny_transformer())).pedigree.details["min_version"] == "0.30.0"


@pytest.mark.parametrize("input_format", INPUT_FORMATS)
def test_input_formats_are_kept(input_format: str) -> None:
    """Every input format of the encoding has its number in the file, and an lc0 that knows it."""
    read = parse_lc0(format_lc0(tiny(input_format=input_format)))
    assert read.config.input_format == input_format
    assert read.pedigree.details["min_version"] >= "0.21.0"


def test_pedigree_survives(tmp_path: Path) -> None:
    """Licence and training parameters are read, kept, and written back."""
    net = net_of(tiny())
    net.values["license"] = "CC0"
    net.make("training_params").values.update(training_steps=42, learning_rate=0.5, lc0_params="--visits=1")
    network = parse_lc0(format_lc0(parse_lc0(serialise(net))))
    assert network.pedigree.licence == "CC0"
    expected = {"training_steps": "42", "learning_rate": "0.5", "lc0_params": "--visits=1"}
    assert expected.items() <= dict(network.pedigree.details).items()


def test_layers_nothing_evaluates_are_kept() -> None:
    """A value head's error layers (lc0 ignores them too) come back as they were, and the pedigree names them."""
    network = read_lc0(DATA / "lc0-random-transformer-dense.pb.gz")
    net = net_of(network)
    extra = encode(np.arange(7, dtype=np.float32), "float32", None)
    make(net.child("weights"), ("value_heads", "st", "ip_val_err_w")).values.update(extra.values)
    read = parse_lc0(serialise(net))
    assert read.pedigree.details["not_evaluated"] == "weights.value_heads.st.ip_val_err_w"
    again = find(net_of(read).child("weights"), ("value_heads", "st", "ip_val_err_w"))
    np.testing.assert_array_equal(decode(again)[0], np.arange(7))
    assert_same_weights(read, network)


def test_changed_weights_are_written() -> None:
    """Remembered LINEAR16 ends give way once training has moved the weights beyond them."""
    network = read_lc0(DATA / "lc0-random-mish.pb.gz")
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3.0)
    copy = parse_lc0(format_lc0(network))
    for name, tensor in network.state_dict().items():
        assert torch.allclose(tensor, copy.state_dict()[name], rtol=0, atol=1e-3 * max(1.0, float(tensor.abs().max())))


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A network that cannot be written (a NaN) does not touch the file that is there."""
    path = tmp_path / "net.pb.gz"
    network = tiny()
    write_lc0(network, path)
    before = path.read_bytes()
    with torch.no_grad():
        network.stem.conv.weight[0, 0, 0, 0] = float("nan")
    with pytest.raises(BadWeights, match=r"stem\.conv\.weight"):
        write_lc0(network, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_writer_refuses_what_the_format_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedNetwork, match="linear16"):
        write_lc0(tiny(), tmp_path / "x.pb", encoding="int8")
    with pytest.raises(UnsupportedNetwork, match="cannot hold"):
        write_lc0(torch.nn.Identity(), tmp_path / "x.pb")  # type: ignore[arg-type]


# --- Numbers -----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(
    steps=st.lists(st.integers(0, 65535), min_size=1, max_size=50),
    low=st.floats(-1e3, 1e3, width=32),
    high=st.floats(-1e3, 1e3, width=32),
)
@example(steps=[0, 65535, 30000], low=1.1754943508222875e-38, high=1.175494490952134e-38)
@example(steps=list(range(50)), low=-1e-38, high=1.175494490952134e-38)
def test_linear16_is_stable(steps: list[int], low: float, high: float) -> None:
    """Whatever LINEAR16 layer a file holds, even with ends no weight reaches: read, written, read, it is the same."""
    layer = Message(schema.LAYER, {"min_val": low, "max_val": high, "params": np.array(steps, "<u2").tobytes()})
    numbers, stored = decode(layer)
    again, _ = decode(encode(numbers, None, stored))
    np.testing.assert_array_equal(again, numbers)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(-60000, 60000, width=16), min_size=1, max_size=20), st.sampled_from(["float16", "float32"]))
def test_float_encodings_are_exact(numbers: list[float], encoding: str) -> None:
    """Numbers an encoding can hold come back unchanged, and are remembered to be kept that way."""
    given_numbers = np.array(numbers, np.float32)
    again, stored = decode(encode(given_numbers, encoding, None))
    np.testing.assert_array_equal(again, given_numbers)
    assert stored == Stored(encoding)


def test_worked_linear16_values() -> None:
    """θ = q / 65535, weight = min · (1 − θ) + max · θ (lc0's weights_adapter.cc)."""
    params = np.array([0, 65535, 32768, 13107], "<u2").tobytes()
    numbers, _ = decode(Message(schema.LAYER, {"min_val": -1.0, "max_val": 3.0, "params": params}))
    np.testing.assert_allclose(numbers, [-1.0, 3.0, 1.0000305, -0.2], atol=1e-6)


def test_bfloat16_rounds_to_even() -> None:
    layer = encode(np.array([1.0, 1.0 + 2**-8, 1.0 + 3 * 2**-8, -2.5], np.float32), "bfloat16", None)
    np.testing.assert_array_equal(decode(layer)[0], [1.0, 1.0, 1.0 + 2**-6, -2.5])


# --- Older files -------------------------------------------------------------------------------------------------


def test_file_without_a_format_is_classical() -> None:
    """The first protobuf files had no network format: lc0 takes them for classical networks."""
    network = tiny(se_channels=0, policy="classical", policy_channels=2, value="classical", moves_left=False)
    net = net_of(network)
    del net.child("format").values["network_format"]
    read = parse_lc0(serialise(net))
    assert isinstance(read, Lc0Network)
    assert (read.config.policy, read.config.value, read.config.input_format) == ("classical", "classical", "classical")


def test_old_se_structure_has_classical_heads() -> None:
    """NETWORK_SE names no head formats; they are classical."""
    network = tiny(policy="classical", policy_channels=2, value="classical", moves_left=False)
    net = net_of(network)
    net.child("format").child("network_format").values.update(network=2, policy=2, value=2)
    assert parse_lc0(serialise(net)).config.policy == "classical"  # type: ignore[union-attr]


def test_old_transformer_has_fixed_activations() -> None:
    """Encoders in an SE file: an early transformer, with squared ReLU and swish whatever the file says."""
    net = net_of(tiny_transformer())
    formats = net.child("format").child("network_format").values
    formats["network"] = 4
    for name in ("ffn_activation", "smolgen_activation", "input_embedding"):
        formats.pop(name, None)
    read = parse_lc0(serialise(net))
    assert isinstance(read, Lc0Transformer)
    assert (read.config.ffn_activation, read.config.smolgen_activation) == ("relu_2", "swish")
    assert read.config.position == "map"


def test_batch_norm_without_scale() -> None:
    """Networks of 2018 have means and variances only: scale 1, shift 0."""
    net = net_of(tiny())
    for name in ("bn_gammas", "bn_betas"):
        del net.child("weights").child("input").values[name]
    read = parse_lc0(serialise(net))
    norm = read.stem.norm  # type: ignore[union-attr]
    assert torch.equal(norm.weight, torch.ones(2))
    assert torch.equal(norm.bias, torch.zeros(2))


# --- Refusals ----------------------------------------------------------------------------------------------------


def test_looks_like_lc0() -> None:
    data = format_lc0(tiny())
    assert looks_like_lc0(data[:4096])
    assert not looks_like_lc0(b"1\n0.1 0.2")
    assert not looks_like_lc0(data[:4])
    assert not looks_like_lc0(b"")


@pytest.mark.parametrize("build", [tiny, tiny_transformer])
def test_truncation_at_every_byte(build: Callable[[], Lc0Network | Lc0Transformer]) -> None:
    """A file cut anywhere is BadWeights, with a message that says where; nothing else ever comes out."""
    data = format_lc0(build())
    for size in [*range(300), *range(300, len(data), 37), len(data) - 1]:
        with pytest.raises(BadWeights) as error:
            parse_lc0(data[:size])
        assert size < 5 or error.value.place, error.value


def test_file_cut_short_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "cut.pb.gz"
    path.write_bytes((DATA / "lc0-random-mish.pb.gz").read_bytes()[:20000])
    with pytest.raises(BadWeights, match=r"cut\.pb\.gz"):
        read_lc0(path)
    with pytest.raises(BadWeights, match="absent"):
        read_lc0(tmp_path / "absent.pb.gz")


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_bytes_are_refused_or_harmless(data: st.DataObject) -> None:
    """Bytes changed anywhere, most of all among the lengths and keys: a network, or an error of our own."""
    damaged = bytearray(_FUZZED[data.draw(st.sampled_from(sorted(_FUZZED)))])
    for _ in range(data.draw(st.integers(1, 4))):
        near = data.draw(st.sampled_from([80, len(damaged) - 1]))
        damaged[data.draw(st.integers(0, near))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(KeimaError):
        assert parse_lc0(bytes(damaged)).input_names == ("planes",)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_missing_and_resized_layers_are_named(data: st.DataObject) -> None:
    """Each layer in turn dropped, emptied or one weight longer: refused by its name, never a crash."""
    name = data.draw(st.sampled_from(sorted(_FUZZED)))
    net = parse(_FUZZED[name], schema.NET)
    paths = [path for path, _ in leaves(net.child("weights"))]
    path = data.draw(st.sampled_from(paths))
    layer = find(net.child("weights"), path)
    params = bytes(layer.get("params"))
    layer.values["params"] = data.draw(st.sampled_from([b"", params + b"\0\0", params[:-2], params + b"\0"]))
    optional = path[-1] in ("biases", "bn_gammas", "bn_betas", "ip_mult_gate", "ip_add_gate", "bn_means")
    if not layer.get("params") and optional:
        return  # absence has a meaning of its own
    with pytest.raises(BadWeights, match="weights"):
        parse_lc0(serialise(net))


_FUZZED = {
    "residual": format_lc0(tiny()),
    "classical": format_lc0(tiny(policy="classical", policy_channels=1, value="classical", se_channels=0)),
    "transformer": format_lc0(tiny_transformer()),
}


def test_wrong_magic_and_old_text() -> None:
    with pytest.raises(BadWeights, match="not an Lc0 network"):
        parse_lc0(b"\x0d\xc1\x01\x00\x00" + format_lc0(tiny())[5:])
    with pytest.raises(BadWeights, match="nothing"):
        parse_lc0(b"")
    with pytest.raises(UnsupportedNetwork, match="text"):
        parse_lc0(b"2\n0.1 0.2\n")


@pytest.mark.parametrize(
    ("field", "number", "found"),
    [
        ("network", 5, "NETWORK_ONNX"),
        ("network", 99, "number 99"),
        ("policy", 7, "number 7"),
        ("value", 3, "VALUE_PARAM"),
        ("moves_left", 2, "number 2"),
        ("input", 77, "number 77"),
        ("default_activation", 4, "number 4"),
        ("ffn_activation", 9, "softmax"),
    ],
)
def test_unknown_formats_are_refused_by_name(field: str, number: int, found: str) -> None:
    """The message says what was found and lists what keima runs."""
    net = net_of(tiny())
    net.child("format").child("network_format").values[field] = number
    with pytest.raises(UnsupportedNetwork, match=rf"{field}.*{found}.*keima runs structures CLASSICAL"):
        parse_lc0(serialise(net))


def test_other_kinds_are_refused_by_name() -> None:
    onnx = net_of(tiny())
    onnx.values["onnx_model"] = b"model"
    with pytest.raises(UnsupportedNetwork, match="ONNX"):
        parse_lc0(serialise(onnx))

    newer = net_of(tiny())
    newer.child("min_version").values["minor"] = 77
    with pytest.raises(UnsupportedNetwork, match=r"0\.77\.0"):
        parse_lc0(serialise(newer))

    unencoded = net_of(tiny())
    unencoded.child("format").values["weights_encoding"] = 0
    with pytest.raises(UnsupportedNetwork, match="LINEAR16"):
        parse_lc0(serialise(unencoded))

    hybrid = net_of(tiny_transformer())
    hybrid.child("weights").make("residual")
    with pytest.raises(UnsupportedNetwork, match="residual tower"):
        parse_lc0(serialise(hybrid))

    relative = net_of(tiny_transformer())
    make(relative.child("weights"), ("encoder", 0, "mha", "rpe_q")).values["params"] = b"\0\0"
    with pytest.raises(UnsupportedNetwork, match="relative positional"):
        parse_lc0(serialise(relative))

    odd = net_of(tiny())
    odd.child("weights").child("input").child("biases").values["encoding"] = 11
    with pytest.raises(UnsupportedNetwork, match="encoding number 11"):
        parse_lc0(serialise(odd))


def test_numbers_that_cannot_be() -> None:
    """Not finite, a negative variance, dimensions of another size: named with the layer."""
    infinite = net_of(tiny())
    infinite.child("weights").child("ip1_val_w").values["max_val"] = float("inf")
    with pytest.raises(BadWeights, match=r"weights\.ip1_val_w: .*not finite"):
        parse_lc0(serialise(infinite))

    negative = net_of(tiny())
    variance = find(negative.child("weights"), ("residual", 0, "conv1", "bn_stddivs"))
    variance.values.update(min_val=-2.0, max_val=-1.0)
    with pytest.raises(BadWeights, match=r"weights\.residual\[0\]\.conv1\.bn_stddivs: .*negative"):
        parse_lc0(serialise(negative))

    shaped = net_of(tiny())
    shaped.child("weights").child("ip1_val_b").values["dims"] = [3, 5]
    with pytest.raises(BadWeights, match="3 × 5"):
        parse_lc0(serialise(shaped))


def test_shapes_that_do_not_go_together() -> None:
    """Attention heads that cannot share a width, smolgens of two sizes, a WDL head with one output."""
    encoders = (EncoderConfig(2, 2), EncoderConfig(2, 2))
    attention = AttentionPolicyConfig(2, 2, encoders, heads=2)
    headed = net_of(tiny(policy="attention", attention_policy=attention))
    headed.child("weights").values["pol_headcount"] = 3
    with pytest.raises(BadWeights, match="3 attention heads cannot share a width of 2"):
        parse_lc0(serialise(headed))

    smolgens = (EncoderConfig(4, 4, SmolgenConfig(1, 2, 1)),) * 2
    mixed = net_of(tiny_transformer(encoders=smolgens))
    inner = find(mixed.child("weights"), ("encoder", 1, "mha", "smolgen"))
    for name in ("dense2_b", "ln2_gammas", "ln2_betas"):
        inner.child(name).values.update(encode(np.zeros(4, np.float32), None, None).values)
    inner.child("dense2_w").values.update(encode(np.zeros(8, np.float32), None, None).values)
    with pytest.raises(BadWeights, match="share one table"):
        parse_lc0(serialise(mixed))

    narrow = net_of(tiny_transformer(value_heads={"winner": TokenHeadConfig(1, 2, 1)}))
    narrow.child("format").child("network_format").values["value"] = 2
    with pytest.raises(BadWeights, match="1 outputs where its format asks for 3"):
        parse_lc0(serialise(narrow))


def test_claims_take_no_memory() -> None:
    """Two thousand empty blocks in four thousand bytes, a layer said to hold 2^60 bytes: refused, not allocated."""
    weights = b"\x12\x00" * 2000
    head = format_lc0(tiny()).split(b"\x52", 1)[0]
    with pytest.raises(BadWeights, match=r"residual\[1024\]"):
        parse_lc0(head + b"\x52" + _varint(len(weights)) + weights)
    with pytest.raises(BadWeights, match="only"):
        parse_lc0(head + b"\x52" + _varint(1 << 60))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def test_unknown_fields_are_skipped_and_told() -> None:
    """A field this reader has never heard of does not stop it, and `show` can say so."""
    data = format_lc0(tiny()) + b"\xa2\x06\x03abc"  # field 100, three bytes
    assert parse_lc0(data).pedigree.details["unknown_fields"] == "100"
