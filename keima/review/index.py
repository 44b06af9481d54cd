"""The page that lists the reviews of a folder: players, results, averages, a small picture of where each game ended."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from keima.games.game import GAMES
from keima.plain import Data
from keima.review.batch import INDEX, Result
from keima.review.games import game_title
from keima.review.report import fill, page_file, write_text

_GRADES = ("blunders", "mistakes", "inaccuracies")
_HEADS = ("File", "Game", "Date", "Result", "Moves", "Loss a move or accuracy", *map(str.capitalize, _GRADES))


def write_index(results: Sequence[Result], folder: str) -> Path:
    """Write the list of a folder's reviews, those that failed too; where it lies. Raises BadRequest."""
    index = Path(folder) / INDEX
    write_text(index, render_index(results))
    return index


def render_index(results: Sequence[Result]) -> str:
    """The page; reviews need no more of `positions` than the last one."""
    rows = "\n".join(_row(result) for result in results)
    done = sum(result.review is not None for result in results)
    count = f"{done} of {len(results)} games" if done < len(results) else f"{done} games"
    heads = "".join(
        f'<th scope="col" data-column="{column}"><button type="button">{head}</button></th>'
        for column, head in enumerate(_HEADS, 1)
    )
    return fill("index.html", css=page_file("theme.css"), count=count, heads=heads, rows=rows)


def _row(result: Result) -> str:
    """One game; one that failed says why."""
    name = html.escape(_file_name(result))
    problem = f'<p class="problem">{html.escape(str(result.error))}</p>' if result.error else ""
    if result.review is None:
        return f'<tr class="failed"><td></td><td>{name}</td><td colspan="{5 + len(_GRADES)}">{problem}</td></tr>'
    review = result.review
    game, players = review["game"], review["players"]
    sides = GAMES[game["game"]].sides
    link = f'<a href="{html.escape(result.page.name)}">{html.escape(game_title(game))}</a>'
    cells = [
        (GAMES[game["game"]].drawing.thumbnail(review["positions"][-1]), ""),
        (name, _file_name(result)),
        (link + problem, game_title(game)),
        (html.escape(game.get("date", "")), game.get("date", "")),
        (html.escape(game["result"]), game["result"]),
        (str(len(review["moves"])), len(review["moves"])),
        (_both(_average(players[side]) for side in sides), min(_loss(players[side]) for side in sides)),
    ]
    for grade in _GRADES:
        counts = [players[side][grade] for side in sides]
        cells.append((_both(str(count) for count in counts), sum(counts)))
    return "<tr>" + "".join(f'<td data-by="{html.escape(str(by))}">{cell}</td>' for cell, by in cells) + "</tr>"


def _file_name(result: Result) -> str:
    if result.review is not None:
        game = result.review["game"]
        return f"{game['source']}: {game['index']}" if game["index"] > 1 else str(game["source"])
    return Path(result.error.source or "").name if result.error else ""


def _both(texts: Iterable[str]) -> str:
    return " · ".join(texts)


def _loss(player: Data) -> float:
    return float(player.get("mean_winrate_loss", 0.0))


def _average(player: Data) -> str:
    """A player's average loss a move, in points where the game has them, else the accuracy."""
    if "mean_points_loss" in player:
        return f"{player['mean_points_loss']:.2f} points"
    return f"{player['accuracy']:.0f} %" if "accuracy" in player else "–"
