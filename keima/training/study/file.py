"""Study files: variants of one recipe, trained under one budget.

    [study]
    title = "Depth"
    recipe = "base.toml"             # beside this file; or the recipe's own sections here
    positions = 500_000              # or seconds = 600, of training, for each variant
    games = 40                       # of each match against the reference

    [variant.b5]
    network.blocks = 5

    [variant.b10.network]
    blocks = 10

A variant is the recipe with its own values for some keys. One that names a network (`network.name`, `network.from`)
says all of its sizes: the recipe's [network] is put aside. `read_study` checks all of it before any work; an error
names the file and the line. docs/studies.md is the same as prose.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keima.errors import BadRequest
from keima.plain import Data, Fields
from keima.training.run.recipe import (
    SECTIONS,
    Recipe,
    SectionReader,
    apply_override,
    build_recipe,
    not_negative,
    one_of,
    positive,
    setting,
)
from keima.training.run.recipe_text import read_toml, toml_lines

_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
"""A variant's name: it is its folder's too, and stands in a player's description in matches."""

_THE_STUDY_S = {
    "run.steps": "follows from the study's budget, [study] positions or seconds",
    "run.positions": "follows from the study's budget, [study] positions or seconds",
    "data.test": "must be the same for all variants: they are compared on it",
}
"""Keys that a variant may not change, and why."""


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """[study]."""

    title: str = ""  # of table and picture
    recipe: str = ""  # file of the recipe, relative to the study's; empty where its sections stand in the study
    positions: int | None = setting(None, positive)  # each variant sees in training, rounded up to whole steps; or
    # each variant trains about so long: its steps follow from a measurement of its speed
    seconds: float | None = setting(None, positive)
    held_out: int = setting(4096, positive)  # positions of the held-out games that all are compared on
    precision: str = setting("auto", one_of("auto", "f32", "bf16"))  # of the timed evaluations and the matches
    reference: str = ""  # the variant the others play; the first if empty
    games: int = setting(40, not_negative)  # of each match; 0 for no matches
    visits: int = setting(100, not_negative)  # a move, of both, in the match at equal visits; 0 for no such match
    move_seconds: float = setting(0.0, not_negative)  # a move, of both, in that at equal time; 0 for no such match
    openings: str = "balanced"  # of the matches, as `keima match --openings` takes them
    # board of the matches, where the game has a choice; 0 for the reference network's own
    size: int = setting(0, lambda value: None if value == 0 or 2 <= value <= 19 else "2 to 19, or 0")

    @property
    def limits(self) -> tuple[str, ...]:
        """The matches' limits, as a player's options: "visits=100", "seconds=0.1"."""
        if not self.games:
            return ()
        limits = (f"visits={self.visits}" if self.visits else "", f"seconds={self.move_seconds:g}")
        return tuple(limit for limit in limits if limit not in ("", "seconds=0"))


@dataclass(frozen=True)
class Variant:
    """One variant: its whole recipe by section, without its length, and dotted key → where it was set in `source`."""

    name: str
    values: Mapping[str, Fields]
    places: Mapping[str, str]
    source: str

    def recipe(self, steps: int) -> Recipe:
        """Its recipe, of that many optimizer steps.

        Raises:
            BadRequest: a key is unknown, missing, of another type or out of range; names file and line.
        """
        run = self.values.get("run", {})
        values = {**self.values, "run": {**run, "steps": steps} if isinstance(run, dict) else run}
        head = f"# variant {self.name} of {Path(self.source).name}\n"
        return build_recipe(values, self.places, self.source, head + "\n".join(toml_lines(values)))


@dataclass(frozen=True)
class Study:
    """A whole study: its variants in the file's order, two at least, and where the keys of [study] were set."""

    options: StudyOptions
    variants: tuple[Variant, ...]
    source: str
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> Variant:
        """The variant that the others are measured against in matches."""
        wanted = self.options.reference or self.variants[0].name
        return next(variant for variant in self.variants if variant.name == wanted)

    def steps(self, variant: Variant, seconds_a_step: float | None = None) -> int:
        """Optimizer steps of a variant under the budget; where that is a time, `seconds_a_step` is needed."""
        if self.options.positions is not None:
            return math.ceil(self.options.positions / variant.recipe(1).run.batch_size)
        assert self.options.seconds is not None
        assert seconds_a_step is not None
        return max(1, round(self.options.seconds / seconds_a_step))

    def error(self, key: str, message: str) -> BadRequest:
        """The error for what is wrong at a dotted key of the file, or at its table."""
        place = self.places.get(key) or self.places.get(key.rpartition(".")[0])
        return BadRequest(f"{key}: {message}", source=self.source, place=place)


def read_study(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Study:
    """Read and check a study file, TOML in UTF-8, and the recipe it names.

    `overrides` are "section.key=value" each, as `--set` takes them; they win over the file and hold for all variants.
    The section is one of a recipe's, or "study".

    Raises:
        BadRequest: a file cannot be read or is not TOML; a key is unknown, missing, of another type or out of range.
    """
    source = os.fspath(path)
    values, places, _ = read_toml(path, "the study")
    chosen = list(overrides)
    for override in (each for each in chosen if each.strip().startswith("study.")):
        apply_override(override, values, places, source)
    options = SectionReader(places, source).section(StudyOptions, "study", _table(values, "study", places, source))
    study = Study(options, (), source, places)
    if (options.positions is None) == (options.seconds is None):
        found = "both" if options.positions else "neither"
        raise study.error("study", f"needs a budget, positions = N or seconds = S, and has {found}")
    if options.games and not options.limits:
        raise study.error("study.games", "a match needs visits or move_seconds above 0; games = 0 plays none")
    recipe, recipe_places = _base(study, values)
    variants = []
    for name, table in _table(values, "variant", places, source).items():
        own, own_places = _overlaid(study, name, table, recipe, recipe_places)
        for override in (each for each in chosen if not each.strip().startswith("study.")):
            apply_override(override, own, own_places, source)
        variants.append(Variant(name, own, own_places, source))
    study = Study(options, tuple(variants), source, places)
    _check_variants(study)
    return study


def _table(values: Fields, name: str, places: Mapping[str, str], source: str) -> Data:
    table = values.get(name, {})
    if not isinstance(table, dict):
        raise BadRequest(f"{name} should be a section, [{name}]", source=source, place=places.get(name))
    return table


def _base(study: Study, values: Fields) -> tuple[Data, dict[str, str]]:
    """The recipe's values and places: from the file that [study] names, or from the study's own sections."""
    inlined = {name: table for name, table in values.items() if name not in ("study", "variant")}
    for name in inlined:
        if name not in SECTIONS:
            known = ", ".join(f"[{section}]" for section in ("study", "variant.NAME", *SECTIONS))
            message = f"unknown section [{name}]; a study has {known}"
            raise BadRequest(message, source=study.source, place=study.places.get(name))
    if bool(study.options.recipe) == bool(inlined):
        found = f"both, recipe and [{next(iter(inlined))}]" if inlined else "neither"
        raise study.error("study", f'needs recipe = "FILE", or the sections of a recipe in this file, and has {found}')
    if inlined:
        return inlined, {key: place for key, place in study.places.items() if key.split(".")[0] in inlined}
    path = Path(study.source).parent / study.options.recipe
    try:
        recipe, places, _ = read_toml(path, "the recipe")
    except BadRequest as error:
        if error.place is None:
            raise study.error("study.recipe", f"{path}: {error.message}") from error
        raise
    return recipe, {key: f"{study.options.recipe}: {place}" for key, place in places.items()}


def _overlaid(
    study: Study, name: str, table: Any, recipe: Fields, recipe_places: Mapping[str, str]
) -> tuple[Data, dict[str, str]]:
    """A variant's values and places: the recipe's, and its own in their place."""
    if not isinstance(table, dict):
        raise study.error(f"variant.{name}", f"should be a section, [variant.{name}]")
    values = {key: dict(inner) if isinstance(inner, dict) else inner for key, inner in recipe.items()}
    places = dict(recipe_places)
    for key in ("steps", "positions"):
        if isinstance(values.get("run"), dict):
            values["run"].pop(key, None)
    own = list(_settings(table))
    if any((section, key) in (("network", "name"), ("network", "from")) for section, key, _ in own):
        values["network"] = {}
        places = {key: place for key, place in places.items() if key.split(".")[0] != "network"}
    for section, key, value in own:
        dotted = f"{section}.{key}" if key else section
        place = study.places.get(f"variant.{name}.{dotted}", study.places.get(f"variant.{name}", ""))
        if dotted in _THE_STUDY_S:
            raise study.error(f"variant.{name}.{dotted}", _THE_STUDY_S[dotted])
        if not key:
            values[section] = value
        elif isinstance(inner := values.setdefault(section, {}), dict):
            inner[key] = value
        places[dotted] = place
        places.setdefault(section, place)
    for section in ("network", "data", "optimizer", "run"):  # where what is missing from them should stand
        places.setdefault(section, study.places.get(f"variant.{name}", ""))
    return values, places


def _settings(table: Fields) -> Iterator[tuple[str, str, Any]]:
    """(section, key, value) of a variant's table, whose keys may be nested or written with a dot in quotes.

    A value that stands outside any section has the key "".
    """
    for name, value in table.items():
        section, _, key = name.partition(".")
        if key or not isinstance(value, dict):
            yield section, key, value
        else:
            yield from ((section, inner, each) for inner, each in value.items())


def _check_variants(study: Study) -> None:
    names = [variant.name for variant in study.variants]
    if len(names) < 2:
        raise study.error("variant", f"a study has two variants at least, [variant.NAME]; there are {len(names)}")
    for variant in study.variants:
        if not re.fullmatch(_NAME, variant.name):
            message = "a name has letters, digits, _, - and . only, and begins with a letter or a digit"
            raise study.error(f"variant.{variant.name}", message)
        recipe = variant.recipe(1)
        if not recipe.data.test:
            raise recipe.error("data.test", "is missing: variants are compared on held-out games")
    if study.options.reference and study.options.reference not in names:
        message = f"no variant {study.options.reference!r}; there are {', '.join(names)}"
        raise study.error("study.reference", message)
