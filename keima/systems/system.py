"""What a system is: a member of the AlphaGo family. Outside `games/` and `systems/` no line names one.

A system is a folder with one file for each facet, imported when it is first asked for:

    inputs.py       ENCODINGS: position → planes, move ↔ policy index; the documented table and its kernel
    network.py      NETWORKS: sizes by name, configuration, blocks, heads, net, top to bottom
    file.py         FORMATS: published file ↔ network
    loss.py         LOSS: targets → loss
    preset.py       PRESET: the numbers of its search
    playouts.py     PLAYOUTS: leaves played out by a fast policy
    layout.py       LAYOUT: which layers read and write which channels, for folding and pruning
    forms.py        FORMS: what else its networks can be converted to
    engine_graph.py ENGINE_GRAPH: network, side of the board, precision → the ONNX file that its own engine runs

and an `__init__.py` with `SYSTEM = System(...)`, whose docstring is the folder's table of contents. A system without
one of them has no such file. `SYSTEMS` below is the registration; `keima.check_system` holds a system to the laws the
rest relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from keima.errors import BadRequest

if TYPE_CHECKING:
    from keima.systems.encoding import Encoding
    from keima.systems.files.contents import Format
    from keima.systems.layout import SystemLayout
    from keima.systems.network import Network, NetworkTable
    from keima.systems.parameters import Parameters
    from keima.systems.playouts import Playouts


@dataclass(frozen=True)
class System:
    """One member of the family."""

    name: str  # what `Network.system` says: "katago"
    title: str  # as prose names it: "KataGo"
    source: str  # the paper or engine it follows
    package: str  # the folder, "keima.systems.katago"
    # what its networks may take beside a position, as POSITIONS lines name it ("profile")
    options: tuple[str, ...] = ()
    preset_of: str = ""  # the system whose search it shares, where it has no preset of its own
    # of its published files' names, the usual one first (".bin.gz"); empty without a format of its own
    endings: tuple[str, ...] = ()
    boards: tuple[int, int] | None = (
        None  # the sides of the boards its published networks learned on, where it takes more
    )
    # facet → the folder's files it stands in, where not the one named above: systems may share a folder
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def _facets(self, name: str, constant: str) -> list[Any]:
        modules = [f"{self.package}.{file}" for file in self.files.get(name, (name,))]
        return [getattr(import_module(module), constant) for module in modules if find_spec(module)]

    def _facet(self, name: str, constant: str) -> Any:
        return next(iter(self._facets(name, constant)), None)

    @cached_property
    def encodings(self) -> Mapping[str, Encoding]:
        """Name → encoding with its default options."""
        return {name: each for part in self._facets("inputs", "ENCODINGS") for name, each in part.items()}

    @cached_property
    def networks(self) -> tuple[NetworkTable, ...]:
        """The classes of its networks and the sizes they have names for, file by file."""
        return tuple(self._facets("network", "NETWORKS"))

    @cached_property
    def formats(self) -> tuple[Format, ...]:
        """The file formats its networks are published in."""
        return tuple(each for part in self._facets("file", "FORMATS") for each in part)

    @cached_property
    def forms(self) -> Mapping[str, Callable[[Network], Network]]:
        """What its networks can be converted to, by name (`keima.convert`)."""
        forms: Mapping[str, Callable[[Network], Network]] = self._facet("forms", "FORMS") or {}
        return forms

    @cached_property
    def engine_graph(self) -> Callable[[Network, int, str], bytes] | None:
        """Network, side of the largest board, precision → the ONNX file its own engine runs; None: it runs none."""
        graph: Callable[[Network, int, str], bytes] | None = self._facet("engine_graph", "ENGINE_GRAPH")
        return graph

    @cached_property
    def loss(self) -> Any:
        """What its networks are trained to make small."""
        return self._facet("loss", "LOSS")

    @cached_property
    def preset(self) -> Parameters | None:
        """The numbers of its search; None where it has none."""
        if self.preset_of:
            return SYSTEMS[self.preset_of].preset
        found: Parameters | None = self._facet("preset", "PRESET")
        return found

    @cached_property
    def playouts(self) -> Playouts | None:
        """How its leaves are played out; None where they are not."""
        found: Playouts | None = self._facet("playouts", "PLAYOUTS")
        return found

    @cached_property
    def layout(self) -> SystemLayout[Any] | None:
        """What folding and pruning need; None where only batch norms after convolutions fold, and nothing is pruned."""
        layout: SystemLayout[Any] | None = self._facet("layout", "LAYOUT")
        return layout


class _Systems(Mapping[str, System]):
    """The systems by name, each imported when it is asked for."""

    def __init__(self, owners: dict[str, tuple[str, str]]) -> None:
        self._owners = owners

    def __getitem__(self, name: str) -> System:
        module, constant = self._owners[name]
        system: System = getattr(import_module(module), constant)
        return system

    def __iter__(self) -> Iterator[str]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)

    def register(self, name: str, package: str, constant: str = "SYSTEM") -> None:
        """Add a system: the package and the name there of its `System`."""
        self._owners[name] = (package, constant)


SYSTEMS = _Systems(
    {
        "alphago": ("keima.systems.alphago", "SYSTEM"),
        "alphago-rollout": ("keima.systems.alphago", "ROLLOUT"),
        "alphago-zero": ("keima.systems.alphago_zero", "SYSTEM"),
        "leela-zero": ("keima.systems.alphago_zero", "LEELA_ZERO"),
        "katago": ("keima.systems.katago", "SYSTEM"),
        "katago-guide": ("keima.systems.katago_guide", "SYSTEM"),
        "lc0": ("keima.systems.lc0", "SYSTEM"),
        "comparison": ("keima.systems.comparison", "SYSTEM"),
        "gumbel": ("keima.systems.gumbel", "SYSTEM"),
    }
)
"""Every system by name, in the family's order."""


def get_system(name: str) -> System:
    """The system of that name; raises BadRequest, which lists all, if there is none."""
    if name not in SYSTEMS:
        raise BadRequest(f"unknown system {name!r}; choose one of {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


def system_of(network: Network) -> System:
    """The system of a network."""
    return get_system(network.system)


def list_encodings() -> list[str]:
    """Names of all encodings, as `keima planes ENCODING` takes them, in the family's order."""
    return list({name: None for system in SYSTEMS.values() for name in system.encodings})


def get_encoding(name: str) -> Encoding:
    """The encoding of that name, with its default options; raises BadRequest, which lists all, if there is none."""
    likely = [SYSTEMS[name]] if name in SYSTEMS else []
    for system in (*likely, *SYSTEMS.values()):
        if name in system.encodings:
            return system.encodings[name]
    raise BadRequest(f"unknown encoding {name!r}; choose one of {', '.join(list_encodings())}")
