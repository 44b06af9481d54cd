"""Lc0's networks in other variants of its format, named as its files name them: old structures and heads ↔ new ones.

    NETWORK_SE_WITH_HEADFORMAT   a tower without squeeze-and-excitation gets units that multiply by 1 and add 0: the
                                 sigmoid of 40 is 1 in float32
    VALUE_WDL                    tanh(z) is win − loss of the softmax of z, −20, −z; the draw gets less than 1e-8
    NETWORK_ATTENTIONBODY_WITH_MULTIHEADFORMAT, NETWORK_ATTENTIONBODY_WITH_HEADFORMAT
                                 the same layers in messages for several heads of a kind, or for one

Files without a head format (NETWORK_CLASSICAL, NETWORK_SE) are read as those with one. All else is refused: the
policies are different functions, a softmax of three is no tanh of a line, what squeezes or attends is no convolution.

Source: lc0 v0.33, `src/neural/backends/blas/network_blas.cc`, `src/neural/loader.cc`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from keima.errors import UnsupportedNetwork
from keima.plain import Data
from keima.systems.forms import Forms, rebuilt
from keima.systems.lc0 import file_schema as schema
from keima.systems.lc0.file_layers import entries, place_of
from keima.systems.lc0.network import Lc0Base, Lc0Config, Lc0Network
from keima.systems.lc0.transformer import Lc0Transformer, Lc0TransformerConfig
from keima.systems.network import Network

_OPEN = 40.0  # its sigmoid is 1 in float32
_NO_DRAW = -20.0  # logit of a draw beside z and −z, of which one is 0 or more

_CONVOLUTION = "a convolution, and an attention body has none"
_ATTENTION = "attention, which no convolution of fixed weights expresses"
_POLICIES = {
    "classical": "fully connected: its weights differ from square to square as no other policy's do",
    "convolution": "a 3×3 convolution before the last activation, which no other policy has",
    "attention": "multiplies what stands on two squares, which no other policy does",
}


def _refused(network: Lc0Base, tensor: str, why: str) -> UnsupportedNetwork:
    """The refusal that names the file's layer of a tensor."""
    multihead = bool(network.file_notes.get("multihead"))
    path = next(entry.path for entry in entries(network, multihead) if entry.tensor.startswith(tensor))
    return UnsupportedNetwork(why, place=place_of(path))


def _changed(
    network: Lc0Base, config: Lc0Config | Lc0TransformerConfig, changes: dict[str, Tensor], **notes: object
) -> Lc0Base:
    """A network of that shape with the tensors of this one but for the changes."""
    shape = Lc0Network(config) if isinstance(config, Lc0Config) else Lc0Transformer(config)
    state = {**network.state_dict(), **changes}
    state = {name: tensor for name, tensor in state.items() if name in shape.state_dict()}
    other = rebuilt(lambda: shape, state, network.folded)
    assert isinstance(other, Lc0Base)
    stored: Data = network.file_notes.get("stored", {})
    kept = {name: how for name, how in stored.items() if name in state and name not in changes}
    other.file_notes = {**network.file_notes, "stored": kept, **notes}
    return other


def _value(wanted: str, network: Network) -> Network:
    """Lc0's network with its value as win, draw and loss, or as the one number it is already."""
    assert isinstance(network, Lc0Base)
    config = network.config
    if isinstance(config, Lc0Config):
        heads = {"value_head": config.value}
    else:
        kinds = {1: "classical", 3: "wdl"}
        heads = {f"value_heads.{name}": kinds[head.outputs] for name, head in config.value_heads.items()}
    others = [head for head, kind in heads.items() if kind != wanted]
    if not others:
        return network
    if wanted == "classical":
        raise _refused(network, f"{others[0]}.fc2", "logits of win, draw and loss: win − loss is no tanh of a line")
    changes: dict[str, Tensor] = {}
    for head in others:
        for part in ("weight", "bias"):
            z = network.state_dict()[f"{head}.fc2.{part}"]
            draw = torch.full_like(z, _NO_DRAW if part == "bias" else 0.0)
            changes[f"{head}.fc2.{part}"] = torch.cat([z, draw, -z])
    if isinstance(config, Lc0Config):
        other = _changed(network, replace(config, value=wanted), changes)
    else:
        three = {name: replace(head, outputs=3) for name, head in config.value_heads.items()}
        other = _changed(network, replace(config, value_heads=three), changes)
    other.pedigree = replace(other.pedigree, details={"value": schema.VALUES[2]})
    return other


def _tower(squeezes: bool, network: Network) -> Network:
    """The residual tower with squeeze-and-excitation in every block, or without as it is already."""
    assert isinstance(network, Lc0Base)
    config = network.config
    if not isinstance(config, Lc0Config):
        raise _refused(network, "encoders.0.mha", _ATTENTION)
    others = [block for block, width in enumerate(config.se_widths) if bool(width) != squeezes]
    if not others:
        return network
    if not squeezes:
        why = "squeeze-and-excitation, which multiplies channels by what the whole board gives"
        raise _refused(network, f"tower.{others[0]}.se", why)
    changes: dict[str, Tensor] = {}
    for block in others:
        unit = f"tower.{block}.se"
        changes |= {f"{unit}.fc1.weight": torch.zeros(1, config.channels), f"{unit}.fc1.bias": torch.zeros(1)}
        changes[f"{unit}.fc2.weight"] = torch.zeros(2 * config.channels, 1)
        changes[f"{unit}.fc2.bias"] = torch.tensor([_OPEN, 0.0]).repeat_interleave(config.channels)
    widths = tuple(width or 1 for width in config.se_widths)
    return _changed(network, replace(config, se_channels=widths), changes)


def _body(several: bool, network: Network) -> Network:
    """The attention body with messages for several heads of a kind, or for one."""
    assert isinstance(network, Lc0Base)
    config = network.config
    if isinstance(config, Lc0Config):
        raise _refused(network, "stem", _CONVOLUTION)
    if bool(network.file_notes.get("multihead")) == several:
        return network
    if several:
        return _changed(network, config, {}, multihead=True)
    extra = [f"policy_heads.{name}" for name in config.policy_heads if name != "vanilla"]
    extra += [f"value_heads.{name}" for name in config.value_heads if name != "winner"]
    if extra:
        raise _refused(network, extra[0], "a second head of its kind, for which the format has no place")
    embedding = {
        name.replace(".shared.", ".vanilla."): tensor
        for name, tensor in network.state_dict().items()
        if name.startswith("policy_embeddings.")
    }
    vanilla = replace(config.policy_heads["vanilla"], own_embedding=True)
    unused = {path: raw for path, raw in network.file_notes.get("unused", {}).items() if "heads" not in path[0]}
    notes: Data = {"multihead": False, "unused": unused}
    return _changed(network, replace(config, policy_heads={"vanilla": vanilla}), embedding, **notes)


def _policy(wanted: str, network: Network) -> Network:
    """The network where it has that policy."""
    assert isinstance(network, Lc0Base)
    has = network.config.policy if isinstance(network.config, Lc0Config) else "attention"
    if has == wanted:
        return network
    layers = {"classical": "policy_head.fc", "convolution": "policy_head.policy1", "attention": "policy_head"}
    part = layers[has] if isinstance(network.config, Lc0Config) else "policy_heads"
    raise _refused(network, part, _POLICIES[has])


FORMS: Forms = {
    schema.STRUCTURES[3]: partial(_tower, False),
    schema.STRUCTURES[4]: partial(_tower, True),
    schema.STRUCTURES[6]: partial(_body, False),
    schema.STRUCTURES[7]: partial(_body, True),
    **{schema.POLICIES[number]: partial(_policy, schema.HEADS[number]) for number in (1, 2, 3)},
    schema.VALUES[1]: partial(_value, "classical"),
    schema.VALUES[2]: partial(_value, "wdl"),
}
