"""Rule sets, KataGo's JSON and shorthand, there and back; komi; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keima.errors import BadPosition
from keima.games.go.rules import (
    HANDICAP_BONUSES,
    KO_RULES,
    NAMED_RULES,
    RULE_NAMES,
    SCORING_RULES,
    TAX_RULES,
    Rules,
    check_komi,
)

ANY_RULES = st.builds(
    Rules,
    st.sampled_from(KO_RULES),
    st.sampled_from(SCORING_RULES),
    st.sampled_from(TAX_RULES),
    st.booleans(),
    st.booleans(),
    st.sampled_from(HANDICAP_BONUSES),
    st.booleans(),
)

# From KataGo's cpp/game/rules.cpp: ko, scoring, tax, suicide, button, handicap bonus, friendly pass, komi.
TABLE = {
    "tromp-taylor": ("POSITIONAL", "AREA", "NONE", True, False, "0", False, 7.5),
    "japanese": ("SIMPLE", "TERRITORY", "SEKI", False, False, "0", False, 6.5),
    "korean": ("SIMPLE", "TERRITORY", "SEKI", False, False, "0", False, 6.5),
    "chinese": ("SIMPLE", "AREA", "NONE", False, False, "N", True, 7.5),
    "chinese-ogs": ("POSITIONAL", "AREA", "NONE", False, False, "N", True, 7.5),
    "chinese-kgs": ("POSITIONAL", "AREA", "NONE", False, False, "N", True, 7.5),
    "aga": ("SITUATIONAL", "AREA", "NONE", False, False, "N-1", True, 7.5),
    "bga": ("SITUATIONAL", "AREA", "NONE", False, False, "N-1", True, 7.5),
    "french": ("SITUATIONAL", "AREA", "NONE", False, False, "N-1", True, 7.5),
    "aga-button": ("SITUATIONAL", "AREA", "NONE", False, True, "N-1", True, 7.0),
    "new-zealand": ("SITUATIONAL", "AREA", "NONE", True, False, "0", True, 7.0),
    "nz": ("SITUATIONAL", "AREA", "NONE", True, False, "0", True, 7.0),
    "goe": ("POSITIONAL", "AREA", "NONE", True, False, "0", True, 7.5),
    "ing": ("POSITIONAL", "AREA", "NONE", True, False, "0", True, 7.5),
    "stone-scoring": ("SIMPLE", "AREA", "ALL", False, False, "0", True, 7.5),
    "ancient-area": ("SIMPLE", "AREA", "ALL", False, False, "0", True, 7.5),
    "ancient-territory": ("SIMPLE", "TERRITORY", "ALL", False, False, "0", False, 6.5),
}


def test_the_table_lists_every_name() -> None:
    assert set(TABLE) == set(RULE_NAMES)


@pytest.mark.parametrize("name", RULE_NAMES)
def test_named_rules_and_their_komi(name: str) -> None:
    *options, komi = TABLE[name]
    assert Rules.parse_with_komi(name) == (Rules(*options), komi)
    for spelling in (name.upper(), name.replace("-", "_"), name.replace("-", " "), name.replace("-", ""), f" {name} "):
        assert Rules.parse_with_komi(spelling) == (Rules(*options), komi)


@given(ANY_RULES)
def test_json_shorthand_and_name_lead_back(rules: Rules) -> None:
    assert Rules.parse(rules.to_json()) == rules
    assert Rules.parse(json.dumps(rules.to_json())) == rules
    assert Rules.parse(str(rules)) == rules
    assert Rules.parse(rules.name) == rules
    assert Rules.parse(rules) is rules


def test_a_name_is_given_where_there_is_one() -> None:
    assert [rules.name for rules in NAMED_RULES.values()] == list(NAMED_RULES)
    assert Rules.parse("korean").name == "japanese"
    assert Rules(ko="SPIGHT").name == "koSPIGHTscoreAREAtaxNONEsui1"


def test_shorthand_of_every_option() -> None:
    text = "koSIMPLEscoreTERRITORYtaxALLsui0button1whbN-1fpok1"
    rules = Rules("SIMPLE", "TERRITORY", "ALL", False, True, "N-1", True)
    assert Rules.parse(text) == rules
    assert str(rules) == text
    assert Rules.parse("ko SIMPLE scoring TERRITORY tax ALL sui 0 button 1 whb N-1 fpok 1") == rules


@pytest.mark.parametrize(
    ("rules", "tax", "komi"),
    [
        ({"scoring": "TERRITORY"}, "SEKI", 6.5),
        ({"scoring": "TERRITORY", "tax": "NONE"}, "NONE", 6.5),
        ({"score": "AREA", "hasButton": True}, "NONE", 7.0),
        ({}, "NONE", 7.5),
        ('{"ko": "SIMPLE", "komi": -3.5}', "NONE", -3.5),
        ("scoreTERRITORY", "SEKI", 6.5),
        ("koSIMPLEbutton1", "NONE", 7.0),
        ("komi5.5koSIMPLE", "NONE", 5.5),
        ("koSIMPLEscoreAREAkomi-0.5", "NONE", -0.5),
    ],
)
def test_what_is_left_out_is_as_in_katago(rules: Any, tax: str, komi: float) -> None:
    parsed, found = Rules.parse_with_komi(rules)
    assert (parsed.tax, found) == (tax, komi)
    assert parsed.has_button == ("utton" in str(rules))


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "klingon",
        "koSIMPLEscore",
        "koSOMETIMES",
        "koSIMPLEsui2",
        "whbN-2",
        "japanese!",
        "{",
        '{"ko": "SIMPLE"',
        "[1]",
        {"ko": "NEVER"},
        {"suicide": "yes"},
        {"suicide": 1},
        {"ko": True},
        {"scoring": None},
        {"tax": ["ALL"]},
        {"colour": "blue"},
        {"komi": 6.5},
        {"komi": "six"},
        {"komi": 10**400},
        '{"ko": ' * 100_000,
        "koSIMPLEkomi6.5",
        7,
        None,
    ],
)
def test_what_is_no_rules_is_refused(rules: Any) -> None:
    with pytest.raises(BadPosition):
        Rules.parse(rules)


@given(st.text(max_size=30))
def test_any_text_is_rules_or_refused(text: str) -> None:
    try:
        rules = Rules.parse(text)
    except BadPosition:
        return
    assert Rules.parse(str(rules)) == rules


def test_komi_is_a_multiple_of_a_half() -> None:
    assert check_komi(7) == 7.0
    assert isinstance(check_komi(7), float)
    for komi in (7.25, 400.5, -1e9, float("nan"), float("inf"), 10**400, "7.5", None, True):
        with pytest.raises(BadPosition, match="komi"):
            check_komi(komi)  # type: ignore[arg-type]
    with pytest.raises(BadPosition, match="komi"):
        Rules.parse_with_komi({"komi": 0.3})


def test_the_json_is_katagos(golden: Callable[[str], list[dict[str, Any]]]) -> None:
    """The rules in the golden files were printed by KataGo: the named sets print the same."""
    printed = {json.dumps(line["rules"], sort_keys=True) for line in golden("katago-g170-b6c96")}
    ours = {json.dumps(rules.to_json(), sort_keys=True) for rules in NAMED_RULES.values()}
    assert printed <= ours
    assert len(printed) == 8
