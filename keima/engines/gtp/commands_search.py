"""GTP commands that search for moves, ask the network alone, or draw for GoGui; see `commands`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from keima.engines.gtp.analyze import Reporter, read_analysis
from keima.engines.gtp.engine import WRITTEN, Command, Engine, Handler
from keima.engines.gtp.judge import clean_up, for_black, may_pass_friendly, pass_friendly, resumed
from keima.engines.gtp.words import Refusal, answer, expect, read_colour, read_int, read_number
from keima.engines.session import Watch
from keima.engines.tree_view import look_inside
from keima.games.go import Position
from keima.games.go.vertices import PASS, xy_to_vertex
from keima.inference.evaluation import Evaluation
from keima.search.limits import Limits
from keima.search.report import SearchResult

OPTIMISM = "policy_optimism"
"""The option of an encoding that `kata-raw-nn` sets."""
RESIGN = "resign"
Report = Callable[[SearchResult], None]
_SHOWN_MOVES = 25
_LEAST_SHOWN = 0.005


def genmove(engine: Engine, command: Command) -> str:
    """`genmove COLOUR`: search and make the move. `kata-search`: search, and do not make it (KataGo).

    `genmove_debug`, `kata-search_debug`: with what was found on standard error besides (KataGo).
    """
    position = _searchable(engine, command)
    move = _chosen(engine, position, engine.decide(position, ownership=_wants_ownership(engine, position)))
    if command.name.endswith("_debug"):
        print(_found(engine), file=sys.stderr)
    if command.name.startswith("genmove"):
        _make(engine, position.to_play, move)
    return move


def debug_moves(engine: Engine, command: Command) -> str:
    """`debug_moves`: what the last search found: the root, then its moves (KataGo; in our words)."""
    expect(command.words, 0, 0, "debug_moves")
    return _found(engine)


def _found(engine: Engine) -> str:
    """The last search's root position and moves, for its side to move; as much as there is after `clear_cache`."""
    if engine.search.position is None:
        return f"\n{engine.game.position}"
    result = engine.search.result()
    lines = [f"{result.position}", f"visits {result.visits} value {result.value:+.4f} utility {result.utility:+.4f}"]
    for info in result.moves:
        points = "" if info.lead is None else f" lead {info.lead:+.2f}"
        values = f"value {info.value:+.4f} utility {info.utility:+.4f}{points} lcb {info.lcb:+.4f}"
        lines.append(f"{info.move:4} visits {info.visits:6d} {values} prior {info.prior:.4f} pv {' '.join(info.pv)}")
    return "\n" + "\n".join(lines)


def reg_genmove(engine: Engine, command: Command) -> str:
    """`reg_genmove COLOUR`: the move the engine would make, never `resign`; it is not made (GTP 2, regression)."""
    position = _searchable(engine, command)
    return clean_up(position, engine.decide(position).best or PASS)


def genmove_analyze(engine: Engine, command: Command) -> str:
    """`…-genmove_analyze`, `kata-search_analyze`: as `genmove` or `kata-search`, with an analysis on the way."""
    position, report, options = _begin_analysis(engine, command, chooses=True)
    move = ""
    try:
        result = engine.decide(position, **options)
        report(result)
        move = _chosen(engine, position, result)
        if "genmove" in command.name:
            _make(engine, position.to_play, move)
    finally:
        engine.write(f"play {move}\n\n" if move else "\n")
    return WRITTEN


def search_cancellable(engine: Engine, command: Command) -> str:
    """`kata-search_cancellable`, `kata-search_analyze_cancellable`: the next line ends them, answered `cancelled`."""
    analyzing = "analyze" in command.name
    report: Report | None = None
    if analyzing:
        position, report, options = _begin_analysis(engine, command, chooses=True)
    else:
        position = _searchable(engine, command)
        options = {"ownership": _wants_ownership(engine, position)}

    def at_end(result: SearchResult | None, error: BaseException | None) -> None:
        move = "cancelled"
        if error is not None or result is None:
            print(f"keima: the search failed: {error}", file=sys.stderr)
        elif not engine.worker.asked_to_stop:
            if report is not None:
                report(result)
            move = _chosen(engine, position, result)
        engine.write(f"play {move}\n\n" if analyzing else answer(True, command.number, move))

    engine.go_on_with(position, engine.limits(position.to_play), None, on_end=at_end, **options)
    return WRITTEN


def analyze(engine: Engine, command: Command) -> str:
    """`lz-analyze`, `kata-analyze`, `analyze` (Sabaki): until the next line comes in."""
    position, _, options = _begin_analysis(engine, command, chooses=False)

    def complain(result: SearchResult | None, error: BaseException | None) -> None:
        if error is not None:
            print(f"keima: the analysis failed: {error}", file=sys.stderr)

    engine.go_on_with(position, Limits(), lambda: engine.write("\n"), on_end=complain, **options)
    return WRITTEN


def _begin_analysis(engine: Engine, command: Command, chooses: bool) -> tuple[Position, Report, Watch]:
    """The position to analyse, what writes a line about a result, and the options of the search that feeds it.

    The head of the answer is written: the rest comes bit by bit. `chooses`: a move is chosen in the end.
    """
    style = {"lz": "lz", "kata": "kata"}.get(command.name.split("-")[0], "sabaki")
    asked = read_analysis(style, command.words, engine.game.position)
    if asked.fields & {"ownership", "movesOwnership"} and not engine.has_ownership:
        raise Refusal("this network tells no ownership")
    position = _to_search(engine, asked.colour)
    raw: dict[str, float] = {}
    if "rootInfo" in asked.fields:
        extra = _evaluate(engine, position, 0).extra
        names = {"shortterm_winloss_error": "rawStWrError", "shortterm_score_error": "rawStScoreError"}
        names["variance_time"] = "rawVarTimeLeft"
        raw = {name: float(extra.get(key, -1.0)) for key, name in names.items()}
    reporter = Reporter(asked, engine.search.parameters, raw, _ownership_after(engine, position))

    def report(result: SearchResult) -> None:
        line = reporter.line(result, look_inside(engine.search))
        if line:
            engine.write(line + "\n")

    options: Watch = {"ownership": "ownership" in asked.fields or (chooses and _wants_ownership(engine, position))}
    if asked.interval is not None:
        options["on_update"], options["update_seconds"] = report, asked.interval
    if asked.allow is not None:
        options["allow_moves"] = asked.allow & set(position.legal())
    if asked.avoid:
        options["avoid_moves"] = asked.avoid & set(position.legal())
    engine.write(f"={'' if command.number is None else command.number}\n")
    return position, report, options


def _ownership_after(engine: Engine, position: Position) -> Callable[[str], NDArray[np.float32] | None]:
    """Ownership after a move, for the side that makes it: the network's own view, each move asked about once."""
    known: dict[str, NDArray[np.float32] | None] = {}

    def after(move: str) -> NDArray[np.float32] | None:
        if move not in known:
            points = _evaluate(engine, position.play(move), 0).ownership
            known[move] = None if points is None else -points
        return known[move]

    return after


def _searchable(engine: Engine, command: Command) -> Position:
    """The game with the command's only argument to move."""
    expect(command.words, 1, 1, f"{command.name} COLOUR")
    return _to_search(engine, read_colour(command.words[0]))


def _to_search(engine: Engine, colour: str) -> Position:
    """The game with that side to move; a finished one goes on. Pondering is over until a move is made."""
    engine.wants_to_ponder = False
    position = engine.game.position
    return (resumed(position) if position.is_over else position).with_to_play(colour)


def _wants_ownership(engine: Engine, position: Position) -> bool:
    return may_pass_friendly(position) and engine.has_ownership


def _chosen(engine: Engine, position: Position, result: SearchResult) -> str:
    """The move to play after a search, or "resign"."""
    move = result.best or PASS
    if engine.resigner.resigns(engine.game.position, position.to_play, result.value):
        return RESIGN
    if may_pass_friendly(position) and result.ownership is not None:
        return pass_friendly(position, move, for_black(result.ownership, position.to_play), engine.evaluator)
    return clean_up(position, move)


def _make(engine: Engine, colour: str, move: str) -> None:
    if move != RESIGN:
        engine.game.play(colour, move)
        engine.wants_to_ponder = True


def raw_nn(engine: Engine, command: Command) -> str:
    """`kata-raw-nn [COLOUR] SYMMETRY|all [OPTIMISM]`: the network's own answer, White's view (KataGo).

    Where the network lacks a number its line is left out. For `all` the eight answers follow without empty lines, which
    would end a GTP answer.
    """
    words = list(command.words)
    colour = engine.game.position.to_play
    if words and words[0].lower() in ("b", "w", "black", "white"):
        colour = read_colour(words.pop(0))
    expect(words, 1, 2, "kata-raw-nn [COLOUR] SYMMETRY|all [OPTIMISM]")
    symmetries = range(8) if words[0].lower() == "all" else [read_int(words[0], "symmetry", 0, 7)]
    optimism = engine.search.parameters.root_options.get(OPTIMISM, 0.0)
    if len(words) == 2:
        optimism = read_number(words[1], "optimism", 0.0, 1.0)
    position = engine.game.position.with_to_play(colour)
    return "\n".join(_raw_text(position, _evaluate(engine, position, one, optimism), one) for one in symmetries)


def _evaluate(engine: Engine, position: Position, symmetry: int | str, optimism: float = 0.0) -> Evaluation:
    evaluator = engine.evaluator
    if OPTIMISM in evaluator.encoding.options:
        evaluator = evaluator.bind(**{OPTIMISM: optimism})
    return evaluator([position], symmetry=symmetry)[0]


def _raw_text(position: Position, seen: Evaluation, symmetry: int) -> str:
    white = position.to_play == "W"
    sign = 1.0 if white else -1.0
    lines = [f"symmetry {symmetry}"]
    if seen.win is not None and seen.loss is not None:
        win, loss = (seen.win, seen.loss) if white else (seen.loss, seen.win)
        lines += [f"whiteWin {win:.6f}", f"whiteLoss {loss:.6f}", f"noResult {seen.draw or 0.0:.6f}"]
    if seen.lead is not None:
        lines.append(f"whiteLead {sign * seen.lead:.3f}")
    if "score_mean" in seen.extra:
        mean, stdev = seen.extra["score_mean"], seen.extra["score_stdev"]
        lines.append(f"whiteScoreSelfplay {sign * mean:.3f}")
        lines.append(f"whiteScoreSelfplaySq {mean**2 + stdev**2:.3f}")
        names = {"variance_time": "varTimeLeft", "shortterm_winloss_error": "shorttermWinlossError"}
        names["shortterm_score_error"] = "shorttermScoreError"
        lines += [f"{name} {seen.extra.get(key, -1.0):.3f}" for key, name in names.items()]
    lines.append("policy")
    for row in _rows(position):
        lines.append(" ".join(f"{seen.policy[v]:8.6f}" if v in seen.policy else "    NAN" for v in row))
    lines.append(f"policyPass {seen.policy[PASS]:8.6f}" if PASS in seen.policy else "policyPass     NAN")
    if seen.ownership is not None:
        lines.append("whiteOwnership")
        lines += [" ".join(f"{sign * point + 0.0:9.7f}" for point in row) for row in seen.ownership.tolist()]
    return "\n".join(lines)


def _rows(position: Position) -> list[list[str]]:
    """The vertices of the board, row by row from the top."""
    return [[xy_to_vertex(x, y, position.ysize) for x in range(position.xsize)] for y in range(position.ysize)]


def heatmap(engine: Engine, command: Command) -> str:
    """`heatmap [SYMMETRY|average|all]`: the policy in thousandths, row by row from the top (Leela Zero)."""
    expect(command.words, 0, 1, "heatmap [SYMMETRY|average|all]")
    word = command.words[0].lower() if command.words else "0"
    kinds: list[int | str] = ["average"]
    if word not in ("average", "avg"):
        kinds = list(range(8)) if word == "all" else [read_int(word, "symmetry", 0, 7)]
    return "\n" + "\n".join(_heatmap_text(engine, kind) for kind in kinds)


def _heatmap_text(engine: Engine, symmetry: int | str) -> str:
    position = engine.game.position
    seen = _evaluate(engine, position, symmetry)
    rows = [" ".join(f"{int(seen.policy.get(v, 0.0) * 1000):3d}" for v in row) for row in _rows(position)]
    rows.append(f"pass: {int(seen.policy.get(PASS, 0.0) * 1000)}")
    if seen.value is not None:
        rows.append(f"winrate: {(seen.value + 1) / 2:f}")
    return "\n".join(rows)


def analyze_commands(engine: Engine, command: Command) -> str:
    """What GoGui may show (GoGui manual, "Analyze commands": type/label/command)."""
    displays = ["string/Win rate/keima-winrate", "gfx/Policy/keima-policy", "gfx/Main variation/keima-variation"]
    if engine.has_ownership:
        displays.append("dboard/Ownership/keima-ownership")
        displays += [f"plist/Final status: {one}/final_status_list {one}" for one in ("alive", "dead")]
    return "\n".join([*displays, "string/Final score/final_score"])


def winrate(engine: Engine, command: Command) -> str:
    """Black's chances and lead, the network's own view over all symmetries, as one line."""
    position = engine.game.position
    seen = _evaluate(engine, position, "average")
    if seen.value is None:
        return "this network has no value head"
    sign = 1 if position.to_play == "B" else -1
    text = f"Black {(1 + sign * seen.value) / 2:.1%}"
    if seen.lead is not None:
        points = sign * seen.lead
        text += f", {'B' if points >= 0 else 'W'}+{abs(points):.1f}"
    return text


def policy(engine: Engine, command: Command) -> str:
    """The policy over all symmetries, as GoGui's draw commands."""
    seen = _evaluate(engine, engine.game.position, "average")
    likely = sorted(seen.policy.items(), key=lambda pair: -pair[1])[:_SHOWN_MOVES]
    likely = [(vertex, share) for vertex, share in likely if share >= _LEAST_SHOWN and vertex != PASS]
    lines = [f"COLOR {_shade(share / likely[0][1])} {vertex}" for vertex, share in likely]
    lines += [f"LABEL {vertex} {share * 100:.0f}" for vertex, share in likely]
    return "\n".join([*lines, f"TEXT pass {seen.policy.get(PASS, 0.0):.1%}"])


def _shade(share: float) -> str:
    """From white to green."""
    other = round(255 * (1 - share))
    return f"#{other:02x}ff{other:02x}"


def ownership(engine: Engine, command: Command) -> str:
    """Ownership over all symmetries, Black's positive: rows of numbers from the top."""
    position = engine.game.position
    seen = _evaluate(engine, position, "average")
    if seen.ownership is None:
        raise Refusal("this network tells no ownership")
    points = np.round(for_black(seen.ownership, position.to_play), 3) + 0.0
    return "\n" + "\n".join(" ".join(f"{point:.3f}" for point in row) for row in points.tolist())


def variation(engine: Engine, command: Command) -> str:
    """The main variation of a short search, as GoGui's draw commands."""
    position = _to_search(engine, engine.game.position.to_play)
    result = engine.search_here(position, Limits(visits=100))
    colours = cycle("BW" if position.to_play == "B" else "WB")
    moves = " ".join(f"{colour} {move}" for colour, move in zip(colours, result.principal_variation, strict=False))
    return f"VAR {moves}\nTEXT {moves}"


def cputime(engine: Engine, command: Command) -> str:
    """Seconds spent on moves so far: wall-clock time, as in KataGo."""
    return f"{engine.thinking_seconds:g}"


def clear_cache(engine: Engine, command: Command) -> None:
    """Forget the tree (KataGo)."""
    engine.search.clear()


def benchmark(engine: Engine, command: Command) -> str:
    """`kata-benchmark VISITS`: search the position afresh and tell the speed."""
    expect(command.words, 1, 1, "kata-benchmark VISITS")
    visits = read_int(command.words[0], "visits", 1, 10**7)
    engine.search.clear()
    result = engine.search_here(_to_search(engine, engine.game.position.to_play), Limits(visits=visits))
    seconds = max(engine.worker.seconds, 1e-9)
    return f"{result.visits} visits, {result.evaluations} evaluations, {seconds:.3f} s: {result.visits / seconds:.1f}/s"


SEARCH_COMMANDS: Mapping[str, Handler] = {
    "genmove": genmove,
    "reg_genmove": reg_genmove,
    "genmove_debug": genmove,
    "kata-search": genmove,
    "kata-search_debug": genmove,
    "debug_moves": debug_moves,
    "kata-search_cancellable": search_cancellable,
    "lz-genmove_analyze": genmove_analyze,
    "kata-genmove_analyze": genmove_analyze,
    "genmove_analyze": genmove_analyze,
    "kata-search_analyze": genmove_analyze,
    "kata-search_analyze_cancellable": search_cancellable,
    "lz-analyze": analyze,
    "kata-analyze": analyze,
    "analyze": analyze,
    "kata-raw-nn": raw_nn,
    "heatmap": heatmap,
    "cputime": cputime,
    "gomill-cpu_time": cputime,
    "clear_cache": clear_cache,
    "kata-benchmark": benchmark,
    "gogui-analyze_commands": analyze_commands,
    "keima-winrate": winrate,
    "keima-policy": policy,
    "keima-ownership": ownership,
    "keima-variation": variation,
}
"""The commands of this file."""
