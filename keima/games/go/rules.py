"""Rules of Go as KataGo names them: its named rule sets, its JSON, and its shorthand.

Facts from KataGo `cpp/game/rules.cpp`. What each choice does to the game is in `history`.

    >>> Rules.parse("japanese").scoring
    'TERRITORY'
    >>> str(Rules.parse("tromp-taylor"))
    'koPOSITIONALscoreAREAtaxNONEsui1'
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from keima.errors import BadPosition
from keima.plain import Data, Fields, Note

KO_RULES = ("SIMPLE", "POSITIONAL", "SITUATIONAL", "SPIGHT")
SCORING_RULES = ("AREA", "TERRITORY")
TAX_RULES = ("NONE", "SEKI", "ALL")
HANDICAP_BONUSES = ("0", "N", "N-1")
MAX_KOMI = 400.0
"""The largest komi, either way, that KataGo takes from a user."""


@dataclass(frozen=True)
class Rules:
    """One rule set; the defaults are Tromp-Taylor's, as KataGo's are for what its JSON leaves out.

    Attributes:
        ko: "SIMPLE" (no immediate retaking; a position occurring for the third time ends the game without result),
            "POSITIONAL" (no board twice), "SITUATIONAL" (none twice with the same side to move) or "SPIGHT"
            (positional, but a pass lifts all bans).
        scoring: "AREA" or "TERRITORY".
        tax: who is not paid for eyes: "NONE", "SEKI" (groups in seki) or "ALL" (two points from each living group too).
    """

    ko: str = "POSITIONAL"
    scoring: str = "AREA"
    tax: str = "NONE"
    suicide: bool = True  # a move may take its own chain of more than one stone off the board
    has_button: bool = False  # the first pass takes half a point
    white_handicap_bonus: str = "0"  # points White gets for N handicap stones: "0", "N" or "N-1"
    friendly_pass_ok: bool = False  # dead stones need not be captured before passing; advice to engines, not a rule

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_option(field.name, getattr(self, field.name))

    @classmethod
    def parse(cls, rules: str | Fields | Rules) -> Rules:
        """Rules from a name, KataGo's JSON (an object, or its text) or KataGo's shorthand.

        Raises:
            BadPosition: none of these; or it has a komi, which belongs to the position.
        """
        parsed, komi = _parse(rules)
        if komi is not None:
            raise BadPosition(f"rules {_shown(rules)}: komi belongs to the position, not to the rules")
        return parsed

    @classmethod
    def parse_with_komi(cls, rules: str | Fields | Rules) -> tuple[Rules, float]:
        """Rules and komi: the komi written with them if there is one, else the usual one of these rules.

        Raises:
            BadPosition: no rules; or a komi that is no half-integer within ±400.
        """
        parsed, komi = _parse(rules)
        if komi is not None:
            return parsed, check_komi(komi)
        if isinstance(rules, str) and _NAMES.get(_squeeze(rules), "") == "new-zealand":
            return parsed, 7.0
        return parsed, parsed.default_komi

    @property
    def default_komi(self) -> float:
        """KataGo's komi where none is given: 6.5 for territory, 7 with a button, else 7.5."""
        if self.scoring == "TERRITORY":
            return 6.5
        return 7.0 if self.has_button else 7.5

    @property
    def name(self) -> str:
        """The name of a rule set equal to this one, else the shorthand."""
        return next((name for name, rules in NAMED_RULES.items() if rules == self), str(self))

    @property
    def words(self) -> str:
        """`name` in words: "Chinese (OGS)"."""
        return _WORDS.get(self.name, self.name)

    def to_json(self) -> Data:
        """The rules as KataGo's JSON object."""
        return {key: getattr(self, name) for key, name in _JSON_FIELDS.items()}

    def numbers(self) -> list[int]:
        """Of each field, in order, the index of its value among `_OPTIONS`: rules as a history record holds them."""
        return [_OPTIONS[field.name].index(getattr(self, field.name)) for field in fields(self)]

    def __str__(self) -> str:
        """KataGo's shorthand, which leaves out what is off."""
        text = f"ko{self.ko}score{self.scoring}tax{self.tax}sui{int(self.suicide)}"
        if self.has_button:
            text += "button1"
        if self.white_handicap_bonus != "0":
            text += f"whb{self.white_handicap_bonus}"
        return text + ("fpok1" if self.friendly_pass_ok else "")


_OPTIONS: dict[str, tuple[Any, ...]] = {
    "ko": KO_RULES,
    "scoring": SCORING_RULES,
    "tax": TAX_RULES,
    "suicide": (False, True),
    "has_button": (False, True),
    "white_handicap_bonus": HANDICAP_BONUSES,
    "friendly_pass_ok": (False, True),
}
_JSON_FIELDS = {
    "friendlyPassOk": "friendly_pass_ok",
    "hasButton": "has_button",
    "ko": "ko",
    "scoring": "scoring",
    "suicide": "suicide",
    "tax": "tax",
    "whiteHandicapBonus": "white_handicap_bonus",
}


def _check_option(name: str, value: Any) -> None:
    allowed = _OPTIONS[name]
    if isinstance(value, bool) != isinstance(allowed[0], bool) or value not in allowed:
        known = ", ".join(json.dumps(choice) for choice in allowed)
        raise BadPosition(f"rules: {name} must be one of {known}, found {_shown(value)}")


def _shown(value: Any) -> str:
    return repr(value)[:80]


NAMED_RULES: dict[str, Rules] = {
    "tromp-taylor": Rules(),
    "japanese": Rules("SIMPLE", "TERRITORY", "SEKI", suicide=False),
    "chinese": Rules("SIMPLE", "AREA", "NONE", False, False, "N", True),
    "chinese-ogs": Rules("POSITIONAL", "AREA", "NONE", False, False, "N", True),
    "aga": Rules("SITUATIONAL", "AREA", "NONE", False, False, "N-1", True),
    "aga-button": Rules("SITUATIONAL", "AREA", "NONE", False, True, "N-1", True),
    "new-zealand": Rules(ko="SITUATIONAL", friendly_pass_ok=True),
    "ing": Rules(friendly_pass_ok=True),
    "stone-scoring": Rules("SIMPLE", "AREA", "ALL", suicide=False, friendly_pass_ok=True),
    "ancient-territory": Rules("SIMPLE", "TERRITORY", "ALL", suicide=False),
}
"""KataGo's rule sets, one name for each; `Rules.parse` knows the other names too."""

_WORDS = {
    words.key.removeprefix("rules."): words
    for words in (
        Note("Tromp-Taylor", "rules.tromp-taylor"),
        Note("Japanese", "rules.japanese"),
        Note("Chinese", "rules.chinese"),
        Note("Chinese (OGS)", "rules.chinese-ogs"),
        Note("AGA", "rules.aga"),
        Note("AGA button", "rules.aga-button"),
        Note("New Zealand", "rules.new-zealand"),
        Note("Ing", "rules.ing"),
        Note("Stone-Scoring", "rules.stone-scoring"),
        Note("Ancient-Territory", "rules.ancient-territory"),
    )
}

_OTHER_NAMES = {
    "korean": "japanese",
    "chinese-kgs": "chinese-ogs",
    "bga": "aga",
    "french": "aga",
    "nz": "new-zealand",
    "goe": "ing",
    "ancient-area": "stone-scoring",
}
RULE_NAMES = (*NAMED_RULES, *_OTHER_NAMES)
"""Every name `Rules.parse` takes; case, spaces, hyphens and underscores do not matter."""


def _squeeze(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


_NAMES = {_squeeze(name): _OTHER_NAMES.get(name, name) for name in RULE_NAMES}

_SHORTHAND = {
    "komi": ("komi", r"[-+]?\d+(?:\.\d*)?"),
    "ko": ("ko", "|".join(KO_RULES)),
    **dict.fromkeys(("scoring", "score"), ("scoring", "|".join(SCORING_RULES))),
    "tax": ("tax", "|".join(TAX_RULES)),
    "sui": ("suicide", "[01]"),
    "button": ("has_button", "[01]"),
    "whb": ("white_handicap_bonus", "N-1|N|0"),
    "fpok": ("friendly_pass_ok", "[01]"),
}
"""Each prefix of the shorthand: the option it sets, and the values it takes. Longer prefixes stand first."""


def _parse(rules: str | Fields | Rules) -> tuple[Rules, float | None]:
    if isinstance(rules, Rules):
        return rules, None
    if isinstance(rules, Mapping):
        return _parse_object(rules)
    if not isinstance(rules, str):
        raise BadPosition(f"rules must be a name or an object, found {_shown(rules)}")
    name = _NAMES.get(_squeeze(rules))
    if name is not None:
        return NAMED_RULES[name], None
    if rules.lstrip().startswith("{"):
        try:
            found = json.loads(rules)
        except (ValueError, RecursionError) as error:
            raise BadPosition(f"rules {_shown(rules)}: not JSON: {error}") from error
        return _parse_object(found)
    return _parse_shorthand(rules)


def _parse_object(found: Fields) -> tuple[Rules, float | None]:
    """Rules from KataGo's JSON; what is left out is Tromp-Taylor's, but under territory rules seki are taxed."""
    options: Data = {}
    komi = None
    for key, value in found.items():
        if key == "komi":
            komi = check_komi(value)
            continue
        name = "scoring" if key == "score" else _JSON_FIELDS.get(key)
        if name is None:
            known = ", ".join([*_JSON_FIELDS, "komi"])
            raise BadPosition(f"rules: unknown option {_shown(key)}; known are {known}")
        options[name] = value.strip().upper() if isinstance(value, str) else value
    return _with_default_tax(options), komi


def _parse_shorthand(text: str) -> tuple[Rules, float | None]:
    """Rules from "koPOSITIONALscoreAREAtaxNONEsui1..."."""
    options: Data = {}
    rest = text.strip()
    while rest or not options:
        prefix = next((prefix for prefix in _SHORTHAND if rest.startswith(prefix)), None)
        value = None
        if prefix is not None:
            name, values = _SHORTHAND[prefix]
            rest = rest[len(prefix) :].lstrip()
            value = re.match(values, rest)
        if value is None:
            names = ", ".join(RULE_NAMES)
            raise BadPosition(f"rules {_shown(text)}: unknown; known are {names}, and KataGo's JSON and shorthand")
        options[name] = value.group()
        rest = rest[value.end() :].lstrip()
    komi = options.pop("komi", None)
    for name in ("suicide", "has_button", "friendly_pass_ok"):
        if name in options:
            options[name] = options[name] == "1"
    return _with_default_tax(options), None if komi is None else float(komi)


def _with_default_tax(options: Data) -> Rules:
    options.setdefault("tax", "SEKI" if options.get("scoring") == "TERRITORY" else "NONE")
    return Rules(**options)


def check_komi(komi: float) -> float:
    """The komi, if it is a multiple of a half within ±400. Raises `BadPosition`."""
    if isinstance(komi, bool) or not isinstance(komi, (int, float)):
        raise BadPosition(f"komi must be a number, found {_shown(komi)}")
    if not abs(komi) <= MAX_KOMI or komi * 2 != int(komi * 2):  # "not <=" so that NaN is refused too
        raise BadPosition(f"komi {_shown(komi)}: must be a multiple of 0.5 from -{MAX_KOMI:g} to {MAX_KOMI:g}")
    return float(komi)
