"""Recipes: TOML of our own, mutated as text and as values; what is wrong is said with its place."""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from keima.errors import KeimaError
from keima.training.run.recipe import read_recipe

RECIPES = Path(__file__).parents[2] / "recipes"
TOKENS = (
    *("[data]", "[network]", "[", "]", "[[data]]", "=", '"', "'''", '"""', "\\", "#", "\n", "nan", "inf", "-1"),
    *("1e999", "true", "0", "9" * 400, "1_000", "0x", "1979-05-27", "{}", "[]", "[1, [2, [3]]]", "{a = {b = 1}}"),
    *("[run]\n", "key = ", "a.b.c = 1", '"a" = 1', "[a.b]", "\ud7ff", "\ufeff", "é", "\t", "\x00"),
)
FOLDER = Path(tempfile.mkdtemp(prefix="keima-fuzz-"))


@cache
def corpus() -> list[str]:
    """The project's recipes."""
    return [path.read_text(encoding="utf-8") for path in sorted(RECIPES.glob("*.toml"))]


def one(seed: int) -> None:
    """One recipe."""
    rng = random.Random(f"recipe {seed}")
    text = rng.choice(corpus())
    for _ in range(rng.randrange(1, 5)):
        lines = text.split("\n")
        line = rng.randrange(len(lines))
        kind = rng.randrange(5)
        if kind == 0:
            name, equals, _ = lines[line].partition("=")
            lines[line] = f"{name}{equals} {rng.choice(TOKENS)}" if equals else lines[line]
        elif kind == 1:
            lines[line] = rng.choice(rng.choice(corpus()).split("\n"))
        elif kind == 2:
            del lines[line]
        text = "\n".join(lines)
        at = rng.randrange(len(text) + 1)
        if kind == 3:
            text = text[:at] + rng.choice(TOKENS) + text[at:]
        elif kind == 4:
            text = text[:at] + text[at + rng.randrange(1, 30) :]
    path = FOLDER / "fuzz.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    overrides = [f"{rng.choice(('run', 'data', 'x'))}.{rng.choice(('steps', 'y', ''))}={rng.choice(TOKENS)}"]
    with suppress(KeimaError):
        read_recipe(path, overrides if rng.random() < 0.2 else ())
