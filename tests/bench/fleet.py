"""A fleet of synthetic artifacts, scaled down: planned, run in four shards, merged; what was planted must come back alone.

Of the artifacts 60 % share programs with others, 20 % are copies, and some are planted: of one missing operator, and of
an operator that is known to answer otherwise. Bars: 5,000 are planned within 60 s; nothing is run twice; all that was
planted is found as two causes, and nothing else is red; 5,000 rows are merged within 30 s and under 1 GB.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.domain.environment import EnvSpec
from harness.domain.fleet import FleetReport
from harness.domain.outcome import Status
from harness.environments.installer import find_uv
from harness.fleet.merge import merge
from harness.fleet.plan import PlannedFleet, plan_fleet
from harness.fleet.shard import run_shard
from harness.report.text.fleet import render_answer
from harness.run.options import Options
from harness.system.progress import Progress
from tests.unit.builders.planted_causes import refused
from tests.unit.fleet.answers import answer, artifact, plan_of, result_of

PROJECT = Path(__file__).resolve().parents[2]
PLANNED, RUN, SHARDS = 5000, 100, 4
PLAN_S, MERGE_S, MERGE_BYTES = 60.0, 30.0, 1 << 30
MISSING, CHANGED = 0.08, 0.03
"""Shares of what is planted: 40 and 15 of 500."""
WRITING = """
import os, shutil, sys, torch
folder, count, missing, changed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
class Net(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, hidden), torch.nn.Linear(hidden, 6)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.b(torch.relu(self.a(x))))
class Missing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 6)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_ort:
            return x
        return self.a(x)
class Changed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = (x * 255).clamp(0, 255).to(torch.uint8)[None, None]
        return torch.nn.functional.interpolate(image, scale_factor=2.0, mode="bicubic")
copies, alone = count // 5, count // 5
programs = max((count - copies - alone) // 10, 1)
for number in range(count):
    torch.manual_seed(number)
    path = os.path.join(folder, "team_%02d" % (number % 12), "model_%04d.pt" % number)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if number < missing:
        net = Missing()
    elif number < missing + changed:
        net = Changed()
    elif number < count - copies - alone:
        net = Net(8 + number % programs)
    elif number < count - copies:
        net = Net(1000 + number)
    else:
        source = count - copies - alone - 1 - (number - count + copies) % max(count - copies - alone - missing - changed, 1)
        shutil.copy(os.path.join(folder, "team_%02d" % (source % 12), "model_%04d.pt" % source), path)
        continue
    torch.jit.script(net).save(path)
"""
MANIFEST = '[[artifacts]]\nmatch = "*"\nrequests = [{ arguments = [{ shape = [8, 6] }] }]\n' + "".join(
    f'[[artifacts]]\nmatch = "team_{team:02}/*"\nowner = "team_{team:02}"\n' for team in range(12)
)


def main() -> int:
    """Print what was measured; return 0 if every bar is met."""
    with tempfile.TemporaryDirectory(prefix="gate-fleet-") as folder:
        planned_s = _planned_s(Path(folder))
        found, twice, run_s = _run(Path(folder))
    merge_s, peak = _merged()
    wrong = _wrong(found)
    bars = (
        (f"planning {PLANNED} artifacts, s", planned_s, PLAN_S),
        (f"units of {RUN} artifacts that were run twice", float(twice), 0.0),
        ("planted artifacts missed, or others red", float(len(wrong)), 0.0),
        (f"merging {PLANNED} rows, s", merge_s, MERGE_S),
        (f"memory while merging {PLANNED} rows, MiB", peak / (1 << 20), MERGE_BYTES / (1 << 20)),
    )
    missed = 0
    for name, value, bar in bars:
        met = value <= bar
        missed += not met
        print(f"{name:48} {value:8.1f}   bar: at most {bar:.0f}  {'met' if met else 'MISSED'}")
    print(f"{f'running {RUN} artifacts in {SHARDS} shards, s':48} {run_s:8.1f}   no bar")
    for line in wrong[:10]:
        print(f"wrong: {line}")
    return int(missed > 0)


def _store(folder: Path, count: int) -> Path:
    builder = EnvironmentBuilder(default_environment_root(PROJECT), progress=lambda _name, _text: None, uv=find_uv())
    python = builder.build(EnvSpec(name="old", release="2.1.2")).interpreter
    numbers = (count, int(count * MISSING), int(count * CHANGED))
    subprocess.run([python, "-c", WRITING, str(folder), *map(str, numbers)], check=True, capture_output=True)
    (folder / "fleet.toml").write_text(MANIFEST)
    return folder


def _options() -> Options:
    overrides = {"old": "2.1.2", "new": "2.6.0", "latency": "off"}
    return Options(project=PROJECT, overrides=overrides, assignments=('scenarios=["alone"]',))


def _plan(store: Path, into: Path) -> PlannedFleet:
    progress = Progress(enabled=False)
    return plan_fleet(_options(), str(store), into=into, manifest=None, within_s=None, progress=progress)


def _planned_s(folder: Path) -> float:
    _plan(_store(folder / "few", 20), folder / "first")  # asks the releases, once
    store = _store(folder / "many", PLANNED)
    begin = time.monotonic()
    _plan(store, folder / "planned")
    return time.monotonic() - begin


def _run(folder: Path) -> tuple[FleetReport, int, float]:
    planned = _plan(_store(folder / "store", RUN), folder / "fleet")
    begin = time.monotonic()
    done = [
        run_shard(_options(), planned, shard=(at, SHARDS), progress=Progress(enabled=False))
        for at in range(1, SHARDS + 1)
    ]
    run_s = time.monotonic() - begin
    asked = [name for path in folder.glob("fleet/runs/*/plan.json") for name in _models(path)]
    twice = len(asked) - len(planned.plan.units)
    assert sum(item.made for item in done) == len(planned.plan.units), done
    return merge(planned, _options())[0].answer, twice, run_s


def _models(path: Path) -> list[str]:
    return [model["name"] for model in json.loads(path.read_text())["models"]]


def _wrong(found: FleetReport) -> list[str]:
    """Return every artifact that is not what was planted: of the first numbers one cause, of the next another."""
    missing, changed = int(RUN * MISSING), int(RUN * CHANGED)
    causes = ("operator-prim::is_ort",) * missing + ("semantics-aten::upsample_bicubic2d",) * changed
    wrong = []
    for row in found.rows:
        number = int(row.name.rpartition("_")[2])
        expected = (Status.FAIL, causes[number]) if number < len(causes) else (Status.PASS, "")
        if (row.status, row.cause) != expected:
            wrong.append(f"{row.name}: {row.status} {row.cause} ({row.reason}), expected {expected}")
    return wrong


def _merged() -> tuple[float, int]:
    """Return the seconds and the peak memory of merging many rows, in a process of its own."""
    words = [sys.executable, "-m", __name__]
    said = json.loads(subprocess.run(words, cwd=PROJECT, capture_output=True, check=True).stdout)
    return float(said["seconds"]), int(said["peak"])


def _merge_many() -> None:
    planned = plan_of(
        *(artifact(f"model_{at:04}", program=f"p{at % 2000}", owner=f"team_{at % 12}") for at in range(PLANNED))
    )
    results = []
    for item in planned.plan.artifacts:
        cell, facts = refused(item.name, "prim::is_ort")
        is_red = int(item.name[-4:]) % 125 == 0
        made = result_of(planned, item.name, *([cell] if is_red else []), facts=facts if is_red else None)
        results.append(replace(made, facts=replace(made.facts, latency=None)))
    begin = time.monotonic()
    text = render_answer(answer(planned, *results).answer, more="")
    assert "BLOCKED" in text
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": time.monotonic() - begin, "peak": peak}))


if __name__ == "__main__":
    _merge_many()
