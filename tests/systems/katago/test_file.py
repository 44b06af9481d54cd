"""KataGo's files: what is written is read back to the bit, and nothing broken is taken for a network."""

from __future__ import annotations

import gzip
import re
import tracemalloc
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.systems.files.contents import read_bytes, sha256_of
from keima.systems.katago.file import decode_katago, encode_katago, looks_like_katago, read_katago, write_katago
from keima.systems.katago.network import KataGoNetwork
from keima.systems.network import Pedigree
from tests.systems.katago.katago_tiny import CONFIGS, tiny

MODERN = (
    "katago-random-meta",
    "katago-random-nbt",
    "katago-random-nbt-fson",
    "katago-random-nbt-v12",
    "katago-random-nbttf",
    "katago-random-res-v16",
    "katago-random-res-v17",
    "b7c96h3tfrs-test5-cnorm",
)
OLD = "g170-b6c96-s175395328-d26788732"

BINARY = {name: encode_katago(tiny(name)) for name in ("v8-residual", "v15-metadata", "v17-transformer")}
TEXT = {name: encode_katago(tiny(name), binary=False) for name in BINARY}
FILES = {"bin": BINARY, "txt": TEXT}


def assert_identical(found, expected):
    assert found.config == expected.config
    found, expected = found.state_dict(), expected.state_dict()
    assert found.keys() == expected.keys()
    for name, weights in expected.items():
        assert torch.equal(found[name], weights), name


# --- There and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [True, False], ids=["bin", "txt"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_architecture_there_and_back(name, binary):
    network = tiny(name)
    back = decode_katago(encode_katago(network, binary))
    assert_identical(back, network)
    assert back.pedigree == Pedigree(name, "network", f"KataGo model version {network.config.version}")
    assert not back.training
    assert all(parameter.requires_grad for parameter in back.parameters())


@pytest.mark.parametrize("name", MODERN)
def test_published_files_come_back_to_the_byte(reference, name):
    path = reference / "nets" / f"{name}.bin.gz"
    assert encode_katago(read_katago(path)) == read_bytes(path)


def test_an_old_file_comes_back_but_for_its_layers_names(reference):
    """g170 named layers otherwise; every number of its 4 MB is in the same place, which KataGo reads by."""
    path = reference / "nets" / f"{OLD}.bin.gz"
    network = read_katago(path)
    old, new = without_names(read_bytes(path)), without_names(encode_katago(network))
    assert old == new
    assert len(old) > 4_000_000


LINE = re.compile(rb"@BIN@|[a-zA-Z][\w./-]*\n|[0-9][0-9.]*\n")


def without_names(data):
    """A binary file without its name lines, found as the lines that begin with a letter outside float blocks."""
    parts = []
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        if data.startswith(b"@BIN@", at):
            while len(data) > end + 1 and not re.match(
                rb"@BIN@|[a-zA-Z][\w./-]*\n|[0-9][0-9.]*\n", data[end + 1 :][:99]
            ):
                end = data.index(b"\n", end + 1)
            parts.append(data[at:end])
        elif not data[at : at + 1].isalpha():
            parts.append(data[at:end])
        at = end + 1
    return b"\n".join(parts)


@pytest.mark.parametrize("ending", [".bin.gz", ".txt.gz", ".bin", ".txt"])
def test_files_of_each_ending(tmp_path, ending):
    network, path = tiny("v14-nested"), tmp_path / f"net{ending}"
    write_katago(network, path)
    back = read_katago(path)
    assert_identical(back, network)
    assert back.pedigree.origin == str(path)
    assert back.pedigree.sha256 == sha256_of(path)
    assert path.read_bytes().startswith(b"\x1f\x8b") == ending.endswith(".gz")
    assert (b"@BIN@" in read_bytes(path)) == (".bin" in ending)


def test_the_name_of_a_file_does_not_matter(tmp_path):
    path = tmp_path / "renamed.txt"
    path.write_bytes(gzip.compress(BINARY["v8-residual"]))
    assert_identical(read_katago(path), tiny("v8-residual"))


def test_writing_twice_gives_the_same_file(tmp_path):
    for name in ("a.bin.gz", "b.bin.gz"):
        write_katago(tiny("v8-residual"), tmp_path / name)
    assert (tmp_path / "a.bin.gz").read_bytes() == (tmp_path / "b.bin.gz").read_bytes()


def test_names_become_such_as_katago_takes():
    network = KataGoNetwork(CONFIGS["v8-residual"], Pedigree("my net: ☗ " + "x" * 200))
    name = encode_katago(network).split(b"\n")[0]
    assert re.fullmatch(rb"my-net-x{1,96}", name)
    assert len(name) <= 96


def test_a_weight_that_is_not_a_number_is_not_written(tmp_path):
    network = tiny("v8-residual")
    with torch.no_grad():
        network.conv.weight[0, 0, 0, 0] = float("nan")
    with pytest.raises(BadWeights, match=r"net\.bin\.gz: conv\.weight: a weight is not a finite number"):
        write_katago(network, tmp_path / "net.bin.gz")
    assert list(tmp_path.iterdir()) == []


def test_an_activation_that_the_version_does_not_know_is_not_written(tmp_path):
    config = CONFIGS["v10-residual"]
    network = KataGoNetwork(replace(config, tip=replace(config.tip, activation="mish")))
    with pytest.raises(UnsupportedNetwork, match="version 10 has no activation but ReLU"):
        write_katago(network, tmp_path / "net.bin.gz")
    assert list(tmp_path.iterdir()) == []


def test_an_ending_that_katago_does_not_know(tmp_path):
    with pytest.raises(UnsupportedNetwork, match=r"ends in \.bin\.gz, \.txt\.gz, \.bin or \.txt"):
        write_katago(tiny("v8-residual"), tmp_path / "net.pt")


def test_text_takes_numbers_as_people_write_them():
    """White space of any kind, signs, exponents, missing digits."""
    text = TEXT["v8-residual"].decode()
    head, rest = text.split("\n96\n", 1) if "\n96\n" in text else text.split("\n", 1)
    assert_identical(decode_katago(f"  {head}\r\n\t{rest}".encode()), tiny("v8-residual"))
    plus = re.sub(r"(?<= )0\.", "+.", text)
    assert plus != text
    assert_identical(decode_katago(plus.encode()), tiny("v8-residual"))


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 7, 18, 99])
def test_other_versions_are_refused_by_number(version):
    data = BINARY["v8-residual"].replace(b"\n8\n", b"\n%d\n" % version, 1)
    message = rf"net\.bin.*KataGo model version {version} is not supported; keima runs versions 8 to 17"
    with pytest.raises(UnsupportedNetwork, match=message):
        decode_katago(data, "net.bin")


STEM = b"\n5\n5\n22\n6\n1\n1\n"
"""Kernel, channels and dilation of the first convolution."""

REPLACEMENTS = [
    ("v8-residual", b"\n22\n", b"\n23\n", BadWeights, "23 input planes, but version 8 has 22"),
    ("v8-residual", b"\n22\n", b"\n22.5\n", BadWeights, "number of input planes, an integer"),
    ("v8-residual", b"\nordinary_block\n", b"\ndilated_block\n", UnsupportedNetwork, "kind of block 'dilated_block'"),
    ("v8-residual", STEM, b"\n5\n5\n22\n6\n2\n2\n", UnsupportedNetwork, "dilated convolution"),
    ("v8-residual", STEM, b"\n5\n3\n22\n6\n1\n1\n", BadWeights, "5×3 kernel"),
    ("v8-residual", STEM, b"\n5\n5\n22\n7\n1\n1\n", BadWeights, "7 output channels, but .* need 6"),
    ("v8-residual", STEM, b"\n5\n5\n-2\n6\n1\n1\n", BadWeights, "found b'-2'"),
    (
        "v8-residual",
        b"\nmodel.linear_global\n",
        b"\n17\n",
        BadWeights,
        "expected the name of a matrix",
    ),
    (
        "v15-metadata",
        b"ACTIVATION_MISH",
        b"ACTIVATION_TANH",
        UnsupportedNetwork,
        "unknown activation",
    ),
    ("v15-metadata", b"\n120.5\n1\n", b"\n120.5\n2\n", UnsupportedNetwork, "metadata encoder version 2"),
    ("v15-metadata", b"\n120.5\n1\n", b"\n-1.5\n1\n", BadWeights, "multiplier 7 of 7, a positive number"),
    ("v15-metadata", b"\n120.5\n1\n", b"\n1e39\n1\n", BadWeights, "multiplier 7 of 7, a positive number"),
    (
        "v15-metadata",
        b"\n120.5\n1\n0\n0\n",
        b"\n120.5\n1\n0\n4\n",
        UnsupportedNetwork,
        "option 1 is 4; .* newer KataGo",
    ),
    ("v17-transformer", b"\nmodel.policy_head\n4\n", b"\nmodel.policy_head\n3\n", BadWeights, "3 policy outputs"),
    (
        "v17-transformer",
        b"\n8\n1\nmodel.blocks.1.norm",
        b"\n8\n0\nmodel.blocks.1.norm",
        UnsupportedNetwork,
        "without a gate",
    ),
]


@pytest.mark.parametrize(("name", "old", "new", "error", "message"), REPLACEMENTS)
def test_what_the_layers_say_is_checked(name, old, new, error, message):
    data = BINARY[name]
    assert old in data
    with pytest.raises(error, match=message) as raised:
        decode_katago(data.replace(old, new, 1), "net.bin")
    assert raised.value.source == "net.bin"
    assert re.search(r"byte [\d,]+$", raised.value.place)


@pytest.mark.parametrize("data", [BINARY["v8-residual"], TEXT["v8-residual"]], ids=["bin", "txt"])
def test_a_size_that_lies_takes_no_memory(data):
    """A convolution that claims 16 million channels in a file of kilobytes."""
    liar = data.replace(b"\n3\n3\n6\n6\n", b"\n3\n3\n6\n16000000\n", 1)
    assert liar != data
    tracemalloc.start()
    with pytest.raises(BadWeights, match=r"says 864,000,000 floats, but .* bytes are left"):
        decode_katago(liar)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * len(data)


def test_more_blocks_than_there_are():
    data = BINARY["v8-residual"].replace(b"\ntrunk\n2\n", b"\ntrunk\n9999999\n", 1)
    with pytest.raises(UnsupportedNetwork, match="kind of block"):
        decode_katago(data)


def test_blocks_without_end():
    """The smallest block there is, ten thousand times."""
    norm = b"n\n1\n1e-20\n0\n0\n0\n1\na\nACTIVATION_RELU\n"
    block = b"ordinary_block\nx\n" + (norm + b"c\n1\n1\n1\n1\n1\n1\n1\n") * 2
    start = b"net\n11\n22\n19\ntrunk\n10000\n1\n1\n1\n1\n1\nc\n1\n1\n22\n1\n1\n1\n" + b"0 " * 22
    with pytest.raises(UnsupportedNetwork, match="more than 1,024 blocks"):
        decode_katago(start + b"\nm\n19\n1\n" + b"0 " * 19 + b"\n" + block * 10_000)


def test_bottlenecks_nested_without_end():
    """The parser recurses; a file must not be able to overflow its stack."""
    layer = b"nested_bottleneck_block\nx\n1\nn\n1\n1e-20\n0\n0\n0\n1\na\nACTIVATION_RELU\nc\n1\n1\n1\n1\n1\n1\n1\n"
    start = (
        b"net\n11\n22\n19\ntrunk\n1\n1\n1\n1\n1\n1\nc\n1\n1\n22\n1\n1\n1\n" + b"0 " * 22 + b"\nm\n19\n1\n" + b"0 " * 19
    )
    with pytest.raises(UnsupportedNetwork, match="more than 8 deep"):
        decode_katago(start + b"\n" + layer * 5000)


def test_bytes_after_the_end():
    with pytest.raises(BadWeights, match=r"after the last layer, byte .*5 bytes that belong to no layer"):
        decode_katago(BINARY["v8-residual"] + b"more!")


@pytest.mark.parametrize("bad", [b"nan", b"inf", b"1e999", b"0x10", b"1_0", b"one"])
def test_text_numbers_that_are_none(bad):
    text = TEXT["v8-residual"]
    place = re.search(rb"[0-9.e-]+ ", text).start()
    with pytest.raises(BadWeights, match=r"not a finite number|expected a number"):
        decode_katago(text[:place] + bad + b" " + text[place:].split(b" ", 1)[1])


def test_a_binary_number_that_is_none():
    data = BINARY["v8-residual"]
    place = data.index(b"@BIN@") + 5
    with pytest.raises(BadWeights, match=r"model\.conv_spatial, byte [\d,]+: weight 2 of 3,300 is not a finite number"):
        decode_katago(data[: place + 8] + b"\0\0\xc0\x7f" + data[place + 12 :])


def test_a_negative_variance():
    data = TEXT["v8-residual"]
    ones = re.search(rb"\n0\n1\n[^\n]+\n", data)
    mean, var = data[ones.end() - 1 :].split(b"\n")[0:2]
    assert mean == b""
    changed = data[: ones.end()] + b"-" + var + data[ones.end() + len(var) :]
    with pytest.raises(BadWeights, match="a negative variance"):
        decode_katago(changed)


def test_two_kinds_of_floats_in_one_file():
    data = BINARY["v8-residual"]
    second = data.index(b"model.linear_global\n19\n6\n") + len(b"model.linear_global\n19\n6\n")
    mixed = data[:second] + b"0.5 " * 114 + b"\n" + data[second + 5 + 4 * 114 + 1 :]
    with pytest.raises(BadWeights, match="binary and text float blocks in one file"):
        decode_katago(mixed)


# --- Fuzz -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(BINARY)), cut=st.floats(0, 1))
def test_a_file_cut_at_any_byte(kind, name, cut):
    """At every byte; even without its last line feed, since the number before it may then be cut."""
    data = FILES[kind][name]
    kept = data[: int(cut * (len(data) - 1))]
    with pytest.raises(BadWeights) as raised:
        decode_katago(kept, "cut.bin")
    assert raised.value.source == "cut.bin"
    assert raised.value.place


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(sorted(BINARY)),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=4),
)
def test_a_file_with_bytes_flipped(kind, name, flips):
    """Either one of keima's errors, or (a weight changed) a network whose weights are all finite."""
    data = bytearray(FILES[kind][name])
    for place, change in flips:
        data[int(place * len(data))] ^= change
    try:
        network = decode_katago(bytes(data))
    except KeimaError:
        return
    assert all(weights.isfinite().all() for weights in network.state_dict().values())


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(BINARY)), which=st.integers(0, 400), size=st.integers(-5, 2**40))
def test_any_integer_of_a_file_may_lie(name, which, size):
    data = TEXT[name]
    integers = list(re.finditer(rb"(?<=\n)[0-9]+(?=\n)", data))
    lie = integers[which % len(integers)]
    try:
        network = decode_katago(data[: lie.start()] + str(size).encode() + data[lie.end() :])
    except KeimaError:
        return
    assert network.config.channels == 6


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=300))
def test_bytes_of_any_kind(data):
    with pytest.raises(KeimaError):
        decode_katago(data)


# --- Telling files apart ----------------------------------------------------------------------------------------------


def test_its_own_files_are_recognised(reference):
    for name in (*MODERN, OLD):
        assert looks_like_katago(read_bytes(reference / "nets" / f"{name}.bin.gz")[:4096]), name
    for data in (*BINARY.values(), *TEXT.values()):
        assert looks_like_katago(data[:4096])
    assert looks_like_katago(b"ancient 3\n22\n14\ntrunk\n")  # to be refused by its version, not as unknown


def test_others_are_not(reference):
    for name in ("maia-1100.pb.gz", "lc0-random-classical.pb.gz", "leela-zero-random-3x32.txt.gz"):
        assert not looks_like_katago(read_bytes(reference / "nets" / name)[:4096]), name
    for data in (b"", b"1\n0.5 0.5\n", b"(;GM[1]SZ[19])", b"net\n8\n", b"\x1f\x8b\x08", b"8 22 19 96 trunk"):
        assert not looks_like_katago(data)
