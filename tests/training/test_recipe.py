"""Recipes are read whole or refused, and a refusal names the line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from keima.errors import BadRequest
from keima.training.run.loop import train
from keima.training.run.optimizer import multiplier
from keima.training.run.preflight import World, build_network, check_room, find_world
from keima.training.run.recipe import Recipe, ScheduleRecipe, read_recipe
from keima.training.run.recipe_text import key_lines
from tests.training.fakes import RECIPE, open_fakes, recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


def line_of(text: str) -> int:
    """The line of the fakes' recipe that begins with a text."""
    return next(number for number, line in enumerate(RECIPE.splitlines(), 1) if line.startswith(text))


class TestPlaces:
    def test_every_key_has_its_line(self) -> None:
        text = "# a recipe\n[run]\nsteps = 10\nlist = [\n  1,\n  2,\n]\nafter = '''a\nb'''\n[a.b]\n'c d'.e = 1\n"
        assert dict(key_lines(text)) == {
            "run": 2,
            "run.steps": 3,
            "run.list": 4,
            "run.after": 8,
            "a": 10,
            "a.b": 10,
            "a.b.c d": 11,
            "a.b.c d.e": 11,
        }


class TestReading:
    def test_values_and_defaults(self, tmp_path: Path) -> None:
        read = recipe(tmp_path)
        assert read.network.sizes == {"blocks": 1, "channels": 4, "board_size": 5, "value_hidden": 4}
        assert (read.optimizer.kind, read.optimizer.momentum, read.schedule.every) == ("sgd", 0.9, 4)
        assert read.run.total_steps == 10

    def test_positions_are_rounded_up_to_steps(self, tmp_path: Path) -> None:
        text = RECIPE.replace("steps = 10", "positions = 17")
        (tmp_path / "recipe.toml").write_text(text)
        assert read_recipe(tmp_path / "recipe.toml").run.total_steps == 3

    def test_set_wins_over_the_file(self, tmp_path: Path) -> None:
        read = recipe(tmp_path, "run.steps=3", "data.train=games.parquet", "loss.value=0.5")
        assert (read.run.steps, read.data.train, read.loss.weights) == (3, "games.parquet", {"value": 0.5})

    @pytest.mark.parametrize(
        ("old", "new", "place", "words"),
        [
            ("momentum = 0.9", "momentun = 0.9", "momentum", "unknown key; [optimizer] has kind"),
            ("momentum = 0.9", "momentum = 1.5", "momentum", "should be at least 0 and below 1, not 1.5"),
            ("steps = 10", 'steps = "ten"', "steps", "should be a whole number, not 'ten'"),
            ("steps = 10", "steps = true", "steps", "should be a whole number, not True"),
            ("steps = 10", "steps = 0", "steps", "should be more than 0"),
            ("steps = 10", "", "[run]", "needs steps or positions, and has neither"),
            ("batch_size = 8", "", "[run]", "batch_size is missing"),
            ("learning_rate = 0.05", "learning_rate = inf", "learning_rate", "finite"),
            ('kind = "step"', 'kind = "stairs"', "kind", "one of constant, step, cosine"),
            ("every = 4", "factor = 0.1", "[schedule]", "every = STEPS or milestones"),
            ("[schedule]", "[scheduler]", "[schedule]", "unknown section [scheduler]"),
            ('name = "alphago-zero"', "", "[network]", "has neither"),
            ("ema = 0.9", "ema = [", "ema", "not TOML"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_line(
        self, tmp_path: Path, old: str, new: str, place: str, words: str
    ) -> None:
        path = tmp_path / "recipe.toml"
        path.write_text(RECIPE.replace(old, new, 1))
        with pytest.raises(BadRequest) as caught:
            read_recipe(path)
        assert words in str(caught.value)
        assert caught.value.source == str(path)
        if "TOML" not in words:  # the parser sees an open list at its end
            assert caught.value.place == f"line {line_of(place)}"

    def test_an_override_is_named_as_one(self, tmp_path: Path) -> None:
        with pytest.raises(BadRequest, match=r"--set run.steps: run.steps: should be"):
            recipe(tmp_path, "run.steps=many")
        with pytest.raises(BadRequest, match=r"SECTION.KEY=VALUE"):
            recipe(tmp_path, "steps")

    def test_a_file_that_is_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "recipe.toml"
        with pytest.raises(BadRequest, match="cannot read"):
            read_recipe(path)
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(BadRequest, match="UTF-8"):
            read_recipe(path)

    @pytest.mark.parametrize(
        ("line", "words"),
        [("x = " + "[" * 5000, "nested too deeply"), ("a." * 900 + "a = 1", "nested too deeply"),
         ("x = " + "9" * 5000, "too many digits")],
    )  # fmt: skip
    def test_what_python_itself_refuses(self, tmp_path: Path, line: str, words: str) -> None:
        path = tmp_path / "recipe.toml"
        path.write_text(f"{line}\n{RECIPE}")
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(1000)  # Python's own, which torch.compile raises for good
        try:
            with pytest.raises(BadRequest, match=words) as caught:
                read_recipe(path)
        finally:
            sys.setrecursionlimit(limit)
        assert caught.value.source == str(path)
        assert recipe(tmp_path, f"data.train={line}").data.train == line, "text that is no TOML is itself"

    def test_only_newlines_end_a_line(self, tmp_path: Path) -> None:
        path = tmp_path / "recipe.toml"
        path.write_text("# \u2028 \x85\n" + RECIPE.replace("steps = 10", "steps = 0"), encoding="utf-8")
        with pytest.raises(BadRequest) as caught:
            read_recipe(path)
        assert caught.value.place == f"line {line_of('steps') + 1}"

    @pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
    def test_the_recipes_of_the_repository_name_networks_that_can_be(self, path: Path) -> None:
        import torch

        read = read_recipe(path)
        if not read.network.source:
            with torch.device("meta"):
                build_network(read)
        assert read.run.total_steps > 0
        find_world(Recipe(**{**vars(read), "run": read.run}), {})


class TestPreflight:
    @pytest.mark.parametrize(
        ("override", "words"),
        [
            ("network.channels=0", "channels"),
            ("network.blocks=-1", ""),
            ("network.depth=3", "no size depth"),
            ("network.name=alphago-one", "unknown network 'alphago-one'"),
            ('network.freeze=["towers"]', "no parameter's name begins with 'towers'"),
        ],
    )
    def test_a_network_that_cannot_be(self, tmp_path: Path, override: str, words: str) -> None:
        with pytest.raises(BadRequest) as caught:
            build_network(recipe(tmp_path, override))
        assert words in str(caught.value)
        assert caught.value.place

    def test_a_missing_file_to_go_on_from(self, tmp_path: Path) -> None:
        path = tmp_path / "recipe.toml"
        path.write_text('[network]\nfrom = "none.pb.gz"\n' + RECIPE[RECIPE.index("[data]") :])
        with pytest.raises(BadRequest, match=r"line 2: network.from: none.pb.gz"):
            build_network(read_recipe(path))

    def test_missing_games_fail_before_anything_is_made(self, tmp_path: Path) -> None:
        with pytest.raises(BadRequest) as caught:
            train(recipe(tmp_path), tmp_path / "run")
        assert caught.value.place == f"line {line_of('train =')}"
        assert not (tmp_path / "run" / "checkpoints").exists()

    def test_too_little_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read = recipe(tmp_path, "run.keep=5")
        monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
        with pytest.raises(BadRequest, match=r"--set run.keep: .* 5 checkpoints of .* MB free"):
            check_room(read, tmp_path / "run", build_network(read))

    def test_torchruns_processes_share_the_batch(self, tmp_path: Path) -> None:
        two = {"LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "4"}
        assert find_world(recipe(tmp_path), two) == World("cpu", local=2, machines=2)
        with pytest.raises(BadRequest, match="8 positions do not go into 1 × 3 equal parts"):
            find_world(recipe(tmp_path), {"LOCAL_WORLD_SIZE": "3", "WORLD_SIZE": "3"})

    def test_a_run_is_not_continued_with_another_recipe(self, tmp_path: Path) -> None:
        train(recipe(tmp_path, "run.steps=1"), tmp_path / "run", open_sources=open_fakes)
        with pytest.raises(BadRequest, match=r"run.batch_size: is 4; the run in .* was begun with 8"):
            train(recipe(tmp_path, "run.steps=2", "run.batch_size=4"), tmp_path / "run", open_sources=open_fakes)


class TestSchedules:
    def test_halving(self) -> None:
        halving = ScheduleRecipe(kind="step", every=80)
        assert [multiplier(halving, step, 1000) for step in (0, 79, 80, 160)] == [1, 1, 0.5, 0.25]

    def test_milestones(self) -> None:
        drops = ScheduleRecipe(kind="step", milestones=(2, 4), factor=0.1)
        assert [multiplier(drops, step, 10) for step in range(5)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])

    def test_cosine_goes_from_one_to_its_minimum(self) -> None:
        cosine = ScheduleRecipe(kind="cosine", minimum=0.1)
        assert multiplier(cosine, 0, 101) == 1
        assert multiplier(cosine, 50, 101) == pytest.approx(0.55)
        assert multiplier(cosine, 100, 101) == pytest.approx(0.1)

    def test_warm_up_rises_to_where_the_schedule_begins(self) -> None:
        warm = ScheduleRecipe(kind="cosine", warmup=4)
        rates = [multiplier(warm, step, 20) for step in range(20)]
        assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
        assert rates[4] == 1.0
        assert rates[4:] == sorted(rates[4:], reverse=True)
