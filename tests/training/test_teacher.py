"""Distillation: the teacher sees the student's positions, and what it says of them is what is learned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import keima
from keima.errors import BadRequest
from keima.inference.evaluator import Evaluator
from keima.systems.loss import loss_for
from keima.systems.network import Heads, Network
from keima.systems.registry import create
from keima.systems.targets import TrainingBatch
from keima.training.data.batches import Loader
from keima.training.distill.ensemble import Ensemble
from keima.training.distill.teacher import Teaching, check_teacher, taught
from keima.training.run.checkpoint import SETTINGS, check_same_run
from keima.training.run.recipe import TeacherRecipe, read_recipe
from keima.training.run.sources import open_teacher
from tests.training.flat_games import flat_of, flat_of_chess, random_chess, random_game

SIZES = {"blocks": 1, "channels": 8, "board_size": 9, "value_hidden": 8}


def zero(seed: int) -> Network:
    torch.manual_seed(seed)
    return create("alphago-zero", **SIZES).eval()


def katago() -> Network:
    torch.manual_seed(5)
    return create("katago-b6c96", blocks=1).eval()


@pytest.fixture(scope="module")
def records():
    """Games of 9×9."""
    return [random_game(seed, length=30) for seed in range(6)]


def loader_of(records, student: Network, teacher: Network, size: int = 16, **options) -> Loader:
    targets = options.pop("targets", frozenset({"policy", "value"}))
    return Loader(flat_of(records), student.encoding, size, seed=3, targets=targets, also=teacher.encoding, **options)


def test_the_teacher_is_shown_the_same_positions_in_its_own_planes(records):
    student, teacher = zero(0), katago()
    with loader_of(records, student, teacher) as loader:
        batch = next(loader)
        games, turns, symmetries = loader.where(0)
    assert len(set(symmetries.tolist())) > 3
    for row, (game, turn, symmetry) in enumerate(zip(games, turns, symmetries, strict=True)):
        position = records[game].position(turn)
        for found, encoding in ((batch, student.encoding), (batch.also, teacher.encoding)):
            expected = encoding.encode([position], int(symmetry)).inputs
            assert np.array_equal(found.inputs["planes"][row], expected["planes"][0])
            if "globals" in expected:
                assert np.array_equal(found.inputs["globals"][row], expected["globals"][0])


def test_targets_are_what_an_evaluator_says_of_the_position(records):
    """Through positions, names of moves and the board's own orientation, as a user would ask."""
    student, teacher = katago(), katago()
    student.encoding = type(student.encoding)()
    asked = Evaluator(teacher, threads=1)
    targets = frozenset({"policy", "value", "score", "ownership"})
    with loader_of(records, student, teacher, targets=targets) as loader:
        batch = Teaching(Evaluator(teacher), TeacherRecipe(network="x"))(next(loader))
        games, turns, symmetries = loader.where(0)
    assert batch.also is None
    for row, (game, turn, symmetry) in enumerate(zip(games, turns, symmetries, strict=True)):
        position = records[game].position(turn)
        (answer,) = asked([position], symmetry=int(symmetry))
        legal = teacher.encoding.legal_moves(position, int(symmetry))
        soft = batch.policy_soft[row][legal.indices]
        assert dict(zip(legal.names, soft / soft.sum(), strict=True)) == pytest.approx(answer.policy, abs=1e-5)
        assert batch.policy_soft[row].sum() == pytest.approx(1, abs=1e-5)
        assert batch.value[row] == pytest.approx(answer.value, abs=1e-5)
        assert batch.wdl[row].tolist() == pytest.approx([answer.win, answer.draw, answer.loss], abs=1e-5)
        assert batch.score[row] == pytest.approx(answer.lead, abs=1e-3)
        owned = student.encoding.restore(batch.ownership[row], position, int(symmetry))
        np.testing.assert_allclose(owned, answer.ownership, atol=1e-5)


def test_boards_of_several_sizes_are_answered_each_for_itself():
    """In one batch of padded planes; the teacher's evaluator takes no masks."""
    records = [
        random_game(seed, size=size, length=20) for seed, size in enumerate([(9, 9), (7, 7), (9, 7), (5, 5)] * 2)
    ]
    student, teacher = katago(), katago()
    asked = Evaluator(teacher, threads=1)
    targets = frozenset({"policy", "value", "score", "ownership"})
    with loader_of(records, student, teacher, size=32, targets=targets) as loader:
        batch = Teaching(Evaluator(teacher), TeacherRecipe(network="x"))(next(loader))
        games, turns, symmetries = loader.where(0)
    assert "mask" in batch.inputs
    assert len({records[game].size for game in games}) == 4
    side = batch.planes.shape[2]
    for row, (game, turn, symmetry) in enumerate(zip(games, turns, symmetries, strict=True)):
        position = records[game].position(turn)
        (answer,) = asked([position], symmetry=int(symmetry))
        height, width = student.encoding.shape(position, int(symmetry))
        on_board = batch.policy_soft[row, :-1].reshape(side, side)
        assert on_board.sum() == pytest.approx(on_board[:height, :width].sum())
        legal = teacher.encoding.legal_moves(position, int(symmetry))
        soft = np.append(on_board[:height, :width], batch.policy_soft[row, -1])[legal.indices]
        assert dict(zip(legal.names, soft / soft.sum(), strict=True)) == pytest.approx(answer.policy, abs=1e-5)
        assert batch.wdl[row].tolist() == pytest.approx([answer.win, answer.draw, answer.loss], abs=1e-5)
        assert batch.score[row] == pytest.approx(answer.lead, abs=1e-3)
        owned = student.encoding.restore(batch.ownership[row, :height, :width], position, int(symmetry))
        np.testing.assert_allclose(owned, answer.ownership, atol=1e-5)
        assert np.isnan(batch.ownership[row]).sum() == side * side - height * width


def test_shares_and_temperature_by_hand():
    logits = np.log(np.array([[0.64, 0.32, 0.04], [0.25, 0.25, 0.5]], np.float32))
    heads = Heads(
        policy=logits,
        wdl=np.array([[0.6, 0.1, 0.3], [0.2, 0.2, 0.6]], np.float32),
        value=np.array([0.3, -0.4], np.float32),
    )
    batch = TrainingBatch(
        inputs={"planes": np.zeros((2, 1, 1, 1), np.float32)},
        policy=np.array([1, -1]),
        value=np.array([1, np.nan], np.float32),
        moves_left=np.array([4, 5], np.float32),
    )
    found = taught(batch, heads, TeacherRecipe(network="x", share=0.75, temperature=2.0))
    roots = np.sqrt([0.64, 0.32, 0.04])
    first = 0.75 * roots / roots.sum() + [0, 0.25, 0]
    halves = np.sqrt([0.25, 0.25, 0.5])
    np.testing.assert_allclose(found.policy_soft, [first, halves / halves.sum()], rtol=1e-6)
    np.testing.assert_allclose(found.wdl, [[0.7, 0.075, 0.225], [0.2, 0.2, 0.6]], rtol=1e-6)
    np.testing.assert_allclose(found.value, [0.475, -0.4], rtol=1e-6)
    assert found.moves_left.tolist() == [4, 5]  # this teacher has no such head
    assert found.score is None


def test_searches_have_their_share_beside_a_teacher():
    heads = Heads(policy=np.log(np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]], np.float32)))
    batch = TrainingBatch(
        inputs={"planes": np.zeros((2, 1, 1, 1), np.float32)},
        policy=np.array([2, 2]),
        policy_soft=np.array([[0.0, 0.5, 0.5], [0, 0, 0]], np.float32),
    )
    found = taught(batch, heads, TeacherRecipe(network="x", share=0.75))
    np.testing.assert_allclose(found.policy_soft, [[0.45, 0.35, 0.2], [0.2, 0.3, 0.5]], rtol=1e-6)


def test_a_policy_without_a_pass_learns_the_rest():
    student = create("alphago-policy", filters=4, layers=2, board_size=9)
    soft = np.full((1, 82), 0.5 / 81, np.float32)
    soft[0, 81] = 0.5
    batch = TrainingBatch(inputs={"planes": torch.zeros(1, 48, 9, 9)}, policy_soft=torch.from_numpy(soft))
    outputs = student(batch.planes)
    expected = -torch.log_softmax(outputs.policy, 1).mean()
    assert loss_for(student)(outputs, batch).total.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize(("name", "order"), [("lc0", (0, 1, 2)), ("katago", (0, 2, 1))])
def test_outcomes_are_learned_by_their_probabilities(name, order):
    network = katago() if name == "katago" else create("lc0-10x128", blocks=1, channels=8, se_channels=4)
    side, planes = (9, 22) if name == "katago" else (8, 112)
    wdl = np.array([[0.5, 0.2, 0.3], [np.nan] * 3], np.float32)
    batch = TrainingBatch(
        inputs={"planes": torch.rand(2, planes, side, side)}
        | ({"globals": torch.rand(2, 19)} if name == "katago" else {}),
        wdl=torch.from_numpy(wdl),
        value=torch.tensor([1.0, np.nan]),
    )
    outputs = network(**batch.inputs)
    terms = loss_for(network, {"policy": 0} if name == "lc0" else None)(outputs, batch)
    logs = torch.log_softmax(outputs.value[0].float(), 0)
    expected = -sum(wdl[0, k] * logs[place] for place, k in enumerate(order))
    assert terms.named["value"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_student_comes_to_agree_with_its_teacher(records):
    teacher, student = zero(1), zero(2).train()
    with torch.no_grad():
        teacher.policy_head.linear.weight.mul_(20)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.01)
    loss = loss_for(student)
    distances = []
    with loader_of(records, student, teacher, size=32) as loader:
        teaching = Teaching(Evaluator(teacher), TeacherRecipe(network="x"))
        for _ in range(40):
            batch = teaching(next(loader)).torch()
            terms = loss(student(**batch.inputs), batch)
            entropy = -(batch.policy_soft * batch.policy_soft.clamp(min=1e-9).log()).sum(1).mean()
            distances.append(terms.named["policy"].item() - entropy.item())
            optimizer.zero_grad()
            terms.total.backward()
            optimizer.step()
    assert min(distances) > -1e-4  # a cross-entropy is never below the entropy
    assert np.mean(distances[-5:]) < 0.6 * np.mean(distances[:5])


def test_teachers_that_cannot_teach_are_refused(records):
    chess = create("maia-6x64", blocks=1, channels=8, se_channels=4)
    with pytest.raises(BadRequest, match="plays chess; the student plays go"):
        check_teacher(chess, zero(0))
    value = create("alphago-value", filters=4, layers=2, hidden=4, board_size=9)
    with pytest.raises(BadRequest, match="no policy"):
        check_teacher(value, zero(0))
    check_teacher(zero(0), value)
    other = create("alphago-zero", **{**SIZES, "board_size": 7})
    with pytest.raises(BadRequest, match="cannot take 6 of the 6 games"):
        loader_of(records, zero(0), other)
    with pytest.raises(BadRequest, match="is for chess"):
        loader_of(records, zero(0), chess)
    with pytest.raises(BadRequest, match="is for go"):
        Loader(flat_of_chess([random_chess(1)]), chess.encoding, 2, also=zero(0).encoding)


RECIPE = """
[network]
name = "alphago-zero"
[data]
train = "x.parquet"
[optimizer]
learning_rate = 0.1
[run]
steps = 1
batch_size = 1
[teacher]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("share = 0.5", r"line 11: teacher\.network: is missing"),
        ('network = "a.bin.gz"\nshare = 0', r"line 13: teacher\.share: should be above 0 and at most 1"),
        ('network = "a.bin.gz"\ntemprature = 2', r"line 13: teacher\.temprature: unknown key"),
    ],
)
def test_bad_recipes_name_the_line(tmp_path: Path, text: str, message: str):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE + text + "\n")
    with pytest.raises(BadRequest, match=message):
        read_recipe(path)


def test_a_missing_teacher_is_told_before_any_work(tmp_path: Path):
    from keima.training.run.loop import train

    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE + f'network = "{tmp_path}/none.bin.gz"\n')
    with pytest.raises(BadRequest, match=r"line 12: teacher\.network: .*none\.bin\.gz"):
        train(read_recipe(path), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_several_teachers_answer_with_the_mean_of_their_heads(records):
    """Also where not all of them have a head; on either backend."""
    first, second = zero(1), zero(2)
    together = Ensemble([first, second])
    with loader_of(records, zero(0), together) as loader:
        batch = next(loader).also
    one, other = (Evaluator(each, threads=1).infer(batch) for each in (first, second))
    for backend in ("openvino", "torch"):
        found = Evaluator(together, backend, threads=1).infer(batch)
        for name in ("policy", "value"):
            mean = (getattr(one, name) + getattr(other, name)) / 2
            assert np.abs(getattr(found, name) - mean).max() < 1e-4
        assert found.lead is None
    old, new = (create("lc0", blocks=1, channels=8, moves_left=flag).eval() for flag in (False, True))
    chess = flat_of_chess([random_chess(3, length=20)])
    with Loader(chess, old.encoding, 4, targets=frozenset({"policy"}), also=new.encoding) as loader:
        batch = next(loader).also
    found, expected = (Evaluator(each, threads=1).infer(batch) for each in (Ensemble([old, new]), new))
    assert np.abs(found.moves_left - expected.moves_left).max() < 1e-4
    assert np.abs(found.wdl.sum(axis=1) - 1).max() < 1e-5


def test_a_recipe_may_name_several_teachers(tmp_path):
    paths = [str(tmp_path / f"{name}.safetensors") for name in ("1", "2", "katago")]
    for network, path in zip((zero(1), zero(2), katago()), paths, strict=True):
        keima.save(network, path)

    def teacher(several: list[str]) -> Network | None:
        text = f'[network]\nname = "alphago-zero"\n[data]\ntrain = "x"\n[teacher]\nnetwork = {several}\n'
        (tmp_path / "recipe.toml").write_text(
            text + "[optimizer]\nlearning_rate = 0.1\n[run]\nsteps = 1\nbatch_size = 8\n"
        )
        return open_teacher(read_recipe(tmp_path / "recipe.toml"), zero(0))

    found = teacher(paths[:2])
    assert isinstance(found, Ensemble)
    assert len(found.networks) == 2
    with pytest.raises(BadRequest, match=r"teacher.network.*see positions in different planes"):
        teacher(paths[1:])


def test_a_run_begun_when_a_teacher_was_one_name_goes_on(tmp_path):
    text = '[network]\nname = "alphago-zero"\n[data]\ntrain = "x"\n[teacher]\nnetwork = "old.pb.gz"\n'
    (tmp_path / "recipe.toml").write_text(text + "[optimizer]\nlearning_rate = 0.1\n[run]\nsteps = 1\nbatch_size = 8\n")
    before = read_recipe(tmp_path / "recipe.toml")
    settings = before.values()
    settings["teacher"]["network"] = "old.pb.gz"
    (tmp_path / SETTINGS).write_text(json.dumps(settings))
    check_same_run(before, tmp_path)
    (tmp_path / "recipe.toml").write_text((tmp_path / "recipe.toml").read_text().replace("old", "new"))
    other = read_recipe(tmp_path / "recipe.toml")
    with pytest.raises(BadRequest, match=r"line 6: teacher.network: is \['new.pb.gz'\].* begun with \['old.pb.gz'\]"):
        check_same_run(other, tmp_path)
