"""The int8 numbers of a network's convolutions as tensors of a file, whole or as changes of its weights rounded."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from keima.errors import BadWeights
from keima.systems.layers import PAIR_LEVELS, WEIGHT_LEVELS, digest, restrained
from keima.systems.network import Network, Quantization

_PREFIX = "int8/"


def pack(network: Network) -> dict[str, Tensor]:
    """The tensors that a file keeps of its `quantization`, by name; none where it has none or it is out of date."""
    made = network.quantization
    if made is None or made.weights != digest(network):
        return {}
    return {packed(f"{name}.{part}"): tensor for name, layer in made.layers.items() for part, tensor in layer.items()}


def pack_changes(network: Network, read: Network) -> dict[str, Tensor]:
    """As `pack`, but of each weight only what must be added (modulo 256) where it is rounded from those of `read`."""
    tensors = pack(network)
    for name in tensors:
        layer, _, part = name.removeprefix(_PREFIX).rpartition(".")
        if part == "weight":
            scales = tensors[packed(f"{layer}.scale")], tensors[packed(f"{layer}.input_scale")]
            tensors[name] = tensors[name] - _rounded(read.get_submodule(layer), *scales)
    return tensors


def _rounded(convolution: nn.Module, scale: Tensor, input_scale: Tensor) -> Tensor:
    """The weights rounded to whole steps; products and quotients of float32, so the same everywhere."""
    assert isinstance(convolution, nn.Conv2d)
    levels = convolution.weight.detach() * input_scale[:, None, None] / scale[:, None, None, None]
    return levels.round().clamp(-128, 127).to(torch.int8)


def packed(name: str) -> str:
    """A file's name for the int8 number of that name."""
    return f"{_PREFIX}{name}"


def is_packed(name: str) -> bool:
    """Is a file's tensor of that name one of `pack`'s?"""
    return name.startswith(_PREFIX)


def unpack(network: Network, tensors: Mapping[str, Tensor], *, changes: bool = False) -> Quantization:
    """What `pack` (or `pack_changes`) made of a network with these weights; raises BadWeights for what does not fit."""
    layers: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        layer, _, part = name.removeprefix(_PREFIX).rpartition(".")
        layers.setdefault(layer, {})[part] = tensor
    modules = dict(network.named_modules())
    for layer, found in layers.items():
        module = modules.get(layer)
        if not isinstance(module, nn.Conv2d) or module.groups != 1:
            raise BadWeights("int8 numbers of what is no convolution of the network", place=layer)
        outputs, inputs = module.weight.shape[:2]
        expected = {
            "weight": (torch.int8, module.weight.shape),
            "scale": (torch.float32, (outputs,)),
            "input_scale": (torch.float32, (inputs,)),
            "input_zero": (torch.uint8, (1,)),
            "bias": (torch.float32, (outputs,)),
        }
        if {part: (tensor.dtype, tuple(tensor.shape)) for part, tensor in found.items()} != {
            part: (kind, tuple(shape)) for part, (kind, shape) in expected.items()
        }:
            raise BadWeights(f"int8 numbers should be {', '.join(expected)} of the convolution's shape", place=layer)
        steps = torch.cat([found["scale"], found["input_scale"]])
        if not (steps.isfinite().all() and (steps > 0).all() and found["bias"].isfinite().all()):
            raise BadWeights("a step that is not above 0, or a number that is not finite", place=layer)
        if changes:
            found["weight"] = found["weight"] + _rounded(module, found["scale"], found["input_scale"])
        weight = found["weight"].float()
        if not torch.equal(weight, restrained(weight)):
            raise BadWeights(f"int8 weights beyond ±{WEIGHT_LEVELS}, or two beyond {PAIR_LEVELS}", place=layer)
    return Quantization(layers, digest(network))


def dequantized(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The float weights that `pack`'s tensors stand for, by the module's names."""
    found = {}
    for name, levels in tensors.items():
        if name.endswith(".weight"):
            layer = name.removesuffix("weight")
            scale, input_scale = tensors[f"{layer}scale"], tensors[f"{layer}input_scale"]
            found[name.removeprefix(_PREFIX)] = levels.float() * scale[:, None, None, None] / input_scale[:, None, None]
    return found
