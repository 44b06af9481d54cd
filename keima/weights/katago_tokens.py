"""The lowest level of KataGo's file format: words, numbers and float blocks in one long string.

Text files are words between white space. Binary files are the same, but each block of floats is `@BIN@` followed by
little-endian float32 (`readFloats` in KataGo's `cpp/neuralnet/desc.cpp`).
"""

from __future__ import annotations

import math
import re
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadWeights

_WORD = re.compile(rb"\s*([!-~]{1,256})(?=\s)")
_FLOAT_WORD = re.compile(rb"\S+")
_INTEGER = re.compile(rb"[+-]?[0-9]{1,9}")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_BINARY = b"@BIN@"

Floats = NDArray[np.float32]


class TokenReader:
    """Reads words and float blocks in order, and says where it was when something is wrong.

    No size in the file is believed before the bytes for it are known to be there.

    Attributes:
        data: the whole unpacked file.
        source: its name, for messages.
        at: offset of the next byte.
        layer: name of the layer being read.
    """

    def __init__(self, data: bytes, source: str) -> None:
        self.data = data
        self.source = source
        self.at = 0
        self.layer = "header"
        self._binary: bool | None = None

    def error(self, message: str) -> BadWeights:
        """The error to raise for what was found at the present place."""
        return BadWeights(message, source=self.source, place=f"{self.layer}, byte {self.at:,}")

    def word(self, what: str) -> bytes:
        """The next word; `what` says what it should be.

        Raises:
            BadWeights: the file ends there or within the word, or holds no printable word there.
        """
        match = _WORD.match(self.data, self.at)
        if match is None:
            rest = self.data[self.at : self.at + 24].strip()
            found = f"found {rest!r}" if rest else "the file ends there; it is cut short"
            raise self.error(f"expected {what}, but {found}")
        self.at = match.end()
        return match.group(1)

    def name(self, what: str) -> str:
        """The next word as a name, which becomes the layer that errors speak of.

        Raises:
            BadWeights: as by `word`, or a number or a float block stands there.
        """
        word = self.word(f"the name of {what}")
        if _NUMBER.fullmatch(word) or word.startswith(_BINARY):
            raise self.error(f"expected the name of {what}, but found {word[:24]!r}")
        self.layer = word.decode("ascii")
        return self.layer

    def integer(self, what: str, low: int = 1, high: int = 1 << 24) -> int:
        """The next word as an integer in [low, high].

        Raises:
            BadWeights: it is none, or out of range.
        """
        word = self.word(what)
        if _INTEGER.fullmatch(word) is None or not low <= int(word) <= high:
            raise self.error(f"expected {what}, an integer from {low} to {high}, but found {word[:24]!r}")
        return int(word)

    def number(self, what: str, high: float = math.inf) -> float:
        """The next word as a positive finite number of at most `high`.

        Raises:
            BadWeights: it is none, or out of range.
        """
        word = self.word(what)
        number = float(word) if _NUMBER.fullmatch(word) else math.nan
        if not 0.0 < number <= high or math.isinf(number):
            raise self.error(f"expected {what}, a positive number, but found {word[:24]!r}")
        return number

    def floats(self, count: int) -> Floats:
        """The next block of `count` floats, float32 [count], in memory of its own.

        Raises:
            BadWeights: the block is missing, shorter than `count`, or holds a number that is not finite.
        """
        while self.data[self.at : self.at + 1].isspace():
            self.at += 1
        binary = self.data.startswith(_BINARY, self.at)
        if self._binary is not None and binary != self._binary:
            raise self.error("binary and text float blocks in one file")
        self._binary = binary
        values = self._binary_floats(count) if binary else self._text_floats(count)
        if not np.isfinite(values).all():
            raise self.error(f"weight {int(np.argmin(np.isfinite(values)))} of {count:,} is not a finite number")
        return values

    def finish(self) -> None:
        """Check that the last line ends, and that nothing but white space is left.

        Raises:
            BadWeights: it does not (its last number may be cut), or something is.
        """
        if self.at == len(self.data):
            raise self.error("the file ends within its last line; it is cut short")
        rest = self.data[self.at :].strip()
        if rest:
            self.layer = "after the last layer"
            raise self.error(f"{len(rest):,} bytes that belong to no layer, beginning {rest[:24]!r}")

    def _need(self, count: int, least: int, left: int) -> None:
        if least > left:
            raise self.error(
                f"the layer says {count:,} floats, but only {left:,} bytes are left; the file is cut short"
            )

    def _binary_floats(self, count: int) -> Floats:
        begin = self.at + len(_BINARY)
        self._need(count, 4 * count, len(self.data) - begin)
        self.at = begin + 4 * count
        return np.frombuffer(self.data, dtype="<f4", count=count, offset=begin).astype(np.float32)

    def _text_floats(self, count: int) -> Floats:
        self._need(count, 2 * count - 1, len(self.data) - self.at)
        words = list(islice(_FLOAT_WORD.finditer(self.data, self.at), count))
        if len(words) < count:
            raise self.error(
                f"the layer says {count:,} floats, but only {len(words):,} are left; the file is cut short"
            )
        for word in words:
            if _NUMBER.fullmatch(word.group()) is None:
                self.at = word.start()
                raise self.error(f"expected a number, but found {word.group()[:24]!r}")
        self.at = words[-1].end()
        with np.errstate(over="ignore"):
            return np.array([float(word.group()) for word in words], dtype=np.float64).astype(np.float32)


class TokenWriter:
    """Writes the same, one word a line as KataGo's exporter does.

    Attributes:
        binary: write floats as `@BIN@` blocks; else as text with nine digits, which give back the same float32.
    """

    def __init__(self, binary: bool) -> None:
        self.binary = binary
        self._parts: list[bytes] = []

    def words(self, *words: str | float) -> None:
        """One line each: names, integers, and floats in Python's shortest form."""
        for word in words:
            self._parts.append(f"{word}\n".encode("ascii"))

    def floats(self, values: Floats) -> None:
        """One block of floats, flattened in C order."""
        flat = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
        if self.binary:
            self._parts += [_BINARY, flat.tobytes(), b"\n"]
        else:
            self._parts.append(" ".join(f"{value:.9g}" for value in flat.tolist()).encode("ascii") + b"\n")

    def result(self) -> bytes:
        """Everything written so far."""
        return b"".join(self._parts)
