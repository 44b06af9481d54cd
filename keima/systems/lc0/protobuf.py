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

    Attributes:
        name: what the message calls it.
        kind: "uint", "uints" (repeated, packed or not), "float", "fixed" (32 bits), "bytes", "text" or "message".
        schema: of the message it holds, for kind "message".
        limit: most occurrences of a repeated field; 1 for one that is not repeated (the last one counts, as protobuf
            has it, and messages are merged).
    """

    name: str
    kind: str
    schema: Schema | None = None
    limit: int = 1


Schema = Mapping[int, Field]


@dataclass
class Message:
    """A parsed message, or one to be written.

    Attributes:
        schema: its fields by number.
        values: by field name: int, float, str, a view of bytes, `Message`, or a list of those where repeated.
        unknown: numbers of fields the schema does not name, met while reading.
    """

    schema: Schema
    values: Data = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)

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
    if known.kind == "message":
        held = message.values.get(known.name)
        if known.limit > 1:
            path = f"{path}[{len(held or ())}]"
            _check_count(len(held or ()) + 1, known, offset, path)
        _parse_into(message.make(known.name), value, offset, path)
    elif known.kind == "uints":
        numbers = message.values.setdefault(known.name, [])
        for number in _packed(value, offset, path) if wire_type == LENGTH else (value,):
            numbers.append(number)
            _check_count(len(numbers), known, offset, path)
    else:
        message.values[known.name] = _scalar(known.kind, value, offset, path)


def _check_count(count: int, known: Field, offset: int, path: str) -> None:
    if count > known.limit:
        raise _bad(f"more than {known.limit} of them", offset, path)


def _packed(value: memoryview, offset: int, path: str) -> Iterator[int]:
    """The numbers of a packed field, one by one."""
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
        for item in value if isinstance(value, list) else (value,):
            parts += _encoded(number, known, item)
    return b"".join(parts)


def _encoded(number: int, known: Field, value: Any) -> list[bytes | memoryview]:
    """Key and value of one field."""
    if known.kind in ("uint", "uints"):
        return [_to_varint(number << 3 | VARINT), _to_varint(value)]
    if known.kind in ("float", "fixed"):
        packed = struct.pack("<f" if known.kind == "float" else "<I", value)
        return [_to_varint(number << 3 | FOUR_BYTES), packed]
    if known.kind == "message":
        value = serialise(value)
    elif known.kind == "text":
        value = value.encode()
    return [_to_varint(number << 3 | LENGTH), _to_varint(len(value)), value]


def _to_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
