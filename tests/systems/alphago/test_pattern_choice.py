"""The rollout policy's training: what is learned is what playouts play, patterns and images are counted together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from keima.errors import BadRequest
from keima.games.go import Position
from keima.games.go.vertices import vertex_to_xy, xy_to_vertex
from keima.systems.alphago.rollout_features import (
    RolloutEncoding,
    commonest_patterns,
    number_tables,
    pattern_images,
    response_images,
)
from keima.systems.alphago.rollout_file import read_rollout
from keima.systems.alphago.rollout_network import NOT_CONSIDERED, RolloutSoftmax, _Lookup
from keima.systems.files.load import save
from keima.systems.loss import loss_for
from keima.systems.targets import TrainingBatch
from keima.training.data.batches import Loader
from tests.training.flat_games import Game, flat_of, flat_of_chess, random_chess, random_game


@pytest.fixture(scope="module")
def taught() -> RolloutSoftmax:
    """A network that knows the patterns of some random games, its weights random."""
    network = RolloutSoftmax(patterns=3000, responses=3000)
    network.know(*commonest_patterns(flat_of([random_game(seed, length=70) for seed in range(12)]), sample=600))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return network.eval()


def positions(count: int) -> list[Position]:
    """Positions of random play with fights, captures and kos in them."""
    rng = np.random.default_rng(7)
    found = []
    while len(found) < count:
        position = Position.start(9)
        for _ in range(int(rng.integers(1, 90))):
            moves = [move for move in position.legal() if move != "pass"]
            if not moves:
                break
            position = position.play(str(rng.choice(moves)))
        found.append(position)
    return found


def test_network_gives_the_probabilities_that_playouts_draw_from(taught: RolloutSoftmax) -> None:
    policy = taught.to_policy()
    for keys in ("pattern_keys", "response_keys"):
        assert np.count_nonzero(policy.weights[keys]) > 1000
    for position in positions(60):
        batch = taught.encoding.encode([position])
        with torch.no_grad():
            logits = taught(torch.from_numpy(batch.inputs["planes"])).policy[0].double()
        expected = policy.probabilities(position)
        found = torch.softmax(logits, 0).numpy()
        considered = {k for k in range(81) if logits[k] > NOT_CONSIDERED / 2}
        if expected == {"pass": 1.0}:
            assert not considered
            continue
        index = {name: taught.encoding.legal_moves(position).indices[i] for i, name in enumerate(position.legal())}
        assert {index[name] for name in expected} == considered
        for name, probability in expected.items():
            assert found[index[name]] == pytest.approx(probability, rel=1e-4, abs=1e-9)


def test_every_image_of_a_position_has_the_same_probabilities(taught: RolloutSoftmax) -> None:
    taught_policy = taught.to_policy()
    taught_policy.weights[0]["nakade"] = 1.0  # a hash of the shape as it lies: images differ
    for position in positions(10):
        expected = sorted(taught_policy.probabilities(position).values())
        mirrored = Position.start(9)
        for _, vertex in position.moves:
            mirrored = mirrored.play(mirror(vertex))
        assert sorted(taught_policy.probabilities(mirrored).values()) == pytest.approx(expected, rel=1e-5)


def mirror(vertex: str) -> str:
    """Columns of a 9×9 board exchanged."""
    if vertex == "pass":
        return vertex
    columns = "ABCDEFGHJ"
    return columns[8 - columns.index(vertex[0])] + vertex[1:]


def test_images_are_the_eight_of_the_square() -> None:
    code = np.array([1])  # one own stone in atari at the top left
    assert sorted(set(pattern_images(code)[:, 0].tolist())) == [1, 1 << 6, 1 << 15, 1 << 21]
    key = np.array([(3 << 33) << 4 | 1])  # a stone at point 0 of the diamond, the move at point 1
    images = response_images(key)[:, 0]
    assert len(set(images.tolist())) == 8
    for image in images.tolist():  # point 0 is a corner, the move beside it: so they lie in every image
        (stone,) = [k for k in range(12) if (image >> 4) >> (3 * (11 - k)) & 7]
        assert stone in (0, 2, 5, 7)
        assert (image & 15) in {0: (1, 3), 2: (1, 4), 5: (3, 6), 7: (4, 6)}[stone]


def test_features_by_hand() -> None:
    # White's stone on A1 is in atari to B1; Black's move before was A2
    position = Position.start(9).play("E5", "A1", "A2")
    planes = RolloutEncoding().encode([position]).inputs["planes"][0]
    row = 8  # the bottom
    assert planes[0].min() == 0
    assert planes[0, row, 1] == 1
    assert planes[0, row, 0] == planes[0, 4, 4] == planes[0, row - 1, 0] == 0  # stones
    assert np.argwhere(planes[4] == 1).tolist() == [[row, 1]]  # at B1 the chain has C1 and B2
    assert planes[2, row, 1] == 8
    assert planes[2, row - 1, 1] == 5


def test_saving_move_is_marked() -> None:
    # Black has just put D5 into atari; D6 runs out to three liberties
    position = Position.start(9).play("C5", "D5", "E5", "J1", "D4")
    planes = RolloutEncoding().encode([position]).inputs["planes"][0]
    assert np.argwhere(planes[4] == 1).tolist() == [[3, 3]]


def test_numbers_of_images_agree() -> None:
    keys = np.array([5, 77, 4096])
    tables = number_tables(keys, keys[:0])[0]
    images = pattern_images(keys)
    for k in range(len(keys)):
        for image in images[:, k]:
            place = np.flatnonzero(tables["pattern_keys"] == np.uint64(int(image) + 1))
            assert tables["pattern_values"][place].tolist() == [2 + k]


def test_learning_lowers_the_loss_and_playouts_follow(tmp_path: Path) -> None:
    games = flat_of([contact_game(seed) for seed in range(30)])
    network = RolloutSoftmax(patterns=500, responses=200)
    network.know(*commonest_patterns(games, sample=500))
    loss = loss_for(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    losses = []
    with Loader(games, network.encoding, 128, targets=loss.targets) as loader:
        for _ in range(30):
            batch = next(loader).torch()
            terms = loss(network(**batch.inputs), batch)
            optimizer.zero_grad()
            terms.total.backward()
            optimizer.step()
            losses.append(terms.total.item())
    assert np.mean(losses[-5:]) < losses[0] - 0.1
    save(network, tmp_path / "network.safetensors")
    played = read_rollout(tmp_path / "network.safetensors")
    assert played.probabilities(Position.start(9)) == pytest.approx(
        network.to_policy().probabilities(Position.start(9)), rel=1e-6
    )


def contact_game(seed: int) -> Game:
    """A game in which most moves touch the one before."""
    chance = np.random.default_rng(seed)
    game = Game([])
    position = game.position(0)
    for _ in range(40):
        moves = position.legal()[:-1]
        if game.moves and chance.random() < 0.8:
            x, y = vertex_to_xy(game.moves[-1][1], 9, 9)
            near = [xy_to_vertex(x + dx, y + dy, 9) for dx, dy in ((0, 1), (1, 0)) if x + dx < 9 and y + dy < 9]
            moves = [move for move in near if move in moves] or moves
        game.moves.append((position.to_play, str(chance.choice(moves))))
        position = position.play_as(*game.moves[-1])
    return game


def test_moves_the_policy_never_makes_teach_nothing() -> None:
    network = RolloutSoftmax(patterns=8, responses=8)
    planes = torch.zeros(2, 5, 9, 9)
    planes[:, 0, 0, :3] = 1
    # the second move is on a point that is not considered
    batch = TrainingBatch(inputs={"planes": planes}, policy=torch.tensor([0, 40]))
    terms = loss_for(network)(network(planes), batch)
    assert terms.present["policy"] == 1
    assert terms.total.item() == pytest.approx(np.log(3), rel=1e-5)


def test_gradient_is_that_of_plain_indexing() -> None:
    weights = torch.randn(7, requires_grad=True)
    numbers = torch.randint(0, 7, (4, 9))
    scale = torch.randn(4, 9)
    (_Lookup.apply(weights, numbers) * scale).sum().backward()
    expected = torch.zeros(7).index_add(0, numbers.flatten(), scale.flatten())
    torch.testing.assert_close(weights.grad, expected)


def test_chess_games_are_refused() -> None:
    with pytest.raises(BadRequest, match="games of Go"):
        commonest_patterns(flat_of_chess([random_chess(1)]))
