"""Bringing a server up: does loading overlap, is it faster, how soon is a hang reported, is slowness taken for one?

All ratios are between processes that were measured in turn, several times; medians are compared. Eight artifacts of
the zoo, whose loads take milliseconds, on two cores. It says how busy the machine was: what two processes reach
is all that two threads could.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.checks.startup.launch import Launcher
from harness.checks.startup.measures import overlap, wall_s
from harness.checks.startup.native import build_workers
from harness.checks.startup.readiness import BRINGING_UP
from harness.core.outcome import Outcome
from harness.core.plan import Plan
from harness.core.probe import ProbeResult, Script, Step, copy_name
from harness.environments.native import LibTorch, build_worker
from harness.machine import pool
from harness.probing.facts import Answered, Effects, Probed, WithWorker
from harness.serving.scenarios import INITIALIZATIONS, Scenario
from harness.store import probe_files
from harness.worker import wire
from tests.integration.servers import answered, planned, provisioned
from tests.programs import watching

ARTIFACTS = ("bert", "bert_traced", "conformer", "convnext", "resnet", "transformer_encoder", "unet", "vit")
FOLDERS = ("tests/integration/checks/startup/concurrency", "benchmarks/slow_models")
ROUNDS = 7
CORES = 2
LOADS_PER_ARTIFACT = 4
LEAST_CORES = 1.6
SLOW_PROCESSES, SLOW_PER_PROCESS, SLOW_THREADS, SLOW_DEADLINE_S = 4, 50, 4, 2.0
HOGS = 2 * CORES


@dataclass(frozen=True)
class Row:
    """One line of the table; ``met`` is None where nothing is asked."""

    what: str
    value: str
    bar: str = ""
    met: bool | None = None


def main() -> int:
    """Print the table; return 0 if every bar is met."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="gate-init-") as folder, provisioned(Path(folder), _plan(folder)) as ready:
        first, effects = ready
        probed = Probed(**Answered.known(answered(first, effects)), alone={})
        facts = build_workers(probed, effects)
        assert facts.worker == "libtorch", facts.worker_notes
        rows = [
            *_overlap(facts, effects),
            *_together(facts, effects),
            *_builds(effects, Path(folder) / "native"),
            _deadlock(facts, effects),
            _slow(facts, effects, hogs=0),
            _slow(facts, effects, hogs=HOGS),
        ]
    width = max(len(row.what) for row in rows)
    for row in rows:
        verdict = "" if row.met is None else "met" if row.met else "MISSED"
        print(f"{row.what:{width}}  {row.value:28}  {row.bar:24} {verdict}".rstrip())
    print(f"load average {before:.1f} before on {CORES} cores: above 1 others were busy, and loads cannot overlap")
    return int(any(row.met is False for row in rows))


def _plan(folder: str) -> Plan:
    plan = planned(Path(folder), "fixtures/zoo", also=FOLDERS, overrides={"jobs": CORES})
    wanted = {*ARTIFACTS, "fork_join", "plodding"}
    return replace(plan, models=tuple(model for model in plan.models if model.name in wanted))


def _launcher(scenario: Scenario, facts: WithWorker, effects: Effects, worker: str = "libtorch") -> Launcher:
    profile = facts.plan.settings.profile
    return Launcher(
        scenario=scenario, side="new", profile=profile, facts=replace(facts, worker=worker), effects=effects
    )


def _loads_only(models: Sequence[str], threads: int) -> Script:
    """Every thread loads its share of the artifacts, several times, and calls nothing."""
    lines: list[tuple[Step, ...]] = []
    for index in range(threads):
        names = [copy_name(model, turn) for turn in range(LOADS_PER_ARTIFACT) for model in models[index::threads]]
        lines.append((("barrier", "start"), *(step for name in names for step in (("load", name), ("drop", name)))))
    return Script(threads=tuple(lines), barriers={"start": threads})


LOADING = Scenario(name="loading", words="loading", about="loads and calls nothing", write=_loads_only)


def _overlap(facts: WithWorker, effects: Effects) -> Iterator[Row]:
    """(a) CPU time of the loading threads while loading, over wall time: 1 is one at a time, 2 both cores."""
    native, python = (_launcher(LOADING, facts, effects, worker) for worker in ("libtorch", "python"))
    arms: dict[str, Callable[[int], Sequence[ProbeResult]]] = {
        "C++ threads": lambda number: [native.probe(ARTIFACTS, number, threads=CORES)],
        "Python threads": lambda number: [python.probe(ARTIFACTS, number, threads=CORES)],
        "C++ processes": lambda number: pool.each(
            lambda copy: native.probe(ARTIFACTS, CORES * number + copy, threads=1), list(range(CORES)), jobs=CORES
        ),
    }
    rounds: list[dict[str, float]] = []
    while len(_undisturbed(rounds)) < ROUNDS and len(rounds) < 4 * ROUNDS:
        ratios = {
            name: overlap([span for probe in load(len(rounds)) for span in probe.spans], wire.LOAD)
            for name, load in arms.items()
        }
        rounds.append({name: ratio for name, ratio in ratios.items() if ratio is not None})
    kept = _undisturbed(rounds) or rounds
    found = {name: [one[name] for one in kept] for name in arms}
    threads = found["C++ threads"]
    met = statistics.median(threads) > 1.3
    yield Row("loading overlaps, C++ threads", _spread(threads), "clearly above 1 (1.3)", met)
    yield Row("loading overlaps, Python threads", _spread(found["Python threads"]), "(the GIL: at most 1)")
    disturbed = f"(others had the CPUs in {len(rounds) - len(_undisturbed(rounds))} of {len(rounds)} rounds: left out)"
    yield Row("loading overlaps, C++ processes", _spread(found["C++ processes"]), disturbed)


def _undisturbed(rounds: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """Return the rounds in which two processes got most of both cores: in others threads cannot overlap either."""
    return [one for one in rounds if one["C++ processes"] >= LEAST_CORES]


def _together(facts: WithWorker, effects: Effects) -> Iterator[Row]:
    """(b) and (c): the same eight artifacts loaded and warmed up, in turn by each of the three."""
    arms: dict[str, Callable[[int], ProbeResult]] = {
        "C++ threads": lambda number: _bring_up("concurrent", "libtorch", number),
        "C++, one after another": lambda number: _bring_up("sequential", "libtorch", number),
        "Python threads": lambda number: _bring_up("concurrent", "python", number),
    }

    def _bring_up(scenario: str, worker: str, number: int) -> ProbeResult:
        launcher = _launcher(INITIALIZATIONS[scenario], facts, effects, worker)
        return launcher.probe(ARTIFACTS, 1000 + number, threads=CORES)

    walls: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(ROUNDS):
        for name, bring_up in arms.items():
            probe = bring_up(number)
            assert all(model.outcome is Outcome.COMPLETED for model in probe.models), probe
            spent = wall_s(probe.spans, BRINGING_UP)
            assert spent is not None
            walls[name].append(spent)
    for name, spent_s in walls.items():
        yield Row(f"init of {len(ARTIFACTS)}, {name}", _spread(spent_s, " s"))
    concurrent = walls["C++ threads"]
    for name in ("C++, one after another", "Python threads"):
        ratios = [mine / other for mine, other in zip(concurrent, walls[name], strict=True)]
        yield Row(f"C++ threads / {name}", _spread(ratios), "below 1", statistics.median(ratios) < 1)


def _builds(effects: Effects, folder: Path) -> Iterator[Row]:
    """(d) one release, into an empty folder and again."""
    libtorch = LibTorch.from_mark(effects.runner.libtorch["new"])
    cold, cached = build_worker(libtorch, folder), build_worker(libtorch, folder)
    assert cold.binary is not None, cold.why_not
    assert cached.cached
    yield Row(f"build for torch {libtorch.torch}", f"{cold.seconds:.1f} s", "within 25 s", cold.seconds <= 25)
    yield Row("build, cached", f"{cached.seconds:.3f} s", "within 0.5 s", cached.seconds <= 0.5)


def _deadlock(facts: WithWorker, effects: Effects) -> Row:
    """(e) from the last event of a process that blocks itself to its result, evidence taken and process gone."""
    launcher = _launcher(INITIALIZATIONS["small_pools"], facts, effects)
    spent = []
    for number in range(ROUNDS):
        probe = launcher.probe(["fork_join"], number)
        now_ns = time.monotonic_ns()
        assert probe.evidence is not None
        assert probe.evidence.proof is not None
        assert probe.evidence.proof.kind == "blocked", probe.evidence.proof
        lines = probe_files.read(Path(probe.directory), wire.EVENTS).splitlines()
        spent.append(1e-9 * (now_ns - json.loads(lines[-1])["ns"]))
    return Row("deadlock reported after its last progress", _spread(spent, " s"), "all within 5 s", max(spent) <= 5)


def _slow_steps(names: Sequence[str], threads: int) -> Script:
    """Each thread brings up its share, one after another, now and then with a pause in which nobody works."""
    lines = []
    for index in range(threads):
        line: list[Step] = []
        for turn, name in enumerate(names[index::threads]):
            line.extend([("delay", 700)] if turn % 5 == 4 else [])
            line.extend([("load", name), ("calls", name), ("drop", name)])
        lines.append(tuple(line))
    return Script(threads=tuple(lines))


def _slow(facts: WithWorker, effects: Effects, *, hogs: int) -> Row:
    """(f) 200 initializations, every process far longer at it than its deadline, none of them stuck."""
    scenario = Scenario(
        name="slow", words="slow", about="slow, and never stuck",
        write=lambda models, threads: _slow_steps(
            [copy_name(models[0], index) for index in range(SLOW_PER_PROCESS)], threads
        ),
    )  # fmt: skip
    launcher = _launcher(scenario, facts, effects)

    def bring_up(number: int) -> ProbeResult:
        # No factor of the old release's time: exactly this deadline, for every call.
        brisk = replace(facts.plan.settings.deadlines, factor=0.0)
        settings = replace(facts.plan.settings, deadlines=brisk)
        quick = replace(launcher, facts=replace(launcher.facts, plan=replace(facts.plan, settings=settings)))
        return quick.probe(["plodding"], 100 * hogs + number, threads=SLOW_THREADS, floor_s=SLOW_DEADLINE_S)

    with watching.hogs(hogs):
        begin = time.monotonic()
        probes = list(pool.each(bring_up, list(range(SLOW_PROCESSES)), jobs=SLOW_PROCESSES))
        spent = time.monotonic() - begin
    models = [model for probe in probes for model in probe.models]
    alarms = [model.model for model in models if model.outcome is not Outcome.COMPLETED]
    beside = f", {hogs} hogs beside" if hogs else ""
    value = f"{len(alarms)} alarms of {len(models)} in {spent:.0f} s"
    return Row(f"slow, deadline {SLOW_DEADLINE_S:.0f} s{beside}", value, "no alarm", not alarms)


def _spread(values: Sequence[float], unit: str = "") -> str:
    return f"{statistics.median(values):.2f}{unit} ({min(values):.2f} to {max(values):.2f})"
