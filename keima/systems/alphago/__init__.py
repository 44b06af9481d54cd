"""AlphaGo (Silver et al., Nature 529, 2016): a policy network, a value network, and a rollout policy.

inputs.py            48 and 49 planes; which moves a policy is asked about
network.py           the policy network and the value network; both as one network
loss.py              what they are trained on, the rollout policy too; preset.py: the numbers of the search
rollout.py           the rollout policy, and positions played out by it
rollout_features.py  its features as planes; local_features.py: the same kept up to date move by move
rollout_network.py   its linear softmax, to learn the weights
rollout_file.py      its file
"""

from keima.systems.system import System

_PAPER = "Silver et al., Nature 529 (2016)"

SYSTEM = System("alphago", "AlphaGo", _PAPER, __name__, files={"playouts": ("rollout",)})

ROLLOUT = System(
    "alphago-rollout",
    "AlphaGo's rollout policy",
    _PAPER,
    __name__,
    preset_of="alphago",
    files={"inputs": (), "network": ("rollout_network",)},
)
