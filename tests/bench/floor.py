"""Correctness of the whole zoo against its floor: one process per release doing the same calls, one after another.

The floor replays the very requests of the run, in the same environments and through the same worker code, in a
single process per release: no fork, no isolation, no deadline, no comparison. The bar: the gate takes no longer.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.domain.report import RunReport
from harness.report.json.report import load_report

PROGRAM = Path(__file__).with_name("floor_program.py")
PROJECT = PROGRAM.parent.parent.parent


def main() -> int:
    """Print the ratio and where the gate's time went; return 0 if the gate is not slower than the floor."""
    with tempfile.TemporaryDirectory(prefix="gate-floor-") as folder:
        report, gate_s, run = _gate(Path(folder))
        floor_s = {side: _floor(side, report, run, Path(folder)) for side in ("old", "new")}
    whole_floor_s = sum(floor_s.values())
    ratio = gate_s / whole_floor_s
    shares = sorted(report.time_shares_s.items(), key=lambda item: -item[1])
    own = report.time_shares_s.get("harness itself", 0.0) / report.wall_s
    print(f"models                 {len(report.models)}")
    print(
        f"floor                  {whole_floor_s:6.1f} s  (old {floor_s['old']:.1f} s, then new {floor_s['new']:.1f} s)"
    )
    print(
        f"gate, planted defects as well {gate_s:6.1f} s  ({', '.join(f'{name} {spent:.1f}' for name, spent in shares)})"
    )
    print(f"ratio gate/floor       {ratio:6.2f}    bar: at most 1.00  {'met' if ratio <= 1 else 'MISSED'}")
    print(f"harness's own share    {own:6.1%}    bar: under 10 %    {'met' if own < 0.1 else 'MISSED'}")
    return int(ratio > 1 or own >= 0.1)


def _gate(folder: Path) -> tuple[RunReport, float, Path]:
    """Run the zoo without the benchmark once; the environments are built before the clock starts."""
    subprocess.run([sys.executable, "-m", "harness", "env"], cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
    begin = time.monotonic()
    command = [sys.executable, "-m", "harness", "compat", "--latency", "off", "--out", str(folder / "runs")]
    subprocess.run(command, cwd=PROJECT, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    gate_s = time.monotonic() - begin
    (path,) = (folder / "runs").glob("*/report.json")
    return load_report(path.read_bytes(), file=str(path)), gate_s, path.parent


def _floor(side: str, report: RunReport, run: Path, folder: Path) -> float:
    """Return the seconds that one process of this side takes for the run's requests of its models."""
    names = {model.model for model in report.models}
    directories = []
    for path in run.glob("probes/*/result.json"):
        request = json.loads((path.parent / "request.json").read_text())
        result = json.loads(path.read_text())
        models = {item["artifact"]["model"].partition("@")[0] for item in request["runs"]}
        models |= {request["declaration"]["name"]} if request["declaration"] else set()
        if result["side"] == side and models and models <= names:
            directories.append((request["verb"] != "export", path.stat().st_mtime_ns, str(path.parent)))
    work = folder / f"floor-{side}.json"
    work.write_text(json.dumps([directory for _, _, directory in sorted(directories)]))
    interpreter = (report.old if side == "old" else report.new).interpreter
    output = folder / f"floor-{side}"
    output.mkdir()
    begin = time.monotonic()
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    subprocess.run([interpreter, "-s", str(PROGRAM), str(work), str(output)], check=True, env=environment)
    return time.monotonic() - begin
