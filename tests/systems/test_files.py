"""Files as bytes: no more memory than they have, damaged compression named; files of every format damaged at random."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
import time

import pytest

from keima.errors import BadWeights
from keima.systems.files.contents import read_bytes
from tests.fuzz import files


def test_reading_a_small_file_reserves_no_room_for_a_large_one(tmp_path):
    """Within 64 MiB of address space more than the interpreter has."""
    path = tmp_path / "small.gz"
    path.write_bytes(gzip.compress(b"weights"))
    program = (
        "import resource, sys\n"
        "from keima.systems.files.contents import read_bytes\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)\n"
        "print(read_bytes(sys.argv[1]))"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("the limit is Linux's")
    assert resource.RLIMIT_AS is not None
    run = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.stdout.strip() == "b'weights'", run.stderr


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_limits_hold_to_the_byte(tmp_path, pack):
    path = tmp_path / "file"
    path.write_bytes(pack(b"x" * 1000))
    assert read_bytes(path, 1000) == b"x" * 1000
    with pytest.raises(BadWeights, match="than the limit of 999 bytes"):
        read_bytes(path, 999)


def test_members_of_a_gzip_file_follow_each_other(tmp_path):
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"one,") + gzip.compress(b"two"))
    assert read_bytes(path) == b"one,two"


def test_damaged_files_are_read_or_refused_and_nothing_else():
    """`python -m tests.fuzz files COUNT` tries more of them."""
    began = time.monotonic()
    for seed in range(300):
        files.one(seed)
    assert time.monotonic() - began < 120
