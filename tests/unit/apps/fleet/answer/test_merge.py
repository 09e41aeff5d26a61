"""The merged answer: one row per artifact, what a program showed held for all its weights, and never green on gaps."""

import csv
import io
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.parser import parser
from harness.verdict.causes import causes_of
from harness.core.fleet import Examination, Fault, Unjudged, WaveKind
from harness.core.measurement import RatioEstimate
from harness.core.outcome import Decision, Status
from harness.core.report import SideReport
from harness.core.verdict import CellVerdict, Finding, Mitigation
from harness.apps.fleet.answer.merge import _called, merge
from harness.apps.fleet.plan import STORE
from harness.apps.fleet.results import FleetResults
from harness.report.ci.spreadsheet import render_owners_csv
from tests.unit.builders.rendered import render_fleet_markdown
from tests.unit.builders.rendered import render_fleet_html
from tests.unit.builders.rendered import render_answer
from harness.report.documents.fleet import row_words, store_words
from harness.project import Project, own_command
from harness.store import codec
from tests.unit.builders.planted_causes import hang, red, refused
from tests.unit.builders.reports import cell_id, healthy, verdict
from tests.unit.apps.fleet.answers import FRAME, answer, artifact, plan_of, result_of, statuses


def test_a_copy_has_the_result_of_its_content_under_its_own_name() -> None:
    planned = plan_of(artifact("a", weights="W"), artifact("b", weights="W", owner="search"))
    cell, facts = refused("a", "prim::is_ort")
    made = answer(planned, result_of(planned, "a", cell, facts=facts))
    assert statuses(made) == {"a": Status.FAIL, "b": Status.FAIL}
    assert made.report is not None
    assert [cell.cell for cell in made.report.judgement.rows[1].cells] == [
        cell_id("b", "alone"),
        cell_id("b", "concurrent"),
    ]
    (cause,) = made.answer.causes
    assert cause.owners == {"ads": 1, "search": 1} and cause.programs == 1
    assert cause.cause.models == ("a", "b")


def test_what_fails_while_a_server_starts_blocks_every_artifact_of_the_program() -> None:
    planned = plan_of(artifact("a"), artifact("b"), artifact("c", program="Q"))
    assert [item.examination for item in planned.plan.artifacts] == ["full", "weights", "full"]
    frames = "thread 1, unchanged: pthread_mutex_lock < load"
    made = answer(planned, result_of(planned, "a", hang("a", frames)), result_of(planned, "b"), result_of(planned, "c"))
    assert statuses(made) == {"a": Status.FAIL, "b": Status.FAIL, "c": Status.PASS}
    (cause,) = made.answer.causes
    assert cause.cause.models == ("a", "b") and cause.programs == 1
    assert made.answer.decision is Decision.BLOCKED


def test_two_models_of_one_place_s_name_have_their_own_verdicts() -> None:
    """The known failure of one was once shown as the pass of the other."""
    prod, staging = (
        replace(artifact(name, program=name), path=f"{name}/ranker/1/model.pt") for name in ("prod_1", "staging_1")
    )
    planned = plan_of(prod, staging)
    cell, facts = refused("prod_1", "prim::is_ort")
    made = answer(planned, result_of(planned, "prod_1", cell, facts=facts), result_of(planned, "staging_1"))
    assert {row.path: row.status for row in made.answer.rows} == {prod.path: Status.FAIL, staging.path: Status.PASS}


def test_a_green_answer_says_what_no_verdict_speaks_of() -> None:
    planned = plan_of(artifact("a"))
    unjudged = tuple(Unjudged(path=f"{at}.pt", reason="is no TorchScript: state dict") for at in range(12))
    planned = replace(planned, plan=replace(planned.plan, unjudged=unjudged))
    made = answer(planned, result_of(planned, "a")).answer
    assert (made.decision, made.unjudged) == (Decision.UPGRADE_OK, unjudged)
    assert made.reason.endswith("not judged: 12 other files (12 is no TorchScript: state dict)")


def test_a_result_counts_only_for_what_it_is_of(tmp_path: Path) -> None:
    """A plan whose keys were edited would show one artifact's verdict as another one's."""
    planned = replace(plan_of(artifact("a", "A"), artifact("b", "B")), folder=tmp_path)
    results = FleetResults(tmp_path / STORE)
    for name in "ab":
        results.save(result_of(planned, name), FRAME)
    first, second = planned.plan.artifacts
    swapped = (replace(first, key=second.key), replace(second, key=first.key))
    options = Project(folder=tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.compat]\nold = "2.1.2"\nnew = "2.6.0"\n')
    assert {row.status for row in merge(planned, options)[0].answer.rows} == {Status.PASS}
    edited = replace(planned, plan=replace(planned.plan, artifacts=swapped))
    assert {row.status for row in merge(edited, options)[0].answer.rows} == {None}


def test_weights_that_pass_are_not_green_before_their_program_was_examined() -> None:
    planned = plan_of(artifact("a"), artifact("b"))
    made = answer(planned, result_of(planned, "b"))
    assert statuses(made) == {"a": None, "b": None}
    assert "a has no result" in next(row.reason for row in made.answer.rows if row.name == "b")
    assert (made.answer.decision, made.answer.exit_code) == (Decision.INCONCLUSIVE, 4)


def test_a_green_answer_needs_every_result() -> None:
    planned = plan_of(artifact("a"), artifact("b"))
    everything = result_of(planned, "a"), result_of(planned, "b")
    assert answer(planned, *everything).answer.decision is Decision.UPGRADE_OK
    assert answer(planned, everything[0]).answer.decision is Decision.INCONCLUSIVE
    nothing = answer(planned)
    assert (nothing.answer.decision, nothing.report) == (Decision.NOTHING_TESTED, None)


def test_a_fault_has_its_label_and_makes_no_cause() -> None:
    planned = plan_of(artifact("a"), artifact("b", program="Q"))
    key = next(item.key for item in planned.plan.artifacts if item.name == "b")
    made = answer(planned, result_of(planned, "a"), faults=(Fault(key=key, label="spurious-vanished", text="b.pt"),))
    assert made.answer.causes == ()
    assert next(row.reason for row in made.answer.rows if row.name == "b").startswith("spurious-vanished: ")
    assert [wave.kind for wave in made.answer.waves] == [WaveKind.READY, WaveKind.UNKNOWN]
    assert made.answer.waves[1].needs == "spurious-vanished"


def test_waves_are_ready_by_tier_then_with_a_switch_then_blocked() -> None:
    names = ("a", "b", "c", "d", "e")
    tiers = ("batch", "online")
    planned = plan_of(*(artifact(name, program=name, tier=tiers[name in "ab"]) for name in names), tiers=tiers)
    price = RatioEstimate(ratio=1.01, low=0.99, high=1.03, pairs=4, detectable=1.02)
    mitigation = Mitigation(
        cell=cell_id("c", "alone"),
        model="c",
        name="profiling off",
        switches={"profiling": False},
        mitigates=True,
        price=price,
    )
    cell, facts = refused("d", "prim::is_ort")
    same = replace(red("e", "values", "differs"), status=Status.SAME_FAIL)
    made = answer(
        planned,
        result_of(planned, "a"),
        result_of(planned, "b"),
        result_of(planned, "c", red("c", "values", "differs"), mitigations=(mitigation,)),
        result_of(planned, "d", cell, facts=facts),
        result_of(planned, "e", same),
    )
    waves = [(wave.kind, wave.artifacts) for wave in made.answer.waves]
    assert waves == [
        (WaveKind.READY, ("a", "b")),
        (WaveKind.SWITCH, ("c",)),
        (WaveKind.BLOCKED, ("d",)),
        (WaveKind.UNKNOWN, ("e",)),
    ]
    assert made.answer.waves[1].needs == "profiling off" and "+1.0 %" in made.answer.waves[1].cost
    assert made.answer.waves[2].cause == "operator-prim::is_ort"


def test_ready_artifacts_move_in_the_order_of_the_tiers() -> None:
    tiers = ("batch", "online")
    planned = plan_of(
        artifact("a", "A", tier="online"), artifact("b", "B", tier="batch"), artifact("c", "C"), tiers=tiers
    )
    made = answer(planned, *(result_of(planned, name) for name in "abc"))
    assert [wave.needs for wave in made.answer.waves] == ["", "batch", "online"]


def test_the_answer_does_not_depend_on_the_order_in_which_results_came() -> None:
    planned = plan_of(*(artifact(name, program=name[0]) for name in ("a1", "a2", "b1", "b2")))
    found = [result_of(planned, item.name) for item in planned.plan.artifacts]
    assert codec.canonical(answer(planned, *found)) == codec.canonical(answer(planned, *reversed(found)))


def test_causes_of_the_fleet_are_those_of_one_run_of_all() -> None:
    planned = plan_of(artifact("a", "A"), artifact("b", "B"), artifact("c", "C"))
    cells = {name: refused(name, "prim::is_ort") for name in "ab"}
    made = answer(
        planned,
        *(result_of(planned, name, cell, facts=facts) for name, (cell, facts) in cells.items()),
        result_of(planned, "c"),
    )
    assert made.report is not None
    assert [item.cause.id for item in made.answer.causes] == [cause.id for cause in causes_of(made.report)]
    assert made.answer.causes[0].cause.models == ("a", "b") and made.answer.causes[0].programs == 2


def test_only_the_full_examination_stands_for_a_program() -> None:
    planned = plan_of(artifact("a"), artifact("b"))
    assert {unit.artifact: unit.examination for unit in planned.plan.units} == {
        "a": Examination.FULL,
        "b": Examination.WEIGHTS,
    }


def test_a_row_says_that_its_requests_were_guessed() -> None:
    planned = plan_of(artifact("a"), artifact("b", program="Q"), artifact("c", program="R"))
    guess = "guessed from config.pbtxt: forward(x=uint8[2, 3])"
    facts = replace(healthy("a"), latency=None, guessed=guess)
    made = answer(planned, result_of(planned, "a", facts=facts), result_of(planned, "b"))
    assert {row.name: row.guessed for row in made.answer.rows} == {"a": guess, "b": "", "c": ""}
    assert store_words(made.answer) == "2 of 3 artifacts have a result, 1 of them to guessed requests; 2 PASS"
    assert row_words(made.answer.rows[0]) == f"its requests are guesses: {guess}"
    assert "- a: guessed requests, guessed from config.pbtxt" in render_fleet_markdown(made.answer)
    assert "its requests are guesses" in render_fleet_html(made.answer)


@pytest.mark.parametrize(
    ("name", "called"),
    [("old", "torch 2.9.0+cpu"), ("torch 2.1.2", "torch 2.1.2"), ("prod", "prod"), (None, "2.9.0+cpu")],
)
def test_an_answer_is_headed_by_the_releases_that_it_is_of(name: str | None, called: str) -> None:
    side = None if name is None else SideReport(name=name, fingerprint=None)
    assert _called(side, "2.9.0+cpu") == called


def test_the_command_of_a_cause_asks_its_clearest_artifact_as_the_plan_does() -> None:
    planned = plan_of(artifact("a"))
    cell, facts = refused("a", "prim::is_ort")
    (cause,) = answer(planned, result_of(planned, "a", cell, facts=facts)).answer.causes
    ((label, command),) = cause.cause.commands
    assert label == "explain" and command.startswith(own_command(Path("/project")))
    words = shlex.split(command)
    parsed = parser("gate", typed=words).parse_args(words[words.index("--project") :])
    assert (parsed.action, parsed.plan, parsed.artifact) == ("explain", str(planned.folder), "a")


def test_models_of_a_fleet_count_as_those_of_a_run() -> None:
    planned = plan_of(artifact("a"), artifact("b", program="Q"), artifact("c", program="R"))
    slower = CellVerdict(
        cell=cell_id("a", "concurrent"),
        model="a",
        scenario="concurrent",
        status=Status.PASS,
        findings=(Finding(kind="throughput", message="time per request +17 %", size=1.17, limit=1.1),),
    )
    open_ = replace(slower, cell=cell_id("b", "concurrent"), model="b", status=Status.INCONCLUSIVE, decides=False)
    open_ = replace(open_, findings=(Finding(kind="latency_undecided", message="open"),))
    made = answer(
        planned, result_of(planned, "a", slower), result_of(planned, "b", open_), result_of(planned, "c")
    ).answer
    assert (made.decision, made.counts) == (Decision.UPGRADE_OK, {"over limit": 1, "undecided": 1, "PASS": 1})
    assert {row.name: row.word for row in made.rows} == {"a": "over limit", "b": "undecided", "c": "PASS"}
    for text in (render_answer(made, more="m"), render_fleet_markdown(made), render_fleet_html(made)):
        assert "but a: time per request +17 %" in text
        assert "1 over limit, 1 undecided, 1 PASS" in text
    assert [cause.cause.status for cause in made.causes] == [Status.PASS]
    lines = list(csv.DictReader(io.StringIO(render_owners_csv(made))))
    assert sorted(line["status"] for line in lines) == ["PASS", "over limit", "undecided"]
    assert {row.name: row.reason for row in made.rows} == {"a": "time per request +17 %", "b": "open", "c": ""}


def test_a_pass_on_guesses_is_ready_with_a_warning_where_an_operator_is_known_to_answer_otherwise() -> None:
    planned = plan_of(artifact("a"), artifact("b", program="Q"))
    message = "aten::softshrink: the newer one keeps NaN"
    warned = verdict(
        "a", "alone", Status.PASS, Finding(kind="changed_operator", message=message, subject="aten::softshrink")
    )
    made = answer(planned, result_of(planned, "a", warned), result_of(planned, "b")).answer
    assert [(wave.artifacts, wave.warning) for wave in made.waves] == [(("b",), ""), (("a",), "aten::softshrink")]
    assert made.rows[0].reason == message
    told = "ready now, but aten::softshrink may answer otherwise on real requests"
    for text in (render_answer(made, more="m"), render_fleet_markdown(made), render_fleet_html(made)):
        assert text.count(told) >= 1 and "guessed requests may not show it: a" in " ".join(text.split())
    upgrades = {line["artifact"]: line["upgrade"] for line in csv.DictReader(io.StringIO(render_owners_csv(made)))}
    assert upgrades == {"a": told, "b": "ready now"}
