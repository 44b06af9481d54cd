"""Files are written whole or not at all, and what is no file is never replaced."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from keima.atomic import replacing


def test_a_file_takes_its_place_when_all_is_written(tmp_path: Path) -> None:
    target = tmp_path / "answers.jsonl"
    target.write_text("old")
    with replacing(target, "w") as stream:
        stream.write("né\n")
        stream.flush()
        assert target.read_text() == "old"
    assert target.read_bytes() == "né\n".encode()
    assert list(tmp_path.iterdir()) == [target]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "net.bin"
    target.write_bytes(b"old")

    def interrupted() -> None:
        with replacing(target) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "real", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As with /dev/null, which root could replace by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe) as stream:
        stream.write(b"through")
    reader.join(timeout=60)
    assert read == [b"through"]
    assert pipe.is_fifo()


def test_a_folder_is_no_place_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"), replacing(tmp_path) as stream:
        stream.write(b"x")
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "absent" / "file") as stream:
        stream.write(b"x")
    assert list(tmp_path.iterdir()) == []
