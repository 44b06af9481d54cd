"""A network made ready to answer: positions in, evaluations out."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from keima.errors import BadRequest, KeimaError
from keima.games.position import Position
from keima.inference.backend import Backend, Pending
from keima.inference.batching import Task, answers, average, batches, bound, encode, per_position, symmetries_of
from keima.inference.evaluation import Evaluation
from keima.systems.encoding import Array, Batch, Encoding
from keima.systems.network import Heads, Network

BACKENDS = ("auto", "torch", "openvino")
PRECISIONS = ("auto", "f32", "bf16")

_IN_FLIGHT = 3
"""Batches started before the first one's answers are read: two are under way while Python encodes and decodes."""


class Evaluator:
    """Answers for positions, from one network on one backend.

    The network is copied: training it further does not change an evaluator's answers. The same position gives the same
    answer to the last bit, whatever else is asked with it and however often. Safe to call from several threads.

    Args:
        network: any network of the family.
        backend: "openvino" (CPU), "torch" (CPU or CUDA), or "auto": torch where there is a CUDA device, else OpenVINO.
        precision: "f32"; "bf16", about twice as fast where the processor computes in it (win within 0.02, the same
            first move on 95 % of positions); "auto" is "f32" everywhere: an answer should not depend on the machine.
        batch_size: positions evaluated together, at least 1.
        threads: CPU threads in all; None takes every core.

    Attributes:
        network: as given.
        encoding: the network's, with the options that are bound: whoever encodes for this evaluator does it by this.
        batch_size: as given.

    Raises:
        BadRequest: an unknown backend or precision, a precision this machine does not have, sizes below 1.
    """

    encoding: Encoding

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
        self.encoding = network.encoding
        self._inputs = frozenset(network.input_names)

    @property
    def backend(self) -> str:
        """ "torch" or "openvino"."""
        return self._backend.name

    @property
    def precision(self) -> str:
        """ "f32" or "bf16"."""
        return self._backend.precision

    @property
    def device(self) -> str:
        """ "cpu" or "cuda"."""
        return self._backend.device

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
        waiting: deque[tuple[list[Task], Handle]] = deque()
        for group in batches(tasks, self.batch_size):
            waiting.append((group, self.submit(encode(group))))
            if len(waiting) == _IN_FLIGHT:
                _answer(*waiting.popleft(), each)
        while waiting:
            _answer(*waiting.popleft(), each)
        return [average(each[index]).at_temperature(temperature) for index in range(len(each))]

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
        if batch.inputs.keys() != self._inputs:
            found, wanted = (", ".join(names) for names in (batch.inputs, self.network.input_names))
            raise BadRequest(f"the network takes {wanted}; the batch has {found or 'nothing'}")
        return Handle(self._backend.submit(batch.inputs), batch.context, self.network)

    def _tasks(self, positions: list[Position], symmetry: object, options: Mapping[str, object]) -> list[Task]:
        """One task for every position and symmetry, everything checked."""
        for index, position in enumerate(positions):
            try:
                self.encoding.check(position)
            except KeimaError as error:
                raise error.at(place=f"position {index}") from None
        count = len(positions)
        symmetries = [symmetries_of(one, self.encoding.symmetries) for one in per_position("symmetry", symmetry, count)]
        encodings = bound(self.encoding, options, count)
        return [
            Task(index, position, one, encodings[index])
            for index, position in enumerate(positions)
            for one in symmetries[index]
        ]


def _answer(tasks: list[Task], handle: Handle, each: dict[int, list[Evaluation]]) -> None:
    """Append the tasks' answers to those of their positions."""
    for task, evaluation in zip(tasks, answers(tasks, handle.result()), strict=True):
        each.setdefault(task.index, []).append(evaluation)


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
    if backend not in BACKENDS:
        raise BadRequest(f"unknown backend {backend!r}; choose one of {', '.join(BACKENDS)}")
    if precision not in PRECISIONS:
        raise BadRequest(f"unknown precision {precision!r}; choose one of {', '.join(PRECISIONS)}")
    precision = "f32" if precision == "auto" else precision
    if backend == "auto":
        import torch

        backend = "torch" if torch.cuda.is_available() else "openvino"
    if backend == "torch":
        from keima.inference.torch_backend import TorchBackend

        return TorchBackend(network, precision, batch_size, threads)
    from keima.inference.openvino_backend import OpenVINOBackend

    return OpenVINOBackend(network, precision, batch_size, threads)
