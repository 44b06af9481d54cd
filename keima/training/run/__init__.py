"""Recipe, loop, checkpoints, evaluation, plots."""
