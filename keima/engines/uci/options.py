"""The options of the UCI engine: how they are announced, and what values they take.

Names and defaults are Lc0's (`src/search/classic/params.cc`, `src/engine.cc`) where it has the option.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keima.errors import BadRequest
from keima.systems.presets import PRESETS

Value = bool | int | float | str

_LC0 = PRESETS["lc0"]
MOST_LINES = 218
"""Most moves of a chess position, so most lines MultiPV can ask for."""


@dataclass(frozen=True)
class Option:
    """One option."""

    name: str  # case does not matter when it is set
    kind: str  # UCI's type: "check", "spin", "combo", "string", "button"; "number" is a string that holds one
    default: Value | None = None
    least: float = 0  # of spins and numbers
    most: float = 0
    choices: tuple[str, ...] = ()  # of combos
    parameter: str | None = None  # the search parameter a number sets

    def announce(self, default: object) -> str:
        """The line that tells a GUI of it."""
        line = f"option name {self.name} type {'string' if self.kind == 'number' else self.kind}"
        if self.kind == "check":
            return f"{line} default {str(default).lower()}"
        if self.kind == "spin":
            return f"{line} default {default} min {self.least:g} max {self.most:.0f}"
        if self.kind == "combo":
            return " ".join([line, f"default {default}", *(f"var {choice}" for choice in self.choices)])
        if self.kind == "number":
            return f"{line} default {default:g}"
        return f"{line} default {default or '<empty>'}" if self.kind == "string" else line

    def parse(self, text: str) -> Value:
        """The value of its text. Raises BadRequest where the option does not take it."""
        if self.kind == "check":
            return self._one_of(text, {"true": True, "false": False})
        if self.kind == "combo":
            return self._one_of(text, {choice: choice for choice in self.choices})
        if self.kind in ("spin", "number"):
            return self._number(text)
        return "" if text == "<empty>" else text

    def _one_of(self, text: str, values: Mapping[str, Value]) -> Value:
        if text.lower() not in values:
            raise BadRequest(f"option {self.name} is one of {', '.join(values)}, not {text[:40]!r}")
        return values[text.lower()]

    def _number(self, text: str) -> int | float:
        try:
            number = int(text) if self.kind == "spin" else float(text)
        except ValueError:
            number = math.nan
        if not self.least <= number <= self.most:
            limits = f"from {self.least:g} to {self.most:.0f}"
            raise BadRequest(f"option {self.name} is a number {limits}, not {text[:40]!r}")
        return number


OPTIONS = (
    Option("WeightsFile", "string", ""),
    Option("Backend", "combo", "auto", choices=("auto", "torch", "openvino", "onnx")),
    Option("Precision", "combo", "auto", choices=("auto", "f32", "bf16", "f16", "int8")),
    Option("Threads", "spin", 0, 0, 1024),
    Option("MinibatchSize", "spin", 8, 1, 1024),
    Option("Hash", "spin", 1024, 1, 1 << 20),
    Option("Preset", "combo", "auto", choices=("auto", *PRESETS)),
    Option("MultiPV", "spin", 1, 1, MOST_LINES),
    Option("Ponder", "check", False),
    Option("UCI_Chess960", "check", False),
    Option("UCI_ShowWDL", "check", False),
    Option("UCI_ShowMovesLeft", "check", False),
    Option("MoveOverheadMs", "spin", 200, 0, 100_000),
    Option("Temperature", "number", 0.0, 0, 100),
    Option("PolicyTemperature", "number", _LC0["policy_temperature"], 0.1, 10, parameter="policy_temperature"),
    Option("CPuct", "number", _LC0["cpuct"], 0, 100, parameter="cpuct"),
    Option("CPuctBase", "number", _LC0["cpuct_base"], 1, 1_000_000_000, parameter="cpuct_base"),
    Option("CPuctFactor", "number", _LC0["cpuct_factor"], 0, 1000, parameter="cpuct_factor"),
    Option("FpuValue", "number", _LC0["fpu_reduction"], -100, 100, parameter="fpu_reduction"),
    Option("DrawScore", "number", _LC0["draw_score"], -1, 1, parameter="draw_score"),
    Option("DirichletNoiseEpsilon", "number", _LC0["root_noise"], 0, 1, parameter="root_noise"),
    Option("Seed", "spin", 0, 0, 2**31 - 1),
    Option("Clear Hash", "button"),
)
"""Every option, in the order they are announced. `Threads` 0 means all cores; `Hash` is megabytes of the tree."""

_BY_NAME = {option.name.lower(): option for option in OPTIONS}


class Values:
    """What the options are set to; `given` by name to begin with."""

    def __init__(self, given: Mapping[str, Value] | None = None) -> None:
        defaults = {option.name: option.default for option in OPTIONS if option.kind != "button"}
        self._values = {**defaults, **(given or {})}
        self._set: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def announce(self) -> list[str]:
        """The lines that tell a GUI of the options."""
        return [option.announce(self._values.get(option.name)) for option in OPTIONS]

    def set(self, name: str, text: str) -> Option:
        """Set an option from its text. Raises BadRequest where there is none, or it does not take the value."""
        option = _BY_NAME.get(name.lower())
        if option is None:
            raise BadRequest(f"no option {name[:40]!r}")
        if option.kind != "button":
            self._values[option.name] = option.parse(text)
            self._set.add(option.name)
        return option

    @property
    def parameters(self) -> dict[str, float]:
        """The search parameters that were set; the preset's hold for the others."""
        names = {o.parameter: float(self[o.name]) for o in OPTIONS if o.parameter and o.name in self._set}
        both = ("policy_temperature", "fpu_reduction")
        return names | {f"root_{name}": names[name] for name in both if name in names}
