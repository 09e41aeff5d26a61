"""The gate against the script that people write by hand, on 24 artifacts of served size: how long each takes, and says.

The script (``by_hand/script.py``) runs once in each release. Bars, as ratios of its wall within one run: correctness and
initialization at most 1.0, all with timing at most 2.5. It runs before and after the gate's first run, so that what it
says of the two releases stands beside what it would say of the old one against itself.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.domain.environment import Environment, EnvSpec
from harness.domain.report import RunReport
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.report.json.report import load_report
from harness.run.options import Options, settings_of
from harness.scenarios import TIMING

PROJECT = Path(__file__).resolve().parents[2]
BY_HAND = Path(__file__).with_name("by_hand")
THREADS = 8
CORRECTNESS_BAR, ALL_BAR = 1.0, 2.5


@dataclass(frozen=True)
class ByHand:
    """One run of the script in both releases: its wall, the median call of each model, what ``allclose`` refuses."""

    wall_s: float
    old_s: Mapping[str, float]
    new_s: Mapping[str, float]
    different: tuple[str, ...]


def main() -> int:
    """Print the walls and what each says of every model; return 0 if both bars are met."""
    _, settings = settings_of(Options(project=PROJECT))
    limit = settings.latency.limit
    builder = EnvironmentBuilder(default_environment_root(PROJECT), progress=lambda _name, _text: None, uv=find_uv())
    old, new = builder.build_all([EnvSpec(name=name, release=name) for name in (settings.old, settings.new)])
    with tempfile.TemporaryDirectory(prefix="gate-hand-") as name:
        folder = Path(name)
        (artifacts := folder / "artifacts").mkdir()
        _python(old, "artifacts.py", artifacts)
        _gate(folder / "first", artifacts, "--until", "correctness", "--artifact", "gru.pt")  # builds what is cached
        first = _by_hand(folder / "by-hand-1", artifacts, old, new)
        correctness_s, correctness = _gate(folder / "correctness", artifacts, "--until", "correctness")
        second = _by_hand(folder / "by-hand-2", artifacts, old, new)
        whole_s, whole = _gate(folder / "whole", artifacts)
    script_s = (first.wall_s + second.wall_s) / 2
    print(f"script by hand, both releases {script_s:14.1f} s  ({first.wall_s:.1f} and {second.wall_s:.1f})")
    met = [
        _compare("gate, correctness and initialization", correctness_s, correctness, script_s, CORRECTNESS_BAR),
        _compare("gate, with timing", whole_s, whole, script_s, ALL_BAR),
    ]
    _print_models(first, second, whole, limit)
    print(f"{whole.judgement.decision}: {whole.judgement.reason}")
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    return int(not all(met))


def _python(environment: Environment, program: str, *arguments: Path) -> str:
    """Run a program of the folder ``by_hand`` in an environment and return its standard output."""
    command = [environment.interpreter, "-s", str(BY_HAND / program), *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        command, check=True, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return done.stdout


def _by_hand(folder: Path, artifacts: Path, old: Environment, new: Environment) -> ByHand:
    for side in ("old", "new"):
        (folder / side).mkdir(parents=True)
    begin = time.monotonic()
    before = json.loads(_python(old, "script.py", artifacts, folder / "old"))
    after = json.loads(_python(new, "script.py", artifacts, folder / "new", folder / "old"))
    wall_s = time.monotonic() - begin
    return ByHand(wall_s, before["seconds"], after["seconds"], tuple(after["different"]))


def _gate(folder: Path, artifacts: Path, *options: str) -> tuple[float, RunReport]:
    """Return what a run took, its process included, and its report."""
    command = [sys.executable, "-m", "harness", "compat", "--artifacts", str(artifacts), "--out", str(folder)]
    command += ["--init-threads", str(THREADS), *options]
    begin = time.monotonic()
    done = subprocess.run(command, cwd=PROJECT, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wall_s = time.monotonic() - begin
    reports = list(folder.glob("*/report.json"))
    if not reports:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    return wall_s, load_report(reports[0].read_bytes(), file=str(reports[0]))


def _compare(what: str, wall_s: float, report: RunReport, script_s: float, bar: float) -> bool:
    """Print one wall, its ratio and where it went; return whether the bar is met."""
    ratio = wall_s / script_s
    shares = sorted(report.time_shares_s.items(), key=lambda share: -share[1])
    spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in shares if seconds >= 0.5)
    print(f"{what:36}{wall_s:8.1f} s  ratio {ratio:.2f}, at most {bar:.1f}: {'met' if ratio <= bar else 'MISSED'}")
    print(f"    {spent}")
    return ratio <= bar


def _print_models(first: ByHand, second: ByHand, whole: RunReport, limit: float) -> None:
    """Print what each says of every model, and how often the script contradicts itself."""
    cells = {cell.model: cell for cell in whole.judgement.cells if cell.scenario == TIMING}
    models = {model.model: model for model in whole.models}
    print(f"{'':22}{'by hand, new/old':>20}{'old/old':>10}   gate, new/old")
    for name, old_s in first.old_s.items():
        ratios = [first.new_s[name] / old_s, second.new_s[name] / second.old_s[name], second.old_s[name] / old_s]
        latency = models[name].latency
        shown = latency.shown.words if latency is not None and latency.shown is not None else "-"
        status = cells[name].status.value if name in cells else "not timed"
        by_hand = f"{ratios[0] - 1:+10.1%}{ratios[1] - 1:+10.1%}{ratios[2] - 1:+10.1%}"
        print(f"{name:22}{by_hand}   {shown:30} {status}, outputs {models[name].outputs}")
    slow = [
        {name for name, old_s in run.old_s.items() if run.new_s[name] > (1 + limit) * old_s} for run in (first, second)
    ]
    itself = [name for name, old_s in first.old_s.items() if second.old_s[name] > (1 + limit) * old_s]
    itself += [name for name, old_s in first.old_s.items() if old_s > (1 + limit) * second.old_s[name]]
    print(f"script, more than {limit:+.0%}: {len(slow[0])} and {len(slow[1])}, in both runs {len(slow[0] & slow[1])}")
    print(f"script, the old release against itself, either way: {len(itself)}")
    print(
        f"script, outputs that differ: {', '.join(first.different) or 'none'}; {', '.join(second.different) or 'none'}"
    )
