"""What the judge's games say: the Elo of every generation, who plays, and a picture that is always up to date.

Ratings are of the Bradley–Terry model, by maximum likelihood over all results of a run: i beats j with probability
1 / (1 + 10^((e_j − e_i) / 400)), a draw is half a win of each. The prior is weak: one drawn game more in every pairing,
so that a player who lost every game has a rating too. Generation 0 stands at 0. Intervals are those of the normal
approximation: the inverse of the likelihood's curvature.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keima.elo import Z95, Tally
from keima.errors import BadStore
from keima.games.drawing import new_figure
from keima.plain import Data
from keima.training.run.metrics import BLUE, COLOURS, GREEN, INK, ORANGE, PALE, parse_metrics, plot_losses
from keima.training.selfplay.networks import list_networks, read_object, read_published
from keima.training.selfplay.recipe import LoopRecipe
from keima.training.selfplay.store import Store

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = "ratings"
PICTURE = "curve.png"
METRICS = "learner/metrics.jsonl"
"""The learner's numbers, as the store has them."""
_PRIOR = 0.5
"""Wins that each player of a pairing is given beforehand."""

Player = int | str
"""A generation, or a network file of judge.opponents."""


@dataclass(frozen=True)
class Result:
    """A match of a generation: wins, draws, losses and pairs (as `Tally`) are its own."""

    opponent: Player
    wins: int
    draws: int
    losses: int
    pairs: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)

    @property
    def tally(self) -> Tally:
        """As `keima.elo` counts."""
        return Tally(self.wins, self.draws, self.losses, self.pairs)


@dataclass(frozen=True)
class Rating:
    """What the judge found of a generation."""

    generation: int
    results: tuple[Result, ...]
    accepted: bool = True  # it may play; with judge.gate only once it has proved stronger
    reason: str = ""  # of that, in words


# --- In the store -----------------------------------------------------------------------------------------------------


def write_rating(store: Store, rating: Rating) -> bool:
    """Keep what was found of a generation; False where it was kept before."""
    data = asdict(rating)
    for kept, result in zip(data["results"], rating.results, strict=True):
        elo, (low, high) = result.tally.elo, result.tally.elo_interval
        kept["elo"], kept["elo_interval"] = _finite(elo), [_finite(low), _finite(high)]
    return store.write_new(_name(rating.generation), json.dumps(data, indent=1).encode() + b"\n")


def _finite(elo: float) -> float | None:
    return round(elo, 1) if np.isfinite(elo) else None


def read_rating(store: Store, generation: int) -> Rating:
    """What was found of a generation. Raises BadStore: nothing yet, or the file is damaged."""
    name = _name(generation)
    fields = read_object(store, name)
    try:
        results = tuple(
            Result(
                each["opponent"] if isinstance(each["opponent"], str) else int(each["opponent"]),
                int(each["wins"]),
                int(each["draws"]),
                int(each["losses"]),
                _five(each["pairs"]),
            )
            for each in fields["results"]
        )
        return Rating(int(fields["generation"]), results, bool(fields["accepted"]), str(fields["reason"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadStore(f"is no rating: {error!r}", source=f"{store.address}/{name}") from error


def _five(pairs: Sequence[int]) -> tuple[int, int, int, int, int]:
    a, b, c, d, e = map(int, pairs)
    return a, b, c, d, e


def list_ratings(store: Store) -> list[int]:
    """The generations that have been judged, rising."""
    names = (name.removeprefix(f"{FOLDER}/").removesuffix(".json") for name in store.list(FOLDER))
    return sorted(int(name) for name in names if name.isdecimal())


def _name(generation: int) -> str:
    return f"{FOLDER}/{generation:06d}.json"


def best_network(store: Store, recipe: LoopRecipe) -> int | None:
    """The generation that plays: the newest, with judge.gate the newest that was accepted; None before the first one.

    Generation 0 is accepted as it is.
    """
    there = list_networks(store)
    if not recipe.judge.gate or not there:
        return there[-1] if there else None
    for generation in reversed(list_ratings(store)):
        if generation in there and read_rating(store, generation).accepted:
            return generation
    return there[0]


# --- Elo --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Elo:
    """A rating, and half its 95 % interval; both 0 for generation 0."""

    elo: float
    half: float


def rate(ratings: Sequence[Rating]) -> dict[Player, Elo]:
    """The Elo of everyone who is in a result, generation 0 at 0; of those only that games connect with generation 0."""
    games = [(rating.generation, result) for rating in ratings for result in rating.results if result.tally.games]
    players = _connected([(each, result.opponent) for each, result in games])
    index = {player: number for number, player in enumerate(players)}
    wins = np.zeros((len(players), len(players)))
    for each, result in games:
        if each in index:
            i, j = index[each], index[result.opponent]
            wins[i, j] += result.tally.points
            wins[j, i] += result.tally.games - result.tally.points
    wins[(wins + wins.T) > 0] += _PRIOR
    found, errors = bradley_terry(wins)
    scale = 400 / np.log(10)
    return {player: Elo(float(scale * found[k]), float(Z95 * scale * errors[k])) for player, k in index.items()}


def _connected(pairings: Sequence[tuple[Player, Player]]) -> list[Player]:
    """Who is linked with generation 0 by games, generation 0 first."""
    found: dict[Player, None] = {0: None}
    grown = True
    while grown:
        before = len(found)
        for one, other in pairings:
            if one in found or other in found:
                found |= {one: None, other: None}
        grown = len(found) > before
    return list(found)


def bradley_terry(wins: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strengths in natural units and their standard errors, [n] each; the first player stands at 0, known exactly.

    Newton's method on the log-likelihood, which is concave; steps are cut to one unit, beyond which it may not go
    straight.

    Args:
        wins: [n, n], [i, j] the points of i against j; each pair of players linked by points of both.
    """
    n = len(wins)
    strengths, errors, total = np.zeros(n), np.zeros(n), wins + wins.T
    for _ in range(1000):
        chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        gradient = (wins - total * chance).sum(axis=1)
        weights = total * chance * chance.T
        curvature = np.diag(weights.sum(axis=1)) - weights
        if n < 2:
            break
        step = np.linalg.solve(curvature[1:, 1:], gradient[1:])
        errors[1:] = np.sqrt(np.diag(np.linalg.inv(curvature[1:, 1:])))
        strengths[1:] += step * min(1.0, 1 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-10:
            break
    return strengths, errors


# --- The picture ------------------------------------------------------------------------------------------------------


def draw_curve(store: Store) -> bool:
    """Draw the run into its store: Elo by generation and by games, losses, window and speed; False before any network.

    Raises:
        BadStore: as `Store.read` and `Store.write`.
    """
    generations = list_networks(store)
    if not generations:
        return False
    known = [_facts(store, generation) for generation in generations]
    ratings = [read_rating(store, generation) for generation in list_ratings(store)]
    lines = parse_metrics(store.read(METRICS).decode("utf-8", "replace")) if store.exists(METRICS) else []
    figure = new_figure(13, 8.4)
    upper, lower = figure.subplots(2, 2)
    _draw_elo(upper[0], ratings, {each["generation"]: each["generation"] for each in known}, "generation")
    _draw_elo(upper[1], ratings, {each["generation"]: each["games"] for each in known}, "games played")
    _draw_losses(lower[0], lines)
    _draw_window(lower[1], known)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    store.write(PICTURE, picture.getvalue())
    return True


def _facts(store: Store, generation: int) -> Data:
    """Games played and positions learned from when a generation was learned, and when it was published."""
    published = read_published(store, generation)
    facts: Data = {"generation": generation, "time": published.time, "games": 0, "positions": 0, "window": 0}
    if generation:
        window = read_object(store, f"windows/{generation:06d}.json")
        facts |= {key: int(window[key]) for key in ("games", "positions")} | {"window": int(window["window_positions"])}
    return facts


def _plain(axes: Axes, title: str, across: str) -> None:
    axes.set_title(title, fontsize=11, loc="left", color=INK)
    axes.set_xlabel(across)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _draw_elo(axes: Axes, ratings: Sequence[Rating], places: dict[int, int], across: str) -> None:
    """Elo with its 95 % interval; open marks for generations that were not accepted, lines for other networks."""
    _plain(axes, "Elo, generation 0 at 0, with 95 % intervals", across)
    found = rate(ratings)
    refused = {rating.generation for rating in ratings if not rating.accepted}
    own = sorted((places[player], player, each) for player, each in found.items() if player in places)
    xs, ys, halves = [x for x, _, _ in own], [e.elo for _, _, e in own], [e.half for _, _, e in own]
    axes.plot(xs, ys, color=BLUE, linewidth=1.4)
    low, high = ([y + sign * half for y, half in zip(ys, halves, strict=True)] for sign in (-1, 1))
    axes.fill_between(xs, low, high, color=BLUE, alpha=0.18, linewidth=0)
    for x, player, each in own:
        inside = "white" if player in refused else BLUE
        axes.plot([x], [each.elo], "o", color=BLUE, markersize=4, markerfacecolor=inside)
    others = {player: each for player, each in found.items() if isinstance(player, str)}
    for colour, (name, each) in zip(COLOURS[1:], others.items(), strict=False):
        axes.axhline(each.elo, color=colour, linewidth=1, linestyle="--", label=name.rpartition("/")[2])
    if refused:
        axes.plot([], [], "o", color=BLUE, markersize=4, markerfacecolor="white", label="not accepted")
    if others or refused:
        axes.legend(frameon=False, fontsize=8)
    axes.set_xlim(0, max(1, *places.values()))


def _draw_losses(axes: Axes, lines: Sequence[Data]) -> None:
    _plain(axes, "Training loss and its terms", "step")
    if lines:
        plot_losses(axes, lines)
        if axes.get_yscale() == "linear":
            axes.set_ylim(0, None)


def _draw_window(axes: Axes, known: Sequence[Data]) -> None:
    """Positions in the window and games a minute between two networks."""
    _plain(axes, "Positions in the window, and games a minute", "generation")
    xs = [each["generation"] for each in known]
    axes.plot(xs[1:], [each["window"] for each in known[1:]], color=GREEN, linewidth=1.4)
    axes.set_ylabel("positions", color=GREEN)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(0, None)
    right = axes.twinx()
    speed = [60 * (b["games"] - a["games"]) / max(b["time"] - a["time"], 1e-3) for a, b in pairwise(known)]
    right.plot(xs[1:], speed, color=ORANGE, linewidth=1.2)
    right.set_ylabel("games a minute", color=ORANGE)
    right.set_ylim(0, None)
    right.spines[["top"]].set_visible(False)
