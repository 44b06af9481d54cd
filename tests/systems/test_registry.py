"""Every registered network: made by name, run forward and backward, equal on both backends, described truly."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from keima.errors import BadRequest, UnsupportedNetwork
from keima.systems import registry
from keima.systems.network import Network
from keima.systems.registry import create, describe, find, kind_of, list_aliases, list_kinds, list_networks
from tests.systems.laws import (
    TOLERANCE,
    answers,
    assert_learns,
    assert_rows_independent,
    assert_same,
    lively,
    openvino_answers,
    random_inputs,
)

CONTEXT = {
    "black_to_play": np.ones(3, bool),
    "no_result_allowed": np.zeros(3, bool),
    "policy_optimism": np.zeros(3, np.float32),
}
"""What the encodings would say of the three positions."""

NAMES = [entry.name for entry in list_networks()]


def small(name: str, **sizes: int) -> Network:
    torch.manual_seed(0)
    return create(name, **{**find(name).small, **sizes})


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", NAMES)
def test_runs_forward_and_backward_with_the_stated_shapes_and_fields(name):
    network = small(name)
    if getattr(network, "moves_left_head", None) is not None:
        with torch.no_grad():  # this head ends in a rectifier, which a fresh network may leave at zero
            network.moves_left_head.fc2.bias.fill_(5)
    inputs = random_inputs(network, 3, 9 if name.startswith("katago-b") else None)
    assert_learns(network, inputs)
    assert_rows_independent(lively(network), inputs)
    heads = network.decode(answers(network, inputs), CONTEXT)
    area = inputs["planes"].shape[2] * inputs["planes"].shape[3]
    moves = {"go": area + 1, "chess": 1858, "connect_four": 7}
    assert heads.policy.shape == (3, moves[network.encoding.game])


def one_of_each_kind_first():
    """All names; those after the first of a kind and family are slow tests, for they compile the same layers."""
    seen = {"katago-b18c384nbt", "katago-b7c96h3tfrs"}  # KataGo has three sorts of blocks
    marked = []
    for entry in list_networks():
        repeated = entry.kind in seen and entry.name not in seen
        marked.append(pytest.param(entry.name, marks=[pytest.mark.slow] if repeated else []))
        seen.add(entry.kind)
    return marked


@pytest.mark.parametrize("name", one_of_each_kind_first())
def test_pytorch_and_openvino_give_the_same_answer(name):
    network = lively(small(name))
    inputs = random_inputs(network, 2, 9 if name.startswith("katago-b") else None)
    assert_same(openvino_answers(network, inputs), answers(network, inputs), TOLERANCE)


@pytest.mark.parametrize("name", [name for name in NAMES if "board_size" in find(name).small])
def test_a_network_of_one_board_size_is_made_for_another(name):
    network = lively(small(name, board_size=7))
    found = answers(network, random_inputs(network, 1))
    assert all(values.shape[1:] in ((), (49,), (50,), (7, 7)) for values in found.values())


@pytest.mark.parametrize("name", ["katago-b6c96", "katago-b18c384nbt", "katago-b7c96h3tfrs"])
def test_a_network_of_any_board_size_takes_two(name):
    network = lively(small(name))
    for side in (7, 13):
        policy = answers(network, random_inputs(network, 1, side))["policy"]
        assert policy.shape[-1] == side * side + 1


@pytest.mark.parametrize("name", NAMES)
def test_a_description_counts_what_the_network_has(name):
    """Against PyTorch's own list of parameters, and products counted layer by layer with hooks."""
    network = small(name).eval()
    description = describe(network)
    assert description.parameters == sum(p.numel() for p in network.parameters())
    layers = [module for module in network.modules() if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear))]
    counted = {}

    def count(module, _inputs, output):
        counted[module] = module.weight[0].numel() * output.numel()

    for layer in layers:
        layer.register_forward_hook(count)
    inputs = registry.example_inputs(network)
    with torch.no_grad():
        network(**inputs)
    # squeeze-and-excitation uses its second layer's weights itself, once a position
    products = sum(counted.get(layer, layer.weight.numel()) for layer in layers)
    if "attention" in description.reach:
        assert description.flops > 2 * products  # attention's own products come on top
    else:
        assert description.flops == 2 * products
    assert {key: (1, *shape) for key, shape in description.inputs.items()} == {
        key: tuple(tensor.shape) for key, tensor in inputs.items()
    }


@pytest.mark.parametrize(
    "name", ["alphago-policy", "alphago-zero", "katago-guide", "comparison-inception", "lc0", "comparison-vgg"]
)
def test_the_receptive_field_is_as_far_as_a_change_is_felt(name):
    """Change one point of the input: the trunk's output changes within half the receptive field of it, no further."""
    network = lively(small(name, **({"blocks": 2, "se_channels": 0} if name == "lc0" else {})))
    if name != "lc0":
        network = lively(small(name, board_size=19, **({"blocks": 5} if name == "katago-guide" else {})))
    trunk = torch.nn.Sequential(*(getattr(network, part) for part in kind_of(network).trunk))
    planes = random_inputs(network, 1)["planes"]
    changed = planes.clone()
    changed[:, :, 0, 0] += 1
    with torch.no_grad():
        difference = (trunk(changed) - trunk(planes)).abs().amax(dim=(0, 1))
    reach = registry.receptive_field(network) // 2
    assert difference[: reach + 1, : reach + 1].amax(dim=0).min() > 0
    assert difference[reach + 1 :].numel() == 0 or difference[reach + 1 :].max() == 0


def test_names_are_unique_and_aliases_lead_to_them():
    assert len(NAMES) == len(set(NAMES))
    aliases = list_aliases()
    assert set(aliases.values()) <= set(NAMES)
    assert not set(aliases) & set(NAMES)
    assert find("katago").name == find("b18c384nbt").name == "katago-b18c384nbt"


def test_every_kind_is_reached_by_a_name():
    assert {entry.kind for entry in list_networks()} == {kind.name for kind in list_kinds()}


def test_sizes_replace_the_entry_s_own():
    network = create("alphago-zero", blocks=1, channels=4, board_size=5, value_hidden=8)
    assert network.config == {
        "blocks": 1,
        "channels": 4,
        "tower": "residual",
        "board_size": 5,
        "value_hidden": 8,
    }
    assert network.pedigree.name == "alphago-zero"
    assert network.pedigree.origin == "created"


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("alphagozero", {}, "unknown network 'alphagozero'; choose one of alphago-policy"),
        ("alphago-zero", {"depth": 3}, "alphago-zero has no size depth; it has blocks"),
        ("katago-b6c96", {"depth": 3}, "katago-b6c96 has no size depth; it has version"),
        ("katago-b6c96", {"blocks": 7}, "1 to 6 blocks, not 7"),
        ("lc0", {"depth": 3}, "has no size depth; it has blocks"),
        ("alphago-zero", {"tower": "transformer"}, "unknown tower 'transformer'"),
        ("alphago-zero", {"channels": 0}, "channels ≥ 1"),
        ("alphago-policy", {"layers": 0}, "layers ≥ 1"),
        ("katago-guide", {"channels": 0}, "channels ≥ 1"),
        ("comparison-inception", {"channels": 6}, "in fours"),
        ("comparison-transformer", {"heads": 5}, "divide by heads"),
        ("comparison-vgg", {"layers": 0}, "layers ≥ 1"),
    ],
)
def test_what_cannot_be_made_is_refused_by_name(name, sizes, message):
    with pytest.raises(BadRequest, match=message):
        create(name, **sizes)


def test_a_class_of_someone_else_is_refused():
    class Mine(Network):
        pass

    with pytest.raises(UnsupportedNetwork, match="Mine is not registered"):
        registry.kind_of(Mine())
