"""Lc0's old structures and heads as new ones: the same answers, through the file too; the rest refused by its layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import keima
from keima.errors import UnsupportedNetwork
from keima.systems.lc0.attention import AttentionPolicyConfig
from keima.systems.lc0.file import format_lc0, parse_lc0, read_lc0
from keima.systems.lc0.forms import FORMS
from keima.systems.lc0.transformer import TokenHeadConfig
from keima.systems.network import Heads, Network
from tests.systems.lc0.test_file import net_of, tiny, tiny_transformer

DATA = Path(__file__).parents[2] / "data"
MOVES = ("e2e4", "c7c5", "g1f3", "d7d6", "d2d4", "c5d4", "f3d4", "g8f6", "b1c3", "a7a6")


def heads(network: Network) -> Heads:
    """Answers to the first positions of a Najdorf."""
    position = keima.chess.Position.start()
    positions = [position, *(position := position.play(move) for move in MOVES)]
    batch = network.encoding.encode(positions)
    with torch.no_grad():
        out = network(torch.from_numpy(batch.inputs["planes"]))
    return network.decode({name: getattr(out, name).numpy() for name in network.output_names}, batch.context)


def assert_same(found: Network, expected: Network, within: float = 1e-6) -> None:
    one, other = heads(found), heads(expected)
    np.testing.assert_allclose(one.policy, other.policy, rtol=0, atol=within)
    np.testing.assert_allclose(one.value, other.value, rtol=0, atol=within)
    np.testing.assert_allclose(one.wdl, other.wdl, rtol=0, atol=within)
    if other.moves_left is not None:
        np.testing.assert_allclose(one.moves_left, other.moves_left, rtol=1e-6)


def written(network: Network, path: Path) -> Network:
    """The network as its file gives it back."""
    keima.save(network, path)
    return read_lc0(path)


def test_one_number_becomes_win_draw_and_loss(tmp_path: Path) -> None:
    network = read_lc0(DATA / "lc0-random-mish.pb.gz")
    new = keima.convert(network, "VALUE_WDL")
    assert new.pedigree.details["value"] == "VALUE_WDL"
    assert new.pedigree.details["converted"] == "from Lc0 NETWORK_SE_WITH_HEADFORMAT to VALUE_WDL"
    assert heads(new).wdl[:, 1].max() < 1e-8
    assert_same(new, network)
    assert_same(written(new, tmp_path / "new.pb.gz"), network, 2e-4)  # LINEAR16 keeps 16 bits between −20 and the rest
    keima.save(new, tmp_path / "new.safetensors")
    assert_same(keima.load(tmp_path / "new.safetensors"), network)
    transformer = tiny_transformer(value_heads={"winner": TokenHeadConfig(1, 2, 1)})
    assert_same(keima.convert(transformer, "VALUE_WDL"), transformer)


@pytest.mark.parametrize("folded", [False, True])
def test_a_plain_tower_gets_squeeze_and_excitation_that_does_nothing(folded: bool, tmp_path: Path) -> None:
    network: Network = tiny(blocks=3, se_channels=[0, 2, 0], channels=4)
    network = keima.compress.fold(network) if folded else network
    new = keima.convert(network, "NETWORK_SE_WITH_HEADFORMAT")
    assert new.config.se_widths == (1, 2, 1)
    assert_same(new, network)
    again = written(new, tmp_path / "new.pb.gz")
    assert again.pedigree.format == "Lc0 NETWORK_SE_WITH_HEADFORMAT"
    assert_same(again, written(network, tmp_path / "old.pb.gz"), 1e-4)


@pytest.mark.reference
def test_a_published_format_s_old_network_becomes_new(reference: Path, tmp_path: Path) -> None:
    network = read_lc0(reference / "nets" / "lc0-random-classical.pb.gz")
    new = keima.convert(keima.convert(network, "NETWORK_SE_WITH_HEADFORMAT"), "VALUE_WDL")
    assert_same(new, network)
    assert_same(written(new, tmp_path / "new.pb.gz"), network, 2e-4)


def test_heads_move_into_messages_and_back(tmp_path: Path) -> None:
    network = read_lc0(DATA / "lc0-random-transformer-map.pb.gz")
    several = keima.convert(network, "NETWORK_ATTENTIONBODY_WITH_MULTIHEADFORMAT")
    there = written(several, tmp_path / "several.pb.gz")
    assert there.pedigree.format == "Lc0 NETWORK_ATTENTIONBODY_WITH_MULTIHEADFORMAT"
    assert_same(there, network, 0.0)
    back = written(keima.convert(there, "NETWORK_ATTENTIONBODY_WITH_HEADFORMAT"), tmp_path / "one.pb.gz")
    assert back.pedigree.format == "Lc0 NETWORK_ATTENTIONBODY_WITH_HEADFORMAT"
    assert_same(back, network, 0.0)


def test_an_embedding_that_heads_share_becomes_the_head_s_own() -> None:
    shared = tiny_transformer(policy_heads={"vanilla": AttentionPolicyConfig(4, 2, own_embedding=False)})
    shared.file_notes["multihead"] = True
    one = keima.convert(shared, "NETWORK_ATTENTIONBODY_WITH_HEADFORMAT")
    assert "policy_embeddings.vanilla.weight" in one.state_dict()
    assert_same(one, shared, 0.0)
    assert parse_lc0(format_lc0(one)).config.policy_heads["vanilla"].own_embedding


@pytest.mark.parametrize(
    ("make", "form", "refusal"),
    [
        (lambda: tiny(), "VALUE_CLASSICAL", r"^weights\.ip2_val_w: logits of win, draw and loss"),
        (
            lambda: tiny(blocks=2, se_channels=[0, 1]),
            "NETWORK_CLASSICAL_WITH_HEADFORMAT",
            r"^weights\.residual\[1\]\.se",
        ),
        (lambda: tiny(), "POLICY_CLASSICAL", r"^weights\.policy1\.weights: a 3×3 convolution before"),
        (lambda: tiny(policy="classical"), "POLICY_CONVOLUTION", r"^weights\.ip_pol_w: fully connected"),
        (lambda: tiny(policy="classical"), "POLICY_ATTENTION", r"^weights\.ip_pol_w: fully connected"),
        (tiny_transformer, "POLICY_CONVOLUTION", r"^weights\.ip2_pol_w: multiplies what stands on two squares"),
        (tiny_transformer, "NETWORK_SE_WITH_HEADFORMAT", r"^weights\.encoder\[0\]\.mha\.q_w: attention"),
        (lambda: tiny(), "NETWORK_ATTENTIONBODY_WITH_HEADFORMAT", r"^weights\.input\.weights: a convolution"),
        (
            lambda: read_lc0(DATA / "lc0-random-transformer-dense.pb.gz"),
            "NETWORK_ATTENTIONBODY_WITH_HEADFORMAT",
            r"^weights\.policy_heads\.optimistic_st\.\w+: a second head of its kind",
        ),
    ],
)
def test_what_a_form_cannot_express_is_refused_by_its_layer(make: Any, form: str, refusal: str) -> None:
    with pytest.raises(UnsupportedNetwork, match=refusal):
        keima.convert(make(), form)


def test_a_network_that_has_the_form_is_given_back() -> None:
    network, transformer = tiny(), tiny_transformer()
    own = {name for name in FORMS if _same(network, name)}
    assert own == {"NETWORK_SE_WITH_HEADFORMAT", "POLICY_CONVOLUTION", "VALUE_WDL"}
    own = {name for name in FORMS if _same(transformer, name)}
    assert own == {"NETWORK_ATTENTIONBODY_WITH_HEADFORMAT", "POLICY_ATTENTION", "VALUE_WDL"}
    assert net_of(network).child("format").child("network_format").get("network") == 4


def _same(network: Network, form: str) -> bool:
    try:
        return keima.convert(network, form) is network
    except UnsupportedNetwork:
        return False
