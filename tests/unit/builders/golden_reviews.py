"""Diffs and states of golden records, as a reader meets them, and with hostile texts everywhere."""

import datetime as dt
from dataclasses import replace

from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics, TreeDifference
from harness.core.golden import (
    GoldenStatus,
    LeftOver,
    RecordChange,
    RecordDiff,
    RecordFacts,
    RecordProblem,
    Review,
    Trust,
)
from tests.unit.builders.reports import HOSTILE_NAMES

ANN = "Ann <ann@example.com>"
TRUST = Trust(
    model="ranker",
    record="0a" * 32,
    release="2.1.2+cu121",
    reason="baseline of production",
    accepted=dt.date(2026, 11, 21),
    by=ANN,
    run="2026-11-20T10-00-00-2.1.2-to-2.6.0",
)
OLD = RecordFacts(
    record=TRUST.record, release="2.1.2+cu121", run=TRUST.run, device="cpu", calls=4, tensors=8, trust=TRUST
)
NEW = RecordFacts(
    record="0b" * 32, release="2.6.0+cu124", run="2026-11-21T10-00-00-2.6.0", device="cpu", calls=4, tensors=8
)
SCORES = TensorMetrics(
    path="output['scores']",
    dtype="float32",
    elements=4096,
    bit_equal=False,
    max_abs=0.02,
    max_rel=0.5,
    max_ulp=40_000,
    rel_l2=0.003,
    cosine=0.99991,
    scale=10.0,
    tolerance_abs=1e-4,
    mismatched=250,
    worst_index=(3, 7),
    worst_expected="1.5",
    worst_actual="1.52",
    error_histogram=(3000, 0, 0, 100, 300, 200, 246, 0, 250, 0, 0, 0),
)
IDS = TensorMetrics(
    path="output['ids']", dtype="int64", elements=16, bit_equal=True, rel_l2=0.0, scale=9.0, tolerance_abs=0.0
)
NAN = replace(SCORES, path="output['nan']", nan_mismatches=2)


def call(number: int, *tensors: TensorMetrics, input_set: str = "example") -> CallComparison:
    """Return one call."""
    return CallComparison(input_set=input_set, call=number, tensors=tensors)


def compared(*calls: CallComparison, lost: tuple[tuple[str, int], ...] = ()) -> OutputComparison:
    """Return a comparison of two records."""
    return OutputComparison(model="ranker", scenario="golden", calls=calls, missing_calls=lost)


BEYOND = RecordDiff(
    model="ranker",
    change=RecordChange.BEYOND,
    words="2 of 4 tensors differ, 2 beyond tolerance: off by up to 0.002 of the largest value",
    old=OLD,
    new=NEW,
    facts={"torch": ("2.1.2+cu121", "2.6.0+cu124"), "profile": ("unknown", "fused (1/1 threads, cpu_fusion=True)")},
    comparison=compared(call(0, SCORES, IDS), call(1, replace(SCORES, max_abs=0.01), IDS)),
)
STRUCTURE = RecordDiff(
    model="detector",
    change=RecordChange.STRUCTURE,
    words="output[1]: shape (3,) -> shape (4,); 1 call gone",
    old=OLD,
    new=NEW,
    comparison=compared(
        CallComparison(
            input_set="example",
            call=0,
            tree=(TreeDifference(path="output[1]", kind="structure", expected="shape (3,)", actual="shape (4,)"),),
            tensors=(NAN,),
        ),
        lost=(("batch_7", 1),),
    ),
)
FRESH = RecordDiff(model="fresh", change=RecordChange.NEW, words="8 tensors in 4 calls, by torch 2.6.0+cu124", new=NEW)
LOST = RecordDiff(model="lost", change=RecordChange.GONE, words="8 tensors in 4 calls, by torch 2.1.2+cu121", old=OLD)
REVIEW = Review(old="accepted", new="proposed", diffs=(STRUCTURE, BEYOND, FRESH, LOST))

STATUS = GoldenStatus(
    folder="golden",
    accepted=(TRUST, replace(TRUST, model="tower"), replace(TRUST, model="z", reason="another", by="")),
    waiting=(BEYOND, FRESH),
    left_over=2,
)
BROKEN = replace(
    STATUS,
    problems=(
        RecordProblem(model="z", message="golden/records/z/0123456789ab/values was changed", hint="git checkout it"),
    ),
)
LEFT = (
    LeftOver(path="golden/records/gone", why="an accepted record, and no model is called so", size_bytes=70_000),
    LeftOver(path="golden/proposed/x", why="no whole proposal", size_bytes=12),
)


def hostile_review() -> Review:
    """Return a diff with a hostile text in every place that comes from records, models or people."""
    diffs = []
    for name in HOSTILE_NAMES:
        side = replace(OLD, release=name, run=name, record=name, trust=replace(TRUST, by=name, reason=name))
        tensor = replace(SCORES, path=f"output['{name}']", worst_expected=name, worst_actual=name)
        tree = TreeDifference(path=name, kind="structure", expected=name, actual=name)
        comparison = compared(
            CallComparison(input_set=name, call=0, tree=(tree,), tensors=(tensor,)), lost=((name, 1),)
        )
        diffs.append(
            RecordDiff(
                model=name,
                change=RecordChange.BEYOND,
                words=name,
                old=side,
                new=side,
                facts={"artifact": (name, name)},
                comparison=comparison,
            )
        )
    return Review(old=HOSTILE_NAMES[0], new=HOSTILE_NAMES[1], diffs=tuple(diffs))


def hostile_status() -> GoldenStatus:
    """Return a state with hostile texts."""
    names = HOSTILE_NAMES
    return GoldenStatus(
        folder=names[2],
        accepted=tuple(replace(TRUST, model=name, by=name, reason=name, release=name) for name in names),
        waiting=hostile_review().diffs,
        problems=tuple(RecordProblem(model=name, message=name, hint=name) for name in names),
    )
