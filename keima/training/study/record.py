"""What is known of a study so far: study.json, rewritten whole whenever a part is finished."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from keima.atomic import replacing
from keima.errors import BadRequest
from keima.plain import Data
from keima.training.run.recipe import SECTIONS, Recipe
from keima.training.study.file import Study, Variant

FILE = "study.json"

_MAY_CHANGE = {
    "data.train",
    "data.test",
    "data.workers",
    "run.checkpoint_every",
    "run.keep",
    "run.log_every",
    "run.device",
    "run.threads",
}
"""Keys that may differ when a study goes on: where the games lie, the machine, how often to keep."""


class Record:
    """What is known of a study, and study.json.

    Raises:
        BadRequest: the file cannot be read, or is another study's.
    """

    def __init__(self, study: Study, folder: Path) -> None:
        self.study, self.folder = study, folder
        options = study.options
        before = self._read()
        known = before.get("variants", {})
        budget = {name: getattr(options, name) for name in ("positions", "seconds") if getattr(options, name)}
        if before.get("budget", budget) != budget:
            key = f"study.{next(iter(budget))}"
            raise study.error(key, f"the study in {folder} was begun with {before['budget']}: choose another with -o")
        self.contents: Data = {
            "title": options.title or Path(study.source).stem,
            "budget": budget,
            "reference": study.reference.name,
            "variants": {variant.name: self._begun(variant, known.get(variant.name, {})) for variant in study.variants},
        }

    def of(self, variant: Variant) -> Data:
        """What is known of a variant; whoever adds to it calls `write`."""
        found: Data = self.contents["variants"][variant.name]
        return found

    def network(self, variant: Variant) -> Path:
        """Its trained network's file."""
        return self.folder / variant.name / str(self.of(variant)["network"])

    def write(self) -> None:
        """Write study.json whole.

        Raises:
            BadRequest: it cannot be written.
        """
        write_text(self.folder / FILE, json.dumps(self.contents, indent=1, ensure_ascii=False) + "\n")

    def _read(self) -> Data:
        path = self.folder / FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise BadRequest(f"not a study's record: {error}", source=str(path)) from error
        if not isinstance(found, dict) or not isinstance(found.get("variants"), dict):
            raise BadRequest("not a study's record: choose another folder with -o", source=str(path))
        return found

    def _begun(self, variant: Variant, before: Data) -> Data:
        """A variant's entry, after a look whether its recipe is still the one it was begun with."""
        recipe = variant.recipe(1)
        settings = _plain(recipe)
        changed = [
            (section, key, old[key], value)
            for section, values in settings.items()
            for old in [before.get("recipe", {}).get(section, {})]
            for key, value in values.items()
            if old.get(key, value) != value and f"{section}.{key}" not in _MAY_CHANGE
        ]
        if changed and "network" not in before:  # nothing came of the old one
            return {"recipe": settings}
        for section, key, old, value in changed:
            name = "from" if key == "source" else key
            if isinstance(value, dict):  # sizes of a network, weights of a loss: which one
                name = next(inner for inner in {**old, **value} if old.get(inner) != value.get(inner))
                old, value = old.get(name), value.get(name)
            message = f"is {value!r}; the study in {self.folder} was begun with {old!r}: choose another with -o"
            raise recipe.error(f"{section}.{name}", message)
        return {**before, "recipe": settings}


def _plain(recipe: Recipe) -> dict[str, Data]:
    """A recipe's values as plain data, without its length, which is the budget's."""
    sections = {name: getattr(recipe, name) for name in SECTIONS}
    values = {name: asdict(section) for name, section in sections.items() if section is not None}
    plain: dict[str, Data] = json.loads(json.dumps(values))
    del plain["run"]["steps"]
    return plain


def write_text(path: Path, text: str) -> None:
    """Write a file whole.

    Raises:
        BadRequest: it cannot be written.
    """
    try:
        with replacing(path, "w") as stream:
            stream.write(text)
    except OSError as error:
        raise BadRequest(f"cannot be written: {error.strerror or error}", source=str(path)) from error
