"""Networks made smaller and faster for deployment."""

from keima.compress.fold import fold
from keima.compress.prune import prune

__all__ = ["fold", "prune"]
