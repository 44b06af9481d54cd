"""A network taught one rule set, made to answer by all alike (recipes/one_rule_set.py)."""

import importlib.util
from pathlib import Path

import torch

import keima
from keima.systems.katago.network import KataGoNetwork
from tests.systems.laws import lively

SCRIPT = Path(__file__).parents[3] / "recipes" / "one_rule_set.py"


def answers(network: KataGoNetwork, rules: str) -> list[torch.Tensor]:
    position = keima.go.Position.start(5, rules, 3.5).play("C3").play("B4")
    inputs = network.encoding.encode([position]).inputs
    output = network(**{name: torch.from_numpy(array) for name, array in inputs.items()})
    return [getattr(output, name) for name in network.output_names]


def test_a_network_of_one_rule_set_plays_by_others_as_by_that():
    spec = importlib.util.spec_from_file_location("one_rule_set", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    network = lively(keima.create("katago-b6c96", blocks=1, channels=16)).eval()
    assert isinstance(network, KataGoNetwork)
    taught, other = answers(network, "tromp-taylor"), answers(network, "chinese")
    assert not all(torch.allclose(mine, yours, atol=1e-3) for mine, yours in zip(taught, other, strict=True))
    script.one_rule_set(network, "tromp-taylor")
    for rules in ("tromp-taylor", "chinese", "new-zealand", "aga-button", "stone-scoring"):
        for mine, yours in zip(answers(network, rules), taught, strict=True):
            torch.testing.assert_close(mine, yours, atol=1e-5, rtol=1e-5)
