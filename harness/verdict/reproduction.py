"""What a reproducer is told to look for, and when it may believe what it sees."""

import re
from collections.abc import Mapping

from harness.core.diagnosis import NodeFault, Symptom
from harness.core.measurement import RatioEstimate
from harness.core.probe import Failure
from harness.core.text import error_line

WHAT = {
    Symptom.HANG: "hang",
    Symptom.CRASH: "crash",
    Symptom.ERROR: "error",
    Symptom.MEMORY: "memory",
    Symptom.VALUES: "values",
    Symptom.LATENCY: "latency",
}
ERRORS = (Symptom.ERROR, Symptom.CONVERSION)
# Chosen: with less between them, the thirds of the ratio that count as good and as bad come nearer to each other than
# two machines are.
LEAST_GAP = 1.5
CALL = "call"
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?")
ENDINGS = ("hang", "crash", "error")
# torch prints four digits after the point.
PRINTED = 1e-3


def looked_for(symptom: Symptom | None, failure: Failure | None = None) -> dict[str, str]:
    """Return what ``reproduce.py`` counts as bad; without a symptom or a known error: any deviation."""
    if symptom is None or (symptom in ERRORS and failure is None):
        return {"what": "any"}
    if symptom not in ERRORS or failure is None:
        return {"what": WHAT[symptom]}
    phase = failure.phase or CALL
    return {"what": "error", "phase": phase, "type": failure.type, "text": error_line(failure)}


def looked_for_in(fault: NodeFault) -> dict[str, str]:
    """Return the same of an operator: the error that was found, other answers; anything where the process ended."""
    if "ended" in fault.kinds:
        return looked_for(None)
    if "call_error" not in fault.kinds:
        return looked_for(Symptom.VALUES)
    kind, colon, message = fault.node.error.partition(": ")
    known = Failure(type=kind, message=message, phase=CALL) if colon and kind.isidentifier() else None
    return looked_for(Symptom.ERROR, known)


def telling_ratio(
    old: Mapping[str, float], new: Mapping[str, float], run: RatioEstimate | None
) -> dict[str, str | float] | None:
    """Return which reference, timed in the same process, tells a slow release from a fast one; None: none does.

    The call, and the call by the reference, are as much slower as the run measured, else the program shows another
    thing than the run did. ``run``: what the run says of the call, new over old.
    """
    best: dict[str, str | float] | None = None
    widest = LEAST_GAP
    if run is None or not old or not new or not _agrees(new[CALL] / old[CALL], run):
        return None
    for name in sorted(old.keys() & new.keys() - {CALL}):
        good, bad = old[CALL] / old[name], new[CALL] / new[name]
        if bad / good >= widest and _agrees(bad / good, run):
            widest = bad / good
            best = {"reference": name, "good": float(f"{good:.3g}"), "bad": float(f"{bad:.3g}")}
    return best


def _agrees(gap: float, run: RatioEstimate) -> bool:
    """Whether a gap is that of the run: in its interval, or what is as slow as the other is nearer to bad than to good.

    That is by factors, as the program rates what it measures. A call of microseconds has another share of Python's own
    work in the program than in the benchmark, so that the two may be apart by much where both are large.
    """
    is_near = run.ratio ** (1 / 2) <= gap <= run.ratio**2
    return run.low > 1 and (is_near or run.low <= gap <= run.high)


def confirms(symptom: Mapping[str, str], seen: Mapping[str, str]) -> bool:
    """Whether a program without a watchdog of its own has shown the symptom.

    ``seen``: ``how`` it ended ("hang", "crash", "error", "end") and what it ``printed``; ``old_how`` and ``old``: the
    same of the old release, where that was asked.
    """
    what = symptom["what"]
    if what == "error":
        words = symptom["text"].partition("/")[0].strip()  # a path in it is another one elsewhere
        printed = seen["said"]
        return seen["how"] == "error" and bool(words) and words in printed and symptom["type"] in printed
    differ = seen["how"] == "end" and _numbers_differ(seen.get("old", ""), seen["said"])
    if what == "any":
        return seen.get("old_how") == "end" and (differ or seen["how"] in ENDINGS)
    if what == "values":
        return differ
    return what in ("hang", "crash") and seen["how"] == what


def _numbers_differ(old: str, new: str) -> bool:
    """Whether printed numbers are others beyond what rounding to the digits of print explains."""
    before, after = ([float(number) for number in NUMBER.findall(text)] for text in (old, new))
    if not before or len(before) != len(after):
        return False
    largest = max(map(abs, before))
    return max(abs(this - other) for this, other in zip(before, after, strict=True)) > PRINTED * largest
