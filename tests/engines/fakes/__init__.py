"""Engines for tests, as programs of their own."""

import shlex
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent


def gtp(*arguments: object) -> list[str]:
    """The command of the Go program."""
    return [sys.executable, "-S", "-E", str(_FOLDER / "gtp_engine.py"), *map(str, arguments)]


def uci(*arguments: object) -> list[str]:
    """The command of the chess program."""
    return [sys.executable, "-S", "-E", str(_FOLDER / "uci_engine.py"), *map(str, arguments)]


def gtp_player(*arguments: object, options: str = "") -> str:
    """The Go program as a player of a match."""
    return f"gtp{options}:{shlex.join(gtp(*arguments))}"


def uci_player(*arguments: object, options: str = ",nodes=1") -> str:
    """The chess program as a player of a match."""
    return f"uci{options}:{shlex.join(uci(*arguments))}"


def random_network(path: Path) -> Path:
    """A KataGo network of one block with random weights, written to `path`."""
    import torch

    import keima

    torch.manual_seed(7)
    torch.set_num_threads(1)
    keima.save(keima.create("katago-b6c96", blocks=1).eval(), path)
    return path
