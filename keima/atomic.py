"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """A stream beside `path` that takes its place, on the disk, when the block ends well; else nothing is changed.

    A symbolic link stays one, and the file it points to is replaced. What is no file (a device, a pipe) is written to
    as it is: there is nothing to replace.

    `mode` is "wb", or "w" for text in UTF-8.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full.
    """
    encoding = None if "b" in mode else "utf-8"
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open(mode, encoding=encoding) as stream:
            yield stream
        return
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, mode, encoding=encoding) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
