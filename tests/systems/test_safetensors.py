"""keima's own files: every registered network comes back as it was; anything else is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from keima.compress.fold import fold
from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.systems.files.safetensors import looks_like_safetensors, read_safetensors, write_safetensors
from keima.systems.network import Network, Pedigree
from keima.systems.registry import create, find, list_networks
from tests.systems.laws import answers, lively, random_inputs


def one_of_each_kind() -> list[str]:
    first = {entry.kind: entry.name for entry in reversed(list_networks())}
    return [*first.values(), "katago-b18c384nbt", "katago-b7c96h3tfrs"]


def small(name: str) -> Network:
    torch.manual_seed(0)
    sizes = {"blocks": 1} if name.startswith("katago-b") else {}
    return lively(create(name, **{**find(name).small, **sizes}))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "net.safetensors"
    write_safetensors(small("alphago-zero"), path)
    return path


@pytest.mark.parametrize("name", one_of_each_kind())
def test_a_network_comes_back_with_weights_configuration_and_pedigree(tmp_path, name):
    network = small(name)
    network.pedigree = Pedigree("mine", "there.bin.gz", "some format", "ab" * 32, "MIT", {"steps": "17"})
    path = tmp_path / "net.safetensors"
    write_safetensors(network, path)
    again = read_safetensors(path)
    assert type(again) is type(network)
    assert again.config == network.config
    assert again.pedigree == network.pedigree
    assert again.encoding.planes == network.encoding.planes
    assert not again.training
    expected = network.state_dict()
    found = again.state_dict()
    assert list(found) == list(expected)
    assert all(torch.equal(found[key], expected[key]) for key in expected)
    inputs = random_inputs(network, 1, 7 if name.startswith("katago-b") else None)
    before, after = answers(network, inputs), answers(again, inputs)
    assert all((before[key] == after[key]).all() for key in before)


@pytest.mark.parametrize("name", ["alphago-zero", "katago-guide-b10c128", "lc0-10x128", "katago-b6c96"])
def test_a_folded_network_comes_back_folded(tmp_path, name):
    network = fold(small(name))
    path = tmp_path / "net.safetensors"
    write_safetensors(network, path)
    again = read_safetensors(path)
    assert getattr(again, "folded", None) == getattr(network, "folded", None)
    inputs = random_inputs(network, 1, 7 if name.startswith("katago-b") else None)
    before, after = answers(network, inputs), answers(again, inputs)
    assert all((before[key] == after[key]).all() for key in before)


def test_a_fresh_network_s_origin_becomes_the_file(saved):
    assert read_safetensors(saved).pedigree == Pedigree("alphago-zero", origin=str(saved))


def test_the_file_is_ordinary_safetensors_without_pickle(saved):
    tensors = load(saved.read_bytes())
    assert tensors["stem.convolution.weight"].shape == (8, 17, 3, 3)
    assert b"pickle" not in saved.read_bytes()


def header_of(data: bytes) -> dict:
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


def changed(saved, *, tensors=None, **metadata):
    """The saved file with tensors or metadata replaced."""
    data = saved.read_bytes()
    kept = {**load(data), **(tensors or {})}
    said = {**header_of(data)["__metadata__"], **metadata}
    saved.write_bytes(save({k: v for k, v in kept.items() if v is not None}, {k: v for k, v in said.items() if v}))
    return saved


STEM = "stem.convolution.weight"


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        ({STEM: None}, BadWeights, f"1 tensors are missing, the first '{STEM}'"),
        ({"stem.extra": torch.zeros(1)}, BadWeights, "1 tensors do not belong there, the first 'stem.extra'"),
        ({STEM: torch.zeros(8, 18, 3, 3)}, BadWeights, f"{STEM}: float32 .8, 18, 3, 3., expected float32 .8, 17, 3, 3"),
        ({STEM: torch.zeros(8, 17, 3, 3).double()}, BadWeights, f"{STEM}: float64"),
        ({STEM: torch.full((8, 17, 3, 3), torch.inf).half()}, BadWeights, f"{STEM}: a number is not finite"),
        ({STEM: torch.zeros(8, 18, 3, 3).half()}, BadWeights, f"{STEM}: float32 .8, 18, 3, 3., expected"),
        ({STEM: torch.full((8, 17, 3, 3), torch.nan)}, BadWeights, f"{STEM}: a number is not finite"),
        ({"stem.norm.running_var": torch.full((8,), -1.0)}, BadWeights, "stem.norm.running_var: a negative variance"),
    ],
)
def test_tensors_must_be_exactly_the_network_s(saved, tensors, error, message):
    with pytest.raises(error, match=message):
        read_safetensors(changed(saved, tensors=tensors))


def test_halves_are_read_as_float32(saved):
    weight = read_safetensors(saved).get_parameter(STEM).detach()
    for kind in (torch.float16, torch.bfloat16):
        found = read_safetensors(changed(saved, tensors={STEM: weight.to(kind)})).get_parameter(STEM)
        assert found.dtype == torch.float32
        assert torch.equal(found, weight.to(kind).float())


def test_a_network_is_written_in_halves_its_norms_whole(tmp_path):
    network, path = small("alphago-zero"), tmp_path / "half.safetensors"
    write_safetensors(network, path, half=True)
    kinds = {name: tensor.dtype for name, tensor in load(path.read_bytes()).items()}
    assert kinds[STEM] == torch.float16
    assert kinds["stem.norm.running_var"] == torch.float32
    read = read_safetensors(path)
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(read.state_dict()[name], tensor, rtol=1e-3, atol=1e-6)
    with torch.no_grad():
        network.get_parameter(STEM).fill_(1e6)
    with pytest.raises(BadWeights, match=f"{STEM}: a weight is beyond float16"):
        write_safetensors(network, path, half=True)


def describing(kind: object, config: object, folded: object = None) -> dict[str, str]:
    return {"keima.network": json.dumps({"kind": kind, "config": config, "folded": folded or {}})}


ZERO = {"blocks": 2, "channels": 8, "tower": "residual", "board_size": 9, "value_hidden": 16}


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({"keima.network": ""}, UnsupportedNetwork, "of another program"),
        ({"keima.version": "2"}, UnsupportedNetwork, "version '2' of keima's format"),
        ({"keima.network": "{"}, BadWeights, "keima.network: not JSON"),
        ({"keima.network": "[" * 10**5}, BadWeights, "keima.network: not JSON"),
        ({"keima.network": "[1]"}, BadWeights, "keima.network: a JSON list"),
        (describing(3, {}), BadWeights, "no kind and configuration"),
        (describing("alphago-zero", ZERO, {"stem": "tower"}), BadWeights, "'stem' and 'tower' are not a norm and a"),
        (describing("alphago-zero", ZERO, {"norm": "tower"}), BadWeights, "has no attribute `norm`"),
        (describing("alphago-one", {}), UnsupportedNetwork, "unknown kind 'alphago-one'"),
        (describing("alphago-zero", {**ZERO, "depth": 2}), BadWeights, "not a configuration of a alphago-zero"),
        (describing("alphago-zero", {**ZERO, "tower": "round"}), BadWeights, "unknown tower"),
        (describing("alphago-zero", {**ZERO, "channels": "8"}), BadWeights, "not a configuration"),
        (describing("alphago-zero", {**ZERO, "channels": 10**30}), BadWeights, "not a configuration"),
        (describing("alphago-zero", {**ZERO, "blocks": 10**9}), BadWeights, "1,000,000,000 blocks in a file of"),
        (describing("alphago-zero", {**ZERO, "channels": 10**6}), BadWeights, "expected float32 .*1000000"),
        (describing("katago", {"kind": "NormConfig"}), BadWeights, "not a KataGo configuration"),
        (describing("lc0", {"blocks": -1}), BadWeights, "blocks must be at least 1"),
        (describing("alphago-zero", {**ZERO, "board_size": 9.0}), BadWeights, "board_size is 9.0"),
        (describing("alphago-zero", {**ZERO, "board_size": None}), BadWeights, "board_size is None"),
        (describing("alphago-zero", {**ZERO, "blocks": True}), BadWeights, "blocks is True"),
        (describing("alphago-zero", {**ZERO, "value_hidden": []}), BadWeights, r"value_hidden is \[\]"),
        (
            describing("alphago-policy", {"filters": 1, "layers": 1, "board_size": 10**6}),
            BadWeights,
            "boards larger than 19",
        ),
        (describing("katago", {"kind": []}), BadWeights, "not a KataGo configuration"),
        (describing("lc0", {"blocks": 1, "se_channels": [None]}), BadWeights, "se_channels.0 is None"),
        (describing("lc0", {"blocks": 1, "activation": "sine"}), BadWeights, "unknown activation 'sine'"),
        (describing("lc0", {"blocks": []}), BadWeights, "not a configuration of a lc0 network"),
        ({"keima.network": "NaN"}, BadWeights, "NaN is no number"),
        ({"keima.pedigree": '{"name": 3}'}, BadWeights, "keima.pedigree: should hold format, licence, name"),
    ],
)
def test_the_header_must_describe_a_network_of_the_file_s_size(saved, metadata, error, message):
    with pytest.raises(error, match=message) as caught:
        read_safetensors(changed(saved, **metadata))
    assert caught.value.source == str(saved)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_garbled_file_is_read_or_refused_and_nothing_else(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "net.safetensors"
    write_safetensors(create("alphago-policy", filters=1, layers=1, board_size=2), path)
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, min(start + 50, len(whole)))) if data.draw(st.booleans()) else len(whole)
    path.write_bytes(whole[:start] + data.draw(st.binary(max_size=20)) + whole[stop:])
    try:
        network = read_safetensors(path)
    except KeimaError:
        pass
    else:
        assert all(parameter.isfinite().all() for parameter in network.parameters())


def katago_with(path, change):
    """A file of a KataGo network whose configuration says something else."""
    write_safetensors(small("katago-b6c96"), path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    said = json.loads(header_of(data)["__metadata__"]["keima.network"])
    change(said["config"])
    return changed(path, **{"keima.network": json.dumps(said)}), length


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["tip"].update(activation="sine"), "sine"),
        (lambda c: c["tip"].update(epsilon=-1.0), "tip.epsilon is -1.0"),
        (lambda c: c["tip"].update(kind="NormalConfig"), "not a KataGo configuration"),
        (lambda c: c["blocks"][0].update(kernels=[]), r"blocks.0.kernels is \(\)"),
        (lambda c: c["blocks"][0].update(kernels=[3, 2]), "expected float32|not a katago network"),
        (lambda c: c["blocks"][0].update(first=c["value"]), "blocks.0.first is ValueConfig"),
        (lambda c: c.update(channels="96"), "not a configuration"),
        (lambda c: c.update(policy=None), "not a configuration"),
        (lambda c: c.update(nominal=[1]), r"nominal is \(1,\)"),
        (lambda c: c["multipliers"].update(lead=1e300), "multipliers.lead is 1e"),
    ],
)
def test_nothing_in_a_nested_configuration_is_believed(tmp_path, change, message):
    path, _ = katago_with(tmp_path / "net.safetensors", change)
    with pytest.raises(BadWeights, match=message):
        read_safetensors(path)


@pytest.mark.parametrize("metadata", [[], 3, "text", {"keima.network": 3}, {"keima.version": "1", "keima.network": {}}])
def test_metadata_of_another_type(saved, metadata):
    """safetensors itself refuses some, keima the others."""
    data = saved.read_bytes()
    header = json.dumps({**header_of(data), "__metadata__": metadata}).encode()
    saved.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + int.from_bytes(data[:8], "little") :])
    with pytest.raises((BadWeights, UnsupportedNetwork)):
        read_safetensors(saved)


def test_a_class_that_is_not_registered_is_not_written(tmp_path):
    class Mine(Network):
        pass

    with pytest.raises(UnsupportedNetwork, match="Mine is not registered"):
        write_safetensors(Mine(), tmp_path / "net.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "yes"),
    [
        (b"\x10\0\0\0\0\0\0\0{}", True),
        (b"\x10\0\0\0\0\0\0\0[]", False),
        (b"\xff" * 9, False),
        (b"{", False),
        (b"", False),
    ],
)
def test_safetensors_are_told_by_their_header(data, yes):
    assert looks_like_safetensors(data) is yes


OURS = '{"keima.version":"1","keima.network":"{}"}'


def crafted(tensors: str, metadata: str = OURS, body: bytes = b"") -> bytes:
    """A file whose header says so."""
    header = f'{{"__metadata__":{metadata}{tensors}}}'.encode()
    return len(header).to_bytes(8, "little") + header + body


def one_tensor(shape: list[int], end: int, name: str = "a") -> str:
    return f',"{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{end}]}}'


ROOM = 200 << 20
"""What a child may take for any of the files, beyond what it had before the first."""

READER = f"""if True:
    import resource, sys, keima
    from keima.errors import KeimaError
    from keima.systems.files.safetensors import read_safetensors

    keima.load(sys.argv[1])
    has = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + {ROOM}, resource.RLIM_INFINITY))
    for path in sys.argv[2:]:
        try:
            read_safetensors(path)
        except KeimaError as error:
            print(error)
"""


def test_what_a_header_claims_takes_no_memory(saved, tmp_path):
    said = json.loads(header_of(saved.read_bytes())["__metadata__"]["keima.network"])
    wide = json.dumps({**said, "config": {**said["config"], "channels": 1_000_000}})
    intact = tmp_path / "intact"
    intact.write_bytes(saved.read_bytes())
    files = {
        "not fully covered": crafted(one_tensor([1 << 40], 1 << 42)),
        "overflow": crafted(one_tensor([1 << 62, 1 << 62], 0)),
        "invalid offset": crafted(
            "".join(one_tensor([1 << 20], 1 << 22, f"t{i}") for i in range(999)), body=bytes(1 << 22)
        ),
        "recursion": crafted("", '{"a":' * 500_000),
        "keima reads up to 4,194,304": crafted("", f'{{"a":[{"{}," * 10_000_000}1]}}'),
        "another program": crafted("", f'{{"a":[{"{}," * 1_000_000}1]}}'),
        "expected float32 [1000000": changed(saved, **{"keima.network": wide}).read_bytes(),
    }
    for number, data in enumerate(files.values()):
        (tmp_path / f"{number}").write_bytes(data)
    paths = [str(tmp_path / f"{number}") for number in range(len(files))]
    done = subprocess.run([sys.executable, "-c", READER, intact, *paths], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == len(files), (lines, done.stderr)
    for line, message in zip(lines, files, strict=True):
        assert message in line
