"""Games side by side: their searches share batches, and each is what it would be alone.

Everything random in a game follows from the run's seed, its number and the ply (`keima.training.data.sampling.key_of`),
and a tree has one leaf under way (`keima.search.forest`); so a game is a function of seed, number and networks, on any
machine, however many are played beside it, and one that was interrupted goes on as if it had not been.

Slots stand in groups of one board; while one group's batch is evaluated the next one's is gathered.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keima.games.game import get_game
from keima.games.playing import Verdict
from keima.games.position import Position
from keima.inference.evaluator import Evaluator
from keima.plain import Data
from keima.search.batches import answers_of
from keima.search.forest import Forest, new_cache
from keima.search.root import set_root
from keima.search.targets import draw_move, policy_target, root_value
from keima.systems.encoding import Encoding, symmetries_of
from keima.systems.network import Heads
from keima.systems.parameters import Number, Parameters
from keima.training.data.sampling import key_of
from keima.training.selfplay.checks import check_search
from keima.training.selfplay.game import FAST, FULL, OPENING, Ply, SelfplayGame
from keima.training.selfplay.journal import Journal
from keima.training.selfplay.recipe import LoopRecipe

GROUPS = 2
"""Batches under way at once, of a board."""
_BEGIN = -1
_QUIET: dict[str, Number] = {
    "root_noise": 0.0,
    "gumbel_noise": 0.0,
    "forced_playouts": 0.0,
    "root_policy_temperature": 1.0,
}
"""Of fast searches, and of a match: nothing that is there to explore."""
_PHILOX: Data = {
    "bit_generator": "Philox",
    "buffer": np.zeros(4, np.uint64),
    "buffer_pos": 4,
    "has_uint32": 0,
    "uinteger": 0,
}
"""The state of NumPy's Philox that has drawn nothing yet, but for its key."""


def _philox() -> np.random.Generator:
    return np.random.Generator(np.random.Philox())


class Player(NamedTuple):
    """A network that plays: its evaluator, its generation, and the Q below minus which it resigns (None: never)."""

    evaluator: Evaluator
    generation: int
    resign: float | None = None


@dataclass
class _Slot:
    """A place for one game, and the search under way in it."""

    game: SelfplayGame | None = None
    player: Player | None = None
    kind: int = FULL
    rng: np.random.Generator = field(default_factory=_philox)
    openings: list[str] = field(default_factory=list)  # moves that are given, the next one first
    random_plies: int = 0  # moves still to be drawn from the policy alone
    avoid: str = ""  # what the first of them must not be: a fork leaves its parent
    salt: int = 0  # of the evaluations' keys: where the game began, for its rules, and the run's seed


@dataclass
class _Group:
    """Slots of one board, their trees, and the batch under way."""

    position: Position
    forest: Forest
    slots: list[_Slot]
    symmetries: NDArray[np.int64]
    pending: Any = None  # what the evaluator gave for the batch
    turn: int = 0


class Players:
    """Games side by side in this process, played by one network, or as a match by two.

    Args:
        recipe: of the run.
        players: one for both sides; or two, of whom the first has the first side in games of even numbers. A match has
            pairs of games from one opening, 2k and 2k + 1, and no noise.
        numbers: the next game's number; None: there are no more for now.
        journal: where moves are kept; the games it holds come back.
        visits: of a move in a match; None: those of a full search.

    Attributes:
        evaluations, moves, games: done so far, without evaluations that were known.

    Raises:
        BadRequest: a search that cannot be with this network, or games that cannot begin so.
    """

    def __init__(
        self,
        recipe: LoopRecipe,
        players: Sequence[Player],
        numbers: Callable[[], int | None],
        journal: Journal | None = None,
        visits: int | None = None,
    ) -> None:
        self.recipe = recipe
        self.players = list(players)
        self.match = len(players) > 1
        self._numbers, self._journal = numbers, journal
        self._seed = recipe.training.run.seed
        first = players[0].evaluator
        self._game = get_game(first.encoding.game)
        self.full, self.fast = search_parameters(recipe, first)
        if self.match:
            self.full = self.fast
        self._visits = visits or recipe.search.visits
        self.evaluations = self.moves = self.games = 0
        self._ended: list[SelfplayGame] = []
        self._parents: dict[int, SelfplayGame] = {}
        self._parked: dict[int, int] = {}  # parent → the game that waits for it
        self._waiting: dict[tuple[int, int], deque[int]] = {}  # numbers given out, by their boards
        self._idle = False
        self._groups = self._make_groups(first.encoding)
        self._resume()

    def _make_groups(self, encoding: Encoding) -> list[_Group]:
        sizes = self.recipe.games.size or (0,)
        count = max(1, self.recipe.games.side_by_side // (GROUPS * len(sizes)))
        starts = [self._start(2 * index) for index in range(len(sizes))]
        for start in starts:
            encoding.check(start)
        most = max(encoding.policy_size(encoding.shape(start)) for start in starts)
        self._cache = new_cache(min(most, self._game.kernels.max_moves))
        groups = []
        for index in range(len(sizes) * GROUPS):
            position = starts[index % len(sizes)]
            some = self.full.batches.random_symmetry
            symmetries = symmetries_of(encoding, position) if some else np.zeros(1, np.int64)
            forest = Forest(position, self.full, self._visits, count, self._cache)
            groups.append(_Group(position, forest, [_Slot() for _ in range(count)], symmetries))
        return groups

    @property
    def idle(self) -> bool:
        """Is no game under way, and are there no more?"""
        return self._idle and not any(slot.game for group in self._groups for slot in group.slots)

    @property
    def known(self) -> int:
        """Evaluations that were not asked for, since they were known."""
        return int(self._cache.hits[0])

    @property
    def under_way(self) -> int:
        """Games that go on."""
        return sum(slot.game is not None for group in self._groups for slot in group.slots)

    def set_network(self, evaluator: Evaluator, generation: int, resign: float | None) -> None:
        """Go on with another network, each game from its next search on."""
        self.players = [Player(evaluator, generation, resign)]

    def step(self) -> list[SelfplayGame]:
        """One batch of every group: add its answers, make the moves that are due, start the next; the games ended."""
        for group in self._groups:
            self._finish(group)
            self._make_moves(group)
            self._start_batch(group)
        ended, self._ended = self._ended, []
        return ended

    # --- Games --------------------------------------------------------------------------------------------------------

    def _rng(self, number: int, ply: int, rng: np.random.Generator | None = None) -> np.random.Generator:
        """The generator of a game's ply; an older one set anew (of Philox) costs a sixth of a new one."""
        rng = rng or _philox()
        key = np.array([key_of(self._seed, number, ply), 0], np.uint64)
        rng.bit_generator.state = {**_PHILOX, "state": {"counter": _PHILOX["buffer"], "key": key}}
        return rng

    def _start(self, number: int) -> Position:
        """Where a game of that number begins; both games of a match's pair alike."""
        games = self.recipe.games
        pair = number // 2  # both of a match's opening, a game and its fork are of one board
        pair, which = divmod(pair, max(1, len(games.size)))
        size = games.size[which] if games.size else self._own_size()
        pair, which = divmod(pair, max(1, len(games.komi)))
        komi = games.komi[which] if games.komi else None
        rules = games.rules[pair % len(games.rules)] if games.rules else None
        start = self._game.playing.start((size, size) if size else None, rules, komi)
        if games.komi_stdev and not self.match:
            shift = float(self._rng(number, _BEGIN - 1).normal(0.0, games.komi_stdev))
            komi = round(2 * (self._komi(start) + shift)) / 2
            start = self._game.playing.start((size, size) if size else None, rules, komi)
        return start

    def _own_size(self) -> int:
        """The points a side that the network's layers fix; 0 where it takes many."""
        found = getattr(self.players[0].evaluator.encoding, "board_size", None)
        return int(found) if isinstance(found, int) else 0

    def _komi(self, start: Position) -> float:
        komi = self._game.playing.table(start).get("komi", 0.0)
        assert isinstance(komi, float)
        return komi

    def _begin(self, slot: _Slot, number: int) -> None:
        """Begin a game: its opening, and the first search."""
        games = self.recipe.games
        rng = self._rng(number, _BEGIN)
        start = self._start(number)
        slot.game = game = SelfplayGame(number, start, start)
        slot.openings, slot.random_plies, slot.avoid = [], 0, ""
        if self.match:
            known = self._game.playing.openings(start, self._seed)
            opening = known[number // 2 % len(known)].position
            slot.openings = self._game.kernels.moves_between(start, opening) or []
        else:
            chances = rng.random(2)
            game.played_out = bool(chances[0] < games.play_out)
            if games.opening_plies:
                slot.random_plies = int(rng.exponential(games.opening_plies))
            if (parent := self._parents.pop(number - 1, None)) is not None and chances[1] < games.fork:
                known_moves = [ply.move for ply in parent.plies]
                at = int(rng.integers(len(known_moves))) if known_moves else 0
                slot.openings, slot.random_plies, slot.avoid = known_moves[:at], 1, "".join(known_moves[at : at + 1])
                slot.game = game = SelfplayGame(number, parent.start, parent.start, played_out=game.played_out)
        told = f"{self._seed} {json.dumps(game.start.to_json(), sort_keys=True)}"
        slot.salt = int.from_bytes(hashlib.blake2b(told.encode(), digest_size=8).digest(), "little")

    def _next_game(self, slot: _Slot, group: _Group) -> bool:
        """Put the next game of the group's board into an empty slot; False where there is none."""
        while (number := self._next_number(group)) is not None:
            parent = number - 1
            forks = self.recipe.games.fork > 0 and number % 2 and not self.match
            if forks and any(s.game and s.game.number == parent for group in self._groups for s in group.slots):
                self._parked[parent] = number
                continue
            self._begin(slot, number)
            return True
        return False

    def _next_number(self, group: _Group) -> int | None:
        """The number of the next game of this board; those of others are kept for their groups."""
        board = self._shape(group.position)
        while not self._waiting.setdefault(board, deque()):
            number = self._numbers()
            if number is None:
                return None
            self._waiting.setdefault(self._shape(self._start(number)), deque()).append(number)
        return self._waiting[board].popleft()

    def _shape(self, position: Position) -> tuple[int, int]:
        return self.players[0].evaluator.encoding.shape(position)

    def _resume(self) -> None:
        """Put the games of the journal back; those that ended are given by the first `step`."""
        places = [(group, slot) for slots in zip(*(g.slots for g in self._groups), strict=True)
                  for group, slot in zip(self._groups, slots, strict=True)]  # fmt: skip
        for number, kept in self._journal or ():
            if kept.verdict is not None:
                slot = _Slot()
                self._begin_again(slot, number, kept.plies)
                assert slot.game is not None
                slot.game.verdict = kept.verdict
                self._give(slot.game)
                continue
            shape = self._shape(self._start(number))
            free = [slot for group, slot in places if slot.game is None and self._shape(group.position) == shape]
            if free:
                self._begin_again(free[0], number, kept.plies)

    def _begin_again(self, slot: _Slot, number: int, plies: Sequence[Ply]) -> None:
        """A game from the journal, where it stood."""
        self._begin(slot, number)
        assert slot.game is not None
        for ply in plies:
            slot.game.position = slot.game.position.play(ply.move)
            slot.game.plies.append(ply)
        drawn = max(0, len(plies) - len(slot.openings))  # moves after those that were given
        slot.random_plies = max(0, slot.random_plies - drawn)
        slot.openings = slot.openings[len(plies) :]

    def _give(self, game: SelfplayGame) -> None:
        """A game has ended."""
        self.games += 1
        self._ended.append(game)
        if self.recipe.games.fork and not game.number % 2:
            self._parents[game.number] = game

    # --- Searches -----------------------------------------------------------------------------------------------------

    def _player(self, game: SelfplayGame) -> Player:
        if not self.match:
            return self.players[0]
        side = self._game.letters.index(game.position.to_play)
        return self.players[(game.number + side) % 2]

    def _search(self, group: _Group, t: int) -> None:
        """Begin the search of the next move of slot t, or wake it with another game; asleep where there is none."""
        slot = group.slots[t]
        while True:
            if slot.game is None and not self._next_game(slot, group):
                group.forest.wanted[t] = 0
                self._idle = True
                return
            self._idle = False
            game = slot.game
            assert game is not None
            while slot.openings and game.verdict is None:
                self._play(slot, Ply(slot.openings.pop(0), OPENING))
            if game.verdict is None:
                break
            self._close(slot)
        ply = len(game.plies)
        slot.rng, slot.player = self._rng(game.number, ply, slot.rng), self._player(game)
        search = self.recipe.search
        if slot.random_plies > 0:
            slot.kind, visits = OPENING, 1
        elif not self.match and search.fast_visits and slot.rng.random() >= search.full_share:
            slot.kind, visits = FAST, search.fast_visits
        else:
            slot.kind, visits = FULL, self._visits
        parameters = self.full if slot.kind == FULL else self.fast
        player = self.players.index(slot.player), slot.player.generation
        known = group.forest.begin(t, game.position, parameters, visits, int(key_of(slot.salt, *player)))
        if known is not None:
            set_root(group.forest.trees[t], *known, slot.rng)

    def _start_batch(self, group: _Group) -> None:
        """Gather a batch for one of the group's players and submit it; players take turns."""
        present = {id(slot.player): slot.player for slot in group.slots if slot.game is not None and slot.player}
        if not present:
            return
        player = list(present.values())[group.turn % len(present)]
        group.turn += 1
        chosen = np.array([slot.player is player and slot.game is not None for slot in group.slots])
        forest, encoding = group.forest, player.evaluator.encoding
        count = forest.gather(chosen, group.symmetries)
        if not count:
            return
        batch = encoding.room(count, encoding.shape(group.position))
        leaves, turns = forest.batch.leaves, forest.batch.symmetries[:count]
        encoding.write(forest.batch.positions[:count], turns, batch)
        encoding.write_indices(leaves.moves[:count], leaves.counts[:count], turns, batch, leaves.indices[:count])
        group.pending = player.evaluator.submit(batch)
        self.evaluations += count

    def _finish(self, group: _Group) -> None:
        """Wait for the group's batch and add its answers."""
        if group.pending is None:
            return
        heads: Heads = group.pending.result()
        group.pending = None
        policy, answers = np.ascontiguousarray(heads.policy, dtype=np.float32), answers_of(heads)
        forest, leaves = group.forest, group.forest.batch.leaves
        forest.expand(policy, answers)
        for t in forest.fresh().tolist():
            row = forest.batch.rows[t]
            count = leaves.counts[row]
            logits = policy[row, leaves.indices[row, :count]][None]
            set_root(forest.trees[t], leaves.moves[row, :count], logits, answers[row], group.slots[t].rng)

    def _make_moves(self, group: _Group) -> None:
        """Make the moves whose searches are over, and begin the next ones."""
        for t in group.forest.done().tolist():
            slot = group.slots[t]
            self._play(slot, self._ply(group, t))
            if slot.game is not None and slot.game.verdict is not None:
                self._close(slot)
            self._search(group, t)
        for t in np.flatnonzero(group.forest.wanted == 0).tolist():
            self._search(group, t)
            if group.slots[t].game is None:
                break

    def _close(self, slot: _Slot) -> None:
        """Give the slot's game, and begin the one that waited for it."""
        game, slot.game = slot.game, None
        assert game is not None
        self._give(game)
        if (child := self._parked.pop(game.number, None)) is not None:
            self._begin(slot, child)

    def _ply(self, group: _Group, t: int) -> Ply:
        """The move that a finished search leads to."""
        slot, tree = group.slots[t], group.forest.trees[t]
        game, player = slot.game, slot.player
        assert game is not None
        assert player is not None
        chance = float(slot.rng.random())
        if slot.kind == OPENING:
            slot.random_plies -= 1
            move = self._draw_by_policy(group, t, chance)
            return Ply(tree.name(move, tree.side), OPENING, network=player.generation)
        value = root_value(tree)
        move = draw_move(tree, self._temperature(len(game.plies)), chance)
        found: tuple[NDArray[np.int16], NDArray[np.float32]] | tuple[()] = ()
        if slot.kind == FULL and not self.match:
            found = policy_target(tree)
        if player.resign is not None and not game.played_out and value < -player.resign:
            game.verdict = self._resigned(game)
        return Ply(tree.name(move, tree.side), slot.kind, value, player.generation, *found)

    def _temperature(self, ply: int) -> float:
        """Of the visits, at a ply."""
        games = self.recipe.games
        if games.halflife:
            share = 0.5 ** (ply / games.halflife)
            return float(games.late_temperature + (games.temperature - games.late_temperature) * share)
        return games.temperature if ply < games.temperature_plies else games.late_temperature

    def _draw_by_policy(self, group: _Group, t: int, chance: float) -> int:
        """A move of the network's policy, at the temperature of openings; a fork's not the one its parent made."""
        slot, tree = group.slots[t], group.forest.trees[t]
        root = tree.roots[0]
        moves = root["move"][: int(root["count"])]
        odds = np.asarray(root["prior"][: len(moves)], np.float64) ** (1 / self.recipe.games.opening_temperature)
        if slot.avoid and len(moves) > 1:
            odds[[tree.name(move, tree.side) == slot.avoid for move in moves.tolist()]] = 0
        slot.avoid = ""
        total = np.cumsum(odds)
        return int(moves[min(int(np.searchsorted(total, chance * total[-1], side="right")), len(moves) - 1)])

    # --- Moves and ends -----------------------------------------------------------------------------------------------

    def _play(self, slot: _Slot, ply: Ply) -> None:
        """Make a move, unless the side to move has resigned, and see whether the game is over."""
        game, playing = slot.game, self._game.playing
        assert game is not None
        if game.verdict is None:
            game.position = game.position.play(ply.move)
            game.plies.append(ply)
            self.moves += 1
            if self._journal is not None:
                self._journal.add(game.number, ply)
            limit = self.recipe.games.max_moves or playing.move_limit(game.start)
            if playing.stops(game.position) or len(game.plies) >= limit:
                game.verdict = playing.count(game.position)
            elif ply.kind != OPENING:
                game.verdict = playing.certain(game.position)
        if game.verdict is not None and self._journal is not None:
            self._journal.end(game.number, game.verdict)

    def _resigned(self, game: SelfplayGame) -> Verdict:
        winner = 1 - self._game.letters.index(game.position.to_play)
        return Verdict(winner, self._game.playing.result(winner, "R"), "resignation")


def search_parameters(recipe: LoopRecipe, evaluator: Evaluator) -> tuple[Parameters, Parameters]:
    """The numbers of full and of fast searches.

    Raises:
        BadRequest: as `check_search`.
    """
    full = check_search(recipe, evaluator.network)
    return full, full.changed(**_QUIET)
