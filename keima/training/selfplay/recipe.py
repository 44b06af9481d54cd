"""Recipes of self-play: a network, its search, its games, what is learned from them, as one TOML file.

    [network]
    name = "connect-four"

    [search]
    visits = 100
    root_noise = 0.25

    [games]
    temperature_plies = 12

    [window]
    steps = 200
    reuse = 4

    [optimizer]
    learning_rate = 0.02

    [run]
    steps = 8000
    batch_size = 256

[network], [loss], [optimizer], [schedule] and [run] are those of training (`keima.training.run.recipe`); every other
key stands in the classes below. docs/selfplay.md is the same as prose.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace

from keima.errors import BadRequest
from keima.plain import Data, Fields
from keima.systems.parameters import Number
from keima.training.run.recipe import (
    DataRecipe,
    LossRecipe,
    OptimizerRecipe,
    Recipe,
    RunRecipe,
    ScheduleRecipe,
    SectionReader,
    TeacherRecipe,
    apply_override,
    check_training,
    network_section,
    not_negative,
    one_of,
    positive,
    setting,
    share,
)
from keima.training.run.recipe_text import read_toml


def _share_above_0(value: float) -> str | None:
    return None if 0 < value <= 1 else "above 0 and at most 1"


@dataclass(frozen=True)
class SearchRecipe:
    """[search]: the preset and how long is searched; further keys are numbers of the search (`cpuct`, `root_noise`).

    Playout cap randomization (Wu 2019, arXiv:1902.10565, §3.1): a share of the moves gets a full search, whose policy
    is learned; the others a fast one, without noise, that only brings the game on.
    """

    preset: str = "auto"  # of `keima.search`: the system's own, another's, "gumbel"
    visits: int = setting(100, positive)  # of a full search
    fast_visits: int = setting(0, not_negative)  # of a fast one; 0: every search is full
    full_share: float = setting(0.25, _share_above_0)  # of the moves, where there are fast searches
    precision: str = setting("auto", one_of("auto", "f32", "bf16", "f16"))  # of the evaluations, as of `Evaluator`
    numbers: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True)
class GamesRecipe:
    """[games]: how they begin, how moves are drawn, how they end."""

    side_by_side: int = setting(256, positive)  # games of one worker
    block: int = setting(32, positive)  # games of a shard
    size: tuple[int, ...] = ()  # points a side, taken in turn; none: what the network's layers fix, or the usual board
    rules: tuple[str, ...] = ()  # of Go, as KataGo names them, taken in turn; none: the game's usual ones
    komi: tuple[float, ...] = ()  # of Go, points for White, taken in turn; none: the rules' own
    komi_stdev: float = setting(0.0, not_negative)  # of a normal distribution about it, rounded to half points
    opening_plies: float = setting(0.0, not_negative)  # mean of an exponential number of first moves by policy alone
    opening_temperature: float = setting(1.0, positive)  # of the policy those are drawn from
    fork: float = setting(0.0, share)  # of the games followed by one that branches off at a random move
    temperature: float = setting(1.0, not_negative)  # of the visits that moves are drawn by
    temperature_plies: int = setting(30, not_negative)  # for so many first plies (AlphaGo Zero: 30),
    late_temperature: float = setting(0.0, not_negative)  # and after them; 0: the best move
    halflife: float = setting(0.0, not_negative)  # above 0: the one falls towards the other by half every so many plies
    # share of wrong resignations that is allowed (AlphaGo Zero: 0.05); 0: nobody resigns. The threshold follows from
    # the games played out.
    resign: float = setting(0.0, share)
    play_out: float = setting(0.1, _share_above_0)  # of the games are played out all the same
    max_moves: int = setting(0, not_negative)  # a game of so many is ended and counted; 0: as many as a match's


@dataclass(frozen=True)
class WindowRecipe:
    """[window]: what a generation of the network learns from: the newest positions, ever more of them.

    The window holds c · (1 + β ((N/c)^α − 1) / α) of N positions (Wu 2019, arXiv:1902.10565, appendix C).
    """

    steps: int = setting(200, positive)  # of the optimizer in a generation, after which the network is published
    reuse: float = setting(4.0, positive)  # how often a position is learned on average: more wait for more games
    first: int = setting(20_000, positive)  # c, positions before anything is learned
    growth: float = setting(0.4, positive)  # β
    exponent: float = setting(0.75, _share_above_0)  # α
    value_lambda: float = setting(1.0, _share_above_0)  # of TD(λ), whose returns the value learns; 1: results alone

    def size(self, positions: int) -> int:
        """How many of so many positions are in the window, the newest ones."""
        c = self.first
        wanted: float = c * (1 + self.growth * ((positions / c) ** self.exponent - 1) / self.exponent)
        return min(positions, max(c, math.ceil(wanted)))

    def needed(self, generation: int, batch_size: int) -> int:
        """Positions played in all before generation 1, 2, … may be learned."""
        return self.first + math.ceil((generation - 1) * self.steps * batch_size / self.reuse)


@dataclass(frozen=True)
class JudgeRecipe:
    """[judge]: games between networks of the run, for Elo and, if wanted, to choose who plays."""

    every: int = setting(1, positive)  # generations from one that is judged to the next
    games: int = setting(64, not_negative)  # against each opponent; 0: nothing is judged
    visits: int = setting(0, not_negative)  # of a move; 0: as in self-play
    opponents: tuple[str, ...] = ()  # network files met beside the earlier networks of the run
    gate: bool = False  # a network plays only once SPRT says that it is stronger (AlphaGo Zero)
    elo0: float = 0.0  # the test's hypotheses, Elo
    elo1: float = 35.0


@dataclass(frozen=True)
class LoopRecipe:
    """A whole recipe; `source`, `text` and `places` as in `Recipe`."""

    search: SearchRecipe
    games: GamesRecipe
    window: WindowRecipe
    judge: JudgeRecipe
    training: Recipe  # the sections it shares with training

    @property
    def generations(self) -> int:
        """Networks that are learned."""
        return math.ceil(self.training.run.total_steps / self.window.steps)

    def error(self, key: str, message: str) -> BadRequest:
        """As `Recipe.error`."""
        return self.training.error(key, message)


_OWN = {"search": SearchRecipe, "games": GamesRecipe, "window": WindowRecipe, "judge": JudgeRecipe}
_SHARED = {"loss": LossRecipe, "optimizer": OptimizerRecipe, "schedule": ScheduleRecipe, "run": RunRecipe}
SECTIONS = ("network", *_OWN, *_SHARED)


def read_loop(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> LoopRecipe:
    """Read and check a recipe file of self-play, TOML in UTF-8; `overrides` are "section.key=value" each.

    Raises:
        BadRequest: as `keima.training.run.recipe.read_recipe`; the place is the line.
    """
    source = os.fspath(path)
    values, places, text = read_toml(path, "the recipe")
    for override in overrides:
        apply_override(override, values, places, source)
    return build_loop(values, places, source, text)


def build_loop(values: Fields, places: Mapping[str, str], source: str, text: str) -> LoopRecipe:
    """Check all sections."""
    reader = SectionReader(places, source)
    reader.check(values, SECTIONS, "self-play")
    training = Recipe(
        network=network_section(reader, values.get("network", {})),
        data=DataRecipe(),
        teacher=TeacherRecipe(),
        loss=LossRecipe(reader.numbers("loss", values.get("loss", {}))),
        optimizer=reader.section(OptimizerRecipe, "optimizer", values.get("optimizer", {})),
        schedule=reader.section(ScheduleRecipe, "schedule", values.get("schedule", {})),
        run=reader.section(RunRecipe, "run", values.get("run", {})),
        selfplay=None,
        reinforce=None,
        source=source,
        text=text,
        places=places,
    )
    check_training(training)
    recipe = LoopRecipe(
        search=_search(reader, values.get("search", {})),
        games=reader.section(GamesRecipe, "games", values.get("games", {})),
        window=reader.section(WindowRecipe, "window", values.get("window", {})),
        judge=reader.section(JudgeRecipe, "judge", values.get("judge", {})),
        training=training,
    )
    if recipe.games.fork and recipe.games.block % 2:
        raise recipe.error("games.block", "should be even where games fork: a game and its fork stand in one block")
    if 0 < recipe.search.fast_visits >= recipe.search.visits:
        raise recipe.error("search.fast_visits", f"should be below visits, {recipe.search.visits}")
    return recipe


def _search(reader: SectionReader, table: Fields) -> SearchRecipe:
    """The search's section: any other key is a number of the search."""
    own = {each.name for each in fields(SearchRecipe)} - {"numbers"}
    section = reader.section(SearchRecipe, "search", {key: value for key, value in table.items() if key in own})
    numbers: dict[str, Number] = {}
    for key, value in table.items():
        if key in own:
            continue
        if not isinstance(value, bool | int | float):
            raise reader.error(f"search.{key}", f"should be a number, not {value!r}")
        numbers[key] = value
    return replace(section, numbers=numbers)


def plain(recipe: LoopRecipe) -> Data:
    """What decides a run's games and weights, as plain data."""
    own = {name: {each.name: getattr(getattr(recipe, name), each.name) for each in fields(kind)}
           for name, kind in _OWN.items()}  # fmt: skip
    return {**recipe.training.values(), **own}
