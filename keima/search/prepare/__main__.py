"""The other process: `python -m keima.search.prepare`."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from keima.jit import Records
from keima.search.batches import Share
from keima.search.limits import Limits
from keima.search.prepare import MadeUp, Work
from keima.search.search import Search
from keima.systems.encoding import Batch, Encoding
from keima.systems.network import Heads

VISITS = 40
_MOST_INDICES = 20_000
"""Above every policy's size."""


class _Blank:
    """An encoding that encodes nothing."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding

    def __getattr__(self, name: str) -> object:
        return getattr(self._encoding, name)

    def bind(self, **options: object) -> _Blank:
        return _Blank(self._encoding.bind(**options))

    def write(self, records: Records, symmetries: NDArray[np.int64], batch: Batch) -> None:
        """Nothing."""


class _Answers(MadeUp):
    """An evaluator whose every answer is 0."""

    batch_size = 8

    def __init__(self, work: Work) -> None:
        self.network = SimpleNamespace(system=work.system, output_names=work.outputs)
        self.encoding = _Blank(work.encoding)

    def submit(self, batch: Batch) -> _Answers:
        self._n = batch.size
        return self

    def result(self) -> Heads:
        zeros = np.zeros(self._n, np.float32)
        wdl = np.full((self._n, 3), 1 / 3, np.float32)
        return Heads(np.zeros((self._n, _MOST_INDICES), np.float32), wdl, zeros, lead=zeros, moves_left=zeros)


def main() -> None:
    """Search what stands on stdin."""
    work: Work = pickle.load(sys.stdin.buffer)
    work.position.record.flags.writeable = False  # as it was: pickling forgets that, and kernels tell them apart
    first, rest = (Search(_Answers(work), work.parameters) for _ in range(2))  # type: ignore[arg-type]
    first.set_position(work.position)
    batches, rooted = first._ready()
    first.tree.reserve(batches.batch_size)
    batches.start([Share(rooted, 1, 1)])  # the gather at once: what comes before it, the other process compiles
    batches.finish()
    rest.set_position(work.position)
    rest.run(Limits(visits=VISITS))


if __name__ == "__main__":
    main()
