"""REINFORCE: a policy learns from the games it wins and loses against a pool of its past selves.

Source: Silver et al., Nature 529 (2016), Methods, "Policy network: reinforcement learning", after Williams 1992. Each
step plays n games between the policy p and one opponent, drawn at random from the pool, and adds to the weights a
multiple of

    1/n Σ_games Σ_t ∇ log p(a_t | s_t) (z_t − b(s_t))

over the moves a_t that p made; z_t is the outcome for it, +1 or −1 (0 for a draw), and b a baseline. The pool begins
with the policy itself and takes in the policy of every `pool_every` steps.

Here p is the softmax over the moves it was asked about (`keima.training.reinforce.games`): the very distribution that
the move was drawn from, so that the gradient is that of the games played. A step's games follow from the weights, the
seed and the step, and past selves are kept in RUN/pool: a run that was killed goes on as if it had not been.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from keima.errors import BadRequest, KeimaError
from keima.games.game import GAMES
from keima.inference.evaluator import Evaluator
from keima.systems.encoding import Batch
from keima.systems.files.safetensors import read_safetensors, write_safetensors
from keima.systems.loss import LossTerms, Share, system_loss
from keima.systems.network import Network
from keima.systems.targets import A, TensorBatch, TrainingBatch
from keima.training.data.batches import BatchMaker
from keima.training.data.sampling import random_numbers
from keima.training.reinforce.games import (
    Ints,
    Played,
    Table,
    beginning,
    candidates,
    check_player,
    play_games,
    set_table,
)
from keima.training.run.evaluation import Autocast
from keima.training.run.preflight import World, load_network
from keima.training.run.recipe import Recipe, SelfplayRecipe

_OPPONENT = 13
"""Purpose of the random numbers that choose opponents."""
_CHUNK = 1024
"""Positions evaluated together."""
_FORBIDDEN = -1e9


@dataclass(frozen=True, eq=False, kw_only=True)
class ReinforceBatch(TrainingBatch[A]):
    """The moves the learner made in some games.

    Attributes:
        advantage: float32 [N], the outcome for the learner less the baseline.
        allowed: bool [N, A], the moves it was asked about; `policy` is the one it made.
        outcome: float32 [games], +1, 0 or −1 for the learner.
    """

    advantage: A
    allowed: A
    outcome: A


class PolicyGradient:
    """The loss whose gradient is REINFORCE's, upside down.

    Terms: `policy`, −1/n Σ_games Σ_t (z_t − b) log p(a_t | s_t), whose value says little; `entropy`, nats a move, and
    `won`, the share of the games won, draws by half, which weigh nothing.
    """

    def __init__(self, network: Network, temperature: float) -> None:
        self._logits = system_loss(network).policy
        self._temperature = temperature

    def __call__(self, outputs: Any, batch: TensorBatch, share: Share | None = None) -> LossTerms:
        """The loss of a `ReinforceBatch` of tensors. Every process has as many games, so nothing is to be shared."""
        assert isinstance(batch, ReinforceBatch)
        assert batch.policy is not None
        logits = self._logits(outputs).float() / self._temperature
        log_policy = F.log_softmax(torch.where(batch.allowed, logits, _FORBIDDEN), dim=1)
        made = log_policy.gather(1, batch.policy[:, None])[:, 0]
        games = len(batch.outcome)
        loss = -(batch.advantage * made).sum() / games
        entropy = -(log_policy.exp() * log_policy).sum(dim=1).mean()
        won = ((1 + batch.outcome) / 2).mean()
        count = made.new_tensor(float(games))
        named = {"policy": loss, "entropy": entropy.detach(), "won": won}
        return LossTerms(loss, named, dict.fromkeys(named, count))


class TorchPlayer:
    """A network as it stands now, in PyTorch: no compilation between steps."""

    def __init__(self, network: Network, autocast: Autocast) -> None:
        self.network = network
        self._autocast = autocast

    @torch.no_grad()
    def logits(self, batch: Batch) -> NDArray[np.float32]:
        """See `Player`."""
        device, was_training = next(self.network.parameters()).device, self.network.training
        policies = []
        self.network.eval()
        try:
            for first in range(0, batch.size, _CHUNK):
                part = batch[first : first + _CHUNK]
                with self._autocast():
                    outputs = self.network(**{name: torch.from_numpy(a).to(device) for name, a in part.inputs.items()})
                policies.append(self.network.answers(outputs, part.context).policy)
        finally:
            self.network.train(was_training)
        return np.concatenate(policies)


class Pool:
    """Past selves of a network, the first one what the run began with; kept in a folder by a process that `writes`."""

    def __init__(self, folder: Path, network: Network, every: int, writes: bool) -> None:
        self._folder, self._network, self._every, self._writes = folder, network, every, writes
        self._states: dict[int, Mapping[str, Tensor]] = {}

    def take_in(self, step: int) -> None:
        """Remember the network as it is before this step, if it is one of those kept.

        Raises:
            BadRequest: one of an earlier step was kept and cannot be read.
        """
        if step % self._every == 0:
            state = self._network.state_dict()
            self._states[step] = {name: tensor.detach().cpu().clone() for name, tensor in state.items()}
            if self._writes:
                self._folder.mkdir(parents=True, exist_ok=True)
                write_safetensors(self._network, self._path(step), self._states[step])
        for earlier in range(0, step, self._every):
            if earlier not in self._states:
                try:
                    self._states[earlier] = read_safetensors(self._path(earlier)).state_dict()
                except (KeimaError, OSError) as error:
                    raise BadRequest(f"a past self is lost: {error}; begin again in another folder") from error

    def put_on(self, network: Network, step: int, chance: int) -> int:
        """Give a network the weights of one of the selves up to this step; of which step they are."""
        chosen = (chance % (step // self._every + 1)) * self._every
        network.load_state_dict(self._states[chosen])
        return chosen

    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step:09d}.safetensors"


class ReinforceBatches:
    """Batches of the moves that each step's games are made of, `accumulate` a step; each process plays its share.

    Attributes:
        positions: games of a step.

    Raises:
        BadRequest: a network that cannot play so, a table that cannot be, a baseline that cannot be read.
    """

    def __init__(self, recipe: Recipe, network: Network, folder: Path, world: World) -> None:
        options = recipe.reinforce
        if options is None:
            raise BadRequest("the recipe has no [reinforce]")
        self.table = open_table(recipe, network)
        self.positions = recipe.run.batch_size
        self._parts = recipe.run.accumulate
        self._count = recipe.run.batch_size // world.size
        self._rank, self._seed, self._symmetries = world.rank, recipe.run.seed, recipe.data.symmetries
        self._network, self._opponent = network, copy.deepcopy(network).to(world.device)
        autocast = autocast_of(recipe, world.device)
        self._players = TorchPlayer(network, autocast), TorchPlayer(self._opponent, autocast)
        self._pool = Pool(folder, network, options.pool_every, writes=world.rank == 0)
        self._baseline = open_baseline(recipe, network)
        encoding = network.encoding
        batch = encoding.room(1, encoding.shape(self.table.begin))
        encoding.write(beginning(self.table, 1), np.zeros(1, np.int64), batch)
        self._moves = int(self._players[0].logits(batch).shape[1]) - (not network.has_pass)  # A
        self._next = 0
        self._played: Played | None = None

    def seek(self, step: int) -> None:
        """Let part number `step` come next, the first of an optimizer step."""
        self._next, self._played = step, None

    def close(self) -> None:
        """Nothing to stop."""

    def __next__(self) -> ReinforceBatch[NDArray[Any]]:
        """The next part of a step's games; the first one of a step plays them all."""
        step, part = divmod(self._next, self._parts)
        if part == 0 or self._played is None:
            self._pool.take_in(step)
            chance = int(random_numbers(self._seed, _OPPONENT, step, 1)[0] >> np.uint64(1))
            self._pool.put_on(self._opponent, step, chance)
            first = step * self.positions + self._rank * self._count
            numbers = np.arange(first, first + self._count, dtype=np.int64)
            self._played = play_games(self._players, self.table, numbers, self._seed, self._symmetries)
        size = self._count // self._parts
        batch = self._learned(self._played, np.arange(part * size, (part + 1) * size))
        self._next += 1
        return batch

    def _learned(self, played: Played, chosen: Ints) -> ReinforceBatch[NDArray[Any]]:
        """What the first player did in these games, and what came of it."""
        rows, turns = moves_of_first(played, chosen)
        made = BatchMaker(played.games, self._network.encoding, {"policy"}).make(rows, turns, played.symmetry[rows])
        allowed = self._allowed(played, rows, turns, Batch(dict(made.inputs), dict(made.context)))
        outcome = outcomes(played)
        advantage = (outcome[rows] - self._baseline(played, rows, turns)).astype(np.float32)
        free = allowed.sum(axis=1) > 1  # nothing is to be learned where nothing could be chosen
        return ReinforceBatch(
            inputs={name: array[free] for name, array in made.inputs.items()},
            policy=None if made.policy is None else made.policy[free],
            advantage=advantage[free],
            allowed=allowed[free],
            outcome=outcome[chosen].astype(np.float32),
        )

    def _allowed(self, played: Played, rows: Ints, turns: Ints, batch: Batch) -> NDArray[np.bool_]:
        """The moves the policy was asked about: bool [N, A]; `batch` holds the positions as encoded."""
        encoding = self._network.encoding
        records = np.zeros(_CHUNK, GAMES[encoding.game].kernels.dtype)
        allowed = np.zeros((len(rows), self._moves), np.bool_)
        for first in range(0, len(rows), _CHUNK):
            part = slice(first, first + _CHUNK)
            here = records[: len(rows[part])]
            played.games.replay(rows[part], turns[part], here)
            symmetries = played.symmetry[rows[part]]
            _, counts, indices = candidates(self.table.rules, self._network, here, symmetries, batch[part])
            listed, places = np.nonzero((np.arange(indices.shape[1]) < counts[:, None]) & (indices < self._moves))
            allowed[part][listed, indices[listed, places]] = True
        return allowed


def open_table(recipe: Recipe, network: Network) -> Table:
    """The table of a recipe's games. Raises BadRequest where it cannot be, or the network cannot play them."""
    try:
        check_player(network)
    except BadRequest as error:
        raise recipe.error("selfplay" if recipe.selfplay is not None else "reinforce", error.message) from error
    try:
        return set_table(recipe.selfplay or SelfplayRecipe(), network)
    except BadRequest as error:
        raise recipe.error(f"selfplay.{error.place}", error.message) from error


def autocast_of(recipe: Recipe, device: str) -> Autocast:
    """The recipe's precision as a context for PyTorch."""
    kinds = {"bf16": torch.bfloat16, "f16": torch.float16}
    kind = kinds.get(recipe.run.precision)
    return partial(torch.autocast, device, dtype=kind or torch.bfloat16, enabled=kind is not None)


def moves_of_first(played: Played, chosen: Ints) -> tuple[Ints, Ints]:
    """The first player's moves in these games: of each its game, and how many were made before it; int64 [N]."""
    lengths = np.diff(played.games.start)[chosen]
    games = np.repeat(chosen, lengths)
    turns = np.concatenate([np.arange(length) for length in lengths.tolist()]).astype(np.int64)
    own = (turns % 2 == 0) == played.first_black[games]
    return games[own], turns[own]


def outcomes(played: Played) -> NDArray[np.float64]:
    """How each game ended for the first player: +1, 0 or −1; float64 [G]."""
    return played.games.winner.astype(np.float64) * np.where(played.first_black, 1, -1)


# --- Baselines --------------------------------------------------------------------------------------------------------

Baseline = Callable[[Played, Ints, Ints], NDArray[Any]]
"""(games, the moves' games, moves made before each) → what the first player could expect, [N]."""


def open_baseline(recipe: Recipe, network: Network) -> Baseline:
    """The recipe's baseline.

    Raises:
        BadRequest: a file that cannot be read, or a network without a value or of another game or size.
    """
    name = recipe.reinforce.baseline if recipe.reinforce is not None else "none"
    if name == "none":
        return lambda _played, rows, _turns: np.zeros(len(rows))
    if name == "mean":
        return lambda played, rows, _turns: mean_of_others(outcomes(played), played.first_black)[rows]
    judge = load_network(recipe, "reinforce.baseline", name)
    game = network.encoding.game
    if judge.encoding.game != game or "value" not in judge.output_names or "metadata" in judge.input_names:
        raise recipe.error("reinforce.baseline", f"{name} has no value for positions of {GAMES[game].title}")
    sizes = [getattr(each.encoding, "board_size", None) for each in (judge, network)]
    if None not in sizes and sizes[0] != sizes[1]:
        raise recipe.error("reinforce.baseline", f"{name} is for boards of {sizes[0]}, the network of {sizes[1]}")
    evaluator = Evaluator(judge)

    def expected(played: Played, rows: Ints, turns: Ints) -> NDArray[Any]:
        maker = BatchMaker(played.games, judge.encoding)
        values = []
        for first in range(0, len(rows), _CHUNK):
            part = slice(first, first + _CHUNK)
            heads = evaluator.infer(maker.encode(rows[part], turns[part], played.symmetry[rows[part]]))
            values.append(np.asarray(heads.value))
        return np.concatenate(values)

    return expected


def mean_of_others(outcome: NDArray[np.float64], first_black: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean outcome of the other games in which the player had the same colour; 0 where there is none. Unbiased."""
    mean = np.zeros(len(outcome))
    for colour in (True, False):
        same = first_black == colour
        mean[same] = (outcome[same].sum() - outcome[same]) / max(int(same.sum()) - 1, 1)
    return mean
