"""KataGo's search: v1.17.2, the defaults of its GTP engine (`cpp/program/setup.cpp`, `cpp/search/`)."""

from keima.systems.parameters import (
    Averages,
    Batches,
    Choice,
    FinalChoice,
    FirstPlayUrgency,
    Parameters,
    Puct,
    Root,
    Solver,
    Utility,
    VirtualLoss,
)

PRESET = Parameters(
    puct=Puct(
        cpuct=1.0,  # cpuctExploration
        cpuct_factor=0.45,  # cpuctExplorationLog
        cpuct_base=500.0,  # cpuctExplorationBase
        sqrt_offset=0.01,  # searchexplorehelpers.cpp, TOTALCHILDWEIGHT_PUCT_OFFSET
        stdev_scale=0.85,  # cpuctUtilityStdevScale
        stdev_prior=0.4,  # cpuctUtilityStdevPrior
        stdev_prior_weight=2.0,  # cpuctUtilityStdevPriorWeight
    ),
    first_play_urgency=FirstPlayUrgency(
        fpu_absolute=False,
        fpu_reduction=0.2,  # fpuReductionMax
        root_fpu_reduction=0.1,  # rootFpuReductionMax
        fpu_policy_power=2.0,  # fpuParentWeightByVisitedPolicyPow
    ),
    virtual_loss=VirtualLoss(
        virtual_loss=1.0,  # numVirtualLossesPerThread
        virtual_loss_value=True,  # searchexplorehelpers.cpp: towards the worst utility
    ),
    root=Root(root_symmetries=1),  # rootNumSymmetriesToSample
    utility=Utility(
        draw_score=0.0,  # noResultUtilityForWhite
        static_score=0.1,  # staticScoreUtilityFactor
        dynamic_score=0.3,  # dynamicScoreUtilityFactor
        dynamic_center_zero=0.2,  # dynamicScoreCenterZeroWeight
        dynamic_scale=0.75,  # dynamicScoreCenterScale
    ),
    averages=Averages(
        value_weight_exponent=0.25,  # valueWeightExponent
        noise_prune_scale=0.15,  # noisePruneUtilityScale, with useNoisePruning
    ),
    solver=Solver(solve=False),  # KataGo proves nothing
    final_choice=FinalChoice(
        choice=Choice.LCB,  # useLcbForSelection
        lcb_stdevs=5.0,  # lcbStdevs
        lcb_min_visits=0.15,  # minVisitPropForLCB
    ),
    batches=Batches(
        in_flight_share=1 / 32,  # ours: 1/12 costs about 90 Elo at 100 visits on 9×9 (docs/strength.md)
        cache_history=0,  # nninputs.cpp, getHash: evaluations are shared across histories
    ),
    leaf_options={"policy_optimism": 1.0},  # policyOptimism
    root_options={"policy_optimism": 0.2},  # rootPolicyOptimism
)
