"""AlphaGo Zero's search, Leela Zero's too: Silver et al., Nature 550 (2017), "AGZ".

Numbers AGZ does not give are those of AlphaZero's pseudocode, "AZ" (Science 362, 2018).
"""

from keima.systems.parameters import Batches, FirstPlayUrgency, Parameters, Puct, Root, Solver, VirtualLoss

PRESET = Parameters(
    puct=Puct(
        cpuct=1.25,  # AZ pseudocode: pb_c_init; AGZ gives no number
        cpuct_factor=1.0,  # AZ pseudocode
        cpuct_base=19652.0,  # AZ pseudocode: pb_c_base
    ),
    first_play_urgency=FirstPlayUrgency(fpu_absolute=True),  # AGZ Methods: Q is initialised to 0
    virtual_loss=VirtualLoss(
        virtual_loss=1.0,  # AGZ Methods: virtual loss, without a number
        virtual_loss_value=True,
    ),
    root=Root(
        root_noise=0.0,  # AGZ Methods: ε 0.25, in self-play only
        dirichlet_total=10.83,  # AGZ: 0.03 each of 361 points; kept as a sum, so it scales with the board as in AZ
    ),
    solver=Solver(solve=False),  # AGZ knows none
    batches=Batches(random_symmetry=True),  # AGZ Methods: a random dihedral symmetry for each leaf
)
