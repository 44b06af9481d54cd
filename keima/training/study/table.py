"""A study's figures as a table: for a terminal, and in Markdown."""

from __future__ import annotations

import math

from keima.plain import Fields

Contents = Fields
"""What study.json holds."""

_UNKNOWN = "–"
_Z95 = 1.96


def limits_of(contents: Contents) -> list[str]:
    """The limits that matches were played under, in order."""
    found: dict[str, None] = {}
    for known in contents["variants"].values():
        found |= dict.fromkeys(known.get("matches", {}))
    return list(found)


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
