"""SIGKILL at drawn moments of a shard, of a node, or of who gives a plan out: repeated, all come to the same answer.

A real store in real releases. Each time another copy of the plan is run and killed in the middle; after the same command
the merged answer is, byte for byte, that of a run that nobody disturbed, and no process and no temporary file is left.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.core.environment import EnvSpec
from harness.environments.builder import ROOT_VARIABLE, EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from tests.integration.apps.fleet.clusters import Cluster, processes_of
from tests.integration.apps.fleet.test_fleet import write_store
from tests.integration.gate import PROJECT

COUNT = 30
NAMES = ("ads/ranker_a", "ads/ranker_b", "ads/ranker_c", "search/ranker_d", "search/ranker_e", "search/half")
PLANNED = ("--old", "2.1.2", "--new", "2.6.0", "--latency", "off", "--set", 'scenarios=["alone"]')
VICTIMS = ("shard", "driver", "node")
DONE_S, GONE_S = 300.0, 15.0
GATE = (sys.executable, "-m", "harness", "fleet")


def attack(count: int = COUNT, seed: int = 18) -> list[str]:
    """Return what went wrong in so many kills, one line each."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="gate-kills-") as name:
        folder = Path(name)
        builder = EnvironmentBuilder(default_environment_root(), progress=lambda _name, _text: None, uv=find_uv())
        python = builder.build(EnvSpec(name="old", release="2.1.2")).interpreter
        store = write_store(folder / "store", str(python), *NAMES)
        variables = _variables(folder)
        _done(variables, "plan", str(store), *PLANNED, "--into", str(folder / "whole"))
        plan = (folder / "whole" / "plan.json").read_bytes()
        begin = time.monotonic()
        _done(variables, "run", str(folder / "whole"))
        lasts_s = time.monotonic() - begin
        answer = _answer(variables, folder / "whole")
        wrong = []
        for number in range(count):
            victim, moment_s = VICTIMS[number % len(VICTIMS)], chance.uniform(0.0, 1.2 * lasts_s)
            fleet = folder / f"{number}" / "fleet"
            fleet.mkdir(parents=True)
            (fleet / "plan.json").write_bytes(plan)
            found = KILLED[victim](fleet, moment_s)
            if _answer(_variables(fleet.parent), fleet) != answer:
                found.append("another answer")
            wrong += [f"{victim}, killed after {moment_s:.2f} s: {what}" for what in found]
            shutil.rmtree(fleet.parent)
    return wrong


def _variables(folder: Path) -> dict[str, str]:
    """Return the variables of a call that has a folder of its own for everything that is temporary."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    own = {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    return {**os.environ, ROOT_VARIABLE: str(default_environment_root()), "PYTHONPATH": str(PROJECT), **own}


def _done(variables: Mapping[str, str], *words: str) -> None:
    done = subprocess.run((*GATE, *words), cwd=PROJECT, env=variables, capture_output=True, text=True, timeout=DONE_S)
    if done.returncode:
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")


def _answer(variables: Mapping[str, str], fleet: Path) -> bytes:
    subprocess.run((*GATE, "report", str(fleet)), cwd=PROJECT, env=variables, capture_output=True, timeout=DONE_S)
    return (fleet / "fleet.json").read_bytes()


def _kill_shard(fleet: Path, moment_s: float) -> list[str]:
    variables = _variables(fleet.parent)
    wrong = _killed((*GATE, "run", str(fleet)), moment_s, variables, fleet.parent)
    _done(variables, "run", str(fleet))
    return [*wrong, *_left(fleet.parent)]


def _kill_driver(fleet: Path, moment_s: float) -> list[str]:
    """Kill who gives a plan out to two nodes, and let another call go on."""
    with _cluster() as cluster:
        words = ("run", str(fleet), "--on", cluster.address, "--parts", "4")
        variables = {**cluster.env, **_variables(fleet.parent)}
        wrong = _killed((*GATE, *words), moment_s + 2.0, variables, cluster.folder)
        _done(variables, *words)
        return [*wrong, *_left(fleet.parent), *_left(cluster.folder)]


def _kill_node(fleet: Path, moment_s: float) -> list[str]:
    """Kill one of two nodes while a plan is given out to both: the command itself goes on."""
    with _cluster() as cluster:
        words = (*GATE, "run", str(fleet), "--on", cluster.address, "--parts", "4")
        process = subprocess.Popen(
            words, cwd=PROJECT, env=cluster.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        time.sleep(moment_s + 2.0)
        cluster.lose_second()
        said, _ = process.communicate(timeout=DONE_S)
        wrong = [f"it ended with {process.returncode}: {said[-300:]}"] if process.returncode else []
        return [*wrong, *_left(cluster.folder)]


@contextlib.contextmanager
def _cluster() -> Iterator[Cluster]:
    cluster = Cluster(Path(f"/tmp/fk{os.getpid()}"))
    try:
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(cluster.folder, ignore_errors=True)


def _killed(words: Sequence[str], moment_s: float, variables: Mapping[str, str], folder: Path) -> list[str]:
    """Kill a command, and return what of it is alive a while later: processes of ours that have to do with a folder."""
    process = subprocess.Popen(words, cwd=PROJECT, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(moment_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    until = time.monotonic() + GONE_S
    while (left := _ours(folder)) and time.monotonic() < until:
        time.sleep(0.2)
    temporary = Path(variables["TMPDIR"])
    shutil.rmtree(temporary)  # what a killed process had there is nobody's
    temporary.mkdir()
    return [f"alive: {said[:200]}" for said in left]


def _ours(folder: Path) -> list[str]:
    return [said for said in processes_of(folder).values() if "harness" in said or "gate_worker" in said]


def _left(folder: Path) -> list[str]:
    """Return the temporary files and drafts that are left."""
    found = [path for path in folder.rglob("*.part") if path.is_file()]
    for name in ("cache", "tmp"):
        found += [path for path in (folder / name).rglob("*") if path.is_file()]
    return [f"left: {path.relative_to(folder)}" for path in found]


KILLED = {"shard": _kill_shard, "driver": _kill_driver, "node": _kill_node}
