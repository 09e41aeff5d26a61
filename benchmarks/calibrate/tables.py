"""Tables over the seeded faults of numbers: who saw what, by kind and by size. Pure."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.calibrate.corpus import Case
from harness.checks.startup.rates import interval
from harness.core.models import ModelDeclaration

T = TypeVar("T")
K = TypeVar("K")
FAR = 10.0  # tolerances: from here on a drift must be seen
OBJECTION = "AssertionError"
DRIFTS = ("seeded_drift", "seeded_late")
# ``tolerances`` is 0 where rounding swallowed the drift, and null where any difference is beyond: integers are exact.
COLUMNS = ("base", "where", "size", "since", "seed", "tolerances", "found", "assert_close")
DECADES = ("none", "up to 0.1", "0.1 to 1", "1 to 10", "10 to 100", "above 100", "exact")


def report(cases: Sequence[Case], rival: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """Return the tables over ``cases``; ``rival`` is the answer of ``programs/assert_close.py``."""
    said: Mapping[str, str] = rival["said"]
    unprobed = [case.declaration.name for case in cases if case.comparison is None]
    drifts = [case for case in cases if case.declaration.factory in DRIFTS and case.comparison is not None]
    came_out = [case for case in drifts if tolerances(case) != 0]
    far = [case for case in came_out if is_far(case)]
    within = [case for case in came_out if (tolerances(case) or math.inf) <= 1.0]
    faults = [case for case in cases if not case.is_healthy and case.declaration.factory not in DRIFTS]
    limits = [case for case in faults if "limit" in case.declaration.tags]
    faults = [case for case in faults if case not in limits]
    healthy = [case for case in cases if case.is_healthy]
    missed = [case.declaration.name for case in (*far, *faults) if not case.flagged]
    false_alarms = [case.declaration.name for case in healthy if not case.left_alone]
    return {
        "assert_close": {
            "far_drifts": share(far, lambda case: objects(case, said)),
            "faults": share(faults, lambda case: objects(case, said)),
            "healthy_flagged": share(healthy, lambda case: objects(case, said)),
            "missed": short(case for case in faults if not objects(case, said)),
            "flagged": short(case for case in healthy if objects(case, said)),
            "cannot_compare": [
                name for name, words in said.items() if words and not words.startswith("AssertionError")
            ],
            "torch": rival["torch"],
        },
        "detectors": {
            kind: detector_row(group, said) for kind, group in grouped((*far, *faults), expected_kind).items()
        },
        "drifts": {
            "columns": list(COLUMNS),
            "rows": [drift_row(case, said) for case in drifts],
            "by_size": by_size(drifts, said),
            "within_tolerance_flagged": share(within, lambda case: case.flagged),
        },
        "far_drifts": {"tolerances": FAR, **share(far, lambda case: case.flagged), "missed": short(far, missed)},
        "faults": {name: kind_row(group, said) for name, group in grouped(faults, kind_of).items()},
        "healthy": {name: healthy_row(group, said) for name, group in grouped(healthy, kind_of).items()},
        "limits": {name: healthy_row(group, said) for name, group in grouped(limits, kind_of).items()},
        "measured": about,
        "summary": {
            "false_alarms": len(false_alarms),
            "false_alarm_names": false_alarms[:20],
            "far_drifts": len(far),
            "faults": len(faults),
            "healthy": len(healthy),
            "missed": len(missed),
            "missed_names": missed[:20],
            "rounded_away": len(drifts) - len(came_out),
            "unprobed": unprobed,
        },
    }


def tolerances(case: Case) -> float | None:
    """Return the largest |new - old| in tolerances of its tensor; None where any difference is beyond (integers)."""
    assert case.comparison is not None
    tensors = [tensor for call in case.comparison.calls for tensor in call.tensors]
    if any(tensor.max_abs and not tensor.tolerance_abs for tensor in tensors):
        return None
    return max((tensor.max_abs / tensor.tolerance_abs for tensor in tensors if tensor.tolerance_abs), default=0.0)


def objects(case: Case, said: Mapping[str, str]) -> bool:
    """Whether ``assert_close`` says that the outputs differ; what it cannot compare it has not found."""
    return said.get(case.declaration.name, "").startswith(OBJECTION)


def is_far(case: Case) -> bool:
    """Whether a drift is so large that it must be seen."""
    size = tolerances(case)
    return size is None or size > FAR


def share(items: Sequence[T], is_one: Callable[[T], bool]) -> dict[str, Any]:
    """Return how many of ``items`` are one, and between which rates that puts the true one."""
    count = sum(map(is_one, items))
    low, high = interval(count, len(items))
    return {"n": len(items), "count": count, "rate_95": [round(low, 4), round(high, 4)]}


def by_size(drifts: Iterable[Case], said: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return per place and decade of the drift in tolerances: how many came out so large, and who saw them."""
    groups = grouped(drifts, lambda case: (place_of(case), decade(case)))
    order = {name: index for index, name in enumerate(DECADES)}
    return [
        {
            "where": where,
            "tolerances": name,
            "planted": len(group),
            "found": sum(case.flagged for case in group),
            "reported": ", ".join(sorted({kind for case in group for kind in case.result.reported})),
            "assert_close": sum(objects(case, said) for case in group),
        }
        for (where, name), group in sorted(groups.items(), key=lambda item: (item[0][0], order[item[0][1]]))
    ]


def place_of(case: Case) -> str:
    """Return where a drift is planted."""
    return "late" if case.declaration.factory == "seeded_late" else str(case.arguments["where"])


def decade(case: Case) -> str:
    """Return the name of the class of sizes that a drift is in."""
    size = tolerances(case)
    if size is None:
        return "exact"
    edges = (0.0, 0.1, 1.0, 10.0, 100.0)
    return DECADES[sum(size > edge for edge in edges)]


def drift_row(case: Case, said: Mapping[str, str]) -> list[Any]:
    """Return one drift in the order of ``COLUMNS``."""
    given, size = case.arguments, tolerances(case)
    return [
        given.get("base", "float32"),
        given["where"],
        given["size"],
        given.get("since", 0),
        given["seed"],
        None if size is None else float(f"{size:.3g}"),
        int(case.flagged),
        int(objects(case, said)),
    ]


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by key, in the order of the first of each."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def kind_of(case: Case) -> str:
    """Return what is planted, whatever the seed."""
    return group_name(case.declaration)


def expected_kind(case: Case) -> str:
    """Return the kind of finding that a fault is planted for."""
    return case.result.expected


def group_name(declaration: ModelDeclaration) -> str:
    """Return what a model of the corpus is, without its seed, e.g. ``nan nan_to_zero``."""
    rest = (str(value) for name, value in declaration.arguments if name != "seed")
    return " ".join((declaration.factory.removeprefix("seeded_"), *rest))


def kind_row(group: Sequence[Case], said: Mapping[str, str]) -> dict[str, Any]:
    """Return who saw one kind of fault, and as what."""
    return {
        "assert_close": sum(objects(case, said) for case in group),
        "as_expected": sum(case.result.caught for case in group),
        "expected": group[0].result.expected,
        "found": sum(case.flagged for case in group),
        "planted": len(group),
        "reported": ", ".join(dict.fromkeys(kind for case in group for kind in case.result.reported)),
    }


def detector_row(group: Sequence[Case], said: Mapping[str, str]) -> dict[str, Any]:
    """Return how many faults of one kind were seen at all, and as that kind."""
    return {
        "as_expected": sum(case.result.caught for case in group),
        "assert_close": sum(objects(case, said) for case in group),
        **share(group, lambda case: case.flagged),
    }


def healthy_row(group: Sequence[Case], said: Mapping[str, str]) -> dict[str, Any]:
    """Return who flagged one kind of healthy model, and how far its answers were apart."""
    sizes = [tolerances(case) for case in group if case.comparison is not None]
    return {
        "assert_close": sum(objects(case, said) for case in group),
        "flagged": sum(not case.left_alone for case in group),
        "n": len(group),
        "tolerances": float(f"{max((size for size in sizes if size is not None), default=0.0):.2g}"),
    }


def short(cases: Iterable[Case], among: Sequence[str] | None = None) -> list[str]:
    """Return the names of ``cases``, at most twenty; only those ``among``, where that is given."""
    names = [case.declaration.name for case in cases]
    return [name for name in names if among is None or name in among][:20]
