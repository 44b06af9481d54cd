"""The GTP client against a program that behaves, and one that does everything wrong."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from keima.engines.gtp.client import EngineFault, EngineRefusal, GtpClient, split_command
from keima.errors import BadRequest
from tests.engines.fakes import gtp


def client(*arguments, timeout=20.0):
    return GtpClient(gtp(*arguments), timeout)


def test_a_conversation():
    engine = client("--dead", "A1 B2")
    assert "genmove" in engine.commands
    assert engine.send("boardsize 5") == ""
    assert engine.send("genmove b") == "A1"
    assert engine.send("final_status_list dead") == "A1 B2"
    with pytest.raises(EngineRefusal, match="unknown command"):
        engine.send("dance")
    assert engine.send("genmove w") == "E1"
    engine.close()
    assert not engine.alive


@pytest.mark.parametrize(
    ("fail", "kind", "words"),
    [
        ("crash", "crash", "status 3.*'genmove b'.*out of memory"),
        ("eof", "crash", "closed its output"),
        ("garbage", "nonsense", "segmentation of the moon"),
        ("flood", "nonsense", "does not end"),
        ("hang", "timeout", "'genmove b'"),
    ],
)
def test_faults_are_named(fail, kind, words):
    engine = client("--fail", fail, "--at", 1)
    with pytest.raises(EngineFault, match=f"(?s){words}") as caught:
        engine.send("genmove b", timeout=0.5 if fail == "hang" else 20.0)
    assert caught.value.kind == kind
    engine.close(grace=0)
    assert not engine.alive


def test_a_dead_engine_stays_dead():
    engine = client("--fail", "crash", "--at", 1)
    for _ in range(2):
        with pytest.raises(EngineFault) as caught:
            engine.send("genmove b")
        assert caught.value.kind == "crash"
    engine.close()


def test_one_that_never_answers():
    with pytest.raises(EngineFault) as caught:
        client("--deaf", timeout=0.3)
    assert caught.value.kind == "timeout"


def test_one_that_cannot_be_started(tmp_path):
    program = tmp_path / "engine"
    program.write_text("neither script nor binary")
    program.chmod(0o755)
    with pytest.raises(EngineFault, match="cannot be started") as caught:
        GtpClient([str(program)])
    assert caught.value.kind == "crash"


def test_kill_from_another_thread_ends_the_waiting():
    engine = client("--fail", "hang", "--at", 1)
    threading.Timer(0.2, engine.kill).start()
    began = time.monotonic()
    with pytest.raises(EngineFault):
        engine.send("genmove b", timeout=60)
    assert time.monotonic() - began < 30
    engine.close()


def test_closing_ends_what_the_engine_started(tmp_path):
    """A shell script as engine: its children are killed with it."""
    alive = tmp_path / "alive"
    script = f"sh -c 'while true; do echo x >> {alive}; sleep 0.05; done' & exec {' '.join(gtp())}"
    engine = GtpClient(["sh", "-c", script])
    assert engine.send("boardsize 5") == ""
    engine.close()
    time.sleep(0.2)
    size = alive.stat().st_size if alive.exists() else 0
    time.sleep(0.3)
    assert (alive.stat().st_size if alive.exists() else 0) == size


def test_command_lines():
    assert split_command(f'{sys.executable} -c "a b"') == [sys.executable, "-c", "a b"]
    for wrong, words in (("", "empty"), ('x "y', "quotation"), ("no-such-program --gtp", "no program")):
        with pytest.raises(BadRequest, match=words):
            split_command(wrong)
