"""Compiles what the first search of each default network needs, side by side: `scripts/environment.sh` runs it once.

python -m scripts.prepare_kernels
"""

from __future__ import annotations

import subprocess
import sys

from keima.errors import KeimaError
from keima.games.game import GAMES


def search(game: str) -> None:
    """A short search by a game's default network, if there is one."""
    import keima

    try:
        network = keima.load_default(game)
    except KeimaError:
        return
    keima.search(keima.Evaluator(network), GAMES[game].playing.start(), visits=32)


def main(arguments: list[str]) -> int:
    """The exit status."""
    if arguments:
        search(arguments[0])
        return 0
    command = [sys.executable, "-m", "scripts.prepare_kernels"]
    running = [subprocess.Popen([*command, game]) for game in GAMES]
    return max(process.wait() for process in running)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
