"""UCI, the protocol of chess GUIs."""

GAME = "chess"
"""The game whose protocol this is."""
