"""Networks made smaller and faster for deployment."""

from keima.compress.fold import fold

__all__ = ["fold"]
