"""The parts of the page on seeded faults of numbers and on failures, and what all parts are made of. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from benchmarks.calibrate.tallies import Count

Table = Sequence[Sequence[str]]


def table(headers: Sequence[str], rows: Table) -> str:
    """Return a Markdown table without padding: a changed number changes one line."""
    return tabulate(rows, headers=headers, tablefmt="pipe", disable_numparse=True, stralign=None)


def numbers_part(numbers: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paragraphs on ``numbers.json``: what the gate and ``assert_close`` saw."""
    seeded = numbers["seeded"]
    yield "## Numbers"
    yield (
        "Defects in values, structure and placement, planted in the newer of two releases. Beside the gate: "
        "`torch.testing.assert_close` with its defaults on the same outputs."
    )
    rival, healthy = seeded["assert_close"], seeded["summary"]
    rows = [
        [
            "this gate",
            _count(seeded["far_drifts"]).words,
            Count(sum(row["found"] for row in seeded["faults"].values()), _planted(seeded["faults"])).words,
            Count(healthy["false_alarms"], healthy["healthy"]).words,
        ],
        ["`assert_close`", *(_count(rival[name]).words for name in ("far_drifts", "faults", "healthy_flagged"))],
    ]
    yield table(["", "drifts above ten tolerances: found", "other faults: found", "healthy: flagged"], rows)
    yield "Drifts by size, found of planted:"
    drifts = [
        [row["where"], row["tolerances"], f"{row['found']} of {row['planted']}", f"{row['assert_close']}"]
        for row in seeded["drifts"]["by_size"]
    ]
    yield table(["where", "tolerances", "this gate", "`assert_close`"], drifts)
    yield "All faults by the kind that was to be told:"
    detectors = [
        [f"`{kind}`", _count(row).words, str(row["as_expected"]), str(row["assert_close"])]
        for kind, row in seeded["detectors"].items()
    ]
    yield table(["kind", "found", "as that kind", "by `assert_close`"], detectors)
    yield "Healthy models that compute otherwise, or hold unusual values; flagged:"
    yield table(
        ["", "models", "most tolerances apart", "by this gate", "by `assert_close`"], _healthy(seeded["healthy"])
    )
    if seeded.get("limits"):
        yield "Known limit, cancellation: what is left is small beside what was added, and the tolerance scales with it."
        yield table(
            ["", "models", "most tolerances apart", "by this gate", "by `assert_close`"], _healthy(seeded["limits"])
        )


def _healthy(groups: Mapping[str, Any]) -> list[list[str]]:
    """Return the groups by the first word of their names."""
    families: dict[str, list[Any]] = {}
    for name, row in groups.items():
        families.setdefault(name.partition(" ")[0], []).append(row)
    return [
        [
            name.replace("_", " "),
            str(sum(row["n"] for row in rows)),
            f"{max(row['tolerances'] for row in rows):g}",
            str(sum(row["flagged"] for row in rows)),
            str(sum(row["assert_close"] for row in rows)),
        ]
        for name, rows in families.items()
    ]


def _planted(faults: Mapping[str, Any]) -> int:
    return sum(row["planted"] for row in faults.values())


def _count(found: Mapping[str, Any]) -> Count:
    return Count(found["count"], found["n"])


def failures_part(failures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paragraphs on ``failures.json``."""
    yield "## Failures"
    yield "Errors, crashes and hangs, planted in the newer release:"
    rows = [[f"`{kind}`", _count(found).words] for kind, found in failures["detectors"].items()]
    yield table(["kind", "reported as that"], rows)
    rows = []
    for name, kinds in _by_family(failures["faults"]).items():
        proofs = ", ".join(sorted({row["proof"] for row in kinds} - {""}))
        as_expected, trials = (sum(row[key] for row in kinds) for key in ("as_expected", "n"))
        seconds = max(row["seconds_max"] for row in kinds)
        rows.append([name, f"{as_expected} of {trials}", proofs, f"{seconds}"])
    yield table(["planted", "as expected", "proof", "seconds, at most"], rows)
    summary = failures["summary"]
    yield f"Healthy, some of them slow: {Count(summary['false_alarms'], summary['healthy']).words} flagged."


def _by_family(faults: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the faults by name, whatever the call that they wait for."""
    families: dict[str, list[Any]] = {}
    for name, row in faults.items():
        words = [word for word in name.split(" ") if not word.isdigit()]
        families.setdefault(" ".join(words).replace("_", " "), []).append(row)
    return families
