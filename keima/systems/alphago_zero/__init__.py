"""AlphaGo Zero (Silver et al., Nature 550, 2017), and Leela Zero, which followed it.

inputs.py        AlphaGo Zero's 17 planes and Leela Zero's 18
network.py       dual-res and its three rivals of the paper's study; leela_zero.py: Leela Zero's
connect_four.py  a network of the same kind for connect four; connect_four_inputs.py: its input
loss.py          squared error of the value, cross-entropy of the policy
preset.py        the numbers of the search
file.py          Leela Zero's .txt.gz, both ways
layout.py        which layers folding and pruning may change
forms.py         AlphaGo Zero's dual-res ↔ Leela Zero's network
"""

from keima.systems.system import System

SYSTEM = System(
    "alphago-zero",
    "AlphaGo Zero",
    "Silver et al., Nature 550 (2017)",
    __name__,
    files={"inputs": ("inputs", "connect_four_inputs"), "network": ("network", "connect_four"), "file": ()},
)

LEELA_ZERO = System(
    "leela-zero",
    "Leela Zero",
    "Leela Zero 0.17, after Silver et al. (2017)",
    __name__,
    endings=(".txt.gz", ".txt"),
    files={"network": ("leela_zero",)},
)
