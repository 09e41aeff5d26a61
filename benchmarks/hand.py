"""The gate against the script that people write by hand, on 24 artifacts of served size: how long each takes, and says.

The script (``by_hand/script.py``) runs once in each release. Bars, as ratios of its wall within one run: correctness and
initialization at most 1.0, all with timing at most 2.5. Then it runs in the old release once more, against its own
answers: what it reports there is false.
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

from harness.core.environment import Environment, EnvSpec
from harness.core.findings import cell_reason
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.project import Project
from harness.report.json.report import load_report
from harness.serving.scenarios import TIMING

PROJECT = Path(__file__).resolve().parents[1]
BY_HAND = Path(__file__).with_name("by_hand")
THREADS = 8
CORRECTNESS_BAR, ALL_BAR = 1.0, 2.5


@dataclass(frozen=True)
class ByHand:
    """One process of the script: its wall, the median call of each model, and which outputs ``allclose`` refuses."""

    wall_s: float
    seconds: Mapping[str, float]
    different: tuple[str, ...]


def main() -> int:
    """Print the walls and what each says of every model; return 0 if both bars are met."""
    settings = Project(folder=PROJECT).settings
    builder = EnvironmentBuilder(default_environment_root(), progress=lambda _name, _text: None, uv=find_uv())
    old, new = builder.build_all([EnvSpec(name=name, release=name) for name in (settings.old, settings.new)])
    with tempfile.TemporaryDirectory(prefix="gate-hand-") as name:
        folder = Path(name)
        (artifacts := folder / "artifacts").mkdir()
        _python(old, "artifacts.py", artifacts)
        _gate(folder / "first", artifacts, "--until", "correctness", "-k", "gru")  # builds what is cached
        before = _by_hand(old, artifacts, folder / "old")
        after = _by_hand(new, artifacts, folder / "new", folder / "old")
        correctness_s, correctness = _gate(folder / "correctness", artifacts, "--until", "correctness")
        again = _by_hand(old, artifacts, folder / "again", folder / "old")
        whole_s, whole = _gate(folder / "whole", artifacts)
    script_s = before.wall_s + after.wall_s
    print(f"{'script by hand, both releases':36}{script_s:8.1f} s")
    met = [
        _compare("gate, correctness and initialization", correctness_s, correctness, script_s, CORRECTNESS_BAR),
        _compare("gate, with timing", whole_s, whole, script_s, ALL_BAR),
    ]
    _print_models(before, after, again, whole, settings.latency.limit)
    print(f"gate: {whole.judgement.decision.value}: {whole.judgement.reason}")
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


def _by_hand(environment: Environment, artifacts: Path, answers: Path, *others: Path) -> ByHand:
    """Return what the script took and reports; it saves its answers and compares them with those of ``others``."""
    answers.mkdir()
    begin = time.monotonic()
    printed = json.loads(_python(environment, "script.py", artifacts, answers, *others))
    wall_s = time.monotonic() - begin
    return ByHand(wall_s=wall_s, seconds=printed["seconds"], different=tuple(printed["different"]))


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


def _print_models(before: ByHand, after: ByHand, again: ByHand, whole: RunReport, limit: float) -> None:
    """Print what each says of every model, and what the script reports of the old release against itself."""
    cells = {cell.model: cell for cell in whole.judgement.cells if cell.scenario == TIMING}
    models = {model.model: model for model in whole.models}
    print(f"{'':20}{'script: new':>12}{'old again':>11}   {'gate: new':31}{'latency':14}outputs")
    for name, old_s in before.seconds.items():
        by_hand = f"{after.seconds[name] / old_s - 1:+12.1%}{again.seconds[name] / old_s - 1:+11.1%}"
        latency = models[name].latency
        shown = latency.shown.words if latency is not None and latency.shown is not None else "-"
        status = cells[name].status.value if name in cells else "not timed"
        print(f"{name:20}{by_hand}   {shown:31}{status:14}{models[name].outputs}")
        if name in cells and cells[name].status is not Status.PASS:
            print(f"{'':45}{cell_reason(cells[name])}")
    for words, run in (("new", after), ("old again", again)):
        slow = [name for name, old_s in before.seconds.items() if run.seconds[name] > (1 + limit) * old_s]
        print(f"script, {words}: slower by more than {limit:.0%}: {', '.join(slow) or 'none'}")
        print(f"script, {words}: outputs differ: {', '.join(run.different) or 'none'}")
