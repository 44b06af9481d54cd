"""Studies: read whole or refused by line, and an interrupted one ends like one that was not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import keima
from keima.errors import BadRequest
from keima.training.data.batches import Loader
from keima.training.data.importing import import_games
from keima.training.data.store import GameStore
from keima.training.run.loop import Watcher
from keima.training.run.metrics import read_metrics
from keima.training.run.preflight import build_network
from keima.training.run.recipe import read_recipe
from keima.training.study import record as study_record
from keima.training.study import study
from keima.training.study.file import Study, read_study
from keima.training.study.record import columns, markdown, rows, share_error, text_lines
from keima.training.study.study import Pairing, run_study, seconds_a_step
from tests.small_games import small_games

pytestmark = pytest.mark.usefixtures("quick_training_of_a_module")

STUDIES = sorted(
    path for path in (Path(__file__).parents[2] / "recipes" / "studies").glob("*.toml") if path.stem != "base"
)

BASE = """\
[network]
name = "alphago-zero"
blocks = 1
channels = 4
board_size = 5
value_hidden = 4

[data]
train = "GAMES"
test = "GAMES"
workers = 1

[optimizer]
learning_rate = 0.01

[run]
steps = 7
batch_size = 8
log_every = 1
evaluate_every = 2
evaluate_positions = 16
checkpoint_every = 2
threads = 1
"""
STUDY = """\
[study]
title = "One thing and another"
recipe = "base.toml"
positions = 30
held_out = 64
games = 4
visits = 3

[variant.small]

[variant.wide]
network.channels = 8
"optimizer.momentum" = 0.5

[variant.plain.network]
name = "comparison-vgg"
layers = 2
channels = 4
board_size = 5
value_hidden = 4
"""


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of eight games of 12 random moves on 5×5."""
    folder = tmp_path_factory.mktemp("games")
    (folder / "games.sgf").write_text(small_games(8))
    import_games([str(folder / "games.sgf")], folder / "games.parquet")
    return folder / "games.parquet"


def write(folder: Path, text: str = STUDY, base: str = BASE, games: str | Path = "none.parquet") -> Path:
    (folder / "base.toml").write_text(base.replace("GAMES", str(games)))
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def line_of(text: str, whole: str = STUDY) -> int:
    return next(number for number, line in enumerate(whole.splitlines(), 1) if line.startswith(text))


class Player:
    """Plays no game: a score by the variant's name. `fails` names the pairing it is interrupted in."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.played: list[tuple[str, str, str]] = []

    def __call__(self, pairing: Pairing) -> Mapping[str, Any]:
        if pairing.variant == self.fails:
            raise KeyboardInterrupt
        assert pairing.network.exists()
        assert pairing.reference_network.exists()
        assert pairing.size == (5, 5)
        self.played.append((pairing.variant, pairing.reference, pairing.limit))
        if pairing.variant == "plain":
            return {"games": 4, "score": 0.0, "elo": None, "elo_interval": [None, -12.4]}
        return {"games": 4, "score": 0.75, "elo": 190.8, "elo_interval": [-60.2, 401.0]}


def run(read: Study, folder: Path, play: Any = None, **options: Any) -> dict[str, Any]:
    return run_study(read, folder, play or Player(), timing=0.01, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, games: Path) -> Path:
    """The folder of a study that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    run(read_study(write(folder, games=games)), folder / "study")
    return folder / "study"


class TestReading:
    def test_a_variant_is_the_recipe_with_its_own_values(self, tmp_path: Path) -> None:
        read = read_study(write(tmp_path))
        small, wide, plain = (variant.recipe(3) for variant in read.variants)
        assert small.network.sizes == {"blocks": 1, "channels": 4, "board_size": 5, "value_hidden": 4}
        assert wide.network.sizes == {**small.network.sizes, "channels": 8}
        assert (small.optimizer.momentum, wide.optimizer.momentum) == (0, 0.5)
        assert (small.run.seed, small.run.total_steps) == (wide.run.seed, wide.run.total_steps) == (0, 3)
        assert plain.network.name == "comparison-vgg"
        assert "blocks" not in plain.network.sizes  # the recipe's network was put aside
        assert read.reference.name == "small"
        assert [read.steps(variant) for variant in read.variants] == [4, 4, 4]  # 30 positions in batches of 8

    def test_the_recipe_may_stand_in_the_study(self, tmp_path: Path) -> None:
        apart = read_study(write(tmp_path))
        inlined = read_study(
            write(tmp_path, STUDY.replace('recipe = "base.toml"\n', "") + BASE.replace("GAMES", "none.parquet"))
        )
        for one, other in zip(apart.variants, inlined.variants, strict=True):
            for section in ("network", "data", "optimizer", "run"):
                assert getattr(one.recipe(5), section) == getattr(other.recipe(5), section)

    def test_a_variant_written_as_a_recipe_is_the_same_recipe(self, tmp_path: Path) -> None:
        """RUN/recipe.toml is complete: `keima train` takes it."""
        for variant in read_study(write(tmp_path)).variants:
            recipe = variant.recipe(11)
            (tmp_path / "again.toml").write_text(recipe.text)
            again = read_recipe(tmp_path / "again.toml")
            for section in ("network", "data", "teacher", "loss", "optimizer", "schedule", "run"):
                assert getattr(again, section) == getattr(recipe, section)

    def test_set_holds_for_all_and_for_the_study(self, tmp_path: Path) -> None:
        read = read_study(write(tmp_path), ["optimizer.momentum=0.25", "study.visits=9", "study.reference=wide"])
        assert {variant.recipe(1).optimizer.momentum for variant in read.variants} == {0.25}
        assert (read.options.visits, read.reference.name) == (9, "wide")
        assert read.options.limits == ("visits=9",)

    def test_which_matches_are_played(self, tmp_path: Path) -> None:
        path = write(tmp_path)
        assert read_study(path, ["study.move_seconds=0.25"]).options.limits == ("visits=3", "seconds=0.25")
        assert read_study(path, ["study.move_seconds=2", "study.visits=0"]).options.limits == ("seconds=2",)
        assert read_study(path, ["study.games=0"]).options.limits == ()

    @pytest.mark.parametrize(
        ("old", "new", "place", "words"),
        [
            ("visits = 3", "visit = 3", "visit", "study.visit: unknown key; [study] has title, recipe"),
            ("games = 4", 'games = "many"', "games", "study.games: should be a whole number"),
            ("positions = 30", "positions = 0", "positions", "study.positions: should be more than 0"),
            ("positions = 30", "", "[study]", "needs a budget, positions = N or seconds = S, and has neither"),
            ("games = 4", "seconds = 5", "[study]", "and has both"),
            ("visits = 3", "visits = 0", "games", "needs visits or move_seconds above 0"),
            ("visits = 3", 'reference = "tall"', "reference", "no variant 'tall'; there are small, wide, plain"),
            ('recipe = "base.toml"', "", "[study]", "needs recipe = "),
            ('recipe = "base.toml"', 'recipe = "none.toml"', "recipe", "cannot read the recipe: No such file"),
            ("network.channels = 8", "run.steps = 8", "run.steps", "follows from the study's budget"),
            ("network.channels = 8", 'data.test = "x"', "data.test", "must be the same for all variants"),
            ("network.channels = 8", "run.steeps = 8", "run.steeps", "run.steeps: unknown key; [run] has steps"),
            ("network.channels = 8", "runs.seed = 8", "runs.seed", "unknown section [runs]"),
            ("network.channels = 8", "channels = 8", "channels", "unknown section [channels]"),
            ("network.channels = 8", "run.batch_size = true", "run.batch_size", "should be a whole number"),
            ("[variant.small]", "[variant.'a b']", "[variant.'a b']", "a name has letters"),
            ("[variant.small]", "[variants.small]", "[variants.small]", "unknown section [variants]; a study has"),
            ("visits = 3", "visits = ", "visits", "not TOML"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_line(
        self, tmp_path: Path, old: str, new: str, place: str, words: str
    ) -> None:
        text = STUDY.replace(old, new, 1)
        path = write(tmp_path, text)
        with pytest.raises(BadRequest) as caught:
            read_study(path)
        assert words in str(caught.value)
        assert caught.value.source == str(path)
        assert caught.value.place == f"line {line_of(place, text)}"

    def test_what_is_wrong_in_the_recipe_is_named_there(self, tmp_path: Path) -> None:
        path = write(tmp_path, base=BASE.replace("learning_rate = 0.01", "learning_rate = 0"))
        with pytest.raises(BadRequest) as caught:
            read_study(path)
        place = f"base.toml: line {line_of('learning_rate', BASE)}"
        assert (caught.value.source, caught.value.place) == (str(path), place)
        path = write(tmp_path, base="[network\n")
        with pytest.raises(BadRequest, match=r"base\.toml: line 1: not TOML"):
            read_study(path)
        path = write(tmp_path, base=BASE.replace('test = "GAMES"\n', ""))
        with pytest.raises(BadRequest, match=r"data\.test: is missing: variants are compared"):
            read_study(path)

    def test_one_variant_is_no_study_and_no_file_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(BadRequest, match=r"two variants at least, \[variant.NAME\]; there are 1"):
            read_study(write(tmp_path, STUDY.partition("[variant.wide]")[0]))
        with pytest.raises(BadRequest, match="cannot read the study"):
            read_study(tmp_path / "none.toml")

    @pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
    def test_the_studies_of_the_repository_name_networks_that_can_be(self, path: Path) -> None:
        read = read_study(path)
        for variant in read.variants:
            with torch.device("meta"):
                network = build_network(variant.recipe(1))
            assert {"policy", "value"} <= set(network.output_names)


class TestRun:
    def test_each_variant_is_trained_and_measured(self, tmp_path: Path, games: Path, whole: Path) -> None:
        read, folder = read_study(write(tmp_path, games=games)), whole
        contents = json.loads((folder / "study.json").read_text())
        for variant in read.variants:
            known = contents["variants"][variant.name]
            network = keima.load(folder / variant.name / known["network"]).eval()
            assert known["parameters"] == sum(parameter.numel() for parameter in network.parameters())
            assert known["training"]["positions"] == 32
            assert known["evaluations_per_second"] > 0
            lines = read_metrics(folder / variant.name / "metrics.jsonl")
            found = [line["evaluation"]["top1"] for line in lines if "evaluation" in line]
            assert [(each["positions"], each["top1"]) for each in known["curve"]] == list(
                zip([16, 32], found, strict=True)
            )
            with Loader(GameStore.open(games), network.encoding, 64, seed=0, symmetries=False) as loader:
                batch = next(loader).torch()
            with torch.no_grad():
                output = network(batch.planes)
            right = (output.policy.argmax(1) == batch.policy).float().mean().item()
            assert known["evaluation"]["top1"] == pytest.approx(right)
            error = (output.value - batch.value).square().mean().item()
            assert known["evaluation"]["value_mse"] == pytest.approx(error, abs=1e-5)

    def test_the_table_says_what_the_record_holds(self, whole: Path) -> None:
        contents = json.loads((whole / "study.json").read_text())
        heads = columns(contents)
        table = {row[0]: dict(zip(heads, row, strict=True)) for row in rows(contents)}
        for name, known in contents["variants"].items():
            row, evaluation = table[name], known["evaluation"]
            assert int(row["parameters"].replace(",", "")) == known["parameters"]
            assert float(row["top-1"].rstrip(" %")) == pytest.approx(100 * evaluation["top1"], abs=0.00501)
            assert float(row["top-5"].rstrip(" %")) == pytest.approx(100 * evaluation["top5"], abs=0.00501)
            assert float(row["cross-entropy"]) == pytest.approx(evaluation["cross_entropy"], abs=5.01e-5)
            assert float(row["value MSE"]) == pytest.approx(evaluation["value_mse"], abs=5.01e-5)
            speed = float(row["evaluations/s"].replace(",", ""))
            assert speed == pytest.approx(known["evaluations_per_second"], abs=0.501)
        elos = [table[name]["Elo, visits=3"] for name in ("small", "wide", "plain")]
        assert elos == ["0", "+191 [−60, +401]", "−∞ [−∞, −12]"]
        written = (whole / "table.md").read_text()
        assert written == markdown(contents)
        shown = "\n".join(text_lines(contents))
        for row in rows(contents):
            assert all(cell in shown for cell in row)
            assert f"| {' | '.join(row)} |" in written
        assert written.startswith("# One thing and another\n")
        assert (whole / "study.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize("at", ["first training", "second training", "match"])
    def test_interrupted_it_goes_on(self, tmp_path: Path, games: Path, whole: Path, at: str) -> None:
        read, folder = read_study(write(tmp_path, games=games)), tmp_path / "study"
        stops = {"first training": 1, "second training": 6, "match": 10**9}[at]
        steps = 0

        class Stopping(Watcher):
            def advance(self, step: int, line: Mapping[str, Any] | None) -> None:
                nonlocal steps
                steps += 1
                if steps == stops:
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(read, folder, Player(fails="plain"), watch=Stopping)
        player, said = Player(), []
        done = run(read, folder, player, say=said.append)
        assert without_times(done) == without_times(json.loads((whole / "study.json").read_text()))
        for name in ("small", "wide", "plain"):
            weights = [keima.load(where / name / "network.safetensors").state_dict() for where in (folder, whole)]
            assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[1])
        if at == "match":
            assert said == ["plain against small, visits=3"]
            assert player.played == [("plain", "small", "visits=3")]
        else:
            assert player.played == [("wide", "small", "visits=3"), ("plain", "small", "visits=3")]
            assert ("small: 4 steps" in said) == (at == "first training")
            assert "wide: 4 steps" in said

    def test_a_finished_study_does_nothing_and_a_longer_one_only_what_is_new(
        self, tmp_path: Path, games: Path, whole: Path
    ) -> None:
        path, folder, said = write(tmp_path, games=games), tmp_path / "study", []
        shutil.copytree(whole, folder)
        first = json.loads((folder / "study.json").read_text())
        assert run(read_study(path), folder, Player("wide"), say=said.append) == first
        assert said == []
        run(read_study(path, ["study.move_seconds=0.5"]), folder, say=said.append)
        assert said == ["wide against small, seconds=0.5", "plain against small, seconds=0.5"]
        said.clear()
        more = path.read_text() + "\n[variant.deep]\nnetwork.blocks = 2\n"
        path.write_text(more)
        found = run(read_study(path, ["study.held_out=128"]), folder, say=said.append)
        assert said == [
            *(f"{name}: measuring" for name in ("small", "wide", "plain")),
            "deep: 4 steps",
            "deep: measuring",
            "deep against small, visits=3",
        ]
        assert list(found["variants"]) == ["small", "wide", "plain", "deep"]

    def test_another_study_is_refused_and_so_is_another_budget(self, tmp_path: Path, games: Path, whole: Path) -> None:
        folder = tmp_path / "study"
        shutil.copytree(whole, folder)
        for old, new, words in (
            ("positions = 30", "positions = 60", r"line 4: study\.positions: the study in .* was begun with .*30"),
            ("= 0.5", "= 0.6", r"line 13: optimizer\.momentum: is 0\.6; the study in .* was begun with 0\.5"),
            ("network.channels = 8", "network.channels = 6", r"line 12: network\.channels: is 6; .* was begun with 8"),
        ):
            with pytest.raises(BadRequest, match=words):
                run(read_study(write(tmp_path, STUDY.replace(old, new), games=games)), folder)
        path = write(tmp_path, games=games)
        run(read_study(path, ["run.keep=2"]), folder)
        (folder / "study.json").write_text("[]")
        with pytest.raises(BadRequest, match="not a study's record"):
            run(read_study(path), folder)

    def test_a_budget_of_time_is_turned_into_steps_once(
        self, tmp_path: Path, games: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(tmp_path, STUDY.replace("positions = 30", "seconds = 2"), games=games)
        monkeypatch.setattr(study, "seconds_a_step", lambda recipe, folder, seconds: 0.7)
        with pytest.raises(KeyboardInterrupt):
            run(read_study(path), tmp_path / "study", Player(fails="wide"))
        monkeypatch.setattr(study, "seconds_a_step", lambda recipe, folder, seconds: 0.1)
        contents = run(read_study(path), tmp_path / "study")
        assert {known["steps"] for known in contents["variants"].values()} == {3}
        assert contents["budget"] == {"seconds": 2}
        assert "about 2 s of training" in markdown(contents)

    def test_a_step_s_time_is_measured_on_the_recipe_s_own_games(self, tmp_path: Path, games: Path) -> None:
        (variant, *_) = read_study(write(tmp_path, games=games)).variants
        found = seconds_a_step(variant.recipe(1), tmp_path, 0.05)
        assert 0 < found < 5
        assert sorted(path.name for path in tmp_path.iterdir()) == ["base.toml", "study.toml"]

    def test_what_cannot_be_is_refused_before_any_work(self, tmp_path: Path, games: Path) -> None:
        for text, words in (
            ("network.blocks = -1", r"line 12: variant wide: network\.blocks: cannot be made"),
            ('data.train = "none.parquet"', r"line 12: variant wide: data\.train: .*none\.parquet"),
            ("loss.beauty = 1", r"line 12: variant wide: loss: no term 'beauty'|line 12: .*'beauty'"),
            ("run.devices = 2", r"line 12: variant wide: run\.devices: a study trains one network after another"),
        ):
            read = read_study(write(tmp_path, STUDY.replace("network.channels = 8", text), games=games))
            with pytest.raises(BadRequest, match=words):
                run(read, tmp_path / "study")
            assert not (tmp_path / "study").exists()

    def test_a_run_that_diverges_leaves_the_others_their_turn(self, tmp_path: Path, games: Path) -> None:
        text = STUDY.replace("network.channels = 8", "optimizer.learning_rate = 1e30")
        contents = run(read_study(write(tmp_path, text, games=games)), tmp_path / "study")
        assert "training has diverged" in contents["variants"]["wide"]["failed"]
        assert "evaluation" in contents["variants"]["plain"]
        assert any(line.startswith("wide ") and "diverged" in line for line in text_lines(contents))
        assert "diverged" in markdown(contents)

    def test_without_its_reference_there_are_no_matches(self, tmp_path: Path, games: Path) -> None:
        text = STUDY.replace("[variant.small]", "[variant.small]\noptimizer.learning_rate = 1e30")
        player, said = Player(), []
        run(read_study(write(tmp_path, text, games=games)), tmp_path / "study", player, say=said.append)
        assert player.played == []
        assert "no matches: small, which the others play, was not trained" in said


def without_times(contents: dict[str, Any]) -> dict[str, Any]:
    """The record without what two runs of the same study never share."""
    plain = json.loads(json.dumps(contents))
    for known in plain["variants"].values():
        del known["evaluations_per_second"]
        del known["training"]
    return plain


def test_the_error_of_a_share_is_the_spread_of_many_counts() -> None:
    counts = np.random.default_rng(0).binomial(4096, 0.3, 20_000) / 4096
    assert share_error(0.3, 4096) == pytest.approx(1.96 * counts.std(), rel=0.02)


def test_the_record_file_is_the_one_that_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    assert all(name in text for name in (study_record.FILE, study.TABLE, study.PICTURE))
