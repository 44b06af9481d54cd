"""A layer of an Lc0 file ↔ its numbers: LINEAR16, FLOAT16, BFLOAT16, FLOAT32.

Source: lc0 v0.33, `src/utils/weights_adapter.cc`. LINEAR16 keeps 16-bit steps q between two float32 ends:
θ = q / 65535, weight = min · (1 − θ) + max · θ, all in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadWeights, UnsupportedNetwork
from keima.systems.lc0.file_schema import ENCODINGS, LAYER
from keima.systems.lc0.protobuf import Message

Floats = NDArray[np.float32]

ITEM_BYTES = {"linear16": 2, "float16": 2, "bfloat16": 2, "float32": 4}
_DTYPES = {"float16": "<f2", "float32": "<f4"}
_COARSE = 1e-30
"""Float32 has no normal numbers for the steps of a range below it."""
_NUMBERS = {name: number for number, name in ENCODINGS.items()}


@dataclass(frozen=True)
class Stored:
    """How a file kept a layer, where plain LINEAR16 between its smallest and largest weight would alter it.

    `encoding` is a key of `ITEM_BYTES`; `low` and `high` are LINEAR16's ends.
    """

    encoding: str
    low: float = 0.0
    high: float = 0.0


def _encoding_of(layer: Message) -> str:
    """LINEAR16 where the layer names none."""
    name = ENCODINGS.get(layer.get("encoding", 1), "unknown")
    if name not in ITEM_BYTES:
        number, known = layer.get("encoding"), ", ".join(ITEM_BYTES)
        raise UnsupportedNetwork(f"layer encoding number {number} is unknown; keima reads {known}")
    return name


def count(layer: Message) -> int:
    """How many numbers the layer holds.

    Raises:
        UnsupportedNetwork: an unknown encoding.
        BadWeights: its bytes are no whole number of numbers, or its stated dimensions have another product.
    """
    size = ITEM_BYTES[_encoding_of(layer)]
    params = layer.get("params", b"")
    if len(params) % size:
        raise BadWeights(f"{len(params):,} bytes are no whole number of {size}-byte weights")
    number = len(params) // size
    dims = layer.get("dims")
    if dims and int(np.prod([float(dim) for dim in dims])) != number:
        raise BadWeights(f"dimensions {' × '.join(map(str, dims))} do not make its {number:,} weights")
    return number


def decode(layer: Message) -> tuple[Floats, Stored | None]:
    """The layer's numbers, and how it was stored if that must be remembered to write it back unaltered.

    Raises:
        UnsupportedNetwork: an unknown encoding.
        BadWeights: a number that is not finite, or bytes that make no whole number of numbers.
    """
    count(layer)
    encoding, params = _encoding_of(layer), layer.get("params", b"")
    stored: Stored | None = Stored(encoding)
    if encoding == "linear16":
        low, high = layer.get("min_val", 0.0), layer.get("max_val", 0.0)
        ends = np.float32(low), np.float32(high)
        numbers = _expand(np.frombuffer(params, "<u2"), *ends)
        if len(numbers) and low <= high and (numbers.min(), numbers.max()) == ends:
            stored = None
        else:
            stored = Stored(encoding, low, high)
    elif encoding == "bfloat16":
        numbers = (np.frombuffer(params, "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        numbers = np.frombuffer(params, _DTYPES[encoding]).astype(np.float32)
    if not np.isfinite(numbers).all():
        raise BadWeights("holds numbers that are not finite")
    return numbers, stored


def _expand(steps: NDArray[np.uint16], low: np.float32, high: np.float32) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        theta = steps.astype(np.float32) / np.float32(65535)
        result: Floats = low * (1 - theta) + high * theta
    return result


def encode(numbers: Floats, encoding: str | None, stored: Stored | None) -> Message:
    """A layer holding finite numbers of any shape.

    FLOAT32, and numbers that came from the same encoding, are kept exactly; LINEAR16 otherwise moves a number by at
    most 1/131070 of the layer's range, FLOAT16 and BFLOAT16 to the nearest they can hold.

    Args:
        encoding: one of `ITEM_BYTES`; None for the one it was read with, LINEAR16 for numbers never read.
        stored: what `decode` said of this layer, if anything.
    """
    flat = np.ascontiguousarray(numbers, dtype=np.float32).ravel()
    chosen = encoding or (stored.encoding if stored is not None else "linear16")
    if chosen == "linear16":
        return _to_steps(flat, stored if stored is not None and stored.encoding == "linear16" else None)
    if chosen == "bfloat16":
        bits = flat.view(np.uint32)
        params = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()  # round half to even
    else:
        largest = np.float32(np.finfo(_DTYPES[chosen]).max)
        params = flat.clip(-largest, largest).astype(_DTYPES[chosen]).tobytes()
    return Message(LAYER, {"params": params, "encoding": _NUMBERS[chosen]})


def _to_steps(flat: Floats, stored: Stored | None) -> Message:
    """LINEAR16, with the remembered ends where they still give the same numbers."""
    if stored is not None:
        low, high = np.float32(stored.low), np.float32(stored.high)
        steps = _steps(flat, low, high)
        if np.array_equal(_expand(steps, low, high), flat):
            return _linear16(steps, low, high)
    low, high = (flat.min(), flat.max()) if len(flat) else (np.float32(0), np.float32(0))
    return _linear16(_steps(flat, low, high), low, high)


def _linear16(steps: NDArray[np.uint16], low: np.float32, high: np.float32) -> Message:
    return Message(LAYER, {"min_val": float(low), "max_val": float(high), "params": steps.astype("<u2").tobytes()})


def _steps(flat: Floats, low: np.float32, high: np.float32) -> NDArray[np.uint16]:
    """The steps nearest to `flat`; where float32 rounding hides it, the neighbour that expands to the same number."""
    span = float(high) - float(low)
    if span == 0 or not np.isfinite(span):
        return np.zeros(len(flat), np.uint16)
    steps = np.rint((flat.astype(np.float64) - float(low)) / span * 65535).clip(0, 65535).astype(np.uint16)
    for shift in (-1, 1):
        wrong = np.flatnonzero(_expand(steps, low, high) != flat)
        moved = (steps[wrong].astype(np.int64) + shift).clip(0, 65535).astype(np.uint16)
        better = _expand(moved, low, high) == flat[wrong]
        steps[wrong[better]] = moved[better]
    if span < _COARSE:  # rounding hides more than neighbours: look among all
        every = _expand(np.arange(65536, dtype=np.uint16), low, high)
        order = np.argsort(every, kind="stable")
        found = order[np.searchsorted(every[order], flat).clip(0, 65535)]
        steps = np.where(every[found] == flat, found, steps).astype(np.uint16)
    return steps
