"""The protobuf wire format, as much of it as Lc0's files use: a strict reader and a writer driven by a schema.

Source: "Encoding", protobuf.dev/programming-guides/encoding. A message is a run of fields, each a key (number and wire
type, as a varint) and a value: a varint, 4 or 8 bytes, or a length and that many bytes. A schema names the fields we
know; others are skipped and their numbers remembered (the first 64). Byte strings stay views into the file, so reading
allocates next to nothing whatever lengths the file claims.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from keima.errors import BadWeights
from keima.plain import Data

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
_WIRE_TYPES = {"uint": VARINT, "uints": VARINT, "float": FOUR_BYTES, "fixed": FOUR_BYTES}
_MAX_VARINT_BYTES = 10
_MAX_UNKNOWN = 64


@dataclass(frozen=True)
class Field:
    """One field of a message.

    Of a field that is not repeated the last occurrence counts, as protobuf has it, and messages are merged.
    """

    name: str
    kind: str  # "uint", "uints" (repeated, packed or not), "float", "fixed" (32 bits), "bytes", "text" or "message"
    schema: Schema | None = None  # of the message it holds
    limit: int = 1  # most occurrences; above 1 for a repeated field


Schema = Mapping[int, Field]


@dataclass
class Message:
    """A parsed message, or one to be written."""

    schema: Schema
    values: Data = field(default_factory=dict)  # int, float, str, view of bytes, `Message`, a list of those if repeated
    unknown: set[int] = field(default_factory=set)  # numbers of fields met while reading that the schema does not name

    def get(self, name: str, default: Any = None) -> Any:
        """The field's value, or `default` where the message lacks it."""
        return self.values.get(name, default)

    def child(self, name: str) -> Message:
        """The message in that field; an empty one that is not part of this message where it is absent."""
        found = self.values.get(name)
        return found if isinstance(found, Message) else Message(_field_named(self.schema, name).schema or {})

    def make(self, name: str) -> Message:
        """The message in that field, added empty where it is absent; a further one where the field is repeated."""
        known = _field_named(self.schema, name)
        if known.limit > 1:
            added = Message(known.schema or {})
            self.values.setdefault(name, []).append(added)
            return added
        made: Message = self.values.setdefault(name, Message(known.schema or {}))
        return made


def _field_named(schema: Schema, name: str) -> Field:
    return next(known for known in schema.values() if known.name == name)


def parse(data: bytes | memoryview, schema: Schema) -> Message:
    """Read one message.

    Raises:
        BadWeights: the bytes are no such message; `place` says which field and byte offset.
    """
    message = Message(schema)
    _parse_into(message, memoryview(data), 0, "")
    return message


def _parse_into(message: Message, data: memoryview, base: int, path: str) -> None:
    """Merge the fields of `data`, which starts at byte `base` of the file, into `message`."""
    position = 0
    while position < len(data):
        start = base + position
        key, position = _varint(data, position, base, path)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise _bad("field number 0", start, path)
        value, position = _value(wire_type, data, position, base, path)
        known = message.schema.get(number)
        if known is None:
            if len(message.unknown) < _MAX_UNKNOWN:
                message.unknown.add(number)
        else:
            name = f"{path}.{known.name}" if path else known.name
            offset = base + position - (len(value) if isinstance(value, memoryview) else 0)
            _store(message, known, wire_type, value, offset, name)


def _value(wire_type: int, data: memoryview, position: int, base: int, path: str) -> tuple[Any, int]:
    """The value after a key, a number or a view, and the position behind it."""
    if wire_type == VARINT:
        return _varint(data, position, base, path)
    if wire_type == LENGTH:
        size, position = _varint(data, position, base, path)
    elif wire_type in (FOUR_BYTES, EIGHT_BYTES):
        size = 4 if wire_type == FOUR_BYTES else 8
    else:
        raise _bad(f"wire type {wire_type}, which no field of these files has", base + position, path)
    if size > len(data) - position:
        message = f"a field claims {size:,} bytes, but only {len(data) - position:,} are left"
        raise _bad(f"{message}; the file is cut short or corrupt", base + position, path)
    return data[position : position + size], position + size


def _varint(data: memoryview, position: int, base: int, path: str) -> tuple[int, int]:
    """The number (below 2^64) at `position` and the position behind it."""
    number = 0
    for count in range(_MAX_VARINT_BYTES):
        if position + count >= len(data):
            raise _bad("the data ends inside a number; the file is cut short or corrupt", base + position, path)
        byte = data[position + count]
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number & 0xFFFFFFFFFFFFFFFF, position + count + 1
    raise _bad(f"a number of more than {_MAX_VARINT_BYTES} bytes", base + position, path)


def _store(message: Message, known: Field, wire_type: int, value: Any, offset: int, path: str) -> None:
    """Put a raw value where its field belongs; repeated messages become lists, a message met again is merged."""
    expected = _WIRE_TYPES.get(known.kind, LENGTH)
    if wire_type != expected and not (known.kind == "uints" and wire_type == LENGTH):
        raise _bad(f"wire type {wire_type} where {expected} belongs", offset, path)
    too_many = f"more than {known.limit} of them"
    if known.kind == "message":
        if known.limit > 1:
            held = len(message.values.get(known.name, ()))
            path = f"{path}[{held}]"
            if held == known.limit:
                raise _bad(too_many, offset, path)
        _parse_into(message.make(known.name), value, offset, path)
    elif known.kind == "uints":
        numbers = message.values.setdefault(known.name, [])
        for number in _packed(value, offset, path) if wire_type == LENGTH else (value,):
            if len(numbers) == known.limit:
                raise _bad(too_many, offset, path)
            numbers.append(number)
    else:
        message.values[known.name] = _scalar(known.kind, value, offset, path)


def _packed(value: memoryview, offset: int, path: str) -> Iterator[int]:
    position = 0
    while position < len(value):
        number, position = _varint(value, position, offset, path)
        yield number


def _scalar(kind: str, value: Any, offset: int, path: str) -> Any:
    if kind == "float":
        return struct.unpack("<f", value)[0]
    if kind == "fixed":
        return int.from_bytes(value, "little")
    if kind == "text":
        try:
            return bytes(value).decode()
        except UnicodeDecodeError as error:
            raise _bad(f"text that is not UTF-8 ({error.reason})", offset, path) from error
    return value


def _bad(message: str, offset: int, path: str) -> BadWeights:
    place = f"byte {offset:,} of the unpacked data"
    return BadWeights(message, place=f"{path}, {place}" if path else place)


def serialise(message: Message) -> bytes:
    """The message as bytes: its fields in the order of their numbers."""
    parts: list[bytes | memoryview] = []
    for number, known in sorted(message.schema.items()):
        value = message.values.get(known.name)
        if value is None:
            continue
        wire_type = _WIRE_TYPES.get(known.kind, LENGTH)
        for item in value if isinstance(value, list) else (value,):
            parts.append(_to_varint(number << 3 | wire_type))
            if wire_type == VARINT:
                parts.append(_to_varint(item))
            elif wire_type == FOUR_BYTES:
                parts.append(struct.pack("<f" if known.kind == "float" else "<I", item))
            else:
                data = serialise(item) if known.kind == "message" else item.encode() if known.kind == "text" else item
                parts += [_to_varint(len(data)), data]
    return b"".join(parts)


def _to_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
