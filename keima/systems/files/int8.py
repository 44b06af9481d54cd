"""The int8 numbers of a network's convolutions as tensors of a file."""

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
    return {f"{_PREFIX}{name}.{part}": tensor for name, layer in made.layers.items() for part, tensor in layer.items()}


def is_packed(name: str) -> bool:
    """Is a file's tensor of that name one of `pack`'s?"""
    return name.startswith(_PREFIX)


def unpack(network: Network, tensors: Mapping[str, Tensor]) -> Quantization:
    """What `pack` made of a network with these weights; raises BadWeights for tensors that do not fit them."""
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
        weight = found["weight"].float()
        if not torch.equal(weight, restrained(weight)):
            raise BadWeights(f"int8 weights beyond ±{WEIGHT_LEVELS}, or two beyond {PAIR_LEVELS}", place=layer)
    return Quantization(layers, digest(network))
