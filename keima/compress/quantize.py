"""Networks in int8: convolutions whose inputs and weights are whole numbers of steps, fitted to answer as in float.

Layer by layer, in the order of evaluation:

- Each input channel gets a step of its own, or one nearer to the others' where that leaves the weights, which must make
  up for it, more precise; and the largest inputs are cut off: whatever errs least in what the layer writes.
- Least squares find the weights with which the layer, reading what the quantized layers before it write, comes nearest
  to what it writes in float, as in `keima.compress.refit`. They are rounded input by input, and what each loses is made
  up for by those still to come (Frantar et al. 2023, "GPTQ", arXiv:2210.17323).

The convolution that reads the planes stays in float, and so does what costs little. `train` may teach the whole: its
teacher is the float network, and gradients pass the rounding (Bengio et al. 2013, arXiv:1308.3432). After that, in
`near_enough`, those that do the most harm for what they save go back to float, until the policy is near that of float.
"""

from __future__ import annotations

import copy
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.compress.prune import divergence
from keima.compress.refit import Inputs, Moments, Sample, watching
from keima.errors import BadRequest, UnsupportedNetwork
from keima.systems.layers import (
    INPUT_LEVELS,
    PAIR_LEVELS,
    WEIGHT_LEVELS,
    QuantizedConvolution,
    digest,
    quantized,
    with_layers,
)
from keima.systems.network import Network, Quantization

LIMIT = 1e-3
"""KL divergence of the policy from the float network's, in nats, that is near enough."""
LEAST = 0.125
"""A convolution with less of the multiplications of the costliest one in int8 stays in float."""
MOST_FLOAT = 0.25
"""At most this share of the multiplications goes back to float."""
DAMPING = 1e-2
"""Added to the inputs' second moments before they are inverted, as a share of their mean."""
LEARNING_RATE = 0.02
"""Of Adam, in steps of a weight."""
BIAS_RATE = 1e-4
"""Of the biases."""

_OWN_STEPS = (1.0, 0.75, 0.5)
_CUTS = (1.0, 0.85, 0.7, 0.55)
_ROOM = (1.0, 1.25, 1.5, 1.8)
_SEARCHED = 4096  # samples that steps are chosen on
_TOGETHER = 128  # inputs whose losses are made up for at once

Layers: TypeAlias = Mapping[str, Mapping[str, Tensor]]
Tell: TypeAlias = Callable[[str], None]


@torch.no_grad()
def quantize(network: Network, batches: Sequence[Inputs], tell: Tell = lambda words: None) -> Network:
    """A copy of the network with a `quantization`, in evaluation mode; its weights are the same.

    Args:
        batches: the network's inputs by name, `mask` among them where boards are padded: about 1,000 positions.
        tell: hears what is being done.

    Raises:
        UnsupportedNetwork: a network without convolutions in its middle.
        BadRequest: boards of several sizes, which the network does not take together.
    """
    original, every = copy.deepcopy(network).eval(), _together(network, batches)
    costs = _worth(_costs(original, batches[0]))
    if not costs:
        raise UnsupportedNetwork(f"{network.pedigree.name} has no convolutions to quantize")
    samples = [Sample.of(inputs, number) for number, inputs in enumerate(batches)]
    sizes = [len(inputs["planes"]) for inputs in batches]

    def sampled(x: Tensor, kernel: int = 1) -> Tensor:
        parts = zip(samples, torch.split(x, sizes), strict=True)
        return torch.cat([sample.of_map(part, kernel) for sample, part in parts])

    wanted: dict[str, Tensor] = {}
    with watching(original, costs, lambda name, _read, written: wanted.update({name: sampled(written)})):
        original(**every)
    layers: dict[str, Mapping[str, Tensor]] = {}
    started = time.monotonic()

    def fit(name: str, x: Tensor) -> QuantizedConvolution:
        number, module = len(layers), _convolution(original, name)
        left = f", {(time.monotonic() - started) / number * (len(costs) - number):.0f} s left" if number else ""
        tell(f"int8: convolution {number + 1} of {len(costs)}{left}")
        layers[name] = _fitted(module, sampled(x, module.kernel_size[0]), wanted.pop(name))
        return QuantizedConvolution(module, layers[name])

    now = copy.deepcopy(original)
    for name in costs:
        now.set_submodule(name, _Unfitted(partial(fit, name)))
    now(**every)
    return _holding(network, layers)


def _together(network: Network, batches: Sequence[Inputs]) -> Inputs:
    """All positions as one batch; smaller boards stand in the top left corners of their planes, with a mask."""
    shapes = [inputs["planes"].shape[2:] for inputs in batches]
    height, width = (max(sizes) for sizes in zip(*shapes, strict=True))
    masked = len({*shapes}) > 1 or any("mask" in inputs for inputs in batches)
    if masked and not network.encoding.masked:
        raise BadRequest("takes boards of one size at a time: quantize on those", source=network.pedigree.name)
    parts = []
    for inputs, (h, w) in zip(batches, shapes, strict=True):
        edge = (0, width - w, 0, height - h)
        part = {**inputs, "planes": F.pad(inputs["planes"], edge)}
        if masked:
            here = inputs.get("mask", torch.ones(1, 1, 1)).expand(len(inputs["planes"]), h, w)
            part["mask"] = F.pad(here, edge)
        parts.append(part)
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


class _Unfitted(nn.Module):
    """Stands where a convolution will be in int8: made when its input comes, as quantized layers before it write it."""

    def __init__(self, fit: Callable[[Tensor], QuantizedConvolution]) -> None:
        super().__init__()
        self._fit = fit

    def forward(self, x: Tensor) -> Tensor:
        """[N, I, H, W] of all positions → [N, O, H, W]."""
        written: Tensor = self._fit(x)(x)
        return written


def _holding(network: Network, layers: Layers) -> Network:
    """A copy of the network in evaluation mode with these int8 numbers."""
    found = copy.deepcopy(network).eval()
    found.quantization = Quantization(layers, digest(network))
    return found


def train(network: Network, batches: Iterable[Inputs], seconds: float, tell: Tell = lambda words: None) -> Network:
    """A copy of a quantized network whose int8 weights have learned, for so long, to answer as the float network.

    Loss: the policy's KL divergence, and the squared errors of all other outputs, each over its variance.

    Args:
        batches: inputs by name, as many as are asked for; positions that nothing is measured on.
        tell: hears how far it is.

    Raises:
        BadRequest: the network is not quantized.
    """
    teacher, student = copy.deepcopy(network).eval(), quantized(network)
    parts = {name: part for name, part in student.named_modules() if isinstance(part, QuantizedConvolution)}
    student.requires_grad_(False)
    for part in parts.values():
        part.requires_grad_(True)
    learned = [parameter for part in parts.values() for parameter in (part.weight, part.bias)]
    groups = [{"params": [part.weight for part in parts.values()]}, {"params": [part.bias for part in parts.values()]}]
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.99))
    scales: dict[str, Tensor] = {}
    started = told = time.monotonic()
    for step, inputs in enumerate(batches):
        spent = time.monotonic() - started
        if spent >= seconds:
            break
        for group, rate in zip(optimizer.param_groups, (LEARNING_RATE, BIAS_RATE), strict=True):
            group["lr"] = rate * min(1.0, (step + 1) / 20) * (1 - spent / seconds)
        with torch.no_grad():
            wanted = teacher(**inputs)
        found = student(**inputs)
        loss = _distance(network, found, wanted, scales)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        for part in parts.values():
            part.restrain()
        if time.monotonic() - told > 10:
            told = time.monotonic()
            tell(f"int8: step {step + 1}, loss {float(loss.detach()):.5f}, {seconds - spent:.0f} s left")
    return _holding(network, {name: part.layer() for name, part in parts.items()})


def _distance(network: Network, found: object, wanted: object, scales: dict[str, Tensor]) -> Tensor:
    """How far one output is from another."""
    total = torch.zeros(())
    for name in network.output_names:
        ours, theirs = getattr(found, name), getattr(wanted, name)
        if name == "policy":
            total = total + divergence(theirs.log_softmax(-1), ours.log_softmax(-1)).mean()
        else:
            scale = scales.setdefault(name, theirs.var(0, keepdim=True).mean().clamp(min=1e-6))
            total = total + (ours - theirs).square().mean() / scale
    return total


# --- Which convolutions -----------------------------------------------------------------------------------------------


def _convolution(network: Network, name: str) -> nn.Conv2d:
    module = network.get_submodule(name)
    assert isinstance(module, nn.Conv2d)
    return module


def _costs(network: Network, inputs: Inputs) -> dict[str, int]:
    """Multiplications a position of each convolution that can be in int8, by name, in the order of evaluation."""
    modules = {name: part for name, part in network.named_modules() if isinstance(part, nn.Conv2d)}
    costs: dict[str, int] = {}
    calls: Counter[str] = Counter()

    def see(name: str, _read: Tensor, written: Tensor) -> None:
        calls[name] += 1
        costs[name] = modules[name].weight.numel() * written[0, 0].numel()

    with watching(network, modules, see):
        network(**inputs)
    first = next(iter(costs), "")
    return {
        name: cost for name, cost in costs.items() if name != first and calls[name] == 1 and modules[name].groups == 1
    }


def _worth(costs: Mapping[str, int]) -> dict[str, int]:
    """Those that are worth quantizing."""
    least = LEAST * max(costs.values(), default=0)
    return {name: cost for name, cost in costs.items() if cost >= least}


@torch.no_grad()
def near_enough(
    network: Network, batches: Sequence[Inputs], limit: float = LIMIT, tell: Tell = lambda words: None
) -> Network:
    """A quantized network, or a copy without those of its int8 layers that do most harm for what they save.

    Args:
        batches: the network's inputs by name, of positions that it was neither fitted nor trained on.
        limit: KL divergence of the policy from the float network's at which no more goes back to float.
        tell: hears what is being done.

    Raises:
        BadRequest: the network is not quantized.
    """
    original = copy.deepcopy(network).eval()
    wanted = [_policy(original, inputs) for inputs in batches]

    def apart(model: Network) -> float:
        pairs = zip(batches, wanted, strict=True)
        return float(torch.cat([divergence(target, _policy(model, inputs)) for inputs, target in pairs]).mean())

    def without(name: str) -> Layers:
        return {other: each for other, each in layers.items() if other != name}

    now = apart(quantized(network))
    assert network.quantization is not None
    layers: Layers = network.quantization.layers
    tell(f"int8: KL {now:.5f} with all of {len(layers)} convolutions")
    if now <= limit:
        return network
    gains, costs = {}, _costs(original, batches[0])
    for number, name in enumerate(layers):
        tell(f"int8: measuring convolution {number + 1} of {len(layers)}")
        gains[name] = (now - apart(with_layers(original, without(name)))) / costs[name]
    room = MOST_FLOAT * sum(_worth(costs).values())
    for name in sorted(gains, key=lambda name: -gains[name]):
        if now <= limit or gains[name] <= 0:
            break
        if costs[name] > room:
            continue
        room -= costs[name]
        layers = without(name)
        now = apart(with_layers(original, layers))
        tell(f"int8: KL {now:.5f} with {name} in float")
    return _holding(network, layers)


def _policy(network: Network, inputs: Inputs) -> Tensor:
    return network(**inputs).policy.log_softmax(-1)  # type: ignore[no-any-return]


# --- One layer --------------------------------------------------------------------------------------------------------


def _fitted(module: nn.Conv2d, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The int8 numbers of a convolution that reads x [S, I · k²] and should write y [S, O]."""
    taps = module.kernel_size[0] ** 2
    scale, zero = _input_scale(x, module.weight.flatten(1), taps)
    wide = scale.repeat_interleave(taps)
    steps, weight = _in_steps(x, wide, zero), module.weight.flatten(1) * wide
    moments = Moments()
    moments.add(steps, y - steps @ weight.T)
    rounded, step = _rounded(weight + moments.least_squares(), moments.covariances()[0], taps)
    mean, error = moments.means()
    return {
        "weight": rounded.to(torch.int8).reshape(module.weight.shape),
        "scale": step.float(),
        "input_scale": scale,
        "input_zero": torch.tensor([zero], dtype=torch.uint8),
        "bias": (error - (rounded * step[:, None] - weight) @ mean).float(),
    }


def _in_steps(x: Tensor, scale: Tensor, zero: int) -> Tensor:
    """Inputs as whole steps from 0, cut off where int8 ends."""
    return ((x / scale).round() + zero).clamp(0, INPUT_LEVELS) - zero


def _input_scale(x: Tensor, weight: Tensor, taps: int) -> tuple[Tensor, int]:
    """The step of each input channel [I], and how many steps lie below 0."""
    channels = x.reshape(len(x), -1, taps)
    high, low = channels.amax((0, 2)).clamp(min=0), channels.amin((0, 2)).clamp(max=0)
    part = x[:: max(1, len(x) // _SEARCHED)]
    exact = part @ weight.T
    below = (-low / (high - low).clamp(min=1e-9)).quantile(torch.tensor([0.5, 0.9]))
    best, chosen = math.inf, (high, 0)
    for zero in {min(round(INPUT_LEVELS * float(share)), INPUT_LEVELS - 1) for share in below}:
        own = torch.maximum(high / (INPUT_LEVELS - zero), -low / zero if zero else high * 0)
        largest = own.max().clamp(min=1e-9)
        for power in _OWN_STEPS:
            for cut in _CUTS:
                scale = cut * largest * (own / largest).clamp(min=1e-4) ** power
                wide = scale.repeat_interleave(taps)
                scaled = weight * wide
                step = scaled.abs().amax(1, keepdim=True).clamp(min=1e-12) / WEIGHT_LEVELS
                written = _in_steps(part, wide, zero) @ ((scaled / step).round() * step).T
                error = float((written - exact).square().mean())
                if error < best:
                    best, chosen = error, (scale, zero)
    return chosen


def _rounded(wanted: Tensor, moments: Tensor, taps: int) -> tuple[Tensor, Tensor]:
    """Whole numbers [O, F] and their steps [O], float64, near weights [O, F] for inputs of these moments [F, F].

    Each output has the step, of some, that errs least: what is made up for makes weights larger, and needs room.
    """
    largest = wanted.abs().amax(1).clamp(min=1e-12) / WEIGHT_LEVELS
    best = torch.full_like(largest, torch.inf)
    chosen, steps = torch.zeros_like(wanted), largest.clone()
    damping = DAMPING * moments.diagonal().mean().clamp(min=1e-12)
    damped = moments + damping * torch.eye(len(moments), dtype=moments.dtype)
    order = damped.diagonal().argsort(descending=True)
    upper = torch.linalg.cholesky(torch.linalg.inv(damped[order][:, order]), upper=True)
    for room in _ROOM:
        step = room * largest
        whole = _made_up_for(wanted / step[:, None], order, upper, taps)
        lost = whole * step[:, None] - wanted
        error = ((lost @ moments) * lost).sum(1)
        better = error < best
        best, steps = torch.where(better, error, best), torch.where(better, step, steps)
        chosen = torch.where(better[:, None], whole, chosen)
    return chosen, steps


def _made_up_for(wanted: Tensor, order: Tensor, upper: Tensor, taps: int) -> Tensor:
    """Weights [O, F] in steps, rounded one input after the other; what each loses, those still to come make up for.

    `order` [F] is that of the inputs, `upper` [F, F] in that order Cholesky's root of their inverse second moments.
    """
    size, place = len(order), order.argsort()
    weight = wanted[:, order]
    rounded = torch.zeros_like(weight)
    for start in range(0, size, _TOGETHER):
        end = min(start + _TOGETHER, size)
        lost = torch.empty(len(weight), end - start, dtype=weight.dtype)
        for column in range(start, end):
            channel, tap = divmod(int(order[column]), taps)
            neighbour = (channel ^ 1) * taps + tap
            room = torch.full_like(weight[:, 0], WEIGHT_LEVELS)
            if neighbour < size:
                other = int(place[neighbour])
                mine, theirs = (weight[:, k].abs().clamp(max=WEIGHT_LEVELS) for k in (column, other))
                over = (mine + theirs - PAIR_LEVELS).clamp(min=0)
                if other < column:
                    room = room.minimum(PAIR_LEVELS - rounded[:, other].abs())
                else:
                    room = torch.where(over > 0, (mine - over / 2).floor(), room)
            rounded[:, column] = weight[:, column].round().clamp(-room, room)
            error = (weight[:, column] - rounded[:, column]) / upper[column, column]
            weight[:, column + 1 : end] -= torch.outer(error, upper[column, column + 1 : end])
            lost[:, column - start] = error
        weight[:, end:] -= lost @ upper[start:end, end:]
    return rounded[:, place]
