"""What the probes of each cell took: alone whole, beside others each its own part, timed what was spent."""

from dataclasses import replace

from harness.domain.probe import Span
from harness.run.durations import durations_s
from tests.unit.builders.stages import group_run, known, measured, planned, probed, result
from tests.unit.builders.tensors import near


def span(phase: str, begin_s: float, end_s: float, model: str = "", *, finished: bool = True) -> Span:
    return Span(phase=phase, begin_ns=round(begin_s * 1e9), end_ns=round(end_s * 1e9), model=model, finished=finished)


def test_a_process_of_one_model_counts_whole_in_both_releases() -> None:
    facts = known(planned("a", "b"))
    probes = [
        probed(result("a"), side=side, key=side, spans=(span("import", 0, 2), span("load", 2, 5, "a")))
        for side in ("old", "new")
    ]
    assert durations_s(facts, probes) == {facts.plan.cell("a", "alone").id: near(10.0)}


def test_models_that_share_a_process_count_for_their_own_loads_and_calls() -> None:
    spans = (span("load", 0, 3, "a"), span("call", 3, 4, "a#1"), span("load", 0, 1, "b"), span("serve", 0, 9, "b"))
    probe = probed(result("a"), result("b"), key="g", spans=spans)
    facts = replace(known(planned("a", "b")), group_runs=(group_run([probe], members=("a", "b")),))
    cells = {name: facts.plan.cell(name, "concurrent").id for name in "ab"}
    assert durations_s(facts, [probe]) == {cells["a"]: near(4.0), cells["b"]: near(1.0)}
    batch = durations_s(replace(facts, group_runs=()), [probe])
    assert batch == {facts.plan.cell("a", "alone").id: near(4.0), facts.plan.cell("b", "alone").id: near(1.0)}


def test_a_latency_took_its_measuring_time_and_what_was_never_probed_has_none() -> None:
    facts = replace(known(planned("a", "b")), latency={"a": replace(measured(0.9, 1.1, "a"), spent_s=5.7)})
    assert durations_s(facts, []) == {facts.plan.cell("a", "latency").id: 5.7}


def test_planted_defects_and_phases_that_never_ended_count_for_nothing() -> None:
    facts = known(planned("a"))
    hung = probed(result("a"), spans=(span("load", 0, 1, "a"), span("call", 1, 99, "a", finished=False)))
    planted = probed(result("planted_hang"), key="p", spans=(span("load", 0, 7, "planted_hang"),))
    assert durations_s(facts, [hung, planted]) == {facts.plan.cell("a", "alone").id: near(1.0)}
