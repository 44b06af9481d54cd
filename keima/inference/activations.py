"""What a network's layers compute on the way to its answer."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.games.position import Position
from keima.inference.backend import as_tensors
from keima.systems.encoding import Batch, symmetry_names
from keima.systems.network import Network, evaluating

_NAMES_SHOWN = 5


def activations(
    network: Network, position: Position, layer: str, symmetry: int = 0, **options: object
) -> NDArray[np.float32]:
    """The output of one named layer for one position, computed by PyTorch in float32.

    Args:
        network: left as it is.
        position: of its game.
        layer: a module's name, as `network.named_modules()` has it: "tower.3", "policy_head.convolution", ...
        symmetry: 0–7, of the planes the network sees.
        options: the network's, as for `Evaluator.bind` (`profile="rank_5k"`).

    Returns:
        float32, without the batch axis, in the orientation of the planes: [C, H, W] for a layer of channels, [F] for a
        fully connected one, [L, C] for one of tokens (L = H·W, in row order).

    Raises:
        BadRequest: no layer of that name (the message has close ones), one this position does not go through, one that
            gives no single tensor, or an unknown symmetry.
        UnsupportedPosition: the network cannot take the position.
    """
    module = _find(network, layer)
    encoding = network.encoding.bind(**options) if options else network.encoding
    encoding.check(position)
    if isinstance(symmetry, bool) or symmetry not in encoding.symmetries:
        raise BadRequest(f"unknown symmetry {symmetry!r}; choose {symmetry_names(encoding.symmetries)}")
    found = layer_outputs(network, encoding.encode([position], symmetry), {layer: module})
    if layer not in found:
        raise BadRequest(f"layer {layer!r} is not used for this position")
    output = found[layer]
    if not isinstance(output, Tensor):
        inner = [name for name, _ in module.named_children()]
        raise BadRequest(f"layer {layer!r} gives no single tensor; ask for one inside it: {', '.join(inner)}")
    result: NDArray[np.float32] = output[0].float().cpu().numpy()
    return result


def filters(network: Network, layer: str) -> NDArray[np.float32]:
    """The weights of one named layer: [out, in, kH, kW] of a convolution, [out, in] of a linear layer.

    Raises:
        BadRequest: no layer of that name, or one without weights (the message has those inside it).
    """
    module = _find(network, layer)
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim < 2:
        inner = [f"{layer}.{name.removesuffix('.weight')}" for name, one in module.named_parameters() if one.ndim > 1]
        inside = f"; inside it {', '.join(inner[:_NAMES_SHOWN])}" if inner else ""
        raise BadRequest(f"layer {layer!r} has no filters{inside}")
    result: NDArray[np.float32] = weight.detach().float().cpu().numpy()
    return result


def layer_outputs(network: Network, batch: Batch, modules: Mapping[str, nn.Module]) -> dict[str, object]:
    """What each of these modules gives for an encoded batch, as it gives it; those not gone through are left out."""
    outputs: dict[str, object] = {}
    hooks = []
    for name, module in modules.items():

        def keep(_module: nn.Module, _inputs: object, output: object, name: str = name) -> None:
            outputs.setdefault(name, output)

        hooks.append(module.register_forward_hook(keep))
    try:
        with evaluating(network), torch.inference_mode():
            device = next(network.parameters()).device
            network(*(tensor.to(device) for tensor in as_tensors(network, batch.inputs)))
    finally:
        for hook in hooks:
            hook.remove()
    return outputs


def _find(network: Network, layer: str) -> nn.Module:
    """The module of that name; "" is the network itself and no layer."""
    modules: dict[str, nn.Module] = dict(network.named_modules())
    if layer and layer in modules:
        return modules[layer]
    names = [name for name in modules if name]
    close = difflib.get_close_matches(layer, names, n=_NAMES_SHOWN, cutoff=0.4) or names[:_NAMES_SHOWN]
    raise BadRequest(f"this network has no layer {layer!r}; it has {len(names)}, among them {', '.join(close)}")
