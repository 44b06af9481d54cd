"""Lc0's network files (`.pb.gz`, `.pb`): reading them and writing files that lc0 loads.

Sources: lc0 v0.33, `proto/net.proto` (the format), `src/neural/loader.cc` (magic, versions),
`src/neural/network_legacy.cc` (layers, batch norm). Beside this file: the format's fields (`file_schema.py`), which
layer is which tensor (`file_layers.py`), how numbers are kept (`file_params.py`), how a file tells a network's shape
(`file_shape.py`).

Read: NETWORK_CLASSICAL and NETWORK_SE, with or without head formats; policies classical, convolution and attention;
attention bodies with one head of each kind or several. Refused by name: ONNX models, a residual tower in front of an
attention body (lc0's CPU backend does not run it either), relative positional encodings (lc0 refuses them too).

Layers that lc0 itself does not evaluate (a value head's error estimate, say) are kept and written back as they came.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath

import numpy as np
import torch
from numpy.typing import NDArray

from keima.errors import BadRequest, BadWeights, KeimaError, UnsupportedNetwork
from keima.systems.files.contents import Format, atomic_write, read_bytes, sha256_of
from keima.systems.lc0 import file_schema as schema
from keima.systems.lc0.file_layers import POLICY_FIELDS, Entry, entries, find, leaves, make, place_of, shape_of
from keima.systems.lc0.file_params import ITEM_BYTES, Stored, count, decode, encode
from keima.systems.lc0.inputs import INPUT_FORMATS
from keima.systems.lc0.network import BATCH_NORM_EPSILON, Lc0Base, Lc0Config, Lc0Network
from keima.systems.lc0.protobuf import Message, parse, serialise
from keima.systems.lc0.transformer import Lc0Transformer, Lc0TransformerConfig
from keima.systems.network import Network, Pedigree

NEWEST_VERSION = (0, 33, 0)
"""The newest lc0 whose files this reader knows."""
_MINOR_OF_INPUT = {1: 21, 2: 25, 3: 25, 4: 26, 132: 26, 5: 27, 133: 27}  # input format → the 0.x.0 it came with
_ANY_VERSION = (97, 98, 99)  # loader.cc: files so marked load everywhere


def looks_like_lc0(data: bytes) -> bool:
    """Whether the first bytes of decompressed data begin an Lc0 network: field 1, fixed32, the magic number 0x1C0."""
    return data[:5] == b"\x0d" + schema.MAGIC.to_bytes(4, "little")


def read_lc0(path: str | os.PathLike[str]) -> Lc0Base:
    """Open an Lc0 network file (`.pb.gz` or `.pb`), in evaluation mode.

    `pedigree.details` holds the training parameters and versions of the file.

    Raises:
        BadWeights: not an Lc0 file, cut short or corrupt, or layers that do not fit; the message names the field.
        UnsupportedNetwork: an Lc0 network of a kind keima does not run; the message lists those it does.
    """
    source = os.fspath(path)
    try:
        network = parse_lc0(read_bytes(path))
    except KeimaError as error:
        raise error.at(source=source) from error
    own = network.pedigree
    name = FilePath(source).name.removesuffix(".gz").removesuffix(".pb")
    network.pedigree = Pedigree(name, source, own.format, sha256_of(path), own.licence, own.details)
    return network.eval()


def parse_lc0(data: bytes) -> Lc0Base:
    """The network in the decompressed bytes of a file; raises as `read_lc0`."""
    if data[:2] in (b"1\n", b"2\n"):
        message = "an old text network; lc0 no longer reads these either; use the .pb.gz of the same net"
        raise UnsupportedNetwork(message)
    if not looks_like_lc0(data):
        raise BadWeights(f"not an Lc0 network: it begins with {data[:5].hex(' ') or 'nothing'}, not 0d c0 01 00 00")
    net = parse(data, schema.NET)
    _check_version(net)
    weights = net.child("weights")
    try:
        formats, config, multihead = shape_of(net)
        network = _assemble(config, weights, multihead)
    except BadRequest as error:
        raise BadWeights(error.message, place="weights") from error
    used = {entry.path for entry in entries(network, multihead)}
    unused = {path: serialise(layer) for path, layer in leaves(weights) if path not in used}
    network.file_notes.update(format=formats, version=tuple(net.child("min_version").values), unused=unused)
    network.pedigree = Pedigree(
        name=network.pedigree.name,
        format=f"Lc0 {schema.STRUCTURES[formats['network']]}",
        licence=net.get("license") or "unknown",
        details=_details(net, formats, [place_of(path) for path in unused]),
    )
    return network


def _check_version(net: Message) -> None:
    """What `loader.cc` checks before it looks at the weights."""
    if net.get("onnx_model") is not None:
        raise UnsupportedNetwork(f"the file holds an ONNX model; keima runs {schema.SUPPORTED}", place="onnx_model")
    if "weights" not in net.values:
        raise BadWeights("the file holds no weights", place="weights")
    version = _version(net)
    if version > NEWEST_VERSION and version != _ANY_VERSION:
        needed, known = (".".join(map(str, numbers)) for numbers in (version, NEWEST_VERSION))
        message = f"the file asks for lc0 {needed}; keima knows files up to {known}"
        raise UnsupportedNetwork(message, place="min_version")
    if net.child("format").get("weights_encoding", 0) != 1 and version < (0, 33, 0):
        raise UnsupportedNetwork("the weights are not LINEAR16", place="format.weights_encoding")


def _version(net: Message) -> tuple[int, int, int]:
    asked = net.child("min_version")
    return asked.get("major", 0), asked.get("minor", 0), asked.get("patch", 0)


def _assemble(config: Lc0Config | Lc0TransformerConfig, weights: Message, multihead: bool) -> Lc0Base:
    """Build the network without memory for its weights, then give it the file's, each checked for its size first."""
    with torch.device("meta"):
        network = Lc0Network(config) if isinstance(config, Lc0Config) else Lc0Transformer(config)
    state = network.state_dict()
    stored: dict[str, Stored] = {}
    for entry in entries(network, multihead):
        state[entry.tensor] = torch.from_numpy(_read(weights, entry, state[entry.tensor].shape, stored))
    for name in state:
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(0, dtype=torch.long)
    network.load_state_dict(state, assign=True)
    network.file_notes = {"stored": stored, "multihead": multihead}
    return network


def _read(weights: Message, entry: Entry, shape: torch.Size, stored: dict[str, Stored]) -> NDArray[np.float32]:
    """The numbers of one layer in the tensor's shape; how they were stored goes to `stored` if it matters."""
    place = place_of(entry.path)
    layer = find(weights, entry.path)
    if entry.default is not None and not (layer and len(layer.get("params", b""))):
        return np.full(tuple(shape), entry.default, np.float32)
    if layer is None:
        raise BadWeights(f"this layer is missing (expected {' × '.join(map(str, shape))})", place=place)
    try:
        if count(layer) != shape.numel():
            expected = f"{shape.numel():,} ({' × '.join(map(str, shape))})"
            raise BadWeights(f"{count(layer):,} weights where the network's shape asks for {expected}")
        numbers, remembered = decode(layer)
        if entry.path[-1] == "bn_stddivs" and (numbers + np.float32(BATCH_NORM_EPSILON) <= 0).any():
            raise BadWeights("a batch-norm variance is negative")
    except KeimaError as error:
        raise error.at(place=place) from error
    if remembered is not None:
        stored[entry.tensor] = remembered
    return numbers.reshape(tuple(shape))


def _details(net: Message, formats: dict[str, int], left_out: list[str]) -> dict[str, str]:
    details = {
        "min_version": ".".join(map(str, _version(net))),
        "input": schema.INPUTS[formats.get("input", 1)],
        "policy": schema.POLICIES[formats["policy"]],
        "value": schema.VALUES[formats["value"]],
        "moves_left": schema.MOVES_LEFT[formats.get("moves_left", 0)],
    }
    for name, value in net.child("training_params").values.items():
        details[name] = str(np.float32(value)) if isinstance(value, float) else str(value)
    if left_out:
        details["not_evaluated"] = ", ".join(left_out)
    unknown = sorted(net.unknown | net.child("weights").unknown)
    if unknown:
        details["unknown_fields"] = ", ".join(map(str, unknown))
    return details


def write_lc0(network: Network, path: str | os.PathLike[str], encoding: str | None = None) -> None:
    """Write a network as a file that lc0 loads, whole or not at all.

    Args:
        network: any Lc0 network, read or fresh.
        path: `.pb.gz` (compressed) or `.pb`.
        encoding: "linear16", "float16", "bfloat16" or "float32" for every layer; the last three need lc0 0.33. None
            keeps each layer's own, LINEAR16 for a fresh network. Weights that were read are then given back exactly;
            fresh or trained ones move by at most 1/131070 of their layer's range.

    Raises:
        UnsupportedNetwork: not an Lc0 network, or an unknown encoding.
        BadWeights: a weight is not finite, or the file cannot be written.
    """
    try:
        data = format_lc0(network, encoding)
    except KeimaError as error:
        raise error.at(source=os.fspath(path)) from error
    atomic_write(path, data)


def format_lc0(network: Network, encoding: str | None = None) -> bytes:
    """The decompressed bytes of `write_lc0`'s file; raises as it."""
    if not isinstance(network, Lc0Base):
        found = getattr(network, "system", type(network).__name__)
        raise UnsupportedNetwork(f"an Lc0 file cannot hold a {found} network")
    if encoding is not None and encoding not in ITEM_BYTES:
        raise UnsupportedNetwork(f"unknown encoding {encoding!r}; choose one of {', '.join(ITEM_BYTES)}")
    multihead = _needs_heads(network)
    weights = Message(schema.WEIGHTS)
    plain = _fill(network, weights, multihead, encoding)
    net = Message(schema.NET, {"magic": schema.MAGIC})
    if network.pedigree.licence != "unknown":
        net.values["license"] = network.pedigree.licence
    _write_version(net, network, plain)
    net.make("format").values["weights_encoding"] = 1
    net.child("format").make("network_format").values.update(_formats_of(network, multihead))
    kinds: dict[str, Callable[[str], object]] = {"uint": int, "float": float, "text": str}
    for field in schema.TRAINING.values():
        if field.name in network.pedigree.details:
            text = network.pedigree.details[field.name]
            net.make("training_params").values[field.name] = kinds[field.kind](text)
    net.values["weights"] = weights
    return serialise(net)


def _needs_heads(network: Lc0Base) -> bool:
    """Whether the heads go into head messages: as the file had it, or because there are several."""
    if isinstance(network, Lc0Network):
        return False
    several = len(network.config.policy_heads) > 1 or len(network.config.value_heads) > 1
    return several or bool(network.file_notes.get("multihead"))


def _fill(network: Lc0Base, weights: Message, multihead: bool, encoding: str | None) -> bool:
    """Put every layer in its place; returns whether all are LINEAR16."""
    stored: dict[str, Stored] = network.file_notes.get("stored", {})
    tensors = network.state_dict()
    plain = True
    for entry in entries(network, multihead):
        numbers = tensors[entry.tensor].detach().to("cpu", torch.float32).numpy()
        if not np.isfinite(numbers).all():
            raise BadWeights(f"{entry.tensor} holds numbers that are not finite; nothing is written")
        if entry.path[-1] == "biases" and entry.default is not None and not numbers.any():
            continue  # beside batch norm, zero biases are left out, as lc0's own files have it
        layer = encode(numbers, encoding, stored.get(entry.tensor))
        plain = plain and "encoding" not in layer.values
        make(weights, entry.path).values.update(layer.values)
    for path, raw in network.file_notes.get("unused", {}).items():
        make(weights, path).values.update(parse(raw, schema.LAYER).values)
    _write_headcounts(network, weights, multihead)
    return plain


def _write_headcounts(network: Lc0Base, weights: Message, multihead: bool) -> None:
    """The numbers of attention heads, which no layer tells."""
    config = network.config
    if isinstance(config, Lc0Config):
        if config.attention_policy is not None and config.attention_policy.encoders:
            weights.values["pol_headcount"] = config.attention_policy.heads
        return
    weights.values["headcount"] = config.heads
    for name, head in config.policy_heads.items():
        if head.encoders:
            message = make(weights, ("policy_heads", POLICY_FIELDS[name])) if multihead else weights
            message.values["pol_headcount"] = head.heads


def _formats_of(network: Lc0Base, multihead: bool) -> dict[str, int]:
    config = network.config
    formats = {
        "input": INPUT_FORMATS[config.input_format],
        "moves_left": int(bool(config.moves_left)),
        "default_activation": int(config.activation == "mish"),
    }
    if isinstance(config, Lc0Config):
        wdl = config.value == "wdl"
        formats.update(network=4 if any(config.se_widths) else 3, policy=schema.HEADS.index(config.policy))
    else:
        activations = {name: number for number, name in schema.ACTIVATIONS.items()}
        wdl = config.value_heads["winner"].outputs == 3
        formats.update(network=7 if multihead else 6, policy=3, input_embedding=2 if config.position == "dense" else 1)
        formats["ffn_activation"] = activations[config.ffn_activation]
        formats["smolgen_activation"] = activations[config.smolgen_activation]
    formats["value"] = formats["output"] = 2 if wdl else 1
    noted = network.file_notes.get("format", {})
    return {name: number for name, number in formats.items() if number or name in noted}  # 0 is what absence means


def _write_version(net: Message, network: Lc0Base, plain: bool) -> None:
    """The oldest lc0 that can read the file: as the file read had it, or newer where something needs it."""
    parts = network.pedigree.details.get("min_version", "").split(".")
    read = tuple(map(int, parts)) if len(parts) == 3 and all(map(str.isdigit, parts)) else (0, 21, 0)
    needed = [read, *((0, minor, 0) for minor in _needs(network)), *([] if plain else [(0, 33, 0)])]
    for name, number in zip(("major", "minor", "patch"), max(needed), strict=True):
        if number or name in network.file_notes.get("version", ("major", "minor")):
            net.make("min_version").values[name] = number


def _needs(network: Lc0Base) -> Iterator[int]:
    """Versions 0.x of lc0 in which what the network uses appeared (lc0's changelog; lczero-training's writer)."""
    config = network.config
    yield _MINOR_OF_INPUT[INPUT_FORMATS[config.input_format]]
    if config.activation == "mish" or (isinstance(config, Lc0Config) and config.policy == "attention"):
        yield 29
    if isinstance(config, Lc0TransformerConfig):
        yield 31 if config.position == "dense" or _needs_heads(network) else 30


FORMATS = (Format("Lc0 and Maia networks (.pb.gz)", looks_like_lc0, read_lc0, write_lc0),)
