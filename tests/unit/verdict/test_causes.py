"""Findings grouped by cause: what has one is told once, and what only looks alike is not thrown together."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness.report.document import Fact
from harness.report.documents.causes import cause_part

from harness.checks.outputs.findings import output_findings
from harness.verdict.counting import exceeded
from harness.verdict.causes import KINDS, cause_named, causes_of, with_causes
from harness.verdict.commands import is_red, more_command
from harness.core.measurement import CommonSlowdown, Quantity
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.prediction import Weight
from harness.core.report import Explained, ModelReport, RunReport
from harness.core.verdict import CellVerdict, Finding, Fix, Ruled, Standstill
from harness.core.errors import SelectionError
from harness.verdict.latency import judge_latency, quantity_findings
from harness.report.ci.annotations import render_annotations
from harness.report.ci.comment import render_comment
from harness.report.ci.sarif import render_run_sarif
from harness.report.excess import by_excess
from harness.report.words.to_upgrade import steps
from tests.unit.builders.rendered import render_markdown
from tests.unit.builders.rendered import render_html
from tests.unit.builders.rendered import render_console
from harness.checks.startup.slow_start import slow_start
from tests.unit.builders.planted_causes import (
    DEADLOCK,
    SPIN,
    mitigated,
    hang,
    of_forty_causes,
    of_three_causes,
    raised,
    red,
    refused,
    run_of,
    slower,
    undecided,
)
from tests.unit.builders.reports import REPORTS, healthy, latency, predicted, ratio, static, static_finding, verdict
from tests.unit.builders.verdicts import call, compared, equal, tensor


def ids(report: RunReport) -> dict[str, tuple[str, ...]]:
    return {cause.id: cause.models for cause in report.causes}


@pytest.mark.parametrize("report", [*(make() for make in REPORTS.values()), of_three_causes(), of_forty_causes()])
def test_every_red_cell_belongs_to_one_cause(report: RunReport) -> None:
    causes = causes_of(report)
    told = [cell for cause in causes if cause.status is not Status.PASS for cell in cause.cells]
    over = {cell for cause in causes if cause.status is Status.PASS for cell in cause.cells}
    assert over == {item.cell.cell for item in exceeded(report.judgement.rows)}
    assert sorted(told) == sorted(cell.cell for cell in report.judgement.cells if is_red(cell))
    assert len(set(told)) == len(told)
    assert {cause.kind for cause in causes} <= set(KINDS)
    assert all(re.fullmatch(r"[\w.:+-]+", cause.id, re.ASCII) for cause in causes)
    assert all(len(cause.title) <= 80 for cause in causes)


def test_a_hundred_red_cells_of_three_causes_are_three() -> None:
    report = of_three_causes()
    assert [(cause.kind, len(cause.models), len(cause.cells)) for cause in report.causes] == [
        ("operator", 30, 30),
        ("hang", 20, 40),
        ("slowdown", 30, 30),
    ]
    assert [cause.id for cause in report.causes][0] == "operator-aten::_pad_packed_sequence_v0"


@pytest.mark.parametrize("report", [*(make() for make in REPORTS.values()), of_three_causes(), of_forty_causes()])
def test_what_a_cause_is_and_what_belongs_to_it_does_not_change_with_wording(report: RunReport) -> None:
    def reworded(found: Finding) -> Finding:
        story = tuple((label, f"otherwise: {text}"[::-1]) for label, text in found.story)
        place = found.standstill and replace(found.standstill, title=found.standstill.title[::-1])
        return replace(found, message=f"in other words: {found.message}"[::-1], story=story, standstill=place)

    rows = tuple(
        replace(row, cells=tuple(replace(cell, findings=tuple(map(reworded, cell.findings))) for cell in row.cells))
        for row in report.judgement.rows
    )
    told = tuple(
        replace(one, answer=one.answer[::-1], lines=tuple((label, text[::-1]) for label, text in one.lines))
        for one in report.explained
    )
    other = replace(report, judgement=replace(report.judgement, rows=rows), explained=told)
    assert [(cause.id, cause.cells) for cause in causes_of(other)] == [
        (cause.id, cause.cells) for cause in causes_of(report)
    ]


def test_a_missing_operator_and_a_schema_that_changed_are_told_by_the_operator() -> None:
    error = "RuntimeError: Arguments for call are not valid: aten::foo(Tensor x)"
    report = run_of([raised("a", "load_error", error), refused("b", "aten::bar")[0]])
    assert ids(report) == {"operator-aten::foo": ("a",), "operator-aten::bar": ("b",)}


def test_two_operators_that_are_missing_are_two_causes() -> None:
    pairs = [refused("a", "aten::one"), refused("b", "aten::two"), refused("c", "aten::one")]
    report = run_of([cell for cell, _ in pairs], [facts for _, facts in pairs])
    assert ids(report) == {"operator-aten::one": ("a", "c"), "operator-aten::two": ("b",)}


def test_hangs_at_one_place_are_one_cause_and_another_place_is_another() -> None:
    report = run_of([hang("a", DEADLOCK), hang("b", DEADLOCK.replace("1 and 2", "3 and 7")), hang("c", SPIN)])
    assert sorted(ids(report).values()) == [("a", "b"), ("c",)]
    assert all(cause.id.startswith("hang-") and cause.kind == "hang" for cause in report.causes)


def test_hangs_whose_stacks_nobody_saw_share_nothing() -> None:
    cells = [red(name, "hang", "hangs in load in torch 2.6.0", "concurrent") for name in ("a", "b")]
    assert ids(run_of(cells)) == {"hang-a": ("a",), "hang-b": ("b",)}


def test_a_hang_that_is_understood_is_grouped_by_what_it_means() -> None:
    place = Standstill(reading="fuser-runs-away", title="inside the fuser")
    cells = [
        red("a", "hang", "hangs", "concurrent", standstill=place),
        red("b", "hang", "hangs", "concurrent", standstill=replace(place, title="in the fuser", stacks=(("poll",),))),
    ]
    (cause,) = run_of(cells).causes
    assert (cause.id, cause.title, cause.models) == ("hang-fuser-runs-away", "hangs: inside the fuser", ("a", "b"))


def test_the_same_model_in_five_scenarios_is_one_row_of_its_cause() -> None:
    names = ("concurrent", "while_serving", "reinit", "sequential", "alone")
    frames = (SPIN, SPIN, "", SPIN, SPIN)
    (cause,) = run_of([hang("a", told, name) for name, told in zip(names, frames, strict=True)]).causes
    assert cause.models == ("a",)
    assert len(cause.cells) == 5
    assert cause.cells[0] == "a/alone"


def test_a_model_that_hangs_at_two_places_has_two_causes() -> None:
    report = run_of([hang("a", DEADLOCK), hang("a", SPIN, "while_serving"), hang("b", SPIN, "while_serving")])
    assert sorted(cause.cells for cause in report.causes) == [
        ("a/concurrent",),
        ("a/while_serving", "b/while_serving"),
    ]


INTERPRETED = " < jit::InterpreterStateImpl::runTemplate < jit::InterpreterState::run < jit::GraphFunction::run"


def busy(model: str, frames: str, loops: Mapping[str, str]) -> tuple[CellVerdict, ModelReport]:
    """Return a model that computes without end in these frames, and whose code has these loops."""
    place = Standstill(is_busy=True, stacks=(tuple(frames.split(" < ")),))
    facts = replace(healthy(model), static=replace(static(predicted(), model=model), loops=loops))
    return red(model, "hang", "hangs in call 0 of example in torch 2.6.0", standstill=place), facts


def busy_causes(*models: tuple[CellVerdict, ModelReport]) -> list[tuple[str, tuple[str, ...]]]:
    report = run_of([cell for cell, _ in models], [facts for _, facts in models])
    return sorted((cause.title, cause.models) for cause in report.causes)


def test_busy_loops_of_the_same_code_are_one_cause_whatever_they_were_at() -> None:
    moments = ("at::native::add < at::_ops::add_Tensor::call", "at::_ops::tanh::call", "c10::TensorImpl::~TensorImpl")
    planted = [busy(f"m{n}", at + INTERPRETED, {"__torch__.m.Waits.forward": "1f"}) for n, at in enumerate(moments)]
    planted.append(busy("m3", INTERPRETED.removeprefix(" < "), {"__torch__.n.AlsoWaits.forward": "1f"}))
    cut_off = "mkl_vml_kernel_sTanh_EXHAynn < call  serving.py:192 < main  bootstrap.py:9"
    planted.append(busy("m4", cut_off, {"__torch__.m.Waits.forward": "1f"}))
    assert busy_causes(*planted) == [("hangs in a loop of Waits.forward", ("m0", "m1", "m2", "m3", "m4"))]


def test_busy_loops_of_other_code_are_causes_of_their_own() -> None:
    at = "at::_ops::tanh::call" + INTERPRETED
    twins = (busy("a", at, {"__torch__.m.Waits.forward": "1f"}), busy("b", at, {"__torch__.m.Polls.forward": "2e"}))
    assert busy_causes(*twins) == [
        ("hangs in a loop of Polls.forward", ("b",)),
        ("hangs in a loop of Waits.forward", ("a",)),
    ]


def test_without_a_loop_of_its_own_the_operator_that_does_not_end_is_the_cause() -> None:
    ends = "at::_ops::linalg_eig::call" + INTERPRETED
    models = (busy("a", f"dlarfb_ < dgeev_ < {ends}", {}), busy("b", f"dgemv_ < dgeev_ < {ends}", {}))
    other = busy("c", f"dlarfb_ < dgeev_ < at::_ops::linalg_svd::call{INTERPRETED}", {})
    passes = busy("d", "jit::EraseNumberTypes < jit::GraphExecutor::run", {"__torch__.m.Waits.forward": "1f"})
    assert busy_causes(*models, other, passes) == [
        ("hangs in at::_ops::linalg_eig::call", ("a", "b")),
        ("hangs in at::_ops::linalg_svd::call", ("c",)),
        ("hangs in jit::EraseNumberTypes < jit::GraphExecutor::run", ("d",)),
    ]


@pytest.mark.parametrize("text", ["argument ", "found: ", "a", "a.", "a::b ", "valid a", "Error"])
def test_a_long_text_of_an_error_takes_no_longer_than_its_length(text: str) -> None:
    """With steps that multiply this would take hours."""
    told = f"RuntimeError: {text * (200_000 // len(text))}"
    (cause,) = run_of([raised("a", "load_error", told)]).causes
    assert cause.models == ("a",) and len(cause.title) <= 80
    (cause,) = run_of([raised("a", "call_error", text * (200_000 // len(text)))]).causes
    assert cause.models == ("a",)


def test_an_operator_that_refuses_its_arguments_is_the_cause() -> None:
    told = "RuntimeError: Arguments for call are not valid.\nThe following variants are available:\n\n  aten::to(Tensor"
    (cause,) = run_of([raised("a", "load_error", told)]).causes
    assert (cause.id, cause.title) == ("operator-aten::to", "aten::to: torch 2.6.0 refuses the arguments")


def test_equal_errors_with_other_numbers_are_one_cause_and_other_texts_another() -> None:
    report = run_of(
        [
            raised("a", "call_error", "RuntimeError: shape [2, 3] is not 17 of a"),
            raised("b", "call_error", "RuntimeError: shape [4, 5, 6] is not 1.5 of b"),
            raised("c", "call_error", "RuntimeError: dtype is not 17 of c"),
        ]
    )
    assert sorted(ids(report).values()) == [("a", "b"), ("c",)]


def test_the_same_error_alone_and_while_a_server_starts_is_one_cause() -> None:
    told = "RuntimeError: no kernel for Long"
    cells = [raised("a", "call_error", told), raised("b", "concurrent_error", told, "reinit")]
    assert list(ids(run_of(cells)).values()) == [("a", "b")]


def test_values_of_two_models_that_nothing_explains_are_two_causes() -> None:
    report = run_of([red(name, "values", "output: off by 0.1 of its largest value") for name in ("a", "b")])
    assert ids(report) == {"values-a": ("a",), "values-b": ("b",)}


def test_a_known_change_of_an_operator_is_reported_only_where_it_can_show_so() -> None:
    changed = static_finding("aten::softshrink", "keeps NaN", "semantics_changed", Weight.WARNING, "https://x.org/1")
    facts = [replace(healthy(name), static=static(predicted(changed), model=name)) for name in ("a", "b", "c")]
    cells = [
        red("a", "nan_placement", "NaN or Inf where a number was, in 3 of 4 elements"),
        red("b", "nan_placement", "NaN or Inf where a number was, in 9 of 90 elements"),
        red("c", "values", "output: off by 0.1 of its largest value"),
    ]
    report = run_of(cells, facts)
    assert ids(report) == {"semantics-aten::softshrink": ("a", "b"), "values-c": ("c",)}
    assert report.causes[0].evidence[:2] == (
        ("static", "keeps NaN; at code/__torch__/net.py:12"),
        ("source", "https://x.org/1"),
    )


@pytest.mark.parametrize(
    ("detail", "operator"),
    [
        ({"nan_appeared": "3", "nan_gone": "0"}, "aten::softshrink"),
        ({"nan_appeared": "0", "nan_gone": "3"}, "aten::scaled_dot_product_attention"),
    ],
)
def test_of_two_known_changes_the_one_that_moves_nan_that_way_is_named(detail: dict[str, str], operator: str) -> None:
    changed = [
        static_finding(f"aten::{name}", "NaN", "semantics_changed", Weight.WARNING, "https://x.org/1")
        for name in ("scaled_dot_product_attention", "softshrink")
    ]
    facts = [replace(healthy("a"), static=static(predicted(*changed), model="a"))]
    cell = red("a", "nan_placement", "output: NaN")
    cell = replace(cell, findings=tuple(replace(item, detail=detail) for item in cell.findings))
    assert ids(run_of([cell], facts)) == {f"semantics-{operator}": ("a",)}
    only = [
        replace(facts[0], static=static(predicted(*(one for one in changed if one.subject != operator)), model="a"))
    ]
    assert ids(run_of([cell], only)) == {"nan-placement-a": ("a",)}


def test_an_operator_that_searches_have_named_is_the_cause_of_all_that_it_explains() -> None:
    cells = [red(name, "values", "output: off by 0.1") for name in ("a", "b", "c")]
    told = [
        Explained(cell=cell.cell, model=cell.model, by="bisect", answer="in words", operators=("aten::softmax",))
        for cell in cells[:2]
    ]
    report = with_causes(replace(run_of(cells), explained=tuple(told)))
    assert ids(report) == {"culprit-aten::softmax": ("a", "b"), "values-c": ("c",)}


def test_a_setting_that_differs_is_the_cause_where_a_run_without_the_difference_shows_it() -> None:
    told = {"quantized_engine": "quantized_engine is fbgemm on the old side and x86 on the new side"}
    cells = [
        red(name, "values", f"output: off by 0.{place} of its largest value", settings=told)
        for place, name in enumerate(("a", "b"), 1)
    ]
    tried = [mitigated(cell, "quantized_engine as before") for cell in cells]
    in_vain = [replace(one, mitigates=False) for one in tried]
    for nothing in ([], in_vain):
        assert ids(run_of(cells, mitigations=nothing)) == {"values-a": ("a",), "values-b": ("b",)}
    (cause,) = run_of(cells, mitigations=tried).causes
    assert (cause.id, cause.models) == ("setting-quantized_engine", ("a", "b"))
    assert cause.title == told["quantized_engine"]


def test_what_one_setting_mitigates_is_one_cause_with_its_cost() -> None:
    cells = [red(name, "late_divergence", "call 1 differs") for name in ("a", "b", "c")]
    both = [mitigated(cells[0], "fuser off"), mitigated(cells[0]), mitigated(cells[1])]
    report = run_of(cells, mitigations=both)
    assert ids(report) == {"mitigated-by-profiling-off": ("a", "b"), "late-divergence-c": ("c",)}
    assert report.causes[0].fix.startswith(
        "latency: no difference found (between 0.2 % faster and 2.2 % slower): profiling off mitigates 2 of 2 cells"
    )
    assert [cause.fix_verified for cause in report.causes] == [True, False]


def test_a_verified_fix_says_what_to_deploy() -> None:
    paste = {"python": "torch._C._jit_set_profiling_executor(False)", "c++": "getProfilingMode() = false;"}
    cells = [red(name, "late_divergence", "call 1 differs") for name in ("a", "b")]
    (switch,) = run_of(cells[:1], mitigations=[replace(mitigated(cells[0]), paste=paste)]).causes
    assert switch.deploy == tuple(paste.items())
    told = [
        Explained(
            cell=cell.cell,
            model=cell.model,
            by="bisect",
            answer="operator aten::softmax",
            operators=("aten::softmax",),
            fixes=(Fix(name="softmax", rewrites=True, what="as exp over its sum", needs="float inputs"),),
            patched=f"explained/{cell.model}/{cell.model}.pt",
        )
        for cell in cells
    ]
    (rewrite,) = with_causes(replace(run_of(cells), explained=tuple(told))).causes
    words = "needs: float inputs; the old release loads it too; as exp over its sum"
    assert (rewrite.fix, rewrite.fix_verified) == (f"price not measured: rewrite softmax; {words}", True)
    assert rewrite.deploy == (("a", "explained/a/a.pt"), ("b", "explained/b/b.pt"))
    facts = {
        fact.label: fact.text for fact in cause_part(rewrite, 0, where="reports/r").blocks if isinstance(fact, Fact)
    }
    assert (facts["deploy a"], facts["deploy b"]) == ("reports/r/explained/a/a.pt", "reports/r/explained/b/b.pt")
    one = cause_part(replace(rewrite, deploy=rewrite.deploy[:1]), 0, where="/runs/r").blocks
    assert [fact.text for fact in one if isinstance(fact, Fact) and fact.label == "deploy"] == [
        "/runs/r/explained/a/a.pt"
    ]


def test_what_was_not_reached_belongs_to_what_went_wrong_before() -> None:
    late = Finding(kind="not_measured", message="steady latency was not measured: the benchmark was lost")
    lost = verdict("a", "latency", Status.INCONCLUSIVE, late)
    twin = replace(lost, model="b", cell=lost.cell.replace("a/", "b/", 1))
    report = run_of([red("a", "crash", "crashes the process in load (signal 11)"), lost, twin])
    assert {cause.models: len(cause.cells) for cause in report.causes} == {("a",): 2, ("b",): 1}


def test_latencies_that_are_not_decided_are_one_cause_after_all_that_fails() -> None:
    report = run_of([undecided("b"), undecided("a"), slower("c", 1.09), slower("d", 1.3)])
    assert list(ids(report).items()) == [("slower", ("d", "c")), ("undecided-latency", ("a", "b"))]
    assert [cause.status for cause in report.causes] == [Status.FAIL, Status.INCONCLUSIVE]
    assert report.causes[0].excess == pytest.approx(10)


def test_the_worst_comes_first_no_answer_before_a_late_one_then_by_excess_and_models() -> None:
    cells = [slower("a", 1.04), hang("b", SPIN), red("d", "load_time", "load time +90 %, limit", "latency", size=1.9)]
    cells += [slower("c", 1.05), *(refused(name, "aten::x")[0] for name in ("e", "f"))]
    assert [cause.models for cause in run_of(cells).causes] == [("e", "f"), ("b",), ("d",), ("c", "a")]


def test_ids_do_not_depend_on_what_else_is_red() -> None:
    few, many = run_of([hang("a", SPIN)]), run_of([hang("b", DEADLOCK), hang("c", SPIN), undecided("a")])
    assert set(ids(few)) < set(ids(many))


def test_a_cause_has_the_command_that_repeats_it_and_a_bisect_of_its_clearest_model() -> None:
    report = run_of([slower("a", 1.04), slower("b", 1.2)])
    rerun, bisect = report.causes[0].commands
    assert rerun == ("rerun", f"python -m harness rerun {report.run} --cause slower")
    assert bisect == ("bisect", f"python -m harness bisect {report.run} b/latency")


def test_commands_of_a_cause_are_started_as_those_of_its_cells() -> None:
    report = run_of([slower("a", 1.04), undecided("b")])
    begin, run, keeps = "'/opt/my env/python' -m harness", "'out/a rerun'", "--policy 'a b.toml'"
    written = {cell.cell: f"{begin} rerun {run} {cell.cell} {keeps}" for cell in report.judgement.cells}
    slow, open_ = (dict(cause.commands) for cause in causes_of(replace(report, rerun=written)))
    assert slow["rerun"] == f"{begin} rerun {run} --cause slower {keeps}"
    assert slow["bisect"] == f"{begin} bisect {run} {report.judgement.cells[0].cell}"
    assert open_["go on"] == f"{begin} compat --resume {run} --more 10min"


@pytest.mark.parametrize("text", ["", "it's broken", "rerun", "a/latency"])
def test_a_cause_has_a_command_whatever_its_report_holds_in_place_of_one(text: str) -> None:
    report = run_of([slower("a", 1.04)])
    (cause,) = causes_of(replace(report, rerun={report.judgement.cells[0].cell: text}))
    assert dict(cause.commands)["rerun"] == f"python -m harness rerun {report.run} --cause slower"


def test_undecided_latencies_go_on_with_one_command_where_the_run_can() -> None:
    report = run_of([undecided("a"), undecided("b")])
    (cause,) = report.causes
    go_on = f"python -m harness compat --resume {report.run} --more 10min"
    assert cause.commands[0] == ("go on", go_on)
    assert cause.commands[1][0] == "rerun"
    repeated = with_causes(replace(report, arguments=("rerun", "last")))
    assert [label for label, _ in repeated.causes[0].commands] == ["rerun"]
    assert more_command(run_of([slower("a", 1.2)])) == ""


def test_an_unknown_cause_is_refused_with_those_that_exist() -> None:
    report = run_of([slower("a", 1.04), undecided("b")])
    assert cause_named(report.causes, "slower", "last").models == ("a",)
    with pytest.raises(SelectionError) as refusal:
        cause_named(report.causes, "slow", "last")
    assert str(refusal.value.hint) == "its causes: slower (1 model); undecided-latency (1 model)"


def test_a_waiver_that_does_not_cover_what_was_seen_is_the_first_evidence() -> None:
    cell = red("a", "values", "output: off by 0.1")
    over = Finding(kind="waiver_exceeded", message="the waiver of ads covers 0.001 at most, and this is 0.1", size=0.1)
    (cause,) = run_of([replace(cell, findings=(*cell.findings, over))]).causes
    assert (cause.id, cause.evidence[0]) == ("values-a", ("waiver", over.message))


def test_a_gated_quantity_is_told_by_its_name_whatever_digits_it_has() -> None:
    steady = replace(slower("s", 1.06).findings[0], rule="benchmark")
    names = ("p90", "p99", "call_0", "load", "new_shape:wide")
    gates = tuple(name.partition(":")[0] for name in names)
    cells = [verdict("s", "latency", Status.FAIL, steady)]
    for name in names:
        quantities = {name: Quantity(old=0.1, new=0.15, ratio=ratio(1.5))}
        measured = replace(latency("m", ratio(1.0)), quantities=quantities, fresh_quantities=quantities)
        settings = PolicySettings(gates=gates, limits=dict.fromkeys(gates, 1.2))
        (found,) = quantity_findings(measured, settings)
        cells.append(verdict(name.replace(":", "_"), "latency", Status.FAIL, found))
    start = slow_start(4.0, 6.0, 1.25, group="ranking", words="concurrent init")
    assert start is not None
    told = Ruled(kind=start.kind, was="warn", now="fail", by="policy")
    cells.append(replace(verdict("g", "concurrent", Status.FAIL, start), ruled=(told,)))
    assert ids(run_of(cells)) == {
        "slower": ("s",),
        "limit-p90": ("p90",),
        "limit-p99": ("p99",),
        "limit-call_0": ("call_0",),
        "limit-load": ("load",),
        "limit-new_shape:wide": ("new_shape_wide",),
        "limit-initialization-time": ("g",),
    }


def test_a_nan_beside_values_that_are_off_is_over_no_limit_in_causes_and_in_the_ranking_of_models() -> None:
    cells, facts = [], []
    for name, late in (("off", tensor(max_abs=2.0)), ("nan", tensor(nan_mismatches=1))):
        comparison = compared(call(tensor(), equal(path="late")), call(replace(late, path="late"), index=1))
        cells.append(verdict(name, "alone", Status.FAIL, *output_findings(comparison)))
        facts.append(replace(healthy(name), comparisons=(replace(comparison, model=name),)))
    report = run_of(cells, facts)
    assert {cause.models: cause.excess for cause in report.causes} == {("nan",): None, ("off",): pytest.approx(1e5)}
    models = by_excess(report)
    assert [(item.row.model, item.over[0].factor) for item in models] == [("nan", None), ("off", pytest.approx(1e5))]


def test_the_excess_of_a_short_call_is_held_against_the_limit_that_was_applied_to_it() -> None:
    fifty_us = {"p50": Quantity(old=5e-5, new=7.5e-5, ratio=ratio(1.5))}
    short = replace(latency("short", ratio(1.5)), quantities=fifty_us, confirmation=ratio(1.5))
    long = replace(latency("long", ratio(1.4)), confirmation=ratio(1.4))
    cells, facts = [], []
    for measured in (short, long):
        cells.append(
            judge_latency(
                measured.model,
                measured,
                LatencyBudget(limit=0.05, floor_s=2e-5),
                PolicySettings(),
            )
        )
        facts.append(replace(healthy(measured.model), latency=measured))
    report = run_of(cells, facts)
    (cause,) = report.causes
    assert cause.models == ("long", "short") and cause.excess == pytest.approx(0.4 / 0.05)
    (over,) = [item for found in by_excess(report) for item in found.over if item.cell.startswith("short")]
    assert over.limit == "+40.0 %" and over.factor == pytest.approx(0.5 / 0.4)
    assert [item.row.model for item in by_excess(report)] == ["long", "short"]


def shared(*apart: str) -> CommonSlowdown:
    return CommonSlowdown(ratio=ratio(1.04, 0.005), models=("a", "b", "c", "d"), apart=apart, call_s=4e-4)


def test_a_model_with_a_slowdown_of_its_own_is_named_beside_what_all_share() -> None:
    report = run_of([slower(name, size) for name, size in (("a", 1.06), ("b", 1.05), ("own", 1.12))])
    report = with_causes(replace(report, common=shared("own")))
    assert ids(report) == {"latency-own": ("own",), "slower": ("a", "b")}
    (all_of_them,) = [cause for cause in report.causes if cause.id == "slower"]
    assert dict(all_of_them.evidence)["common"].startswith("what all 4 timed models share: steady latency +4.0 %")


def test_a_common_part_that_may_be_nothing_is_no_evidence() -> None:
    report = run_of([slower("a", 1.06)])
    nothing = replace(shared(), ratio=ratio(1.001, 0.005))
    (cause,) = with_causes(replace(report, common=nothing)).causes
    assert "common" not in dict(cause.evidence)


def test_what_all_share_is_a_cause_where_it_fails_the_run_and_no_model_does() -> None:
    report = run_of([verdict("a", "latency", Status.PASS)])
    found = Finding(kind="common_slowdown", message="what all 4 timed models share: +4.0 %, limit +3 %", size=1.04)
    failing = replace(report, judgement=replace(report.judgement, findings=(found,)), common=shared())
    (cause,) = with_causes(failing).causes
    assert (cause.id, cause.status, cause.cells, cause.models) == ("slower", Status.FAIL, (), ("a", "b", "c", "d"))
    ((label, command),) = cause.commands
    assert (label, command.endswith(" --cause slower")) == ("rerun", True)
    for render in (render_console, render_markdown, render_html, render_annotations, render_comment, render_run_sarif):
        assert "all timed models are slower" in render(with_causes(failing)), render
    (cause,) = with_causes(replace(failing, common=replace(shared(), spread=0.03))).causes
    assert cause.title.startswith("all timed models are slower on average in ")
    healthy_run = replace(report, common=shared())
    assert with_causes(healthy_run).causes == ()


def test_request_that_shows_it_is_named_where_there_are_others() -> None:
    cell = red("a", "values", "output: off by 0.1 of its largest value", detail={"input_set": "nan"})
    one, other = call(tensor(), input_set="nan"), call(equal(), input_set="plain")
    for calls, said in (((one, other), ["nan, of 2 that were compared"]), ((one,), [])):
        facts = replace(healthy("a"), comparisons=(compared(*calls),))
        (cause,) = run_of([cell], [facts]).causes
        assert [text for label, text in cause.evidence if label == "request"] == said


def test_the_waiver_of_what_is_mended_goes_by_a_command_that_is_printed_whole() -> None:
    unused = Finding(kind="waiver_unused", message="the waiver of ann for values is needed no more")
    report = run_of([verdict("a", "alone", Status.XPASS, unused)])
    (cause,) = report.causes
    assert dict(cause.commands)["prune"] == f"python -m harness waivers prune {report.folder or report.run} --yes"
    (step,) = steps(report, "reports/r")
    assert step.text == "it is mended: take its waiver out, and commit that"
    assert step.commands == (("prune", dict(cause.commands)["prune"]),)
    shown = render_console(report, width=100)
    assert shown.count("waivers prune") == 2  # with the step, and with its cause


def test_where_a_file_lies_makes_no_other_cause_and_another_text_does() -> None:
    told = "{} is not the file that its golden record is about"
    paths = ("/tmp/walk/models/a.pt", "/srv/x-1/a.pt", "a.pt")
    found = {cause.id for path in paths for cause in run_of([raised("a", "export_error", told.format(path))]).causes}
    assert len(found) == 1 and "tmp" not in "".join(found)
    (other,) = run_of([raised("a", "export_error", "/srv/x-1/a.pt is gone")]).causes
    assert other.id not in found
