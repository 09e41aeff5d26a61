"""Calls of four lengths, 50 us to 100 ms: how often the benchmark errs, and what it leaves undecided, at each.

One release runs on both sides, and the steady call alone is measured. After each quick batch other tools are asked
about the same calls. Everything is written as it comes: ``--resume`` goes on where an interrupted calibration stopped,
and ``--batches`` ends it after so many.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.calibrate import benchmarks, rivals
from benchmarks.calibrate.batches import length_batches
from benchmarks.calibrate.corpus import RESULTS, measured, scratch, store
from harness.core.machine import MachineState

RESULT = "lengths.json"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure what is left to measure, write ``docs/calibration/lengths.json``, and return 0."""
    parser = argparse.ArgumentParser(prog="nox -s calibrate -- lengths")
    parser.add_argument("--resume", action="store_true", help="go on where the file of results stops")
    parser.add_argument("--out", default=RESULT, help=f"file of results, in {RESULTS} (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=None, help="stop after so many")
    given = parser.parse_args(list(arguments))
    path = RESULTS / given.out
    result: dict[str, Any] = {
        "columns": list(benchmarks.COLUMNS),
        "benchmarks": [],
        "state_columns": list(benchmarks.STATE_COLUMNS),
        "machine_states": [],
        "common_columns": list(benchmarks.COMMON_COLUMNS),
        "common": [],
        "rival_columns": list(rivals.COLUMNS),
        "rivals": [],
        "spent_s": 0,
    }
    if given.resume and path.exists():
        result |= json.loads(path.read_text())
    batches = length_batches()
    done = {row[0] for row in result["benchmarks"]}
    left = [batch for batch in batches if batch.number not in done][: given.batches]
    entries = [entry for batch in batches for entry in (*batch.entries, *batch.rivals)]
    wanted = {name for entry in entries for name in (entry.old, entry.new)}
    with scratch() as folder, benchmarks.exported(folder, wanted) as (facts, effects, artifacts):
        result.setdefault("measured", {**measured(), "old": facts.plan.settings.old, "batches": len(batches)})
        interpreter = effects.environments["old"].interpreter
        for batch in left:
            begin = time.monotonic()
            states: list[MachineState] = []
            rows = benchmarks.run_batch(batch, artifacts, facts, effects, states, result["common"], extras=False)
            result["benchmarks"] += rows
            result["machine_states"].append(benchmarks.state_row(batch.number, states))
            if batch.rivals:
                result["rivals"] += rivals.ask(
                    batch.number, batch.rivals, artifacts, interpreter, effects.folder("rivals")
                )
            result["spent_s"] = round(result["spent_s"] + time.monotonic() - begin)
            store(str(path), result)
            statuses = [row[benchmarks.COLUMNS.index("findings")] for row in rows]
            words = (
                f"batch {batch.number} ({batch.budget}): {statuses.count('')} without a finding, {len(statuses)} in all"
            )
            print(f"{words}, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return 0
