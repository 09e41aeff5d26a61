"""What is printed before timing begins, and what keeps a run from being green."""

import io
from dataclasses import replace
from typing import Any

import pytest

from harness.core.outcome import Decision, Outcome, Status
from harness.core.plan import LatencyBudget
from harness.core.probe import CallRecord
from harness.core.verdict import PlantedDefectResult
from harness.probing.facts import NotBegun, OldAnswers
from harness.apps.upgrade.decide import decide_run, tell_so_far, why_untimed
from harness.machine.progress import Progress
from tests.unit.builders.stages import artifact, declared, effects, known, planned, probed, result
from tests.unit.builders.verdicts import finding, planted_defect, verdict

CALLS = tuple(CallRecord(input_set="example", call=index, duration_ns=1_000_000) for index in range(4))
SET: Any = type("Set", (), {"name": "example"})()


def printed(*sick: str, budget: str = "quick", planted: tuple[PlantedDefectResult, ...] = ()) -> list[str]:
    stream = io.StringIO()
    plan = planned("a", "b", "c", settings={"latency": LatencyBudget(budget=budget)})
    facts = known(plan)
    old = OldAnswers(results=(result(load_ns=1_000_000, calls=CALLS),))
    exports = {
        name: replace(item, artifact=replace(artifact(name), input_sets=(SET,))) for name, item in facts.exports.items()
    }
    alone = {
        name: probed(result(name, Outcome.LOAD_ERROR if name in sick else Outcome.COMPLETED)) for name in facts.alone
    }
    facts = replace(facts, alone=alone, exports=exports, baselines=dict.fromkeys(facts.baselines, old))
    tell_so_far(facts, planted, replace(effects(), progress=Progress(stream)))
    return stream.getvalue().splitlines()


def test_loads_and_numbers_are_printed_with_how_long_timing_will_take() -> None:
    head, *rest = printed("b")
    assert head.startswith("so far  3 models: 1 FAIL") and "timing takes about" in head
    assert len(rest) == 1 and rest[0].startswith("  FAIL  b, load and calls: load error in start")


def test_red_is_printed_without_timing_too_and_health_is_left_to_the_report() -> None:
    assert "timing" not in printed("b", budget="off")[0]


@pytest.mark.parametrize("budget", ["quick", "off"])
def test_planted_defect_that_was_missed_is_said_before_time_is_spent(budget: str) -> None:
    missed = planted_defect(caught=False)
    assert any("BLIND" in line for line in printed("b", planted=(missed,), budget=budget))


def test_what_the_budget_left_out_is_named_and_never_green() -> None:
    left_out = (
        NotBegun(scenario="python_server", group="ads", expected_s=52.0),
        NotBegun(scenario="latency", group="", expected_s=9.0),
    )
    facts = known(replace(planned("m"), budget_s=90.0))
    facts = replace(facts, verdicts={"m": (verdict(),)}, not_begun=left_out)
    judgement = decide_run(facts, effects()).judgement
    assert judgement.decision is Decision.INCONCLUSIVE
    assert judgement.vacuous == (
        "--budget 90s left out: Python server of ads (about 50 s), timing (about 10 s for a first round); "
        "--resume goes on with it"
    )
    red = verdict(Status.FAIL, finding("hang"))
    blocked = decide_run(replace(facts, verdicts={"m": (red,)}, over_budget=("m",)), effects()).judgement
    assert blocked.decision is Decision.BLOCKED
    assert blocked.reason.endswith(
        "; --budget 90s left out: Python server of ads (about 50 s), timing (about 10 s for a first round), "
        "the search for the cause of m; --resume goes on with it"
    )


def test_a_run_that_times_nothing_says_why() -> None:
    miniatures = planned(models=(declared("a", timed=False), declared("b", timed=False)))
    assert why_untimed(miniatures) == "every model says timed=False"
    assert why_untimed(planned(models=(declared("a", timed=False), declared("b")))) == ""
    assert why_untimed(planned("a", settings={"latency": LatencyBudget(budget="off")})) == "--latency off"
    assert why_untimed(replace(miniatures, until="correctness")) == "--until correctness"
