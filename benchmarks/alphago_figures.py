"""AlphaGo's policy in figures, beside what a document on it promises (docs/promises.md).

    python benchmarks/alphago_figures.py speed [POLICY [ROLLOUT]]      time a position, and against the rollout policy
    python benchmarks/alphago_figures.py widths                        time a position at 128, 192, 256 and 384 filters
    python benchmarks/alphago_figures.py moves NETWORK GAMES           how many moves hold 95 and 99 % of the policy
    python benchmarks/alphago_figures.py features ROLLOUT GAMES        what ladders and connections would bring it
    python benchmarks/alphago_figures.py value VALUE ROLLOUT GAMES     value network and rollouts against games' results

Time is the processor's, summed over threads, not the clock's: the figures hold on a machine that does other things too.
POLICY is a file or a name (alphago-policy, its weights then random, which costs the same); GAMES are records, in a file
or folder. Positions are every tenth of each game, the later half of the games held out where something is fitted.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice, pairwise

import numpy as np
import torch
from numpy.typing import NDArray

import keima
from keima.cli.show import open_or_create
from keima.errors import BadRecord
from keima.games import go
from keima.games.files import read_records
from keima.systems.alphago.inputs import AlphaGoEncoding
from keima.systems.alphago.rollout_network import NOT_CONSIDERED, RolloutSoftmax
from keima.systems.files.load import load, load_rollout

DOCUMENT = "document: "
PHASES = (("opening", 0, 50), ("fight", 50, 150), ("endgame", 150, 1000))
Sample = tuple[go.Position, str]  # a position and the move that was played there


def samples(path: str, most: int) -> list[list[Sample]]:
    """Every tenth position of up to so many games on 19×19, with the move played."""
    games = []
    for record in read_records([path]):
        if isinstance(record, BadRecord):
            continue
        line = [position for position in record.positions() if isinstance(position, go.Position)]
        pairs = [(before, after.moves[-1][1]) for before, after in pairwise(line)]
        if line and (line[0].xsize, line[0].ysize) == (19, 19) and pairs:
            games.append(pairs[::10])
        if len(games) == most:
            break
    return games


def speed(policy: str = "alphago-policy", rollout: str | None = None) -> None:
    """Milliseconds a position of the policy network, microseconds a move of the rollout policy, and their ratio."""
    network = open_or_create(policy)
    positions = opening(network.encoding.board[0])
    milliseconds = network_milliseconds(network, positions)
    for precision, one in milliseconds.items():
        print(f"policy network, one core, {precision}: {one:.2f} ms a position ({DOCUMENT}3 ms)")
    player = load_rollout(rollout) if rollout else keima.systems.alphago.rollout.RolloutPolicy()
    player.play_out(positions[0], games=2)
    played = [0]

    def play() -> None:
        played[0] = player.play_out(positions[0], games=100, seed=1).moves

    microseconds = 1e6 * min(processor_seconds(play) / played[0] for _ in range(5) if not play())
    print(f"rollout policy, one core: {microseconds:.2f} µs a move ({DOCUMENT}2 µs)")
    for precision, one in milliseconds.items():
        print(f"the rollout policy is {1000 * one / microseconds:,.0f} times as fast, {precision} ({DOCUMENT}1,500)")


def opening(size: int) -> list[go.Position]:
    """An empty board and what follows as every ninth legal point is played."""
    positions = [go.Position.start(size)]
    for vertex in islice(positions[0].legal(), 0, size * size, 9):
        positions.append(positions[-1].play(vertex))
    return positions


def network_milliseconds(network: keima.Network, positions: list[go.Position]) -> dict[str, float]:
    """A network's time a position on one core, by the precisions that there are; the best of five rounds."""
    milliseconds = {}
    for precision in ("f32", "bf16"):
        try:
            evaluator = keima.Evaluator(network, "openvino", precision, batch_size=1, threads=1)
        except keima.KeimaError as error:
            print(f"{precision}: {error}")
            continue
        evaluator(positions[:2])
        rounds = [processor_seconds(lambda e=evaluator: e(positions)) / len(positions) for _ in range(5)]
        milliseconds[precision] = 1000 * min(rounds)
    return milliseconds


def widths() -> None:
    """Milliseconds a position of AlphaGo's policy network by its width (Nature 529, Extended Data Table 3)."""
    positions = opening(19)
    for filters in (128, 192, 256, 384):
        network = keima.create("alphago-policy", filters=filters).eval()
        numbers = sum(weights.numel() for weights in network.parameters())
        found = network_milliseconds(network, positions)
        told = ", ".join(f"{one:.2f} ms a position in {precision}" for precision, one in found.items())
        print(f"{filters} filters, {numbers:,} parameters: {told}")


def processor_seconds(work: object) -> float:
    """Processor time of all threads of a call."""
    begin = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - begin


def moves(net: str, path: str) -> None:
    """Of how many moves, the likeliest first, the probabilities reach 95 and 99 %: mean, and by phase of the game."""
    evaluator = keima.Evaluator(open_or_create(net), batch_size=8)
    chosen = [one for game in samples(path, 60) for one in game]
    answers = evaluator([position for position, _ in chosen])
    counts = np.array([[holding(answer.policy, share) for share in (0.95, 0.99)] for answer in answers])
    ranks = np.array([rank(answer.policy, move) for answer, (_, move) in zip(answers, chosen, strict=True)])
    plies = np.array([len(position.moves) for position, _ in chosen])
    legal = np.mean([len(answer.policy) for answer in answers])
    print(
        f"{len(chosen)} positions, {legal:.0f} legal moves in the mean; the move played is the first in "
        f"{100 * np.mean(ranks == 1):.1f} %, among the first 20 in {100 * np.mean(ranks <= 20):.1f} %"
    )
    for name, first, end in (("all", 0, 1000), *PHASES):
        of = counts[(plies >= first) & (plies < end)]
        if len(of):
            mean, median = of.mean(0), np.median(of, axis=0)
            print(
                f"{name}: 95 % in {mean[0]:.1f} moves (median {median[0]:.0f}), "
                f"99 % in {mean[1]:.1f} (median {median[1]:.0f}), {len(of)} positions ({DOCUMENT}361 → about 20)"
            )


def holding(policy: dict[str, float], share: float) -> int:
    """How many of the likeliest moves hold so much of a policy."""
    return int(np.searchsorted(np.cumsum(sorted(policy.values(), reverse=True)), share) + 1)


def rank(policy: dict[str, float], move: str) -> int:
    """A move's place in a policy, 1 the likeliest; as many as there are, and one, where it has none."""
    own = policy.get(move)
    return len(policy) + 1 if own is None else 1 + sum(one > own for one in policy.values())


def features(rollout: str, path: str) -> None:
    """Weights for three more features beside a learned rollout policy's, and the accuracy with and without them.

    Ladder capture and ladder escape as AlphaGo's planes 44 and 45 have them (the policy network's own), connection: the
    move touches two or more own chains. Fitted by maximum likelihood on half of the games, the learned policy's logits
    held fixed.
    """
    network = load(rollout)
    if not isinstance(network, RolloutSoftmax):
        raise SystemExit(f"{rollout} is no rollout policy that was learned")
    games = samples(path, 400)
    learned, judged = (
        with_features(network, [one for game in half for one in game])
        for half in (games[: len(games) // 2], games[len(games) // 2 :])
    )
    names = ("ladder capture", "ladder escape", "connection")
    plain = accuracy(*judged, torch.zeros(len(names)))
    print(f"{len(judged[2])} positions: top-1 {100 * plain[0]:.2f} %, cross-entropy {plain[1]:.4f} without them")
    for chosen in (*[[k] for k in range(len(names))], list(range(len(names)))):
        weights = torch.zeros(len(names))
        weights[chosen] = fit(learned[0], learned[1][..., chosen], learned[2])
        top1, entropy = accuracy(*judged, weights)
        with_them = ", ".join(f"{names[k]} (weight {weights[k]:+.2f})" for k in chosen)
        print(
            f"with {with_them}: top-1 {100 * top1:.2f} % ({100 * (top1 - plain[0]):+.2f}), "
            f"cross-entropy {entropy:.4f} ({entropy - plain[1]:+.4f})"
        )
    positions = [position for game in games[:20] for position, _ in game]
    planes = AlphaGoEncoding()
    planes.encode(positions[:1])
    seconds = processor_seconds(lambda: planes.encode(positions))
    print(f"reading the ladders of a position, with the rest of the 48 planes: {1e6 * seconds / len(positions):.0f} µs")


def value(net: str, rollout: str, path: str, playouts: int = 100) -> None:
    """Mean squared error of a value network and of rollouts' mean, against z = ±1 (Nature 529, Fig. 2b).

    One position of each game, of a random ply; both sides' view is that of the side to move. The best constant has 1.
    """
    rng = np.random.default_rng(1)
    chosen, results = [], []
    for record in read_records([path]):
        if isinstance(record, BadRecord) or record.result[:2] not in ("B+", "W+"):
            continue
        line = [position for position in record.positions() if isinstance(position, go.Position)]
        if len(line) > 1:
            chosen.append(line[rng.integers(len(line) - 1)])
            results.append(1.0 if chosen[-1].to_play == record.result[0] else -1.0)
    if not chosen:
        raise SystemExit(f"{path} has no game of Go with a result")
    z, plies = np.array(results), np.array([len(position.moves) for position in chosen])
    evaluator = keima.Evaluator(load(net), batch_size=8)
    by_network = np.array([2 * answer.win - 1 for answer in evaluator(chosen, symmetry="average")])
    player = load_rollout(rollout)
    scores = [player.play_out(position, playouts, seed).scores for seed, position in enumerate(chosen)]
    own = np.array([1.0 if position.to_play == "B" else -1.0 for position in chosen])
    by_rollouts = own * np.array([np.sign(one).mean() for one in scores])
    for name, first, end in (("all", 0, 1000), *((f"plies {k}–{k + 19}", k, k + 20) for k in range(0, 120, 20))):
        of = (plies >= first) & (plies < end)
        if of.any():
            mean = (by_network + by_rollouts) / 2
            found = {"network": by_network, f"{playouts} rollouts": by_rollouts, "their mean": mean}
            errors = {who: np.square(values - z)[of] for who, values in found.items()}
            errors["network − rollouts"] = errors["network"] - errors[f"{playouts} rollouts"]
            told = (f"{who} {e.mean():.3f} ± {1.96 * e.std() / len(e) ** 0.5:.3f}" for who, e in errors.items())
            print(f"{name}: {of.sum()} positions; {', '.join(told)}")


Table = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # logits [N, A], features [N, A, 3], the move played [N]


def with_features(network: RolloutSoftmax, chosen: list[Sample]) -> Table:
    """The rollout policy's logits at each point, the further features there, and the point played."""
    logits, further, targets = [], [], []
    network.eval()
    for first in range(0, len(chosen), 64):
        part = chosen[first : first + 64]
        positions = [position for position, _ in part]
        with torch.no_grad():
            rows = network(torch.from_numpy(network.encoding.encode(positions).inputs["planes"])).policy
        planes = AlphaGoEncoding().encode(positions).inputs["planes"]
        joined = np.stack([connections(position) for position in positions])
        logits.append(rows)
        further.append(torch.from_numpy(np.stack([planes[:, 44], planes[:, 45], joined], -1)).flatten(1, 2))
        names = [network.encoding.legal_moves(position) for position in positions]
        targets += [
            dict(zip(legal.names, legal.indices.tolist(), strict=True))[move]
            for legal, (_, move) in zip(names, part, strict=True)
        ]
    table = torch.cat(logits), torch.cat(further), torch.tensor(targets)
    usable = table[2] < table[0].shape[1]  # no passes
    usable &= table[0].gather(1, table[2].clamp(max=table[0].shape[1] - 1)[:, None])[:, 0] > NOT_CONSIDERED / 2
    return table[0][usable], table[1][usable], table[2][usable]


def connections(position: go.Position) -> NDArray[np.float32]:
    """1 at empty points that touch two or more different own chains, float32 [19, 19]."""
    own = 1 if position.to_play == "B" else 2
    stones = position.stones
    chains = np.zeros(stones.shape, np.int64)
    for start in zip(*np.nonzero(stones == own), strict=True):
        waiting = [start] if not chains[start] else []
        label = chains.max() + 1
        while waiting:
            y, x = waiting.pop()
            chains[y, x] = label
            waiting += [p for p in around(y, x, stones.shape) if stones[p] == own and not chains[p]]
    touching = np.zeros(stones.shape, np.float32)
    for y, x in zip(*np.nonzero(stones == 0), strict=True):
        touching[y, x] = len({int(chains[p]) for p in around(y, x, stones.shape)} - {0}) > 1
    return touching


def around(y: int, x: int, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """The points beside a point."""
    points = ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1))
    return [(v, u) for v, u in points if 0 <= v < shape[0] and 0 <= u < shape[1]]


def fit(logits: torch.Tensor, further: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The likeliest weights of some features, [K], beside fixed logits."""
    weights = torch.zeros(further.shape[-1], requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=50, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(logits + further @ weights, targets)
        value.backward()
        return value

    optimizer.step(loss)
    return weights.detach()


def accuracy(
    logits: torch.Tensor, further: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
) -> tuple[float, float]:
    """Top-1 and cross-entropy in nats."""
    rows = logits + further @ weights
    return (rows.argmax(1) == targets).float().mean().item(), torch.nn.functional.cross_entropy(rows, targets).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    figures = {"speed": speed, "widths": widths, "moves": moves, "features": features, "value": value}
    parser.add_argument("figure", choices=tuple(figures))
    parser.add_argument("arguments", nargs="*")
    given = parser.parse_args()
    torch.set_num_threads(1)
    figures[given.figure](*given.arguments)


if __name__ == "__main__":
    main()
