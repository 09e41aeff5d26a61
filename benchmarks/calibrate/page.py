"""``docs/calibration.md`` out of ``docs/calibration/*.json``: the same page for the same results."""

import dataclasses
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.calibrate.bars import Bar, common_bars, latency_bars, length_bars, numbers_bars
from benchmarks.calibrate.batches import BASES, LENGTH_RIVAL_SIZES, LENGTHS, SAME
from benchmarks.calibrate.corpus import PROJECT, RESULTS
from benchmarks.calibrate.fault_parts import failures_part, numbers_part, table
from benchmarks.calibrate.tallies import (
    base_rows,
    detection_rows,
    false_alarm_rows,
    quantity_rows,
    rival_rows,
    rows_of,
    shared_rows,
)

PAGE = PROJECT / "docs" / "calibration.md"
SUMMARY = PROJECT / "harness" / "report" / "backends" / "templates" / "calibration.json"

INTRODUCTION = """# Calibration

How small a fault the gate finds, how often, how soon, and how often it sees one that is not there. Defects of known
size are planted ([`fixtures/planted/seeded`](../fixtures/README.md)), each beside a healthy twin, and the gate judges
them as it judges any model. `57 of 60: 95.0 % (86.1 to 99.0)` is a count, its rate, and the exact 95 % interval of the
true rate (Clopper and Pearson): one miss more or less is no news.

Nothing on this page is written by hand. `nox -s calibrate` measures everything anew, into `docs/calibration/*.json`,
and writes the page; it needs a machine that does nothing else. `nox -s calibrate -- latency --resume` goes on where
a measurement of latency was interrupted, `nox -s calibrate -- page` only writes the page."""

HOW_LATENCY = """One release runs on both sides, so the truth is known. A call repeats one kind of work 100 times; a
slowdown by 5 % is five repeats more. Every benchmark has fresh processes of its own, which the benchmarks of a batch share.
"Suspected" is REGRESSED before fresh processes were asked; "found" is FAIL after it. The limit is 3 %: of a slowdown
by just that, the gate should say nothing. Times are measuring time per model, start of processes apart."""

HOW_LENGTHS = """As above, with the steady call alone and the limit of 3 %: calls that are 40 sines (50 us) or 120, 1,200 and 12,000
matrix steps long. The floor of 20 us per call, which no slowdown of a call of 50 us would exceed, is left out."""

HOW_RIVALS = """False alarms on identical code, and misses by size of the slowdown. The first two lines are the benchmarks
above. The tools were asked in the same session, between the batches, the way they are used: one process times all
models of the old side, then another one all of the new side; 0.5 s of single calls per model, 10 calls of warm-up, then
`Timer(...).blocked_autorange(min_run_time=0.2)`. `Compare` is read as its users do: trimmed to significant figures,
painted per row; it paints everything within 1 % of the best as best. Mann-Whitney is one-sided. "Our blocks" applies
the same rules to the blocks that our own benchmarks had measured in alternation, quick and thorough together."""


def main(arguments: Sequence[str] = ()) -> int:
    """Write the page; return 0."""
    folder = Path(arguments[0]) if arguments else RESULTS
    parts = ("latency", "numbers", "failures", "lengths")
    latency, numbers, failures, lengths = (_read(folder / f"{name}.json") for name in parts)
    page = PAGE if folder == RESULTS else folder / "calibration.md"
    page.write_text(rendered(latency, numbers, failures, lengths))
    (SUMMARY if folder == RESULTS else folder / SUMMARY.name).write_text(summary(latency, numbers, lengths))
    print(f"written: {page}", file=sys.stderr)
    return 0


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def rendered(
    latency: Mapping[str, Any],
    numbers: Mapping[str, Any],
    failures: Mapping[str, Any],
    lengths: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Return the page; a part that was not measured is left out.

    Args:
        latency, numbers, failures, lengths: the results as they stand in ``docs/calibration``.
    """
    benchmarks = rows_of(latency, "benchmarks", "columns")
    parts = [INTRODUCTION, *_bars(latency, numbers, lengths)]
    if benchmarks:
        parts += list(_latency(latency, benchmarks))
    if lengths:
        parts += list(_lengths(lengths))
    if "seeded" in numbers:
        parts += list(numbers_part(numbers))
    if failures:
        parts += list(failures_part(failures))
    parts += list(_machine(latency, numbers, failures, lengths))
    return "\n\n".join(parts) + "\n"


def summary(latency: Mapping[str, Any], numbers: Mapping[str, Any], lengths: Mapping[str, Any]) -> str:
    """Return what was asked, and measured, as JSON: what the HTML report shows of the calibration."""
    bars = _all_bars(latency, numbers, lengths)
    return json.dumps([dataclasses.asdict(bar) for bar in bars], indent=2) + "\n"


def _all_bars(latency: Mapping[str, Any], numbers: Mapping[str, Any], lengths: Mapping[str, Any]) -> list[Bar]:
    benchmarks, of_lengths = (rows_of(part, "benchmarks", "columns") for part in (latency, lengths))
    commons = [row for part in (latency, lengths) for row in rows_of(part, "common", "common_columns")]
    return [
        *(latency_bars(benchmarks) if benchmarks else []),
        *(length_bars(of_lengths) if of_lengths else []),
        *common_bars(commons),
        *numbers_bars(numbers),
    ]


def _bars(latency: Mapping[str, Any], numbers: Mapping[str, Any], lengths: Mapping[str, Any]) -> Iterator[str]:
    bars = _all_bars(latency, numbers, lengths)
    yield "## What was asked for"
    rows = [[bar.what, bar.asked, bar.found, f"**not met**: {bar.short}" if bar.short else "met"] for bar in bars]
    yield table(["", "asked", "measured", ""], rows)


def _latency(latency: Mapping[str, Any], benchmarks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Latency"
    yield HOW_LATENCY
    headers = ["budget", "planted", "found", "suspected", "not decided", "median estimate", "s: median / p95 / most"]
    yield table(headers, detection_rows(benchmarks))
    yield "Found, by kind of work:"
    cases = sorted({(row["budget"], row["size"]) for row in benchmarks if row["what"] == "slow"})
    yield table(["", *(f"{size} %, {budget}" for budget, size in cases)], base_rows(benchmarks, BASES))
    truth = latency.get("truth", {})
    if truth:
        yield (
            "What the planted work really costs, both artifacts called in turn in one process, in percent: "
            "median over several processes, least and most:"
        )
        sizes = sorted({int(name.split()[1]) for name in truth})
        bases = list(dict.fromkeys(name.split()[0] for name in truth))
        rows = [[base, *(_cost(truth.get(f"{base} {size}")) for size in sizes)] for base in bases]
        yield table(["", *(f"{size} %" for size in sizes)], rows)
    yield "### Other quantities"
    yield "Told as the kind that was planted, and told of the healthy twin in as many benchmarks with itself:"
    yield table(["planted", "kind", "told", "told of the twin"], quantity_rows(benchmarks))
    models = len({row["base"] for row in benchmarks if row["what"] == SAME})
    yield f"Findings of any kind in benchmarks of one artifact with itself, {models} artifacts:"
    yield table(["budget", "kind", "false alarms"], false_alarm_rows(benchmarks))
    yield "### Beside what people use today"
    yield HOW_RIVALS
    headers = ["", "false alarms", "missed at 5 %", "at 10 %", "at 20 %"]
    yield table(headers, rival_rows(benchmarks, rows_of(latency, "rivals", "rival_columns")))


def _lengths(lengths: Mapping[str, Any]) -> Iterator[str]:
    yield "### By length of a call"
    yield HOW_LENGTHS
    headers = [
        "a call",
        "budget",
        "planted",
        "found",
        "suspected",
        "not decided",
        "median estimate",
        "s: median / p95 / most",
    ]
    benchmarks = rows_of(lengths, "benchmarks", "columns")
    yield table(
        headers,
        [
            [length, *row]
            for length in LENGTHS
            for row in detection_rows([one for one in benchmarks if one["base"] == length])
        ],
    )
    yield "What the calls of all lengths share, as one estimate of each batch; the interval is the widest of them:"
    shared = rows_of(lengths, "common", "common_columns")
    yield table(["planted", "batches", "estimates", "interval, at most"], shared_rows(shared))
    beside = rows_of(lengths, "rivals", "rival_columns")
    if beside:
        yield "The same methods as above on these calls, all lengths together:"
        sizes = [size for size in LENGTH_RIVAL_SIZES if size]
        headers = ["", "false alarms", *(f"missed at {size} %" for size in sizes)]
        yield table(headers, rival_rows(benchmarks, beside, sizes))


def _cost(found: Sequence[float] | None) -> str:
    return "{:.1f} ({:.1f} to {:.1f})".format(*(100 * (ratio - 1) for ratio in found)) if found else ""


def _machine(
    latency: Mapping[str, Any], numbers: Mapping[str, Any], failures: Mapping[str, Any], lengths: Mapping[str, Any]
) -> Iterator[str]:
    yield "## When and where"
    parts = {
        "latency": latency,
        "latency, by length of a call": lengths,
        "numbers, seeded": numbers.get("seeded", {}),
        "numbers, the zoo against itself": numbers.get("same_against_same", {}),
        "failures": failures,
    }
    columns = ("date", "cpu", "cores", "load_average", "old", "new", "commit")
    rows = [[name, *(str(part["measured"][key]) for key in columns)] for name, part in parts.items() if part]
    yield table(["", "date", "CPU", "cores", "load before", "old", "new", "commit"], rows)
    machine_states = rows_of(latency, "machine_states", "state_columns")
    if machine_states:
        most, usual = (
            max(row["others_most"] for row in machine_states),
            statistics.median(row["others_median"] for row in machine_states),
        )
        stolen = max(row["stolen_most"] for row in machine_states)
        yield (
            f"Latency took {latency['spent_s'] / 60:.0f} min, {sum(row['rounds'] for row in machine_states)} rounds of fresh "
            f"processes. Other processes used {usual:.0%} of the benchmarks' core (median; at most {most:.0%}), the "
            f"hypervisor took at most {stolen:.0%}."
        )
