"""Which processes the report keeps a timeline of, and which of their phases."""

from dataclasses import replace

from harness.core.hang import Evidence, HangKind, HangProof
from harness.core.outcome import Outcome
from harness.core.probe import ModelResult, ProbeResult, Span
from harness.probing.facts import Decided, GroupRun
from harness.apps.upgrade.report.timelines import MOST_SPANS, timelines
from tests.unit.builders.stages import decided, planned


def probe(outcome: Outcome = Outcome.COMPLETED, *spans: Span, side: str = "new") -> ProbeResult:
    return ProbeResult(
        key="k",
        side=side,
        outcome=outcome,
        directory="probes/k",
        models=(ModelResult(model="net", outcome=outcome),),
        spans=spans or (span(5, 9), span(10, 11)),
    )


def span(begin_ns: int, end_ns: int, model: str = "net", *, finished: bool = True) -> Span:
    return Span(phase="load", begin_ns=begin_ns, end_ns=end_ns, model=model, finished=finished)


def facts(*runs: GroupRun, **alone: ProbeResult) -> Decided:
    return decided(plan=planned("net"), group_runs=runs, alone=alone)


def group(*rounds: ProbeResult, side: str = "new", scenario: str = "concurrent") -> GroupRun:
    return GroupRun(
        scenario=scenario, group="g", side=side, members=("net",), rounds=tuple((found,) for found in rounds)
    )


def test_the_first_round_that_failed_is_reported_else_the_first() -> None:
    told = timelines(facts(group(probe(), probe(Outcome.HANG), probe(Outcome.CRASH)), group(probe(), side="old")))
    assert [(item.side, item.round, item.outcome) for item in told] == [
        ("old", 0, Outcome.COMPLETED),
        ("new", 1, Outcome.HANG),
    ]


def test_a_timeline_starts_with_its_first_phase_of_a_model() -> None:
    (told,) = timelines(facts(group(probe(Outcome.COMPLETED, span(1, 2, model=""), span(30, 40), span(10, 20)))))
    assert [(item.begin_ns, item.end_ns) for item in told.spans] == [(0, 10), (20, 30)]


def test_the_kind_of_a_hang_is_that_of_its_proof() -> None:
    proof = HangProof(kind=HangKind.BLOCKED, silent_s=3.0, window_s=1.0)
    stuck = replace(probe(Outcome.HANG), evidence=Evidence(proof=proof))
    (told,) = timelines(facts(group(stuck)))
    assert told.hang is HangKind.BLOCKED


def test_short_phases_are_left_out_before_long_and_unfinished_ones() -> None:
    short = [span(at, at + 1) for at in range(MOST_SPANS)]
    (told,) = timelines(facts(group(probe(Outcome.HANG, *short, span(0, 900), span(950, 950, finished=False)))))
    assert told.left_out == 2 and len(told.spans) == MOST_SPANS
    assert {(item.begin_ns, item.end_ns) for item in told.spans} >= {(0, 900), (950, 950)}


def test_models_that_ended_their_process_alone_come_last() -> None:
    told = timelines(facts(group(probe()), fine=probe(), stuck=probe(Outcome.HANG), broken=probe(Outcome.CRASH)))
    assert [(item.scenario, item.group) for item in told] == [
        ("concurrent", "g"),
        ("alone", "broken"),
        ("alone", "stuck"),
    ]
