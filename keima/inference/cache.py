"""Compiled networks kept on disk, so that the second start need not trace and convert again.

A file is `MAGIC`, the SHA-256 of the payload, the payload. Whatever does not match is treated as absent; a disk that
is full is no error. Files are written whole, so readers and writers in several processes do not meet.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import torch
from torch import nn

from keima.atomic import replacing
from keima.places import cache_folder, usual_cache_folder

MAGIC = b"keima compiled network 1\n"
LIMIT_BYTES = 2 << 30
"""The cache keeps at most this much; the files longest unused go first."""


_ORIGIN = ("pedigree", "encoding", "onnx", "quantization")


def fingerprint(module: nn.Module) -> str:
    """SHA-256 (hex) of everything an `nn.Module` computes with: classes, settings, parameters, buffers.

    Settings are the public attributes of every submodule (numbers, strings, functions, records of them). Where a
    network comes from (`pedigree`), its other numbers (`quantization`) and the source of its classes are no part of it.
    """
    digest = hashlib.sha256()
    for name, part in module.named_modules():
        public = sorted(key for key in vars(part) if not key.startswith("_") and key not in _ORIGIN)
        settings = [f"{key}={_describe(vars(part)[key])}" for key in public]
        digest.update(f"{name}: {_describe(type(part))} {settings}\n".encode())
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        digest.update(f"{name}: {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _describe(value: object) -> str:
    """A setting as text that is the same in every process and differs where the setting does."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_describe, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_describe(key)}: {_describe(item)}' for key, item in value.items())}}}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()}"
    if isinstance(value, Enum):
        return f"{_describe(type(value))}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        return f"{_describe(type(value))}{[_describe(getattr(value, item.name)) for item in fields(value)]}"
    return _describe(type(value))


def read(key: str) -> bytes | None:
    """The payload stored under `key`; None when there is none, or when it is damaged or cannot be read."""
    path = _in(usual_cache_folder(), key)  # read-only ones, as of a container's image, are read too
    try:
        if not path.is_file():
            path = _in(cache_folder(), key)
        data = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)
    head, payload = data[: len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    return payload if head == MAGIC + hashlib.sha256(payload).digest() else None


def write(key: str, payload: bytes) -> None:
    """Store `payload` under `key`, and make room for it; does nothing where the disk is full."""
    with suppress(OSError):
        path = _in(cache_folder(), key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
        _make_room(path.parent, keep=path)


def _in(folder: Path, key: str) -> Path:
    return folder / "compiled" / f"{key}.bin"


def _make_room(folder: Path, keep: Path) -> None:
    """Delete the files longest unused until `LIMIT_BYTES` are left; `keep` stays."""
    files = sorted(((file.stat(), file) for file in folder.glob("*.bin")), key=lambda pair: -pair[0].st_mtime)
    total = 0
    for status, file in files:
        total += status.st_size
        if total > LIMIT_BYTES and file != keep:
            file.unlink(missing_ok=True)
