"""The numbers of a search, in groups. One search serves the whole family; what differs between its members are these.

Each system's own stand in its `preset.py` as `PRESET`, with their sources. `keima.search.puct` has the formula most
of them are for. Sources there: "AG" Silver et al., Nature 529 (2016); "AGZ" Nature 550 (2017); "AZ" Science 362 (2018)
with its pseudocode; "KataGo" v1.17.2, the defaults of its GTP engine, `cpp/program/setup.cpp` and `cpp/search/`; "Lc0"
v0.33-dev, `src/search/classic/params.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import IntEnum

import numpy as np

from keima.errors import BadRequest
from keima.jit import Records
from keima.plain import Data


class Choice(IntEnum):
    """Rules of the final choice."""

    VISITS = 0  # the most visits
    LCB = 1  # KataGo's lower confidence bound
    PROVEN = 2  # Lc0's: proven results, then visits
    GUMBEL = 3  # of the moves that sequential halving has left, the one with the best g + ln P + σ(q)


@dataclass(frozen=True)
class Puct:
    """Exploration: c_puct and what it is multiplied by."""

    cpuct: float = 1.25  # exploration constant at few visits
    cpuct_factor: float = 1.0  # how fast it grows with the logarithm of the visits
    cpuct_base: float = 19652.0  # visits from which on it grows
    sqrt_floor: float = 0.0  # the least n under the root
    sqrt_offset: float = 0.0  # added to n under the root, so that policy counts before the first visit
    stdev_scale: float = 0.0  # how strongly the spread of utilities below a position scales c
    stdev_prior: float = 0.4  # the standard deviation expected of utilities
    stdev_prior_weight: float = 2.0  # visits that expectation is worth


@dataclass(frozen=True)
class FirstPlayUrgency:
    """The utility of moves not visited yet."""

    fpu_absolute: bool = True  # it is `fpu_value`; otherwise the parent's, less a reduction
    fpu_value: float = 0.0
    fpu_reduction: float = 0.0  # what they lack, times √(share of policy visited)
    root_fpu_reduction: float = 0.0  # the same at the root
    fpu_policy_power: float = 0.0  # above 0: the parent's fades in from the network's own, as (share visited)^power


@dataclass(frozen=True)
class VirtualLoss:
    """Descents under way."""

    virtual_loss: float = 1.0  # visits each counts as
    virtual_loss_value: bool = True  # they count as losses too, otherwise only as visits


@dataclass(frozen=True)
class Priors:
    """The policy inside the tree."""

    policy_temperature: float = 1.0  # of the softmax
    edge_cap: int = 80  # moves kept of a position, the likeliest; the root keeps all


@dataclass(frozen=True)
class Root:
    """The root's policy and evaluation."""

    root_policy_temperature: float = 1.0  # of the softmax
    root_noise: float = 0.0  # share ε of Dirichlet noise in the policy (self-play; 0 in games)
    dirichlet_total: float = 10.83  # sum of the Dirichlet distribution's concentrations over the legal moves
    root_symmetries: int = 1  # symmetries the evaluation is averaged over
    forced_playouts: float = 0.0  # k: a move once visited gets √(k · P · Σ N) visits at least (self-play; KataGo 2)


@dataclass(frozen=True)
class Gumbel:
    """Gumbel AlphaZero in place of PUCT (`keima.search.gumbel`)."""

    gumbel_considered: int = 0  # m: moves considered at the root; 0: PUCT selects
    gumbel_value_scale: float = 0.1  # c_scale of σ(q) = (c_visit + max N) · c_scale · q
    gumbel_visit_offset: float = 50.0  # c_visit
    gumbel_noise: float = 1.0  # scale of the noise at the root; 0 in matches


@dataclass(frozen=True)
class Utility:
    """What the search maximises beside win − loss."""

    # of a draw (Go: no result) for White, or the first side where there is no White; the other side's is less than
    # nothing, by as much
    draw_score: float = 0.0
    static_score: float = 0.0  # weight of the score's utility about an even game
    dynamic_score: float = 0.0  # weight of the score's utility about the expected score
    dynamic_center_zero: float = 0.2  # how far that centre is drawn towards an even game
    dynamic_scale: float = 0.75  # width of that curve, in sides of the board


@dataclass(frozen=True)
class MovesLeft:
    """Lc0's liking for quick wins and slow losses."""

    moves_left_max: float = 0.0  # greatest effect of moves left on Q
    moves_left_threshold: float = 0.8  # |win − loss| of the parent above which they count
    moves_left_slope: float = 0.0  # effect a ply; 0 is off
    moves_left_constant: float = 0.0  # of the quadratic in |Q| it is multiplied by
    moves_left_linear: float = 0.0
    moves_left_square: float = 0.0


@dataclass(frozen=True)
class Averages:
    """KataGo's averages, in which good moves count for more; not with playouts."""

    value_weight_exponent: float = 0.0  # how strongly averages favour the moves that look better
    noise_prune_scale: float = 0.0  # gap of utility at which most visits beyond a bad move's share leave averages


@dataclass(frozen=True)
class Solver:
    """Results that are known."""

    solve: bool = True  # proven wins, draws and losses are passed up the tree, and heeded by the final choice
    twofold_draws: bool = False  # a position met twice within the search is a draw


@dataclass(frozen=True)
class FinalChoice:
    """The move to play."""

    choice: Choice = Choice.VISITS
    lcb_stdevs: float = 5.0  # standard deviations below the mean at the lower confidence bound
    lcb_min_visits: float = 0.15  # least share of the most visits with which a move may win by its bound


@dataclass(frozen=True)
class Playouts:
    """AlphaGo's playouts."""

    rollout_weight: float = 0.0  # λ: their share in a leaf's value, the rest is the value network's
    expansion_visits: int = 1  # visits of a leaf before the network is asked; until then playouts alone tell its value


@dataclass(frozen=True)
class Batches:
    """Leaves evaluated together."""

    in_flight_share: float = 1 / 12  # leaves under way at once, as a share of the visits made so far
    min_in_flight: int = 1  # at least so many
    random_symmetry: bool = True  # each is evaluated under a random symmetry
    cache_history: int = 8  # how many earlier moves must agree for two positions to share one evaluation


Number = float | int | bool


@dataclass(frozen=True)
class Parameters:
    """Every number of a search. What is 0 is off; the defaults are the plain PUCT of AlphaZero.

    A number is known by its own name everywhere (`Search(evaluator, cpuct=1.2)`): names are unique over the groups.
    """

    puct: Puct = Puct()
    first_play_urgency: FirstPlayUrgency = FirstPlayUrgency()
    virtual_loss: VirtualLoss = VirtualLoss()
    priors: Priors = Priors()
    root: Root = Root()
    gumbel: Gumbel = Gumbel()
    utility: Utility = Utility()
    moves_left: MovesLeft = MovesLeft()
    averages: Averages = Averages()
    solver: Solver = Solver()
    final_choice: FinalChoice = FinalChoice()
    playouts: Playouts = Playouts()
    batches: Batches = Batches()
    # options of the encoding (`Encoding.bind`) inside the tree, where it takes them
    leaf_options: Mapping[str, float] = field(default_factory=dict)
    # the same at the root; by name each has "root_" before it
    root_options: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (group, kind) in NUMBERS.items():
            _check_kind(name, getattr(getattr(self, group), name), kind)
        for name in ("policy_temperature", "root_policy_temperature", "cpuct_base", "stdev_prior", "dynamic_scale"):
            if self[name] <= 0:
                raise BadRequest(f"search parameter {name} must be above 0, not {self[name]}")
        for name, (least, most) in _RANGES.items():
            if not least <= self[name] <= most:
                raise BadRequest(f"search parameter {name} must be from {least} to {most}, not {self[name]}")
        averages = max(self.averages.value_weight_exponent, self.averages.noise_prune_scale)
        if self.playouts.rollout_weight > 0 and averages > 0:
            raise BadRequest("a search with playouts (rollout_weight) cannot favour good moves in its averages as well")

    def __getitem__(self, name: str) -> Number:
        """A number by its name."""
        if name in NUMBERS:
            number: Number = getattr(getattr(self, NUMBERS[name][0]), name)
            return number
        if name in self.leaf_options:
            return self.leaf_options[name]
        return self.root_options.get(name.removeprefix("root_"), 0.0)

    def changed(self, **numbers: Number) -> Parameters:
        """These parameters with some other numbers; raises BadRequest for an unknown name or a number out of range."""
        groups: dict[str, dict[str, Number]] = {}
        leaf, root = dict(self.leaf_options), dict(self.root_options)
        for name, number in numbers.items():
            option = name.removeprefix("root_")
            if name in NUMBERS:
                group, kind = NUMBERS[name]
                groups.setdefault(group, {})[name] = _converted(name, number, kind)
            elif name in leaf:
                leaf[name] = float(_converted(name, number, float))
            elif option != name and option in root:
                root[option] = float(_converted(name, number, float))
            else:
                known = ", ".join([*NUMBERS, *leaf, *(f"root_{option}" for option in root)])
                raise BadRequest(f"unknown search parameter {name!r}; choose among {known}")
        changes: Data = {group: replace(getattr(self, group), **those) for group, those in groups.items()}
        return replace(self, leaf_options=leaf, root_options=root, **changes)

    def record(self) -> Records:
        """The numbers as one `RECORD`, what the kernels read."""
        return np.array([tuple(float(self[name]) for name in NUMBERS)], RECORD)


_KINDS: dict[str, type[Number]] = {"float": float, "int": int, "bool": bool, "Choice": Choice}
_GROUPS: Data = {each.name: each.default for each in fields(Parameters) if is_dataclass(each.default)}
NUMBERS: dict[str, tuple[str, type[Number]]] = {
    number.name: (group, _KINDS[str(number.type)]) for group, default in _GROUPS.items() for number in fields(default)
}
"""Every number's name → its group and kind."""

_RANGES = {
    "root_noise": (0, 1),
    "rollout_weight": (0, 1),
    "root_symmetries": (1, 8),
    "edge_cap": (1, 400),
    "cache_history": (0, 8),
    "expansion_visits": (1, 1 << 30),
    "value_weight_exponent": (0, 1),
    "noise_prune_scale": (0, 10),
    "forced_playouts": (0, 100),
    "gumbel_considered": (0, 400),
    "gumbel_value_scale": (0, 1000),
    "gumbel_visit_offset": (0, 100_000),
    "gumbel_noise": (0, 10),
}
_WANTED: dict[type[Number], str] = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    Choice: " or ".join(f"{rule.value} ({rule.name.lower()})" for rule in Choice),
}
_CODES: dict[type[Number], tuple[int, ...]] = {bool: (0, 1), Choice: tuple(Choice)}

RECORD = np.dtype([(name, np.float64) for name in NUMBERS])  # the numbers as kernels read them


def _check_kind(name: str, number: object, kind: type[Number]) -> None:
    """Raise unless a number is of its kind."""
    if kind is float:
        right = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    else:
        right = type(number) is kind
    if not right:
        raise BadRequest(f"search parameter {name} must be {_WANTED[kind]}, not {number!r}")


def _converted(name: str, number: object, kind: type[Number]) -> Number:
    """A number as its kind: 0 and 1 for false and true, whole numbers however written, a rule by its code."""
    if kind is float:
        _check_kind(name, number, kind)
    elif isinstance(number, int | float) and (type(number) is kind or number in _CODES.get(kind, (number // 1,))):
        return kind(number)
    else:
        raise BadRequest(f"search parameter {name} must be {_WANTED[kind]}, not {number!r}")
    return number  # type: ignore[return-value]
