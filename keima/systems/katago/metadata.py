"""Who is playing: the 192 numbers KataGo's human networks take beside the board (`profile`).

A profile's name says whose move to predict, in KataGo's words (`cpp/neuralnet/sgfmetadata.cpp`):

- `rank_5k`: two players of that rank on KGS in 2020 (20k … 1k, 1d … 9d); `rank_5k_2d`: Black 5k, White 2d;
- `preaz_5k`, `preaz_5k_2d`: the same in 2016, before AlphaGo changed openings;
- `proyear_1995`: professionals of that year, 1800 to 2023.

What each number means stands in `METADATA_TABLE`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from keima.errors import BadRequest
from keima.systems.katago.config import METADATA

METADATA_TABLE: list[tuple[str, str, str]] = [
    ("0-1", "human", "1 if the side to move, the opponent is human"),
    ("2-3", "unranked", "1 if the side to move, the opponent is unranked"),
    ("4-5", "rank unknown", "1 if the rank of the side to move, the opponent is unknown"),
    ("6-39", "own rank", "ones up to the inverse rank: 9d has 1, 1d has 9, 1k has 10, 20k has 29"),
    ("40-73", "opponent rank", "the same for the opponent"),
    ("74", "unrated", "0 rated, 1 unrated, 0.5 unknown"),
    ("75-81", "time control", "one of: unknown, none, absolute, simple, byo-yomi, Canadian, Fischer"),
    ("82", "main time", "0.4 · (ln(seconds + 60) − 6.5)"),
    ("83", "period time", "0.3 · (ln(seconds + 1) − 3)"),
    ("84", "byo-yomi periods", "0.5 · (ln(periods + 2) − 1.5)"),
    ("85", "Canadian moves", "0.25 · (ln(moves + 2) − 1.5)"),
    ("86", "board", "0.5 · ln(points / 361)"),
    ("87-150", "date", "cosine and sine of 2π · days since 1970 / period, for 32 periods from 7 to 560,000 days"),
    ("151-166", "source", "one of: ?, OGS, KGS, Fox, Tygem, GoGoD, Go4Go, and nine unused"),
    ("167-191", "unused", "0"),
]
"""(numbers, name, meaning), in order."""

_RANKS = 34
_OWN_RANK, _OPPONENT_RANK = 6, 40
_RATEDNESS = 74
_TIME_CONTROL = 75
_DATE, _DATE_PERIODS, _FIRST_PERIOD, _PERIOD_RANGE = 87, 32, 7.0, 80000.0
_SOURCE = 151
_EPOCH = date(1970, 1, 1)

_UNKNOWN_TIME, _BYO_YOMI = 0, 4
_KGS, _GOGOD, _GO4GO = 2, 5, 6
_FIRST_YEAR, _FIRST_GO4GO_YEAR, _LAST_YEAR = 1800, 2021, 2023

_RANK_NAMES = (*(f"{k}k" for k in range(20, 0, -1)), *(f"{d}d" for d in range(1, 10)))
PROFILES = (
    *(f"{kind}_{rank}" for kind in ("rank", "preaz") for rank in _RANK_NAMES),
    *(f"proyear_{year}" for year in range(1850, _LAST_YEAR + 1, 10)),
)
"""Some profiles to choose from, the weakest rank first."""

_FORMS = (
    "rank_5k or rank_5k_2d (20k … 1k, 1d … 9d; one rank for both or Black_White), preaz_5k or preaz_5k_2d (the same "
    f"before AlphaGo), proyear_1995 ({_FIRST_YEAR} … {_LAST_YEAR})"
)


@dataclass(frozen=True)
class Profile:
    """What a profile's name stands for."""

    black_rank: int  # inverse: 9d = 1 … 1d = 9, 1k = 10 … 20k = 29
    white_rank: int
    day: date  # the day of the game
    source: int  # the collection the game is as if from, by KataGo's number
    time_control: int = _UNKNOWN_TIME  # by KataGo's number, with its times in seconds
    main_seconds: float = 0.0
    period_seconds: float = 0.0
    periods: int = 0
    rated: float = 0.0  # 0 rated, 1 unrated, 0.5 unknown


_INVERSE_RANKS = {f"{n}d": 10 - n for n in range(1, 10)} | {f"{n}k": n + 9 for n in range(1, 21)}


@lru_cache(maxsize=256)
def parse_profile(name: str | None) -> Profile:
    """Read a profile's name; raises BadRequest, which lists the forms there are, for none and for no such profile."""
    if name is None:
        raise BadRequest(
            'this human network needs a profile, whom to imitate: bind one, as by evaluator.bind(profile="rank_5k"); '
            f"profiles are {_FORMS}"
        )
    kind, _, rest = name.partition("_")
    if kind in ("rank", "preaz"):
        ranks = [_INVERSE_RANKS.get(part) for part in rest.split("_")]
        black, white = ranks[0], ranks[-1]
        if len(ranks) <= 2 and black is not None and white is not None:
            day = date(2016, 9, 1) if kind == "preaz" else date(2020, 3, 1)
            return Profile(black, white, day, _KGS, _BYO_YOMI, 1200.0, 30.0, 5, rated=0.5)
    if kind == "proyear" and re.fullmatch(r"[0-9]{4}", rest) and _FIRST_YEAR <= int(rest) <= _LAST_YEAR:
        source = _GOGOD if int(rest) < _FIRST_GO4GO_YEAR else _GO4GO
        return Profile(1, 1, date(int(rest), 6, 1), source)
    raise BadRequest(f"unknown profile {name!r}; profiles are {_FORMS}")


def metadata_row(profile: Profile, black_to_play: bool, area: int) -> NDArray[np.float32]:
    """The numbers of one position on a board of `area` points: float32 [192], as in `METADATA_TABLE`."""
    row = np.zeros(METADATA, np.float64)
    own, other = (profile.black_rank, profile.white_rank)[:: 1 if black_to_play else -1]
    row[0:2] = 1
    row[_OWN_RANK : _OWN_RANK + min(own, _RANKS)] = 1
    row[_OPPONENT_RANK : _OPPONENT_RANK + min(other, _RANKS)] = 1
    row[_RATEDNESS] = profile.rated
    row[_TIME_CONTROL + profile.time_control] = 1
    row[82] = 0.4 * (math.log(profile.main_seconds + 60) - 6.5)
    row[83] = 0.3 * (math.log(profile.period_seconds + 1) - 3)
    row[84] = 0.5 * (math.log(profile.periods + 2) - 1.5)
    row[85] = 0.25 * (math.log(2) - 1.5)  # no profile plays Canadian time
    row[86] = 0.5 * math.log(area / 361)
    days = (profile.day - _EPOCH).days
    periods = _FIRST_PERIOD * _PERIOD_RANGE ** (np.arange(_DATE_PERIODS) / (_DATE_PERIODS - 1))
    row[_DATE : _DATE + 2 * _DATE_PERIODS : 2] = np.cos(2 * np.pi * days / periods)
    row[_DATE + 1 : _DATE + 2 * _DATE_PERIODS : 2] = np.sin(2 * np.pi * days / periods)
    row[_SOURCE + profile.source] = 1
    return row.astype(np.float32)
