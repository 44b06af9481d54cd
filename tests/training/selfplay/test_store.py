"""Stores: a folder, memory, and a real S3 server that is killed in the middle."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
import time
import uuid

import pytest

from keima.errors import BadStore
from keima.training.selfplay import store as stores
from keima.training.selfplay.store import Store, StoreLost


def check_files(store):
    """What every store promises."""
    assert store.list("games") == []
    assert not store.exists("games/a")
    store.write("games/b", b"1")
    store.write("games/a", b"2" * 100_000)
    store.write("games/a", b"3")
    store.write("games/inner/c", b"x")
    assert store.list("games") == ["games/a", "games/b"]
    assert (store.read("games/a"), store.read("games/b")) == (b"3", b"1")
    assert not store.write_new("games/a", b"4")
    assert store.write_new("claims/0", b"mine")
    assert not store.write_new("claims/0", b"yours")
    assert (store.read("games/a"), store.read("claims/0")) == (b"3", b"mine")
    store.delete("games/a")
    store.delete("games/a")
    assert store.list("games") == ["games/b"]
    assert not store.exists("games/a")
    with pytest.raises(BadStore, match=r"cannot read games/a: no such file"):
        store.read("games/a")


def test_folder(tmp_path):
    store = Store(tmp_path / "run")
    assert store.local == tmp_path / "run"
    check_files(store)
    (tmp_path / "run/games/.b.unfinished").write_bytes(b"")
    assert store.list("games") == ["games/b"]
    assert [path.name for path in (tmp_path / "run/claims").iterdir()] == ["0"]


def test_memory():
    store = Store(f"memory://{uuid.uuid4()}")
    assert store.local is None
    check_files(store)


def test_one_of_many_creates(tmp_path):
    store = Store(tmp_path)
    won = []
    barrier = threading.Barrier(8)

    def create(who):
        barrier.wait()
        if store.write_new("claims/0", bytes([who]) * 1000):
            won.append(who)

    threads = [threading.Thread(target=create, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("claims/0") == bytes(won) * 1000
    assert len(won) == 1


@pytest.mark.parametrize("address", ["nowhere://x", "s4://bucket"])
def test_no_address(address):
    with pytest.raises(BadStore, match=address):
        Store(address)


def test_full_disk_is_waited_for(tmp_path, monkeypatch):
    told = []
    store = Store(tmp_path, told.append)
    monkeypatch.setattr(stores, "FIRST_WAIT", 0.01)
    real, fails = os.fsync, iter(range(3))

    def full(descriptor):
        if next(fails, None) is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    store.write("games/a", b"1")
    assert store.read("games/a") == b"1"
    assert len(told) == 3
    assert "cannot write games/a: No space left on device; trying again in" in told[0]
    waits = [float(message.split()[-2]) for message in told]
    assert waits == sorted(waits)


def test_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "FIRST_WAIT", 0.01)

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreLost, match=rf"{tmp_path}: cannot write games/a: No space left .*given up after \d+ tries"):
        Store(tmp_path, patience=0.1).write("games/a", b"1")
    assert Store(tmp_path).list("games") == []


def test_refusal_is_no_reason_to_wait(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(stores, "replacing", refuse)
    with pytest.raises(StoreLost, match="Permission denied"):
        Store(tmp_path).write("games/a", b"1")


def test_waiting_can_be_ended(tmp_path, monkeypatch):
    def stop(_message):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path, stop).write("games/a", b"1")


# --- A real server ----------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def serve(port):
    """moto's S3 server in a process of its own, once it answers; it keeps its objects in memory."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return process
    process.kill()
    raise AssertionError("the server does not begin")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_s3(monkeypatch):
    pytest.importorskip("moto.server", reason="needs moto[server]")
    pytest.importorskip("s3fs")
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    port = free_port()
    options = {"endpoint_url": f"http://127.0.0.1:{port}"}
    processes = [serve(port)]
    try:
        told = []

        def begin_again(message):
            told.append(message)
            if len(processes) == 1:
                processes.append(serve(port))
                store._files.mkdir("bucket")

        store = Store("s3://bucket/run", begin_again, options=options)
        store._files.mkdir("bucket")
        check_files(store)
        monkeypatch.setattr(Store, "_exists", lambda *_: False)  # two who both saw no file: one put succeeds
        assert store.write_new("claims/1", b"mine")
        assert not store.write_new("claims/1", b"yours")
        monkeypatch.undo()
        assert store.read("claims/1") == b"mine"
        processes[0].kill()
        processes[0].wait()
        store.write("games/later", b"came through")
        assert "cannot write games/later" in told[0]
        assert len(processes) == 2
        assert store.read("games/later") == b"came through"
    finally:
        for process in processes:
            process.kill()
            process.wait()
