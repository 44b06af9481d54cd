"""One file of game records or positions as a stream: plain, `.gz`, a member of a `.zip`, standard input."""

from __future__ import annotations

import gzip
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from keima.errors import BadRecord

STDIN = "-"
READ_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What the standard library raises for a file that is missing, truncated, corrupt or encrypted."""


@dataclass(frozen=True)
class GameFile:
    """One file of game records: on disk, or a member of a zip archive."""

    name: str  # what messages call it: the path, or `archive.zip!member`
    path: Path  # the file on disk
    member: str | None = None  # its name inside a zip archive, else None

    @classmethod
    def named(cls, name: str) -> GameFile:
        """The file of that name if there is one, else the archive's member."""
        ends = () if Path(name).is_file() else [mark.start() for mark in re.finditer("!", name)]
        archive = next((name[:end] for end in ends if Path(name[:end]).is_file()), None)
        return cls(name, Path(name)) if archive is None else cls(name, Path(archive), name[len(archive) + 1 :])

    @property
    def inner_name(self) -> str:
        """The path, or the name inside the archive."""
        return str(self.path) if self.member is None else self.member

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The unpacked bytes as a stream.

        Raises:
            BadRecord: the file cannot be opened or unpacked (also while the stream is read).
        """
        try:
            with open_stream(self.path, self.member) as stream:
                yield stream
        except READ_ERRORS as error:
            raise BadRecord(f"cannot be read: {reason_of(error)}", source=self.name) from error


@contextmanager
def open_stream(path: Path | str, member: str | None = None) -> Iterator[IO[bytes]]:
    """A binary stream of a file (or a zip member), unpacked if it is gzip by content; `-` is standard input."""
    if str(path) == STDIN:
        yield sys.stdin.buffer
    elif member is not None:
        with zipfile.ZipFile(path) as archive, archive.open(member) as packed, _unpacked(packed) as stream:
            yield stream
    else:
        with Path(path).open("rb") as packed, _unpacked(packed) as stream:
            yield stream


@contextmanager
def _unpacked(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    magic = stream.read(2)
    stream.seek(0)
    if magic == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=stream) as plain:
            yield plain  # type: ignore[misc]  # GzipFile reads like any binary stream
    else:
        yield stream


def reason_of(error: BaseException) -> str:
    """What went wrong, without the path."""
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
