"""A network made ready to answer: positions in, evaluations out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from keima.encodings.encoding import Array, Batch
from keima.errors import BadRequest, KeimaError
from keima.inference.backend import Backend, Pending
from keima.inference.batching import Task, answers, average, batches, encode, per_position, symmetries_of
from keima.inference.evaluation import Evaluation
from keima.networks.network import Heads, Network

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
        self._encoding = network.encoding
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

    def __call__(
        self,
        positions: Iterable[Any],
        symmetry: int | str | Sequence[int | str] = 0,
        profile: str | Sequence[str | None] | None = None,
        policy_optimism: float | Sequence[float] = 0.0,
        temperature: float = 1.0,
    ) -> list[Evaluation]:
        """Evaluate positions of any sizes, in their order.

        Args:
            positions: of the network's game.
            symmetry: 0–7 by bits (1 flips rows, 2 flips columns, 4 transposes) for the planes the network sees, or
                "average" for the mean over all of them; one for all positions, or a list with one for each. Answers are
                always in the board's own orientation.
            profile: which human to imitate (KataGo's human networks: "rank_5k", ...); one for all, or a list.
            policy_optimism: share of the optimistic policy (KataGo); one for all, or a list.
            temperature: of the policy; below 1 sharper, above 1 flatter (`Evaluation.at_temperature`).

        Raises:
            UnsupportedPosition: a position this network cannot take; says which.
            BadRequest: an unknown symmetry or profile, an option this network does not have, a list of a wrong length,
                a temperature that is not above 0.
        """
        tasks = self._tasks(list(positions), symmetry, profile, policy_optimism)
        each: dict[int, list[Evaluation]] = {}
        waiting: deque[tuple[list[Task], Handle]] = deque()
        for group in batches(tasks, self._encoding, self.batch_size):
            waiting.append((group, self.submit(encode(group, self._encoding))))
            if len(waiting) == _IN_FLIGHT:
                self._answer(*waiting.popleft(), each)
        while waiting:
            self._answer(*waiting.popleft(), each)
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

    def _answer(self, tasks: list[Task], handle: Handle, each: dict[int, list[Evaluation]]) -> None:
        """Append the tasks' answers to those of their positions."""
        for task, evaluation in zip(tasks, answers(tasks, handle.result(), self._encoding), strict=True):
            each.setdefault(task.index, []).append(evaluation)

    def _tasks(self, positions: list[Any], symmetry: Any, profile: Any, policy_optimism: Any) -> list[Task]:
        """One task for every position and symmetry, everything checked."""
        for index, position in enumerate(positions):
            try:
                self._encoding.check(position)
            except KeimaError as error:
                raise error.at(place=f"position {index}") from None
        count = len(positions)
        symmetries = [
            symmetries_of(one, self._encoding.symmetries) for one in per_position("symmetry", symmetry, count)
        ]
        options = self._options(
            per_position("profile", profile, count), per_position("policy_optimism", policy_optimism, count)
        )
        return [
            Task(index, position, one, options[index])
            for index, position in enumerate(positions)
            for one in symmetries[index]
        ]

    def _options(self, profiles: list[str | None], optimisms: list[float]) -> list[dict[str, Any]]:
        """Each position's options as its encoding takes them; none where the network has no such thing."""
        human = "metadata" in self.network.input_names
        if any(profile is not None for profile in profiles) and not human:
            raise BadRequest("this network has no human profiles (KataGo's human networks have); leave `profile` out")
        if self.network.system != "katago":
            if any(optimisms):
                raise BadRequest("this network has no optimistic policy; leave `policy_optimism` out")
            return [{} for _ in profiles]
        if human:
            return [{"profile": p, "policy_optimism": o} for p, o in zip(profiles, optimisms, strict=True)]
        return [{"policy_optimism": optimism} for optimism in optimisms]


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
