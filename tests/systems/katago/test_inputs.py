"""KataGo's inputs: the module's tables held to constructed positions, and the planes to KataGo's own."""

from __future__ import annotations

import gzip
import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keima.errors import BadRequest, UnsupportedPosition
from keima.games.game import stack
from keima.games.go import Position
from keima.games.go.vertices import xy_to_vertex
from keima.systems.katago.config import METADATA
from keima.systems.katago.inputs import GLOBALS, PLANES, KataGoEncoding, komi_wave
from keima.systems.katago.metadata import METADATA_TABLE, metadata_row, parse_profile
from tests.games.go.go_drawing import position_of

ENCODING = KataGoEncoding()
KATAGO_PLANES = Path(__file__).parents[2] / "data" / "go" / "katago-v7-random-planes.jsonl.gz"


def planes_of(position: Position, symmetry: int = 0) -> np.ndarray:
    return ENCODING.encode([position], symmetry).inputs["planes"][0]


def globals_of(position: Position, **options: Any) -> np.ndarray:
    return ENCODING.bind(**options).encode([position]).inputs["globals"][0]


def marked(position: Position, plane: int) -> set[str]:
    """The vertices where a plane is 1."""
    rows = planes_of(position)[plane]
    assert set(np.unique(rows)) <= {0.0, 1.0}
    return {xy_to_vertex(int(x), int(y), position.ysize) for y, x in np.argwhere(rows)}


# --- the table of planes ----------------------------------------------------------------------------------------------

FIVE = Position.start(5, "chinese", komi=7).play("B2", "D4", "B3", "C4", "pass", "D2")
"""Black B2 B3 (four liberties), White D4 C4 and D2; Black to move."""

CORNER = Position.start(5, "chinese").play("A1", "B1", "B2", "D4")
"""A black stone with one liberty, a white one with one; Black to move."""

SIMPLE_KO = Position.start(4, "japanese").play("B4", "C4", "A3", "D3", "B2", "C2", "C3", "B3")
"""White has just taken the ko at C3."""
KO_ENCORE = Position.start(4, "japanese", encore=True).play(
    "B4", "C4", "A3", "D3", "B2", "C2", "pass", "pass", "C3", "B3"
)
"""The same in the encore: White's B3 took a ko and Black may retake only after a pass for ko."""

LADDER = Position.start(9, "chinese").play("C7", "B7", "A3", "C6", "A5", "C8", "C1", "D8", "B2")
"""White to move has a black stone on the run at C7 with one liberty."""

HUNTED = Position.start(7, "chinese").play("D7", "C4", "C3", "B3", "G5", "B2", "G3")
"""White to move catches C3 (two liberties) by D3."""

TERRITORY_ENCORE_2 = Position.start(4, "japanese", encore=True).play(
    "B4", "C4", "B3", "C3", "B2", "C2", "B1", "C1", "pass", "pass", "pass", "pass"
)
"""Two walls, the second encore, Black to move."""

ENCORE_1 = Position.start(4, "japanese", encore=True).play("B2", "pass", "pass")

AREA = Position.start(4, "chinese").play("B4", "C4", "B3", "C3", "B2", "C2", "B1", "C1")

ALL_FIVE = {f"{column}{row}" for column in "ABCDE" for row in range(1, 6)}

EXAMPLES: dict[int, list[tuple[Position, set[str]]]] = {
    0: [(FIVE, ALL_FIVE)],
    1: [(FIVE, {"B2", "B3"})],
    2: [(FIVE, {"D4", "C4", "D2"})],
    3: [(FIVE, set()), (CORNER, {"A1", "B1"})],
    4: [(FIVE, set()), (AREA, set())],
    5: [(CORNER, {"B2"}), (Position.start(5).play("C1"), {"C1"})],
    6: [(SIMPLE_KO, {"C3"}), (FIVE, set())],
    7: [(KO_ENCORE, {"B3"}), (SIMPLE_KO, set())],
    8: [(FIVE, set()), (KO_ENCORE, set())],
    9: [(FIVE, {"D2"}), (Position.start(5).play("C3", "pass"), set())],
    10: [(FIVE, set()), (CORNER, {"B2"})],
    11: [(FIVE, {"C4"})],
    12: [(FIVE, {"B3"})],
    13: [(FIVE, {"D4"})],
    14: [(LADDER, {"C7"}), (HUNTED, {"C3"})],
    15: [(LADDER, {"C7"}), (LADDER.play("E5"), {"C7"}), (LADDER.play("D7"), {"C7"})],
    16: [(LADDER, set()), (LADDER.play("E5"), {"C7"}), (LADDER.play("D7"), {"C7"})],
    17: [(HUNTED, {"D3"}), (HUNTED.play("A1"), set())],
    18: [(AREA, {f"{c}{r}" for c in "AB" for r in range(1, 5)}), (FIVE, {"B2", "B3"})],
    19: [(AREA, {f"{c}{r}" for c in "CD" for r in range(1, 5)}), (ENCORE_1, set())],
    20: [(TERRITORY_ENCORE_2, {"B1", "B2", "B3", "B4"}), (AREA, set())],
    21: [(TERRITORY_ENCORE_2, {"C1", "C2", "C3", "C4"}), (AREA, set())],
}


def test_the_table_lists_every_plane_and_global_once() -> None:
    assert [plane for plane, _, _ in PLANES] == list(range(ENCODING.planes)) == list(EXAMPLES)
    assert [index for index, _, _ in GLOBALS] == list(range(ENCODING.globals)) == list(GLOBAL_EXAMPLES)
    for table in (PLANES, GLOBALS):
        assert len({name for _, name, _ in table}) == len(table)
        assert all(meaning for _, _, meaning in table)


@pytest.mark.parametrize(("plane", "name"), [(plane, name) for plane, name, _ in PLANES])
def test_a_plane_is_one_exactly_where_the_table_says(plane: int, name: str) -> None:
    for position, expected in EXAMPLES[plane]:
        assert marked(position, plane) == expected, f"{name}:\n{position}"


# --- the table of globals ---------------------------------------------------------------------------------------------

BASE_RULES = {"ko": "SIMPLE", "scoring": "AREA", "tax": "NONE", "suicide": False, "hasButton": False}


def start(komi: float = 7.5, **changes: Any) -> Position:
    return Position.start(5, {**BASE_RULES, **changes}, komi=komi)


PASSES = start().play("C3", "pass", "D3", "pass")

GLOBAL_EXAMPLES: dict[int, list[tuple[Position, float]]] = {
    0: [(PASSES, 1), (start(), 0), (PASSES.play("A1"), 0)],
    1: [(PASSES, 0), (PASSES.play("A1"), 1)],
    2: [(PASSES, 1), (PASSES.play("A1"), 0)],
    3: [(PASSES, 0), (PASSES.play("A1"), 1)],
    4: [(PASSES, 0), (PASSES.play("A1", "A2"), 1)],
    5: [(start(7.5), -7.5 / 20), (start(7.5).play("A1"), 7.5 / 20), (start(200), -45 / 20)],
    6: [(start(), 0), (start(ko="POSITIONAL"), 1), (start(ko="SITUATIONAL"), 1)],
    7: [(start(), 0), (start(ko="POSITIONAL"), 0.5), (start(ko="SITUATIONAL"), -0.5)],
    8: [(start(), 0), (start(suicide=True), 1)],
    9: [(start(), 0), (start(scoring="TERRITORY"), 1)],
    10: [(start(), 0), (start(tax="SEKI"), 1), (start(tax="ALL"), 1)],
    11: [(start(), 0), (start(tax="SEKI"), 0), (start(tax="ALL"), 1)],
    12: [(start(), 0), (ENCORE_1, 1), (TERRITORY_ENCORE_2, 1)],
    13: [(start(), 0), (ENCORE_1, 0), (TERRITORY_ENCORE_2, 1)],
    14: [(start(), 0), (PASSES, 1), (PASSES.play("A1"), 0)],
    15: [(start(), 0)],
    16: [(start(), 0)],
    17: [(start(), 0), (start(hasButton=True), 1), (start(hasButton=True).play("pass"), 0)],
    18: [(start(7), 0), (start(7.5), -0.5), (start(7.5).play("A1"), 0.5), (start(scoring="TERRITORY"), 0)],
}


@pytest.mark.parametrize(("index", "name"), [(index, name) for index, name, _ in GLOBALS])
def test_a_global_has_the_value_the_table_says(index: int, name: str) -> None:
    for position, expected in GLOBAL_EXAMPLES[index]:
        assert globals_of(position)[index] == pytest.approx(expected), f"{name}:\n{position}"


def test_a_playout_doubling_advantage_is_shown_when_asked_for() -> None:
    row = globals_of(start(), playout_doubling_advantage=-1.5)
    assert (row[15], row[16]) == (1, -0.75)


def test_the_komi_wave_peaks_half_a_point_above_a_komi_that_can_draw() -> None:
    values = [komi_wave(komi, 361) for komi in (6, 6.5, 7, 7.5, 8, 8.5, 9)]
    assert values == [0, -0.5, 0, 0.5, 0, -0.5, 0]
    assert [komi_wave(komi, 36) for komi in (-0.5, 0, 0.5, 1)] == [-0.5, 0, 0.5, 0]


def test_history_is_hidden_when_friendly_passing_ignores_the_end() -> None:
    friendly = start(friendlyPassOk=True).play("C3", "pass")
    plain = start().play("C3", "pass")
    assert globals_of(plain)[[0, 14]].tolist() == [1, 1]
    assert globals_of(friendly)[[0, 14]].tolist() == [0, 0]
    assert marked(plain, 10) == {"C3"}
    assert marked(friendly, 10) == set()


def test_only_the_last_move_is_shown_after_the_end() -> None:
    over = start().play("C3", "pass", "pass")
    assert over.is_over
    assert globals_of(over)[:5].tolist() == [1, 0, 0, 0, 0]
    assert marked(over, 11) == set()


# --- held to KataGo ---------------------------------------------------------------------------------------------------


def read_katago_planes() -> list[dict[str, Any]]:
    with gzip.open(KATAGO_PLANES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def position_of_case(case: dict[str, Any]) -> Position:
    return Position.from_moves(
        case["moves"],
        (case["xsize"], case["ysize"]),
        case["rules"],
        case["komi"],
        encore=case["encore"],
        handicap_stones=0,  # a bare `BoardHistory` does not take Black's first moves for handicap
    )


def test_planes_globals_and_legal_moves_are_those_katago_writes() -> None:
    """Random games under random rules, encores too; `NNInputs::fillRowV7` of KataGo v1.17.2 wrote what is expected."""
    cases = read_katago_planes()
    compared = 0
    for case in cases:
        position = position_of_case(case)
        encoding = KataGoEncoding(pass_alive_suicide=case["pass_alive_suicide"])
        batch = encoding.room(1, encoding.shape(position, 0))
        encoding.write(stack([position]), np.zeros(1, np.int64), batch)  # SPIGHT too: no `check`
        planes, row = batch.inputs["planes"], batch.inputs["globals"]
        if row[0, 14] and (case["conservative_pass"] or case["passing_hacks"]):
            continue  # KataGo was told to show a pass that ends the game as one that does not
        compared += 1
        assert (planes[0, 0] == 1).all()
        for plane in range(1, 22):
            expected = case["planes"].get(str(plane), [])
            assert np.flatnonzero(planes[0, plane]).tolist() == expected, (
                f"case {case['id']}, plane {plane}\n{position}"
            )
        assert row[0].tolist() == pytest.approx(case["globals"], abs=1e-6), f"case {case['id']}\n{position}"
        assert sorted(ENCODING.legal_moves(position).indices.tolist()) == case["legal"], f"case {case['id']}"
    assert compared > 200


def test_the_stored_positions_show_every_plane_and_global() -> None:
    cases = read_katago_planes()
    seen = {int(plane) for case in cases for plane in case["planes"]}
    assert seen == set(range(1, 22)) - {8}
    assert {i for case in cases for i, value in enumerate(case["globals"]) if value} == set(range(19)) - {15, 16}


# --- symmetries, batches, moves ---------------------------------------------------------------------------------------

WIDE = Position.start((7, 5), "japanese", komi=6.5).play("C3", "E4", "D2", "B4", "G1", "A5")


def transformed(planes: np.ndarray, symmetry: int) -> np.ndarray:
    """Flip rows (1), flip columns (2), then transpose (4)."""
    if symmetry & 1:
        planes = planes[..., ::-1, :]
    if symmetry & 2:
        planes = planes[..., ::-1]
    return planes.swapaxes(-1, -2) if symmetry & 4 else planes


@pytest.mark.parametrize("symmetry", range(8))
def test_a_symmetry_turns_the_planes_and_the_moves_with_them(symmetry: int) -> None:
    plain, turned = planes_of(WIDE), planes_of(WIDE, symmetry)
    assert ENCODING.shape(WIDE, symmetry) == turned.shape[1:]
    assert np.array_equal(turned, transformed(plain, symmetry))
    assert np.array_equal(ENCODING.restore(turned[1], WIDE, symmetry), plain[1])
    moves = ENCODING.legal_moves(WIDE, symmetry)
    points = np.zeros(turned[0].size + 1)
    points[moves.indices] = np.arange(len(moves.names)) + 1
    assert points[-1] == moves.names.index("pass") + 1
    board = ENCODING.restore(points[:-1].reshape(turned.shape[1:]), WIDE, symmetry)
    for i, name in enumerate(moves.names):
        if name != "pass":
            ((y, x),) = np.argwhere(board == i + 1)
            assert xy_to_vertex(int(x), int(y), WIDE.ysize) == name


def test_a_position_is_encoded_the_same_in_any_company() -> None:
    positions = [AREA, TERRITORY_ENCORE_2, KO_ENCORE, SIMPLE_KO, Position.start(4)]
    together = ENCODING.encode(positions, [0, 3, 4, 6, 7])
    for i, (position, symmetry) in enumerate(zip(positions, (0, 3, 4, 6, 7), strict=True)):
        alone = ENCODING.encode([position], symmetry)
        assert np.array_equal(together.inputs["planes"][i], alone.inputs["planes"][0])
        assert np.array_equal(together.inputs["globals"][i], alone.inputs["globals"][0])
        assert together.context["no_result_allowed"][i] == alone.context["no_result_allowed"][0]


def test_rectangles_share_a_batch_when_turned_to_one_shape() -> None:
    tall = Position.start((5, 7)).play("C3")
    batch = ENCODING.encode([WIDE, tall], [0, 4])
    assert batch.inputs["planes"].shape == (2, 22, 5, 7)


def test_no_result_is_allowed_under_simple_ko_or_territory_rules() -> None:
    positions = [
        start(ko="SIMPLE"),
        start(ko="POSITIONAL"),
        start(ko="POSITIONAL", scoring="TERRITORY"),
        start(ko="SITUATIONAL"),
    ]
    assert ENCODING.encode(positions).context["no_result_allowed"].tolist() == [True, False, True, False]


def test_pass_alive_areas_follow_the_networks_flag() -> None:
    # The corner stone touches no black stone: with suicide legal a white stone may come back there for ever.
    position = position_of(
        """
        O . X . X O
        . X X X X O
        X X O O O O
        O O O . . .
        """,
        rules="chinese",
    )
    assert {"A4", "B4", "A3"} <= marked(position, 18)
    flagged = KataGoEncoding(pass_alive_suicide=True).encode([position]).inputs
    assert flagged["planes"][0, 18, 0].tolist() == [0, 0, 1, 1, 1, 0]
    assert flagged["planes"][0, 19, 0].tolist() == [1, 0, 0, 0, 0, 1]
    assert flagged["globals"][0, 8] == 0  # what the rules say of suicide does not change


# --- options ----------------------------------------------------------------------------------------------------------


def test_policy_optimism_goes_to_the_context_and_not_with_metadata() -> None:
    optimistic = ENCODING.bind(policy_optimism=0.2)
    assert optimistic.encode([start()]).context["policy_optimism"].tolist() == pytest.approx([0.2])
    assert optimistic.bind(policy_optimism=None).encode([start()]).context["policy_optimism"].tolist() == [0]
    assert ENCODING.encode([start()]).context["policy_optimism"].tolist() == [0]
    human = KataGoEncoding(metadata=True).bind(policy_optimism=0.2, profile="rank_5k").encode([start(), start()])
    assert human.context["policy_optimism"].tolist() == [0, 0]
    assert human.inputs["metadata"].shape == (2, METADATA)
    assert human.inputs["metadata"].dtype == np.float32


def test_metadata_is_from_the_side_to_move() -> None:
    positions = [start(), start().play("C3")]
    batch = KataGoEncoding(metadata=True).bind(profile="rank_5k_2d").encode(positions)
    for row, black in enumerate((True, False)):
        expected = metadata_row(parse_profile("rank_5k_2d"), black, positions[0].xsize * positions[0].ysize)
        assert np.array_equal(batch.inputs["metadata"][row], expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy_optimism": 1.5}, "from 0 to 1"),
        ({"policy_optimism": "much"}, "from 0 to 1"),
        ({"policy_optimism": True}, "from 0 to 1"),
        ({"policy_optimism": math.nan}, "from 0 to 1"),
        ({"playout_doubling_advantage": 4}, "from -3 to 3"),
        ({"optimism": 0}, "no option 'optimism'; it takes policy_optimism, playout_doubling_advantage"),
        ({"profile": "rank_5k"}, "no human profiles"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        ENCODING.bind(**options)


@pytest.mark.parametrize("profile", ["", "rank_10d", "rank_0k", "rank_5k_", "rank_5k_6k_7k", "proyear_1799",
                                     "proyear_2024", "proyear_95", "best", 7])  # fmt: skip
def test_an_unknown_profile_is_refused_with_the_forms_there_are(profile: Any) -> None:
    with pytest.raises(BadRequest, match=r"rank_5k_2d.*preaz_5k.*proyear_1995"):
        KataGoEncoding(metadata=True).bind(profile=profile)


def test_a_human_network_needs_a_profile() -> None:
    human = KataGoEncoding(metadata=True)
    for encoding in (human, human.bind(profile="rank_5k").bind(profile=None)):
        with pytest.raises(BadRequest, match=r"needs a profile.*bind\(profile=.*profiles are"):
            encoding.encode([start()])


@pytest.mark.parametrize("symmetries", [8, -1, [0, 1]])
def test_a_symmetry_there_is_not_is_refused(symmetries: Any) -> None:
    with pytest.raises(BadRequest):
        ENCODING.encode([start()], symmetries)


def test_boards_of_two_shapes_and_other_games_are_refused() -> None:
    with pytest.raises(BadRequest, match="one shape"):
        ENCODING.encode([start(), AREA])
    with pytest.raises(UnsupportedPosition):
        ENCODING.check("a chess position")


def test_rules_no_network_knows_are_refused() -> None:
    """As by KataGo's `kata-set-rules`."""
    ENCODING.check(start(hasButton=True))
    with pytest.raises(UnsupportedPosition, match="SPIGHT"):
        ENCODING.check(start(ko="SPIGHT"))
    with pytest.raises(UnsupportedPosition, match="button"):
        ENCODING.check(start(scoring="TERRITORY", hasButton=True))


# --- metadata ---------------------------------------------------------------------------------------------------------


def test_a_metadata_row_holds_ranks_times_date_and_source() -> None:
    row = metadata_row(parse_profile("rank_5k_2d"), black_to_play=True, area=361)
    assert row[:6].tolist() == [1, 1, 0, 0, 0, 0]
    assert row[6:40].tolist() == [1] * 14 + [0] * 20  # 5k: nine dan ranks and five kyu
    assert row[40:74].tolist() == [1] * 8 + [0] * 26  # 2d
    assert row[74:82].tolist() == [0.5, 0, 0, 0, 0, 1, 0, 0]
    assert row[82:87].tolist() == pytest.approx(
        [
            0.4 * (math.log(1260) - 6.5),
            0.3 * (math.log(31) - 3),
            0.5 * (math.log(7) - 1.5),
            0.25 * (math.log(2) - 1.5),
            0,
        ]
    )
    days = (date(2020, 3, 1) - date(1970, 1, 1)).days
    assert row[87:89].tolist() == pytest.approx(
        [math.cos(days / 7 * math.tau), math.sin(days / 7 * math.tau)], abs=1e-5
    )
    assert row[149] == pytest.approx(math.cos(days / 560000 * math.tau), abs=1e-6)
    assert np.flatnonzero(row[151:]).tolist() == [2]
    white = metadata_row(parse_profile("rank_5k_2d"), black_to_play=False, area=81)
    assert white[6:40].sum() == 8
    assert white[40:74].sum() == 14
    assert white[86] == pytest.approx(0.5 * math.log(81 / 361))


@pytest.mark.parametrize(
    ("name", "black", "white", "day", "source"),
    [
        ("rank_9d", 1, 1, date(2020, 3, 1), 2),
        ("rank_1d", 9, 9, date(2020, 3, 1), 2),
        ("rank_1k", 10, 10, date(2020, 3, 1), 2),
        ("preaz_20k", 29, 29, date(2016, 9, 1), 2),
        ("preaz_20k_9d", 29, 1, date(2016, 9, 1), 2),
        ("proyear_1800", 1, 1, date(1800, 6, 1), 5),
        ("proyear_2020", 1, 1, date(2020, 6, 1), 5),
        ("proyear_2023", 1, 1, date(2023, 6, 1), 6),
    ],
)
def test_a_profile_is_read_from_its_name(name: str, black: int, white: int, day: date, source: int) -> None:
    profile = parse_profile(name)
    assert (profile.black_rank, profile.white_rank, profile.day, profile.source) == (black, white, day, source)


def test_the_metadata_table_covers_the_row() -> None:
    covered = []
    for numbers, name, meaning in METADATA_TABLE:
        first, _, last = numbers.partition("-")
        covered += range(int(first), int(last or first) + 1)
        assert name
        assert meaning
    assert covered == list(range(METADATA))
