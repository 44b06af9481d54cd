"""Recipes: what to train, on what, how, as one TOML file of about twenty lines.

    [network]
    name = "alphago-policy"          # or from = "maia-1500.pb.gz", to go on from any network file
    filters = 64

    [data]
    train = "train.parquet"
    test = "test.parquet"

    [optimizer]
    kind = "sgd"
    learning_rate = 0.003

    [run]
    steps = 10000
    batch_size = 16

`read_recipe` checks everything that can be known without the data and names the line of what is wrong; `preflight`
checks the rest before any work. Every key stands in the classes below with its unit and default; docs/training.md is
the same as prose.
"""

from __future__ import annotations

import json
import math
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeVar

from keima.errors import BadRequest
from keima.plain import Data, Fields
from keima.training.run.recipe_text import parse_value, read_toml

Check = Callable[[Any], str | None]
"""What a value should have been ("positive"), or None when it is."""

Section = TypeVar("Section")


def setting(default: Any = MISSING, check: Check | None = None) -> Any:
    """A key of a section: required without a default."""
    metadata = {} if check is None else {"check": check}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata) if default is not MISSING else field(metadata=metadata)


def positive(value: Any) -> str | None:
    """A check: above 0."""
    return None if value > 0 else "more than 0"


def not_negative(value: Any) -> str | None:
    """A check: 0 or above."""
    return None if value >= 0 else "0 or more"


def share(value: Any) -> str | None:
    """A check: at least 0 and below 1."""
    return None if 0 <= value < 1 else "at least 0 and below 1"


def one_of(*names: str) -> Check:
    """A check: one of these words."""
    return lambda value: None if value in names else f"one of {', '.join(names)}"


def _rising(value: Sequence[int]) -> str | None:
    return None if list(value) == sorted(set(value)) and all(step > 0 for step in value) else "rising steps above 0"


# --- Sections: each key with its default and what it means ------------------------------------------------------------


@dataclass(frozen=True)
class NetworkRecipe:
    """[network]: a fresh network by name, or one to go on from. Further keys are sizes, as for `keima.create`."""

    name: str = ""  # of `keima.list_networks()`, or an alias
    source: str = ""  # key `from`: a network file of any supported format; fine-tuning starts there
    freeze: tuple[str, ...] = ()  # beginnings of names of parameters that keep their weights ("tower.0.", "stem")
    sizes: Fields = field(default_factory=dict)  # every other key of the section


@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """[data]: game stores (.parquet files or folders of them, as `keima data import` makes) and which positions."""

    train: str = ""  # must be there unless [selfplay] makes the games
    test: str = ""  # held-out games; without them there is no evaluation
    symmetries: bool = True  # turn and flip each position at random, with its targets
    workers: int = setting(2, positive)  # threads that make planes
    first_ply: int = setting(0, not_negative)  # only positions with so many moves made at least,
    last_ply: int | None = setting(None, not_negative)  # at most
    lowest_rank: str | None = None  # only games both of whose players have this rank at least ("1d"; Go)
    lowest_rating: int | None = None  # the same of ratings (chess)
    known_winner: bool = False  # only games whose winner is known
    searches: bool = False  # learn what searches found (π and Q of `keima data search`), of positions that have it
    one_per_game: bool = False  # a position of each game an epoch, another each time, as AlphaGo's value network needs


_FILTERS = ("first_ply", "last_ply", "lowest_rank", "lowest_rating", "known_winner", "one_per_game")


@dataclass(frozen=True)
class TeacherRecipe:
    """[teacher]: a network whose answers are learned in place of the games' own (distillation), or several as one."""

    network: tuple[str, ...] = ()  # its file or their files, of any supported format; none for no teacher
    # of its answers in the targets; the rest is the move played and how the game ended
    share: float = setting(1.0, lambda value: None if 0 < value <= 1 else "above 0 and at most 1")
    temperature: float = setting(1.0, positive)  # of its policy; above 1 says more of the moves it does not prefer
    precision: str = setting("auto", one_of("auto", "f32", "bf16"))
    backend: str = setting("auto", one_of("auto", "torch", "openvino"))


@dataclass(frozen=True)
class SelfplayRecipe:
    """[selfplay]: games that networks play for the training, each move drawn from a policy without a search.

    With [reinforce], the network in training against its past selves; with [teacher], against the teacher.
    """

    size: int = setting(0, not_negative)  # points a side; 0: what the network's layers fix, else the usual board
    rules: str = "chinese-kgs"  # of Go, those of area scoring, as KataGo names them
    komi: float = 7.5  # of Go, points for White
    temperature: float = setting(1.0, positive)  # of the policies that moves are drawn from
    # a game of so many is ended and counted; 0 for as many as the game needs (Go: three times the points)
    max_moves: int = setting(0, not_negative)
    games: int = setting(128, positive)  # [teacher]: games of one generation
    every: int = setting(50, positive)  # [teacher]: steps until the next generation


@dataclass(frozen=True)
class ReinforceRecipe:
    """[reinforce]: policy gradient from games against a pool of past selves; `run.batch_size` counts games."""

    # steps after which the network joins the pool, which begins with the network itself (AlphaGo: 500)
    pool_every: int = setting(500, positive)
    # what is taken off the outcome: "mean" of the other games of the step with the same colour, "none" (AlphaGo's first
    # pass), or a network's file, whose value it is (AlphaGo's second)
    baseline: str = "mean"


@dataclass(frozen=True)
class LossRecipe:
    """[loss]: weights of the system's terms by name, other than its own. Keys: the terms' names."""

    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OptimizerRecipe:
    """[optimizer].

    What SGD adds to the gradient is weight_decay · θ, so c‖θ‖² is weight_decay = 2c; AdamW takes learning_rate ·
    weight_decay · θ off the weights themselves.
    """

    kind: str = setting("sgd", one_of("sgd", "adamw"))
    learning_rate: float = setting(check=positive)  # at its highest; the schedule multiplies it
    momentum: float = setting(0.0, share)  # of SGD
    nesterov: bool = False  # Nesterov's momentum
    weight_decay: float = setting(0.0, not_negative)
    # "all" parameters (AlphaGo Zero's c‖θ‖²), or "weights", those with two axes or more (no biases, no norms)
    decay: str = setting("weights", one_of("all", "weights"))
    beta1: float = setting(0.9, share)  # of AdamW, and the next two
    beta2: float = setting(0.999, share)
    epsilon: float = setting(1e-8, positive)


@dataclass(frozen=True)
class ScheduleRecipe:
    """[schedule]: what the learning rate is multiplied by, a function of the step alone.

    "constant"; "step": by `factor` every `every` steps, or at each of `milestones`; "cosine": from 1 down to `minimum`
    at the last step.
    """

    kind: str = setting("constant", one_of("constant", "step", "cosine"))
    warmup: int = setting(0, not_negative)  # steps of linear rise at the beginning
    every: int = setting(0, not_negative)
    factor: float = setting(0.5, positive)
    milestones: tuple[int, ...] = setting((), _rising)
    minimum: float = setting(0.0, share)


@dataclass(frozen=True, kw_only=True)
class RunRecipe:
    """[run]: how long (`steps` or `positions`), how large, on what, and how often to look."""

    steps: int | None = setting(None, positive)  # of the optimizer
    positions: int | None = setting(None, positive)  # seen in training, rounded up to whole steps
    batch_size: int = setting(check=positive)  # positions a step, all devices and accumulated parts together
    accumulate: int = setting(1, positive)  # parts a batch is taken in, for batches that do not fit into memory
    precision: str = setting("f32", one_of("f32", "tf32", "bf16", "f16"))  # mixed: weights stay float32; tf32: CUDA
    gradient_checkpointing: bool = False  # make the trunk's inner values anew in the backward pass: slower, less memory
    compile: bool = False  # let `torch.compile` fuse the network's operations; on a CPU it needs a C compiler
    clip: float = setting(0.0, not_negative)  # largest norm of the gradient; 0 for no limit
    ema: float = setting(0.0, share)  # decay of the running average that is evaluated and exported; 0 for none
    checkpoint_every: int = setting(1000, positive)  # steps
    keep: int = setting(3, positive)  # checkpoints
    evaluate_every: int = setting(1000, positive)  # steps between evaluations on the held-out games
    evaluate_positions: int = setting(10_000, positive)  # of theirs, drawn once; the last evaluation takes as many
    log_every: int = setting(50, positive)  # steps whose losses are averaged into one line of metrics.jsonl
    seed: int = setting(0, not_negative)  # of the weights, the order of positions and their symmetries
    device: str = setting("auto", one_of("auto", "cpu", "cuda"))
    devices: int = setting(1, positive)  # on this machine; processes of torchrun decide otherwise
    # CPU threads of PyTorch a process, 0 for its own choice. Sums are grouped by threads: the same weights to the last
    # bit need the same number.
    threads: int = setting(0, not_negative)

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole run."""
        return self.steps if self.steps is not None else math.ceil((self.positions or 0) / self.batch_size)


@dataclass(frozen=True)
class Recipe:
    """A whole recipe: its sections, those not written None, and the file's name and text.

    Attributes:
        places: dotted key → where it was set: "line 12", or "--set run.steps".
    """

    network: NetworkRecipe
    data: DataRecipe
    teacher: TeacherRecipe
    loss: LossRecipe
    optimizer: OptimizerRecipe
    schedule: ScheduleRecipe
    run: RunRecipe
    selfplay: SelfplayRecipe | None
    reinforce: ReinforceRecipe | None
    source: str
    text: str = ""
    places: Mapping[str, str] = field(default_factory=dict)

    def error(self, key: str, message: str) -> BadRequest:
        """The error for what is wrong at a dotted key, or at its section where the key is not written."""
        return error_at(key, message, self.places, self.source)

    def values(self) -> dict[str, Data]:
        """The sections that there are, as plain data (JSON)."""
        sections = {name: getattr(self, name) for name in SECTIONS}
        written = {name: asdict(section) for name, section in sections.items() if section is not None}
        plain: dict[str, Data] = json.loads(json.dumps(written))
        return plain


def error_at(key: str, message: str, places: Mapping[str, str], source: str) -> BadRequest:
    """The error for a dotted key, or for its section where the key is not written; the place is where it was set."""
    return BadRequest(f"{key}: {message}", source=source, place=places.get(key) or places.get(key.partition(".")[0]))


SECTIONS: dict[str, type] = {
    "network": NetworkRecipe,
    "data": DataRecipe,
    "teacher": TeacherRecipe,
    "selfplay": SelfplayRecipe,
    "reinforce": ReinforceRecipe,
    "loss": LossRecipe,
    "optimizer": OptimizerRecipe,
    "schedule": ScheduleRecipe,
    "run": RunRecipe,
}


# --- Reading ----------------------------------------------------------------------------------------------------------


def read_recipe(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Recipe:
    """Read and check a recipe file, TOML in UTF-8.

    `overrides` are "section.key=value" each, as `--set` takes them; they win over the file.

    Raises:
        BadRequest: it cannot be read, is not TOML, or a key is unknown, missing, of another type or out of range; the
            place is the line.
    """
    source = os.fspath(path)
    values, places, text = read_toml(path, "the recipe")
    for override in overrides:
        apply_override(override, values, places, source)
    return build_recipe(values, places, source, text)


def apply_override(override: str, values: Data, places: dict[str, str], source: str) -> None:
    """Put one "section.key=value" into the values."""
    dotted, equals, text = override.partition("=")
    section, dot, key = dotted.strip().partition(".")
    if not (equals and dot and section and key):
        raise BadRequest(f"--set takes SECTION.KEY=VALUE, not {override!r}", source=source)
    table = values.setdefault(section, {})
    if not isinstance(table, dict):
        raise BadRequest(f"{section} should be a section, [{section}]", source=source, place=places.get(section))
    table[key] = parse_value(text.strip())
    place = f"--set {section}.{key}"
    places[f"{section}.{key}"] = place
    places.setdefault(section, place)


def build_recipe(values: Fields, places: Mapping[str, str], source: str, text: str) -> Recipe:
    """Check all sections."""
    reader = SectionReader(places, source)
    reader.check(values, SECTIONS, "a recipe")
    recipe = Recipe(
        network=network_section(reader, values.get("network", {})),
        data=reader.section(DataRecipe, "data", values.get("data", {})),
        teacher=reader.section(TeacherRecipe, "teacher", values.get("teacher", {})),
        loss=LossRecipe(reader.numbers("loss", values.get("loss", {}))),
        optimizer=reader.section(OptimizerRecipe, "optimizer", values.get("optimizer", {})),
        schedule=reader.section(ScheduleRecipe, "schedule", values.get("schedule", {})),
        run=reader.section(RunRecipe, "run", values.get("run", {})),
        selfplay=reader.section(SelfplayRecipe, "selfplay", values["selfplay"]) if "selfplay" in values else None,
        reinforce=reader.section(ReinforceRecipe, "reinforce", values["reinforce"]) if "reinforce" in values else None,
        source=source,
        text=text,
        places=places,
    )
    _check_together(recipe)
    return recipe


def network_section(reader: SectionReader, table: Fields) -> NetworkRecipe:
    """The network's section: any other key is a size. Raises BadRequest."""
    own = {"source" if key == "from" else key: value for key, value in table.items() if key in ("name", "from")}
    own |= {"freeze": table["freeze"]} if "freeze" in table else {}
    network = reader.section(NetworkRecipe, "network", own)
    sizes = {key: value for key, value in table.items() if key not in ("name", "from", "freeze")}
    if bool(network.name) == bool(network.source):
        found = "both" if network.name else "neither"
        raise reader.error("network", f'needs name = "…" or from = "FILE", and has {found}')
    if network.source and sizes:
        key = next(iter(sizes))
        raise reader.error(f"network.{key}", "a network from a file has its sizes already")
    return NetworkRecipe(network.name, network.source, network.freeze, sizes)


def _check_together(recipe: Recipe) -> None:
    """What single values cannot tell."""
    check_training(recipe)
    if not recipe.teacher.network and "teacher" in recipe.places:
        raise recipe.error("teacher.network", "is missing")
    _check_games(recipe)
    if recipe.data.last_ply is not None and recipe.data.last_ply < recipe.data.first_ply:
        raise recipe.error("data.last_ply", f"is before first_ply, {recipe.data.first_ply}")
    if recipe.data.searches:
        given = [f"data.{key}" for key in _FILTERS if getattr(recipe.data, key) != getattr(DataRecipe(), key)]
        if given:
            raise recipe.error(
                given[0], "does not go with data.searches: those say what is learned, and of which positions"
            )


def check_training(recipe: Recipe) -> None:
    """What single values of optimizer, schedule and run cannot tell. Raises BadRequest."""
    run, schedule = recipe.run, recipe.schedule
    if (run.steps is None) == (run.positions is None):
        raise recipe.error("run", f"needs steps or positions, and has {'both' if run.steps else 'neither'}")
    if run.batch_size % run.accumulate:
        raise recipe.error("run.accumulate", f"{run.batch_size} positions do not go into {run.accumulate} equal parts")
    if schedule.kind == "step" and bool(schedule.every) == bool(schedule.milestones):
        raise recipe.error("schedule", "a step schedule needs every = STEPS or milestones = [STEPS, …]")
    if recipe.optimizer.nesterov and not recipe.optimizer.momentum:
        raise recipe.error("optimizer.nesterov", "needs momentum above 0")
    if recipe.optimizer.kind == "adamw" and recipe.optimizer.momentum:
        raise recipe.error("optimizer.momentum", "belongs to sgd; adamw has beta1")


def _check_games(recipe: Recipe) -> None:
    """Where the games come from: a store, or [selfplay] with a teacher or with [reinforce]."""
    taught = bool(recipe.teacher.network)
    if recipe.reinforce is not None and taught:
        raise recipe.error("reinforce", "and [teacher] exclude each other: a network learns from one of them")
    if recipe.selfplay is not None and not taught and recipe.reinforce is None:
        raise recipe.error("selfplay", "needs a [teacher] or [reinforce], who say what its games teach")
    if recipe.reinforce is not None or recipe.selfplay is not None:
        if recipe.data.train:
            other = "reinforce" if recipe.reinforce is not None else "selfplay"
            raise recipe.error("data.train", f"and [{other}] exclude each other: games come from one of them")
    elif not recipe.data.train:
        raise recipe.error("data.train", "is missing")


@dataclass(frozen=True)
class SectionReader:
    """Turns tables into sections."""

    places: Mapping[str, str]
    source: str

    def error(self, key: str, message: str) -> BadRequest:
        """As `Recipe.error`."""
        return error_at(key, message, self.places, self.source)

    def check(self, values: Fields, known: Iterable[str], what: str) -> None:
        """Refuse what is no section, or none of those that `what` has."""
        for name, table in values.items():
            place = self.places.get(name)
            if name not in known:
                there = ", ".join(f"[{section}]" for section in known)
                raise BadRequest(f"unknown section [{name}]; {what} has {there}", source=self.source, place=place)
            if not isinstance(table, dict):
                raise BadRequest(f"{name} should be a section, [{name}]", source=self.source, place=place)

    def section(self, kind: type[Section], name: str, table: Fields) -> Section:
        """A section of that class from its table."""
        known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
        hints = typing.get_type_hints(kind)
        for key in table:
            if key not in known:
                raise self.error(f"{name}.{key}", f"unknown key; [{name}] has {', '.join(known)}")
        for key, each in known.items():
            if key not in table and each.default is MISSING and each.default_factory is MISSING:
                raise self.error(name, f"{key} is missing")
        found = {}
        for key, value in table.items():
            found[key] = self._convert(f"{name}.{key}", hints[key], value)
            check = known[key].metadata.get("check")
            wanted = check(found[key]) if check else None
            if wanted is not None:
                raise self.error(f"{name}.{key}", f"should be {wanted}, not {value!r}")
        return kind(**found)

    def numbers(self, name: str, table: Fields) -> dict[str, float]:
        """A section of numbers by free names."""
        return {key: self._convert(f"{name}.{key}", float, value) for key, value in table.items()}

    def _convert(self, key: str, hint: Any, value: Any) -> Any:
        """The value as the type that the hint names."""
        if isinstance(hint, types.UnionType):  # X | None: what is written is an X
            hint = next(each for each in typing.get_args(hint) if each is not types.NoneType)
        if typing.get_origin(hint) is tuple:  # one value stands for a list of one
            several = value if isinstance(value, list) else [value]
            return tuple(self._convert(key, typing.get_args(hint)[0], each) for each in several)
        if hint is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value) if abs(value) < 10**300 else math.inf
        if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
            wanted = {int: "a whole number", float: "a number", bool: "true or false", str: "text in quotes"}[hint]
            raise self.error(key, f"should be {wanted}, not {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.error(key, f"should be a finite number, not {value!r}")
        return value
