"""The house of the systems: what each folder says of itself is so, and nothing is imported before it is wanted."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from keima.errors import BadRequest
from keima.systems.go_points import GoEncoding
from keima.systems.system import SYSTEMS, get_encoding, get_system, list_encodings, system_of


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_is_registered_under_its_name(name: str) -> None:
    system = get_system(name)
    assert system.name == name
    for table in system.networks:
        kinds = {kind.name for kind in table.kinds}
        assert {entry.kind for entry in table.entries} <= kinds
        assert {*table.aliases.values(), *table.own.values()} <= {entry.name for entry in table.entries}
        for kind in table.kinds:
            assert kind.network.system in SYSTEMS
            assert kind.network.__module__.startswith(f"{system.package}.")


@pytest.mark.parametrize("package", sorted({system.package for system in SYSTEMS.values()}))
def test_the_table_of_contents_names_every_file_once(package: str) -> None:
    folder = import_module(package)
    named = re.findall(r"\b(\w+\.py)\b", folder.__doc__ or "")
    assert folder.__file__ is not None
    there = {path.name for path in Path(folder.__file__).parent.glob("*.py")} - {"__init__.py"}
    assert set(named) == there


def test_the_front_of_every_system_is_imported_without_what_is_behind_it() -> None:
    program = (
        "import sys; from keima.systems.system import SYSTEMS; list(SYSTEMS.values())\n"
        "print([name for name in ('torch', 'numba', 'openvino', 'keima.systems.network') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_an_encoding_is_known_by_its_name() -> None:
    names = list_encodings()
    assert {"alphago", "alphago-zero", "leela-zero", "katago", "katago-guide", "lc0"} <= set(names)
    for name in names:
        assert get_encoding(name).name == name
    with pytest.raises(BadRequest, match="unknown encoding 'chess'; choose one of alphago, alphago-zero"):
        get_encoding("chess")
    with pytest.raises(BadRequest, match="unknown system 'chess'; choose one of alphago"):
        get_system("chess")


def test_an_encoding_may_be_held_to_one_board_size() -> None:
    encoding = get_encoding("alphago-zero")
    assert isinstance(encoding, GoEncoding)
    assert encoding.of_size(9).board == (9, 9)
    assert encoding.board == (19, 19)


def test_a_network_says_which_system_it_is_of() -> None:
    import keima

    network = keima.create("comparison-vgg", layers=1, channels=4, board_size=5, value_hidden=4)
    assert system_of(network).name == "alphago-zero"  # whose input, loss and search it has
