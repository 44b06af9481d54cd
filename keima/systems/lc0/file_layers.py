"""Which layer of an Lc0 file is which tensor of the network: one table, read by the reader and by the writer.

A path is the way to a layer below the file's `weights` message: field names, and the index where a field is repeated.
Shapes need no turning: Lc0 keeps convolutions as [out, in, height, width] and dense layers as [out, in], as PyTorch
does (`src/neural/network_legacy.cc`, `blas/fully_connected_layer.cc`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from keima.systems.lc0.attention import AttentionPolicyConfig, EncoderConfig
from keima.systems.lc0.network import Lc0Base, Lc0Config
from keima.systems.lc0.protobuf import Message
from keima.systems.lc0.transformer import Lc0TransformerConfig

Path = tuple[str | int, ...]

POLICY_FIELDS = {"vanilla": "vanilla", "optimistic": "optimistic_st", "soft": "soft", "opponent": "opponent"}
VALUE_FIELDS = ("winner", "q", "st")


@dataclass(frozen=True)
class Entry:
    """One layer of a file and the tensor it is.

    Attributes:
        path: where the file has it.
        tensor: the tensor's name in the network's state.
        default: what the tensor holds where the file lacks the layer; None where the file must have it.
    """

    path: Path
    tensor: str
    default: float | None = None


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
    """A layer's weight and bias (or gamma and beta)."""
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
    """An attention policy head without its embedding."""
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
