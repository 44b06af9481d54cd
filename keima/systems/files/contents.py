"""Network files as whole byte strings: what a format is, compression, size limits, atomic replacement, digests."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from keima.atomic import replacing
from keima.errors import BadWeights

if TYPE_CHECKING:
    from keima.systems.network import Network

FilePath: TypeAlias = "str | os.PathLike[str]"

MAX_BYTES = 4 << 30
"""Refuse files that unpack to more than this (4 GiB); the largest published networks are below 2 GiB."""

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Format:
    """A file format. A system's `file.py` declares `FORMATS`; `keima.load` and `keima.save` know formats only so."""

    title: str  # as lists of what can be read name it, versions and endings included
    looks_like: Callable[[bytes], bool]  # whether the first 4096 bytes of a file, decompressed, begin such a file
    # the network in a file, in evaluation mode; raises BadWeights or UnsupportedNetwork
    read: Callable[[FilePath], Network]
    # writes a network whole or not at all; raises UnsupportedNetwork for one that the format cannot hold
    write: Callable[[Network, FilePath], None]


@contextmanager
def _opened(path: FilePath) -> Iterator[BinaryIO]:
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise BadWeights(f"cannot read the file: {error.strerror or error}", source=os.fspath(path)) from error


def read_bytes(path: FilePath, limit: int = MAX_BYTES) -> bytes:
    """The file's contents, decompressed when it begins with gzip's magic whatever its name.

    Raises:
        BadWeights: the file cannot be read, is cut short or corrupt as gzip, or unpacks to more than `limit` bytes.
    """
    source = os.fspath(path)
    with _opened(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise BadWeights(f"the file is larger than the limit of {limit:,} bytes", source=source)
        packed = file.read()
    return _gunzip(packed, limit, source) if packed.startswith(_GZIP_MAGIC) else packed


def read_head(path: FilePath, size: int = 4096) -> bytes:
    """The first `size` bytes of the contents (fewer when the file is shorter); otherwise as `read_bytes`."""
    with _opened(path) as file:
        packed = file.read(size)
        if not packed.startswith(_GZIP_MAGIC):
            return packed
        packed += file.read(size)
    try:
        return zlib.decompressobj(wbits=31).decompress(packed, size)
    except zlib.error as error:
        message = f"corrupt gzip data ({error}); download it again"
        raise BadWeights(message, source=os.fspath(path)) from error


def _gunzip(packed: bytes, limit: int, source: str) -> bytes:
    """Unpack all members of a gzip string, never holding more than `limit` bytes of result."""
    parts: list[bytes] = []
    size = 0
    rest = packed
    while rest.startswith(_GZIP_MAGIC):
        member = zlib.decompressobj(wbits=31)
        try:
            parts.append(member.decompress(rest, limit - size + 1))
        except zlib.error as error:
            place = f"byte {size:,} of the unpacked data"
            raise BadWeights(f"corrupt gzip data ({error}); download it again", source=source, place=place) from error
        size += len(parts[-1])
        if size > limit:
            raise BadWeights(f"the file unpacks to more than the limit of {limit:,} bytes", source=source)
        if not member.eof:
            message = f"the gzip data ends too early, after {size:,} unpacked bytes; download it again"
            raise BadWeights(message, source=source)
        rest = member.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def atomic_write(path: FilePath, data: bytes, *, gzipped: bool = False) -> None:
    """Write `data` to `path` whole or not at all; gzipped (reproducibly, no time stamp) if asked or named .gz.

    Raises:
        BadWeights: the folder is missing or not writable, or the disk is full; the old file, if any, is untouched.
    """
    target = Path(path)
    if gzipped or target.suffix == ".gz":
        data = gzip.compress(data, compresslevel=6, mtime=0)
    try:
        with replacing(target) as file:
            file.write(data)
    except OSError as error:
        raise BadWeights(f"cannot write the file: {error.strerror or error}", source=str(target)) from error


def sha256_of(path: FilePath) -> str:
    """SHA-256 of the file as it lies on disk, as 64 hex digits; raises BadWeights if it cannot be read."""
    digest = hashlib.sha256()
    with _opened(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
