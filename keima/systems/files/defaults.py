"""The networks that come with keima, used where none is named; how they were made: docs/default-networks.md.

A file is known by its SHA-256 wherever it lies, and `keima.load` gives it the pedigree that stands here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from keima.errors import BadRequest, BadWeights
from keima.plain import Note
from keima.systems.files.contents import sha256_of
from keima.systems.system import SYSTEMS

if TYPE_CHECKING:
    from keima.systems.network import Network, Pedigree

FOLDER = Path(__file__).parents[1] / "default"  # Where the files lie
_OTHERS = (
    "name a network file (--net FILE): KataGo .bin.gz or Leela Zero .txt.gz for Go, Lc0 or Maia .pb.gz for chess, "
    "keima .safetensors for any game"
)


@dataclass(frozen=True)
class DefaultNetwork:
    """A network that comes with keima: a `file` in `FOLDER`."""

    file: str
    name: str
    sha256: str = ""  # hex; empty until there is one
    licence: str = ""
    recipe: str = ""  # what made it, as a path in keima's repository
    teacher: str = ""  # whose answers it learned; empty where it learned from games alone
    training_data: str = ""
    caution: str = ""  # what a reader of its judgements should know first


CHESS_CAUTION = Note(
    "The judge is keima's own small chess network: without a search some of what it blames is no mistake, and it "
    "misses most that are. For a second opinion add --judge uci:stockfish; for a better judge, --net and --visits.",
    "warning.caution.chess",
)

DEFAULT_NETWORKS: Mapping[str, DefaultNetwork] = {
    "go": DefaultNetwork(
        file="go.bin.gz",
        name="keima-go",
        sha256="09d55d62f8998121d233ca3823298a032dd316f00fcc6ccfe023c4803cd45446",
        licence="MIT; it is KataGo's g170-b6c96 trained further, which is MIT, © David J Wu and others",
        recipe="recipes/default-go.toml",
        teacher="KataGo g170-b6c96-s175395328-d26788732",
        training_data="26,262 games of 9-dan players on Tygem, autumn 2009; 3,300 of the teacher on 7×7 to 13×13",
    ),
    "chess": DefaultNetwork(
        file="chess.pb.gz",
        name="keima-chess",
        sha256="fab77aab054e299670de23997c50b3a1b054f7e24c0c3ec69cea0fa15a6d758e",
        licence="MIT",
        recipe="recipes/default-chess-within.toml",
        teacher="Stockfish 15.1, 600 nodes a position; Maia 1900 and 1500",
        training_data="22,360 games of Stockfish with itself; 13.7 million positions of games and trees of policies",
        caution=CHESS_CAUTION,
    ),
    "connect_four": DefaultNetwork(
        file="connect_four.safetensors",
        name="keima-connect-four",
        sha256="f6eeb17fac97c59da2328c1fb042010bb84423bb0e174f3019b94d8c36bc9dc1",
        licence="MIT",
        recipe="recipes/selfplay/connect-four.toml",
        training_data="its own games, from zero",
    ),
}
"""By the game they play, which is also what they are called where a network is asked for."""


def default_network(game: str) -> Path:
    """The file of the network that is used for a game, as "go" or "connect_four", where none is named.

    Raises:
        BadRequest: another game.
        BadWeights: this installation lacks the file, or has another one in its place.
    """
    if game not in DEFAULT_NETWORKS:
        raise BadRequest(f"no default network for {game!r}; there is one for each of {', '.join(DEFAULT_NETWORKS)}")
    known = DEFAULT_NETWORKS[game]
    path = FOLDER / known.file
    if not path.is_file():
        raise BadWeights(f"this installation has no default network for {game}; {_OTHERS}", source=str(path))
    found = sha256_of(path)
    if found != known.sha256:
        message = f"not the default network of this version: sha256 {found}, expected {known.sha256 or 'none yet'}"
        raise BadWeights(f"{message}; install keima again, or {_OTHERS}", source=str(path))
    return path


def find_network(name: str) -> str:
    """The file that a user means: one of that name, else for a game's name the default network (and its errors)."""
    if name in DEFAULT_NETWORKS and not Path(name).is_file():
        return str(default_network(name))
    return name


def judging_facts(network: Network) -> Mapping[str, object]:
    """What a review tells of a network beside its pedigree: `caution`, and the `boards` it learned on, where known."""
    known = next((known for known in DEFAULT_NETWORKS.values() if known.sha256 == network.pedigree.sha256), None)
    facts: dict[str, object] = {"caution": known.caution if known else "", "boards": SYSTEMS[network.system].boards}
    return {name: fact for name, fact in facts.items() if fact}


def with_known_pedigree(pedigree: Pedigree, path: str | os.PathLike[str]) -> Pedigree:
    """The pedigree of a file as read, completed for one of the default networks."""
    digest = pedigree.sha256 or sha256_of(path)
    for known in DEFAULT_NETWORKS.values():
        if known.sha256 and known.sha256 == digest:
            told = {"recipe": known.recipe, "teacher": known.teacher, "training_data": known.training_data}
            details = {**pedigree.details, **{name: text for name, text in told.items() if text}}
            return replace(pedigree, name=known.name, sha256=digest, licence=known.licence, details=details)
    return pedigree
