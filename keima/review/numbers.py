"""The numbers that an evaluation, a search and a move of a search share."""

from __future__ import annotations

from keima.plain import Data

Json = Data


def numbers(judged: object) -> Json:
    """Those it has, of win, draw, loss, value, lead and moves_left."""
    named = {name: getattr(judged, name) for name in ("win", "draw", "loss", "value", "lead", "moves_left")}
    return {name: round(float(number), 5) for name, number in named.items() if number is not None}
