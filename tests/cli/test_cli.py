"""The command line as a user meets it: help, answers, errors as one line and status 2, nothing half-written."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import keima
from keima.errors import BadWeights
from tests.cli.conftest import lines

Run = Callable[..., Result]
VERBS = ["review", "eval", "planes", "show", "convert", "bench", "compress"]
POSITIONS = """{"id": "a", "game": "go", "xsize": 5, "moves": [["B", "C3"]]}
{"id": "b", "xsize": 7, "ysize": 4, "rules": "japanese", "symmetry": 3}
"""


class TestHelp:
    def test_every_verb_is_listed(self, run: Run) -> None:
        shown = run("--help").stdout
        assert all(f"\n  {verb} " in shown for verb in VERBS)

    @pytest.mark.parametrize("verb", [*([verb] for verb in VERBS), ["compress", "fold"]])
    def test_every_verb_has_examples(self, run: Run, verb: list[str]) -> None:
        result = run(*verb, "--help")
        assert result.exit_code == 0
        assert f"keima {' '.join(verb)}" in result.stdout.split("Examples:")[1]

    def test_help_loads_nothing_heavy(self) -> None:
        heavy = "{'torch', 'numba', 'openvino', 'matplotlib', 'numpy', 'rich', 'chess', 'sgfmill'}"
        code = f"import sys, keima.cli.main; print(sorted({heavy} & set(sys.modules)))"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stdout == "[]\n"

    def test_version(self, run: Run) -> None:
        assert run("--version").stdout == f"keima {keima.__version__}\n"

    def test_python_m_keima(self) -> None:
        result = subprocess.run(
            [sys.executable, "-m", "keima", "--version"], capture_output=True, text=True, check=True
        )
        assert result.stdout.startswith("keima ")

    def test_an_unknown_verb_is_a_usage_error(self, run: Run) -> None:
        assert run("plant").exit_code == 2

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_a_full_disk_behind_standard_output_is_one_line(self) -> None:
        command = [sys.executable, "-m", "keima", "planes", "alphago-zero", "-"]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, input="{}", stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2
        told = [line for line in done.stderr.splitlines() if "compiling kernels" not in line]
        assert told == ["keima: standard output: cannot be written: No space left on device"]


class TestEval:
    def test_answers_are_the_evaluators(self, run: Run, go_net: Path) -> None:
        result = run("eval", go_net, "-", "--backend", "torch", stdin=POSITIONS)
        assert result.exit_code == 0
        first, second = lines(result.stdout)
        position = keima.go.Position.start(size=5).play("C3")
        expected = keima.Evaluator(keima.load(go_net), backend="torch")([position])[0]
        assert first["id"] == "a"
        assert first["policy"] == pytest.approx(expected.policy, abs=1e-6)
        assert sum(second["policy"].values()) == pytest.approx(1, abs=1e-5)
        assert first["value"] == pytest.approx(first["win"] - first["loss"], abs=1e-5)
        assert np.shape(second["ownership"]) == (4, 7)

    def test_the_lines_symmetry_wins_over_the_options(self, run: Run, go_net: Path) -> None:
        line = '{"xsize": 5, "moves": [["B", "A1"]]%s}'
        written = run("eval", go_net, "-", "--backend", "torch", stdin=line % ', "symmetry": 5').stdout
        chosen = run("eval", go_net, "-", "--backend", "torch", "--symmetry", "5", stdin=line % "").stdout
        plain = run("eval", go_net, "-", "--backend", "torch", stdin=line % "").stdout
        assert written == chosen != plain

    def test_chess(self, run: Run, chess_net: Path) -> None:
        result = run(
            "eval", chess_net, "-", "--backend", "torch", stdin='{"id": 8, "game": "chess", "moves": ["e2e4"]}'
        )
        (answer,) = lines(result.stdout)
        assert answer["id"] == 8
        assert len(answer["policy"]) == 20
        assert {"win", "draw", "loss", "moves_left"} <= set(answer)

    def test_bad_lines_are_answered_in_their_place_and_the_status_is_2(self, run: Run, go_net: Path) -> None:
        text = (
            POSITIONS + '{"id": "x", "komi": "many"}\nnonsense\n{"id": "c", "game": "chess"}\n{"id": "d", "xsize": 3}\n'
        )
        result = run("eval", go_net, "-", "--backend", "torch", "-o", "out.jsonl", stdin=text)
        assert result.exit_code == 2
        answers = lines(Path("out.jsonl").read_text())
        assert [answer["id"] for answer in answers] == ["a", "b", "x", 4, "c", "d"]
        assert ["error" in answer for answer in answers] == [False, False, True, True, True, False]
        assert 'standard input: line 3: field "komi"' in answers[2]["error"]
        assert "Traceback" not in result.stderr

    def test_an_id_that_no_encoding_can_write_is_escaped(self, run: Run, go_net: Path) -> None:
        text = '{"id": "\\ud800", "xsize": 3}\n{"id": "\u5e03\u77f3", "xsize": 3}\n'
        result = run("eval", go_net, "-", "--backend", "torch", stdin=text)
        assert result.exit_code == 0
        assert [answer["id"] for answer in lines(result.stdout)] == ["\ud800", "\u5e03\u77f3"]
        assert '"\u5e03\u77f3"' in result.stdout

    def test_a_temperature_for_all(self, run: Run, go_net: Path) -> None:
        plain, sharp = (
            lines(run("eval", go_net, "-", "--backend", "torch", "--temperature", t, stdin='{"xsize": 3}').stdout)[0]
            for t in ("1", "0.1")
        )
        assert max(sharp["policy"].values()) > max(plain["policy"].values())
        assert sharp["logits"] == plain["logits"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["NET", "-", "--temperature", "0"], "--temperature takes a number above 0"),
            (["absent.bin.gz", "-"], "absent.bin.gz"),
            (["NET", "absent.jsonl"], "absent.jsonl"),
            (["NET", "-", "--backend", "abacus"], "abacus"),
            (["NET", "-", "--precision", "f7"], "f7"),
            (["NET", "-", "--symmetry", "9"], "--symmetry takes 0 to 7 or average"),
            (["NET", "-", "-o", "no/such/folder/out.jsonl"], "no/such/folder/out.jsonl"),
        ],
    )
    def test_errors_are_one_line_and_status_2(self, run: Run, go_net: Path, arguments: list[str], message: str) -> None:
        result = run("eval", *(str(go_net) if part == "NET" else part for part in arguments), stdin=POSITIONS)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.startswith("keima: ")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1

    def test_a_file_of_another_kind_is_no_network(self, run: Run) -> None:
        Path("game.sgf").write_text("(;GM[1])")
        result = run("eval", "game.sgf", "-", stdin=POSITIONS)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "game.sgf: not a network file" in result.stderr

    def test_a_program_that_asks_line_by_line_is_answered_line_by_line(self) -> None:
        from keima.cli.eval import CHUNK, _chunks

        asked, answered = [threading.Event() for _ in range(3)], []

        def questions() -> Iterator[Any]:
            for number in range(3):
                assert asked[number].wait(30)
                yield number

        asked[0].set()
        for chunk in _chunks(questions(), waits=True):
            answered += chunk
            if len(answered) < 3:
                asked[len(answered)].set()
        assert answered == [0, 1, 2]
        whole = [n for chunk in _chunks(iter(range(3 * CHUNK + 1)), waits=True) for n in chunk]
        assert whole == list(range(3 * CHUNK + 1))

    def test_a_position_the_network_refuses_is_named_by_its_line(self, run: Run, chess_net: Path) -> None:
        result = run("eval", chess_net, "-", stdin='{"game": "chess"}\n\n{"id": "go", "xsize": 5}\n')
        good, bad = lines(result.stdout)
        assert result.exit_code == 2
        assert "policy" in good
        assert bad["id"] == "go"
        assert bad["error"].startswith("standard input: line 3: ")

    def test_an_interrupt_leaves_nothing_behind(
        self, run: Run, go_net: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def interrupted(path: str) -> Iterator[Any]:
            raise KeyboardInterrupt
            yield

        monkeypatch.setattr("keima.games.positions.read_positions", interrupted)
        result = run("eval", go_net, "-", "-o", "out.jsonl", "--backend", "torch")
        assert result.exit_code == 130
        assert list(tmp_path.iterdir()) == []


class TestPlanes:
    def test_planes_and_globals_are_the_encodings(self, run: Run) -> None:
        result = run("planes", "katago", "-", stdin=POSITIONS)
        first, second = lines(result.stdout)
        from keima.systems.system import get_encoding

        batch = get_encoding("katago").encode([keima.go.Position.start(size=5).play("C3")])
        np.testing.assert_array_equal(np.float32(first["planes"]), batch.inputs["planes"][0])
        np.testing.assert_array_equal(np.float32(first["globals"]), batch.inputs["globals"][0])
        assert np.shape(second["planes"])[1:] == (4, 7)

    def test_no_globals_where_the_encoding_has_none(self, run: Run) -> None:
        (answer,) = lines(run("planes", "lc0", "-", stdin='{"game": "chess"}').stdout)
        assert set(answer) == {"id", "planes"}
        assert np.shape(answer["planes"]) == (112, 8, 8)

    def test_an_unknown_encoding_names_the_known_ones(self, run: Run) -> None:
        result = run("planes", "hexapawn", "-", stdin=POSITIONS)
        assert result.exit_code == 2
        assert "katago-guide" in result.stderr

    def test_bad_lines(self, run: Run) -> None:
        result = run(
            "planes", "lc0", "-", stdin='{"game": "chess"}\n{"id": 2, "xsize": 9}\n{"game": "chess", "symmetry": 1}'
        )
        assert result.exit_code == 2
        assert ["error" in answer for answer in lines(result.stdout)] == [False, True, True]


class TestShow:
    def test_a_file(self, run: Run, go_net: Path) -> None:
        shown = run("show", go_net).stdout
        assert "keima.systems.katago.network.KataGoNetwork" in shown
        assert "planes 22×19×19, globals 19" in shown
        count = sum(p.numel() for p in keima.load(go_net).parameters())
        assert f"{count:,}" in shown

    def test_a_name_as_json(self, run: Run) -> None:
        import json

        facts = json.loads(run("show", "maia-6x64", "--json").stdout)
        assert (facts["name"], facts["encoding"], facts["inputs"]) == ("maia-6x64", "lc0", {"planes": [112, 8, 8]})
        assert "McIlroy-Young" in facts["paper"]
        assert "Leela Chess Zero" in json.loads(run("show", "lc0-10x128", "--json").stdout)["paper"]
        top = sum(part["parameters"] for part in facts["modules"] if "." not in part["name"])
        assert top == facts["parameters"]

    def test_the_list_has_every_name(self, run: Run) -> None:
        shown = run("show", "--list").stdout
        assert [line.split()[0] for line in shown.splitlines()] == [entry.name for entry in keima.list_networks()]

    def test_neither_file_nor_name(self, run: Run) -> None:
        result = run("show", "betago")
        assert result.exit_code == 2
        assert "no file 'betago'" in result.stderr
        assert "alphago-zero" in result.stderr

    @pytest.mark.parametrize("ending", ["png", "svg"])
    def test_a_position_drawn(self, run: Run, go_net: Path, ending: str) -> None:
        Path("game.sgf").write_text("(;SZ[5]KM[7.5]RU[Chinese];B[cc];W[bb])")
        result = run("show", go_net, "--position", "game.sgf", "--move", "1", "-o", f"p.{ending}", "--backend", "torch")
        assert result.exit_code == 0
        assert Path(f"p.{ending}").read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")

    @pytest.mark.parametrize(
        ("position", "message"),
        [("game.sgf", "the game has 2 moves, not 3"), ("absent.sgf", "no such file"), ('{"xsize": 0}', "0")],
    )
    def test_a_position_that_is_not_there(self, run: Run, go_net: Path, position: str, message: str) -> None:
        Path("game.sgf").write_text("(;SZ[5]KM[7.5]RU[Chinese];B[cc];W[bb])")
        result = run("show", go_net, "--position", position, "--move", "3", "--backend", "torch")
        assert result.exit_code == 2
        assert message in result.stderr


class TestFiles:
    def test_convert_there_and_back(self, run: Run, go_net: Path) -> None:
        assert run("convert", go_net, "a.safetensors").exit_code == 0
        assert run("convert", "a.safetensors", "b.bin.gz").exit_code == 0
        before, after = keima.load(go_net).state_dict(), keima.load("b.bin.gz").state_dict()
        assert before.keys() == after.keys()
        assert all((before[name] == after[name]).all() for name in before)

    def test_fold_keeps_the_answers(self, run: Run, chess_net: Path) -> None:
        assert run("compress", "fold", chess_net, "folded.safetensors").exit_code == 0
        answers = [
            lines(run("eval", net, "-", "--backend", "torch", stdin='{"game": "chess"}').stdout)[0]
            for net in (chess_net, "folded.safetensors")
        ]
        assert answers[0]["policy"] == pytest.approx(answers[1]["policy"], abs=1e-5)

    def test_a_format_that_cannot_hold_the_network(self, run: Run, chess_net: Path, tmp_path: Path) -> None:
        result = run("convert", chess_net, "x.bin.gz")
        assert result.exit_code == 2
        assert "x.bin.gz" in result.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_truncated_network(self, run: Run, go_net: Path, tmp_path: Path) -> None:
        Path("cut.bin.gz").write_bytes(go_net.read_bytes()[:2000])
        with pytest.raises(BadWeights):
            keima.load("cut.bin.gz")
        result = run("convert", "cut.bin.gz", "whole.bin.gz")
        assert result.exit_code == 2
        assert result.stderr.startswith("keima: cut.bin.gz")
        assert not Path("whole.bin.gz").exists()


class TestBench:
    @pytest.mark.parametrize("backend", ["openvino", "torch"])
    def test_it_prints_speeds_and_shares(self, run: Run, chess_net: Path, backend: str) -> None:
        rounds = ("--seconds", "0.01", "--rounds", "1", "--backend", backend)
        result = run("bench", "--net", chess_net, "--batch", "2", "--precision", "f32", *rounds)
        assert result.exit_code == 0
        row = result.stdout.splitlines()[-1].split()
        assert row[:2] == ["f32", "2"]
        assert "%" in result.stdout

    def test_without_a_network_it_takes_those_that_came_along(self, run: Run) -> None:
        result = run("bench", "--batch", "1", "--precision", "f32", "--seconds", "0.01", "--rounds", "1")
        assert result.exit_code == 0, result.stderr
        titles = [line.split()[0] for line in result.stdout.splitlines() if line and line[0] != " "]
        assert titles == ["keima-go", "keima-chess", "keima-connect-four"]


class TestReference:
    def test_eval_gives_the_engines_answers(self, run: Run, reference: Path, golden: Callable[[str], Any]) -> None:
        import json

        net = reference / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz"
        cases = golden("katago-g170-b6c96")[:30]
        result = run("eval", net, "-", "--backend", "torch", stdin="\n".join(map(json.dumps, cases)))
        assert result.exit_code == 0
        for case, answer in zip(cases, lines(result.stdout), strict=True):
            white = answer["win"] if case["to_play"] == "W" else answer["loss"]
            lead = answer["lead"] if case["to_play"] == "W" else -answer["lead"]
            assert answer["id"] == case["id"]
            assert white == pytest.approx(case["out"]["whiteWin"], abs=1e-3)
            assert lead == pytest.approx(case["out"]["whiteLead"], abs=0.01)

    def test_planes_are_the_engines(self, run: Run, golden: Callable[[str], Any]) -> None:
        import json

        cases = [{**case, "game": "chess"} for case in golden("lc0-maia")[:20]]
        result = run("planes", "lc0", "-", stdin="\n".join(map(json.dumps, cases)))
        for case, answer in zip(cases, lines(result.stdout), strict=True):
            for index, plane in enumerate(answer["planes"]):
                mask, value = case["planes"].get(str(index), ["0x0", 1.0])
                expected = [
                    [value * (int(mask, 16) >> (8 * rank + file) & 1) for file in range(8)] for rank in range(8)
                ]
                np.testing.assert_allclose(plane, expected, atol=1e-6)
