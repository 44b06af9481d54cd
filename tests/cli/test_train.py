"""`keima train` and `keima bench train` on a handful of small games."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import keima

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("quick_training")

RECIPE = """\
[network]
{network}

[data]
train = "games.parquet"
test = "games.parquet"
workers = 1

[optimizer]
learning_rate = 0.01

[run]
steps = 4
batch_size = 8
log_every = 2
evaluate_every = 4
evaluate_positions = 16
threads = 1
"""
GO = {
    "alphago-policy": "filters = 4\nlayers = 2\nboard_size = 5",
    "alphago-value": "filters = 4\nlayers = 2\nboard_size = 5\nhidden = 4",
    "alphago-zero": "blocks = 1\nchannels = 4\nboard_size = 5\nvalue_hidden = 4",
    "leela-zero": "blocks = 1\nchannels = 4\nboard_size = 5",
    "katago-guide-b10c128": "blocks = 6\nchannels = 4\nboard_size = 5",
    "katago-b6c96": "blocks = 1",
}
ENDINGS = {"leela-zero": "txt.gz", "katago-b6c96": "bin.gz"}


def write_recipe(network: str) -> None:
    Path("recipe.toml").write_text(RECIPE.format(network=network))


@pytest.mark.usefixtures("go_games")
class TestTrain:
    @pytest.mark.parametrize("name", GO)
    def test_each_go_network_learns_from_games_and_is_written(self, run: Run, name: str) -> None:
        write_recipe(f'name = "{name}"\n{GO[name]}')
        result = run("train", "recipe.toml", "-o", "run", "--quiet")
        assert result.exit_code == 0, result.stderr
        path = f"run/network.{ENDINGS.get(name, 'safetensors')}"
        assert result.stdout.strip() == path
        assert keima.load(path).encoding.game == "go"
        lines = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines] == [2, 4, 4]
        assert "step 4, 16 held-out positions" in result.stderr

    def test_it_goes_on_from_its_own_file(self, run: Run) -> None:
        write_recipe(f'name = "alphago-zero"\n{GO["alphago-zero"]}')
        assert run("train", "recipe.toml").exit_code == 0  # with a progress bar, into runs/recipe
        write_recipe('from = "runs/recipe/network.safetensors"')
        result = run("train", "recipe.toml", "-o", "second", "--set", "run.ema=0.5", "--quiet")
        assert result.exit_code == 0, result.stderr
        assert "data.train: 72 positions" in result.stderr

    def test_a_finetuning_tells_what_it_brought(self, run: Run) -> None:
        """Figures before the first step, which `data score` gives of the file by itself; a pedigree with a parent."""
        parent = keima.create("alphago-zero", blocks=1, channels=4, board_size=5, value_hidden=4)
        keima.save(parent, "parent.safetensors")
        scored = run("data", "score", "parent.safetensors", "games.parquet", "--positions", "64", "--json")
        assert scored.exit_code == 0, scored.stderr
        write_recipe('from = "parent.safetensors"')
        sizes = ("--set", "run.batch_size=64", "--set", "run.evaluate_positions=64")
        result = run("train", "recipe.toml", "-o", "tuned", "--quiet", *sizes)
        assert result.exit_code == 0, result.stderr
        lines = [json.loads(line) for line in Path("tuned/metrics.jsonl").read_text().splitlines()]
        assert lines[0]["step"] == 0
        before, after = json.loads(scored.stdout), lines[-1]["evaluation"]
        found = lines[0]["evaluation"]
        assert found["positions"] == before["positions"] == 64
        assert found["cross_entropy"] == pytest.approx(before["cross_entropy"], rel=1e-5)
        assert found["value_mse"] == pytest.approx(before["value_mse"], rel=1e-5)
        told = f"cross_entropy {before['cross_entropy']:.4f} → {after['cross_entropy']:.4f}"
        assert told in result.stderr
        pedigree = keima.load(result.stdout.strip()).pedigree
        sha256 = hashlib.sha256(Path("parent.safetensors").read_bytes()).hexdigest()
        assert pedigree.name == "alphago-zero-finetuned"
        assert pedigree.details == {"parent": "alphago-zero", "parent_sha256": sha256, "training_steps": "4"}

    def test_what_is_wrong_is_one_line_with_its_place(self, run: Run) -> None:
        write_recipe('name = "lc0-10x128"')
        result = run("train", "recipe.toml", "-o", "run")
        assert result.exit_code == 2
        assert result.stderr.startswith("keima: recipe.toml: line 5: data.train: games.parquet holds games of go")
        assert not Path("run").exists()
        write_recipe(f'name = "alphago-policy"\n{GO["alphago-policy"]}')
        result = run("train", "recipe.toml", "--set", "loss.beauty=1")
        assert result.exit_code == 2
        assert "--set loss.beauty: loss" in result.stderr
        assert "no term 'beauty'" in result.stderr

    def test_a_store_without_a_board_of_the_networks_size(self, run: Run) -> None:
        write_recipe('name = "alphago-policy"\nfilters = 4\nlayers = 2')
        result = run("train", "recipe.toml", "-o", "run")
        assert result.exit_code == 2
        assert "line 7: data.train: no positions to train on" in result.stderr


def test_an_lc0_network_goes_on_from_its_file_with_pgn(run: Run, chess_net: Path) -> None:
    moves = ("1. f3 e5 2. g4 Qh4# 0-1", "1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0")
    games = (f'[Result "{game.split()[-1]}"]\n\n{game}\n' for game in moves)
    Path("games.pgn").write_text("\n".join(games))
    assert run("data", "import", "games.pgn", "-o", "games.parquet", "--min-moves", "1").exit_code == 0
    write_recipe(f'from = "{chess_net}"')
    result = run("train", "recipe.toml", "-o", "run", "--quiet")
    assert result.exit_code == 0, result.stderr
    before, after = keima.load(chess_net), keima.load("run/network.pb.gz")
    assert after.system == "lc0"
    assert list(before.state_dict()) == list(after.state_dict())
    assert any(not a.equal(b) for a, b in zip(before.parameters(), after.parameters(), strict=True))


@pytest.mark.usefixtures("go_games")
def test_bench_train_prints_shares(run: Run) -> None:
    write_recipe(f'name = "alphago-policy"\n{GO["alphago-policy"]}')
    result = run("bench", "train", "recipe.toml", "--seconds", "0.01")
    assert result.exit_code == 0, result.stderr
    rows = [" ".join(line.split()[:2]) for line in result.stdout.splitlines()[1:]]
    assert rows[:4] == ["convolutions, best", "convolutions, alone", "training step", "training step"]
    assert rows[4].startswith("kept for")
    assert rows[5].startswith("loading")
    assert "% of alone" in result.stdout
    assert run("bench", "train", "none.toml").exit_code == 2


def test_bench_train_tells_what_gradient_checkpointing_saves(run: Run) -> None:
    """Of a residual tower an activation a block is kept in place of all inner ones."""
    write_recipe('name = "alphago-zero"\nblocks = 12\nchannels = 8\nboard_size = 9')
    kept = []
    for wanted in ("false", "true"):
        result = run(
            "bench", "train", "recipe.toml", "--seconds", "0.01", "--set", f"run.gradient_checkpointing={wanted}"
        )
        assert result.exit_code == 0, result.stderr
        (line,) = [line for line in result.stdout.splitlines() if "kept for backward" in line]
        kept.append(float(line.split()[-2]))
    assert 0 < kept[1] < 0.7 * kept[0]


@pytest.mark.slow  # two trainings' worth of kernels, two matches
@pytest.mark.usefixtures("go_games")
def test_distill_trains_and_compares(run: Run) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    keima.save(keima.create("katago-b6c96", blocks=1), "teacher.bin.gz")
    write_recipe(f'name = "alphago-zero"\n{GO["alphago-zero"]}')
    with Path("recipe.toml").open("a") as stream:
        stream.write('[teacher]\nnetwork = "teacher.bin.gz"\nshare = 0.5\n')
    command = ("compress", "distill", "recipe.toml", "-o", "run", "--games", "2", "--visits", "2", "--seconds", "0.002")
    result = run(*command, "--quiet")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["student", "teacher"]
    found = json.loads(Path("run/comparison.json").read_text())
    for name, row in (("student", lines[1]), ("teacher", lines[2])):
        numbers = found[name]
        assert f"{numbers['parameters']:,}" in row
        assert f"{100 * numbers['evaluation']['top1']:.2f}%" in row
        assert numbers["evaluation"]["positions"] == 64
        assert numbers["evaluations_per_second"] > 0
    assert found["teacher"]["parameters"] > found["student"]["parameters"]
    for name, words in (("visits", "visits=2"), ("time", "seconds=0.002")):
        played = found["matches"][name]
        assert played["games"] == 2
        assert any(words in line and played["words"] in line for line in lines)
        assert len(list(Path(f"run/match-{name}").glob("*.sgf"))) == 2


@pytest.mark.usefixtures("go_games")
def test_a_student_stands_beside_several_teachers_together(run: Run) -> None:
    for seed in (1, 2):
        keima.save(keima.create("katago-b6c96", blocks=seed), f"{seed}.bin.gz")
    write_recipe(f'name = "alphago-zero"\n{GO["alphago-zero"]}')
    with Path("recipe.toml").open("a") as stream:
        stream.write('[teacher]\nnetwork = ["1.bin.gz", "2.bin.gz"]\n')
    command = ("compress", "distill", "recipe.toml", "-o", "run", "--quiet")
    assert "play no match together: add --games 0" in run(*command).stderr
    assert not Path("run").exists()
    result = run(*command, "--games", "0")
    assert result.exit_code == 0, result.stderr
    found = json.loads(Path("run/comparison.json").read_text())
    parameters = [sum(each.numel() for each in keima.load(f"{seed}.bin.gz").parameters()) for seed in (1, 2)]
    assert found["teacher"]["parameters"] == sum(parameters)
    assert found["matches"] == {}


@pytest.mark.usefixtures("go_games")
def test_distill_wants_a_teacher_and_held_out_games(run: Run) -> None:
    write_recipe(f'name = "alphago-zero"\n{GO["alphago-zero"]}')
    result = run("compress", "distill", "recipe.toml", "-o", "run")
    assert result.exit_code == 2
    assert "teacher.network: is missing" in result.stderr
    result = run("compress", "distill", "recipe.toml", "--set", "teacher.network=x.bin.gz", "--set", "data.test=")
    assert "data.test: is missing" in result.stderr
    assert not Path("run").exists()
