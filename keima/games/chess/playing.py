"""PLAYING of chess: openings, and how a match ends a game.

The built-in openings are well-known lines of three to six moves in which neither side stands clearly better.
"""

from __future__ import annotations

import math

from keima.errors import BadPosition, BadRequest
from keima.games.chess.position import Outcome, Position
from keima.games.chess.records import GameRecord
from keima.games.playing import Opening, Opinions, Playing, Table, Verdict
from keima.plain import Note


class _Playing(Playing[Position, GameRecord]):
    protocol = "uci"
    phases = (20, 8)
    lists = (".fen", ".epd", ".txt")

    def openings(self, start: Position, seed: int) -> list[Opening]:
        if start.fen() != Position.start().fen():
            raise BadRequest("the built-in openings begin from the usual position; choose --openings random:4 or none")
        openings = []
        for line in LINES.strip().splitlines():
            name, _, moves = line.partition(": ")
            position = start
            for san in moves.split():
                position = position.play(position.parse_san(san))
            openings.append(Opening(name, position))
        return openings

    def opening(self, record: GameRecord, start: Position, plies: int | None) -> Position:
        return record.start.play(*record.moves[:plies])

    def listed(self, line: str, start: Position) -> Position:
        fields = line.split(";")[0].split()
        clocks = fields[4:6] if len(fields) >= 6 and all(field.isdecimal() for field in fields[4:6]) else ["0", "1"]
        position = Position.from_fen(" ".join(fields[:4] + clocks), chess960=start.chess960)
        if position.is_over:
            raise BadPosition("the game is over in this position")
        return position

    def moves_to_come(self, position: Position) -> float:
        return max(20.0, 45.0 - len(position.moves) / 4)

    def stops(self, position: Position) -> bool:
        return position.is_over or position.claimable is not None

    def outcome(self, position: Position) -> Verdict | None:
        return _verdict(position.outcome)

    def settle(self, table: Table) -> Verdict | None:
        assert isinstance(table.position, Position)
        return _verdict(table.position.claimable) or super().settle(table)

    def centipawns(self, value: float) -> int:
        return centipawns(value)

    def program(self, command: str, nodes: int, moves: int = 1) -> Opinions:
        from keima.games.chess.engine import Engine

        return Engine(command, nodes, moves)


PLAYING = _Playing(Position)


def centipawns(value: float) -> int:
    """Lc0's centipawns (`search.cc`, score type "centipawn") of win − loss in [−1, 1]; ±12780 at the ends."""
    return round(90.0 * math.tan(1.5637541897 * min(max(value, -1.0), 1.0)))


def _verdict(outcome: Outcome | None) -> Verdict | None:
    if outcome is None:
        return None
    winner = None if outcome.winner is None else "wb".index(outcome.winner)
    return Verdict(winner, outcome.result, Note(outcome.reason, f"reason.{outcome.reason}"))


LINES = """
Ruy Lopez, closed: e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O Be7
Ruy Lopez, Berlin: e4 e5 Nf3 Nc6 Bb5 Nf6 O-O Nxe4
Italian: e4 e5 Nf3 Nc6 Bc4 Bc5 c3 Nf6 d3
Two knights: e4 e5 Nf3 Nc6 Bc4 Nf6 d3 Be7
Scotch: e4 e5 Nf3 Nc6 d4 exd4 Nxd4 Nf6
Four knights: e4 e5 Nf3 Nc6 Nc3 Nf6 Bb5 Bb4
Petrov: e4 e5 Nf3 Nf6 Nxe5 d6 Nf3 Nxe4
Vienna: e4 e5 Nc3 Nf6 g3 d5 exd5 Nxd5
Sicilian, Najdorf: e4 c5 Nf3 d6 d4 cxd4 Nxd4 Nf6 Nc3 a6
Sicilian, dragon: e4 c5 Nf3 d6 d4 cxd4 Nxd4 Nf6 Nc3 g6
Sicilian, Sveshnikov: e4 c5 Nf3 Nc6 d4 cxd4 Nxd4 Nf6 Nc3 e5
Sicilian, Taimanov: e4 c5 Nf3 e6 d4 cxd4 Nxd4 Nc6 Nc3 Qc7
Sicilian, accelerated dragon: e4 c5 Nf3 Nc6 d4 cxd4 Nxd4 g6
Sicilian, Moscow: e4 c5 Nf3 d6 Bb5+ Bd7 Bxd7+ Qxd7
Sicilian, Alapin: e4 c5 c3 Nf6 e5 Nd5 d4 cxd4
Sicilian, closed: e4 c5 Nc3 Nc6 g3 g6 Bg2 Bg7
French, Winawer: e4 e6 d4 d5 Nc3 Bb4 e5 c5
French, classical: e4 e6 d4 d5 Nc3 Nf6 Bg5 Be7
French, Tarrasch: e4 e6 d4 d5 Nd2 Nf6 e5 Nfd7
French, advance: e4 e6 d4 d5 e5 c5 c3 Nc6
Caro-Kann, classical: e4 c6 d4 d5 Nc3 dxe4 Nxe4 Bf5
Caro-Kann, advance: e4 c6 d4 d5 e5 Bf5 Nf3 e6
Caro-Kann, exchange: e4 c6 d4 d5 exd5 cxd5 Bd3 Nc6
Pirc: e4 d6 d4 Nf6 Nc3 g6 Nf3 Bg7
Scandinavian: e4 d5 exd5 Qxd5 Nc3 Qa5 d4 Nf6
Alekhine: e4 Nf6 e5 Nd5 d4 d6 Nf3 Bg4
Modern: e4 g6 d4 Bg7 Nc3 d6 Be3 a6
Queen's gambit declined: d4 d5 c4 e6 Nc3 Nf6 Bg5 Be7
Queen's gambit, exchange: d4 d5 c4 e6 Nc3 Nf6 cxd5 exd5
Queen's gambit accepted: d4 d5 c4 dxc4 Nf3 Nf6 e3 e6
Slav: d4 d5 c4 c6 Nf3 Nf6 Nc3 dxc4
Semi-Slav: d4 d5 c4 c6 Nf3 Nf6 Nc3 e6
Tarrasch: d4 d5 c4 e6 Nc3 c5 cxd5 exd5
Catalan: d4 Nf6 c4 e6 g3 d5 Bg2 Be7
Nimzo-Indian, Rubinstein: d4 Nf6 c4 e6 Nc3 Bb4 e3 O-O
Nimzo-Indian, classical: d4 Nf6 c4 e6 Nc3 Bb4 Qc2 O-O
Queen's Indian: d4 Nf6 c4 e6 Nf3 b6 g3 Bb7
Bogo-Indian: d4 Nf6 c4 e6 Nf3 Bb4+ Bd2 Qe7
Grünfeld: d4 Nf6 c4 g6 Nc3 d5 cxd5 Nxd5
King's Indian: d4 Nf6 c4 g6 Nc3 Bg7 e4 d6
King's Indian, fianchetto: d4 Nf6 c4 g6 g3 Bg7 Bg2 O-O
Benoni: d4 Nf6 c4 c5 d5 e6 Nc3 exd5 cxd5 d6
Dutch, Leningrad: d4 f5 g3 Nf6 Bg2 g6 Nf3 Bg7
Dutch, stonewall: d4 f5 c4 Nf6 g3 e6 Bg2 d5
London: d4 d5 Bf4 Nf6 e3 c5 c3 Nc6
Trompowsky: d4 Nf6 Bg5 e6 Nd2 d5
Colle: d4 d5 Nf3 Nf6 e3 e6 Bd3 c5
English, symmetrical: c4 c5 Nc3 Nc6 g3 g6 Bg2 Bg7
English, four knights: c4 e5 Nc3 Nf6 Nf3 Nc6 g3 d5
English, reversed dragon: c4 e5 g3 Nf6 Bg2 d5 cxd5 Nxd5
Réti: Nf3 d5 c4 e6 g3 Nf6 Bg2 Be7
King's Indian attack: Nf3 d5 g3 Nf6 Bg2 c6 O-O Bg4
Larsen: b3 e5 Bb2 Nc6 e3 Nf6
Bird: f4 d5 Nf3 Nf6 e3 g6
"""
