"""A study: variants of one recipe trained under one budget, then measured and matched alike.

    STUDY/NAME/        a variant's run (`keima.training.run.checkpoint`), and its matches against the reference
    STUDY/study.json   all that is known so far; rewritten whole whenever a part is finished
    STUDY/table.md     the same for people
    STUDY/study.png    and as a picture

What stands in study.json is not done again; a run or a match that was cut off goes on where it stopped. So a study that
was interrupted ends as it would have ended. Matches are played by a function that the caller hands in: training knows
nothing of engines.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from keima.errors import BadRequest, KeimaError
from keima.plain import Data, Fields
from keima.systems.files.load import load
from keima.systems.network import Network
from keima.training.distill.comparison import first_board, standing
from keima.training.run.loop import Watcher, train
from keima.training.run.metrics import FILE as METRICS
from keima.training.run.metrics import read_metrics
from keima.training.run.preflight import build_network, check_folder, check_store, find_world, position_filter
from keima.training.run.recipe import Recipe
from keima.training.run.sources import open_loss, open_teacher
from keima.training.study.file import Study, Variant
from keima.training.study.plot import draw_study
from keima.training.study.record import Record, markdown, write_text

TABLE = "table.md"
PICTURE = "study.png"

_NEVER = 10**9
"""Steps that no measurement of a step's time reaches."""
_WARM = 3
"""Steps before such a measurement: buffers, compiled kernels and threads are made in them."""


@dataclass(frozen=True)
class Pairing:
    """A match to be played.

    Attributes:
        variant, reference: names of the players; their files follow each.
        limit: of both, as a player's option: "visits=100" or "seconds=0.1".
        size: of the board, (columns, rows), where the game has a choice.
        folder: where the match is kept.
    """

    variant: str
    network: Path
    reference: str
    reference_network: Path
    limit: str
    size: tuple[int, int]
    folder: Path


Play = Callable[[Pairing], Fields]
"""Plays a match, or goes on with it: its summary as plain data, from the variant's side."""


def run_study(
    study: Study,
    folder: Path,
    play: Play,
    *,
    watch: Callable[[], Watcher] = Watcher,
    say: Callable[[str], None] = lambda _: None,
    timing: float = 2.0,
) -> Data:
    """Run a study, or go on with one that was stopped.

    Args:
        study: of `read_study`.
        folder: STUDY, where everything is written; made if missing.
        play: plays the matches.
        watch: makes a watcher for each run.
        say: is told what is being done.
        timing: seconds spent on measuring each network's evaluations a second.

    Returns:
        What study.json then holds. A variant whose training failed has "failed", and the message, in place of figures.

    Raises:
        BadRequest: a variant asks for what cannot be (before any work), or the folder holds another study.
        KeimaError: a match that cannot be played.
        KeyboardInterrupt: SIGINT or SIGTERM; what is done is kept.
    """
    record = Record(study, folder)
    for variant in study.variants:
        if "evaluation" not in record.of(variant):
            try:
                _check(variant.recipe(1), study)
            except BadRequest as error:
                message = f"variant {variant.name}: {error.message}"
                raise BadRequest(message, source=error.source, place=error.place) from error
    check_folder(folder)
    record.write()
    for variant in study.variants:
        _train(record, variant, watch, say)
        _measure(record, variant, say, timing)
    _match_all(record, play, say)
    write_text(folder / TABLE, markdown(record.contents))
    try:
        draw_study(folder / PICTURE, record.contents)
    except OSError as error:
        raise BadRequest(f"cannot be written: {error.strerror or error}", source=str(folder)) from error
    return record.contents


def _check(recipe: Recipe, study: Study) -> None:
    """See that a variant's recipe can be trained."""
    if find_world(recipe).size > 1:
        raise recipe.error("run.devices", "a study trains one network after another in one process: devices = 1")
    network = build_network(recipe)
    open_teacher(recipe, network)
    for key in ("train", "test"):
        if getattr(recipe.data, key):
            check_store(recipe, key, network)
    position_filter(recipe)
    open_loss(recipe, network)
    if study.options.limits and "policy" not in network.output_names:
        raise recipe.error("network.name", "has no policy, so it cannot play matches: set games = 0 in [study]")


def _train(record: Record, variant: Variant, watch: Callable[[], Watcher], say: Callable[[str], None]) -> None:
    """Train a variant, unless it is trained; a failure is noted and leaves the others their turn."""
    known = record.of(variant)
    if "network" in known:
        return
    known.pop("failed", None)
    try:
        if "steps" not in known:
            known |= _steps(record, variant, say)
            record.write()
        say(f"{variant.name}: {known['steps']:,} steps")
        folder = record.folder / variant.name
        result = train(variant.recipe(known["steps"]), folder, watch())
    except KeimaError as error:
        say(f"{variant.name}: {error}")
        known["failed"] = str(error)
        record.write()
        return
    lines = read_metrics(folder / METRICS)
    known |= {"network": result.network.name, "training": _cost(lines), "curve": _curve(lines)}
    known["training"]["positions"] = known["steps"] * variant.recipe(1).run.batch_size
    record.write()


def _steps(record: Record, variant: Variant, say: Callable[[str], None]) -> Data:
    study = record.study
    if study.options.seconds is None:
        return {"steps": study.steps(variant)}
    say(f"{variant.name}: measuring its speed")
    length = min(20.0, max(1.0, study.options.seconds / 20))
    a_step = seconds_a_step(variant.recipe(1), record.folder, length)
    return {"steps": study.steps(variant, a_step), "seconds_a_step": a_step}


class _Enough(Exception):
    """Enough steps were timed."""


class _Timer(Watcher):
    """Times steps, the first few left out, and ends the run after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.times: list[float] = []

    def advance(self, step: int, line: Fields | None) -> None:
        """A step is done."""
        self.times.append(time.perf_counter())
        if len(self.times) > _WARM and self.times[-1] - self.times[_WARM - 1] >= self.seconds:
            raise _Enough

    @property
    def mean(self) -> float:
        """Seconds a step."""
        return (self.times[-1] - self.times[_WARM - 1]) / (len(self.times) - _WARM)


def seconds_a_step(recipe: Recipe, folder: Path, seconds: float) -> float:
    """The mean time of a training step, loading and all, measured for so long on a run that is thrown away."""
    run = replace(recipe.run, steps=_NEVER, evaluate_every=_NEVER, checkpoint_every=_NEVER, log_every=_NEVER)
    timer = _Timer(seconds)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".timing.") as scratch, contextlib.suppress(_Enough):
        train(replace(recipe, run=run), scratch, timer)
    return timer.mean


def _cost(lines: list[Data]) -> Data:
    """Seconds a run's steps took (checkpoints among them, evaluations not), and positions a second of them."""
    seconds, before = 0.0, 0
    for line in lines:
        if line.get("positions_per_second"):
            seconds += (line["positions"] - before) / line["positions_per_second"]
            before = line["positions"]
    return {"seconds": round(seconds, 1), "positions_per_second": round(before / seconds, 1) if seconds else None}


def _curve(lines: list[Data]) -> list[Data]:
    """A run's evaluations: positions seen in training, and what was then known of held-out ones."""
    a_step = next((line["positions"] / line["step"] for line in lines if "positions" in line), 0)
    numbers = ("top1", "cross_entropy", "value_mse")
    return [
        {"positions": round(line["step"] * a_step), **{n: line["evaluation"].get(n) for n in numbers}}
        for line in lines
        if "evaluation" in line
    ]


def _measure(record: Record, variant: Variant, say: Callable[[str], None], timing: float) -> None:
    """Measure a variant on the held-out positions of the reference's recipe, unless it is measured so."""
    known, options = record.of(variant), record.study.options
    how = {"positions": options.held_out, "precision": options.precision}
    if "network" not in known or known.get("measured") == how:
        return
    say(f"{variant.name}: measuring")
    network = load(str(record.network(variant)))
    recipe = record.study.reference.recipe(1)
    games = check_store(recipe, "test", network)
    chosen, precision = position_filter(recipe), options.precision
    found = standing(network, games, positions=options.held_out, chosen=chosen, precision=precision, seconds=timing)
    known |= {**found.to_json(), "measured": how}
    record.write()


def _match_all(record: Record, play: Play, say: Callable[[str], None]) -> None:
    """Play what has not been played: each trained variant against the reference, under each limit."""
    study, reference = record.study, record.study.reference
    if not study.options.limits:
        return
    if "network" not in record.of(reference):
        say(f"no matches: {reference.name}, which the others play, was not trained")
        return
    size = _board(study, load(str(record.network(reference))))
    how = {"against": reference.name, "wanted": study.options.games, "openings": study.options.openings}
    for variant in study.variants:
        known = record.of(variant)
        if variant is reference or "network" not in known:
            continue
        for limit in study.options.limits:
            found = known.setdefault("matches", {}).get(limit, {})
            if all(found.get(name) == value for name, value in how.items()):
                continue
            folder = record.folder / variant.name / f"match-{reference.name}-{limit.replace('=', '-')}"
            say(f"{variant.name} against {reference.name}, {limit}")
            networks = (record.network(variant), record.network(reference))
            pairing = Pairing(variant.name, networks[0], reference.name, networks[1], limit, size, folder)
            known["matches"][limit] = {**play(pairing), **how}
            record.write()


def _board(study: Study, network: Network) -> tuple[int, int]:
    """The board of the matches: the one asked for, the network's own, or the held-out games'."""
    size = study.options.size or getattr(network.encoding, "board_size", None)
    if size:
        return size, size
    return first_board(check_store(study.reference.recipe(1), "test", network), network)
