"""The CPU backend: OpenVINO, one compiled network per board shape, several requests under way at once.

One thread a stream, each with requests of its own, beats one large request on all threads (b6c96 and Maia 6×64 on two
cores, `keima bench`). A request holds a thread's share of a batch (`rows_per_request`); a batch too small to give every
stream such a request goes by narrower ones, one position alone by one that all threads compute (b6c96 on two cores, in
bfloat16 1.9 ms in place of 3.4 on 19×19, 0.6 in place of 1.0 on 9×9). In float32 3×3 convolutions are Winograd's
(`winograd.py`).
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch

from keima.errors import BadRequest
from keima.inference import cache, winograd
from keima.inference.backend import (
    TensorsOnly,
    as_tensors,
    padded,
    rows_per_request,
    source_digest,
    usable_cores,
)
from keima.inference.offline import openvino
from keima.systems.encoding import Array
from keima.systems.layers import QuantizedConvolution
from keima.systems.network import Network

SHAPES_KEPT = 16
"""Compiled networks (board shapes) kept in memory; the one longest unused goes first."""

BATCHES_IN_FLIGHT = 3
"""Batches that can be under way before `submit` waits for the first of them."""


class Width(NamedTuple):
    """A kind of request: its positions, and how many are computed at once, each by its share of the threads."""

    rows: int
    streams: int


ALONE = Width(1, 1)
"""For one position, with nothing else under way."""


class OpenVINOBackend:
    """Runs a copy of the network, compiled for each board shape when that shape first comes.

    What was compiled is kept on disk (`keima.inference.cache`), by the network's weights, the shape, the precision, the
    versions of OpenVINO, PyTorch and keima's networks, and the processor.

    Args:
        precision: "f32", "bf16"; "int8" for a network from `keima.systems.layers`, which is so in part.
        batch_size: positions that come together; decides how the threads are divided.
        threads: CPU threads in all; None takes every core this process may use.

    Raises:
        BadRequest: bfloat16 on a processor that does not compute in it.
    """

    name = "openvino"
    device = "cpu"

    def __init__(self, network: Network, precision: str, batch_size: int, threads: int | None = None) -> None:
        self._core = openvino.Core()
        self.precision = precision
        self._float = float_precision(precision)
        self._network = copy.deepcopy(network).eval()
        self._fingerprint = cache.fingerprint(network)
        self._batch_size = batch_size
        self._threads = threads
        self._cores = threads or usable_cores()
        self._compiled: OrderedDict[tuple[int, ...], CompiledShape] = OrderedDict()
        self._lock = threading.Lock()

    def submit(self, inputs: Mapping[str, Array]) -> OpenVINOJob:
        """Start on the batch; waits only for earlier requests to leave room."""
        with self._lock:
            compiled = self._shape(inputs)
        return compiled.submit(inputs)

    def _shape(self, inputs: Mapping[str, Array]) -> CompiledShape:
        """The network for one board shape; compiled when the first batch comes that wants it so."""
        shape = inputs["planes"].shape[2:]
        if shape not in self._compiled:
            example = {name: padded(inputs[name][:1], 1).copy() for name in self._network.input_names}
            rows, products = self._rows(shape)
            converted = lru_cache(partial(computed, self._network, example, products))
            open_slots = partial(self._open_slots, example, converted, products)
            self._compiled[shape] = CompiledShape(open_slots, rows, min(-(-self._batch_size // rows), self._cores))
            if len(self._compiled) > SHAPES_KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(shape)
        return self._compiled[shape]

    def _open_slots(
        self, example: Mapping[str, Array], converted: Callable[[], openvino.Model], products: bool, width: Width
    ) -> list[Slot]:
        """Requests of a width, enough for all batches in flight."""
        model = self._compile(example, converted, width, products)
        count = BATCHES_IN_FLIGHT * -(-self._batch_size // width.rows)
        return [Slot(model.create_infer_request(), self._network) for _ in range(count)]

    def _rows(self, board: tuple[int, int]) -> tuple[int, bool]:
        """Positions of a request, at most what leaves each thread one, and whether its convolutions are products
        (`winograd.py`), which depends on no number of cores: the same bits on machines that differ in it.
        """
        rows = rows_per_request(board[0] * board[1], -(-self._batch_size // self._cores))
        return rows, by_products(self._network, self.precision, board, self._batch_size)

    def _compile(
        self,
        example: Mapping[str, Array],
        converted: Callable[[], openvino.Model],
        width: Width,
        products: bool = False,
    ) -> openvino.CompiledModel:
        """The network compiled for inputs as the example's, of a width, from the disk where it is there."""
        config: dict[str, int | str] = {"NUM_STREAMS": width.streams, "INFERENCE_PRECISION_HINT": self._float}
        if self._threads is not None:
            config["INFERENCE_NUM_THREADS"] = self._threads
            if self._threads < usable_cores():  # else OpenVINO binds every evaluator's threads to the same first cores
                config["ENABLE_CPU_PINNING"] = "NO"
        shapes = {name: (width.rows, *array.shape[1:]) for name, array in example.items()}
        processor = self._core.get_property("CPU", "FULL_DEVICE_NAME")
        versions = (openvino.__version__, torch.__version__, source_digest(__file__, winograd.__file__), processor)
        parts = (self._fingerprint, versions, sorted(shapes.items()), sorted(config.items()), products)
        key = hashlib.sha256(repr(parts).encode()).hexdigest()
        if (stored := cache.read(key)) is not None:
            with suppress(RuntimeError):  # made by a build of OpenVINO that calls itself the same and is not
                return self._core.import_model(stored, "CPU", config)
        model = converted().clone()
        model.reshape({i: list(shape) for i, shape in enumerate(shapes.values())})
        rows_alike(model)
        compiled = self._core.compile_model(model, "CPU", config)
        cache.write(key, compiled.export_model().getvalue())
        return compiled


def float_precision(precision: str) -> str:
    """What is in float at a precision: "f32" or "bf16"; in an int8 network the faster of those that there are.

    Raises:
        BadRequest: bfloat16 on a processor that does not compute in it.
    """
    halves = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if precision == "bf16" and not halves:
        raise BadRequest("this processor does not compute in bfloat16; use precision 'f32' (or 'auto')")
    return precision if precision != "int8" else "bf16" if halves else "f32"


class OpenVINOJob:
    """A batch whose rows lie in requests of their own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.outputs: dict[str, Array] = {}
        self.slots: list[Slot] = []
        self.failure: Exception | None = None

    def result(self) -> dict[str, Array]:
        """Wait for the requests still under way; the outputs, float32 [N, ...] by name."""
        for slot in self.slots:
            slot.collect(self)
        self.slots = []
        if self.failure is not None:
            raise self.failure
        return self.outputs


class Slot:
    """One request of a compiled network with memory of its own for inputs and outputs, and the rows in it."""

    def __init__(self, request: openvino.InferRequest, network: Network) -> None:
        self.lock = threading.Lock()
        self._request = request
        self._inputs = [(name, request.get_input_tensor(i).data) for i, name in enumerate(network.input_names)]
        self._outputs = [(name, request.get_output_tensor(i).data) for i, name in enumerate(network.output_names)]
        self._job: OpenVINOJob | None = None
        self._rows = slice(0, 0)

    def trial(self) -> set[bytes]:
        """A new slot's answers to one position in every row: one answer, unless kernels work otherwise by row."""
        numbers = np.random.default_rng(0)
        for _, memory in self._inputs:
            memory[:] = numbers.integers(0, 2, memory.shape[1:])
        self._request.infer()
        rows = zip(*([row.tobytes() for row in memory] for _, memory in self._outputs), strict=True)
        return {b"".join(row) for row in rows}

    def start(self, job: OpenVINOJob, inputs: Mapping[str, Array], rows: slice) -> None:
        """Begin on those rows of the inputs, after what is still in the slot has gone to its own job."""
        with self.lock:
            self._collect()
            for name, memory in self._inputs:
                source = inputs[name][rows]
                memory[: len(source)] = source
                memory[len(source) :] = source[-1]
            if not job.outputs:
                job.outputs = {name: np.empty((job.size, *data.shape[1:]), np.float32) for name, data in self._outputs}
            self._job, self._rows = job, rows
            self._request.start_async()

    def collect(self, job: OpenVINOJob) -> None:
        """Bring the outputs to `job`, if its rows are (still) the ones in the slot."""
        with self.lock:
            if self._job is job:
                self._collect()

    def _collect(self) -> None:
        """Wait for the request and copy its outputs to the job it belongs to."""
        if self._job is None:
            return
        job, self._job = self._job, None
        try:
            self._request.wait()
            for name, memory in self._outputs:
                target = job.outputs[name][self._rows]
                target[:] = memory[: len(target)]
        except RuntimeError as failure:
            job.failure = failure


class CompiledShape:
    """A network compiled for one board shape: requests of `rows` rows, used in turn, for what does not fill them
    narrower ones, each a quarter as wide, and one for a position ALONE. All must give the same bits; a width that does
    not is not used.

    Args:
        open_slots: compiles requests of a width.
        rows: positions of the widest request.
        streams: requests computed at once.
    """

    def __init__(self, open_slots: Callable[[Width], list[Slot]], rows: int, streams: int) -> None:
        self._open_slots = open_slots
        self._streams = streams
        narrower = [rows >> shift for shift in range(0, rows.bit_length() - 1, 2)] + [1]
        self._widths = [Width(rows, streams) for rows in narrower]
        self._refused: set[Width] = set()
        self._slots: dict[Width, Iterator[Slot]] = {}
        self._answer: set[bytes] = set()
        self._last = OpenVINOJob(0)
        self._lock = threading.Lock()

    def submit(self, inputs: Mapping[str, Array]) -> OpenVINOJob:
        """Divide the batch into requests and start them all."""
        size = len(inputs["planes"])
        job = OpenVINOJob(size)
        for rows, width in self._divide(size):
            slot = next(self._slots[width])
            slot.start(job, inputs, rows)
            job.slots.append(slot)
        self._last = job
        return job

    def _divide(self, size: int) -> list[tuple[slice, Width]]:
        """A batch's rows, request by request, and of which width each is; those widths are ready."""
        with self._lock:
            while True:
                parts = self._parts(size)
                if all(self._has(width) for _, width in parts):
                    return parts

    def _parts(self, size: int) -> list[tuple[slice, Width]]:
        """The widest requests that give each stream work, then narrower ones. One may have a quarter of it empty."""
        if size == 1 and self._slots and not self._last.slots and ALONE not in self._refused:
            return [(slice(0, 1), ALONE)]
        widths = [width for width in self._widths if width not in self._refused]
        parts: list[tuple[slice, Width]] = []
        for share in (-(-size // self._streams), size // self._streams):  # the second where the first leaves one idle
            parts, start = [], 0
            for width in widths:
                rows = width.rows
                while start < size and (4 * min(share, size - start) > 3 * rows or width == widths[-1]):
                    parts.append((slice(start, min(start + rows, size)), width))
                    start += rows
            if len(parts) >= min(size, self._streams):
                break
        return parts

    def _has(self, width: Width) -> bool:
        """Are there requests of this width, compiled now if need be, and do they answer as the others?"""
        if width not in self._slots:
            slots = self._open_slots(width)
            answer = slots[0].trial()
            if len(answer) > 1 or (self._slots and answer != self._answer):
                self._refused.add(width)
                return False
            self._answer = answer
            self._slots[width] = itertools.cycle(slots)
        return True


_TRACING = threading.Lock()
"""PyTorch's tracer is one for the process: two networks traced at once spoil each other's graphs."""


def convert(network: Network, inputs: Mapping[str, Array]) -> openvino.Model:
    """A network in evaluation mode as an OpenVINO model, outputs in the order of `output_names`.

    It takes inputs of exactly these shapes (an example, float32 by `input_names`); reshaped, any number of rows.
    """
    with _TRACING, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # tracing warns of every Python number made from a shape; here boards are fixed
        example = tuple(as_tensors(network, inputs))
        traced = torch.jit.trace(TensorsOnly(network).eval(), example, check_trace=False)  # type: ignore[no-untyped-call]
        if not any(isinstance(layer, QuantizedConvolution) for layer in network.modules()):
            # a frozen graph's constants are found much sooner; weights rounded to int8 would be such, in float
            traced = torch.jit.freeze(traced, optimize_numerics=False)
        model = openvino.convert_model(traced, example_input=example)
    model.reshape({i: list(tensor.shape) for i, tensor in enumerate(example)})
    return model


def by_products(network: Network, precision: str, board: tuple[int, int], batch_size: int) -> bool:
    """Are a network's convolutions on boards [H, W] written as products, for such batches?"""
    least = winograd.least_batch(network, board) if precision == "f32" else None
    return least is not None and least <= batch_size


def computed(network: Network, inputs: Mapping[str, Array], products: bool) -> openvino.Model:
    """The model that is computed: `convert`'s, its 3×3 convolutions written as products where that is wanted."""
    model = convert(network, inputs)
    if products:
        winograd.by_winograd(model)
    return model


def rows_alike(model: openvino.Model) -> None:
    """Write the matrix products of a model's rows [N, K] by constants so that every row gets the same bits."""
    ops = openvino.opset13
    for node in model.get_ordered_ops():
        if node.get_type_name() != "MatMul" or node.get_attributes()["transpose_a"]:
            continue
        rows, weights = (node.input_value(i) for i in range(2))
        if len(rows.get_partial_shape()) != 2 or weights.get_node().get_type_name() != "Constant":
            continue
        matrix = weights.get_node().data
        matrix = matrix.T if node.get_attributes()["transpose_b"] else matrix
        answers = winograd.product(ops.unsqueeze(rows, np.array([0])).output(0), matrix)
        node.output(0).replace(ops.squeeze(answers, np.array([0])).output(0))
    model.validate_nodes_and_infer_types()
