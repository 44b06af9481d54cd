"""The process that roles are forked from: it has imported what they need and done nothing with it.

It is begun before the process that wants roles imports the same itself, so that both do so at once.
"""

from __future__ import annotations

import os
from multiprocessing import forkserver, get_context

FORKS = get_context("forkserver")
_IMPORTED = (
    "keima.training.selfplay.roles.supervisor",
    "keima.inference.openvino_backend",  # what roles import only when they need it
    "lightning_fabric",
    "torch.utils.tensorboard",
)


def begin() -> None:
    """Start it, unless it is there."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads sleep while they wait: cores are shared
    FORKS.set_forkserver_preload(list(_IMPORTED))
    forkserver.ensure_running()
