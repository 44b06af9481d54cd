"""Leela Chess Zero (after Silver et al., Science 362, 2018), and Maia in its format.

inputs.py        112 planes in every input format; moves.py: the 1858 moves
network.py       residual networks; transformer.py: attention bodies, of the layers in attention.py
loss.py          policy, win/draw/loss, moves left
preset.py        the numbers of the search
file.py          .pb.gz, both ways: file_schema.py, protobuf.py: the messages; file_layers.py: which layer stands where;
                 file_params.py: how its numbers are kept
layout.py        which layers folding and pruning may change
forms.py         old structures and heads ↔ new ones
"""

from keima.systems.system import System

SYSTEM = System(
    "lc0",
    "Leela Chess Zero",
    "Leela Chess Zero 0.33, after Silver et al., Science 362 (2018)",
    __name__,
    endings=(".pb.gz", ".pb"),
    files={"network": ("network", "transformer")},
)
