"""What a red cell says of a search, and which red cells are worth one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.builders.verdicts import mitigation
from harness.search.explained_cells import by_bisection, by_mitigations, by_first_bad, with_later, worth_explaining
from harness.core.diagnosis import (
    BisectAnswer,
    Bisection,
    Culprit,
    MitigationAnswer,
    MitigationResult,
    Divergence,
    NodeFault,
    Reduction,
    Reproducer,
    Rewritten,
    Symptom,
    TracedNode,
)
from harness.core.releases import Conclusion, Ending, FirstBad
from harness.core.measurement import RatioEstimate
from harness.core.outcome import Status
from harness.core.report import Explained
from harness.store import explanations
from harness.core.verdict import CellVerdict, Finding, Fix, Mitigation, Price

CELL = "m/alone"
FOUND = Bisection(model="m", old="torch 2.1.2", new="torch 2.6.0", answer=BisectAnswer.UNDECIDED)


def cell(model: str, scenario: str, kind: str, status: Status = Status.FAIL, decides: bool = True) -> CellVerdict:
    return CellVerdict(
        cell=f"{model}/{scenario}", model=model, scenario=scenario, status=status,
        findings=(Finding(kind=kind, message=kind),), decides=decides,
    )  # fmt: skip


def fault(operator: str, *, module: str = "", source: str = "", code: str = "") -> NodeFault:
    schema = f"{operator}.out(Tensor x) -> Tensor"
    node = TracedNode(place=(1,), kind=operator, schema=schema, module=module, source=source, code=code)
    return NodeFault(node=node, what=("output[0]: off by 0.1", "and more"))


def test_the_gravest_comes_first_and_each_model_once() -> None:
    verdicts = {
        "late": (cell("late", "alone", "", Status.PASS), cell("late", "latency", "latency")),
        "wrong": (cell("wrong", "alone", "values"), cell("wrong", "latency", "latency")),
        "b_dead": (cell("b_dead", "alone", "hang"),),
        "a_dead": (cell("a_dead", "alone", "hang"),),
        "fine": (cell("fine", "alone", "", Status.PASS),),
        "waived": (cell("waived", "alone", "values", Status.XFAIL),),
        "open": (cell("open", "latency", "latency", decides=False),),
        "beside": (cell("beside", "concurrent", "hang"),),
    }
    assert [item.cell for item in worth_explaining(verdicts)] == [
        "a_dead/alone", "b_dead/alone", "wrong/alone", "late/latency",
    ]  # fmt: skip


def test_what_fails_by_the_policy_alone_has_nothing_to_explain() -> None:
    alone = cell("m", "alone", "error_limit")
    assert worth_explaining({"m": (replace(alone, judged=Status.FAIL),)})
    assert worth_explaining({"m": (replace(alone, judged=Status.PASS),)}) == ()


def test_an_operator_is_reported_with_module_line_code_and_what_it_does() -> None:
    node = fault("aten::mul", module="a.b", source="/env/lib/site-packages/net/m.py:7", code="  x * y ")
    same = fault("aten::mul")
    found = replace(
        FOUND, answer=BisectAnswer.OPERATOR, divergence=Divergence(input_set="e", call=0, culprits=(node, same))
    )
    told = by_bisection(CELL, found, folder="explained/x", seconds=3.0)
    assert told.lines == (
        ("culprit", "aten::mul.out in a.b, net/m.py:7: output[0]: off by 0.1"),
        ("code", "x * y"),
    )
    assert (told.answer, told.paths, told.seconds) == ("operator aten::mul.out", ("explained/x/bisect.json",), 3.0)


def test_no_more_operators_are_named_than_a_reader_takes_in() -> None:
    faults = tuple(fault(f"aten::op{index}") for index in range(5))
    found = replace(FOUND, answer=BisectAnswer.OPERATOR, divergence=Divergence(input_set="e", call=0, culprits=faults))
    lines = by_bisection(CELL, found, folder="x").lines
    assert len(lines) == 4
    assert lines[-1] == ("culprit", "and 2 more operators")


def test_the_executor_is_reported_with_the_few_nodes_the_setting_and_the_rewrite() -> None:
    nodes = tuple(TracedNode(place=(place,), kind=f"aten::n{place}", source=f"net.py:{place}") for place in range(2))
    culprit = Culprit(keep=(0, 1), nodes=nodes, artifact="a.pt", inputs="i")
    ratio = RatioEstimate(ratio=1.01, low=1.0, high=1.02, pairs=3, detectable=1.02)
    found = replace(
        FOUND,
        answer=BisectAnswer.EXECUTOR,
        reduction=Reduction(symptom=Symptom.HANG, nodes=9, shows=True, culprits=(culprit,)),
        mitigations=(
            mitigation("fuser off", mitigates=False),
            mitigation(
                "profiling off",
                mitigates=True,
                prices=(Price(quantity="load"), Price(quantity="steady", to_old=ratio)),
            ),
        ),
        rewrites=(
            Rewritten(rule="in vain", what="x", artifact="no.pt"),
            Rewritten(rule="dear", what="y", artifact="dear.pt", fixes=True, steady=replace(ratio, ratio=30.0)),
            Rewritten(
                rule="doubled",
                what="a + a by 2 * a",
                needs="no views",
                artifact="rewrites/m.pt",
                fixes=True,
                steady=ratio,
            ),
        ),
        reproducers=(Reproducer(operator="n", folder="reproducers/1"), Reproducer(operator="n", note="none")),
    )
    told = by_bisection(CELL, found, folder="../other")
    assert told.lines == (("reduced", "to aten::n0 + aten::n1, net.py:1"),)
    assert told.fixes == (
        Fix(name="profiling off", price=ratio),
        Fix(name="doubled", rewrites=True, what="a + a by 2 * a", needs="no views", price=ratio),
        Fix(name="dear", rewrites=True, what="y", price=replace(ratio, ratio=30.0)),
    )
    assert told.patched == "../other/rewrites/m.pt"
    assert told.paths == ("../other/rewrites/m.pt", "../other/reproducers/1/reproduce.py", "../other/bisect.json")
    alone = by_bisection(CELL, replace(FOUND, answer=BisectAnswer.EXECUTOR), folder="x")
    assert alone.lines[0][1].startswith("no operator by itself")


def test_a_search_that_found_nothing_says_why() -> None:
    divergence = Divergence(input_set="e", call=0, notes=("other graphs",))
    told = by_bisection(CELL, replace(FOUND, notes=("too busy",), divergence=divergence), folder="x")
    assert told.lines == (("culprit", "not found: too busy; other graphs"),)
    refused = by_bisection(CELL, replace(FOUND, answer=BisectAnswer.LOADING, refusals=("aten::gone",)), folder="x")
    assert refused.lines == (("refused", "aten::gone"),)


def first_bad(ending: Ending, **more: object) -> str:
    conclusion = Conclusion(ending=ending, last_good="g", first_bad="b", one_of=("a", "b"))
    found = FirstBad(model="m", releases=("g", "b"), source="", asked=(), conclusion=replace(conclusion, **more))  # type: ignore[arg-type]
    ((label, text),) = by_first_bad(CELL, found, path="p").lines
    assert label == "since"
    return text


def test_since_when_is_reported_with_what_speaks_against_it() -> None:
    assert first_bad(Ending.FOUND) == "torch b; torch g is good"
    assert first_bad(Ending.ONE_OF) == "one of torch a, b; torch g is good"
    assert first_bad(Ending.NOT_BAD) == "not found by a search over releases: not bad"
    twice = first_bad(Ending.FOUND, good_again=(("a", "g"),))
    assert twice == "torch b; torch g is good; but a is bad and g after it good again"


def test_a_search_that_was_ended_does_not_call_its_nodes_all_needed_and_names_the_archive() -> None:
    node = TracedNode(place=(1,), kind="aten::n")
    culprit = Culprit(keep=(0,), nodes=(node,), artifact="parts/a.pt", inputs="i", minimal=False)
    reduction = Reduction(symptom=Symptom.HANG, nodes=9, shows=True, culprits=(culprit,))
    told = by_bisection(CELL, replace(FOUND, answer=BisectAnswer.NODES, reduction=reduction), folder="x")
    ((label, text),) = told.lines
    assert label == "reduced"
    assert text.startswith("to aten::n; the search ended before")
    assert told.paths == ("x/parts/a.pt", "x/bisect.json")
    made = (Reproducer(operator="n", folder="reproducers/1"),)
    told = by_bisection(CELL, replace(FOUND, reduction=reduction, reproducers=made), folder="x")
    assert told.paths == ("x/reproducers/1/reproduce.py", "x/bisect.json")


def test_the_smallest_archive_that_is_refused_is_named() -> None:
    node = TracedNode(place=(1,), kind="aten::gone")
    smallest = Culprit(keep=(0,), nodes=(node,), artifact="/run/probes/k/a.pt", inputs="i", new="RuntimeError: gone")
    found = replace(FOUND, answer=BisectAnswer.LOADING, refusals=("aten::gone at a.py:1",), smallest=smallest)
    told = by_bisection(CELL, found, folder="x")
    assert told.lines == (
        ("reduced", "to an archive of aten::gone alone, which is refused as well: RuntimeError: gone"),
        ("refused", "aten::gone at a.py:1"),
    )
    assert told.paths == ("/run/probes/k/a.pt", "x/bisect.json")


def test_mitigations_are_reported_with_what_they_break() -> None:
    told = mitigated(mitigation("a", "b", mitigates=True, breaks=("n",)))
    assert (told.fixes, told.lines, told.paths) == ((Fix(name="a + b", breaks=("n",)),), (), ("p",))
    assert told.answer == "price not measured: a + b; but breaks n"
    none = mitigated(mitigation("a", mitigates=False))
    assert none.answer == "nothing that was tried mitigates it"
    assert none.lines == (("tried", "no setting that mitigate tried helps"),)
    assert mitigated(notes=("it passes",)).lines == (("tried", "it passes"),)
    rewritten = Rewritten(rule="doubled", what="a + a by 2 * a", fixes=True)
    assert mitigated(notes=("load error",), rewrites=(rewritten,)).fixes == (
        Fix(name="doubled", rewrites=True, what="a + a by 2 * a"),
    )


def mitigated(*mitigations: Mitigation, **more: Any) -> Explained:
    words = {"scenario": "alone", "words": "alone", "answer": MitigationAnswer.NOT_FOUND}
    return by_mitigations(
        CELL, MitigationResult(model="m", old="o", new="n", mitigations=mitigations, **{**words, **more}), path="p"
    )


def test_a_later_search_by_the_same_command_replaces_the_earlier_one() -> None:
    def one(cell: str, by: str, answer: str) -> Explained:
        return Explained(cell=cell, model="m", by=by, answer=answer)

    before = (one("a", "bisect", "old"), one("b", "bisect", "kept"))
    later = (one("a", "bisect", "new"), one("a", "first-bad", "more"))
    assert [item.answer for item in with_later(before, later)] == ["new", "kept", "more"]


def test_a_price_outlives_a_later_search_that_measured_none(tmp_path: Path) -> None:
    price = RatioEstimate(ratio=9.66, low=8.44, high=11.05, pairs=3, detectable=1.1)

    def searched(*fixes: Fix, patched: str) -> Explained:
        return Explained(cell=CELL, model="m", by="bisect", answer=patched, fixes=fixes, patched=patched)

    bare, other = Fix(name="resize", rewrites=True), Fix(name="another", rewrites=True)
    timed = searched(replace(bare, price=price), patched="timed.pt")
    (told,) = with_later([timed], [searched(bare, patched="later.pt")])
    assert (told.answer, told.fixes, told.patched) == ("later.pt", timed.fixes, "timed.pt")
    unlike = searched(other, patched="later.pt")
    assert with_later([timed], [unlike]) == (unlike,)
    cheaper = searched(replace(bare, price=replace(price, ratio=1.0)), patched="later.pt")
    assert with_later([timed], [cheaper]) == (cheaper,)
    explanations.keep(tmp_path, timed)
    explanations.keep(tmp_path, searched(bare, patched="later.pt"))
    assert [item.fixes for item in explanations.kept(tmp_path)] == [timed.fixes]
