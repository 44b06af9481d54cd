"""A network that is a hash of a connect-four position, in plain Python: for keima and for what it is held to."""

from __future__ import annotations

from collections.abc import Iterator

COLUMNS, ROWS = 7, 6
_MASK = (1 << 64) - 1


def _uniform(seed: int) -> Iterator[float]:
    """Numbers from 0 to below 1 (splitmix64)."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        yield ((mixed ^ (mixed >> 31)) >> 40) / (1 << 24)


def hashed_answer(own: int, other: int) -> tuple[list[float], float]:
    """Logits of the seven columns from −1.5 to 1.5 and a value from −0.9 to 0.9, for the side whose discs are `own`.

    A column with room for one disc has −20, so that none is ever filled.
    """
    numbers = _uniform((own * 3 + other * 0x9E3779B97F4A7C15) & _MASK)
    logits = [3 * next(numbers) - 1.5 for _ in range(COLUMNS)]
    for column in range(COLUMNS):
        if (own | other) >> (7 * column + ROWS - 2) & 1:
            logits[column] = -20.0
    return logits, 1.8 * next(numbers) - 0.9


def drop(own: int, other: int, column: int) -> tuple[int, int, bool]:
    """Bitboards after a disc fell, from the next side's view, and whether it made four; seven bits a column."""
    discs = own | other
    square = 1 << (7 * column)
    while discs & square:
        square <<= 1
    own |= square
    four = any(own & (own >> step) & (own >> 2 * step) & (own >> 3 * step) for step in (1, 7, 6, 8))
    return other, own, four


def is_full(own: int, other: int) -> bool:
    """Does some column take no disc?"""
    return any((own | other) >> (7 * column + ROWS - 1) & 1 for column in range(COLUMNS))
