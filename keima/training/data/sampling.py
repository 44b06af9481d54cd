"""Which position comes when: an order over billions of positions that is computed, never stored.

An epoch visits every position once, in the order of a pseudo-random permutation. It is a Feistel network (Luby and
Rackoff 1988) on the bits of the position's number: each round replaces one half by its exclusive or with a hash of the
other half, which can be undone whatever the hash is, so it permutes all numbers of those bits. A number past the last
position is sent through again ("cycle walking", Black and Rogaway 2002) until it lands on one. So any place of any
epoch is found at once, memory stays flat, and going on after a stop is a matter of knowing the step.

Random numbers (symmetries, a ply within a game) are hashes of (seed, purpose, counter) for the same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.jit import njit

ROUNDS = 8
"""Feistel rounds; four already pass statistical tests on large ranges, small ranges need more."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _ONE = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(1)
_MASK = (1 << 64) - 1


@njit
def mix(x: Any) -> Any:
    """A uint64 from a uint64: splitmix64's finaliser (Steele et al. 2014), a bijection that scatters all bits."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


def key_of(*parts: int) -> np.uint64:
    """One 64-bit key from whole numbers: a seed, an epoch, a purpose."""
    key = 0
    for part in parts:
        key = int(_mixed((key ^ (part & _MASK)) + int(_GOLDEN) & _MASK))
    return np.uint64(key)


def _mixed(x: int) -> int:
    """`mix` on Python's integers."""
    x = (x ^ x >> 30) * int(_MIX_1) & _MASK
    x = (x ^ x >> 27) * int(_MIX_2) & _MASK
    return x ^ x >> 31


@njit
def fill_random(key: Any, first: int, values: NDArray[np.uint64]) -> None:
    """Write the random numbers `first`, `first + 1`, ... of a key into `values` (uint64 [n])."""
    for i in range(len(values)):
        values[i] = mix(key ^ mix(np.uint64(first + i) * _GOLDEN + _GOLDEN))


@njit
def _permute_once(x: Any, key: Any, low_bits: Any, high_bits: Any) -> Any:
    """The Feistel network: a permutation of the numbers of `low_bits + high_bits` bits."""
    low_mask = (_ONE << low_bits) - _ONE
    high_mask = (_ONE << high_bits) - _ONE
    low = x & low_mask
    high = x >> low_bits
    for k in range(ROUNDS // 2):
        high ^= mix(low + key + np.uint64(2 * k) * _GOLDEN) & high_mask
        low ^= mix(high + key + np.uint64(2 * k + 1) * _GOLDEN) & low_mask
    return (high << low_bits) | low


@njit
def permute(places: NDArray[np.int64], count: int, key: Any, numbers: NDArray[np.int64]) -> None:
    """Write which of `count` things stands at each of these places of the permuted order.

    Args:
        places: int64 [n], each in 0 … count − 1.
        count: 1 or more.
        key: uint64, which permutation.
        numbers: int64 [n], written: 0 … count − 1, different for different places.
    """
    bits = 0
    while (count - 1) >> bits:
        bits += 1
    low_bits, high_bits = np.uint64((bits + 1) // 2), np.uint64(bits // 2)
    for i in range(len(places)):
        x = np.uint64(places[i])
        while True:
            x = _permute_once(x, key, low_bits, high_bits)
            if x < np.uint64(count):
                break
        numbers[i] = np.int64(x)


def stream(first: int, size: int, count: int, seed: int) -> NDArray[np.int64]:
    """Things at places `first` … `first + size − 1` of the endless stream of epochs over `count` of them, int64 [size].

    Every epoch of every seed has an order of its own; place 0 is the start of epoch 0.

    Raises:
        BadRequest: nothing to sample from, or a negative place.
    """
    if count < 1 or first < 0:
        raise BadRequest(f"cannot sample place {first} of a stream over {count} positions")
    places = np.arange(first, first + size, dtype=np.int64)
    epochs = places // count
    numbers = np.empty(size, np.int64)
    for epoch in np.unique(epochs).tolist():
        here = epochs == epoch
        found = np.empty(int(here.sum()), np.int64)
        permute(places[here] - epoch * count, count, key_of(seed, epoch), found)
        numbers[here] = found
    return numbers


def random_numbers(seed: int, purpose: int, first: int, size: int) -> NDArray[np.uint64]:
    """Random numbers `first` … `first + size − 1` of one purpose (any whole number) under a seed, uint64 [size]."""
    values = np.empty(size, np.uint64)
    fill_random(key_of(seed, -1, purpose), first, values)
    return values
