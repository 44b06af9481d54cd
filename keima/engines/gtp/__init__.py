"""The Go Text Protocol."""

GAME = "go"
"""The game whose protocol this is."""
