"""Which layer of an Lc0 file is which tensor of the network, and the network's shape, told by formats and layers.

A path is the way to a layer below the file's `weights` message: field names, and the index where a field is repeated.
Shapes need no turning: Lc0 keeps convolutions as [out, in, height, width] and dense layers as [out, in], as PyTorch
does (`src/neural/network_legacy.cc`, `blas/fully_connected_layer.cc`). The table of layers serves reader and writer.

The shape is asked only of layers that cannot disagree with each other; the sizes of all others are checked against it
when they are read. Sources: lc0 v0.33, `src/neural/loader.cc` (what older files leave out),
`src/neural/backends/blas/network_blas.cc` (what each format means).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.plain import Data
from keima.systems.lc0 import file_schema as schema
from keima.systems.lc0.attention import SQUARES, AttentionPolicyConfig, EncoderConfig, SmolgenConfig
from keima.systems.lc0.file_params import count
from keima.systems.lc0.inputs import INPUT_FORMATS
from keima.systems.lc0.network import Lc0Base, Lc0Config
from keima.systems.lc0.protobuf import Message
from keima.systems.lc0.transformer import POSITION_CHANNELS, Lc0TransformerConfig, TokenHeadConfig

Path = tuple[str | int, ...]

POLICY_FIELDS = {"vanilla": "vanilla", "optimistic": "optimistic_st", "soft": "soft", "opponent": "opponent"}
_VALUE_FIELDS = ("winner", "q", "st")


@dataclass(frozen=True)
class Entry:
    """One layer of a file and the tensor of the network's state it is."""

    path: Path
    tensor: str
    default: float | None = None  # what the tensor holds where the file lacks the layer; None where it must not


def place_of(path: Path) -> str:
    """A path as text: "weights.residual[3].conv1.biases"."""
    return "weights" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def find(weights: Message, path: Path) -> Any:
    """What lies at the path, None where nothing does."""
    here: Any = weights
    for part in path:
        if isinstance(part, int):
            here = here[part] if here is not None and part < len(here) else None
        else:
            here = here.get(part) if here is not None else None
    return here


def make(weights: Message, path: Path) -> Message:
    """The message at the path, made with all above it where they are missing (indices in ascending order)."""
    here = weights
    for name, index in zip(path, (*path[1:], None), strict=False):
        if isinstance(name, int):
            continue
        found: list[Message] = here.get(name, []) if isinstance(index, int) else []
        here = found[index] if isinstance(index, int) and index < len(found) else here.make(name)
    return here


def leaves(weights: Message, above: Path = ()) -> Iterator[tuple[Path, Message]]:
    """Every layer a file holds, with its path."""
    for name, value in weights.values.items():
        items = [((name, i), item) for i, item in enumerate(value)] if isinstance(value, list) else [((name,), value)]
        for path, item in items:
            if not isinstance(item, Message):
                continue
            if any(known.name == "params" for known in item.schema.values()):
                yield above + path, item
            else:
                yield from leaves(item, above + path)


def entries(network: Lc0Base, multihead: bool) -> list[Entry]:
    """The table for a network; `multihead`: the heads lie in `policy_heads` and `value_heads`, not in `weights`."""
    config = network.config
    return list(_residual(config) if isinstance(config, Lc0Config) else _transformer(config, multihead))


def _pair(path: Path, weight: str, bias: str, tensor: str) -> list[Entry]:
    return [Entry((*path, weight), f"{tensor}.weight"), Entry((*path, bias), f"{tensor}.bias")]


def _conv(path: Path, tensor: str, normed: bool) -> list[Entry]:
    """A ConvBlock; biases, gammas and betas may be absent beside batch norm (`network_legacy.cc`, ConvBlock)."""
    weights = Entry((*path, "weights"), f"{tensor}.conv.weight")
    if not normed:
        return [weights, Entry((*path, "biases"), f"{tensor}.conv.bias")]
    return [
        weights,
        Entry((*path, "biases"), f"{tensor}.conv.bias", default=0.0),
        Entry((*path, "bn_means"), f"{tensor}.norm.running_mean"),
        Entry((*path, "bn_stddivs"), f"{tensor}.norm.running_var"),
        Entry((*path, "bn_gammas"), f"{tensor}.norm.weight", default=1.0),
        Entry((*path, "bn_betas"), f"{tensor}.norm.bias", default=0.0),
    ]


def _residual(config: Lc0Config) -> Iterator[Entry]:
    yield from _conv(("input",), "stem", config.has_norm("input"))
    for block in range(config.blocks):
        for conv in ("conv1", "conv2"):
            normed = config.has_norm(f"residual.{block}.{conv}")
            yield from _conv(("residual", block, conv), f"tower.{block}.{conv}", normed)
        if config.se_widths[block]:
            se: Path = ("residual", block, "se")
            yield from _pair(se, "w1", "b1", f"tower.{block}.se.fc1")
            yield from _pair(se, "w2", "b2", f"tower.{block}.se.fc2")
    if config.attention_policy is not None:
        yield from _pair((), "ip_pol_w", "ip_pol_b", "policy_head.embedding")
        yield from _attention_policy((), config.attention_policy, "policy_head.attention")
    else:
        if config.policy == "convolution":
            yield from _conv(("policy1",), "policy_head.policy1", config.has_norm("policy1"))
        yield from _conv(("policy",), "policy_head.policy", config.has_norm("policy"))
        if config.policy == "classical":
            yield from _pair((), "ip_pol_w", "ip_pol_b", "policy_head.fc")
    yield from _conv(("value",), "value_head.value", config.has_norm("value"))
    yield from _pair((), "ip1_val_w", "ip1_val_b", "value_head.fc1")
    yield from _pair((), "ip2_val_w", "ip2_val_b", "value_head.fc2")
    if config.moves_left:
        yield from _conv(("moves_left",), "moves_left_head.moves_left", config.has_norm("moves_left"))
        yield from _pair((), "ip1_mov_w", "ip1_mov_b", "moves_left_head.fc1")
        yield from _pair((), "ip2_mov_w", "ip2_mov_b", "moves_left_head.fc2")


def _attention_policy(path: Path, config: AttentionPolicyConfig, tensor: str) -> Iterator[Entry]:
    for number, layer in enumerate(config.encoders):
        yield from _encoder((*path, "pol_encoder", number), layer, f"{tensor}.encoders.{number}")
    yield from _pair(path, "ip2_pol_w", "ip2_pol_b", f"{tensor}.query")
    yield from _pair(path, "ip3_pol_w", "ip3_pol_b", f"{tensor}.key")
    yield Entry((*path, "ip4_pol_w"), f"{tensor}.promotion.weight")


def _encoder(path: Path, config: EncoderConfig, tensor: str) -> Iterator[Entry]:
    for part in "qkv":
        yield from _pair((*path, "mha"), f"{part}_w", f"{part}_b", f"{tensor}.mha.{part}")
    yield from _pair((*path, "mha"), "dense_w", "dense_b", f"{tensor}.mha.dense")
    if config.smolgen is not None:
        smolgen: Path = (*path, "mha", "smolgen")
        yield Entry((*smolgen, "compress"), f"{tensor}.mha.smolgen.compress.weight")
        for number in "12":
            yield from _pair(smolgen, f"dense{number}_w", f"dense{number}_b", f"{tensor}.mha.smolgen.dense{number}")
            yield from _pair(smolgen, f"ln{number}_gammas", f"ln{number}_betas", f"{tensor}.mha.smolgen.norm{number}")
    yield from _pair(path, "ln1_gammas", "ln1_betas", f"{tensor}.norm1")
    yield from _feed_forward((*path, "ffn"), f"{tensor}.ffn")
    yield from _pair(path, "ln2_gammas", "ln2_betas", f"{tensor}.norm2")


def _feed_forward(path: Path, tensor: str) -> Iterator[Entry]:
    yield from _pair(path, "dense1_w", "dense1_b", f"{tensor}.dense1")
    yield from _pair(path, "dense2_w", "dense2_b", f"{tensor}.dense2")


def _transformer(config: Lc0TransformerConfig, multihead: bool) -> Iterator[Entry]:
    yield from _embedding(config)
    for number, layer in enumerate(config.encoders):
        yield from _encoder(("encoder", number), layer, f"encoders.{number}")
    every = [*config.encoders, *(layer for head in config.policy_heads.values() for layer in head.encoders)]
    if any(layer.smolgen is not None for layer in every):
        yield Entry(("smolgen_w",), "smolgen_maps")
    if any(not head.own_embedding for head in config.policy_heads.values()):
        yield from _pair(("policy_heads",) if multihead else (), "ip_pol_w", "ip_pol_b", "policy_embeddings.shared")
    path: Path
    for name, head in config.policy_heads.items():
        path = ("policy_heads", POLICY_FIELDS[name]) if multihead else ()
        if head.own_embedding:
            yield from _pair(path, "ip_pol_w", "ip_pol_b", f"policy_embeddings.{name}")
        yield from _attention_policy(path, head, f"policy_heads.{name}")
    for name in config.value_heads:
        path = ("value_heads", name) if multihead else ()
        yield from _token_head(path, "val", f"value_heads.{name}")
    if config.moves_left is not None:
        yield from _token_head((), "mov", "moves_left_head")


def _embedding(config: Lc0TransformerConfig) -> Iterator[Entry]:
    yield from _pair((), "ip_emb_w", "ip_emb_b", "embedding.dense")
    if config.gating:
        yield Entry(("ip_mult_gate",), "embedding.mult_gate")
        yield Entry(("ip_add_gate",), "embedding.add_gate")
    if config.position == "dense":
        yield from _pair((), "ip_emb_preproc_w", "ip_emb_preproc_b", "embedding.preprocess")
        yield from _pair((), "ip_emb_ln_gammas", "ip_emb_ln_betas", "embedding.norm")
        yield from _feed_forward(("ip_emb_ffn",), "embedding.ffn")
        yield from _pair((), "ip_emb_ffn_ln_gammas", "ip_emb_ffn_ln_betas", "embedding.ffn_norm")


def _token_head(path: Path, kind: str, tensor: str) -> Iterator[Entry]:
    yield from _pair(path, f"ip_{kind}_w", f"ip_{kind}_b", f"{tensor}.embedding")
    yield from _pair(path, f"ip1_{kind}_w", f"ip1_{kind}_b", f"{tensor}.fc1")
    yield from _pair(path, f"ip2_{kind}_w", f"ip2_{kind}_b", f"{tensor}.fc2")


# --- The shape, told by the file --------------------------------------------------------------------------------------

_INPUT_NAMES = {number: name for name, number in INPUT_FORMATS.items()}
_MAX_WIDTH = 1 << 16
_DEFAULT_FORMAT = {"input": 1, "output": 1, "network": 3, "policy": 1, "value": 1}  # loader.cc: files without a format


def _formats(net: Message) -> dict[str, int]:
    """The file's format by field, with what older files leave out filled in as `loader.cc` does."""
    given = net.child("format").get("network_format")
    formats: dict[str, int] = dict(given.values) if given is not None else dict(_DEFAULT_FORMAT)
    weights = net.child("weights")
    structure = formats.get("network", 0)
    if structure in (1, 2):
        formats.update(network=structure + 2, policy=1, value=1)
    elif structure == 4 and weights.get("encoder"):
        formats["network"] = 6
        if weights.get("smolgen_w") is not None:
            formats.update(ffn_activation=8, smolgen_activation=7)
    elif structure == 134:
        formats["network"] = 7
    if formats.get("network") == 6:
        if weights.get("policy_heads") is not None and weights.get("value_heads") is not None:
            formats.update(network=7, input_embedding=2)
        formats.setdefault("input_embedding", 1)
    _check_formats(formats)
    return formats


def _check_formats(formats: dict[str, int]) -> None:
    attention_body = formats.get("network") in (6, 7)
    runs = {
        "network": (schema.STRUCTURES, (3, 4, 6, 7)),
        "policy": (schema.POLICIES, (3,) if attention_body else (1, 2, 3)),
        "value": (schema.VALUES, (1, 2)),
        "moves_left": (schema.MOVES_LEFT, (0, 1)),
        "input": (schema.INPUTS, tuple(schema.INPUTS)),
        "default_activation": (schema.DEFAULT_ACTIVATIONS, (0, 1)),
        "ffn_activation": (schema.ACTIVATIONS, tuple(range(9))),
        "smolgen_activation": (schema.ACTIVATIONS, tuple(range(9))),
        "input_embedding": (schema.EMBEDDINGS, (0, 1, 2)),
    }
    for name, (names, supported) in runs.items():
        number = formats.get(name, 0)
        if number not in supported:
            found = names.get(number, f"number {number}")
            message = f"{name} {found} is not supported; keima runs {schema.SUPPORTED}"
            raise UnsupportedNetwork(message, place=f"format.network_format.{name}")


def shape_of(net: Message) -> tuple[dict[str, int], Lc0Config | Lc0TransformerConfig, bool]:
    """A file's formats, the network's shape from them and the sizes of its layers, and whether it has head messages."""
    formats, weights = _formats(net), net.child("weights")
    multihead = weights.get("policy_heads") is not None or weights.get("value_heads") is not None
    if formats["network"] in (3, 4):
        if multihead:
            message = f"a residual network with several heads; keima runs {schema.SUPPORTED}"
            raise UnsupportedNetwork(message, place="weights")
        return formats, _residual_config(formats, weights), False
    if weights.get("residual"):
        message = f"a residual tower in front of an attention body is not supported; keima runs {schema.SUPPORTED}"
        raise UnsupportedNetwork(message, place="weights.residual")
    return formats, _transformer_config(formats, weights, multihead), multihead


def _entries(weights: Message, *path: str | int) -> int:
    """How many numbers the layer at the path holds."""
    layer = find(weights, path)
    if layer is None:
        raise BadWeights("this layer is missing", place=place_of(path))
    try:
        return count(layer)
    except KeimaError as error:
        raise error.at(place=place_of(path)) from error


def _width(weights: Message, *path: str | int) -> int:
    """The same of a layer that gives the network one of its widths: at least one, and not more than any has."""
    number = _entries(weights, *path)
    if not 1 <= number <= _MAX_WIDTH:
        raise BadWeights(f"{number:,} weights where a network's width is told", place=place_of(path))
    return number


def _outputs(weights: Message, *path: str | int) -> int:
    """Filters of a convolution: as many as it has biases, or means of batch norm."""
    has_biases = _bytes(weights, *path, "biases") > 0
    return _width(weights, *path, "biases" if has_biases else "bn_means")


def _bytes(weights: Message, *path: str | int) -> int:
    """How many bytes the layer at the path holds; 0 where it is missing."""
    layer = find(weights, path)
    return len(layer.get("params", b"")) if layer is not None else 0


def _residual_config(formats: dict[str, int], weights: Message) -> Lc0Config:
    residual = weights.get("residual", [])
    if not residual:
        raise BadWeights("the network has no residual block", place="weights.residual")
    policy = schema.HEADS[formats["policy"]]
    moves_left = formats.get("moves_left", 0) == 1
    shape: Data = {}
    if policy == "attention":
        shape["attention_policy"] = _policy_sizes(weights, ())
    else:
        shape["policy_channels"] = _outputs(weights, "policy")
    if moves_left:
        shape["moves_left_channels"] = _outputs(weights, "moves_left")
        shape["moves_left_hidden"] = _width(weights, "ip1_mov_b")
    has_se = [block.get("se") is not None for block in residual]
    shape["se_channels"] = [_width(weights, "residual", i, "se", "b1") if se else 0 for i, se in enumerate(has_se)]
    config = Lc0Config(
        blocks=len(residual),
        channels=_outputs(weights, "input"),
        input_format=_INPUT_NAMES[formats.get("input", 1)],
        policy=policy,
        value="wdl" if formats["value"] == 2 else "classical",
        value_channels=_outputs(weights, "value"),
        value_hidden=_width(weights, "ip1_val_b"),
        moves_left=moves_left,
        activation=schema.DEFAULT_ACTIVATIONS[formats.get("default_activation", 0)],
        batch_norm=False,
        **shape,
    )
    normed = []
    for name in config.convolutions():
        path = tuple(int(part) if part.isdigit() else part for part in name.split("."))
        if _bytes(weights, *path, "bn_means"):
            normed.append(name)
            if _bytes(weights, *path, "bn_betas") and not _bytes(weights, *path, "bn_gammas"):
                raise BadWeights("batch norm has betas but no gammas", place=place_of(path))
    return replace(config, batch_norm=normed)


def _encoders(weights: Message, path: Path, embedding: int, heads: int) -> tuple[EncoderConfig, ...]:
    """Sizes of the encoder layers in the repeated field at the path."""
    encoders = []
    for number in range(len(find(weights, path) or ())):
        mha: Path = (*path, number, "mha")
        for name in ("rpe_q", "rpe_k", "rpe_v"):
            if find(weights, (*mha, name)) is not None:
                message = f"relative positional encodings are not supported; keima runs {schema.SUPPORTED}"
                raise UnsupportedNetwork(message, place=place_of((*mha, name)))
        smolgen, inner = None, (*mha, "smolgen")
        if find(weights, inner) is not None:
            smolgen = SmolgenConfig(
                compressed=_quotient(_entries(weights, *inner, "compress"), embedding, (*inner, "compress")),
                hidden=_width(weights, *inner, "dense1_b"),
                generated=_quotient(_width(weights, *inner, "dense2_b"), heads, (*inner, "dense2_b")),
            )
        d_model, feedforward = _width(weights, *mha, "q_b"), _width(weights, *path, number, "ffn", "dense1_b")
        encoders.append(EncoderConfig(d_model, feedforward, smolgen))
    return tuple(encoders)


def _quotient(number: int, by: int, path: Path) -> int:
    """`number / by`, both told by the file; refuses a remainder and what no network's width can be."""
    if by < 1 or number % by or not 1 <= number // by <= _MAX_WIDTH:
        raise BadWeights(f"{number:,} weights cannot be shared by {by:,}", place=place_of(path))
    return number // by


def _policy_sizes(weights: Message, path: Path, own: bool = True, shared: Path = ()) -> AttentionPolicyConfig:
    """Sizes of the attention policy head at the path; its embedding lies at `shared` where it is not its own."""
    heads = find(weights, (*path, "pol_headcount")) or 0
    embedding = _width(weights, *(path if own else shared), "ip_pol_b")
    return AttentionPolicyConfig(
        embedding=embedding,
        d_model=_width(weights, *path, "ip2_pol_b"),
        encoders=_encoders(weights, (*path, "pol_encoder"), embedding, heads),
        heads=max(1, heads),
        own_embedding=own,
    )


def _transformer_config(formats: dict[str, int], weights: Message, multihead: bool) -> Lc0TransformerConfig:
    default = schema.DEFAULT_ACTIVATIONS[formats.get("default_activation", 0)]
    ffn, smolgen = (schema.ACTIVATIONS[formats.get(f"{name}_activation", 0)] for name in ("ffn", "smolgen"))
    embedding = _width(weights, "ip_emb_b")
    heads = weights.get("headcount", 0)
    dense = formats.get("input_embedding", 0) == 2
    made = _quotient(_entries(weights, "ip_emb_preproc_b"), SQUARES, ("ip_emb_preproc_b",)) if dense else None
    return Lc0TransformerConfig(
        embedding=embedding,
        heads=heads,
        encoders=_encoders(weights, ("encoder",), embedding, heads),
        position="dense" if dense else "map",
        position_channels=made or POSITION_CHANNELS,
        embedding_ffn=_width(weights, "ip_emb_ffn", "dense1_b") if dense else 0,
        gating=_bytes(weights, "ip_mult_gate") > 0 and _bytes(weights, "ip_add_gate") > 0,
        input_format=_INPUT_NAMES[formats.get("input", 1)],
        activation=default,
        ffn_activation=default if ffn == "default" else ffn,
        smolgen_activation=default if smolgen == "default" else smolgen,
        policy_heads=_policy_heads(weights, multihead),
        value_heads=_value_heads(weights, multihead, 3 if formats["value"] == 2 else 1),
        moves_left=_token_head_sizes(weights, (), "mov") if formats.get("moves_left", 0) == 1 else None,
    )


def _policy_heads(weights: Message, multihead: bool) -> dict[str, AttentionPolicyConfig]:
    """Sizes of the policy heads by name; the plain format has one, "vanilla"."""
    if not multihead:
        return {"vanilla": _policy_sizes(weights, ())}
    shared = weights.child("policy_heads")
    for name in ("ip_pol_w", "ip_pol_b"):  # heads without an embedding may use that of `weights` itself
        if shared.get(name) is None and weights.get(name) is not None:
            shared.values[name] = weights.values.pop(name)
    heads = {}
    for name, field in POLICY_FIELDS.items():
        path: Path = ("policy_heads", field)
        if name == "vanilla" or find(weights, path) is not None:
            own = _bytes(weights, *path, "ip_pol_w") > 0
            heads[name] = _policy_sizes(weights, path, own, shared=("policy_heads",))
    return heads


def _value_heads(weights: Message, multihead: bool, outputs: int) -> dict[str, TokenHeadConfig]:
    """Sizes of the value heads by name; the plain format has one, "winner"."""
    paths: dict[str, Path] = {"winner": ()}
    if multihead:
        paths = {name: ("value_heads", name) for name in _VALUE_FIELDS}
        paths = {name: path for name, path in paths.items() if name == "winner" or find(weights, path) is not None}
    heads = {name: _token_head_sizes(weights, path, "val") for name, path in paths.items()}
    if heads["winner"].outputs != outputs:
        message = f"the value head has {heads['winner'].outputs} outputs where its format asks for {outputs}"
        raise BadWeights(message, place="weights")
    return heads


def _token_head_sizes(weights: Message, path: Path, kind: str) -> TokenHeadConfig:
    """Sizes of a value ("val") or moves-left ("mov") head of a transformer."""
    return TokenHeadConfig(
        channels=_width(weights, *path, f"ip_{kind}_b"),
        hidden=_width(weights, *path, f"ip1_{kind}_b"),
        outputs=_width(weights, *path, f"ip2_{kind}_b"),
    )
