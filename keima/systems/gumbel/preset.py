"""Gumbel AlphaZero's search: Danihelka et al., ICLR 2022, "G", and DeepMind's `mctx`, whose defaults are G's."""

from keima.systems.parameters import Batches, Choice, FinalChoice, Gumbel, Parameters, Priors, Solver

PRESET = Parameters(
    gumbel=Gumbel(
        gumbel_considered=16,  # G section 5: at most 16 sampled moves; mctx: max_num_considered_actions
        gumbel_value_scale=0.1,  # mctx: value_scale, of values drawn to [0, 1]
        gumbel_visit_offset=50.0,  # G: c_visit; mctx: maxvisit_init
        gumbel_noise=1.0,  # G; mctx lets it be 0 where games are not to learn from
    ),
    final_choice=FinalChoice(choice=Choice.GUMBEL),
    priors=Priors(edge_cap=400),  # G leaves no move out
    solver=Solver(solve=False),  # G knows none
    # G: one simulation after the other; mctx does not look for equal positions, which does not change what is found
    batches=Batches(in_flight_share=0.0, min_in_flight=1, random_symmetry=True),
)
