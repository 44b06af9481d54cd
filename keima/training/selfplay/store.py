"""Where a run is kept: named files in a folder, or at any address that fsspec knows (`s3://…`, `gs://…`, `memory://`).

A file is there whole or not at all: in a folder by writing beside it and renaming, in object stores because putting an
object is atomic. A store that cannot be reached, or whose disk is full, is tried again with growing waits, each of them
told; after `patience` seconds the work ends with the cause.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from keima.atomic import replacing
from keima.errors import BadRequest, BadStore
from keima.plain import Fields

try:
    import fsspec
    from fsspec.implementations.local import LocalFileSystem
except ImportError as error:
    raise BadRequest("self-play needs fsspec, which is not installed: pip install 'keima[train]'") from error

T = TypeVar("T")
Names = list[str]

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds between two tries; each wait is twice the one before."""
PATIENCE = 3600.0
"""Seconds of trying before a store is given up."""

_LASTING = (
    *(ImportError, NotImplementedError, TypeError, ValueError),
    *(FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError),
)
_LASTING_NUMBERS = frozenset({errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP})


class StoreLost(BadStore):
    """A store that does not answer, or refuses: nothing is known of its files."""


class Store:
    """Files by name ("games/….parquet") below an address.

    Args:
        address: a folder, made when something is written, or an address of fsspec; what opens it (keys, an endpoint)
            comes from the environment as fsspec and its packages read it (FSSPEC_S3_ENDPOINT_URL, AWS_…), or from
            `options`.
        on_wait: is told why it waits and how long; what it raises ends the waiting.
        patience: seconds.

    Attributes:
        local: the folder, where it is one.

    Raises:
        BadStore: an address that nothing opens.
        StoreLost: from every method, a store that stays unreachable, is full or refuses.
    """

    def __init__(
        self,
        address: str | os.PathLike[str],
        on_wait: Callable[[str], None] | None = None,
        patience: float = PATIENCE,
        options: Fields | None = None,
    ) -> None:
        self.address = os.fspath(address).rstrip("/") or "/"
        self.on_wait, self.patience = on_wait, patience
        try:
            self._files, root = fsspec.core.url_to_fs(self.address, **dict(options or {}))
        except (ImportError, ValueError, OSError) as error:
            raise BadStore(f"no address of a store: {_reason(error)}", source=self.address) from error
        self._root: str = root.rstrip("/")
        self.local = Path(root) if isinstance(self._files, LocalFileSystem) else None

    def __repr__(self) -> str:
        return f"<Store {self.address}>"

    def list(self, folder: str) -> Names:
        """The names of the files of a folder, sorted, with the folder before them; none of a folder that is missing."""
        return self._try(f"list {folder}", lambda _: self._list(folder))

    def read(self, name: str) -> bytes:
        """A file's bytes. Raises BadStore for one that is missing."""
        if self.local is not None:
            return self._try(f"read {name}", lambda _: (self._place(name)).read_bytes())
        return self._try(f"read {name}", lambda _: bytes(self._files.cat_file(self._path(name))))

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole, in place of one of this name."""
        self._try(f"write {name}", lambda _: self._write(name, data))

    def write_new(self, name: str, data: bytes) -> bool:
        """Write a file unless there is one of this name; of several who try at once, one is told True.

        In object stores that cannot promise it, two may be told True, and the last one's file stays.
        """
        return self._try(f"write {name}", lambda tries: self._write_new(name, data, tries))

    def exists(self, name: str) -> bool:
        """Is there a file of this name?"""
        return self._try(f"look for {name}", lambda _: self._exists(name))

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        self._try(f"delete {name}", lambda _: self._delete(name))

    # --- Once ---------------------------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _place(self, name: str) -> Path:
        assert self.local is not None
        return self.local / name

    def _list(self, folder: str) -> Names:
        try:
            if self.local is not None:
                with os.scandir(self._place(folder)) as found:
                    names = [each.name for each in found if each.is_file()]
            else:
                self._files.invalidate_cache()
                found = self._files.ls(self._path(folder), detail=True)
                names = [each["name"].rpartition("/")[2] for each in found if each["type"] == "file"]
        except FileNotFoundError:
            return []
        return sorted(f"{folder}/{name}" for name in names if name and not name.startswith("."))

    def _write(self, name: str, data: bytes) -> None:
        if self.local is None:
            self._files.pipe_file(self._path(name), data)
            return
        place = self._place(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as stream:
            stream.write(data)

    def _write_new(self, name: str, data: bytes, tries: int) -> bool:
        if self.local is not None:
            return _create(self._place(name), data)
        if not self._exists(name):
            try:
                self._files.pipe_file(self._path(name), data, mode="create")
            except (TypeError, NotImplementedError):  # it knows no such mode
                self._files.pipe_file(self._path(name), data)
            except FileExistsError:
                pass
            else:
                return True
        # an earlier try may have come through although its answer was lost
        return tries > 0 and bytes(self._files.cat_file(self._path(name))) == data

    def _exists(self, name: str) -> bool:
        if self.local is not None:
            return self._place(name).is_file()
        self._files.invalidate_cache()
        try:
            return bool(self._files.info(self._path(name))["type"] == "file")
        except FileNotFoundError:
            return False

    def _delete(self, name: str) -> None:
        if self.local is not None:
            self._place(name).unlink(missing_ok=True)
        elif self._exists(name):
            self._files.rm_file(self._path(name))

    # --- Again --------------------------------------------------------------------------------------------------------

    def _try(self, what: str, work: Callable[[int], T]) -> T:
        """The work's result; `work` is told how often it was tried before."""
        began, wait, tries = time.monotonic(), FIRST_WAIT, 0
        while True:
            try:
                return work(tries)
            except Exception as error:
                left = self.patience - (time.monotonic() - began)
                if isinstance(error, _LASTING) or getattr(error, "errno", None) in _LASTING_NUMBERS or left <= 0:
                    given_up = "" if tries == 0 else f" (given up after {tries + 1} tries)"
                    kind = BadStore if isinstance(error, FileNotFoundError) else StoreLost
                    raise kind(f"cannot {what}: {_reason(error)}{given_up}", source=self.address) from error
                wait = min(wait, left)
                if self.on_wait is not None:
                    self.on_wait(f"{self.address}: cannot {what}: {_reason(error)}; trying again in {wait:.1f} s")
            time.sleep(wait)
            wait, tries = min(2 * wait, LONGEST_WAIT), tries + 1


def _create(place: Path, data: bytes) -> bool:
    """Write a file whole unless it exists."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        return False
    descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.link(temporary, place)
    except FileExistsError:
        return False
    finally:
        Path(temporary).unlink(missing_ok=True)
    return True


def _reason(error: Any) -> str:
    """An exception in a line; a missing file in words of its own."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    text = (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
    return text if isinstance(error, OSError) else f"{type(error).__name__}: {text}"
