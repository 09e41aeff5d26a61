"""The tables of ``docs/evidence.md`` out of ``docs/evidence/*.json``; what stands around them is written by hand."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from benchmarks.evidence.processes import PROJECT

PAGE = PROJECT / "docs" / "evidence.md"
RESULTS = PROJECT / "docs" / "evidence"
PLACE = re.compile(r"(<!-- measured: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Row = Mapping[str, Any]
Columns = Mapping[str, Callable[[Row], object]]


def filled(text: str) -> str:
    """Return the page with every table as the results have it now; one without results stays as it is."""
    return PLACE.sub(_filled, text)


def _filled(found: re.Match[str]) -> str:
    path = RESULTS / f"{found[2]}.json"
    return f"{found[1]}\n{_table(found[2])}\n\n{found[3]}" if path.exists() else found[0]


def _table(name: str) -> str:
    result = json.loads((RESULTS / f"{name}.json").read_text())
    measured = result["measured"]
    rows = RESHAPED[name](result["rows"]) if name in RESHAPED else result["rows"]
    columns = COLUMNS[name]
    table = tabulate(
        [[str(value(row)) for value in columns.values()] for row in rows],
        list(columns),
        "github",
        disable_numparse=True,
    )
    where = f"{measured['cpu']}, {measured['cores']} virtual cores, load average {measured['load_before']:g} before"
    return f"{_plain(table)}\n\nMeasured on {measured['date']}: {where}."


def _plain(table: str) -> str:
    """Return a table without padding, so that a longer cell changes one line."""
    lines = [re.sub(r" {2,}", " ", line) for line in table.splitlines()]
    lines[1] = "|" + "---|" * (lines[0].count("|") - 1)
    return "\n".join(lines)


def key(name: str, unit: str = "") -> Callable[[Row], object]:
    return lambda row: f"{row[name]}{unit}" if unit else row[name]


def either(name: str) -> Callable[[Row], object]:
    return lambda row: row.get(name, "")


def number(name: str, unit: str = "") -> Callable[[Row], object]:
    return lambda row: f"{row[name]:g}{unit}"


def percent(name: str) -> Callable[[Row], object]:
    return lambda row: f"{100 * row[name]:.3g} %"


def _first_calls(rows: Sequence[Row]) -> list[Row]:
    """One row per call of what was loaded, and of the second shape, and one of loads; releases side by side."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        if row["what"] == "load_ms":
            line = found.setdefault(("load_ms", 0), {"what": "load_ms", "call": ""})
            line[row["release"]] = f"{row['least']:g} / {row['median']:g} / {row['most']:g} ms"
        elif row["call"] < 6:
            line = found.setdefault((row["what"], row["call"]), {"what": row["what"], "call": row["call"]})
            times = " / ".join(f"{row[name]:.3g}" for name in ("least", "median", "p90"))
            line[row["release"]] = f"{times}; {row['twice']} of {row['models']}"
    return list(found.values())


def _settings(rows: Sequence[Row]) -> list[Row]:
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        calls = row["calls_that_return"]
        found.setdefault(row["setting"], {"setting": row["setting"]})[row["release"]] = f"{calls} of 4"
    return list(found.values())


def _switches(rows: Sequence[Row]) -> list[Row]:
    names = [name for name in rows[0] if name != "release"]
    return [{"switch": name, **{row["release"]: row[name] for row in rows}} for name in names]


RELEASES = ("2.1.2", "2.6.0", "2.15.0")
EACH: Columns = {release: either(release) for release in RELEASES}
RESHAPED: Mapping[str, Callable[[Sequence[Row]], list[Row]]] = {
    "first-calls": _first_calls,
    "natural-hang": _settings,
    "switches": _switches,
}
SHAPES = {"calls": "after loading", "shape": "then, at another shape", "load_ms": "load: least / median / most"}
COLUMNS: Mapping[str, Columns] = {
    "tolerance": {
        "models": key("models"),
        "old": key("old"),
        "new": lambda row: f"{row['new']}, {row['what']}" if row["what"] else row["new"],
        "compared": key("compared"),
        "bit equal": key("bit_equal"),
        "largest difference over largest magnitude": number("largest"),
        "of": lambda row: f"`{row['of']}`" if row["largest"] else "",
    },
    "first-calls": {"": lambda row: SHAPES[row["what"]], "call": key("call"), **EACH},
    "slower-first-calls": {
        "steps": key("steps"),
        "slowest call in the old release": lambda row: f"{row['old_ms']:.3g} ms in {row['old']}",
        "in the new one, fused": lambda row: f"{row['new_ms']:.4g} ms in {row['new']}",
        "times as long": lambda row: f"{row['new_ms'] / row['old_ms']:.0f}",
    },
    "processes": {
        "release": key("release"),
        "pairs": key("pairs"),
        "standard error within a pair": percent("error_within"),
        "off by: median": percent("median"),
        "p90": percent("p90"),
        "most": percent("most"),
        "off for sure": key("surely_off"),
        "the same way in both halves": key("in_both_halves"),
    },
    "caches": {
        "release": key("release"),
        "weights": number("weights_mb", " MB"),
        "a call after another's block": number("others_ms", " ms"),
        "after the process's own": number("own_ms", " ms"),
        "less": lambda row: f"{100 * (1 - row['own_ms'] / row['others_ms']):.1f} %",
    },
    "allocator": {
        "release": key("release"),
        "thresholds": key("thresholds"),
        "processes": key("processes"),
        "with page faults in every call": key("faulting"),
        "faults, at most": key("most_faults"),
        "a call with them": lambda row: f"{row['faulting_ms']:g} ms" if row["faulting_ms"] else "",
        "without": lambda row: f"{row['others_ms']:g} ms" if row["others_ms"] else "",
    },
    "spin": {
        "release": key("release"),
        "median": number("median_ms", " ms"),
        "p90": number("p90_ms", " ms"),
        "most": number("most_ms", " ms"),
    },
    "gil": {
        "release": key("release"),
        "": key("what"),
        "took": number("ms", " ms"),
        "longest silence": percent("silent"),
    },
    "gil-waiters": {
        "processes that compute beside it": key("beside"),
        "wake-ups per second": number("wakes_per_s"),
        "of a CPU": percent("cpu_share"),
        "in the run queue": percent("queued_share"),
    },
    "fork": {
        "release": key("release"),
        "import torch": number("import_s", " s"),
        "fork and end": number("fork_ms", " ms"),
        "first module": number("first_module_ms", " ms"),
        "second": number("second_module_ms", " ms"),
        "first, after waking": number("first_module_after_waking_ms", " ms"),
        "operator in a child": key("operator_in_child"),
        "after one in the parent": key("operator_in_child_after_one_in_parent"),
    },
    "debuggers": {"release": key("release"), "tool": key("tool"), "one look": number("seconds", " s")},
    "switches": {
        "`torch._C.`...": lambda row: f"`{row['switch']}`",
        **EACH,
    },
    "natural-hang": {"setting": key("setting"), **EACH},
    "archive-members": {
        "release": key("release"),
        "another": key("other"),
        "models": key("models"),
        **{name: key(name) for name in ("serialization_id", ".debug_pkl", "code", "anything else")},
    },
    "bringing-up": {
        "model": lambda row: f"`{row['model']}`",
        **{name: key(name) for name in ("alone", "sequential", "concurrent", "staggered", "while_serving")},
    },
    "memory": {
        "release": key("release"),
        "server groups": key("groups"),
        "largest growth per cycle": lambda row: f"{row['most_bytes'] / 1e6:.2g} MB",
    },
    "environments": {"release": key("release"), "on disk": number("gigabytes", " GB")},
}
