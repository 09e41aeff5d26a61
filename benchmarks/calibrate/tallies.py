"""Counts and rates over the benchmarks, row by row of the page's tables. Pure."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.calibrate.batches import BASES, DEFECTS, LONG, SAME, SLOW
from benchmarks.calibrate.rivals import BLOCK_RULES, RULES
from harness.checks.startup.rates import interval

Row = Mapping[str, Any]
SLOWED = (5, 10, 20)  # what other tools were asked about beside identical code, in percent
WITHIN_S = {"quick": 10.0, "thorough": 60.0}
SEEDED = {*BASES, *(f"long_{base}" for base in LONG), *DEFECTS}
# Findings of benchmarks that found nothing: no decision, and what both releases have.
NOT_FALSE = ("latency_undecided", "not_measured", "recompiles")


@dataclass(frozen=True)
class Count:
    """``count`` of ``of``, with the exact 95 % interval of the rate behind it."""

    count: int
    of: int

    @property
    def rate(self) -> float:
        """The share; 0 of nothing."""
        return self.count / self.of if self.of else 0.0

    @property
    def words(self) -> str:
        """``57 of 60: 95.0 % (86.1 to 99.0)``, or ``not measured``."""
        if not self.of:
            return "not measured"
        low, high = interval(self.count, self.of)
        return f"{self.count} of {self.of}: {100 * self.rate:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def rows_of(result: Mapping[str, Any], name: str, columns: str) -> list[dict[str, Any]]:
    """Return a table of the results as mappings; empty where it was not measured."""
    return [dict(zip(result[columns], row, strict=True)) for row in result.get(name, [])]


def counted(rows: Iterable[Row], holds: Callable[[Row], bool]) -> Count:
    """Return how many of the rows hold."""
    kept = list(rows)
    return Count(sum(map(holds, kept)), len(kept))


def same_rows(benchmarks: Iterable[Row], budget: str = "quick") -> list[Row]:
    """Return the benchmarks of one artifact against itself."""
    return [row for row in benchmarks if row["what"] == SAME and row["budget"] == budget]


def slow_rows(benchmarks: Iterable[Row], budget: str, size: int) -> list[Row]:
    """Return the benchmarks of one size of slowdown."""
    return [row for row in benchmarks if row["what"] == SLOW and (row["budget"], row["size"]) == (budget, size)]


def kinds(row: Row) -> list[str]:
    """Return the kinds of what a benchmark told."""
    return [kind for kind in str(row["findings"]).split("+") if kind]


def fails(row: Row) -> bool:
    """Whether a benchmark failed its model."""
    return bool(row["status"] == "FAIL")


def is_found(row: Row) -> bool:
    """Whether a slowdown of every call was found: told, and the model fails."""
    return fails(row) and "latency" in kinds(row)


def found_in_time(row: Row) -> bool:
    """Whether a slowdown was found within the time that its budget may take."""
    return is_found(row) and row["spent_s"] <= WITHIN_S[row["budget"]]


def false_kinds(row: Row) -> list[str]:
    """Return what a benchmark of one artifact with itself told wrongly."""
    return [kind for kind in kinds(row) if kind not in NOT_FALSE]


def is_ordinary(row: Row) -> bool:
    """Whether a benchmark is of a model of the zoo."""
    return row["base"] not in SEEDED


def quantity_rows(benchmarks: Sequence[Row]) -> list[list[str]]:
    """Return what else is planted: the kind asked for, how often it was told, how often of the twin."""
    rows = []
    for what, (kind, _, _) in DEFECTS.items():
        planted = [row for row in benchmarks if row["what"] == what]
        twins = [row for row in benchmarks if row["what"] == SAME and row["base"] == what]
        told = [counted(found, lambda row, kind=kind: kind in kinds(row)) for found in (planted, twins)]  # type: ignore[misc]
        rows.append([what.replace("_", " "), f"`{kind}`", *(count.words for count in told)])
    return rows


def false_alarm_rows(benchmarks: Sequence[Row]) -> list[list[str]]:
    """Return per kind of finding how many benchmarks of identical code told it."""
    rows = []
    for budget in WITHIN_S:
        same = same_rows(benchmarks, budget)
        rows.append([budget, "any", counted(same, lambda row: bool(false_kinds(row))).words])
        for kind in sorted({kind for row in same for kind in false_kinds(row)}):
            told = counted(same, lambda row, kind=kind: kind in false_kinds(row))  # type: ignore[misc]
            rows.append([budget, f"`{kind}`", told.words])
    return rows


def rival_rows(benchmarks: Sequence[Row], rivals: Sequence[Row], sizes: Sequence[int] = SLOWED) -> list[list[str]]:
    """Return per method: false alarms on identical code, then misses of slowdowns of these sizes, in percent."""
    ours = []
    for budget in WITHIN_S:
        false = counted(same_rows(benchmarks, budget), fails).words
        misses = [counted(slow_rows(benchmarks, budget, size), lambda row: not is_found(row)).words for size in sizes]
        ours.append([f"**this gate, {budget}**", false, *misses])
    blocks = [row for row in benchmarks if row["what"] in (SAME, SLOW) and row["pair_ratio"] is not None]
    return [
        *ours,
        *(_rival_row(name, rule, rivals, sizes) for name, rule in RULES.items()),
        *(_rival_row(f"{name} (our blocks)", rule, blocks, sizes) for name, rule in BLOCK_RULES.items()),
    ]


def _rival_row(name: str, flags: Callable[[Row], bool], rows: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    false = counted([row for row in rows if row["size"] == 0], flags)
    misses = [counted([row for row in rows if row["size"] == size], lambda row: not flags(row)) for size in sizes]
    return [name, false.words, *(miss.words for miss in misses)]


def detection_rows(benchmarks: Sequence[Row]) -> list[list[str]]:
    """Return per budget and size: found, suspected, undecided, the estimate, time to the verdict."""
    rows = []
    for budget, size in sorted({(row["budget"], row["size"]) for row in benchmarks if row["what"] in (SAME, SLOW)}):
        these = slow_rows(benchmarks, budget, size) if size else same_rows(benchmarks, budget)
        spent, ratios = ([row[name] for row in these if row[name] is not None] for name in ("spent_s", "ratio"))
        rows.append(
            [
                budget,
                f"{size} %" if size else "none",
                counted(these, is_found).words,
                str(sum(row["suspected"] for row in these)),
                str(sum(row["status"] == "INCONCLUSIVE" for row in these)),
                f"{100 * (statistics.median(ratios) - 1):+.1f} %" if ratios else "",
                f"{statistics.median(spent):.1f} / {_rank(spent, 0.95):.1f} / {max(spent):.1f}",
            ]
        )
    return rows


def shared_rows(commons: Sequence[Row]) -> list[list[str]]:
    """Return per size what all models were said to share: how often, from least to most, and the widest half-interval."""
    rows = []
    for size in sorted({row["size"] for row in commons}):
        these = [row for row in commons if row["size"] == size]
        ratios = sorted(100 * (row["ratio"] - 1) for row in these)
        half = max(100 * max(row["high"] - row["ratio"], row["ratio"] - row["low"]) / row["ratio"] for row in these)
        estimates = f"{ratios[0]:+.2f} to {ratios[-1]:+.2f} %"
        rows.append([f"{size} %" if size else "none", str(len(these)), estimates, f"+-{half:.2f} %"])
    return rows


def _rank(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` of the values lie, by the nearest rank."""
    return sorted(values)[round(share * (len(values) - 1))]


def base_rows(benchmarks: Sequence[Row], bases: Sequence[str]) -> list[list[str]]:
    """Return per kind of work how many slowdowns of each budget and size were found."""
    cases = sorted({(row["budget"], row["size"]) for row in benchmarks if row["what"] == SLOW})
    return [
        [
            base,
            *(
                f"{found.count} of {found.of}"
                for budget, size in cases
                for found in [
                    counted([row for row in slow_rows(benchmarks, budget, size) if row["base"] == base], is_found)
                ]
            ),
        ]
        for base in bases
    ]
