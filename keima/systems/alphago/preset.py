"""AlphaGo's search: Silver et al., Nature 529 (2016), "AG"."""

from keima.systems.parameters import (
    Batches,
    FirstPlayUrgency,
    Parameters,
    Playouts,
    Priors,
    Puct,
    Root,
    Solver,
    VirtualLoss,
)

PRESET = Parameters(
    puct=Puct(
        cpuct=5.0,  # AG Extended Data Table 5: c_puct 5
        cpuct_factor=0.0,  # AG: constant
    ),
    first_play_urgency=FirstPlayUrgency(fpu_absolute=True),  # AG Methods: Q of an edge without visits is 0
    virtual_loss=VirtualLoss(
        virtual_loss=3.0,  # AG Extended Data Table 5: n_vl 3
        virtual_loss_value=True,  # AG Methods: as if n_vl games had been lost
    ),
    priors=Priors(policy_temperature=1.5),  # AG Extended Data Table 5: β 0.67, its reciprocal
    root=Root(root_policy_temperature=1.5),  # the same
    solver=Solver(solve=False),  # AG knows none
    playouts=Playouts(
        rollout_weight=0.5,  # AG Extended Data Table 5: λ 0.5
        expansion_visits=40,  # AG Extended Data Table 5: n_thr 40
    ),
    batches=Batches(random_symmetry=True),  # AG Methods: one of eight at random for each leaf
)
