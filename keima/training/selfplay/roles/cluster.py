"""A run on many machines: the roles as Ray actors, against a store that all nodes see.

Every node that joins the Ray cluster is divided as one machine is (`keima.training.selfplay.roles.supervisor.divide`)
and gets workers; learner and judge are on one node: one with the Ray resource "learner" if there is any, else the one
with most GPUs, then CPUs. An actor holds its share of CPUs and GPUs and runs the role's own process, the same command
as by hand; that process dies with it.

Ray starts no actor again (max_restarts=0) and runs a method at most once (max_task_retries=0) unless told otherwise.
Here both are unlimited for `RoleActor.run`, so at least once. That is right because everything a role does may be done
twice: a game is known by its number and counts once, a published network is never changed, the learner goes on from its
checkpoint. An actor is bound to its node, where its journal lies; a node that is gone takes the moves of games under
way with it and nothing that was reported, and its blocks are played by others once their claims are stale. Learner and
judge of a node that is gone begin again on another, from what is in the store.

The actors belong to this process, and end with it. Started again on the same store, it goes on.
"""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from keima.errors import BadRequest, BadStore
from keima.training.selfplay.checks import DONE, check_loop, write_run
from keima.training.selfplay.networks import list_networks, read_object
from keima.training.selfplay.recipe import LoopRecipe
from keima.training.selfplay.roles.processes import Stop
from keima.training.selfplay.roles.status import Glances
from keima.training.selfplay.roles.supervisor import QUICK_DEATHS, QUICK_SECONDS, RunWatcher, divide, last_lines
from keima.training.selfplay.store import Store

try:
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise BadRequest("--ray needs Ray, which is not installed: pip install 'keima[cluster]'") from error

CLUSTER = "cluster.json"
"""In the store: {"token": …} of the driver, by which a node sees that it has the same store."""
NAMESPACE = "keima"
OVER, REFUSED, FAILED = "over", "refused", "failed"
_LOOK_SECONDS, _FAR_SECONDS = 1.0, 20.0
"""Between two looks at the run in a folder, and in a store where each costs requests."""
_END_SECONDS = 60.0
_TAKEN_SECONDS = 60.0
"""How long another driver's learner may take to be gone, until that driver counts as alive."""
_SMALLEST = 1e-4
"""Of a GPU, for Ray."""

Outcome = tuple[str, str]
"""OVER, REFUSED or FAILED, and why."""


def run(
    recipe: LoopRecipe,
    address: str | os.PathLike[str],
    ray_address: str,
    overrides: tuple[str, ...] = (),
    workers: int | None = None,
    watcher: RunWatcher | None = None,
) -> str:
    """Run a recipe of self-play on a Ray cluster, or go on with it; the address of the last network.

    Args:
        recipe: of `keima.training.selfplay.recipe.read_loop`.
        address: the run's store; a folder only where every node sees it at the same path, which is checked.
        ray_address: of the cluster ("auto": the one this machine is in), or "local" for one on this machine alone.
        overrides: that the recipe was read with.
        workers: of each node; None: by its cores and GPUs.
        watcher: is told how it goes.

    Raises:
        BadRequest: the recipe asks for what cannot be, there is no such cluster, another driver runs this store, no
            node can take part, or learner or judge fail again and again: with the last lines of their log.
        BadStore: the store cannot be written.
        KeyboardInterrupt: SIGINT or SIGTERM; the roles have ended, and the same command goes on.
    """
    check_loop(recipe)
    store = Store(address)
    if store.local is not None:
        store = Store(store.local.absolute())
    if store.address.startswith("memory:"):
        raise BadRequest("every process has a memory of its own: choose a store all see", source=store.address)
    token = secrets.token_hex(16)
    write_run(store, recipe, overrides)
    store.write(CLUSTER, json.dumps({"token": token, "time": time.time()}).encode() + b"\n")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it tells its makers
    own = not ray.is_initialized()
    if own:
        try:
            ray.init(ray_address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING,
                     include_dashboard=False if ray_address == "local" else None)  # fmt: skip
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise BadRequest(f"no Ray cluster: {str(error).splitlines()[0]}", source=ray_address) from error
    try:
        _Driver(store, recipe, token, workers, watcher or RunWatcher()).run()
    finally:
        if own:
            ray.shutdown()
    return f"{store.address}/networks/{list_networks(store)[-1]:06d}.safetensors"


def node_folder(address: str) -> Path:
    """What the roles of a store keep on a node: in its temporary folder, the same for whoever comes later."""
    return Path(tempfile.gettempdir()) / f"keima-{os.getuid()}-{sha256(address.encode()).hexdigest()[:12]}"


def gpu_share(gpus: float, processes: int) -> float:
    """The share of a GPU that each of some processes has, where so many GPUs are theirs."""
    share = 1 / math.ceil(processes / math.floor(gpus)) if gpus >= 1 else gpus / processes
    return math.floor(share / _SMALLEST) * _SMALLEST


def learner_gpus(recipe: LoopRecipe, node: float, total: float) -> float:
    """GPUs the learner holds on a node with `node` of the cluster's `total`: its devices, or half of the only one."""
    devices = recipe.training.run.devices
    if recipe.training.run.device == "cpu" or node < 1:
        return 0
    return 0.5 if devices == 1 and total <= 1 else min(devices, math.floor(node))


# --- On a node --------------------------------------------------------------------------------------------------------


class RoleActor:
    """A role on a node: its process, which is started again when it dies.

    Args:
        address: of the store.
        token: of the driver.
        role: "worker", "learner" or "judge".
        arguments: further ones of its command.
    """

    def __init__(self, address: str, token: str, role: str, arguments: list[str]) -> None:
        self.address, self.token, self.role, self.arguments = address, token, role, arguments
        self._stop = threading.Event()

    def run(self) -> Outcome:
        """Until the run is over, `stop` is called, or the role's process dies quickly again and again."""
        if why := self._refuse():
            return REFUSED, why
        store, folder = Store(self.address), node_folder(self.address)
        log = folder / "logs" / f"{self.role}-{self.arguments[1]}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        deaths = 0
        while not self._stop.is_set():
            began = time.monotonic()
            status = self._process(folder, log)
            if status == 0 and (self._stop.is_set() or store.exists(DONE)):
                break
            deaths = deaths + 1 if time.monotonic() - began < QUICK_SECONDS else 1
            if deaths >= QUICK_DEATHS:
                tail = "".join(f"\n  {line}" for line in last_lines(log))
                return FAILED, f"ended with status {status}, the {QUICK_DEATHS}th time in a row:{tail}"
            self._stop.wait(2.0 ** (deaths - 2) if deaths > 1 else 0.0)
        return OVER, ""

    def stop(self) -> None:
        """Ask the role to end."""
        self._stop.set()

    def _refuse(self) -> str:
        """Why this node cannot take part; "" where it can."""
        try:
            there = read_object(Store(self.address, patience=10.0), CLUSTER).get("token")
        except BadStore as error:
            there, seen = None, f": {error.message}"
        else:
            seen = ": another one is there"
        if there == self.token:
            return ""
        return f"it does not see this run's store at {self.address}{seen}; a folder must be shared by all nodes"

    def _process(self, folder: Path, log: Path) -> int:
        command = [sys.executable, "-m", "keima", "selfplay", self.role, "--store", self.address]
        command += [*self.arguments, "--folder", str(folder), "--parent", str(os.getpid())]
        environment = dict(os.environ)
        if not ray.get_runtime_context().get_accelerator_ids().get("GPU"):
            environment["CUDA_VISIBLE_DEVICES"] = ""
        with log.open("ab") as stream:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
                                       env=environment, start_new_session=True)  # fmt: skip
        asked = False
        while process.poll() is None:
            if self._stop.wait(0.2 if not asked else 0.0) and not asked:
                process.send_signal(signal.SIGTERM)
                asked = True
            if asked:
                time.sleep(0.2)
        return process.returncode


# --- The driver -------------------------------------------------------------------------------------------------------


@dataclass
class _Placed:
    """An actor on a node."""

    role: str
    name: str
    node: str
    actor: Any
    result: Any  # what `run` will have given


class _Driver:
    def __init__(self, store: Store, recipe: LoopRecipe, token: str, workers: int | None, watcher: RunWatcher) -> None:
        self.store, self.recipe, self.token, self.workers, self.watcher = store, recipe, token, workers, watcher
        self.wanted = ["learner", *(["judge"] if recipe.judge.games else [])]  # each once, and not over
        self.placed: list[_Placed] = []
        self.refused: dict[str, str] = {}  # nodes that get nothing more, and why
        self._workers_over = False
        self._said = ""
        self._taken = 0.0
        self._actor = ray.remote(max_restarts=-1, max_task_retries=-1, max_concurrency=2)(RoleActor)

    def run(self) -> None:
        """Until learner and judge are over, or it is asked to end."""
        stop = Stop()
        glances, shown = Glances(self.store, self.recipe), 0.0
        every = _LOOK_SECONDS if self.store.local is not None else _FAR_SECONDS
        try:
            while self.wanted:
                if stop.wait(0.2):
                    raise KeyboardInterrupt
                self._place({node["NodeID"]: node for node in ray.nodes() if node["Alive"]})
                self._hear()
                if time.monotonic() - shown > every:
                    self.watcher.show(glances.look())
                    shown = time.monotonic()
            self.watcher.show(glances.look())
        finally:
            self._end()
            self.watcher.end()

    # --- Who is where -------------------------------------------------------------------------------------------------

    def _place(self, nodes: Mapping[str, Any]) -> None:
        """Drop what was on nodes that are gone; give every node what it should have."""
        for gone in sorted({each.node for each in self.placed} - {*nodes}):
            self.watcher.say(f"node {gone[:8]} is gone; what its workers reported stays")
            self._drop([each for each in self.placed if each.node == gone])
        usable = {key: node for key, node in nodes.items() if key not in self.refused and _has(node, "CPU") >= 1}
        if not usable:
            if self.refused and not self.placed:
                raise BadRequest(f"no node can take part: {next(iter(self.refused.values()))}")
            return self._say_once("waits for nodes")
        total = sum(_has(node, "GPU") for node in usable.values())
        keeper = next((each.node for each in self.placed if each.role != "worker"), None) or self._keeper(usable)
        if keeper is None:
            return self._say_once(f"waits for a node with {self.recipe.training.run.devices} GPUs for the learner")
        for key, node in sorted(usable.items(), key=lambda item: item[0] != keeper):
            if not self._fill(key, node, total, key == keeper):
                return None
        return None

    def _keeper(self, usable: Mapping[str, Any]) -> str | None:
        """The node for learner and judge."""
        run = self.recipe.training.run
        able = [key for key, node in usable.items() if run.device != "cuda" or _has(node, "GPU") >= run.devices]
        return max(
            able, key=lambda key: (*(_has(usable[key], name) for name in ("learner", "GPU", "CPU")), key), default=None
        )

    def _fill(self, key: str, node: Any, total: float, keeper: bool) -> bool:
        """Start what a node should have and has not; False: a name is not free yet."""
        here = [each for each in self.placed if each.node == key]
        gpus = _has(node, "GPU") if self.recipe.training.run.device != "cpu" else 0.0
        division = divide(int(_has(node, "CPU")), gpus >= 1, self.workers, self.recipe.training.run.threads)
        turns = ["--turns"] if division.turns else []
        held = learner_gpus(self.recipe, gpus, total) if keeper else 0.0
        judges = keeper and "judge" in self.wanted
        share = gpu_share(gpus - held, division.workers + judges) if gpus > held else 0.0
        for role, own in (("learner", held), ("judge", share)):
            if not keeper or role not in self.wanted or any(each.role == role for each in here):
                continue
            if role == "learner" and here:  # its workers have what the learner should have
                self._drop(here)
                here = []
            if not self._start(role, role, key, turns, 0, own):
                return False
        threads = division.threads or 1
        missing = 0 if self._workers_over else division.workers - sum(each.role == "worker" for each in here)
        for _ in range(missing):
            name = self._free_name(node["NodeManagerAddress"])
            self._start("worker", name, key, [*turns, "--threads", str(threads)], threads, share)
        return True

    def _free_name(self, machine: str) -> str:
        """The first of a machine's that is free: that of a worker that was there before, whose journal is there."""
        taken = {each.name for each in self.placed}
        names = (f"{machine.replace(':', '.')}-{number}" for number in itertools.count())
        return next(name for name in names if name not in taken)

    def _start(self, role: str, name: str, node: str, arguments: list[str], cpus: int, gpus: float) -> bool:
        """An actor, unless another driver has one of this name."""
        digest = sha256(self.store.address.encode()).hexdigest()[:12]
        options = {"num_cpus": cpus, "num_gpus": gpus, "name": f"{digest}-{name}"}
        affinity = NodeAffinitySchedulingStrategy(node, soft=False)
        try:
            actor = self._actor.options(scheduling_strategy=affinity, **options).remote(
                self.store.address, self.token, role, ["--name", name, *arguments]
            )
        except ValueError as error:  # the name is taken
            now = time.monotonic()
            self._taken = self._taken or now
            if now - self._taken > _TAKEN_SECONDS:
                raise BadRequest("is being run by another driver", source=self.store.address) from error
            self._say_once("waits until another driver's roles are gone")
            return False
        self._taken = 0.0
        self.placed.append(_Placed(role, name, node, actor, actor.run.remote()))
        return True

    def _drop(self, dropped: list[_Placed]) -> None:
        for each in dropped:
            ray.kill(each.actor)
            self.placed.remove(each)

    # --- What becomes of them -----------------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Of roles that are over, or cannot go on."""
        results = [each.result for each in self.placed]
        ready = ray.wait(results, num_returns=len(results), timeout=0)[0] if results else []
        for each in [each for each in self.placed if each.result in ready]:
            try:
                outcome, why = ray.get(each.result)
            except RayError as error:
                outcome, why = REFUSED, str(error).strip().splitlines()[-1]
            self._drop([each])
            if outcome == OVER:
                if each.role in self.wanted:
                    self.wanted.remove(each.role)
                else:
                    self._workers_over = True
            elif outcome == FAILED and each.role != "worker":
                raise BadRequest(f"{each.role} on node {each.node[:8]} {why}")
            else:
                self.refused[each.node] = why
                self.watcher.say(f"node {each.node[:8]} gets no more work: {each.role} {each.name}: {why}")

    def _end(self) -> None:
        """Ask all to end, kill who does not."""
        for each in self.placed:
            each.actor.stop.options(max_task_retries=0).remote()
        results = [each.result for each in self.placed]
        if results:
            ray.wait(results, num_returns=len(results), timeout=_END_SECONDS)
        self._drop([*self.placed])

    def _say_once(self, message: str) -> None:
        if message != self._said:
            self._said = message
            self.watcher.say(message)


def _has(node: Any, resource: str) -> float:
    return float(node["Resources"].get(resource, 0.0))
