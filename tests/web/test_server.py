"""The server's doors: files with their types, who may come in, sessions that are found again."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from keima.web.keeping import Keeper
from keima.web.networks import Networks
from keima.web.server import PAGES, Settings
from tests.web.conversation import Page, Served, serve


def get(served: Served, path: str, **headers: str) -> tuple[int, str, str]:
    """Status, type and text of a page."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, answer.getheader("content-type", ""), body


def test_files_have_their_types(served: Served) -> None:
    assert get(served, "/health")[::2] == (200, '{"keima":"0.1.0"}')
    assert get(served, "/static/games/chess/board.js")[:2] == (200, "text/javascript; charset=utf-8")
    for path in PAGES.glob("*.js"):
        assert get(served, f"/static/{path.name}")[:2] == (200, "text/javascript; charset=utf-8")
    assert get(served, "/static/nothing.js")[0] == 404


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/%2e%2e/errors.py", "/static//etc/passwd",
     "/static/games/..%2f..%2ferrors/board.js", "/static/games/checkers/board.js", "/static/%00", "/openapi.json"],
)  # fmt: skip
def test_no_other_file_comes_out(served: Served, path: str) -> None:
    assert get(served, path)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "10.0.0.7", "localhost.evil.example", ""])
def test_other_names_are_not_answered(served: Served, host: str) -> None:
    """A page elsewhere whose name is bound to 127.0.0.1 (DNS rebinding) gets nothing."""
    assert get(served, "/health", Host=host)[0] == 403


def test_pages_from_elsewhere_open_no_socket(served: Served) -> None:
    assert get(served, "/health", Origin="http://evil.example")[0] == 403
    with pytest.raises(InvalidStatus) as caught, served.page(origin="http://evil.example"):
        pass
    assert caught.value.response.status_code == 403
    with served.page(origin=f"http://127.0.0.1:{served.port}") as page:
        assert page.event("welcome")["local"] is True


def test_beyond_this_machine_only_with_the_token(small_network: Path, tmp_path: Path) -> None:
    settings = Settings(host="0.0.0.0", token="secret", kept=tmp_path)
    with serve(Networks([str(small_network)], {"threads": 1}, own=False), settings) as served:
        assert get(served, "/health")[0] == 403
        assert get(served, "/health?token=wrong")[0] == 403
        assert get(served, "/health?token=secret")[0] == 200
        assert get(served, "/health", Cookie="keima-token=secret")[0] == 200
        assert get(served, "/?token=secret")[0] == 303
        assert get(served, "/health?token=secret", Host="192.168.1.5")[0] == 200
        assert get(served, "/health?token=secret", Host="evil.example")[0] == 403
        with pytest.raises(InvalidStatus), served.page():
            pass
        with served.page("?token=secret") as page:
            assert page.event("welcome")["local"] is False
            assert page.ask("open_network", network="/etc/passwd")["field"] == "network"


def until(true: Callable[[], object], seconds: float = 10) -> None:
    """Wait for something."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_connection_lost_is_found_again(served: Served) -> None:
    with served.page() as page:
        name = page.event("welcome")["session"]
        page.new("connect_four")
        page.ask("play", move="d")
    with served.page(f"?session={name}") as page:
        assert page.event("welcome")["session"] == name
        assert page.event("position")["rows"][-1] == "...1..."
        with served.page(f"?session={name}") as second:
            second.event("review")
            with pytest.raises(ConnectionClosed) as closed:
                page.event("nothing", seconds=5)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4409  # so that the page does not take it back
    with served.page("?session=../../etc") as page:
        assert page.event("welcome")["session"].isalnum()


def test_two_tabs_have_a_board_each(served: Served) -> None:
    with served.page() as one, served.page() as other:
        assert one.event("welcome")["session"] != other.event("welcome")["session"]
        one.new("connect_four")
        one.ask("play", move="d")
        other.new("chess")
        assert other.ask("play", move="d")["field"] == "move"


def test_a_server_that_died_lost_nothing(small_network: Path, tmp_path: Path) -> None:
    """The game is on the disk a moment after each move; another server goes on from there."""
    settings = Settings(kept=tmp_path)
    networks = [Networks([str(small_network)], {"threads": 1}, own=False) for _ in range(2)]
    with serve(networks[0], settings) as served, served.page() as page:
        name = page.event("welcome")["session"]
        page.new("chess")
        for move in ("e2e4", "e7e5", "g1f3"):
            page.ask("play", move=move)
        page.ask("comment", text="here")
        until(lambda: any("2. Nf3 { here }" in path.read_text() for path in tmp_path.glob(f"*{name}.pgn")))
    with serve(networks[1], settings) as served, served.page(f"?session={name}") as page:
        assert page.event("welcome")["session"] == name
        position = page.event("position")
        assert (position["ply"], position["comment"]) == (3, "here")


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    keeper = Keeper(file)
    keeper.keep("abc", ".sgf", "(;)")
    keeper.close()
    assert str(file) in keeper.problem


def test_boards_are_limited_and_forgotten(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is refused; one whose page has left makes room after its time."""
    server = served.server
    with served.page() as page:
        page.event("welcome")
        monkeypatch.setattr("keima.web.server.MOST_SESSIONS", len(server.sessions) + 1)
        with served.page() as last:
            name = last.event("welcome")["session"]
            with pytest.raises(ConnectionClosed) as closed, served.page() as refused:
                refused.receive()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4429
        until(lambda: server.sessions[name].send is None)
        monkeypatch.setattr("keima.web.server.FORGOTTEN_AFTER", 0.0)
        with served.page() as again:
            assert again.event("welcome")["session"] != name
        assert name not in server.sessions
        assert page.ask("networks")["networks"]


@contextmanager
def started(folder: Path, session: str = "") -> Iterator[tuple[subprocess.Popen[str], Page]]:
    """`keima web` as a process of its own, and a page of it."""
    command = [sys.executable, "-m", "keima", "web", "--no-open", "--port", "0"]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    with subprocess.Popen(command, env=environment, text=True, stdout=PIPE, stderr=DEVNULL) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip().replace("http", "ws") + f"ws{session}"
            for _ in range(600):
                try:
                    socket = connect(address, max_size=1 << 25)
                    break
                except OSError:
                    time.sleep(0.1)
            with socket:
                yield process, Page(socket)
        finally:
            process.kill()


@pytest.mark.slow
def test_a_server_killed_loses_nothing_of_a_game(tmp_path: Path) -> None:
    """SIGKILL right after a move was told to be kept; the page that comes back plays on."""
    moves = ["E5", "C3", "G3", "C7", "G7"]
    with started(tmp_path) as (process, page):
        name = page.event("welcome")["session"]
        page.new("go", size=9)
        for move in moves:
            assert "error" not in page.ask("play", move=move)
        page.ask("comment", text="好い手 </script>")
        kept = tmp_path / "keima" / "games"
        until(lambda: any("好い手" in path.read_text(encoding="utf-8") for path in kept.glob("*.sgf")))
        process.kill()
    with started(tmp_path, f"?session={name}") as (_, page):
        tree = page.event("tree", lambda event: event["whole"])
        assert [node["move"] for node in tree["nodes"] if node.get("move")] == moves
        assert "好い手 </script>" in page.ask("save")["text"]
        page.ask("go", by="end")
        assert "error" not in page.ask("play", move="E3")
