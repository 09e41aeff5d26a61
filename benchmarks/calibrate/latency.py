"""Latency: how small a slowdown the benchmark finds, how long it takes, and how often it sees one that is not there.

One release runs on both sides, so that the truth is known. Everything is written as it comes: ``--resume`` goes on
where an interrupted calibration stopped. ``--quick`` is one batch of two benchmarks, to see that it works.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.calibrate import benchmarks, rivals
from benchmarks.calibrate.batches import BASES, QUICK_SIZES, THOROUGH_SIZE, Batch, planned_batches
from benchmarks.calibrate.corpus import RESULTS, measured, scratch, store
from benchmarks.calibrate.foreign import answer_of
from benchmarks.calibrate.tallies import fails, is_found
from harness.core.machine import MachineState
from harness.core.models import Artifact
from harness.probing.facts import Answered, Effects

RESULT = "latency.json"
TINY = BASES[1]  # the base of --quick
SIZES = sorted((*QUICK_SIZES, THOROUGH_SIZE))
TRUTH_PROCESSES, TRUTH_EACH_S = 5, 1.2


def main(arguments: Sequence[str] = ()) -> int:
    """Measure what is left to measure, write ``docs/calibration/latency.json``, and return 0."""
    parser = argparse.ArgumentParser(prog="nox -s calibrate -- latency")
    parser.add_argument("--quick", action="store_true", help="two benchmarks, to see that it works")
    parser.add_argument("--resume", action="store_true", help="go on where the file of results stops")
    parser.add_argument("--out", default=RESULT, help=f"file of results, in {RESULTS} (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=None, help="stop after so many")
    given = parser.parse_args(list(arguments))
    path = RESULTS / given.out
    if given.quick and path == RESULTS / RESULT:
        parser.error("--quick needs --out: its numbers are not to be published")
    known = json.loads(path.read_text()) if given.resume and path.exists() else {}
    wanted = [f"seeded_steady_{TINY}", *(f"seeded_slow_{TINY}_{size}" for size in SIZES)] if given.quick else []
    with scratch() as folder, benchmarks.exported(folder, wanted) as (facts, effects, artifacts):
        calibrate(path, known, facts, effects, artifacts, tiny=given.quick, most=given.batches)
    return 0


def calibrate(
    path: Path,
    known: Mapping[str, Any],
    facts: Answered,
    effects: Effects,
    artifacts: Mapping[str, Artifact],
    *,
    tiny: bool = False,
    most: int | None = None,
) -> None:
    """Fight every batch that ``known`` lacks, and write all results to ``path`` after each."""
    zoo = sorted(name for name in artifacts if not name.startswith("seeded_"))
    batches = planned_batches(zoo, tiny=tiny)
    result: dict[str, Any] = {
        "columns": list(benchmarks.COLUMNS),
        "benchmarks": list(known.get("benchmarks", [])),
        "measured": known.get("measured") or {**measured(), "old": facts.plan.settings.old, "batches": len(batches)},
        "rivals": list(known.get("rivals", [])),
        "rival_columns": list(rivals.COLUMNS),
        "state_columns": list(benchmarks.STATE_COLUMNS),
        "machine_states": list(known.get("machine_states", [])),
        "common_columns": list(benchmarks.COMMON_COLUMNS),
        "common": list(known.get("common", [])),
        "spent_s": known.get("spent_s", 0),
        "truth": known.get("truth") or {},
    }
    done = {row[0] for row in result["benchmarks"]}
    left = [batch for batch in batches if batch.number not in done][:most]
    interpreter = effects.environments["old"].interpreter
    begin, before_s = time.monotonic(), result["spent_s"]
    if not result["truth"]:
        result["truth"] = true_ratios(artifacts, interpreter, effects.folder("rivals"), tiny=tiny)
    for index, batch in enumerate(left):
        say(f"batch {index + 1} of {len(left)} ({batch.budget}, {len(batch.entries)} benchmarks)")
        machine_states: list[MachineState] = []
        result["benchmarks"] += benchmarks.run_batch(batch, artifacts, facts, effects, machine_states, result["common"])
        result["machine_states"].append(benchmarks.state_row(batch.number, machine_states))
        if batch.rivals:
            result["rivals"] += rivals.ask(batch.number, batch.rivals, artifacts, interpreter, effects.folder("rivals"))
        result["spent_s"] = round(before_s + time.monotonic() - begin)
        store(str(path), result)
        say(summary(result, batch))


def summary(result: Mapping[str, Any], batch: Batch) -> str:
    """Return one line on the batch that was just run."""
    rows = [dict(zip(benchmarks.COLUMNS, row, strict=True)) for row in result["benchmarks"] if row[0] == batch.number]
    slow = [row for row in rows if row["what"] == "slow" and row["size"] > 3]
    same = [row for row in rows if row["what"] == "same"]
    found, false = sum(map(is_found, slow)), sum(map(fails, same))
    spent_s = statistics.mean(row["spent_s"] for row in rows)
    return f"  found {found} of {len(slow)}, false {false} of {len(same)}, {spent_s:.1f} s per benchmark, {result['spent_s']} s"


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


def true_ratios(
    artifacts: Mapping[str, Artifact], interpreter: str, folder: Path, *, tiny: bool = False
) -> dict[str, list[float]]:
    """Return per base and size the true ratio: median, least and most of several processes.

    In each process both artifacts are called in turn, thousands of times: the artifacts' work differs, and nothing else.
    """
    pairs = []
    for base in (TINY,) if tiny else BASES:
        for size in SIZES:
            old, new = artifacts[f"seeded_steady_{base}"], artifacts[f"seeded_slow_{base}_{size}"]
            pairs.append([f"{base} {size}", [old.path, old.inputs_dir], [new.path, new.inputs_dir]])
    found: dict[str, list[float]] = {}
    processes = 2 if tiny else TRUTH_PROCESSES
    for number in range(processes):
        say(f"true ratios, process {number + 1} of {processes}")
        job = {"pairs": pairs, "each_s": 0.2 if tiny else TRUTH_EACH_S}
        for name, ratio in answer_of("timing", "truth", job=job, interpreter=interpreter, folder=folder).items():
            found.setdefault(name, []).append(ratio)
    return {
        name: [round(value, 4) for value in (statistics.median(ratios), min(ratios), max(ratios))]
        for name, ratios in found.items()
    }
