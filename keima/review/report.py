"""Reviews as files: JSON, and one self-contained HTML page a game.

The page holds its styles, its script and the review itself; it loads nothing, so it works offline and can be sent as
it is. The review inside a page is complete: `read_review` gives it back, so a finished page is its own cache.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from keima.atomic import replacing
from keima.errors import BadRecord, BadRequest
from keima.games.game import GAMES
from keima.plain import Data
from keima.review.analysis import FORMAT, FORMAT_VERSION
from keima.review.games import game_title

_OPENING = '<script type="application/json" id="review">'
_CLOSING = "</script>"


def render_html(review: Data, index: str = "") -> str:
    """The page of one review (docs/review-json.md); `index`: the page beside it that lists others, if there is one."""
    board = (files(GAMES[review["game"]["game"]].package) / "board.js").read_text(encoding="utf-8")
    before, after = ("drawing.js", "text-en.js"), ("graphs.js", "view.js", "report.js")
    scripts = [*map(page_file, before), board, *map(page_file, after)]
    return fill(
        "report.html",
        version=html.escape(review["keima"]),
        title=html.escape(f"{game_title(review['game'])} – keima review"),
        back=f'<nav><a class="back" href="{html.escape(index)}">All games</a></nav>\n' if index else "",
        css=page_file("theme.css") + page_file("report.css"),
        js=_one_module(scripts),
        data=_embed(_pack(review)),
    )


def _one_module(scripts: Sequence[str]) -> str:
    """The modules one after another, without what they import from one another."""
    return re.sub(r"^(import .*;\n|export )", "", "\n".join(scripts), flags=re.MULTILINE)


def page_file(name: str) -> str:
    """A file of the page, as it lies in the package."""
    return (files("keima.review") / "page" / name).read_text(encoding="utf-8")


def fill(template: str, **parts: str) -> str:
    """A template with each `{{name}}` replaced once, so that nothing inside a part is taken for a place."""
    return re.sub(r"\{\{(.*?)\}\}", lambda place: parts[place[1]], page_file(template))


def _embed(review: Data) -> str:
    """JSON that may stand inside a script element: without a `<` nothing in it can end the element."""
    return json.dumps(review, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _pack(review: Data) -> Data:
    """The review with each ownership map as base64 of int8 hundredths, a quarter of its size as JSON."""
    positions = []
    for position in review["positions"]:
        if "ownership" in position:
            points = np.rint(np.asarray(position["ownership"], dtype=np.float64) * 100).astype(np.int8)
            position = {**position, "ownership": base64.b64encode(points.tobytes()).decode("ascii")}
        positions.append(position)
    return {**review, "positions": positions}


def _unpack(review: Data) -> Data:
    """The inverse of `_pack`, to the last digit."""
    for position in review["positions"]:
        if isinstance(position.get("ownership"), str):
            points = np.frombuffer(base64.b64decode(position["ownership"]), dtype=np.int8)
            shape = (review["game"]["ysize"], review["game"]["xsize"])
            position["ownership"] = (points.reshape(shape).astype(np.float64) / 100).round(2).tolist()
    return review


def read_review(path: Path | str) -> Data | None:
    """The review in a page or JSON file of ours; None if there is no file. Raises BadRecord where it holds none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecord(f"cannot be read as a review: {error}", source=str(path)) from error
    if _OPENING in text:
        text = text.split(_OPENING, 1)[1].split(_CLOSING, 1)[0]
    try:
        review = json.loads(text)
        if isinstance(review, dict) and review.get("format") == FORMAT:
            return _unpack(review) if review.get("version") == FORMAT_VERSION else review
        reason = "no keima review is in it"
    except (ValueError, KeyError, TypeError) as error:
        reason = str(error)
    message = f"exists and is not a review that keima wrote ({reason}); choose another name or remove it"
    raise BadRecord(message, source=str(path))


def write_text(path: Path | str, text: str) -> None:
    """Write a file whole or not at all; missing folders are made. Raises BadRequest where it cannot be written."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, "w") as file:
            file.write(text)
    except OSError as error:
        raise BadRequest(f"cannot be written: {error.strerror or error}", source=str(path)) from error
