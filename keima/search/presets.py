"""The numbers of each system's search, and where each comes from.

One search serves the whole family; what differs between AlphaGo, AlphaGo Zero, KataGo and Lc0 are the numbers below.
A move a of a position s is chosen in the tree by

    Q(s, a) + c(s) · P(s, a) · √max(n, sqrt_floor) + sqrt_offset) / (1 + N(s, a))

with N visits of the move, n visits of all moves, P the policy, Q the mean utility for the side to move, and

    c(s) = (cpuct + cpuct_factor · ln((n + cpuct_base) / cpuct_base)) · stdev factor

A move not visited yet has the *first-play urgency* in place of Q. Utility is win − loss (a draw counts `draw_score`),
and for KataGo points squashed into a bounded number, for Lc0 a liking for quick wins.

Sources: "AG" Silver et al., Nature 529 (2016); "AGZ" Nature 550 (2017); "AZ" Science 362 (2018) with its pseudocode;
"KataGo" v1.17.2, the defaults of its GTP engine, `cpp/program/setup.cpp` and `cpp/search/`; "Lc0" v0.33-dev,
`src/search/classic/params.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest

CHOOSE_BY_VISITS, CHOOSE_BY_LCB, CHOOSE_BY_PROOF = 0.0, 1.0, 2.0
"""Rules of the final choice: most visits; KataGo's lower confidence bound; Lc0's proven results, then visits."""


@dataclass(frozen=True)
class Parameters:
    """Every number of a search. What is 0 is off; the defaults are the plain PUCT of AlphaZero.

    Attributes:
        cpuct: exploration constant at few visits.
        cpuct_factor: how fast it grows with the logarithm of the visits.
        cpuct_base: visits from which on it grows.
        sqrt_floor: the least n under the root.
        sqrt_offset: added to n under the root, so that policy counts before the first visit.
        fpu_absolute: 1: unvisited moves have the utility `fpu_value`; 0: the parent's, less a reduction.
        fpu_value: see `fpu_absolute`.
        fpu_reduction: what unvisited moves lack, times √(share of policy visited).
        root_fpu_reduction: the same at the root.
        fpu_policy_power: above 0: the parent's utility fades in from the network's own, as (share of policy visited)^p.
        stdev_scale: how strongly the spread of utilities below a position scales c.
        stdev_prior: the standard deviation expected of utilities.
        stdev_prior_weight: visits that expectation is worth.
        virtual_loss: visits every descent under way counts as.
        virtual_loss_value: 1: they count as losses too; 0: only as visits.
        policy_temperature: of the softmax inside the tree.
        root_policy_temperature: of the softmax at the root.
        root_noise: share ε of Dirichlet noise in the root's policy (self-play; 0 in games).
        dirichlet_total: sum of the Dirichlet distribution's concentrations over the legal moves.
        draw_score: utility of a draw for the side to move.
        static_score: weight of the score's utility about an even game.
        dynamic_score: weight of the score's utility about the expected score.
        dynamic_center_zero: how far that centre is drawn towards an even game.
        dynamic_scale: width of that curve, in sides of the board.
        moves_left_max: greatest effect of moves left on Q.
        moves_left_threshold: |Q| of the parent above which they count.
        moves_left_slope: effect a ply.
        moves_left_constant: of the quadratic in |Q| it is multiplied by,
        moves_left_linear: likewise,
        moves_left_square: likewise.
        value_weight_exponent: how strongly averages favour the moves that look better (KataGo); not with playouts.
        noise_prune_scale: gap of utility at which most visits beyond a bad move's share leave averages; likewise.
        solve: 1: proven wins, draws and losses are passed up the tree.
        twofold_draws: 1: a position met twice within the search is a draw.
        choice: rule of the final choice, `CHOOSE_BY_…`.
        lcb_stdevs: standard deviations below the mean at the lower confidence bound.
        lcb_min_visits: least share of the most visits with which a move may win by its bound.
        root_symmetries: symmetries the root's evaluation is averaged over.
        random_symmetry: 1: leaves are evaluated under random symmetries.
        policy_optimism: share of the optimistic policy inside the tree (networks that have one).
        root_policy_optimism: the same at the root.
        cache_history: how many earlier moves must agree for two positions to share one evaluation.
        edge_cap: moves kept of a position inside the tree, the likeliest; the root keeps all.
        rollout_weight: λ: share of playouts in a leaf's value, the rest is the value network's.
        expansion_visits: visits of a leaf before its moves are evaluated by the policy.
        in_flight_share: leaves under way at once, as a share of the visits made so far (at least `min_in_flight`).
        min_in_flight: see there.
    """

    cpuct: float = 1.25
    cpuct_factor: float = 1.0
    cpuct_base: float = 19652.0
    sqrt_floor: float = 0.0
    sqrt_offset: float = 0.0
    fpu_absolute: float = 1.0
    fpu_value: float = 0.0
    fpu_reduction: float = 0.0
    root_fpu_reduction: float = 0.0
    fpu_policy_power: float = 0.0
    stdev_scale: float = 0.0
    stdev_prior: float = 0.4
    stdev_prior_weight: float = 2.0
    virtual_loss: float = 1.0
    virtual_loss_value: float = 1.0
    policy_temperature: float = 1.0
    root_policy_temperature: float = 1.0
    root_noise: float = 0.0
    dirichlet_total: float = 10.83
    draw_score: float = 0.0
    static_score: float = 0.0
    dynamic_score: float = 0.0
    dynamic_center_zero: float = 0.2
    dynamic_scale: float = 0.75
    moves_left_max: float = 0.0
    moves_left_threshold: float = 0.8
    moves_left_slope: float = 0.0
    moves_left_constant: float = 0.0
    moves_left_linear: float = 0.0
    moves_left_square: float = 0.0
    value_weight_exponent: float = 0.0
    noise_prune_scale: float = 0.0
    solve: float = 1.0
    twofold_draws: float = 0.0
    choice: float = CHOOSE_BY_VISITS
    lcb_stdevs: float = 5.0
    lcb_min_visits: float = 0.15
    root_symmetries: float = 1.0
    random_symmetry: float = 1.0
    policy_optimism: float = 0.0
    root_policy_optimism: float = 0.0
    cache_history: float = 8.0
    edge_cap: float = 80.0
    rollout_weight: float = 0.0
    expansion_visits: float = 1.0
    in_flight_share: float = 1 / 12
    min_in_flight: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            number = getattr(self, field.name)
            if isinstance(number, bool) or not isinstance(number, int | float) or not np.isfinite(number):
                raise BadRequest(f"search parameter {field.name} must be a number, not {number!r}")
        for name in ("policy_temperature", "root_policy_temperature", "cpuct_base", "stdev_prior", "dynamic_scale"):
            if getattr(self, name) <= 0:
                raise BadRequest(f"search parameter {name} must be above 0, not {getattr(self, name)}")
        for name in ("root_noise", "rollout_weight", "policy_optimism", "root_policy_optimism"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadRequest(f"search parameter {name} must be from 0 to 1, not {getattr(self, name)}")
        if min(self.value_weight_exponent, self.noise_prune_scale) < 0:
            raise BadRequest("value_weight_exponent and noise_prune_scale must be at least 0")
        if self.rollout_weight > 0 and max(self.value_weight_exponent, self.noise_prune_scale) > 0:
            raise BadRequest("a search with playouts (rollout_weight) cannot weigh moves by value as well")
        if not 1 <= self.root_symmetries <= 8 or not 1 <= self.edge_cap <= 400 or not 0 <= self.cache_history <= 8:
            raise BadRequest("root_symmetries is 1 to 8, edge_cap 1 to 400, cache_history 0 to 8")

    def record(self) -> NDArray[Any]:
        """The numbers as one `PARAMETERS` record, what the kernels read."""
        return np.array([tuple(float(getattr(self, field.name)) for field in fields(self))], PARAMETERS)


PARAMETERS = np.dtype([(field.name, np.float64) for field in fields(Parameters)])

PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "alphago": Parameters(
            cpuct=5.0,  # AG Extended Data Table 5: c_puct 5
            cpuct_factor=0.0,  # AG: constant
            fpu_absolute=1.0,  # AG Methods: Q of an edge without visits is 0
            virtual_loss=3.0,  # AG Extended Data Table 5: n_vl 3
            virtual_loss_value=1.0,  # AG Methods: as if n_vl games had been lost
            policy_temperature=1.5,  # AG Extended Data Table 5: β 0.67, its reciprocal
            root_policy_temperature=1.5,  # the same
            solve=0.0,  # AG knows none
            rollout_weight=0.5,  # AG Extended Data Table 5: λ 0.5
            expansion_visits=40.0,  # AG Extended Data Table 5: n_thr 40
            random_symmetry=1.0,  # AG Methods: one of eight at random for each leaf
        ),
        "alphago-zero": Parameters(
            cpuct=1.25,  # AZ pseudocode: pb_c_init; AGZ gives no number
            cpuct_factor=1.0,  # AZ pseudocode
            cpuct_base=19652.0,  # AZ pseudocode: pb_c_base
            fpu_absolute=1.0,  # AGZ Methods: Q is initialised to 0
            virtual_loss=1.0,  # AGZ Methods: virtual loss, without a number
            virtual_loss_value=1.0,
            root_noise=0.0,  # AGZ Methods: ε 0.25, in self-play only
            dirichlet_total=10.83,  # AGZ: 0.03 each of 361 points; kept as a sum, so it scales with the board as in AZ
            solve=0.0,  # AGZ knows none
            random_symmetry=1.0,  # AGZ Methods: a random dihedral symmetry for each leaf
        ),
        "katago": Parameters(
            cpuct=1.0,  # KataGo cpuctExploration
            cpuct_factor=0.45,  # cpuctExplorationLog
            cpuct_base=500.0,  # cpuctExplorationBase
            sqrt_offset=0.01,  # searchexplorehelpers.cpp, TOTALCHILDWEIGHT_PUCT_OFFSET
            fpu_absolute=0.0,
            fpu_reduction=0.2,  # fpuReductionMax
            root_fpu_reduction=0.1,  # rootFpuReductionMax
            fpu_policy_power=2.0,  # fpuParentWeightByVisitedPolicyPow
            stdev_scale=0.85,  # cpuctUtilityStdevScale
            stdev_prior=0.4,  # cpuctUtilityStdevPrior
            stdev_prior_weight=2.0,  # cpuctUtilityStdevPriorWeight
            virtual_loss=1.0,  # numVirtualLossesPerThread
            virtual_loss_value=1.0,  # searchexplorehelpers.cpp: towards the worst utility
            draw_score=0.0,  # noResultUtilityForWhite
            static_score=0.1,  # staticScoreUtilityFactor
            dynamic_score=0.3,  # dynamicScoreUtilityFactor
            dynamic_center_zero=0.2,  # dynamicScoreCenterZeroWeight
            dynamic_scale=0.75,  # dynamicScoreCenterScale
            value_weight_exponent=0.25,  # valueWeightExponent
            noise_prune_scale=0.15,  # noisePruneUtilityScale, with useNoisePruning
            solve=0.0,  # KataGo proves nothing
            choice=CHOOSE_BY_LCB,  # useLcbForSelection
            lcb_stdevs=5.0,  # lcbStdevs
            lcb_min_visits=0.15,  # minVisitPropForLCB
            root_symmetries=1.0,  # rootNumSymmetriesToSample
            policy_optimism=1.0,  # policyOptimism
            root_policy_optimism=0.2,  # rootPolicyOptimism
            cache_history=0.0,  # nninputs.cpp, getHash: evaluations are shared across histories
            in_flight_share=1 / 32,  # ours: 1/12 costs about 90 Elo at 100 visits on 9×9 (docs/strength.md)
        ),
        "lc0": Parameters(
            cpuct=1.745,  # CPuct
            cpuct_factor=3.894,  # CPuctFactor
            cpuct_base=38739.0,  # CPuctBase
            sqrt_floor=1.0,  # search.cc: √max(visits of the children, 1)
            fpu_absolute=0.0,  # FpuStrategy reduction; at the root the same
            fpu_reduction=0.330,  # FpuValue
            root_fpu_reduction=0.330,
            virtual_loss=1.0,  # search.cc: N in flight
            virtual_loss_value=0.0,  # search.cc: it leaves Q alone
            policy_temperature=1.359,  # PolicyTemperature
            root_policy_temperature=1.359,
            dirichlet_total=10.0,  # NoiseAlpha 0.3 at about 33 legal moves (off unless asked for: NoiseEpsilon 0)
            draw_score=0.0,  # DrawScore
            moves_left_max=0.0345,  # MovesLeftMaxEffect
            moves_left_threshold=0.8,  # MovesLeftThreshold
            moves_left_slope=0.0027,  # MovesLeftSlope
            moves_left_constant=0.0,  # MovesLeftConstantFactor
            moves_left_linear=1.6521,  # MovesLeftScaledFactor
            moves_left_square=-0.6521,  # MovesLeftQuadraticFactor
            solve=1.0,  # StickyEndgames
            twofold_draws=1.0,  # TwoFoldDraws
            choice=CHOOSE_BY_PROOF,  # search.cc, GetBestChildrenNoTemperature
            random_symmetry=0.0,
            cache_history=0.0,  # CacheHistoryLength
            edge_cap=256.0,  # every move: a mate must not be cut off
            min_in_flight=2.0,  # ours: two cores have work from the first visit on
        ),
    }
)
"""The presets by name."""

_PRESET_OF = {
    "katago": "katago",
    "katago-guide": "katago",
    "lc0": "lc0",
    "alphago-zero": "alphago-zero",
    "leela-zero": "alphago-zero",
    "alphago": "alphago",
}


def find_preset(preset: str | Parameters, system: str, overrides: Mapping[str, float]) -> Parameters:
    """The parameters of a search.

    Args:
        preset: a name in `PRESETS`, "auto" for the one of the network's system, or parameters.
        system: `Network.system`.
        overrides: parameters by name, in place of the preset's.

    Raises:
        BadRequest: an unknown preset or parameter, or a number out of range.
    """
    if isinstance(preset, str):
        name = _PRESET_OF.get(system, "alphago-zero") if preset == "auto" else preset
        if name not in PRESETS:
            raise BadRequest(f"unknown preset {preset!r}; choose one of auto, {', '.join(PRESETS)}")
        preset = PRESETS[name]
    unknown = sorted(set(overrides) - {field.name for field in fields(Parameters)})
    if unknown:
        names = ", ".join(field.name for field in fields(Parameters))
        raise BadRequest(f"unknown search parameter {unknown[0]!r}; choose among {names}")
    return replace(preset, **overrides)
