"""A network in another form: another system's network, or another variant of its own file format.

A system's `forms.py` declares FORMS: name of a form → the function that gives a network in it, with the same answers.
What a form cannot express is refused by naming the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor, nn

from keima.errors import BadRequest
from keima.systems.network import Network
from keima.systems.system import system_of

Forms: TypeAlias = Mapping[str, Callable[[Network], Network]]


def convert(network: Network, form: str) -> Network:
    """The network in another form ("leela-zero", "VALUE_WDL"), with the same answers; itself where it has that form.

    Raises:
        BadRequest: a form that its system does not know; the message lists those it does.
        UnsupportedNetwork: the form cannot express the network; the message names the layer that does not fit.
    """
    system = system_of(network)
    if form not in system.forms:
        known = f"it has {', '.join(system.forms)}" if system.forms else "it has none"
        raise BadRequest(f"a network of {system.title} has no other form {form!r}; {known}")
    other = system.forms[form](network)
    if other is not network:
        was = network.pedigree.format or system.title
        details = {**network.pedigree.details, **other.pedigree.details, "converted": f"from {was} to {form}"}
        other.pedigree = replace(network.pedigree, format=other.pedigree.format, details=details)
    return other


def rebuilt(make: Callable[[], Network], state: Mapping[str, Tensor], folded: Mapping[str, str]) -> Network:
    """A network of these tensors, in evaluation mode; `folded` as `Network.folded` (no norm, a bias instead)."""
    with torch.device("meta"):
        network = make()
    for norm, convolution in folded.items():
        network.set_submodule(norm, nn.Identity())
        network.get_submodule(convolution).bias = nn.Parameter(state[f"{convolution}.bias"].clone())
    if folded:
        network.folded = dict(folded)
    network.load_state_dict({name: tensor.clone() for name, tensor in state.items()}, assign=True)
    return network.requires_grad_(True).eval()
