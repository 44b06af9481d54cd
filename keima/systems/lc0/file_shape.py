"""The shape of an Lc0 network, told by its file: formats, and the sizes of its layers.

Sources: lc0 v0.33, `src/neural/loader.cc` (what older files leave out), `src/neural/backends/blas/network_blas.cc`
(what each format means). Only layers that cannot disagree with each other are asked here; the sizes of all others are
checked against the network's shape when they are read.
"""

from __future__ import annotations

from dataclasses import replace

from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.plain import Data
from keima.systems.lc0 import file_schema as schema
from keima.systems.lc0.attention import SQUARES, AttentionPolicyConfig, EncoderConfig, SmolgenConfig
from keima.systems.lc0.file_layers import POLICY_FIELDS, VALUE_FIELDS, Path, find, place_of
from keima.systems.lc0.file_params import count
from keima.systems.lc0.inputs import INPUT_FORMATS
from keima.systems.lc0.network import Lc0Config
from keima.systems.lc0.protobuf import Message
from keima.systems.lc0.transformer import POSITION_CHANNELS, Lc0TransformerConfig, TokenHeadConfig

SUPPORTED = (
    "structures CLASSICAL, SE, ATTENTIONBODY and MULTIHEAD; policies CLASSICAL, CONVOLUTION and ATTENTION; "
    "values CLASSICAL and WDL; moves left NONE and V1"
)
HEADS = ("", "classical", "convolution", "attention")
"""Policies by the format's number, as `Lc0Config` names them."""
_INPUT_NAMES = {number: name for name, number in INPUT_FORMATS.items()}
_MAX_WIDTH = 1 << 16
_DEFAULT_FORMAT = {"input": 1, "output": 1, "network": 3, "policy": 1, "value": 1}  # loader.cc: files without a format


def network_format(net: Message) -> dict[str, int]:
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
    """Refuse by name every format keima does not run."""
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
            message = f"{name} {found} is not supported; keima runs {SUPPORTED}"
            raise UnsupportedNetwork(message, place=f"format.network_format.{name}")


def config_of(formats: dict[str, int], weights: Message) -> tuple[Lc0Config | Lc0TransformerConfig, bool]:
    """The network's shape, from its formats and the sizes of its layers; and whether its heads lie in head messages."""
    if formats["network"] in (3, 4):
        if weights.get("policy_heads") is not None or weights.get("value_heads") is not None:
            raise UnsupportedNetwork(f"a residual network with several heads; keima runs {SUPPORTED}", place="weights")
        return _residual_config(formats, weights), False
    multihead = weights.get("policy_heads") is not None or weights.get("value_heads") is not None
    if weights.get("residual"):
        message = f"a residual tower in front of an attention body is not supported; keima runs {SUPPORTED}"
        raise UnsupportedNetwork(message, place="weights.residual")
    return _transformer_config(formats, weights, multihead), multihead


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
    has_biases = layer_bytes(weights, *path, "biases") > 0
    return _width(weights, *path, "biases" if has_biases else "bn_means")


def layer_bytes(weights: Message, *path: str | int) -> int:
    """How many bytes the layer at the path holds; 0 where it is missing."""
    layer = find(weights, path)
    return len(layer.get("params", b"")) if layer is not None else 0


def _residual_config(formats: dict[str, int], weights: Message) -> Lc0Config:
    residual = weights.get("residual", [])
    if not residual:
        raise BadWeights("the network has no residual block", place="weights.residual")
    policy = HEADS[formats["policy"]]
    moves_left = formats.get("moves_left", 0) == 1
    shape: Data = {}
    if policy == "attention":
        shape["attention_policy"] = _attention_policy(weights, ())
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
        if layer_bytes(weights, *path, "bn_means"):
            normed.append(name)
            if layer_bytes(weights, *path, "bn_betas") and not layer_bytes(weights, *path, "bn_gammas"):
                raise BadWeights("batch norm has betas but no gammas", place=place_of(path))
    return replace(config, batch_norm=normed)


def _encoders(weights: Message, path: Path, embedding: int, heads: int) -> tuple[EncoderConfig, ...]:
    """Sizes of the encoder layers in the repeated field at the path."""
    numbers = range(len(find(weights, path) or ()))
    return tuple(_encoder(weights, (*path, number), embedding, heads) for number in numbers)


def _encoder(weights: Message, path: Path, embedding: int, heads: int) -> EncoderConfig:
    for name in ("rpe_q", "rpe_k", "rpe_v"):
        if find(weights, (*path, "mha", name)) is not None:
            message = f"relative positional encodings are not supported; keima runs {SUPPORTED}"
            raise UnsupportedNetwork(message, place=place_of((*path, "mha", name)))
    smolgen = None
    inner = (*path, "mha", "smolgen")
    if find(weights, inner) is not None:
        smolgen = SmolgenConfig(
            compressed=_quotient(_entries(weights, *inner, "compress"), embedding, (*inner, "compress")),
            hidden=_width(weights, *inner, "dense1_b"),
            generated=_quotient(_width(weights, *inner, "dense2_b"), heads, (*inner, "dense2_b")),
        )
    d_model, feedforward = _width(weights, *path, "mha", "q_b"), _width(weights, *path, "ffn", "dense1_b")
    return EncoderConfig(d_model, feedforward, smolgen)


def _quotient(number: int, by: int, path: Path) -> int:
    """`number / by`, both told by the file; refuses a remainder and what no network's width can be."""
    if by < 1 or number % by or not 1 <= number // by <= _MAX_WIDTH:
        raise BadWeights(f"{number:,} weights cannot be shared by {by:,}", place=place_of(path))
    return number // by


def _attention_policy(weights: Message, path: Path, own: bool = True, shared: Path = ()) -> AttentionPolicyConfig:
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
        gating=layer_bytes(weights, "ip_mult_gate") > 0 and layer_bytes(weights, "ip_add_gate") > 0,
        input_format=_INPUT_NAMES[formats.get("input", 1)],
        activation=default,
        ffn_activation=default if ffn == "default" else ffn,
        smolgen_activation=default if smolgen == "default" else smolgen,
        policy_heads=_policy_heads(weights, multihead),
        value_heads=_value_heads(weights, multihead, 3 if formats["value"] == 2 else 1),
        moves_left=_token_head(weights, (), "mov") if formats.get("moves_left", 0) == 1 else None,
    )


def _policy_heads(weights: Message, multihead: bool) -> dict[str, AttentionPolicyConfig]:
    """Sizes of the policy heads by name; the plain format has one, "vanilla"."""
    if not multihead:
        return {"vanilla": _attention_policy(weights, ())}
    shared = weights.child("policy_heads")
    for name in ("ip_pol_w", "ip_pol_b"):  # heads without an embedding may use that of `weights` itself
        if shared.get(name) is None and weights.get(name) is not None:
            shared.values[name] = weights.values.pop(name)
    heads = {}
    for name, field in POLICY_FIELDS.items():
        path: Path = ("policy_heads", field)
        if name == "vanilla" or find(weights, path) is not None:
            own = layer_bytes(weights, *path, "ip_pol_w") > 0
            heads[name] = _attention_policy(weights, path, own, shared=("policy_heads",))
    return heads


def _value_heads(weights: Message, multihead: bool, outputs: int) -> dict[str, TokenHeadConfig]:
    """Sizes of the value heads by name; the plain format has one, "winner"."""
    paths: dict[str, Path] = {"winner": ()}
    if multihead:
        paths = {name: ("value_heads", name) for name in VALUE_FIELDS}
        paths = {name: path for name, path in paths.items() if name == "winner" or find(weights, path) is not None}
    heads = {name: _token_head(weights, path, "val") for name, path in paths.items()}
    if heads["winner"].outputs != outputs:
        message = f"the value head has {heads['winner'].outputs} outputs where its format asks for {outputs}"
        raise BadWeights(message, place="weights")
    return heads


def _token_head(weights: Message, path: Path, kind: str) -> TokenHeadConfig:
    """Sizes of a value ("val") or moves-left ("mov") head of a transformer."""
    return TokenHeadConfig(
        channels=_width(weights, *path, f"ip_{kind}_b"),
        hidden=_width(weights, *path, f"ip1_{kind}_b"),
        outputs=_width(weights, *path, f"ip2_{kind}_b"),
    )
