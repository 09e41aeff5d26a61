"""Small results, as they stand in ``docs/calibration``."""

from typing import Any

from benchmarks.calibrate import benchmarks, rivals
from benchmarks.calibrate.batches import DEFECTS, SAME, SLOW

MEASURED = {
    "batches": 15,
    "commit": "0123abc",
    "cores": 2,
    "cpu": "a CPU",
    "date": "2026-11-21T15:00+00:00",
    "load_average": 0.3,
    "new": "2.6.0",
    "old": "2.6.0",
}


def benchmark(what: str = SAME, **given: Any) -> dict[str, Any]:
    """Return one benchmark: unless told otherwise, of one artifact with itself, and nothing is found."""
    size = given.get("size", 0)
    row: dict[str, Any] = {
        "batch": 0,
        "budget": "quick",
        "what": what,
        "size": size,
        "base": "tiny",
        "status": "PASS",
        "findings": "",
        "suspected": 0,
        "ratio": 1 + size / 100,
        "low": 0.99 + size / 100,
        "high": 1.01 + size / 100,
        "fresh_ratio": None,
        "same_ratio": 1.0,
        "rounds": 3,
        "fresh_rounds": 0,
        "spent_s": 3.0,
        "waited": 0.1,
        "pair_ratio": 1 + size / 100,
        "pair_p": 0.2,
        "all_ratio": 1 + size / 100,
        "all_p": 0.01,
    }
    return {**row, **given}


def found(size: int, **given: Any) -> dict[str, Any]:
    """Return a benchmark of a slowdown that was found."""
    return benchmark(
        SLOW, **{"size": size, "status": "FAIL", "findings": "latency", "suspected": 1, "spent_s": 6.0, **given}
    )


def latency() -> dict[str, Any]:
    """Return results of a few benchmarks of every sort."""
    rows = [
        *(benchmark(base=base) for base in ("tiny", "matrix", "bert", "dlrm")),
        benchmark(base="vit", suspected=1, findings="latency_undecided", status="INCONCLUSIVE", spent_s=9.5),
        benchmark(SLOW, size=3, findings="latency_undecided", status="INCONCLUSIVE", spent_s=10.2),
        found(10),
        found(10, base="matrix", spent_s=10.4),
        found(20),
        found(5, budget="thorough", spent_s=20.0),
        benchmark(budget="thorough"),
        *(benchmark(what, base=what, findings=kind) for what, (kind, _, _) in DEFECTS.items()),
        *(benchmark(base=what) for what in DEFECTS),
    ]
    beside = [
        [0, SAME, 0, "tiny", 1.07, 0.001, 620.0, 660.0, 0],
        [0, SLOW, 5, "tiny", 1.04, 0.2, 620.0, 620.0, 1],
        [0, SLOW, 10, "tiny", 1.12, 1e-9, 620.0, 700.0, 0],
        [0, SLOW, 20, "tiny", 1.21, 1e-9, 620.0, 750.0, 0],
    ]
    return {
        "columns": list(benchmarks.COLUMNS),
        "benchmarks": [[row[name] for name in benchmarks.COLUMNS] for row in rows],
        "measured": MEASURED,
        "rival_columns": list(rivals.COLUMNS),
        "rivals": beside,
        "state_columns": list(benchmarks.STATE_COLUMNS),
        "machine_states": [[0, 8, 0.02, 0.31, 0.0, 0.01], [1, 14, 0.04, 0.12, 0.0, 0.0]],
        "spent_s": 4200,
        "truth": {
            "tiny 5": [1.0502, 1.0491, 1.0513],
            "tiny 10": [1.0998, 1.099, 1.1],
            "matrix 5": [1.0497, 1.049, 1.051],
        },
    }


def numbers() -> dict[str, Any]:
    """Return results of seeded faults of numbers, and of whole runs."""
    return {
        "same_against_same": {
            "measured": {**MEASURED, "old": "2.1.2"},
            "summary": {"cells": 400, "false_alarms": 0, "model_runs": 390, "models": 65},
        },
        "seeded": {
            "assert_close": {
                "far_drifts": {"count": 8, "n": 10},
                "faults": {"count": 3, "n": 4},
                "healthy_flagged": {"count": 2, "n": 20},
            },
            "detectors": {"values": {"as_expected": 10, "assert_close": 8, "count": 10, "n": 10}},
            "drifts": {
                "by_size": [
                    {"assert_close": 1, "found": 0, "planted": 5, "tolerances": "0.1 to 1", "where": "one"},
                    {"assert_close": 4, "found": 5, "planted": 5, "tolerances": "above 100", "where": "one"},
                ],
            },
            "far_drifts": {"count": 10, "n": 10},
            "faults": {"dtype float16": {"assert_close": 3, "found": 4, "planted": 4}},
            "healthy": {
                "holes nan": {"assert_close": 2, "flagged": 0, "n": 3, "tolerances": 0.0},
                "holes inf": {"assert_close": 0, "flagged": 0, "n": 3, "tolerances": 0.25},
            },
            "limits": {"cancelled_not 0.9": {"assert_close": 0, "flagged": 3, "n": 3, "tolerances": 49.0}},
            "measured": {**MEASURED, "old": "2.1.2"},
            "summary": {"false_alarms": 0, "healthy": 20},
        },
    }


def failures() -> dict[str, Any]:
    """Return results of planted failures."""
    one = {"expected": "hang", "n": 5, "as_expected": 5, "reported": "hang", "seconds_median": 1.2}
    return {
        "detectors": {"hang": {"count": 10, "n": 10}},
        "faults": {
            "call_hang waits 0": {**one, "proof": "blocked", "seconds_max": 1.4},
            "call_hang waits 2": {**one, "proof": "blocked", "seconds_max": 1.9},
        },
        "healthy": {},
        "measured": {**MEASURED, "old": "2.1.2"},
        "summary": {"false_alarms": 0, "healthy": 10, "missed": 0},
    }
