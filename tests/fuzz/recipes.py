"""Recipes (training, self-play) and studies: TOML mutated as text and values; errors name file and place."""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from keima.errors import BadRequest
from keima.training.run.recipe import SECTIONS, read_recipe
from keima.training.run.recipe_text import toml_lines
from keima.training.selfplay.recipe import SECTIONS as LOOP_SECTIONS
from keima.training.selfplay.recipe import read_loop
from keima.training.study.file import read_study

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECIPES = Path(__file__).parents[2] / "recipes"
TOKENS = (
    *("[data]", "[network]", "[", "]", "[[data]]", "=", '"', "'''", '"""', "\\", "#", "\n", "nan", "inf", "-1"),
    *("1e999", "true", "0", "9" * 400, "1_000", "0x", "1979-05-27", "{}", "[]", "[1, [2, [3]]]", "{a = {b = 1}}"),
    *("[run]\n", "key = ", "a.b.c = 1", '"a" = 1', "[a.b]", "\ud7ff", "\ufeff", "é", "\t", "\x00", "\r\n", "\x0c"),
    *("# \u2028\n", '"\x85"', "'", '""', "[1,\n2,\n3]", "[variant.a]", "[study]", "steps = 3", "9" * 5000),
)
ODD: tuple[Callable[[], Any], ...] = (
    *(partial(type(value), value) for value in (0, 1, -1, 3, 10**30, 0.0, 0.5, -0.5, 1e300, 1e-300, True, False)),
    *(partial(float, text) for text in ("nan", "inf", "-inf")),
    *(partial(str, text) for text in ("", "x", "auto", "1d", "sgd", "é", "\x7f", 'a"b', "a\\b", "x" * 300)),
    *(list, lambda: [1], lambda: [3, 2], lambda: ["stem"], lambda: [[]], dict, lambda: {"a": {"b": [1]}}),
)
_DEEP = (
    "[" * 3000,
    "x = " + "[" * 1000,
    "x = " + "{a = " * 2000,
    "[" + "a." * 1000 + "a]",
    "a." * 1000 + "a = 1",
)
FOLDER = Path(tempfile.mkdtemp(prefix="keima-fuzz-"))


@cache
def corpus() -> list[tuple[str, Callable[..., object]]]:
    """The project's recipes and studies, and what reads each."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(RECIPES.rglob("*.toml"))]
    return [(text, _reader(text)) for text in texts]


def _reader(text: str) -> Callable[..., object]:
    return read_study if "[study]" in text else read_loop if "[window]" in text else read_recipe


def one(seed: int) -> None:
    """One recipe or study."""
    rng = random.Random(f"recipe {seed}")
    text, read = rng.choice(corpus())
    text = _other_values(rng, text) if rng.random() < 0.4 else _other_text(rng, text)
    if rng.random() < 0.01:
        text += "\n" + rng.choice(_DEEP)
    path = FOLDER / "fuzz.toml"
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + bytes([rng.randrange(256)]) + data[at:]
    path.write_bytes(data)
    overrides = [_override(rng)] if rng.random() < 0.2 else []
    try:
        read(path, overrides)
    except BadRequest as error:
        _check(error, str(path), data, overrides)


def _other_text(rng: random.Random, text: str) -> str:
    """Lines changed, exchanged, left out; tokens anywhere."""
    for _ in range(rng.randrange(1, 5)):
        lines = text.split("\n")
        line = rng.randrange(len(lines))
        kind = rng.randrange(5)
        if kind == 0:
            name, equals, _ = lines[line].partition("=")
            lines[line] = f"{name}{equals} {rng.choice(TOKENS)}" if equals else lines[line]
        elif kind == 1:
            lines[line] = rng.choice(rng.choice(corpus())[0].split("\n"))
        elif kind == 2:
            del lines[line]
        text = "\n".join(lines)
        at = rng.randrange(len(text) + 1)
        if kind == 3:
            text = text[:at] + rng.choice(TOKENS) + text[at:]
        elif kind == 4:
            text = text[:at] + text[at + rng.randrange(1, 30) :]
    return text


def _other_values(rng: random.Random, text: str) -> str:
    """Good TOML that says something else."""
    values = tomllib.loads(text)
    for _ in range(rng.randrange(1, 4)):
        table = values
        while True:
            inner = [value for value in table.values() if isinstance(value, dict) and value]
            if not inner or (table is not values and rng.random() < 0.5):
                break
            table = rng.choice(inner)
        others = tomllib.loads(rng.choice(corpus())[0]).values()
        names = [*table, "x", *(name for other in others if isinstance(other, dict) for name in other)]
        name = rng.choice(names)
        if rng.random() < 0.2:
            table.pop(name, None)
        elif rng.random() < 0.05:
            values[rng.choice([*SECTIONS, *LOOP_SECTIONS, "study", "variant", "é"])] = rng.choice(ODD)()
        else:
            table[name] = rng.choice(ODD)()
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if not isinstance(value, dict)]
    return "\n".join([*lines, *toml_lines({name: value for name, value in values.items() if isinstance(value, dict)})])


def _toml(value: Any) -> str:
    """A value as `toml_lines` writes it."""
    return list(toml_lines({"x": {"y": value}}))[2].removeprefix("y = ")


def _override(rng: random.Random) -> str:
    section, key = rng.choice(("run", "data", "study", "network", "x", "")), rng.choice(("steps", "train", "y", ""))
    return f"{section}{rng.choice(('.', '..', ''))}{key}{rng.choice(('=', ' = ', ''))}{rng.choice(TOKENS)}"


def _check(error: BadRequest, path: str, data: bytes, overrides: list[str]) -> None:
    """The error names the file, and the line of what is there."""
    what = (str(error), data[:3000], overrides)
    assert error.source == path, what
    try:
        values = tomllib.loads(data.decode())
    except (UnicodeDecodeError, ValueError, RecursionError):
        return  # the parser does not always know where
    place = error.place or ""
    line = re.fullmatch(r"(?:.*: )?line (\d+)", place)
    assert line or place.startswith("--set ") or not place, what
    assert line is None or "base.toml" in place or 1 <= int(line[1]) <= data.count(b"\n") + 1, what
    section, dot, key = error.message.partition(":")[0].partition(".")
    if dot and key in (values.get(section) or ()):
        assert place, what
        if line and "base.toml" not in place and re.fullmatch(r"\w+", key, re.ASCII):
            stands = data.decode().replace("\r\n", "\n").split("\n")[int(line[1]) - 1]
            assert key in stands or section in stands or "\\" in stands, (what, stands)
