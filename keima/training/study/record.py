"""What is known of a study so far: study.json, rewritten whole whenever a part is finished, and the same as a table."""

from __future__ import annotations

import json
import math
from pathlib import Path

from keima.atomic import replacing
from keima.errors import BadRequest
from keima.plain import Data, Fields
from keima.training.study.file import Study, Variant

FILE = "study.json"

_MAY_CHANGE = {
    *("data.train", "data.test", "data.workers", "run.checkpoint_every", "run.keep", "run.log_every"),
    *("run.device", "run.threads"),
}
"""Keys that may differ when a study goes on: where the games lie, the machine, how often to keep."""


class Record:
    """What is known of a study, and study.json. Raises BadRequest where that cannot be read, or is another study's."""

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
        """Write study.json whole. Raises BadRequest where it cannot be written."""
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
        settings = recipe.values()
        del settings["run"]["steps"]  # the length is the budget's
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


def write_text(path: Path, text: str) -> None:
    """Write a file whole. Raises BadRequest where it cannot be written."""
    try:
        with replacing(path, "w") as stream:
            stream.write(text)
    except OSError as error:
        raise BadRequest(f"cannot be written: {error.strerror or error}", source=str(path)) from error


# --- As a table -------------------------------------------------------------------------------------------------------

Contents = Fields
"""What study.json holds."""

_UNKNOWN = "–"
_Z95 = 1.96


def limits_of(contents: Contents) -> list[str]:
    """The limits that matches were played under, in order."""
    return list(dict.fromkeys(limit for each in contents["variants"].values() for limit in each.get("matches", {})))


def share_error(share: float, count: int) -> float:
    """Half the 95 % interval of a share counted on so many positions, as if they were independent."""
    return _Z95 * math.sqrt(share * (1 - share) / max(1, count))


def columns(contents: Contents) -> list[str]:
    """The table's heads."""
    heads = ["variant", "parameters", "positions", "training s", "top-1", "top-5", "cross-entropy", "value MSE"]
    return [*heads, "evaluations/s", *(f"Elo, {limit}" for limit in limits_of(contents))]


def rows(contents: Contents) -> list[list[str]]:
    """The table's cells, a row a variant."""
    return [_row(name, known, contents) for name, known in contents["variants"].items()]


def _row(name: str, known: Fields, contents: Contents) -> list[str]:
    limits = limits_of(contents)
    if "evaluation" not in known:
        return [name, known.get("failed", "not trained yet").split("\n")[0], *[""] * (len(columns(contents)) - 2)]
    evaluation, training = known["evaluation"], known["training"]
    return [
        name,
        f"{known['parameters']:,}",
        f"{training['positions']:,}",
        f"{training['seconds']:,.0f}",
        *(_number(evaluation.get(share), 100, "{:.2f} %") for share in ("top1", "top5")),
        *(_number(evaluation.get(key), 1, "{:.4f}") for key in ("cross_entropy", "value_mse")),
        f"{known['evaluations_per_second']:,.0f}",
        *("0" if name == contents["reference"] else _elo(known.get("matches", {}).get(limit)) for limit in limits),
    ]


def _number(value: float | None, factor: float, form: str) -> str:
    return _UNKNOWN if value is None else form.format(factor * value)


def _elo(match: Fields | None) -> str:
    """ "+35 [−20, +92]"; an end that no number of games would bound is ∞."""
    if match is None:
        return _UNKNOWN
    low, high = match["elo_interval"]
    elo = match["elo"]
    middle = _signed(elo, "+∞" if match["score"] > 0.5 else "−∞")
    return f"{middle} [{_signed(low, '−∞')}, {_signed(high, '+∞')}]"


def _signed(number: float | None, unbounded: str) -> str:
    return unbounded if number is None else f"{number:+.0f}".replace("-", "−")


def text_lines(contents: Contents) -> list[str]:
    """The table for a terminal: columns of one width, numbers to the right."""
    table = [columns(contents), *rows(contents)]
    failed = [name for name, known in contents["variants"].items() if "evaluation" not in known]
    widths = [max(len(row[at]) for row in table if row[0] not in failed) for at in range(len(table[0]))]
    widths[0] = max(len(row[0]) for row in table)
    lines = []
    for row in table:
        if row[0] in failed:
            lines.append(f"{row[0]:<{widths[0]}}  {row[1]}")
        else:
            cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join([f"{row[0]:<{widths[0]}}", *cells]))
    return [*lines, *notes(contents)]


def notes(contents: Contents) -> list[str]:
    """What must be known to read the table."""
    found = []
    evaluations = [known["evaluation"] for known in contents["variants"].values() if "evaluation" in known]
    best = max((each["top1"] for each in evaluations if each.get("top1") is not None), default=None)
    if best is not None:
        count = evaluations[0]["positions"]
        error = 100 * share_error(best, count)
        found.append(
            f"{count:,} held-out positions, the same for all: a top-1 of {best:.1%} is known to ±{error:.1f} %."
        )
    games = {match["games"] for known in contents["variants"].values() for match in known.get("matches", {}).values()}
    if games:
        counts = "–".join(str(count) for count in sorted({min(games), max(games)}))
        found.append(f"Elo against {contents['reference']} of {counts} games each, with 95 % intervals.")
    return found


def markdown(contents: Contents) -> str:
    """The whole of table.md."""
    heads = columns(contents)
    lines = [
        f"# {contents['title']}",
        "",
        f"| {' | '.join(heads)} |",
        f"| {' | '.join(['---', *['---:'] * (len(heads) - 1)])} |",
        *(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows(contents)),
        "",
        f"Budget of each variant: {_budget(contents)}. {' '.join(notes(contents))}",
        "",
        "![The same as a picture](study.png)",
        "",
    ]
    return "\n".join(lines)


def _budget(contents: Contents) -> str:
    ((name, amount),) = contents["budget"].items()
    return f"{amount:,} positions" if name == "positions" else f"about {amount:,g} s of training"
