"""SGF: real records mutated; what is read is written and read again as it was."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from io import BytesIO
from itertools import islice

from keima.errors import BadRecord, KeimaError
from keima.games.go.records import RECORDS, GameRecord

SEEDS = (
    b"(;GM[1]FF[4]CA[UTF-8]SZ[19]KM[6.5]RU[Japanese]HA[2]AB[dd][pp]PB[Ada]PW[Bo \xe5\xbc\x88]RE[W+R]"
    b";W[dp]C[hi\\] \\\\];B[])",
    b"(;SZ[9]KM[375]RU[Chinese];B[ee];W[gg]AB[cc:dd]AE[ee]PL[W];W[aa](;B[bb]C[one])(;B[cb]))",
    b"(;CA[gb2312]PB[\xb9\xc5\xc1\xa6]SZ[5:9]TB[aa]DT[2016-03-09]EV[x]RO[2];B[ai];W[ea])\n\n(;GM[1]SZ[9];B[aa])",
    b"(;GM[1]CA[Shift_JIS]C[\x83\x5c]SZ[9]RE[0];B[tt];W[ii])",
)
CHARSETS = (
    *(b"utf-16", b"hex", b"rot13", b"idna", b"punycode", b"unicode_escape", b"utf-7", b"cp037", b"undefined", b"zlib"),
    *(b"iso-8859-15", b"big5", b"euc-kr", b"koi8-r", b"utf-8-sig", b"x", b"", b"latin-1", b"hz", b"iso2022_jp"),
)
TOKENS = (
    *(b"(;", b"(", b")", b";", b"[", b"]", b"\\", b":", b"AB[aa]", b"AW[bb][cc]", b"AE[dd]", b"AB[aa:ss]", b"PL[B]"),
    *(
        b"B[]",
        b"W[tt]",
        b"B[zz]",
        b"C[",
        b"SZ[0]",
        b"SZ[9]",
        b"SZ[2:19]",
        b"KM[nan]",
        b"KM[1e9]",
        b"HA[9]",
        b"\xff\xfe",
    ),
    *(
        b"RU[{}]",
        b'RU[{"ko":"SIMPLE"}]',
        b"RE[B+3.5]",
        b"GM[2]",
        b"\xef\xbb\xbf",
        b"\x00",
        b"\r\n",
        b"\xa4\xa2",
        b"PL[]",
    ),
)


@cache
def corpus() -> list[bytes]:
    """What is mutated."""
    return list(SEEDS)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """The bytes with some changes."""
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(7)
        if kind == 0:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif kind == 1:
            data = data[:at] + data[at + rng.randrange(1, 9) :]
        elif kind == 2:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 3:
            data = data.replace(b"SZ[", b"CA[" + rng.choice(CHARSETS) + b"]SZ[", 1)
        elif kind == 4:
            end = at + rng.randrange(1, 40)
            data = data[:at] + data[at:end] * rng.randrange(1, 4) + data[end:]
        elif kind == 5:
            move = rng.choice((b"B", b"W")) + b"[" + bytes(rng.choices(b"abcdefghi", k=2)) + b"]"
            data = data[:at] + b";" + move + data[at:]
        else:
            data = data[:at] + rng.choice(corpus()) + data[at:]
    return data


def one(seed: int) -> None:
    """One input."""
    rng = random.Random(f"sgf {seed}")
    data = mutated(rng, rng.choice(corpus()))
    if rng.randrange(50) == 0:
        data = data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-32")))
    for record in islice(RECORDS.read(BytesIO(data), "fuzz.sgf"), 20):
        if isinstance(record, BadRecord):
            continue
        try:
            before = [position.to_json() for position in record.positions()]
        except KeimaError:
            continue
        assert before[-1]["moves"] == record.final().to_json()["moves"]
        (again,) = RECORDS.read(BytesIO(RECORDS.write(record).encode()))
        assert isinstance(again, GameRecord), again
        assert _told(again) == _told(record), (record, again)
        assert [position.to_json() for position in again.positions()] == before


def _told(record: GameRecord) -> GameRecord:
    return replace(record, source="", index=1, notes=())
