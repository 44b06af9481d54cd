"""Weights fitted anew after channels were cut: each layer computes from what is left what it computed from all.

He, Zhang & Sun 2017, "Channel Pruning for Accelerating Very Deep Neural Networks" (arXiv:1707.06168), §3.1–3.3; Luo, Wu
& Lin 2017, "ThiNet" (arXiv:1707.06342). Layer by layer in the order of evaluation, ordinary least squares find the
weights with which the layer, reading what the pruned network now gives it, comes nearest to what it wrote in the
original. The last layer of a residual block also makes up for what its block's input has lost. Points of the board are
drawn at random, a few from each position. Letters: S samples, C channels, F inputs of one output (C · kernel²), O
outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from keima.errors import BadRequest, UnsupportedNetwork
from keima.systems.layout import Layer, Layout, SystemLayout
from keima.systems.network import Network
from keima.systems.system import SYSTEMS, system_of

Inputs = Mapping[str, Tensor]
State = tuple[Any, ...]
"""What a block takes: its input [N, C, H, W], and whatever comes along unchanged (KataGo: the boards)."""

POINTS = 32
"""Points looked at in each position."""
RIDGE = 1e-3
"""What changing a weight costs, as a share of its inputs' mean variance: what the samples do not settle stays."""
_SMALLEST_SCALE = 1e-6


@dataclass(frozen=True)
class Sample:
    """The points of one batch at which activations are looked at.

    Attributes:
        rows, columns: int64 [P].
        on_board: bool [N · P], which of them are on their boards; None for all.
    """

    rows: Tensor
    columns: Tensor
    on_board: Tensor | None

    @staticmethod
    def of(inputs: Inputs, number: int) -> Sample:
        """Points for batch `number`, always the same ones."""
        height, width = inputs["planes"].shape[2:]
        chosen = torch.randperm(height * width, generator=torch.Generator().manual_seed(number))[:POINTS]
        rows, columns = chosen // width, chosen % width
        mask = inputs.get("mask")
        on_board = None if mask is None else mask.reshape(-1, height, width)[:, rows, columns].flatten() > 0
        return Sample(rows, columns, on_board)

    def of_map(self, x: Tensor, kernel: int = 1) -> Tensor:
        """[N, C, H, W] → [S, C · kernel²]: the square around each point, in the order of a convolution's weights.

        Vectors [N, C] and tokens [N, T, C] are samples as they are.
        """
        if x.ndim < 4:
            return x.reshape(-1, x.shape[-1])
        x = F.pad(x, [kernel // 2] * 4)
        steps = range(kernel)
        shifted = [x[:, :, self.rows + down, self.columns + right] for down in steps for right in steps]
        rows = torch.stack(shifted, dim=-1).transpose(1, 2).flatten(0, 1).flatten(1)
        return rows if self.on_board is None else rows[self.on_board]


class Moments:
    """Sums over samples, float64: enough for means, covariances and least squares."""

    def __init__(self) -> None:
        self.count = 0
        self._sums: tuple[Tensor, ...] = (torch.zeros(()),) * 4

    def add(self, x: Tensor, y: Tensor) -> None:
        """Take in inputs [S, F] and targets [S, O]."""
        self.count += len(x)
        new = (x.sum(0), y.sum(0), x.T @ x, x.T @ y)
        self._sums = tuple(old + part.double() for old, part in zip(self._sums, new, strict=True))

    def means(self) -> tuple[Tensor, Tensor]:
        """[F], [O]."""
        return self._sums[0] / self.count, self._sums[1] / self.count

    def covariances(self, centred: bool = True) -> tuple[Tensor, Tensor]:
        """[F, F] of the inputs and [F, O] of inputs with targets; second moments where not `centred`."""
        square, cross = self._sums[2] / self.count, self._sums[3] / self.count
        if not centred:
            return square, cross
        x, y = self.means()
        return square - torch.outer(x, x), cross - torch.outer(x, y)

    def least_squares(self, centred: bool = True) -> Tensor:
        """Weights [O, F] that give the targets best; small ones where the samples settle little."""
        square, cross = self.covariances(centred)
        ridge = RIDGE * float(square.diagonal().mean())
        if ridge <= 0:
            return torch.zeros_like(cross.T)
        solved: Tensor = torch.linalg.solve(square + ridge * torch.eye(len(square), dtype=square.dtype), cross)
        return solved.T


def scale_of(network: Network, norm: str | None) -> Tensor | None:
    """What a norm multiplies its channels by in evaluation, [C]; None for 1, and where there is no norm."""
    return layout_of(network).scale(network.get_submodule(norm)) if norm else None


# --- One part of the network after the other --------------------------------------------------------------------------


@torch.no_grad()
def refit(
    original: Network,
    pruned: Network,
    layout: Layout,
    kept: Mapping[str, Tensor],
    batches: Sequence[Inputs],
    tell: Callable[[str], None],
) -> None:
    """Fit the layers of the pruned network that read fewer channels than before, in place; both in evaluation mode.

    Args:
        original, pruned: the whole network, and what was cut from it.
        layout: of the original, with the blocks that are kept.
        kept: group → the original's channels that are left, int64.
        batches: `forward`'s arguments by name; a few thousand positions in all.
        tell: hears what is being done.
    """
    _Refit(original, pruned, layout, kept, batches).run(tell)


@dataclass
class _Refit:
    """Walks both networks block by block, and keeps what each has computed so far for every batch."""

    original: Network
    pruned: Network
    layout: Layout
    kept: Mapping[str, Tensor]
    batches: Sequence[Inputs]

    def __post_init__(self) -> None:
        self.samples = [Sample.of(inputs, number) for number, inputs in enumerate(self.batches)]
        self.before = [_first(self.original, inputs) for inputs in self.batches]
        self.now = [_first(self.pruned, inputs) for inputs in self.batches]

    def run(self, tell: Callable[[str], None]) -> None:
        """Block by block, then the heads; what a block that is left out did falls to the layers around it."""
        count = len(blocks_of(self.original))
        for number in range(count):
            tell(f"fitting the weights: block {number + 1} of {count}")
            name = f"{self.layout.prefix}{number}"
            layers = self.layout.blocks.get(number, ())
            targets = self._record(name, layers)
            renamed = self.layout.renamed(name)
            if renamed is not None:
                self._fit_part(renamed, layers, targets)
                self.now = [_run(self.pruned, renamed, state) for state in self.now]
        tell("fitting the weights: heads")
        self._fit_part(None, self.layout.heads, self._record(None, self.layout.heads))

    def _record(self, part: str | None, layers: Sequence[Layer]) -> list[dict[str, Tensor]]:
        """Samples of what these layers of the original write, and their skips take in; moves it past the part."""
        skips = {layer.skip for layer in layers if layer.skip}
        found: dict[str, Tensor] = {}
        records = []
        for index, sample in enumerate(self.samples):

            def see(name: str, taken: Tensor, written: Tensor, sample: Sample = sample) -> None:
                found[name] = sample.of_map(taken if name in skips else written)

            with watching(self.original, [*skips, *(layer.name for layer in layers)], see):
                self.before[index] = _run(self.original, part, self.before[index])
            records.append(dict(found))
        return records

    def _fit_part(self, part: str | None, layers: Sequence[Layer], targets: Sequence[Mapping[str, Tensor]]) -> None:
        for layer in layers:
            if layer.reads:
                moments = Moments()
                for state, sample, target in zip(self.now, self.samples, targets, strict=True):
                    moments.add(*self._inputs_and_errors(part, layer, state, sample, target))
                self._change(layer, moments)

    def _inputs_and_errors(
        self, part: str | None, layer: Layer, state: State, sample: Sample, target: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """[S, F]: what the layer reads; [S, O]: what it should write beyond what it does."""
        module = _layer(self.pruned, self._new(layer.name))
        skip = [self.pruned.get_submodule(self._new(layer.skip))] if layer.skip else []
        (*skipped, (read, *_)) = taken([*skip, module], partial(_run, self.pruned, part, state))
        x = sample.of_map(read, module.kernel_size[0] if isinstance(module, nn.Conv2d) else 1)
        rows = slice(None) if layer.writes is None else self.kept[layer.writes]
        wanted = target[layer.name][:, rows]
        if layer.skip:
            lost = target[layer.skip][:, rows] - sample.of_map(skipped[0][0])
            scale = scale_of(self.pruned, self._new(layer.after))
            if scale is not None:  # nothing is to be made up for in channels that it switches off
                lost = lost / torch.where(scale.abs() < _SMALLEST_SCALE, torch.inf, scale)
            wanted = wanted + lost
        written = x @ module.weight.flatten(1).T
        return x, wanted - (written if module.bias is None else written + module.bias)

    def _change(self, layer: Layer, moments: Moments) -> None:
        """Change the layer's weights for the better, and its bias, or else the offset of the norm behind it."""
        module = _layer(self.pruned, self._new(layer.name))
        norm = self.pruned.get_submodule(self._new(layer.offset)) if layer.offset else None
        shifts = norm is not None and (getattr(norm, "running_mean", None) is not None or norm.bias is not None)
        centred = module.bias is not None or shifts
        change = moments.least_squares(centred)
        module.weight.add_(change.reshape(module.weight.shape))
        if centred:
            x, error = moments.means()
            constant = (error - change @ x).float()
            if module.bias is not None:
                module.bias.add_(constant)
            else:
                _shift(norm, constant)

    def _new(self, name: str | None) -> str:
        """The name in the pruned network; empty for None."""
        return (name and self.layout.renamed(name)) or ""


def _layer(network: Network, name: str) -> nn.Conv2d | nn.Linear:
    module = network.get_submodule(name)
    assert isinstance(module, nn.Conv2d | nn.Linear)
    return module


def _shift(norm: Any, constant: Tensor) -> None:
    """Let a norm treat its input as if a constant [C] were added to it."""
    if getattr(norm, "running_mean", None) is not None:
        norm.running_mean.sub_(constant)
    else:
        norm.bias.add_(constant if norm.weight is None else constant * norm.weight)


# --- Parts of an evaluation -------------------------------------------------------------------------------------------


class _EnoughError(Exception):
    """Ends an evaluation whose rest is not needed."""


def _first(network: Network, inputs: Inputs) -> State:
    """What the first block takes."""
    return taken([blocks_of(network)[0]], partial(network, **inputs))[0]


def _run(network: Network, part: str | None, state: State) -> State:
    """What the next block takes, after the block of that name; for None the heads are evaluated."""
    x, *along = state
    if part is not None:
        return (network.get_submodule(part)(x, *along), *along)
    layout_of(network).run_heads(network, x, *along)
    return state


@contextmanager
def watching(network: Network, names: Iterable[str], see: Callable[[str, Tensor, Tensor], None]) -> Iterator[None]:
    """Calls `see(name, input, output)` after each of these modules has run."""

    def hook(name: str) -> Callable[[nn.Module, State, Tensor], None]:
        return lambda _module, inputs, output: see(name, inputs[0], output)

    hooks = [network.get_submodule(name).register_forward_hook(hook(name)) for name in names]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()


def taken(modules: Sequence[nn.Module], run: Callable[[], object]) -> list[State]:
    """What each of these modules takes in; nothing is computed beyond the last one."""
    found: dict[nn.Module, State] = {}

    def keep(module: nn.Module, arguments: State) -> None:
        found[module] = arguments
        if module is modules[-1]:
            raise _EnoughError

    hooks = [module.register_forward_pre_hook(keep) for module in modules]
    try:
        run()
    except _EnoughError:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    return [found[module] for module in modules]


def layout_of(network: Network) -> SystemLayout[Any]:
    """What its system says of the network's layers.

    Raises:
        UnsupportedNetwork: a network that is not pruned, or one without blocks.
        BadRequest: its batch norms have been folded away, which leaves other layers than its configuration says.
    """
    layout = system_of(network).layout
    blocks = layout and layout.blocks(network)
    name = network.pedigree.name
    if layout is None or blocks is None:
        known = dict.fromkeys(system.layout.prunes for system in SYSTEMS.values() if system.layout is not None)
        kind = type(network).__name__
        raise UnsupportedNetwork(f"cannot prune {name} ({kind}); keima prunes {', '.join(known)}")
    if not blocks:
        raise UnsupportedNetwork(f"cannot prune {name}: it has no blocks")
    if network.folded and not layout.refolds:
        raise BadRequest(f"{name} has been folded; prune first, fold afterwards")
    return layout


def blocks_of(network: Network) -> Sequence[nn.Module]:
    """The blocks of the trunk, in order. Raises UnsupportedNetwork, BadRequest: as `layout_of`."""
    return layout_of(network).blocks(network) or ()
