"""The lowest level of KataGo's file format: words between white space, and blocks of floats.

In binary files a block is `@BIN@` and little-endian float32 (`readFloats` in KataGo's `cpp/neuralnet/desc.cpp`).
`TokenReader` and `TokenWriter` have the same methods: each takes what the network holds there, which the writer writes
and the reader ignores, and returns what the file holds there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keima.errors import BadWeights, UnsupportedNetwork

_WORD = re.compile(rb"\s*([!-~]{1,256})(?=\s)")
_INTEGER = re.compile(rb"[+-]?[0-9]{1,9}")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_IN_NUMBERS = b"0123456789eE.+- \t\n\r\v\f"
_SPACE = re.compile(rb"\s")
_BINARY = b"@BIN@"
_MAX_FLOAT = float(np.finfo(np.float32).max)

Floats = NDArray[np.float32]


class TokenReader:
    """Reads words and float blocks in order; raises BadWeights, which says where, for what is missing or wrong.

    No size in the file is believed before the bytes for it are known to be there.
    """

    def __init__(self, data: bytes, source: str) -> None:
        self.data = data  # the whole unpacked file
        self.source = source  # its name, for messages
        self.at = 0  # offset of the next byte
        self.layer = "header"  # name of the layer being read
        self.state: dict[str, Tensor] = {}  # the float blocks read so far
        self._binary: bool | None = None

    def error(self, message: str) -> BadWeights:
        """The error for what was found at the present place."""
        return BadWeights(message, source=self.source, place=f"{self.layer}, byte {self.at:,}")

    def unsupported(self, message: str) -> UnsupportedNetwork:
        """The same for what is well-formed and not run."""
        return UnsupportedNetwork(message, source=self.source, place=f"{self.layer}, byte {self.at:,}")

    def word(self, what: str, word: str = "") -> str:
        """The next printable word; `what` says what it should be."""
        match = _WORD.match(self.data, self.at)
        if match is None:
            rest = self.data[self.at : self.at + 24].strip()
            found = f"found {rest!r}" if rest else "the file ends there; it is cut short"
            raise self.error(f"expected {what}, but {found}")
        self.at = match.end()
        return match.group(1).decode("ascii")

    def name(self, what: str, name: str = "") -> str:
        """The next word as a name, no number and no float block, which becomes the layer that errors speak of."""
        word = self.word(f"the name of {what}")
        if _NUMBER.fullmatch(word.encode()) or word.encode().startswith(_BINARY):
            raise self.error(f"expected the name of {what}, but found {word[:24].encode()!r}")
        self.layer = word
        return word

    def integer(self, what: str, value: int = 0, low: int = 1, high: int = 1 << 24) -> int:
        """The next word as an integer in [low, high]."""
        word = self.word(what).encode()
        if _INTEGER.fullmatch(word) is None or not low <= int(word) <= high:
            raise self.error(f"expected {what}, an integer from {low} to {high}, but found {word[:24]!r}")
        return int(word)

    def number(self, what: str, value: float = 0.0, high: float = _MAX_FLOAT) -> float:
        """The next word as a positive number of at most `high`."""
        word = self.word(what).encode()
        number = float(word) if _NUMBER.fullmatch(word) else math.nan
        if not 0.0 < number <= high:
            raise self.error(f"expected {what}, a positive number, but found {word[:24]!r}")
        return number

    def size(self, what: str, value: int, free: bool = False) -> int:
        """The next word as a number of channels, which is `value` where the file is not `free` to say."""
        found = self.integer(f"the number of {what}")
        if not free and found != value:
            raise self.error(f"{found} {what}, but the layers around it need {value}")
        return found

    def floats(self, key: str, shape: tuple[int, ...], order: tuple[int, ...] = (), absent: float = 0.0) -> Floats:
        """The next block of floats, which becomes the tensor `key`, in memory of its own.

        Args:
            key: the tensor's name.
            shape: in the file.
            order: the file's axes in PyTorch's order; empty for the same.
            absent: what the writer writes where the network has no such tensor.
        """
        count = math.prod(shape)
        while self.data[self.at : self.at + 1].isspace():
            self.at += 1
        binary = self.data.startswith(_BINARY, self.at)
        if self._binary is not None and binary != self._binary:
            raise self.error("binary and text float blocks in one file")
        self._binary = binary
        values = self._binary_floats(count) if binary else self._text_floats(count)
        finite = np.isfinite(values)
        if not finite.all():
            raise self.error(f"weight {int(np.argmin(finite))} of {count:,} is not a finite number")
        values = values.reshape(shape).transpose(order or range(len(shape)))
        self.state[key] = torch.from_numpy(np.array(values, dtype=np.float32, order="C"))
        return values

    def finish(self) -> None:
        """Check that the last line ends (its last number may be cut), and that nothing but white space is left."""
        if self.at == len(self.data):
            raise self.error("the file ends within its last line; it is cut short")
        rest = self.data[self.at :].strip()
        if rest:
            self.layer = "after the last layer"
            raise self.error(f"{len(rest):,} bytes that belong to no layer, beginning {rest[:24]!r}")

    def _need(self, count: int, least: int, left: int) -> None:
        if least > left:
            raise self._short(count, f"{left:,} bytes")

    def _short(self, count: int, left: str) -> BadWeights:
        return self.error(f"the layer says {count:,} floats, but only {left} are left; the file is cut short")

    def _binary_floats(self, count: int) -> Floats:
        begin = self.at + len(_BINARY)
        self._need(count, 4 * count, len(self.data) - begin)
        self.at = begin + 4 * count
        return np.frombuffer(self.data, dtype="<f4", count=count, offset=begin)

    def _text_floats(self, count: int) -> Floats:
        """The next `count` words as numbers, whatever white space is between them."""
        self._need(count, 2 * count - 1, len(self.data) - self.at)
        words: list[bytes] = []
        begin = end = self.at
        while len(words) < count and end < len(self.data):
            missing = count - len(words)
            space = _SPACE.search(self.data, end + 32 * missing)
            window = self.data[end : space.end() if space else len(self.data)]
            words += window.split(None, missing)
            if len(words) > count:
                window = window[: len(window) - len(words.pop())]
            end += len(window.rstrip() if len(words) == count else window)
        if len(words) < count:
            raise self._short(count, f"{len(words):,}")
        try:
            if self.data[begin:end].translate(None, _IN_NUMBERS):
                raise ValueError  # noqa: TRY301 (what `float` takes and KataGo does not: inf, nan, 1_0)
            numbers = np.array(list(map(float, words)))
        except ValueError:
            words_at = re.compile(rb"\S+").finditer(self.data, begin)
            wrong = next(word for word in words_at if _NUMBER.fullmatch(word.group()) is None)
            self.at = wrong.start()
            raise self.error(f"expected a number, but found {wrong.group()[:24]!r}") from None
        self.at = end
        with np.errstate(over="ignore"):
            return numbers.astype(np.float32)


class TokenWriter:
    """Writes the tensors of `state`, one word a line as KataGo's exporter does; floats as `@BIN@` blocks if `binary`.

    Text has nine digits, which give back the same float32.
    """

    def __init__(self, state: Mapping[str, Tensor], binary: bool) -> None:
        self.state = dict(state)
        self.binary = binary
        self._parts: list[bytes] = []

    def error(self, message: str) -> BadWeights:
        """The network cannot be written."""
        return BadWeights(message)

    def unsupported(self, message: str) -> UnsupportedNetwork:
        """The network cannot be written."""
        return UnsupportedNetwork(message)

    def word(self, what: str, word: str) -> str:
        """One line, as all but float blocks."""
        self._parts.append(f"{word}\n".encode("ascii"))
        return word

    def name(self, what: str, name: str) -> str:
        """One line."""
        return self.word(what, name)

    def integer(self, what: str, value: int, low: int = 1, high: int = 1 << 24) -> int:
        """One line."""
        self.word(what, str(value))
        return value

    def number(self, what: str, value: float, high: float = _MAX_FLOAT) -> float:
        """One line, in Python's shortest form."""
        self.word(what, str(value))
        return value

    def size(self, what: str, value: int, free: bool = False) -> int:
        """One line."""
        return self.integer(what, value)

    def floats(self, key: str, shape: tuple[int, ...], order: tuple[int, ...] = (), absent: float = 0.0) -> Floats:
        """One block; raises BadWeights for a weight that is not finite, which KataGo refuses."""
        tensor = self.state.get(key)
        values = np.full(shape, absent, np.float32)
        if tensor is not None:
            values = tensor.detach().to("cpu", torch.float32).numpy().transpose(np.argsort(order or range(len(shape))))
        if not np.isfinite(values).all():
            raise BadWeights("a weight is not a finite number; KataGo refuses such a file", place=key)
        flat = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
        if self.binary:
            self._parts += [_BINARY, flat.tobytes(), b"\n"]
        else:
            self._parts.append(" ".join([f"{value:.9g}" for value in flat.tolist()]).encode("ascii") + b"\n")
        return values

    def result(self) -> bytes:
        """Everything written so far."""
        return b"".join(self._parts)


Tokens: TypeAlias = "TokenReader | TokenWriter"
