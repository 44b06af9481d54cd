"""Monte Carlo tree search over any evaluator of the family: tree, presets of each system, limits and clock."""
