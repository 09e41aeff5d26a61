"""The words for each way in which the reduction of a failing initialization can end."""

from dataclasses import replace

import pytest

from harness.domain.diagnosis import Attribution, Tally
from harness.startup.attribution import attribution_words, rarer_than, unverifiable

PAIR = Attribution(
    models=("A", "B", "C", "D"),
    threads=4,
    reproduced=True,
    whole=Tally(fails=3),
    minimal_models=("A", "B"),
    minimal_threads=2,
    minimal=True,
    one_model_suffices=False,
    needs_concurrency=True,
    fails_in_old=False,
    runs=Tally(fails=3),
    sequential=Tally(passes=3),
    old=Tally(passes=3),
    trials=30,
)
ALONE = replace(PAIR, minimal_models=("A",), minimal_threads=1, one_model_suffices=True, needs_concurrency=False)
BESIDE = Attribution(models=("C", "D"), threads=4, reproduced=True, whole=Tally(fails=3), beside=("A", "B"))
SHARED = replace(PAIR, minimal_models=("A",), one_model_suffices=True)
END = " Fails in 3 of 3 runs; the old release passes 3 of 3 runs."

WORDS = {
    "pair": (
        PAIR,
        "Needs 2 models at once in 2 threads, A and B: each alone passes; one after another they pass." + END,
    ),
    "three": (
        replace(PAIR, minimal_models=("A", "B", "D"), minimal_threads=3),
        "Needs 3 models at once in 3 threads, A, B and D: without any one of them it passes; "
        "one after another they pass." + END,
    ),
    "many": (
        replace(PAIR, minimal_models=tuple("ABCDEFGH")),
        "Needs 8 models at once in 2 threads, A, B, C, D and 4 more: without any one of them it passes; "
        "one after another they pass." + END,
    ),
    "pair, one after another": (
        replace(PAIR, minimal_threads=1, needs_concurrency=False),
        "Needs 2 models in one process, but no concurrency: A and B, one after another; each alone passes." + END,
    ),
    "alone": (
        replace(SHARED, minimal_threads=1, needs_concurrency=False),
        "A fails alone, in one thread: neither another model nor concurrency is needed." + END,
    ),
    "shared": (
        SHARED,
        "A fails with no other model beside it, but only when 2 threads bring up a copy of it each at once." + END,
    ),
    "shared, one thread untestable": (
        replace(SHARED, needs_concurrency=None, minimal=False),
        "A fails with no other model beside it, when 2 threads bring up a copy of it each at once; "
        "whether one thread is enough could not be tested." + END,
    ),
    "pair, one thread untestable": (
        replace(PAIR, needs_concurrency=None, minimal=False),
        "Needs 2 models at once in 2 threads, A and B: each alone passes; "
        "whether one thread is enough could not be tested." + END,
    ),
    "pair, threads untestable": (
        replace(PAIR, minimal_threads=4, minimal=False),
        "Needs 2 models at once in 4 threads, A and B: each alone passes; one after another they pass; "
        "whether fewer threads are enough could not be tested." + END,
    ),
    "unjudged": (
        replace(PAIR, minimal_models=("A", "B", "D"), unjudged=("A", "D")),
        "Needs 3 models at once in 2 threads, A, B and D: whether it fails without A or D could not be tested; "
        "one after another they pass." + END,
    ),
    "flaky": (
        replace(PAIR, runs=Tally(fails=3, passes=7, untestable=1), old=Tally(passes=11)),
        "Needs 2 models at once in 2 threads, A and B: each alone passes; one after another they pass. "
        "Fails in 3 of 10 runs; the old release passes 11 of 11 runs.",
    ),
    "old too": (
        replace(PAIR, fails_in_old=True, old=Tally(fails=1)),
        "Needs 2 models at once in 2 threads, A and B: each alone passes; one after another they pass. "
        "Fails in 3 of 3 runs; the old release fails too (1 of 1 run), so this is no regression.",
    ),
    "old otherwise": (
        replace(PAIR, fails_in_old=None, old=Tally(differently=2, outcomes=("crash",))),
        "Needs 2 models at once in 2 threads, A and B: each alone passes; one after another they pass. "
        "Fails in 3 of 3 runs; the old release fails in another way (crash).",
    ),
    "old untestable": (
        replace(PAIR, fails_in_old=None, old=Tally(untestable=2)),
        "Needs 2 models at once in 2 threads, A and B: each alone passes; one after another they pass. "
        "Fails in 3 of 3 runs; the old release could not be tested.",
    ),
    "old not settled": (
        replace(PAIR, fails_in_old=None, old=Tally(passes=1, untestable=1), budget_ended=True),
        "Needs 2 models at once in 2 threads, A and B: each alone passes; one after another they pass. "
        "Fails in 3 of 3 runs; whether the old release fails too was not settled before the budget ended.",
    ),
    "budget, some": (
        replace(
            PAIR,
            minimal_models=("A", "B", "C"),
            minimal_threads=4,
            minimal=False,
            one_model_suffices=None,
            needs_concurrency=None,
            fails_in_old=None,
            old=Tally(),
            runs=Tally(fails=1),
            trials=12,
            budget_ended=True,
        ),
        "The least that was seen to fail is 3 of 4 models (A, B and C) in 4 threads; the budget of 12 runs ended before "
        "it was known whether less does. "
        "Fails in 1 of 1 run; whether the old release fails too was not settled before the budget ended.",
    ),
    "budget of one": (
        replace(
            PAIR,
            minimal_models=PAIR.models,
            minimal_threads=4,
            minimal=False,
            one_model_suffices=None,
            needs_concurrency=None,
            fails_in_old=None,
            old=Tally(),
            runs=Tally(fails=1),
            trials=1,
            budget_ended=True,
        ),
        "The least that was seen to fail is all 4 models (A, B, C and D) in 4 threads; the budget of 1 run ended before "
        "it was known whether less does. "
        "Fails in 1 of 1 run; whether the old release fails too was not settled before the budget ended.",
    ),
    "not reproduced": (
        Attribution(models=("A", "B"), threads=4, reproduced=False, whole=Tally(passes=9), trials=9),
        "Did not fail again in 9 repeats with 2 models in 4 threads: if it is a race, it shows in at most 29 % of runs "
        "(95 % confidence).",
    ),
    "not repeated": (
        Attribution(models=("A", "B"), threads=4, whole=Tally(passes=1, untestable=2), trials=3),
        "Not attributed: it could not be repeated (2 of 3 runs untestable).",
    ),
    "fails otherwise": (
        Attribution(models=("A", "B"), threads=4, whole=Tally(differently=2, outcomes=("crash of B",)), trials=2),
        "Not attributed: 2 of 2 runs failed in another way (crash of B).",
    ),
    "time before a failure": (
        Attribution(models=("A",), threads=4, whole=Tally(passes=2), trials=2, budget_ended=True, time_ended=True),
        "Not attributed: the time for all such searches ended after 2 runs, before it could be seen to fail again with "
        "1 model in 4 threads.",
    ),
    "time, some": (
        replace(
            PAIR,
            minimal_models=("A", "B", "C"),
            minimal_threads=4,
            minimal=False,
            fails_in_old=None,
            runs=Tally(fails=1),
            old=Tally(),
            trials=5,
            budget_ended=True,
            time_ended=True,
        ),
        "The least that was seen to fail is 3 of 4 models (A, B and C) in 4 threads; the time for all such searches "
        "ended after 5 runs, before it was known whether less does. "
        "Fails in 1 of 1 run; whether the old release fails too was not settled before the time ended.",
    ),
    "as in another scenario": (
        replace(ALONE, as_in="concurrent init", fails_in_old=None, runs=Tally(fails=1), old=Tally()),
        "A fails alone, in one thread: neither another model nor concurrency is needed, as in concurrent init. "
        "Fails in 1 of 1 run; nothing else was asked again.",
    ),
    "in threads, as in another scenario": (
        replace(SHARED, needs_concurrency=None, as_in="concurrent init", fails_in_old=None, runs=Tally(fails=1)),
        "A fails with no other model beside it, when 2 threads bring up a copy of it each at once, as in "
        "concurrent init. Fails in 1 of 1 run; nothing else was asked again.",
    ),
    "without those that were known": (
        replace(PAIR, left_out=("X", "Y")),
        "Needs 2 models at once in 2 threads, A and B: each alone passes; one after another they pass."
        + END
        + " Asked without X and Y, known to fail before.",
    ),
    "beside": (
        replace(BESIDE, apart=Tally(passes=9)),
        "Only seen beside A and B: without them it did not fail again in 9 repeats with 2 models in 4 threads.",
    ),
    "beside, untestable": (
        BESIDE,
        "Fails beside A and B, needed or not: whether it fails without them was not settled.",
    ),
    "beside, late": (
        replace(BESIDE, budget_ended=True, time_ended=True),
        "Fails beside A and B, needed or not: whether it fails without them was not settled before the time ended.",
    ),
    "budget before a failure": (
        Attribution(models=("A",), threads=4, whole=Tally(passes=2), trials=2, budget_ended=True),
        "Not attributed: the budget of 2 runs ended before it could be seen to fail again with 1 model in 4 threads.",
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_words(case: str) -> None:
    found, words = WORDS[case]
    assert attribution_words(found) == words


@pytest.mark.parametrize(
    ("scenario", "threads", "words"),
    [
        ("shared", 2, "when 2 threads use it at once"),
        ("same_file", 3, "when 3 threads bring up a copy of it each at once"),
        ("while_serving", 2, "while another copy of it serves"),
        ("while_serving", 3, "while another copy of it serves"),
        ("while_serving", 4, "while 2 other copies of it serve"),
        ("processes", 4, "when 4 processes bring it up at once"),
        ("reinit", 2, "when 2 threads bring it up and tear it down again and again"),
    ],
)
def test_what_threads_do_with_one_model_is_the_scenarios(scenario: str, threads: int, words: str) -> None:
    found = attribution_words(replace(SHARED, minimal_threads=threads), scenario)
    assert found == f"A fails with no other model beside it, but only {words}." + END


def test_scenario_of_processes_is_reported_in_processes() -> None:
    words = attribution_words(replace(PAIR, minimal=False), "processes")
    assert words.startswith("Needs 2 models at once in 2 processes, A and B")
    assert "whether fewer processes are enough" in words
    once = Attribution(models=("A",), threads=1, reproduced=False, whole=Tally(passes=9))
    assert "with 1 model in 1 process:" in attribution_words(once, "processes")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (PAIR, ""),
        (WORDS["not reproduced"][0], "cannot be verified: the failure did not show again in 9 repeats"),
        (WORDS["not repeated"][0], "cannot be verified: the failure was not seen again"),
    ],
)
def test_cure_can_only_be_verified_for_what_fails_again(found: Attribution, why: str) -> None:
    assert unverifiable(found) == why


@pytest.mark.parametrize("runs", [1, 9, 58, 300])
def test_a_rate_that_large_would_have_shown_with_the_confidence_named(runs: int) -> None:
    assert (1 - rarer_than(runs)) ** runs == pytest.approx(0.05)


def test_no_run_bounds_nothing() -> None:
    assert rarer_than(0) == 1
