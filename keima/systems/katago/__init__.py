"""KataGo (Wu, arXiv:1902.10565, 2019, and its later methods), model versions 8 to 17.

inputs.py    22 planes and 19 globals; metadata.py: who plays, for human networks
network.py   sizes by name, blocks, heads, net: "b18c384nbt" is there
config.py    an architecture as data; layers.py: what blocks are made of
loss.py      the targets of each head
preset.py    the numbers of the search
file.py      .bin.gz and .txt.gz, both ways, by the words of file_tokens.py
engine_graph.py  the ONNX files that KataGo runs
checkpoint.py  PyTorch checkpoints of its training, read only
layout.py    which layers folding and pruning may change
"""

from keima.systems.system import System

SYSTEM = System(
    "katago",
    "KataGo",
    "Wu, arXiv:1902.10565 (2019), and KataGo's later methods",
    __name__,
    options=("profile", "policy_optimism"),
    endings=(".bin.gz", ".txt.gz", ".bin", ".txt"),
    files={"file": ("file", "checkpoint")},
    boards=(7, 19),  # KataGo, TrainingHistory.md; keima's own too
)
