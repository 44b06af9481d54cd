"""Games between policies: legal, sensible, drawn by the softmax, counted by the rules, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from keima.errors import BadRecord, BadRequest
from keima.games.go.position import Position
from keima.games.go.vertices import COLUMNS
from keima.systems.alphago.inputs import AlphaGoEncoding
from keima.systems.registry import create
from keima.training.reinforce.games import Table, play_games, read_played, set_table, write_played
from keima.training.run.recipe import SelfplayRecipe

WHITE_BIT = 1 << 15


class Fixed:
    """A policy that says the same of every board: `logits` by row and column as the player sees it, pass last."""

    def __init__(self, logits, network=None) -> None:
        self.network = network or create("alphago-zero", blocks=1, channels=4, board_size=5, value_hidden=4)
        self.values = np.asarray(logits, np.float32)
        self.seen = []

    def logits(self, batch):
        self.seen.append(batch.size)
        return np.tile(self.values, (batch.size, 1))


def table(**changes) -> Table:
    options = {"size": 5, "rules": "chinese-kgs", "komi": 0.5, **changes}
    temperature, most = options.pop("temperature", 1.0), options.pop("max_moves", 75)
    return set_table(SelfplayRecipe(temperature=temperature, max_moves=most, **options), Fixed(np.zeros(26)).network)


def names(games, game, size=5):
    """A game's moves as (colour, vertex)."""
    moves = games.moves[games.start[game] : games.start[game + 1]].tolist()
    points = [move & (WHITE_BIT - 1) for move in moves]
    vertices = ["pass" if p == size * size else f"{COLUMNS[p % size]}{size - p // size}" for p in points]
    return list(zip(["W" if move & WHITE_BIT else "B" for move in moves], vertices, strict=True))


def sensible(position, size=5):
    """The vertices of AlphaGo's sensibleness plane, which is held to RocAlphaGo's elsewhere."""
    plane = AlphaGoEncoding().encode([position]).inputs["planes"][0, 46]
    return {f"{COLUMNS[x]}{size - y}" for y, x in np.argwhere(plane).tolist()}


@pytest.fixture(scope="module")
def played():
    """Thirty games of uniform policies, 5×5."""
    return play_games((Fixed(np.zeros(26)), Fixed(np.zeros(26))), table(), np.arange(30), seed=7)


def test_every_move_is_legal_and_games_end_and_count_as_the_rules_say(played):
    reasons = set()
    for game in range(30):
        position = Position.start(5, "chinese-kgs", 0.5)
        for colour, vertex in names(played.games, game):
            assert not position.is_over
            assert colour == position.to_play
            assert vertex in position.legal()
            position = position.play(vertex)
        reasons.add(position.is_over)
        assert position.is_over or len(position.moves) == 75
        assert played.games.score[game] == -position.score()
        assert played.games.winner[game] == np.sign(-position.score())
    assert True in reasons


def test_no_own_true_eye_is_filled():
    """Long games of a policy that passes only when it must: it would fill its eyes soon."""
    logits = np.append(np.zeros(25), -30)
    played = play_games((Fixed(logits), Fixed(logits)), table(), np.arange(12), seed=1)
    left_out = 0
    for game in range(12):
        position = Position.start(5, "chinese-kgs", 0.5)
        for _, vertex in names(played.games, game):
            assert vertex in sensible(position) | {"pass"}
            left_out += len(position.legal()) - 1 - len(sensible(position))
            position = position.play(vertex)
    assert left_out > 50


def test_moves_are_drawn_by_the_softmax_at_the_temperature():
    logits = np.full(26, -1e9)
    logits[[3, 11, 25]] = np.log([0.5, 0.3, 0.2])
    for temperature, seed in ((1.0, 0), (2.0, 1)):
        chosen = table(temperature=temperature, max_moves=1)
        games = play_games((Fixed(logits), Fixed(logits)), chosen, np.arange(4000), seed, symmetries=False).games
        found = np.array([(games.moves == point).mean() for point in (3, 11, 25)])
        odds = np.array([0.5, 0.3, 0.2]) ** (1 / temperature)
        np.testing.assert_allclose(found, odds / odds.sum(), atol=0.03)


def test_each_game_is_seen_in_its_own_orientation_by_both():
    corner = np.full(26, -1e9)
    corner[[1, 5]] = 0  # beside the top left corner, as the player sees the board
    played = play_games((Fixed(corner), Fixed(corner)), table(max_moves=2), np.arange(64), seed=0)
    corners = {
        frozenset(vertex for _, vertex in names(played.games, game)): int(symmetry) & 3
        for game, symmetry in enumerate(played.symmetry)
    }
    expected = {frozenset({"B5", "A4"}): 0, frozenset({"B1", "A2"}): 1, frozenset({"D5", "E4"}): 2}
    assert corners == {**expected, frozenset({"D1", "E2"}): 3}
    assert len(set(played.symmetry.tolist())) == 8


def test_a_game_does_not_depend_on_what_is_played_beside_it(played):
    some = play_games((Fixed(np.zeros(26)), Fixed(np.zeros(26))), table(), np.array([3, 17, 28]), seed=7)
    for row, number in enumerate((3, 17, 28)):
        assert names(some.games, row) == names(played.games, number)
    other = play_games((Fixed(np.zeros(26)), Fixed(np.zeros(26))), table(), np.array([3]), seed=8)
    assert names(other.games, 0) != names(played.games, 3)


def test_the_first_player_has_black_in_even_games():
    stay, leave = np.append(np.zeros(25), -1e9), np.append(np.full(25, -1e9), 0)
    played = play_games((Fixed(leave), Fixed(stay)), table(max_moves=6), np.arange(8), seed=0)
    for game in range(8):
        passes = {colour for colour, vertex in names(played.games, game) if vertex == "pass"}
        assert passes == {"B" if game % 2 == 0 else "W"}
        assert played.first_black[game] == (game % 2 == 0)


def test_a_policy_without_a_pass_passes_only_when_nothing_is_left():
    network = create("alphago-policy", filters=2, layers=1, board_size=5)
    logits = np.append(np.zeros(25), -1e4)
    played = play_games((Fixed(logits, network), Fixed(logits, network)), table(), np.arange(20), seed=3)
    passed = 0
    for game in range(20):
        position = Position.start(5, "chinese-kgs", 0.5)
        for _, vertex in names(played.games, game):
            if vertex == "pass":
                assert not sensible(position)
                passed += 1
            position = position.play(vertex)
    assert passed > 20


def test_games_are_kept_and_read_again(tmp_path, played):
    path = tmp_path / "games" / "one.npz"
    write_played(path, played)
    again = read_played(path, table())
    for name in ("moves", "start", "winner", "score", "komi", "xsize"):
        assert np.array_equal(getattr(again.games, name), getattr(played.games, name))
    assert again.games.rules == played.games.rules
    assert np.array_equal(again.symmetry, played.symmetry)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(BadRecord, match=r"one\.npz"):
        read_played(path, table())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rules": "japanese"}, "rules: .* counted by area"),
        ({"rules": "nonsense"}, "rules: "),
        ({"komi": 0.3}, "komi: should be a whole or half number"),
        ({"size": 9}, "size: the network is for 5×5 boards, not 9×9"),
    ],
)
def test_tables_that_cannot_be_are_refused(change, words):
    with pytest.raises(BadRequest, match=words):
        table(**change)
