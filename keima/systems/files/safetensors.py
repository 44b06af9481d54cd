"""keima's own files: any registered network, as safetensors with its configuration and pedigree in the header.

The layout is safetensors' (https://github.com/huggingface/safetensors): 8 bytes little-endian header length, a JSON
header naming each tensor's type, shape and place, then the tensors. Nothing in it can be executed. The header's
`__metadata__` holds three strings:

    keima.version    "1"
    keima.network    JSON: {"kind": a name of `keima.systems.registry.list_kinds`, "config": its configuration, and
                     for a network from `keima.compress.fold` "folded": norm's name → convolution that took it over}
    keima.pedigree   JSON: the fields of `Pedigree`

A file must hold exactly the tensors of the module's `state_dict`, each of its shape and type, or float16 or bfloat16 in
place of float32; and may hold, as `int8/NAME.*`, what its convolutions compute with in int8 (`keima.systems.layers`).
For a network in another format these stand in a file beside it, NETWORK.int8, of the same layout, gzipped. Its
metadata holds the version, `keima.weights`, the digest of the weights that they belong to, and `keima.int8` "changes":
each weight is what must be added, modulo 256, to NETWORK's rounded one (without that string it is whole).
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.plain import Data, Fields
from keima.systems.files.contents import FilePath, Format, atomic_write, read_bytes
from keima.systems.files.int8 import is_packed, pack, pack_changes, unpack
from keima.systems.layers import digest
from keima.systems.network import Network, Pedigree, Quantization
from keima.systems.registry import config_to_json, example_inputs, from_config, kind_of

VERSION = "1"
_LAYOUT_MAX_HEADER = 100_000_000  # safetensors' own limit on the header
_MAX_TENSORS = 16_384
_MAX_HEADER = 256 * _MAX_TENSORS  # twice what they need; parsed, JSON can take 30 times its bytes of memory
_MAX_SIDE = 19


def looks_like_safetensors(data: bytes) -> bool:
    """Is this the beginning of a safetensors file: a header's length, then the header, a JSON object?"""
    return len(data) > 9 and 2 <= int.from_bytes(data[:8], "little") <= _LAYOUT_MAX_HEADER and data[8:9] == b"{"


def write_safetensors(
    network: Network, path: FilePath, state: Mapping[str, Tensor] | None = None, *, half: bool = False
) -> None:
    """Write any registered network, or `state` (its running average) in place of its tensors, whole or not at all.

    `half`: weights in float16; what has one number a channel, as norms have, stays as it is.

    Raises:
        UnsupportedNetwork: the network's class is not registered.
        BadWeights: the file cannot be written, or a weight is beyond float16.
    """
    weights = {**network.state_dict(), **pack(network)} if state is None else state
    if half:
        with blaming(path):
            weights = {name: _halved(name, tensor) for name, tensor in weights.items()}
    atomic_write(path, _bytes(weights, to_metadata(network)))


def _halved(name: str, tensor: Tensor) -> Tensor:
    if tensor.ndim < 2 or tensor.dtype != torch.float32:
        return tensor
    halved = tensor.half()
    if not halved.isfinite().all():
        raise BadWeights("a weight is beyond float16", place=name)
    return halved


def _bytes(tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> bytes:
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    return _in_order(save_tensors(copies, metadata))


def sidecar(path: FilePath) -> str:
    """Where the int8 numbers of a network file of another format stand."""
    return f"{os.fspath(path)}.int8"


def write_sidecar(network: Network, path: FilePath, read: Network) -> None:
    """Write the int8 numbers of a network, if it has any, beside its file, `path`, which reads as the network `read`: a
    format may hold weights less precisely. Raises BadWeights where they cannot be written."""
    if numbers := pack_changes(network, read):
        metadata = {"keima.version": VERSION, "keima.weights": digest(read), "keima.int8": "changes"}
        atomic_write(sidecar(path), _bytes(numbers, metadata), gzipped=True)


def read_sidecar(network: Network, path: FilePath) -> Quantization | None:
    """The int8 numbers beside the file, `path`, that the network was read from; None where there are none.

    Raises:
        BadWeights: a file that is cut short or corrupt, or that belongs to other weights.
    """
    if not os.path.exists(sidecar(path)):
        return None
    with blaming(sidecar(path)):
        data = read_bytes(sidecar(path))
        metadata = _header(data)
        if metadata.get("keima.weights") != digest(network):
            raise BadWeights(f"the int8 numbers of another network than {os.path.basename(path)}; quantize it again")
        return unpack(network, load_tensors(data), changes=metadata.get("keima.int8") == "changes")


def to_metadata(network: Network) -> dict[str, str]:
    """What a file of keima's says of a network beside its tensors; raises UnsupportedNetwork for an unknown class."""
    contents = {"kind": kind_of(network).name, "config": config_to_json(network)}
    if network.folded:
        contents["folded"] = dict(network.folded)
    return {
        "keima.version": VERSION,
        "keima.network": json.dumps(contents),
        "keima.pedigree": json.dumps({**asdict(network.pedigree), "details": dict(network.pedigree.details)}),
    }


def _in_order(data: bytes) -> bytes:
    """The same file with its metadata sorted, which safetensors writes in any order: bytes follow from the network."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    ordered = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    ordered += b" " * (-len(ordered) % 8)
    return len(ordered).to_bytes(8, "little") + ordered + data[8 + length :]


def read_safetensors(path: FilePath) -> Network:
    """The network that `write_safetensors` wrote, in evaluation mode; a fresh network's origin becomes the file.

    Raises:
        BadWeights: a file that is cut short or corrupt, or whose tensors are not exactly the network's.
        UnsupportedNetwork: a safetensors file of another program, of a later version, or of an unknown kind.
    """
    with blaming(path) as source:
        data = read_bytes(path)
        metadata = checked(_header(data), "a safetensors file")
        tensors = load_tensors(data)
        network = build(metadata, {name: whole(each) for name, each in tensors.items() if not is_packed(name)}, source)
        if packed := {name: each for name, each in tensors.items() if is_packed(name)}:
            network.quantization = unpack(network, packed)
        return network


def whole(tensor: Tensor) -> Tensor:
    """A file's tensor, float32 where it is there in half as many bits."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


@contextmanager
def blaming(path: FilePath) -> Iterator[str]:
    """The file's name; errors while it is read carry it, whatever raises them."""
    source = os.fspath(path)
    try:
        yield source
    except KeimaError as error:
        raise error.at(source=source) from error
    except Exception as error:  # whatever safetensors, or a network of sizes that cannot be, may raise
        raise BadWeights(f"header and tensors make no network: {error}", source=source) from error


SAFETENSORS = Format("keima's own files (.safetensors)", looks_like_safetensors, read_safetensors, write_safetensors)


def build(metadata: Mapping[str, str], tensors: Mapping[str, Tensor], source: str) -> Network:
    """The network that a file's metadata and tensors make, in evaluation mode; raises as `read_safetensors`.

    It is made without memory for its weights, and once the file's tensors are known to be its own, evaluated once. (To
    compute shapes alone, PyTorch loads its compiler, which takes seconds.)
    """
    contents = parse_json(metadata["keima.network"], "keima.network")
    kind, config, folded = contents.get("kind"), contents.get("config"), contents.get("folded", {})
    if not isinstance(kind, str) or not isinstance(config, dict) or not isinstance(folded, dict):
        raise BadWeights("no kind and configuration", place="keima.network")
    _check_counts(config, tensors)
    with warnings.catch_warnings(), torch.device("meta"), torch.no_grad():
        warnings.simplefilter("ignore")
        network = _without_norms(from_config(kind, config), folded).eval()
        _check(network, tensors)
    network.load_state_dict(tensors, assign=True)
    with torch.no_grad():
        network(**example_inputs(network))
    network.pedigree = _pedigree(metadata, source)
    return network.requires_grad_(True)


def _header(data: bytes) -> Data:
    """The header's `__metadata__`."""
    if not looks_like_safetensors(data):
        raise BadWeights("not a safetensors file, or cut short within its first bytes")
    length = int.from_bytes(data[:8], "little")
    if length > _MAX_HEADER:
        raise BadWeights(f"a header of {length:,} bytes; keima reads up to {_MAX_HEADER:,}")
    if len(data) < 8 + length:
        raise BadWeights(f"the header should have {length:,} bytes; the file ends before")
    metadata = parse_json(data[8 : 8 + length], "header").get("__metadata__")
    return metadata if isinstance(metadata, dict) else {}


def checked(metadata: object, what: str) -> dict[str, str]:
    """A file's metadata, after checking that it is keima's and of this version."""
    if not isinstance(metadata, dict) or not isinstance(metadata.get("keima.network"), str):
        message = f"{what} of another program: its header does not say which network it holds"
        raise UnsupportedNetwork(message)
    if metadata.get("keima.version") != VERSION:
        found = str(metadata.get("keima.version"))[:20]
        raise UnsupportedNetwork(f"version {found!r} of keima's format; this keima reads {VERSION!r}")
    return metadata


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def parse_json(text: str | bytes, place: str) -> Data:
    """A JSON object."""
    try:
        parsed = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadWeights(f"not JSON: {error}", place=place) from error
    if not isinstance(parsed, dict):
        raise BadWeights(f"a JSON {type(parsed).__name__} where an object should be", place=place)
    return parsed


def _check_counts(config: Fields, tensors: Mapping[str, Tensor]) -> None:
    """Refuse what would take long to find wrong."""
    if len(tensors) > _MAX_TENSORS:
        raise BadWeights(f"{len(tensors):,} tensors; keima reads up to {_MAX_TENSORS:,}")
    for name in ("blocks", "layers"):
        count = config.get(name)
        if isinstance(count, int) and count > len(tensors):
            raise BadWeights(f"{count:,} {name} in a file of {len(tensors):,} tensors", place="keima.network")


def _without_norms(network: Network, folded: Mapping[str, str]) -> Network:
    """The network with the structure that folding left: no norm there, a bias in its convolution."""
    for norm_name, convolution_name in folded.items():
        norm, convolution = network.get_submodule(norm_name), network.get_submodule(convolution_name)
        if not isinstance(norm, (nn.BatchNorm2d, nn.Identity)) or not isinstance(convolution, nn.Conv2d):
            message = f"folded: {norm_name!r} and {convolution_name!r} are not a norm and a convolution"
            raise BadWeights(message, place="keima.network")
        network.set_submodule(norm_name, nn.Identity())
        if convolution.bias is None:
            convolution.bias = nn.Parameter(convolution.weight.new_zeros(convolution.out_channels))
    if folded:
        network.folded = dict(folded)
    return network


def _check(network: Network, found: Mapping[str, Tensor]) -> None:
    """The file's tensors are exactly the network's: names, shapes, types; and all finite."""
    if max(network.encoding.board) > _MAX_SIDE:
        raise BadWeights(f"a network for boards larger than {_MAX_SIDE}×{_MAX_SIDE}", place="keima.network")
    expected = network.state_dict()
    if missing := sorted(set(expected) - set(found)):
        raise BadWeights(f"{len(missing)} tensors are missing, the first {missing[0]!r}")
    if extra := sorted(set(found) - set(expected)):
        raise BadWeights(f"{len(extra)} tensors do not belong there, the first {extra[0]!r}")
    for name, wanted in expected.items():
        tensor = found[name]
        if tensor.shape != wanted.shape or tensor.dtype != wanted.dtype:
            raise BadWeights(f"{_shown(tensor)}, expected {_shown(wanted)}", place=name)
        if tensor.is_floating_point() and not math.isfinite(float(tensor.sum())) and not tensor.isfinite().all():
            raise BadWeights("a number is not finite", place=name)
        if name.endswith("running_var") and (tensor < 0).any():
            raise BadWeights("a negative variance", place=name)


def _shown(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _pedigree(metadata: Mapping[str, str], source: str) -> Pedigree:
    """The pedigree as written; a fresh network now comes from this file."""
    data = parse_json(metadata.get("keima.pedigree", "{}"), "keima.pedigree")
    details = data.pop("details", {})
    known = {each.name for each in fields(Pedigree)} - {"details"}
    texts = isinstance(details, dict) and all(isinstance(text, str) for text in (*data.values(), *details.values()))
    if not texts or set(data) != known:
        raise BadWeights(f"should hold {', '.join(sorted(known))} as text", place="keima.pedigree")
    if data["origin"] == "created":
        data["origin"] = source
    return Pedigree(**data, details=details)
