"""Lc0's search: v0.33-dev (`src/search/classic/params.cc`, `search.cc`)."""

from keima.systems.parameters import (
    Batches,
    Choice,
    FinalChoice,
    FirstPlayUrgency,
    MovesLeft,
    Parameters,
    Priors,
    Puct,
    Root,
    Solver,
    Utility,
    VirtualLoss,
)

PRESET = Parameters(
    puct=Puct(
        cpuct=1.745,  # CPuct
        cpuct_factor=3.894,  # CPuctFactor
        cpuct_base=38739.0,  # CPuctBase
        sqrt_floor=1.0,  # search.cc: √max(visits of the children, 1)
    ),
    first_play_urgency=FirstPlayUrgency(
        fpu_absolute=False,  # FpuStrategy reduction; at the root the same
        fpu_reduction=0.330,  # FpuValue
        root_fpu_reduction=0.330,
    ),
    virtual_loss=VirtualLoss(
        virtual_loss=1.0,  # search.cc: N in flight
        virtual_loss_value=False,  # search.cc: it leaves Q alone
    ),
    priors=Priors(
        policy_temperature=1.359,  # PolicyTemperature
        edge_cap=256,  # every move: a mate must not be cut off
    ),
    root=Root(
        root_policy_temperature=1.359,
        dirichlet_total=10.0,  # NoiseAlpha 0.3 at about 33 legal moves (off unless asked for: NoiseEpsilon 0)
    ),
    utility=Utility(draw_score=0.0),  # DrawScore
    moves_left=MovesLeft(
        moves_left_max=0.0345,  # MovesLeftMaxEffect
        moves_left_threshold=0.8,  # MovesLeftThreshold
        moves_left_slope=0.0027,  # MovesLeftSlope
        moves_left_constant=0.0,  # MovesLeftConstantFactor
        moves_left_linear=1.6521,  # MovesLeftScaledFactor
        moves_left_square=-0.6521,  # MovesLeftQuadraticFactor
    ),
    solver=Solver(
        solve=True,  # StickyEndgames
        twofold_draws=True,  # TwoFoldDraws
    ),
    final_choice=FinalChoice(choice=Choice.PROVEN),  # search.cc, GetBestChildrenNoTemperature
    batches=Batches(
        min_in_flight=2,  # ours: two cores have work from the first visit on
        random_symmetry=False,
        cache_history=0,  # CacheHistoryLength
    ),
)
