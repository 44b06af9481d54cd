"""Networks made smaller and faster for deployment."""

from keima.compress.fold import fold
from keima.compress.prune import prune
from keima.compress.quantize import quantize

__all__ = ["fold", "prune", "quantize"]
