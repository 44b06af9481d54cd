"""The presets of the systems by name, and the numbers of a search by a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from keima.errors import BadRequest, UnsupportedNetwork
from keima.systems.parameters import NUMBERS, Number, Parameters
from keima.systems.playouts import Playouts
from keima.systems.system import SYSTEMS


class _Presets(Mapping[str, Parameters]):
    """By the name of their system; a preset that several share has the name of the first."""

    def __getitem__(self, name: str) -> Parameters:
        if (found := SYSTEMS[name].preset) is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        seen: list[Parameters] = []
        for name, system in SYSTEMS.items():
            if system.preset is not None and not any(system.preset is one for one in seen):
                seen.append(system.preset)
                yield name

    def __len__(self) -> int:
        return len(list(iter(self)))


PRESETS = _Presets()


def parameter_names() -> list[str]:
    """The names of all numbers, and of the options that presets give to encodings."""
    options = sorted({name for preset in PRESETS.values() for name in (*preset.leaf_options, *preset.root_options)})
    return [*NUMBERS, *options, *(f"root_{name}" for name in options)]


def find_preset(preset: str | Parameters, system: str, overrides: Mapping[str, Number]) -> Parameters:
    """The parameters of a search.

    Args:
        preset: a name in `PRESETS`, "auto" for the one of the network's system, or parameters.
        system: `Network.system`; "" where none is known yet, for which "auto" is then any preset.
        overrides: numbers by name, in place of the preset's.

    Raises:
        BadRequest: an unknown preset or parameter, a system without a preset, or a number out of range.
    """
    if isinstance(preset, str):
        name = (system or next(iter(PRESETS))) if preset == "auto" else preset
        if name not in PRESETS:
            there = ", ".join(PRESETS)
            if preset == "auto":
                raise BadRequest(f"networks of the system {system!r} have no search preset; choose one of {there}")
            raise BadRequest(f"unknown preset {preset!r}; choose one of auto, {there}")
        preset = PRESETS[name]
    options = {name for name in overrides if name not in NUMBERS} & set(parameter_names())
    leaf = dict.fromkeys((name for name in options if not name.startswith("root_")), 0.0)
    root = dict.fromkeys((name.removeprefix("root_") for name in options if name.startswith("root_")), 0.0)
    preset = replace(preset, leaf_options={**leaf, **preset.leaf_options}, root_options={**root, **preset.root_options})
    return preset.changed(**overrides)


def parameters_for(
    preset: str | Parameters, system: str, output_names: tuple[str, ...], overrides: Mapping[str, Number]
) -> Parameters:
    """The parameters of a search by a network with these outputs, as far as they go; the rest as for `find_preset`.

    A preset's playouts follow the network: one without a value leaves everything to them (λ = 1), one with both answers
    at once, so that its leaves are expanded at the first visit. What was asked for by name is kept or refused.

    Raises:
        BadRequest: as `find_preset`; numbers of playouts that cannot be with this network.
        UnsupportedNetwork: a network without a policy, or one without a value where nothing is played out.
    """
    found = find_preset(preset, system, overrides)
    if "policy" not in output_names:
        raise UnsupportedNetwork("a network without a policy cannot search; pair it with a policy network")
    if not found.playouts.rollout_weight:
        if "value" not in output_names:
            raise UnsupportedNetwork(
                "a network without a value cannot search by itself; choose a preset that plays leaves out "
                f"({', '.join(name for name, one in PRESETS.items() if one.playouts.rollout_weight)}), "
                "or pair it with a value network"
            )
        if overrides.get("expansion_visits", 1) != 1:
            raise BadRequest("expansion_visits is of searches with playouts: set rollout_weight too")
        return found.changed(expansion_visits=1)
    own = {name for name in ("rollout_weight", "expansion_visits") if name in overrides or not _is_preset(found, name)}
    if "value" in output_names:
        return found if "expansion_visits" in own else found.changed(expansion_visits=1)
    if "rollout_weight" in own and found.playouts.rollout_weight != 1:
        raise BadRequest("rollout_weight can only be 1 with a network that has no value: playouts alone tell it")
    return found.changed(rollout_weight=1.0)


def _is_preset(parameters: Parameters, name: str) -> bool:
    """Is a number of these parameters one that some preset has?"""
    return any(parameters[name] == preset[name] for preset in PRESETS.values() if preset.playouts.rollout_weight)


def playouts_of(game: str) -> Playouts:
    """The playouts of a game; raises BadRequest if no system has any."""
    for system in SYSTEMS.values():
        if system.playouts is not None and system.playouts.game == game:
            return system.playouts
    raise BadRequest(f"no system plays out positions of {game!r}; a search there has to do with rollout_weight 0")
