"""Numbers: how large a drift must be to be seen, which other faults are, and how often a healthy model is not let be.

``numbers seeded`` plants the corpus, ``numbers same`` runs the zoo with one release on both sides; without a word,
both. Beside the gate, the same outputs go to ``torch.testing.assert_close`` with its defaults.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.calibrate.corpus import NEW, OLD, Case, declared, measured, planted, probed, scratch, store
from benchmarks.calibrate.foreign import answer_of
from benchmarks.calibrate.tables import report
from harness.checks.startup.rates import upper_bound
from harness.core.outcome import Status
from harness.store import probe_files
from harness.worker import wire
from tests.integration.gate import compat

RESULT = "numbers.json"
FILES = ("base", "drifts", "placement", "structure", "rewritten", "unusual")
RUNS = 3


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, write ``docs/calibration/numbers.json``, return 0 if all that must be seen is, and no FAIL is false."""
    parts: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
        "seeded": ("seeded", seeded),
        "same": ("same_against_same", same_against_same),
    }
    if unknown := [word for word in arguments if word not in parts]:
        print(f"usage: python -m benchmarks.calibrate numbers [{' | '.join(parts)}], not {unknown[0]}", file=sys.stderr)
        return 2
    wrong = 0
    for word in arguments or parts:
        name, measure = parts[word]
        found = measure()
        path = store(RESULT, {name: found})
        print(f"{name}: {json.dumps(found['summary'], sort_keys=True)}\nwritten to {path}")
        wrong += found["summary"]["missed"] + found["summary"]["false_alarms"]
    return int(wrong > 0)


def seeded() -> dict[str, Any]:
    """Return what the gate and ``assert_close`` say of every seeded fault of numbers and of every healthy twin."""
    about = measured()
    with scratch() as folder, planted(folder, declared(*FILES)) as (facts, effects):
        cases = probed(facts, effects)
        rival = assert_close(cases, effects.environments["new"].interpreter, folder)
    return report(cases, rival, about)


def assert_close(cases: Sequence[Case], interpreter: str, folder: Path) -> dict[str, Any]:
    """Return what the real function says of the outputs of every case that completed."""
    pairs = [
        {
            "name": case.declaration.name,
            "model": case.declaration.name,
            "twin": case.twin,
            "old": str(_outputs(Path(case.old_directory), folder)),
            "new": str(_outputs(Path(case.probe.directory), folder)),
        }
        for case in cases
        if case.comparison is not None and case.probe is not None
    ]
    return answer_of("assert_close", job=pairs, interpreter=interpreter, folder=folder)


def _outputs(probe: Path, folder: Path) -> Path:
    """Return a folder with the outputs of a probe, below ``folder``."""
    found = folder / f"outputs-{probe.name}"
    found.mkdir(exist_ok=True)
    for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
        (found / name).write_bytes(probe_files.read(probe, f"{wire.OUTPUTS}/{name}"))
    return found


def same_against_same() -> dict[str, Any]:
    """Return what whole runs of the zoo say with one release on both sides: each FAIL is false."""
    about = measured()
    runs = [one_run(release, number) for release in (OLD, NEW) for number in range(RUNS)]
    cells, models = (sum(run[name] for run in runs) for name in ("cells", "models"))
    fails = [name for run in runs for name in run["fail"]]
    return {
        "measured": about,
        "runs": runs,
        "summary": {
            "cells": cells,
            "false_alarms": len(fails),
            "false_fail_rate_at_most": round(upper_bound(len(fails), cells), 6),
            "missed": 0,
            "model_runs": models,
            "models": max(run["models"] for run in runs),
        },
    }


def one_run(release: str, number: int) -> dict[str, Any]:
    """Return the statuses of all cells of one run of the zoo, ``release`` against itself."""
    with scratch() as folder:
        begin = time.monotonic()
        sides = ("--old", release, "--new", release, "--allow-same-torch")
        judgement = compat(folder, *sides, "--latency", "off", timeout_s=900).report.judgement
        spent_s = time.monotonic() - begin
    cells = [cell for row in judgement.rows for cell in row.cells]
    return {
        "planted_defects_missed": [
            planted_defect.name for planted_defect in judgement.planted_defects if not planted_defect.caught
        ],
        "cells": len(cells),
        "fail": [cell.cell for cell in cells if cell.status is Status.FAIL],
        "models": len(judgement.rows),
        "release": release,
        "run": number,
        "seconds": round(spent_s),
        "statuses": dict(Counter(str(cell.status) for cell in cells)),
    }
