"""ONNX Runtime: one session for boards of every shape the network takes, requests side by side on one thread each.

A network read from an ONNX file runs by that file's graph, so this is also how to see what such a file answers. Others
are drawn as a graph first, which takes seconds; it is kept on disk (`keima.inference.cache`).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from safetensors.torch import save

from keima.errors import BadRequest, BadWeights
from keima.inference import cache
from keima.inference.backend import TorchBackend, padded, rows_per_request, source_digest, usable_cores
from keima.systems.encoding import Array
from keima.systems.files.int8 import pack
from keima.systems.files.onnx_file import any_size, export, holds
from keima.systems.layers import quantized
from keima.systems.network import Network, OnnxGraph

MOST_POINTS = 361
"""Of a request; each is computed whole, however few positions are in it."""


class OnnxBackend:
    """Runs a network's ONNX graph on the CPU: float32, int8 where there are numbers for it, float16 by a file that is.

    Args:
        precision: "f32", "int8", "f16", or "auto": the file's own, and float32 for a network from elsewhere.
        batch_size: positions that come together; decides how many go into a request.
        threads: requests computed at once, on a thread each; None takes every core this process may use.
        graph: runs this one, of the same network.

    Raises:
        BadRequest: `keima[export]` is not installed, or a precision this network's file does not have.
        UnsupportedNetwork: a network that ONNX cannot express.
        BadWeights: ONNX Runtime does not take the file's graph.
    """

    name = "onnx"
    device = "cpu"

    def __init__(
        self,
        network: Network,
        precision: str,
        batch_size: int,
        threads: int | None = None,
        graph: OnnxGraph | None = None,
    ) -> None:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else it reports its use to its makers (seen in 1.32)
        try:
            import onnxruntime
        except ImportError as error:
            message = f"the backend onnx needs more than keima itself: pip install 'keima[export]' ({error})"
            raise BadRequest(message) from error
        if graph is None and network.onnx is not None and holds(network.onnx, network):
            graph = network.onnx
        own = "f32" if graph is None else graph.precision
        self.precision = own if precision == "auto" else precision
        if self.precision not in ("f32", "int8", own):
            raise BadRequest(
                f"the backend onnx computes in int8, in f32 or as the network's ONNX file, not {precision}"
            )
        model = graph.model if graph is not None and own == self.precision else _drawn(network, self.precision)
        onnxruntime.disable_telemetry_events()  # where a program had imported it itself
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its errors share no base class
            raise BadWeights(
                f"ONNX Runtime does not take the graph: {error}", source=network.pedigree.origin
            ) from error
        self._output_names = network.output_names
        self._input_names = network.input_names
        self._batch_size = batch_size
        self._rows: dict[tuple[int, ...], int] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(threads or usable_cores(), "keima-onnx")

    def submit(self, inputs: Mapping[str, Array]) -> OnnxJob:
        """Start on the batch; requests wait their turn for a thread."""
        size, shape = len(inputs["planes"]), inputs["planes"].shape[2:]
        with self._lock:
            if shape not in self._rows:
                self._rows[shape] = self._trial(inputs)
            rows = self._rows[shape]
        requests = []
        for start in range(0, size, rows):
            feeds = {name: padded(inputs[name][start : start + rows], rows).copy() for name in self._input_names}
            requests.append(self._pool.submit(self._run, feeds))
        return OnnxJob(self._output_names, requests, size)

    def _run(self, feeds: Mapping[str, Array]) -> list[Array]:
        answer: list[Array] = self._session.run(self._output_names, feeds)
        return answer

    def _trial(self, inputs: Mapping[str, Array]) -> int:
        """Rows of a request for this shape: 1 where kernels answer otherwise from row to row."""
        rows = rows_per_request(int(np.prod(inputs["planes"].shape[2:])), self._batch_size, MOST_POINTS)
        numbers = np.random.default_rng(0)
        shapes = {name: inputs[name].shape[1:] for name in self._input_names}
        one = {name: numbers.integers(0, 2, (1, *shape)).astype(np.float32) for name, shape in shapes.items()}
        answer = self._run({name: np.repeat(array, rows, axis=0) for name, array in one.items()})
        same = all((part.view(np.int32) == part[:1].view(np.int32)).all() for part in answer)
        return rows if same else 1


@dataclass(frozen=True)
class OnnxJob:
    """A batch whose rows lie in requests of their own."""

    names: tuple[str, ...]
    requests: list[Future[list[Array]]]
    size: int

    def result(self) -> dict[str, Array]:
        """Wait for the requests; the outputs, float32 [N, ...] by name."""
        columns = zip(*(request.result() for request in self.requests), strict=True)
        joined = (np.concatenate(column)[: self.size] for column in columns)
        return dict(zip(self.names, joined, strict=True))


SIZES_TRIED = ((7, 7), (9, 9), (10, 13), (13, 13), (19, 19))


def deviation(network: Network, graph: OnnxGraph) -> float:
    """The largest difference between the graph's answers and PyTorch's, inputs being random zeros and ones.

    PyTorch computes in float32, and where the graph is in int8, so does it.

    It is relative to the largest number of its output on all of them; boards of several sizes where the network takes
    them, one and eight at a time.
    """
    backend = OnnxBackend(network, graph.precision, 8, 1, graph)
    network = quantized(network) if graph.precision == "int8" else network
    shapes = SIZES_TRIED if any_size(network) else (network.encoding.board,)
    numbers = np.random.default_rng(0)
    apart, largest = dict.fromkeys(network.output_names, 0.0), dict.fromkeys(network.output_names, 0.0)
    for shape, n in product(shapes, (1, 8)):
        room = network.encoding.room(n, shape).inputs
        inputs = {name: numbers.integers(0, 2, room[name].shape).astype(np.float32) for name in network.input_names}
        found = backend.submit(inputs).result()
        wanted = TorchBackend(network, "f32", 1).submit(inputs).result()
        for name in wanted:
            apart[name] = max(apart[name], float(np.abs(found[name] - wanted[name]).max()))
            largest[name] = max(largest[name], float(np.abs(wanted[name]).max()))
    return max(apart[name] / largest[name] for name in apart)


def _drawn(network: Network, precision: str) -> bytes:
    """The network's graph, from the disk where it is there."""
    numbers = hashlib.sha256(save(pack(network)) if precision == "int8" else b"").digest()
    parts = ("onnx", precision, cache.fingerprint(network), numbers, torch.__version__, source_digest(__file__))
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
    model = cache.read(key)
    if model is None:
        model = export(network, precision)
        cache.write(key, model)
    return model
