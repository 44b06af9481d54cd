"""Batch norm folded into the convolutions before it: the same answers from a smaller, faster network.

In evaluation, batch norm multiplies each channel by γ / √(var + ε) and adds β − mean · γ / √(var + ε) (Ioffe & Szegedy,
arXiv:1502.03167, §3.1). Where its input is exactly one convolution's output, both go into that convolution's weights
and bias. Where it is not, as at the start of a pre-activation block, whose sum feeds the skip connection as well, it
stays; KataGo's own norms are then merged to one scale and one bias a channel.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from keima.errors import UnsupportedNetwork
from keima.networks.katago import KataGoNetwork, NormAct, PolicyHead, PoolingBlock, ResidualBlock, ValueHead
from keima.networks.katago_config import (
    BlockConfig,
    BottleneckConfig,
    KataGoConfig,
    NormConfig,
    PoolingConfig,
    ResidualConfig,
    RmsConfig,
)
from keima.networks.lc0 import Lc0Network
from keima.networks.network import Network

FOLDED_EPSILON = 1e-20
"""What KataGo writes as epsilon where the variance is already merged."""


def fold(network: Network) -> Network:
    """A copy of the network without the batch norms that can be folded into convolutions; answers equal to 1e-5.

    The copy is for evaluation: training it further would not be the same as training the original. KataGo and Lc0
    networks can be written in their own formats afterwards (both formats hold folded networks). On others `folded`
    maps the name of each norm that is gone to the convolution that took it over.

    Args:
        network: any network; left as it is.

    Raises:
        UnsupportedNetwork: a network with inputs that are not in its encoding.
    """
    if isinstance(network, KataGoNetwork):
        return _fold_katago(network)
    folded = copy.deepcopy(network).eval()
    pairs = _convolutions_before_norms(folded)
    for norm_name, convolution_name in pairs.items():
        norm = folded.get_submodule(norm_name)
        convolution = folded.get_submodule(convolution_name)
        assert isinstance(norm, nn.BatchNorm2d)
        assert isinstance(convolution, nn.Conv2d)
        _absorb(convolution, norm)
        folded.set_submodule(norm_name, nn.Identity())
    if isinstance(folded, Lc0Network):
        folded.config = replace(folded.config, batch_norm=())
    folded.folded = pairs  # type: ignore[assignment]  # a record beside the modules, as `config` is
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


# --- Which norm reads which convolution -------------------------------------------------------------------------------


class _Readers(TorchDispatchMode):
    """Counts how many operations read each tensor; keeps them all alive, so that identities stay distinct."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[int] = Counter()
        self._alive: list[Any] = []

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
            network(*_blank_inputs(network))
    finally:
        for hook in hooks:
            hook.remove()
    return {
        norm: written[read]
        for norm, read in norm_reads.items()
        if read in written and readers.count[read] == 1 and calls[norm] == calls[written[read]] == 1
    }


def _blank_inputs(network: Network) -> list[Tensor]:
    """Zeros in the shapes of one position."""
    encoding = network.encoding
    size = 8 if encoding.game == "chess" else getattr(encoding, "board_size", None) or 19
    shapes = {"planes": (1, encoding.planes, size, size), "globals": (1, encoding.globals)}
    unknown = [name for name in network.input_names if name not in shapes]
    if unknown:
        raise UnsupportedNetwork(f"cannot fold a network with inputs {', '.join(unknown)}; known are planes, globals")
    return [torch.zeros(shapes[name]) for name in network.input_names]


# --- KataGo -----------------------------------------------------------------------------------------------------------


def _fold_katago(network: KataGoNetwork) -> KataGoNetwork:
    """The network of the folded config, with the folded weights."""
    with torch.device("meta"):
        folded = KataGoNetwork(_fold_config(network.config), network.pedigree)
    folded.load_state_dict(_fold_weights(network), strict=True, assign=True)
    return folded.eval()


def _fold_config(config: KataGoConfig) -> KataGoConfig:
    return replace(
        config,
        blocks=tuple(_fold_block(block) for block in config.blocks),
        tip=config.tip if isinstance(config.tip, RmsConfig) else _merged(config.tip),
        policy=replace(config.policy, pool=_taken(config.policy.pool), board=_taken(config.policy.board)),
        value=replace(config.value, norm=_taken(config.value.norm)),
    )


def _fold_block(block: BlockConfig) -> BlockConfig:
    match block:
        case ResidualConfig():
            return replace(block, first=_merged(block.first), second=_taken(block.second))
        case PoolingConfig():
            return replace(block, first=_merged(block.first), pool=_taken(block.pool), second=_taken(block.second))
        case BottleneckConfig():
            inner = tuple(_fold_block(one) for one in block.blocks)
            return replace(block, blocks=inner, first=_merged(block.first), last=_merged(block.last))
        case _:
            return block


def _merged(norm: NormConfig) -> NormConfig:
    """The norm with its statistics merged into scale and bias."""
    if not norm.statistics:
        return norm
    return replace(norm, scale=True, bias=True, statistics=False, epsilon=FOLDED_EPSILON)


def _taken(norm: NormConfig) -> NormConfig:
    """The norm whose scale a convolution has taken over."""
    return replace(_merged(norm), scale=False)


def _fold_weights(network: KataGoNetwork) -> dict[str, Tensor]:
    """The weights of the folded network by name, computed in float64."""
    weights = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
    writers = dict(_norms_after_linear_layers(network))
    for name, norm in network.named_modules():
        if not isinstance(norm, NormAct):
            continue
        scale, bias = _scale_and_bias(norm)
        for gone in ("weight", "running_mean", "running_var"):
            weights.pop(f"{name}.{gone}", None)
        if bias is not None:
            weights[f"{name}.bias"] = bias.float()
        if scale is None:
            continue
        for layer in writers.get(name, ()):
            weight = weights[f"{layer}.weight"]
            weights[f"{layer}.weight"] = (weight.double() * scale.reshape(-1, *[1] * (weight.ndim - 1))).float()
        if name not in writers:
            weights[f"{name}.weight"] = scale.float()
    return weights


def _scale_and_bias(norm: NormAct) -> tuple[Tensor | None, Tensor | None]:
    """What the norm multiplies by and adds in evaluation, float64 [C]; None for 1 and 0."""
    exact = copy.deepcopy(norm).double()
    scale, bias = exact.merged()
    return None if scale is None else scale.detach(), None if bias is None else bias.detach()


def _norms_after_linear_layers(network: KataGoNetwork) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of norms that read nothing but linear layers' (summed) outputs, with the names of those layers."""
    for name, module in network.named_modules():
        match module:
            case ResidualBlock():
                yield f"{name}.norm2", (f"{name}.conv1",)
            case PoolingBlock():
                yield f"{name}.pool_norm", (f"{name}.pool_conv",)
                yield f"{name}.norm2", (f"{name}.conv1", f"{name}.pool_linear")
            case PolicyHead():
                yield f"{name}.pool_norm", (f"{name}.pool_conv",)
                yield f"{name}.norm", (f"{name}.conv", f"{name}.pool_linear")
            case ValueHead():
                yield f"{name}.norm", (f"{name}.conv",)
