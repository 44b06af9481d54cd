"""docs/networks.md says what the registry counts, and the published figures are judged by arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest

from keima.systems.registry import describe, list_networks
from scripts import networks_document as document
from scripts.networks_document import FAMILIES, PUBLISHED, Published, verdict

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "networks.md"


def test_the_document_is_what_the_generator_writes():
    assert DOCUMENT.read_text(encoding="utf-8") == document.document(), (
        "run: python -m scripts.networks_document docs/networks.md"
    )


def test_every_network_stands_in_one_family():
    for entry in list_networks():
        assert sum(entry.name.startswith(prefixes) for prefixes in FAMILIES.values()) == 1, entry.name


def test_the_generator_writes_the_file_it_is_given(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(document, "document", lambda: "the text\n")
    document.main([str(tmp_path / "networks.md")])
    assert (tmp_path / "networks.md").read_text() == "the text\n"
    document.main([])
    assert capsys.readouterr().out == "the text\n"


@pytest.mark.parametrize(
    ("name", "convolutions"),
    [
        ("katago-guide-b10c128", 20 * 128 * 128 * 9),
        ("katago-guide-b18c384", 36 * 384 * 384 * 9),
        ("katago-guide-b40c256", 80 * 256 * 256 * 9),
        ("katago-guide-b60c320", 120 * 320 * 320 * 9),
    ],
)
def test_the_guide_s_counts_do_not_follow_from_its_own_layers(name, convolutions):
    """The tower's convolutions alone are most of the network, and far from the figure."""
    published = next(each for each in PUBLISHED if each.name == name)
    counted = describe(name).parameters
    assert 0.8 * counted < convolutions < counted
    assert published.claimed * 1e6 > 1.3 * counted


def test_a_verdict_is_by_ratio():
    assert verdict(Published("x", 4.0, "", 0.03, ""), 3_900_000) == "holds"
    assert verdict(Published("x", 8.0, "", 0.03, ""), 4_000_000) == "does not hold: 2.00 times the count"
