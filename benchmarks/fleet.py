"""A fleet of 5,000 synthetic artifacts, and one of 500 like it: planned, run, merged; what was planted comes back alone.

Of the artifacts 60 % share programs with others, 20 % are copies, and 63 of 5,000 are planted: 40 of a missing operator,
15 of an operator that answers otherwise, 5 that hang and 3 that crash in the new release. Bars: planned within 60 s;
nothing is run twice; all that was planted is found, in one cause each, and nothing else is red; what the gate takes per
healthy artifact beyond torch's own work is at most 60 ms; an artifact of 5,000 costs at most 1.1 times one of 500; merge,
causes, plan and page are made within 30 s and 1 GB. Timing is left out: it takes what it is given.

The planted ones are a fleet by themselves first, in the same folder, so that the whole fleet knows them: failures are
repeated, hangs proven, switches tried, and that takes what it takes. What an artifact costs is taken from the rest.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.apps.fleet.answer.merge import merge
from harness.apps.fleet.plan import PlannedFleet, load_plan, plan_fleet
from harness.apps.fleet.shard import run_shard
from harness.core.environment import EnvSpec
from harness.core.fleet import FleetReport
from harness.core.outcome import Status
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.machine.progress import Progress
from harness.project import Project
from harness.report.formats import FLEET, Shown

PROJECT = Path(__file__).resolve().parents[1]
FLEETS = Path(__file__).parent / "fleets"
MANY, FEW = 5000, 500
TEAMS = 12
PLAN_S, OURS_S, DEARER, MERGE_S, MERGE_BYTES = 60.0, 0.060, 1.1, 30.0, 1 << 30
CAUSES = ("operator-prim::is_ort", "semantics-aten::upsample_bicubic2d", "hang", "crash")
"""What is planted is told as: the id of the one cause, or how that begins."""
PLANTED = {MANY: (40, 15, 5, 3), FEW: (0, 0, 0, 0)}
MANIFEST = '[[artifacts]]\nmatch = "*"\nrequests = [{ arguments = [{ shape = [8, 6] }] }]\n' + "".join(
    f'[[artifacts]]\nmatch = "team_{team:02}/*"\nowner = "team_{team:02}"\n' for team in range(TEAMS)
)
ASKED = ('scenarios=["alone"]',)
# Calls of the one described request and the one of another batch size that follows from it, in the gate.
CALLS = 5
CORES = os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One fleet: seconds of planning, of all its runs, and what torch alone takes; how many contents were run twice.

    ``red_s``: seconds of the planted ones; ``each_s``: of any other artifact.
    """

    count: int
    plan_s: float
    run_s: float
    red_s: float
    each_s: float
    torch_s: float
    twice: int


def main() -> int:
    """Print what was measured; return 0 if every bar is met."""
    with tempfile.TemporaryDirectory(prefix="gate-fleet-") as folder:
        few, many = (_measured(Path(folder), count) for count in (FEW, MANY))
        merged = _merged(Path(folder) / str(MANY) / "fleet")
    wrong = merged["wrong"]
    bars = (
        (f"planning {MANY} artifacts, s", many.plan_s, PLAN_S),
        ("units that were run twice", float(few.twice + many.twice), 0.0),
        ("planted artifacts missed or misgrouped, or others red", float(len(wrong)), 0.0),
        ("ours per artifact beyond torch's work, ms", 1000 * (many.each_s - many.torch_s / MANY), 1000 * OURS_S),
        (f"an artifact of {MANY} against one of {FEW}", many.each_s / few.each_s, DEARER),
        (f"merging {MANY} results, with page, s", float(merged["seconds"]), MERGE_S),
        (f"memory while merging {MANY} results, MiB", float(merged["peak"]) / (1 << 20), MERGE_BYTES / (1 << 20)),
    )
    missed = 0
    for name, value, bar in bars:
        met = value <= bar
        missed += not met
        print(f"{name:56} {value:8.2f}   bar: at most {bar:g}  {'met' if met else 'MISSED'}")
    for one in (few, many):
        print(
            f"{one.count} artifacts: {one.red_s:.0f} s for planted ones, {one.run_s:.0f} s for the rest: {1000 * one.each_s:.1f} ms"
            f" for each, of which torch alone takes {1000 * one.torch_s / one.count:.1f} ms"
        )
    for line in wrong[:10]:
        print(f"wrong: {line}")
    return int(missed > 0)


def _options() -> Project:
    return Project(folder=PROJECT, overrides={"old": "2.1.2", "new": "2.6.0", "latency": "off"}, assignments=ASKED)


def _interpreter(release: str) -> str:
    builder = EnvironmentBuilder(default_environment_root(), progress=lambda _name, _text: None, uv=find_uv())
    return str(builder.build(EnvSpec(name=release, release=release)).interpreter)


def _store(folder: Path, count: int) -> Path:
    words = [_interpreter("2.1.2"), str(FLEETS / "write_store.py"), str(folder), str(count)]
    subprocess.run([*words, *map(str, PLANTED[count])], check=True, capture_output=True)
    (folder / "fleet.toml").write_text(MANIFEST)
    return folder


def _plan(store: Path, into: Path) -> PlannedFleet:
    return plan_fleet(_options(), str(store), into=into, manifest=None, within_s=None, progress=Progress(enabled=False))


def _measured(folder: Path, count: int) -> Measured:
    place = folder / str(count)
    store = _store(place / "store", count)
    planted = sum(PLANTED[count])
    red_s = _run(_plan(_part_of(store, place / "planted", planted), place / "fleet"))[0] if planted else 0.0
    begin = time.monotonic()
    planned = _plan(store, place / "fleet")
    plan_s = time.monotonic() - begin
    run_s, made = _run(planned)
    units = len(planned.plan.units)
    asked = sum(len(json.loads(path.read_text())["models"]) for path in place.glob("fleet/runs/*/report.json"))
    torch_s = sum(_torch_s(release, store, planted) for release in ("2.1.2", "2.1.2", "2.6.0"))
    return Measured(
        count=count,
        plan_s=plan_s,
        run_s=run_s,
        red_s=red_s,
        each_s=run_s / made * units / count,
        torch_s=torch_s * units / count / CORES,
        twice=asked - units,
    )


def _part_of(store: Path, folder: Path, count: int) -> Path:
    """Return a store with the first artifacts of another one."""
    for path in store.glob("*/*.pt"):
        if int(path.stem.rpartition("_")[2]) < count:
            (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / path.parent.name)
    (folder / "fleet.toml").write_text(MANIFEST)
    return folder


def _run(planned: PlannedFleet) -> tuple[float, int]:
    """Return the seconds of running what is not known of a plan, and how many units that was."""
    begin = time.monotonic()
    done = run_shard(_options(), planned, progress=Progress(enabled=False))
    assert done.known + done.made == len(planned.plan.units), done
    return time.monotonic() - begin, done.made


def _torch_s(release: str, store: Path, first: int) -> float:
    """Return the seconds that a release takes to load and call a store's artifacts, on one core, one after another."""
    words = (_interpreter(release), str(FLEETS / "torch_alone.py"), str(store), str(first), str(CALLS))
    said = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return float(said["seconds"])


def wrong_in(found: FleetReport, planted: tuple[int, ...]) -> list[str]:
    """Return every artifact that is not what was planted: those of the first numbers, in the order of ``CAUSES``."""
    kinds = [cause for cause, many in zip(CAUSES, planted, strict=True) for _ in range(many)]
    wrong = []
    for row in found.rows:
        number = int(row.name.rpartition("_")[2])
        if number >= len(kinds):
            if (row.status, row.cause) != (Status.PASS, ""):
                wrong.append(f"{row.name}: {row.status} {row.cause} ({row.reason}), expected nothing")
        elif row.status is not Status.FAIL or not row.cause.startswith(kinds[number]):
            wrong.append(f"{row.name}: {row.status} {row.cause} ({row.reason}), expected {kinds[number]}")
    if len(found.causes) != sum(many > 0 for many in planted):
        wrong.append(f"{len(found.causes)} causes: {', '.join(item.cause.id for item in found.causes)}")
    return wrong


def _merged(fleet: Path) -> dict[str, Any]:
    """Return the seconds and the peak memory of merging, in a process of its own, and what is wrong in the answer."""
    words = [sys.executable, "-m", __name__, str(fleet)]
    return dict(json.loads(subprocess.run(words, cwd=PROJECT, capture_output=True, check=True).stdout))


def _merge(fleet: Path) -> None:
    """Answer for a fleet as its command does, and print what that took."""
    begin = time.monotonic()
    merged, _ = merge(load_plan(str(fleet)), _options())
    for name, text in FLEET.rendered_files(merged.answer, Shown(directory="fleet")):
        (fleet / name).write_bytes(text)
    FLEET.render("text", merged.answer)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    wrong = wrong_in(merged.answer, PLANTED[len(merged.answer.rows)])
    print(json.dumps({"seconds": time.monotonic() - begin, "peak": peak, "wrong": wrong}))


if __name__ == "__main__":
    _merge(Path(sys.argv[1]))
