"""Leela Zero's files: read, written, loaded by leelaz itself, and refused when they are not what they should be."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import keima
from keima.compress.fold import fold
from keima.errors import BadWeights, KeimaError, UnsupportedNetwork
from keima.games.go.position import Position
from keima.systems.alphago_zero.file import looks_like_leela_zero, read_leela_zero, write_leela_zero
from keima.systems.alphago_zero.leela_zero import LeelaZeroNetwork
from tests.systems.alphago_zero.test_network import heatmap
from tests.systems.laws import answers, assert_same, lively, random_inputs

LEELAZ = shutil.which("leelaz", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/games"]))


def fresh(**sizes) -> LeelaZeroNetwork:
    torch.manual_seed(0)
    network = LeelaZeroNetwork(**{"blocks": 2, "channels": 6, "board_size": 5, **sizes})
    lively(network)
    return network


def numbers(*values: float) -> bytes:
    return b" ".join(str(value).encode() for value in values)


def hand_written() -> list[bytes]:
    """A network on 2×2 boards whose answer can be worked out by hand: no block, one channel, mostly zeros.

    Its only convolution looks one point up (Leela Zero's rows run upwards: one row back in its order) at plane 0.
    """
    kernel = np.zeros((18, 3, 3))
    kernel[0, 0, 1] = 1  # input row − 1: the point below on the board
    policy = np.zeros((5, 8))
    policy[0, 0] = 1  # the move on Leela Zero's point 0 (bottom left) looks at point 0 of the first policy plane
    policy[3, 3] = 2  # top right at top right, twice
    value = np.zeros((256, 4))
    value[0, 2] = 1  # top left
    last = np.zeros(256)
    last[0] = 1
    return [
        b"1",
        numbers(*kernel.ravel()),
        b"0.5",  # bias
        b"0.25",  # mean
        b"0.99999",  # variance + 1e-5 = 1
        b"1 0",
        b"0 0",
        b"0 0",
        b"0.99999 0.99999",
        numbers(*policy.ravel()),
        b"0 0 0 0 7",
        b"1",
        b"0",
        b"0",
        b"0.99999",
        numbers(*value.ravel()),
        numbers(*[0] * 256),
        numbers(*last),
        b"-0.25",
    ]


def test_a_file_written_by_hand_computes_what_its_numbers_say(tmp_path):
    """Every trunk point is bias − mean = 0.25, and 1.25 above an own stone, with rows turned to keima's order."""
    path = tmp_path / "hand.txt"
    path.write_bytes(b"\n".join(hand_written()) + b"\n")
    network = read_leela_zero(path)
    assert network.config == {
        "blocks": 0,
        "channels": 1,
        "board_size": 2,
        "value_for_black": False,
        "value_hidden": 256,
    }
    planes = np.zeros((1, 18, 2, 2), np.float32)
    planes[0, 0, 1, 1] = 1  # an own stone bottom right: felt top right
    found = answers(network, {"planes": torch.from_numpy(planes)})
    # keima's order: top left, top right, bottom left, bottom right, pass
    np.testing.assert_allclose(found["policy"], [[0, 2 * 1.25, 0.25, 0, 7]], atol=1e-5)
    np.testing.assert_allclose(found["value"], np.tanh([0.25 - 0.25]), atol=1e-5)
    planes[0, 0] = [[0, 0], [1, 0]]  # bottom left: felt top left, which the value looks at
    found = answers(network, {"planes": torch.from_numpy(planes)})
    np.testing.assert_allclose(found["policy"], [[0, 2 * 0.25, 0.25, 0, 7]], atol=1e-5)
    np.testing.assert_allclose(found["value"], np.tanh([1.25 - 0.25]), atol=1e-5)


@pytest.mark.parametrize("name", ["net.txt", "net.txt.gz"])
@pytest.mark.parametrize("value_for_black", [False, True])
def test_written_and_read_it_answers_the_same(tmp_path, name, value_for_black):
    """Batch norm's scale, which the format lacks, is folded into the weights."""
    network = fresh(value_for_black=value_for_black)
    write_leela_zero(network, tmp_path / name)
    again = read_leela_zero(tmp_path / name)
    assert again.config == network.config
    assert again.pedigree.name == "net"
    assert again.pedigree.format == f"Leela Zero version {2 if value_for_black else 1}"
    inputs = random_inputs(network, 4)
    assert_same(answers(again, inputs), answers(network, inputs), 1e-5)


def test_a_folded_network_is_written_too(tmp_path):
    network = fresh()
    write_leela_zero(fold(network), tmp_path / "net.txt")
    inputs = random_inputs(network, 4)
    assert_same(answers(read_leela_zero(tmp_path / "net.txt"), inputs), answers(network, inputs), 1e-5)


def test_reading_and_writing_again_changes_nothing(reference, tmp_path):
    """float32 survives its decimal form; biases, kept as batch norm's shift, may differ in their last binary place."""
    original = reference / "nets" / "leela-zero-random-3x32.txt.gz"
    write_leela_zero(read_leela_zero(original), tmp_path / "1.txt")
    write_leela_zero(read_leela_zero(tmp_path / "1.txt"), tmp_path / "2.txt")
    assert (tmp_path / "1.txt").read_bytes() == (tmp_path / "2.txt").read_bytes()
    with gzip.open(original) as file:
        for old, new in zip(file, (tmp_path / "1.txt").read_bytes().splitlines(), strict=True):
            old_numbers, new_numbers = (np.array(line.split(), np.float32) for line in (old, new))
            np.testing.assert_allclose(old_numbers, new_numbers, rtol=2e-7)


def leelaz_heatmap(path: Path, moves: tuple[str, ...], symmetry: int) -> tuple[np.ndarray, int, float]:
    """What `leelaz` itself says of a position: ‰ [19, 19], ‰ of pass, win rate."""
    plays = [f"play {'BW'[i % 2]} {move}" for i, move in enumerate(moves)]
    talk = "\n".join([*plays, f"heatmap {symmetry}", "quit", ""])
    command = [LEELAZ, "--gtp", "--cpu-only", "--noponder", "--threads", "1", "--weights", str(path)]
    run = subprocess.run(command, input=talk, capture_output=True, text=True, timeout=120, check=True)
    said = run.stderr
    rows = re.findall(r"^((?: *\d+ ){19})$", said, re.MULTILINE)
    on_pass, win_rate = re.search(r"pass: (\d+)", said), re.search(r"winrate: ([\d.]+)", said)
    assert len(rows) == 19, said
    assert on_pass is not None
    assert win_rate is not None
    return np.array([row.split() for row in rows], int), int(on_pass[1]), float(win_rate[1])


@pytest.mark.skipif(LEELAZ is None, reason="leelaz is not installed (Debian package leela-zero)")
@pytest.mark.parametrize(("value_for_black", "symmetry"), [(False, 0), (False, 5), (True, 6)])
def test_leelaz_loads_what_is_written_and_answers_the_same(tmp_path, value_for_black, symmetry):
    """Both versions, for White to move, where version 2 turns the value over."""
    network = fresh(board_size=19, channels=16, value_for_black=value_for_black)
    with torch.no_grad():  # every weight of its own, and sharp answers, so that the comparison means something
        torch.nn.init.normal_(network.policy_head.linear.weight, std=0.5)
        network.value_head.linear2.weight *= 100
    path = tmp_path / "written.txt.gz"
    write_leela_zero(network, path)
    moves = ("Q16", "D4", "R4", "P3", "K10")
    printed, printed_pass, printed_win_rate = leelaz_heatmap(path, moves, symmetry)
    position = Position.start(size=19).play(*moves)
    boards, passes, win_rates = heatmap(network, [position], [symmetry])
    found = boards[0] * (position.stones == 0)
    assert printed.max() > 20, "the test needs an answer that is not flat"
    assert np.all(found > printed - 0.01)
    assert np.all(found < printed + 1.01)
    assert printed_pass - 0.01 < passes[0] < printed_pass + 1.01
    assert abs(win_rates[0] - printed_win_rate) < 1e-4
    assert abs(printed_win_rate - 0.5) > 0.01


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda lines: [], BadWeights, "the file is empty"),
        (lambda lines: [b"3", *lines[1:]], UnsupportedNetwork, "line 1: version '3'"),
        (lambda lines: lines[:-1], BadWeights, "18 lines; a Leela Zero file has 19 and 8 for each"),
        (lambda lines: [*lines[:2], b"", *lines[3:]], BadWeights, "line 3: 0 numbers"),
        (lambda lines: [*lines[:3], b"0 0", *lines[4:]], BadWeights, "line 4: 2 numbers, expected 1"),
        (lambda lines: [*lines[:3], b"nan", *lines[4:]], BadWeights, "line 4: a number is not finite"),
        (lambda lines: [*lines[:3], b"1e60", *lines[4:]], BadWeights, "line 4: a number is not finite"),
        (lambda lines: [*lines[:3], b"zero", *lines[4:]], BadWeights, "line 4: not all numbers"),
        (lambda lines: [*lines[:4], b"-1", *lines[5:]], BadWeights, "line 5: a variance below 0"),
        (lambda lines: [*lines[:2], b"3e38", b"0", b"0", *lines[5:]], BadWeights, "line 5: a bias too large for its"),
        (lambda lines: [*lines[:10], b"0 0 0 0", *lines[11:]], BadWeights, "line 11: 4 numbers, expected one a move"),
        (
            lambda lines: [*lines[:10], numbers(*[0] * 626), *lines[11:]],
            UnsupportedNetwork,
            "line 11: a network for 25×25 boards",
        ),
        (lambda lines: [*lines[:5], *[b"0"] * 8 * 257, *lines[5:]], BadWeights, "2,075 lines; a network of 256 blocks"),
        (lambda lines: [lines[0], b"0 1 2", *lines[2:]], BadWeights, "line 2: 5 characters cannot hold the 162"),
    ],
)
def test_a_damaged_file_is_refused_with_the_line(tmp_path, change, error, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"\n".join(change(hand_written())))
    with pytest.raises(error, match=message) as caught:
        read_leela_zero(path)
    assert caught.value.source == str(path)


def test_a_file_of_some_megabytes_is_read_at_once(tmp_path):
    """256 blocks of 9 channels, 4 MB; and blocks without end, refused before any is made."""
    lines = hand_written()
    block = [numbers(*[0.125] * 81 * 9), *[numbers(*[0.25] * 9)] * 2, numbers(*[1] * 9)]
    lines[1:5] = [numbers(*[0.5] * 162 * 9), *block[1:]]
    lines[5], lines[11] = numbers(*[1] * 18), numbers(*[1] * 9)
    path = tmp_path / "large.txt"
    for blocks, seconds in ((256, 5.0), (60_000, 1.0)):
        tower = block * 2 * blocks if blocks == 256 else [b"0"] * 8 * blocks
        path.write_bytes(b"\n".join([*lines[:5], *tower, *lines[5:]]))
        began = time.process_time()
        if blocks == 256:
            assert len(read_leela_zero(path).tower) == 256
        else:
            with pytest.raises(BadWeights, match="480,019 lines; a network of 256 blocks has 2,067"):
                read_leela_zero(path)
        assert time.process_time() - began < seconds


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_garbled_file_is_read_or_refused_and_nothing_else(tmp_path_factory, data):
    """Cut, overwrite or repeat any part: the reader returns a network or raises the family's error."""
    whole = b"\n".join(hand_written())
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    middle = data.draw(st.one_of(st.binary(max_size=40), st.just(whole[start:stop] * 2)))
    path = tmp_path_factory.mktemp("fuzz") / "net.txt"
    path.write_bytes(whole[:start] + middle + whole[stop:])
    try:
        network = read_leela_zero(path)
    except KeimaError:
        pass
    else:
        assert all(parameter.isfinite().all() for parameter in network.parameters())


def test_only_leela_zero_networks_that_leelaz_can_load_are_written(tmp_path):
    path = tmp_path / "net.txt"
    with pytest.raises(UnsupportedNetwork, match="not a ConnectFourNetwork"):
        write_leela_zero(keima.create("connect-four", blocks=1, channels=4), path)
    with pytest.raises(UnsupportedNetwork, match="256 hidden units, this network 16"):
        write_leela_zero(fresh(value_hidden=16), path)
    broken = fresh()
    with torch.no_grad():
        broken.tower[1].convolution2.weight[0, 0, 0, 0] = float("nan")
    with pytest.raises(BadWeights, match=r"tower\.1\.convolution2: a weight is not finite"):
        write_leela_zero(broken, path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "yes"),
    [
        (b"1\n0.1 -2e-05 .5", True),
        (b"2\r\n1 2 3\r\n", True),
        (b"3\n0.1 0.2", True),  # a version to come: recognised, then refused by name
        (b"g170-b6c96\n8\n22 19\n", False),
        (b"1\n8\n22\n", False),
        (b"", False),
        (b"\x08\x01", False),
        (b"1\nname with words\n", False),
    ],
)
def test_leela_zero_s_files_are_told_by_their_first_two_lines(data, yes):
    assert looks_like_leela_zero(data) is yes
