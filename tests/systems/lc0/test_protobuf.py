"""The wire format: what the specification's own examples say, and strictness about everything else."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keima.errors import BadWeights
from keima.systems.lc0.protobuf import Field, Message, parse, serialise

INNER = {1: Field("a", "uint"), 2: Field("b", "text")}
SCHEMA = {
    1: Field("a", "uint"),
    2: Field("b", "text"),
    3: Field("c", "message", INNER),
    4: Field("d", "message", INNER, limit=3),
    5: Field("e", "float"),
    6: Field("f", "uints", limit=4),
    7: Field("g", "fixed"),
    8: Field("h", "bytes"),
}


def test_examples_of_the_specification() -> None:
    """protobuf.dev, "Encoding": field 1 = 150; field 2 = "testing"; field 3 a message with field 1 = 150."""
    assert parse(bytes.fromhex("089601"), SCHEMA).get("a") == 150
    assert parse(bytes.fromhex("120774657374696e67"), SCHEMA).get("b") == "testing"
    assert parse(bytes.fromhex("1a03089601"), SCHEMA).child("c").get("a") == 150
    assert parse(bytes.fromhex("3206038e029ea705"), {6: Field("f", "uints", limit=3)}).get("f") == [3, 270, 86942]
    assert serialise(Message(SCHEMA, {"a": 150})) == bytes.fromhex("089601")


def test_packed_and_unpacked_numbers_are_the_same() -> None:
    assert parse(bytes.fromhex("300130023003"), SCHEMA).get("f") == [1, 2, 3]
    assert parse(bytes.fromhex("3203010203"), SCHEMA).get("f") == [1, 2, 3]


def test_last_value_counts_and_messages_merge() -> None:
    """As the specification has it: a scalar met again replaces the first, a message is merged into it."""
    message = parse(bytes.fromhex("0801 0802 1a020805 1a03120178".replace(" ", "")), SCHEMA)
    assert message.get("a") == 2
    assert message.child("c").values == {"a": 5, "b": "x"}


@settings(deadline=None, max_examples=200)
@given(
    a=st.integers(0, 2**64 - 1),
    b=st.text(max_size=20),
    d=st.lists(st.integers(0, 2**32), max_size=3),
    e=st.floats(width=32, allow_nan=False),
    g=st.integers(0, 2**32 - 1),
    h=st.binary(max_size=300),
)
def test_round_trip(a: int, b: str, d: list[int], e: float, g: int, h: bytes) -> None:
    message = Message(SCHEMA, {"a": a, "b": b, "e": e, "g": g, "h": h})
    for number in d:
        message.make("d").values["a"] = number
    read = parse(serialise(message), SCHEMA)
    assert (read.get("a"), read.get("b"), read.get("e"), read.get("g")) == (a, b, e, g)
    assert bytes(read.get("h")) == h
    assert [item.get("a") for item in read.get("d", [])] == d


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_bad_weights(data: bytes) -> None:
    with contextlib.suppress(BadWeights):
        assert parse(data, SCHEMA).schema is SCHEMA


@pytest.mark.parametrize(
    ("data", "message", "place"),
    [
        ("08", "ends inside a number", "byte 1 "),
        ("0a05", "wire type 2 where 0 belongs|claims 5 bytes", "byte 2 "),
        ("1205616263", "claims 5 bytes, but only 3 are left", "byte 2 "),
        ("0b", "wire type 3", "byte 1 "),
        ("00", "field number 0", "byte 0 "),
        ("08ffffffffffffffffffff01", "more than 10 bytes", "byte 1 "),
        ("1201ff", "not UTF-8", "b, byte 2 "),
        ("1a0112", "ends inside a number", "c, byte 3 "),
        ("2200220022002200", "more than 3", r"d\[3\], byte 8 "),
        ("30013001300130013001", "more than 4", "f, byte"),
        ("2d0000", "claims 4 bytes, but only 2", "byte 1 "),
    ],
)
def test_malformed(data: str, message: str, place: str) -> None:
    """Every kind of damage is named with the field and the byte it was met at."""
    with pytest.raises(BadWeights, match=message) as error:
        parse(bytes.fromhex(data), SCHEMA)
    assert re.search(place, error.value.place or ""), error.value.place


def test_deep_and_wide_claims_stay_small() -> None:
    """Thousands of unknown fields leave at most 64 numbers behind."""
    data = b"".join(bytes([0x80 | (n & 0x0F) << 3, 0x40 | n >> 4, 0]) for n in range(500))
    assert len(parse(data, SCHEMA).unknown) <= 64
