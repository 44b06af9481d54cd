"""Trunks to compare with, under AlphaGo Zero's input and heads.

trunks.py     VGG, Inception, a transformer
residual.py   one residual tower whose blocks differ in one thing at a time
"""

from keima.systems.system import System

SYSTEM = System(
    "comparison",
    "trunks to compare with",
    "after Silver et al. (2017) but for their trunks",
    __name__,
    preset_of="alphago-zero",
    files={"network": ("trunks", "residual")},
)
