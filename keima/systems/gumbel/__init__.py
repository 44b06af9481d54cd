"""Gumbel AlphaZero: a search for any network that has a policy and a value; no networks of its own.

preset.py     the numbers of the search
"""

from keima.systems.system import System

SYSTEM = System(
    "gumbel", "Gumbel AlphaZero", 'Danihelka et al., "Policy improvement by planning with Gumbel"', __name__
)
