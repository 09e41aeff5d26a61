"""Failing server groups reduced: whom a trial brings up, what counts as the failure again, and what it may cost."""

from tests.unit.builders.stages import Runner, continued, effects, initialized, known, planned, probed, result
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from harness.core.plan import Cell
from harness.core.diagnosis import Answer, Attribution, FailureRates
from harness.core.outcome import Outcome, Status
from harness.core.probe import ProbeRequest, ProbeResult, model_of
from harness.core.verdict import CellVerdict, Finding
from harness.probing.facts import Attributed, Decided, GroupRun
from harness.search.failure_attribution import FIRST_RUNS, TIME_S, attribute_failures
from harness.checks.startup.trials import answer_of
from harness.checks.startup.attribution_words import attribution_words
from harness.checks.startup.launch import threads_of
from harness.serving.scenarios import INITIALIZATIONS
from harness.machine import clock

Ends = Mapping[str, Outcome]
Release = Callable[[str, frozenset[str], int], Ends]
"""(side, models of a process, its threads) -> what becomes of those who do not complete."""

KINDS = {Outcome.HANG: "hang", Outcome.CRASH: "crash", Outcome.RUNTIME_ERROR: "concurrent_error"}
HANG, CRASH = Outcome.HANG, Outcome.CRASH


def runner_of(release: Release) -> Runner:
    def answer(request: ProbeRequest) -> ProbeResult:
        assert request.script is not None
        names = [run.artifact.model for run in request.runs]
        models = frozenset(map(model_of, names))
        ends = release(request.side, models, len(request.script.threads))
        found = [result(name, ends.get(model_of(name), Outcome.COMPLETED)) for name in names]
        end = next(iter(ends.values()), Outcome.COMPLETED)
        return probed(*found, side=request.side, outcome=end if end is not Outcome.RUNTIME_ERROR else Outcome.COMPLETED)

    return Runner(answer)


def failing(
    failures: Mapping[str, Outcome],
    *,
    members: Sequence[str] = "ABCD",
    scenarios: Sequence[str] = ("concurrent",),
    before: Mapping[str, Outcome] | None = None,
    statuses: Mapping[str, Status] | None = None,
) -> Decided:
    """Return facts in which ``failures`` fails in every scenario; ``before`` did so in the old release (too)."""
    facts = known(planned(*members, scenarios=("alone", *scenarios)))
    before, statuses = before or {}, statuses or {}
    ends = {**before, **failures}
    verdicts, items = {}, {}
    for name in members:
        cells = []
        for scenario in scenarios:
            status = Status.FAIL if name in failures else Status.SAME_FAIL if name in before else Status.PASS
            findings = (Finding(kind=KINDS[ends[name]], message="it fails"),) if name in ends else ()
            cell = Cell(name, scenario).id
            status = statuses.get(name, status)
            cells.append(CellVerdict(cell=cell, model=name, scenario=scenario, status=status, findings=findings))
            now = ends.get(name, Outcome.COMPLETED)
            items[name, scenario] = initialized(now, before.get(name, Outcome.COMPLETED), name)
        verdicts[name] = tuple(cells)
    runs = [
        GroupRun(scenario=scenario, group="misc", side=side, members=tuple(members), rounds=())
        for scenario in scenarios
        for side in ("new", "old")
    ]
    return replace(facts, verdicts=verdicts, initialized=items, group_runs=tuple(runs))


def attributed(facts: Decided, runner: Runner) -> Mapping[tuple[str, str], Attribution]:
    return attribute_failures(facts, effects(runner)).attributions


def story(facts: Attributed, name: str, scenario: str = "concurrent") -> str:
    return attribution_words(facts.attributions[name, scenario], scenario)


def pair(side: str, models: frozenset[str], threads: int) -> Ends:
    """B and C hold each other up in the new release."""
    return dict.fromkeys("BC", HANG) if side == "new" and {"B", "C"} <= models and threads > 1 else {}


def test_attribution_is_kept_of_the_models_that_failed() -> None:
    facts = attribute_failures(failing({"B": HANG, "C": HANG}), effects(runner_of(pair)))
    assert set(facts.attributions) == {("B", "concurrent"), ("C", "concurrent")}
    assert facts.attributions["B", "concurrent"].minimal_models == ("B", "C")
    assert story(facts, "B") == story(facts, "C")
    assert story(facts, "B").startswith("Needs 2 models at once in 2 threads, B and C: each alone passes")


def test_nothing_is_asked_where_nothing_failed() -> None:
    runner = runner_of(pair)
    facts = failing({})
    assert continued(facts, attribute_failures(facts, effects(runner))) == facts
    assert runner.asked == []


def old_a_and_pair(side: str, models: frozenset[str], threads: int) -> Ends:
    """A hangs by itself in both releases, and whoever else is there cannot be seen then."""
    return {"A": HANG} if "A" in models else pair(side, models, threads)


def test_model_that_hangs_in_both_releases_is_left_out_of_the_trials() -> None:
    runner = runner_of(old_a_and_pair)
    facts = attribute_failures(failing({"B": HANG, "C": HANG}, before={"A": HANG}), effects(runner))
    together = [{model_of(run.artifact.model) for run in request.runs} for request in runner.asked]
    assert all(models == {"A"} or "A" not in models for models in together)
    found = facts.attributions["B", "concurrent"]
    assert (found.minimal_models, found.left_out) == (("B", "C"), ("A",))
    assert story(facts, "B").endswith("the old release passes 7 of 7 runs. Asked without A, known to fail before.")
    assert story(facts, "A") == "The old release fails too (3 of 3 runs), so this is no regression."


@pytest.mark.parametrize("status", [Status.XFAIL, Status.PASS])
def test_model_whose_failure_is_waived_or_shows_in_the_old_release_only_is_left_out_too(status: Status) -> None:
    facts = failing({"B": HANG, "C": HANG}, before={"A": HANG}, statuses={"A": status})
    found = attributed(facts, runner_of(old_a_and_pair))
    assert found["B", "concurrent"].left_out == ("A",)


def test_model_that_fails_newly_is_never_left_out_though_it_fails_otherwise_in_the_old_release() -> None:
    facts = failing({"A": HANG}, before={"A": CRASH})
    found = attributed(facts, runner_of(lambda side, models, threads: {"A": HANG} if "A" in models else {}))
    assert (found["A", "concurrent"].minimal_models, found["A", "concurrent"].left_out) == (("A",), ())


def test_failure_of_another_model_is_not_the_one_to_explain() -> None:
    """D crashes wherever it is without A. Who only saw a failure would end with D, or with A and D kept."""

    def release(side: str, models: frozenset[str], threads: int) -> Ends:
        return {"D": CRASH} if "D" in models and "A" not in models else pair(side, models, threads)

    found = attributed(failing({"B": HANG, "C": HANG}), runner_of(release))["B", "concurrent"]
    assert found.minimal_models == ("B", "C")
    assert found.whole.outcomes == ("hang",)


def test_trials_without_a_failing_model_are_not_run() -> None:
    runner = runner_of(lambda side, models, threads: {"B": HANG} if {"B", "C"} <= models and side == "new" else {})
    found = attributed(failing({"B": HANG}), runner)["B", "concurrent"]
    assert found.minimal_models == ("B", "C")
    assert all("B" in models for models in runner.models("new"))


SICK = {"m": frozenset({HANG})}


@pytest.mark.parametrize(
    ("probe", "expected", "outcome"),
    [
        (probed(result("m"), result("n")), Answer.PASS, ""),
        (probed(result("m", HANG), result("n", CRASH), outcome=HANG), Answer.FAIL, "hang"),
        (probed(result("m"), result("m#1", HANG), outcome=HANG), Answer.FAIL, "hang"),
        (probed(result("m", CRASH), result("n"), outcome=CRASH), Answer.FAIL, "crash of m"),
        (probed(result("m"), result("n", HANG), outcome=HANG), Answer.FAIL, "hang of n"),
        (probed(result("m"), result("n"), outcome=HANG), Answer.FAIL, "hang"),
        (probed(result("m"), result("n"), outcome=CRASH), Answer.FAIL, "crash of the process"),
        (probed(result("m"), result("n", Outcome.STARVED), outcome=Outcome.STARVED), Answer.UNRESOLVED, "starved"),
        (probed(result("m", Outcome.NOT_RUN), outcome=Outcome.PROTOCOL_ERROR), Answer.UNRESOLVED, "protocol_error"),
        (probed(result("m", Outcome.RUNTIME_ERROR), result("n")), Answer.FAIL, "runtime_error of m"),
    ],
)
def test_only_a_failing_model_with_its_own_outcome_shows_the_failure(
    probe: ProbeResult, expected: Answer, outcome: str
) -> None:
    answer = answer_of([probe], SICK)
    assert (answer.answer, answer.outcome) == (expected, outcome)


def test_one_of_several_processes_is_enough() -> None:
    fine, hung = probed(result("m")), probed(result("m", HANG), outcome=HANG)
    assert answer_of([fine, hung, fine], SICK).answer is Answer.FAIL


def apart(side: str, models: frozenset[str], threads: int) -> Ends:
    """A hangs by itself in the new release, and so does B."""
    return {name: HANG for name in sorted(models & {"A", "B"})} if side == "new" else {}


def test_failing_model_that_the_answer_does_not_name_is_asked_about_by_itself() -> None:
    facts = attribute_failures(failing({"A": HANG, "B": HANG}), effects(runner_of(apart)))
    assert story(facts, "A").startswith("A fails alone, in one thread")
    assert story(facts, "B").startswith("B fails alone, in one thread")


def test_failing_model_that_does_not_fail_without_the_others_is_reported_to_be_seen_beside_them() -> None:
    """Any two of three hold each other up, so the first two explain themselves and not the third."""

    def release(side: str, models: frozenset[str], threads: int) -> Ends:
        held = sorted(models & set("ABC"))
        return dict.fromkeys(held, HANG) if side == "new" and len(held) > 1 and threads > 1 else {}

    facts = attribute_failures(failing(dict.fromkeys("ABC", HANG)), effects(runner_of(release)))
    (third,) = [name for name in "ABC" if facts.attributions[name, "concurrent"].beside]
    named = tuple(name for name in "ABC" if name != third)
    found = facts.attributions[third, "concurrent"]
    assert (found.beside, found.reproduced, found.whole.fails) == (named, True, 3)
    assert found.rates is not None and (found.rates.new.fails, found.rates.old.passes) == (3, 7)
    assert story(facts, third).startswith(f"Only seen beside {' and '.join(named)}: without them it did not fail again")


def test_failure_that_does_not_come_back_is_said_to_all_who_showed_it() -> None:
    facts = attribute_failures(failing({"A": HANG, "B": HANG}), effects(runner_of(lambda *_: {})))
    assert {found.reproduced for found in facts.attributions.values()} == {False}
    assert story(facts, "A").startswith("Did not fail again in 9 repeats with 4 models in 4 threads")


def test_answer_of_one_scenario_is_the_first_question_of_the_next() -> None:
    runner = runner_of(apart)
    scenarios = ("concurrent", "same_file", "while_serving")
    facts = attribute_failures(failing({"A": HANG}, scenarios=scenarios), effects(runner))
    found = [facts.attributions["A", scenario] for scenario in scenarios]
    assert [(one.as_in, one.minimal_models) for one in found] == [
        ("", ("A",)),
        ("concurrent init", ("A",)),
        ("concurrent init", ("A",)),
    ]
    assert [one.trials for one in found[1:]] == [1, 1]
    assert [one.rates.old.passes for one in found if one.rates is not None] == [7, 7, 7]
    assert "as in concurrent init" in story(facts, "A", "while_serving")


def test_scenario_in_which_the_known_answer_does_not_fail_is_searched_as_ever() -> None:
    def release(side: str, models: frozenset[str], threads: int) -> Ends:
        alone = {"A": HANG} if models == {"A"} and threads == 1 and len(runner.asked) < 9 else {}
        return {"A": HANG} if side == "new" and {"A", "B"} <= models else alone if side == "new" else {}

    runner = runner_of(release)
    facts = attribute_failures(failing({"A": HANG}, scenarios=("concurrent", "same_file")), effects(runner))
    assert facts.attributions["A", "concurrent"].minimal_models == ("A",)
    assert facts.attributions["A", "same_file"].minimal_models == ("A", "B")
    assert facts.attributions["A", "same_file"].as_in == ""


def test_time_for_all_searches_ends_them_but_for_the_first_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(clock, "monotonic_ns", lambda: now[0])

    def slow(side: str, models: frozenset[str], threads: int) -> Ends:
        now[0] += int(TIME_S * 1e9 / 4)
        return pair(side, models, threads)

    facts = failing({"B": HANG, "C": HANG}, members="ABCDEFGH", scenarios=("concurrent", "same_file"))
    done = attribute_failures(facts, effects(runner_of(slow)))
    for scenario in ("concurrent", "same_file"):
        found = done.attributions["B", scenario]
        assert (found.trials, found.time_ended, found.reproduced) == (FIRST_RUNS, True, True)
        assert f"the time for all such searches ended after {FIRST_RUNS} runs" in story(done, "B", scenario)
        assert found.rates is not None
        assert (found.rates.new.fails, found.rates.old.passes) == (3, 7)


def test_who_was_not_asked_about_for_want_of_time_is_reported_so(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(clock, "monotonic_ns", lambda: now[0])

    def slow(side: str, models: frozenset[str], threads: int) -> Ends:
        now[0] += int(TIME_S * 1e9 / 4)
        return apart(side, models, threads)

    done = attribute_failures(failing({"A": HANG, "B": HANG}), effects(runner_of(slow)))
    assert story(done, "A").startswith("A fails alone, in one thread")
    assert story(done, "A").endswith("Fails in 3 of 3 runs; the old release passes 7 of 7 runs.")
    assert story(done, "B") == (
        "Fails beside A, needed or not: whether it fails without them was not settled before the time ended. "
        "In the new release it fails in 3 of 3 runs; the old release passes 7 of 7 runs."
    )


def test_processes_are_asked_as_processes() -> None:
    runner = runner_of(lambda side, models, threads: {"A": HANG} if side == "new" and models == {"A"} else {})
    facts = failing({"A": HANG}, members="A", scenarios=("processes",))
    attributed(facts, runner)
    whole = [request for request in runner.asked if request.beside]
    assert len(whole) % threads_of(facts) == 0
    assert len({request.repeat for request in whole}) == len(whole)
    assert all(request.script == INITIALIZATIONS["processes"].write(["A"], 4) for request in whole)


def test_sequential_initialization_is_reduced_in_one_thread() -> None:
    runner = runner_of(lambda side, models, threads: {"A": HANG} if side == "new" and {"A", "B"} <= models else {})
    facts = attribute_failures(failing({"A": HANG}, scenarios=("sequential",)), effects(runner))
    assert story(facts, "A", "sequential").startswith("Needs 2 models in one process, but no concurrency: A and B")
