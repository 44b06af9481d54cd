"""What is kept on disk is what was stored, or nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from keima import places
from keima.inference import cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEIMA_CACHE", str(tmp_path))
    return tmp_path


def stored_file(folder: Path) -> Path:
    return next(folder.rglob("*.bin"))


def test_what_was_written_is_read(folder: Path) -> None:
    assert cache.read("a") is None
    cache.write("a", b"payload")
    assert cache.read("a") == b"payload"
    assert cache.read("b") is None
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["a.bin"]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_no_file(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("damaged")
        patch.setenv("KEIMA_CACHE", str(folder))
        cache.write("a", b"payload")
        whole = stored_file(folder).read_bytes()
        if data.draw(st.booleans(), label="cut"):
            damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
        else:
            place = data.draw(st.integers(0, len(whole) - 1))
            flipped = whole[place] ^ data.draw(st.integers(1, 255))
            damaged = whole[:place] + bytes([flipped]) + whole[place + 1 :]
        stored_file(folder).write_bytes(damaged)
        assert cache.read("a") is None


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files lie."""
    monkeypatch.setattr(places.tempfile, "tempdir", str(tmp_path))
    places.temporary.cache_clear()
    yield tmp_path
    places.temporary.cache_clear()


def test_for_a_folder_that_cannot_be_written_a_temporary_one_serves(
    tmp_path_factory: pytest.TempPathFactory, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path_factory.mktemp("blocked") / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("KEIMA_CACHE", str(blocked))
    cache.write("a", b"payload")
    assert cache.read("a") == b"payload"
    assert stored_file(elsewhere).is_relative_to(places.temporary())
    assert blocked.read_text() == "in the way"


def test_a_read_only_folder_is_read_and_not_written(
    folder: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write("a", b"baked")
    monkeypatch.setattr(places, "writable", lambda at: at != folder)
    cache.write("b", b"new")
    assert (cache.read("a"), cache.read("b")) == (b"baked", b"new")
    assert [path.name for path in (folder / "compiled").iterdir()] == ["a.bin"]
    assert (places.temporary() / "compiled" / "b.bin").is_file()


def test_a_user_without_home_is_no_error(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEIMA_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    cache.write("a", b"payload")
    assert cache.read("a") == b"payload"


def test_the_files_longest_unused_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT_BYTES", 500)
    for age, key in enumerate("abc"):
        cache.write(key, bytes(100))
        os.utime(folder / "compiled" / f"{key}.bin", (1000 + age, 1000 + age))
    cache.read("a")  # used again: younger than b and c now
    cache.write("d", bytes(100))
    assert {path.stem for path in folder.rglob("*.bin")} == {"a", "c", "d"}


def test_a_payload_over_the_limit_is_kept_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT_BYTES", 50)
    cache.write("a", bytes(100))
    cache.write("b", bytes(100))
    assert {path.stem for path in folder.rglob("*.bin")} == {"b"}


def test_many_writers_leave_one_whole_file(folder: Path) -> None:
    payloads = [bytes([number]) * 200_000 for number in range(8)]
    writers = [threading.Thread(target=cache.write, args=("a", payload)) for payload in payloads]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert cache.read("a") in payloads
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1


@dataclass(frozen=True)
class Settings:
    heads: int = 2


class Layer(nn.Module):
    def __init__(self, activation: object = torch.relu, settings: Settings | None = None, scale: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.activation = activation
        self.settings = settings or Settings()
        self.scale = scale


def test_the_fingerprint_tells_networks_apart() -> None:
    plain = cache.fingerprint(Layer())
    assert cache.fingerprint(Layer()) == plain
    changed_weight, changed_buffer = Layer(), Layer()
    changed_weight.linear.weight.data[1, 2] += 1e-7
    changed_buffer.norm.running_mean[0] = 0.5
    moved = Layer()
    moved.pedigree = "another file"
    assert cache.fingerprint(moved) == plain
    others = [Layer(torch.tanh), Layer(settings=Settings(3)), Layer(scale=2.0), changed_weight, changed_buffer]
    prints = {plain, *map(cache.fingerprint, others), cache.fingerprint(nn.Sequential(Layer()))}
    assert len(prints) == 7
