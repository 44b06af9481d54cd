"""Rollout policies as safetensors files: the feature weights and nothing else.

What `keima train` writes (a `RolloutSoftmax` in keima's own format) is read as well.

Tensors: `simple` float32 [2] (response, save atari), `neighbour` float32 [8], `nakade` float32 [8192], and for the two
pattern tables `pattern_keys` / `response_keys` int64 [n] with `pattern_weights` / `response_weights` float32 [n]. The
header's `__metadata__` holds `keima.rollout` = "1". Weights are log-odds.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from keima.errors import BadWeights
from keima.systems.alphago.local_features import NAKADE_PATTERNS
from keima.systems.alphago.rollout import MAX_PATTERNS, RolloutPolicy
from keima.systems.alphago.rollout_network import RolloutSoftmax
from keima.systems.files.contents import atomic_write, read_bytes
from keima.systems.files.safetensors import read_safetensors

VERSION = "1"
_MAX_WEIGHT = 80
"""Of log-odds: float32 holds their exponentials."""
_SHAPES = {"simple": (2,), "neighbour": (8,), "nakade": (NAKADE_PATTERNS,)}
_TABLES = ("pattern", "response")


def write_rollout(policy: RolloutPolicy, path: str | os.PathLike[str]) -> None:
    """Write a rollout policy, whole or not at all.

    Raises:
        BadWeights: the file cannot be written.
    """
    table = policy.weights[0]
    tensors: dict[str, NDArray[np.generic]] = {
        "simple": np.log(np.array([table["response"], table["save_atari"]], np.float32)),
        "neighbour": np.log(table["neighbour"]),
        "nakade": np.log(table["nakade"]),
    }
    for name in _TABLES:
        used = np.nonzero(table[f"{name}_keys"])[0]
        keys = table[f"{name}_keys"][used] - np.uint64(1)
        order = np.argsort(keys)
        tensors[f"{name}_keys"] = keys[order].astype(np.int64)
        tensors[f"{name}_weights"] = np.log(table[f"{name}_values"][used][order])
    atomic_write(path, save(tensors, {"keima.rollout": VERSION}))


def read_rollout(path: str | os.PathLike[str]) -> RolloutPolicy:
    """Read a rollout policy that `write_rollout` or a training run wrote.

    Raises:
        BadWeights: not such a file, cut short or corrupt, or tensors of another name, shape, type or range.
    """
    source = os.fspath(path)
    data = read_bytes(path)
    if b'"keima.network"' in data[: int.from_bytes(data[:8], "little") + 8]:
        network = read_safetensors(path)
        if not isinstance(network, RolloutSoftmax):
            raise BadWeights(f"holds a network of {network.system}, no rollout policy", source=source)
        return network.to_policy()
    try:
        tensors = load(data)
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise BadWeights(f"not a safetensors file: {error}", source=source) from error
    expected = {*_SHAPES, *(f"{name}_{part}" for name in _TABLES for part in ("keys", "weights"))}
    if set(tensors) != expected:
        raise BadWeights(f"holds {sorted(tensors)}, a rollout policy holds {sorted(expected)}", source=source)
    for name, shape in _SHAPES.items():
        if tensors[name].shape != shape or tensors[name].dtype != np.float32:
            found = f"{tensors[name].dtype} {list(tensors[name].shape)}"
            raise BadWeights(f"{found}, expected float32 {list(shape)}", source=source, place=name)
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise BadWeights("a number is not finite", source=source, place=name)
        if values.dtype == np.float32 and (np.abs(values) > _MAX_WEIGHT).any():
            raise BadWeights(f"a weight beyond ±{_MAX_WEIGHT}", source=source, place=name)
    return RolloutPolicy(
        patterns=_table(tensors, "pattern", source),
        responses=_table(tensors, "response", source),
        nakade=tensors["nakade"],
        neighbour=tensors["neighbour"],
        response=float(tensors["simple"][0]),
        save_atari=float(tensors["simple"][1]),
    )


def _table(tensors: dict[str, NDArray[np.generic]], name: str, source: str) -> dict[int, float]:
    keys, weights = tensors[f"{name}_keys"], tensors[f"{name}_weights"]
    if keys.ndim != 1 or keys.shape != weights.shape or keys.dtype != np.int64 or weights.dtype != np.float32:
        raise BadWeights("keys int64 [n] and weights float32 [n] do not match", source=source, place=f"{name}_keys")
    if len(keys) > MAX_PATTERNS or (len(keys) and keys.min() < 0):
        message = f"patterns must be at most {MAX_PATTERNS:,}, none negative"
        raise BadWeights(message, source=source, place=f"{name}_keys")
    return dict(zip(keys.tolist(), weights.tolist(), strict=True))
