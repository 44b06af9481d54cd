"""Batch norm folded into the convolutions before it: the same answers from a smaller, faster network.

In evaluation, batch norm multiplies each channel by γ / √(var + ε) and adds β − mean · γ / √(var + ε) (Ioffe & Szegedy,
arXiv:1502.03167, §3.1). Where its input is exactly one convolution's output, both go into that convolution's weights
and bias. Where it is not, as at the start of a pre-activation block, whose sum feeds the skip connection as well, it
stays; KataGo's own norms are then merged to one scale and one bias a channel.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from keima.systems.network import Network
from keima.systems.registry import example_inputs
from keima.systems.system import system_of


def fold(network: Network) -> Network:
    """A copy of the network without the batch norms that can be folded into convolutions; answers equal to 1e-5.

    The copy is for evaluation: training it further would not be the same as training the original. KataGo and Lc0
    networks can be written in their own formats afterwards (both formats hold folded networks). On others `folded`
    maps the name of each norm that is gone to the convolution that took it over.
    """
    layout = system_of(network).layout
    if layout is not None and (own := layout.fold(network)) is not None:
        return own
    folded = copy.deepcopy(network).eval()
    pairs = _convolutions_before_norms(folded)
    for norm_name, convolution_name in pairs.items():
        norm = folded.get_submodule(norm_name)
        convolution = folded.get_submodule(convolution_name)
        assert isinstance(norm, nn.BatchNorm2d)
        assert isinstance(convolution, nn.Conv2d)
        _absorb(convolution, norm)
        folded.set_submodule(norm_name, nn.Identity())
    if layout is not None:
        layout.after_folding(folded)
    folded.folded, folded.quantization = pairs, None
    return folded


@torch.no_grad()
def _absorb(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    """Give the convolution the norm's scale and shift, computed in float64."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = torch.rsqrt(norm.running_var.double() + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight.double()
    before = 0.0 if convolution.bias is None else convolution.bias.double()
    bias = (before - norm.running_mean.double()) * scale
    if norm.bias is not None:
        bias = bias + norm.bias.double()
    dtype = convolution.weight.dtype
    convolution.weight.copy_((convolution.weight.double() * scale[:, None, None, None]).to(dtype))
    convolution.bias = nn.Parameter(bias.to(dtype))


class _Readers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts how many operations read each tensor; keeps them all alive, so that identities stay distinct."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count: Counter[int] = Counter()
        self._alive: list[object] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        read = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self.count.update(id(tensor) for tensor in read)
        self._alive += [*read, result]
        return result


@torch.no_grad()
def _convolutions_before_norms(network: Network) -> dict[str, str]:
    """Names norm → convolution wherever the norm, and nothing else, reads what the convolution wrote.

    Found by watching one evaluation, so it holds for any architecture. Layers used twice are left alone.
    """
    calls: Counter[str] = Counter()
    written: dict[int, str] = {}
    norm_reads: dict[str, int] = {}
    hooks = []
    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d | nn.BatchNorm2d):

            def watch(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor, name: str = name) -> None:
                calls[name] += 1
                if isinstance(module, nn.Conv2d):
                    written[id(output)] = name
                elif module.track_running_stats:
                    norm_reads[name] = id(inputs[0])

            hooks.append(module.register_forward_hook(watch))
    try:
        with _Readers() as readers:
            network(**example_inputs(network))
    finally:
        for hook in hooks:
            hook.remove()
    return {
        norm: written[read]
        for norm, read in norm_reads.items()
        if read in written and readers.count[read] == 1 and calls[norm] == calls[written[read]] == 1
    }
