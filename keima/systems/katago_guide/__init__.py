"""The four-head network of the KataGo architecture guide, which is not KataGo's own.

inputs.py    22 planes
network.py   a pre-activation tower with global pooling, four heads
loss.py      the targets of each head
forms.py     what keeps it out of KataGo's files
"""

from keima.systems.system import System

_GUIDE = "the KataGo architecture guide"

SYSTEM = System("katago-guide", "KataGo's architecture guide", _GUIDE, __name__, preset_of="katago")
