"""AlphaGo's search: Silver et al., Nature 529 (2016), "AG"."""

from keima.systems.parameters import Parameters

PRESET = Parameters(
    cpuct=5.0,  # AG Extended Data Table 5: c_puct 5
    cpuct_factor=0.0,  # AG: constant
    fpu_absolute=True,  # AG Methods: Q of an edge without visits is 0
    virtual_loss=3.0,  # AG Extended Data Table 5: n_vl 3
    virtual_loss_value=True,  # AG Methods: as if n_vl games had been lost
    policy_temperature=1.5,  # AG Extended Data Table 5: β 0.67, its reciprocal
    root_policy_temperature=1.5,  # the same
    solve=False,  # AG has no solver
    rollout_weight=0.5,  # AG Extended Data Table 5: λ 0.5
    expansion_visits=40,  # AG Extended Data Table 5: n_thr 40
    random_symmetry=True,  # AG Methods: one of eight at random for each leaf
)
