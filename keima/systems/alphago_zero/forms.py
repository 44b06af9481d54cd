"""AlphaGo Zero's dual-res as Leela Zero's network, and back: other planes, the same answers.

Leela Zero's planes are AlphaGo Zero's in another order, and one more, all ones if White is to move (`inputs.py`). To
Leela Zero that plane gets no weights. Back, the plane is what Black's plane leaves of the board, 1 − black:

    conv(white) = conv(board) − conv(black)

The second term goes to the weights of Black's plane. The first, the same in all positions, differs along the edges,
where a kernel hangs over, and no bias of a channel can say that. A residual block put in front of the tower can: its
first convolution has no weights and a bias of 1, so its second sees a plane of ones, and adds to the input what the
white plane's kernel makes of it. Until then the stem's rectifier must let everything pass, so the stem adds as much as
its channels can be below zero, and the block takes it back. A network whose white plane has no weights needs no block.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor

from keima.errors import UnsupportedNetwork
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from keima.systems.alphago_zero.network import AlphaGoZeroNetwork
from keima.systems.forms import Forms, rebuilt
from keima.systems.network import Network

_EPSILON = 1e-5  # of the norms
_SIZES = ("blocks", "channels", "board_size", "value_hidden")
_STEM = "stem.convolution.weight"


def as_leela_zero(network: Network) -> Network:
    """The same network for Leela Zero's planes; raises UnsupportedNetwork for a tower without skip connections."""
    if isinstance(network, LeelaZeroNetwork):
        return network
    if not isinstance(network, AlphaGoZeroNetwork):
        first = next(iter(network.state_dict()), "the network").rpartition(".")[0]
        raise UnsupportedNetwork(f"Leela Zero has no layer for this one of a {type(network).__name__}", place=first)
    if network.config["tower"] != "residual":
        raise UnsupportedNetwork(
            "a convolution without a skip connection, which the format cannot hold", place="tower.0"
        )
    state = network.state_dict()
    planes = state[_STEM]
    own, theirs, black = planes[:, :-1:2], planes[:, 1:-1:2], planes[:, -1:]
    state[_STEM] = torch.cat([own, theirs, black, torch.zeros_like(black)], dim=1)
    sizes = {name: network.config[name] for name in _SIZES}
    return rebuilt(lambda: LeelaZeroNetwork(**sizes), state, network.folded)


def as_alphago_zero(network: Network) -> Network:
    """The same network for AlphaGo Zero's planes, with one more block where White's plane has weights.

    Raises UnsupportedNetwork for a value of Black's (version 2 files), which would have to change its sign by the
    colour to move.
    """
    if not isinstance(network, LeelaZeroNetwork):
        return network
    if network.value_for_black:
        message = "the value is Black's and not the side to move's, as AlphaGo Zero's is"
        raise UnsupportedNetwork(message, place="value_head.linear2")
    state = network.state_dict()
    weights = state[_STEM]
    own, theirs, black, white = weights[:, :8], weights[:, 8:16], weights[:, 16:17], weights[:, 17:]
    stones = torch.stack([own, theirs], dim=2).flatten(1, 2)
    state[_STEM] = torch.cat([stones, black - white], dim=1)
    folded, sizes = network.folded, {name: network.config[name] for name in _SIZES}
    if white.any():
        state = _with_block(state, white)
        folded = {_next(norm): _next(convolution) for norm, convolution in folded.items()}
        sizes["blocks"] += 1
    return rebuilt(lambda: AlphaGoZeroNetwork(**sizes), state, folded)


def _next(name: str) -> str:
    """A layer's name behind the block that is put in front of the tower."""
    return re.sub(r"^tower\.(\d+)", lambda match: f"tower.{int(match[1]) + 1}", name)


def _with_block(state: dict[str, Tensor], white: Tensor) -> dict[str, Tensor]:
    """The state with the block that adds what White's kernels [C, 1, 3, 3] make of a plane of ones."""
    channels = len(white)
    offset = "stem.norm.bias" if "stem.norm.bias" in state else "stem.convolution.bias"
    scale, shift = torch.ones(channels, dtype=torch.float64), state[offset].double()
    if "stem.norm.weight" in state:
        scale = state["stem.norm.weight"].double() * (state["stem.norm.running_var"].double() + _EPSILON).rsqrt()
        shift = shift - state["stem.norm.running_mean"].double() * scale
    kernels = state[_STEM].double() * scale[:, None, None, None]
    least = torch.minimum(kernels[:, :-1:2], kernels[:, 1:-1:2])  # a point holds one stone at most
    below = (-least).relu().sum(dim=(1, 2, 3)) + (-kernels[:, -1]).relu().sum(dim=(1, 2))
    lift = (below - shift).relu()

    moved = {_next(name): tensor for name, tensor in state.items()}
    moved[offset] = (state[offset].double() + lift).float()
    one = torch.ones(channels)
    for number, bias in ((1, one), (2, -lift.float())):
        norm = f"tower.0.norm{number}"
        moved[f"tower.0.convolution{number}.weight"] = torch.zeros(channels, channels, 3, 3)
        moved |= {f"{norm}.weight": one, f"{norm}.bias": bias, f"{norm}.running_mean": 0 * one}
        moved |= {f"{norm}.running_var": one - _EPSILON, f"{norm}.num_batches_tracked": torch.tensor(0)}
    moved["tower.0.convolution2.weight"][:, 0] = (white[:, 0].double() * scale[:, None, None]).float()
    return moved


FORMS: Forms = {"leela-zero": as_leela_zero, "alphago-zero": as_alphago_zero}
