"""What must be right before self-play begins, beyond what single values tell; the run's own copy of its recipe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product

import keima
from keima.errors import BadStore, KeimaError
from keima.games.game import get_game
from keima.games.position import Position
from keima.plain import Data
from keima.systems.network import Network
from keima.systems.parameters import Parameters
from keima.systems.presets import parameters_for
from keima.training.run import checkpoint
from keima.training.run.preflight import build_network, find_world, load_network
from keima.training.run.recipe import apply_override
from keima.training.run.recipe_text import parse_toml
from keima.training.run.sources import open_loss
from keima.training.selfplay.networks import read_object
from keima.training.selfplay.recipe import LoopRecipe, build_loop, plain
from keima.training.selfplay.store import Store

RUN = "run.json"
FORMAT = 1
DONE = "done.json"
"""Of the learner: it has finished."""
MAY_CHANGE = {**checkpoint.MAY_CHANGE, "judge": {"every", "games", "opponents"}}
"""As `keima.training.run.checkpoint.MAY_CHANGE`, of self-play."""


# --- The recipe in the store ------------------------------------------------------------------------------------------


def write_run(store: Store, recipe: LoopRecipe, overrides: Sequence[str] = ()) -> None:
    """Begin a run in the store, or go on with the one there; `overrides` are those the recipe was read with.

    A run may be made longer: the recipe takes the place of the one it was begun with where they differ in nothing but
    what may differ (`MAY_CHANGE`), and the run is not over before its new last step.

    Raises:
        BadRequest: the store holds another recipe's run; names the line of what differs.
        BadStore: as `Store.write`.
    """
    run: Data = {"format": FORMAT, "keima": keima.__version__, "seed": recipe.training.run.seed}
    run |= {"recipe": recipe.training.text, "overrides": list(overrides)}
    written = json.dumps(run, indent=1).encode() + b"\n"
    if store.write_new(RUN, written):
        return
    before, now = plain(read_run(store)), plain(recipe)
    checkpoint.check_changes(recipe.training, before, now, MAY_CHANGE, store.address)
    if before != now:
        store.write(RUN, written)
    if store.exists(DONE) and read_object(store, DONE).get("step", 0) < recipe.training.run.total_steps:
        store.delete(DONE)


def read_run(store: Store) -> LoopRecipe:
    """The recipe of the run in a store. Raises BadStore where there is none, BadRequest where it is no recipe."""
    run, source = read_object(store, RUN), f"{store.address}/{RUN}"
    text, overrides = run.get("recipe"), run.get("overrides", [])
    if run.get("format") != FORMAT or not isinstance(text, str) or not isinstance(overrides, list):
        raise BadStore(f"a run of format {run.get('format')!r}; this keima reads {FORMAT}", source=source)
    values, places = parse_toml(text, source, "the recipe")
    for override in overrides:
        apply_override(str(override), values, places, source)
    return build_loop(values, places, source, text)


# --- Before any work --------------------------------------------------------------------------------------------------


def check_loop(recipe: LoopRecipe) -> Network:
    """See that network, search, games, loss and opponents go together; the fresh network, in training mode.

    Raises:
        BadRequest: they do not; names the recipe's line.
    """
    find_world(recipe.training)
    network = build_network(recipe.training)
    open_loss(recipe.training, network)
    check_search(recipe, network)
    for start in starts(recipe, network):
        _check_start(recipe, network, start)
    if recipe.judge.gate and not recipe.judge.games:
        raise recipe.error("judge.gate", "needs games to be judged by: set judge.games")
    if recipe.judge.elo0 >= recipe.judge.elo1:
        raise recipe.error("judge.elo0", f"must be below elo1, {recipe.judge.elo1:g}")
    for name in recipe.judge.opponents:
        opponent(recipe, name, network)
    return network


def check_search(recipe: LoopRecipe, network: Network) -> Parameters:
    """The numbers of the network's search. Raises BadRequest where there is none; names the recipe's line."""
    search = recipe.search
    try:
        return parameters_for(search.preset, network.system, network.output_names, search.numbers)
    except KeimaError as error:
        blamed = [key for key in search.numbers if key in error.message]
        key = min(blamed, key=error.message.find, default="preset")
        raise recipe.error(f"search.{key}", error.message) from error


def starts(recipe: LoopRecipe, network: Network) -> list[Position]:
    """The positions that games begin from, one for each size, rules and komi.

    Raises:
        BadRequest: there is no such board or there are no such rules; names the recipe's line.
    """
    games = recipe.games
    playing = get_game(network.encoding.game).playing
    known = playing.table(playing.start())
    for key, table in (("size", "size"), ("rules", "rules"), ("komi", "komi"), ("komi_stdev", "komi")):
        if getattr(games, key) and table not in known:
            raise recipe.error(f"games.{key}", f"{get_game(network.encoding.game).title} has no choice of {table}")
    own = getattr(network.encoding, "board_size", None)
    found = []
    for size, rules, komi in product(games.size or (own,), games.rules or (None,), games.komi or (None,)):
        try:
            found.append(playing.start((size, size) if size else None, rules, komi))
        except KeimaError as error:
            key = "komi" if "komi" in error.message else "rules" if "rule" in error.message else "size"
            raise recipe.error(f"games.{key}", error.message) from error
    return found


def _check_start(recipe: LoopRecipe, network: Network, start: Position) -> None:
    try:
        network.encoding.check(start)
    except KeimaError as error:
        key = "rules" if recipe.games.rules and not recipe.games.size else "size"
        raise recipe.error(f"games.{key}", error.message) from error


def opponent(recipe: LoopRecipe, name: str, network: Network) -> Network:
    """The network of a file in judge.opponents. Raises BadRequest: it cannot meet the run's networks."""
    other = load_network(recipe.training, "judge.opponents", name)
    if other.encoding.game != network.encoding.game:
        message = f"{name} plays {other.encoding.game}; the run's networks play {network.encoding.game}"
        raise recipe.error("judge.opponents", message)
    if "metadata" in other.input_names:
        raise recipe.error("judge.opponents", f"{name} takes a player's profile, which the judge does not give")
    try:
        check_search(recipe, other)
        for start in starts(recipe, network):
            other.encoding.check(start)
    except KeimaError as error:
        raise recipe.error("judge.opponents", f"{name}: {error.message}") from error
    return other
