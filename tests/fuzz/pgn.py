"""PGN: games and comments mutated; what is read is written and read again as it was."""

from __future__ import annotations

import random
from io import BytesIO
from itertools import islice

from keima.errors import BadRecord
from keima.games.chess.records import RECORDS, GameRecord

SEEDS = (
    b'[Event "E"]\n[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n{start} 1. e4 $1 {good; [%clk 0:01:00]} e5 (1... c5 {x}'
    b" 2. Nf3 (2. c3)) 2. Nf3 Nc6 3. Bb5 a6 1-0\n\n",
    b'[Event "F"]\n[SetUp "1"]\n[FEN "4k3/8/8/8/8/8/4P3/4K2R w K - 0 1"]\n\n1. O-O Kd7 2. e4 $2 {a\nb\n\nc} *\n\n',
    b"1. d4 d5 2. c4 {Queen's gambit} 2... e6 ; rest of line } {\n3. Nc3 (3. Nf3 {x}) Nf6 1/2-1/2\n",
    b'[Variant "Chess960"]\n[FEN "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9"]\n\n9. Qa2 *\n\n',
)
TOKENS = (
    *(
        b"{",
        b"}",
        b"(",
        b")",
        b";",
        b"%",
        b"\n",
        b"\n\n",
        b"\r\n",
        b"\r",
        b'[Event "x"]',
        b'\n[Event "y"]\n',
        b"$3",
        b"$999",
    ),
    *(
        b" {c} ",
        b"{}",
        b"{ }",
        b"\xe9",
        b"\xc3\xa9",
        b"\xef\xbb\xbf",
        b"\x00",
        b"\x0b",
        b"\x85",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
    ),
    *(
        b"1-0",
        b"*",
        b"e4",
        b"--",
        b"O-O",
        b"Nf3",
        b"??",
        b"!",
        b"\\",
        b'"',
        b"<",
        b"[%clk 1:2:3]",
        b"[%eval 0.3]",
        b"\t",
        b"\x1c",
    ),
    *(b"\n% a line\n", b"\n; a line\n", b"x" * 90, b"\n {", b"} }", b"{ ;", b"{[Event "),
)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """The bytes with some changes, more of them inside comments than elsewhere."""
    for _ in range(rng.randrange(1, 7)):
        at = rng.randrange(len(data) + 1)
        if rng.random() < 0.5 and b"{" in data:
            at = data.index(b"{", rng.randrange(data.index(b"{") + 1)) + rng.randrange(1, 6)
        kind = rng.randrange(5)
        if kind < 3:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif kind == 3:
            data = data[:at] + data[at + rng.randrange(1, 9) :]
        else:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    return data


def one(seed: int) -> None:
    """One input."""
    rng = random.Random(f"pgn {seed}")
    data = b"".join(rng.choice(SEEDS) for _ in range(rng.randrange(1, 3)))
    for record in islice(RECORDS.read(BytesIO(mutated(rng, data)), "fuzz.pgn"), 20):
        if isinstance(record, BadRecord):
            continue
        text = RECORDS.write(record)
        again = list(RECORDS.read(BytesIO(text.encode())))
        assert len(again) == 1, (text, again)
        assert isinstance(again[0], GameRecord), (text, again)
        assert again[0].start.fen() == record.start.fen()
        for name in ("line", "comment", "result", "players", "event", "date"):
            assert getattr(again[0], name) == getattr(record, name), (name, record, again[0], text)
        list(record.positions())
