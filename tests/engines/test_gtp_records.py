"""Games taken from records and written to them by GTP commands."""

from __future__ import annotations

from pathlib import Path

from tests.engines.gtp_fakes import Controller

EDITED = "(;GM[1]SZ[5]KM[6.5];B[cc];W[bb];AB[dd]AW[ee][ed]AE[bb]PL[B];B[bb];W[ab])"
"""Two moves; then D2 black, E1 and E2 white, B4 empty again; Black and White once more."""


def test_stones_named_in_small_letters_are_written() -> None:
    with Controller() as controller:
        controller.ask("boardsize 9")
        controller.ask("set_free_handicap c3 g7")
        assert controller.ask("printsgf").startswith("= (;FF[4]AB[cg][gc]")
        controller.ask("set_position b c3 w g7")
        assert "AB[cg]AP[keima]AW[gc]" in controller.ask("printsgf")


def test_stones_changed_in_mid_game_are_taken_as_gnu_go_and_katago_take_them(tmp_path: Path) -> None:
    path = tmp_path / "edited.sgf"
    path.write_text(EDITED)
    with Controller() as controller:
        assert controller.ask(f"loadsgf {path}") == "="
        assert controller.ask("showboard").split("\n")[:8] == [
            "=",
            "   A B C D E",
            " 5 . . . . .",
            " 4(O)X . . .",
            " 3 . . X . .",
            " 2 . . . X O",
            " 1 . . . . O",
            "Black to play, 2 moves made, tromp-taylor rules, komi 6.5",
        ]
        assert controller.ask("undo") == "="
        assert controller.ask("undo") == "="
        assert controller.ask("undo") == "? cannot undo"
        assert controller.ask(f"loadsgf {path} 2") == "="
        assert "White to play, 1 moves made" in controller.ask("showboard")
