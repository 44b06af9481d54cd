"""Fuzzing of everything that reads: `python -m tests.fuzz KIND COUNT [SEED]`.

A kind is a file of this folder with `one(seed: int) -> None`: it makes one input from the seed, feeds it, and raises
only for what must not happen (an error outside the family, a round trip that differs).
"""
