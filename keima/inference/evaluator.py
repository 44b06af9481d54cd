"""A network made ready to answer: positions in, evaluations out."""

from __future__ import annotations

import copy
import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import torch

from keima.errors import BadRequest, KeimaError
from keima.games.position import Position
from keima.inference.backend import Backend, Pending, TorchBackend
from keima.inference.device_backend import DeviceBackend
from keima.inference.evaluation import Evaluation
from keima.systems.encoding import Array, Batch, Encoding, LegalMoves, symmetry_names
from keima.systems.layers import quantized
from keima.systems.network import Heads, Network

BACKENDS = ("auto", "torch", "openvino", "onnx")
PRECISIONS = ("auto", "f32", "bf16", "f16", "int8")

AVERAGE = "average"
"""In place of a symmetry: the mean of the answers under all of the encoding's symmetries."""

_IN_FLIGHT = 3
"""Batches started before the first one's answers are read: two are under way while Python encodes and decodes."""


class Evaluator:
    """Answers for positions, from one network on one backend.

    The network is copied: training it further does not change an evaluator's answers. The same position gives the same
    answer to the last bit, whatever else is asked with it and however often. Safe to call from several threads.

    Args:
        network: any of the family.
        backend: "openvino" (CPU), "torch" (CPU or CUDA), "onnx" (ONNX Runtime on the CPU, with `keima[export]`), or
            "auto": torch where there is a CUDA device, else OpenVINO.
        precision: "f32"; "bf16", about twice as fast where the processor computes in it (win within 0.02, the same
            first move on 95 % of positions); "int8" on the CPU for a network from `keima compress quantize`, the rest
            of it in bf16 where the processor computes in that; "f16" on CUDA, and for an ONNX file that is; "auto" is
            "f32" everywhere, for an answer should not depend on the machine, except that the backend onnx computes as
            the network's ONNX file does.
        batch_size: positions evaluated together, at least 1; with another one the last digits may be others.
        threads: CPU threads in all; None takes every core.

    Attributes:
        encoding: the network's, with the options that are bound: whoever encodes for this evaluator does it by this.
        backend, precision, device: "torch", "openvino" or "onnx"; "f32", "bf16", "f16" or "int8"; "cpu" or "cuda".

    Raises:
        BadRequest: an unknown backend or precision, a precision this machine does not have, sizes below 1.
    """

    def __init__(
        self,
        network: Network,
        backend: str = "auto",
        precision: str = "auto",
        batch_size: int = 8,
        threads: int | None = None,
    ) -> None:
        if batch_size < 1:
            raise BadRequest(f"batch_size must be at least 1, not {batch_size}")
        if threads is not None and threads < 1:
            raise BadRequest(f"threads must be at least 1, not {threads}")
        self.network = network
        self.batch_size = batch_size
        self._backend = _open_backend(network, backend, precision, batch_size, threads)
        self.backend, self.precision, self.device = self._backend.name, self._backend.precision, self._backend.device
        self.encoding: Encoding = network.encoding

    def __repr__(self) -> str:
        name, system = self.network.pedigree.name, self.network.system
        return f"<Evaluator of {name} ({system}), {self.backend} {self.precision}, batch size {self.batch_size}>"

    def bind(self, **options: object) -> Evaluator:
        """The same compiled network with its system's options fixed: `bind(profile="rank_5k")`.

        Nothing is compiled or copied. Which options there are says `evaluator.encoding.options`; None takes one back.

        Raises:
            BadRequest: an option this network does not have, a value out of range; the message says what there is.
        """
        bound = copy.copy(self)
        bound.encoding = self.encoding.bind(**options)
        return bound

    def __call__(
        self,
        positions: Iterable[Position],
        symmetry: int | str | Sequence[int | str] = 0,
        temperature: float = 1.0,
        **options: object,
    ) -> list[Evaluation]:
        """Evaluate positions of any sizes, in their order.

        Args:
            positions: of the network's game.
            symmetry: 0–7 by bits (1 flips rows, 2 flips columns, 4 transposes) for the planes the network sees, or
                "average" for the mean over all of them; one for all positions, or a list with one for each. Answers are
                always in the board's own orientation.
            temperature: of the policy; below 1 sharper, above 1 flatter (`Evaluation.at_temperature`).
            options: the network's, as for `bind`, for this call: one value for all positions, or a list with one for
                each (`profile=["rank_5k", "rank_1d"]`); None leaves what is bound.

        Raises:
            UnsupportedPosition: a position this network cannot take; says which.
            BadRequest: an unknown symmetry, an option this network does not have or that is missing, a list of a wrong
                length, a temperature that is not above 0.
        """
        tasks = self._tasks(list(positions), symmetry, options)
        each: dict[int, list[Evaluation]] = {}
        waiting: deque[tuple[list[_Task], Handle]] = deque()

        def finish() -> None:
            group, handle = waiting.popleft()
            for task, evaluation in zip(group, _answers(group, handle.result()), strict=True):
                each.setdefault(task.index, []).append(evaluation)

        for group in _batches(tasks, self.batch_size):
            batch = group[0].encoding.encode([task.position for task in group], [task.symmetry for task in group])
            waiting.append((group, self.submit(batch)))
            if len(waiting) == _IN_FLIGHT:
                finish()
        while waiting:
            finish()
        return [_average(each[index]).at_temperature(temperature) for index in range(len(each))]

    def infer(self, batch: Batch) -> Heads:
        """Run one encoded batch of any size: its heads, in the orientation of the planes, for the side to move."""
        return self.submit(batch).result()

    def submit(self, batch: Batch) -> Handle:
        """Start one encoded batch; `result()` of what is returned waits for it.

        Three batches of `batch_size` positions can be under way; further ones wait for room. On the torch backend and a
        CPU, the batch is run before this returns. The arrays of `batch.inputs` may be changed afterwards.

        Raises:
            BadRequest: inputs that are not those of the network: a mask, for one, of boards of several sizes.
        """
        if batch.inputs.keys() != set(self.network.input_names):
            found, wanted = (", ".join(names) for names in (batch.inputs, self.network.input_names))
            raise BadRequest(f"the network takes {wanted}; the batch has {found or 'nothing'}")
        return Handle(self._backend.submit(batch.inputs), batch.context, self.network)

    def _tasks(self, positions: list[Position], symmetry: object, options: Mapping[str, object]) -> list[_Task]:
        """One task for every position and symmetry, everything checked."""
        for index, position in enumerate(positions):
            try:
                self.encoding.check(position)
            except KeimaError as error:
                raise error.at(place=f"position {index}") from None
        wanted = _per_position("symmetry", symmetry, len(positions))
        each = [_symmetries(one, self.encoding.symmetries) for one in wanted]
        encodings = _bound(self.encoding, options, len(positions))
        rows = enumerate(zip(positions, each, encodings, strict=True))
        return [_Task(k, position, one, encoding) for k, (position, those, encoding) in rows for one in those]


@dataclass(frozen=True)
class Handle:
    """A batch under way."""

    pending: Pending
    context: dict[str, Array]
    network: Network

    def result(self) -> Heads:
        """Wait for the batch; its heads."""
        return self.network.decode(self.pending.result(), self.context)


def _open_backend(network: Network, backend: str, precision: str, batch_size: int, threads: int | None) -> Backend:
    """The backend of that name, at that precision."""
    for what, name, known in (("backend", backend, BACKENDS), ("precision", precision, PRECISIONS)):
        if name not in known:
            raise BadRequest(f"unknown {what} {name!r}; choose one of {', '.join(known)}")
    if backend == "onnx":
        from keima.inference.onnx_backend import OnnxBackend

        return OnnxBackend(network, precision, batch_size, threads)
    if precision == "int8":
        if backend == "torch" and torch.cuda.is_available():
            raise BadRequest("int8 is computed on the CPU, by the backends openvino, onnx and torch")
        network, backend = quantized(network), "openvino" if backend == "auto" else backend
    if backend != "openvino" and torch.cuda.is_available():
        return DeviceBackend(network, "f32" if precision == "auto" else precision, batch_size)
    if precision == "f16":
        raise BadRequest("float16 is CUDA's, and the backend onnx's for a network from an ONNX file in float16")
    precision = "f32" if precision == "auto" else precision
    if backend == "torch":
        return TorchBackend(network, precision, batch_size, threads)
    from keima.inference.openvino_backend import OpenVINOBackend

    return OpenVINOBackend(network, precision, batch_size, threads)


@dataclass(frozen=True)
class _Task:
    """One position to evaluate once: which one it is, under which symmetry, by which encoding (options bound)."""

    index: int
    position: Position
    symmetry: int
    encoding: Encoding


def _per_position(name: str, value: object, count: int) -> list[object]:
    """`value` as a list of `count`: a list as it is, anything else for every position."""
    if not isinstance(value, list | tuple | np.ndarray):
        return [value] * count
    if len(value) != count:
        raise BadRequest(f"{name}: {count} positions need {count} values or one for all, not {len(value)}")
    return list(value)


def _symmetries(wanted: object, available: Sequence[int]) -> list[int]:
    """The symmetries a request stands for: one number, or all of them for "average"."""
    if isinstance(wanted, str) and wanted == AVERAGE:
        return list(available)
    if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool) and wanted in available:
        return [int(wanted)]
    raise BadRequest(f"unknown symmetry {wanted!r}; choose {symmetry_names(available)}, or {AVERAGE!r}")


def _bound(encoding: Encoding, options: Mapping[str, object], count: int) -> list[Encoding]:
    """The encoding of each of `count` positions: options are one value for all, or a list; None leaves what is bound.

    None, 0 and "" stand for none where the network does not take the option.
    """
    columns = [_per_position(name, option, count) for name, option in options.items()]
    bound: dict[str, Encoding] = {}  # positions with the same values share one
    for values in (rows := list(zip(*columns, strict=True)) if columns else [()] * count):
        if repr(values) not in bound:
            each = zip(options, values, strict=True)
            wanted = {name: value for name, value in each if value is not None and (value or name in encoding.options)}
            bound[repr(values)] = encoding.bind(**wanted) if wanted else encoding
    return [bound[repr(values)] for values in rows]


def _batches(tasks: Sequence[_Task], size: int) -> Iterator[list[_Task]]:
    """The tasks in groups of one encoding and plane shape, at most `size` in each, in order within a group."""
    groups: dict[tuple[int, tuple[int, int]], list[_Task]] = {}
    for task in tasks:
        shape = task.encoding.shape(task.position, task.symmetry)
        groups.setdefault((id(task.encoding), shape), []).append(task)
    for group in groups.values():
        for start in range(0, len(group), size):
            yield group[start : start + size]


def _answers(tasks: Sequence[_Task], heads: Heads) -> list[Evaluation]:
    """One evaluation a task: the policy over legal moves alone, everything in the board's own orientation."""
    wdl = {} if heads.wdl is None else dict(zip(("win", "draw", "loss"), heads.wdl.T, strict=True))
    columns = {**wdl, "value": heads.value, "lead": heads.lead, "moves_left": heads.moves_left}
    numbers = {name: column.tolist() for name, column in columns.items() if column is not None}
    further = {name: column.tolist() for name, column in heads.extra.items()}
    result = []
    for row, task in enumerate(tasks):
        policy, logits = _legal_policy(heads.policy[row], task.encoding.legal_moves(task.position, task.symmetry))
        ownership = None
        if heads.ownership is not None:
            restored = task.encoding.restore(heads.ownership[row], task.position, task.symmetry)
            ownership = np.ascontiguousarray(restored, dtype=np.float32)
        extra, fields = ({name: column[row] for name, column in part.items()} for part in (further, numbers))
        result.append(Evaluation(policy, logits, ownership=ownership, extra=extra, **fields))
    return result


def _legal_policy(policy: Array, legal: LegalMoves) -> tuple[dict[str, float], dict[str, float]]:
    """Probabilities (renormalised) and logits of the legal moves by name, from one position's logits [A]."""
    logits = policy.take(legal.indices)
    probabilities = logits.astype(np.float64)
    if len(probabilities):
        probabilities -= np.maximum.reduce(probabilities)
        np.exp(probabilities, out=probabilities)
        probabilities /= np.add.reduce(probabilities)
    names = legal.names
    return dict(zip(names, probabilities.tolist(), strict=True)), dict(zip(names, logits.tolist(), strict=True))


def _average(each: Sequence[Evaluation]) -> Evaluation:
    """The mean of one position's answers under several symmetries, as KataGo averages them.

    Source: KataGo's `cpp/neuralnet/nninputs.cpp`, the `NNOutput` constructor from several. Probabilities, value, lead,
    ownership and further numbers are averaged as they are; `score_stdev` through the mean of the squared scores.
    `logits` are the logarithms of the averaged probabilities.
    """
    if len(each) == 1:
        return each[0]
    policy = {move: fmean(one.policy[move] for one in each) for move in each[0].policy}
    plain = ("win", "draw", "loss", "value", "lead", "moves_left")
    numbers = {name: fmean(getattr(one, name) for one in each) for name in plain if getattr(each[0], name) is not None}
    extra = {name: fmean(one.extra[name] for one in each) for name in each[0].extra}
    if "score_mean" in extra and "score_stdev" in extra:
        mean_square = fmean(one.extra["score_mean"] ** 2 + one.extra["score_stdev"] ** 2 for one in each)
        extra["score_stdev"] = math.sqrt(max(0.0, mean_square - extra["score_mean"] ** 2))
    owned = [one.ownership for one in each if one.ownership is not None]
    ownership: Array | None = np.stack(owned).mean(axis=0, dtype=np.float64).astype(np.float32) if owned else None
    return Evaluation(
        policy,
        logits={move: math.log(max(probability, sys.float_info.min)) for move, probability in policy.items()},
        ownership=ownership,
        extra=extra,
        **numbers,
    )
