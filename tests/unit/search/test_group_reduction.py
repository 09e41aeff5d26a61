"""The reduction of a failing initialization, over simulated ones whose guilt is known."""

from dataclasses import replace

import msgspec
import pytest

from harness.core.diagnosis import Attribution, FailureRates, Answer, SearchAnswer, Tally, Trial
from harness.core.errors import InternalError
from harness.search.delta_debugging import repeats_needed
from harness.search.group_reduction import RUNS_MEASURED, attribute
from harness.checks.startup.attribution_words import attribution_words, rarer_than, time_notes
from harness.checks.startup.attribution_words import unverifiable
from tests.unit.builders.oracles import FAILS, PASSES, Simulated, needs

EIGHT = tuple("ABCDEFGH")
ENOUGH = 1000


def test_single_guilty_model_is_found_by_asking_the_suspect_first() -> None:
    oracle = Simulated(needs("C", threads=1))
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["C"])
    assert found.minimal_models == ("C",)
    assert (found.minimal_threads, found.minimal, found.one_model_suffices) == (1, True, True)
    assert found.needs_concurrency is False
    assert oracle.asked[3] == Trial(models=("C",), threads=1, concurrent=False)
    assert found.trials == len(oracle.asked) == 3 + 1  # whole, the model alone


def test_model_that_fails_only_when_threads_share_it() -> None:
    found = attribute(EIGHT, 4, Simulated(needs("C")), budget=ENOUGH, suspects=["A", "C"])
    assert found.minimal_models == ("C",)
    assert (found.minimal_threads, found.minimal, found.one_model_suffices) == (2, True, True)
    assert found.needs_concurrency is True
    assert found.sequential == Tally(passes=3)


@pytest.mark.parametrize("suspects", [(), ("B",), ("B", "G"), ("G", "H"), EIGHT])
def test_guilty_pair_is_found_whoever_is_suspected(suspects: tuple[str, ...]) -> None:
    found = attribute(EIGHT, 4, Simulated(needs("B", "G")), budget=ENOUGH, suspects=suspects)
    assert found.minimal_models == ("B", "G")
    assert (found.minimal_threads, found.minimal, found.unjudged) == (2, True, ())
    assert found.one_model_suffices is False
    assert found.needs_concurrency is True
    assert found.runs.fails >= 1
    assert not found.budget_ended


def test_suspects_are_asked_together_before_the_set_is_searched() -> None:
    with_hint, without = Simulated(needs("B", "G")), Simulated(needs("B", "G"))
    attribute(EIGHT, 4, with_hint, budget=ENOUGH, suspects=["G", "B"])
    attribute(EIGHT, 4, without, budget=ENOUGH)
    assert Trial(models=("B", "G"), threads=4) in with_hint.asked
    assert len(with_hint.asked) < len(without.asked)


@pytest.mark.parametrize(("suspects", "asked_alone"), [("AB", True), ("ABC", False)])
def test_many_suspects_are_not_asked_one_by_one(suspects: str, asked_alone: bool) -> None:
    oracle = Simulated(needs("B", "G"))
    attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=suspects)
    assert (Trial(models=("A",), threads=1, concurrent=False) in oracle.asked) is asked_alone


@pytest.mark.parametrize(("threads", "at_once"), [(8, 3), (4, 3), (16, 11), (3, 3), (2, 2), (8, 8)])
def test_fewest_threads_are_found(threads: int, at_once: int) -> None:
    oracle = Simulated(needs("B", "G", threads=at_once))
    found = attribute(EIGHT, threads, oracle, budget=ENOUGH)
    assert found.minimal_models == ("B", "G")
    assert (found.minimal_threads, found.minimal) == (at_once, True)
    assert Trial(models=("B", "G"), threads=at_once - 1, concurrent=at_once > 2) in oracle.asked


def test_pair_that_fails_one_after_another_asks_nothing_about_threads() -> None:
    oracle = Simulated(needs("B", "G", threads=1))
    found = attribute(EIGHT, 16, oracle, budget=ENOUGH)
    assert found.minimal_models == ("B", "G")
    assert (found.minimal_threads, found.minimal, found.one_model_suffices) == (1, True, False)
    assert found.needs_concurrency is False
    assert {trial.threads for trial in oracle.asked} == {1, 16}
    assert {trial.concurrent for trial in oracle.asked if trial.threads == 1} == {False}


def test_initialization_in_one_thread_is_reduced_in_one_thread() -> None:
    oracle = Simulated(needs("B", threads=1))
    found = attribute(EIGHT, 1, oracle, budget=ENOUGH, suspects=["B"])
    assert (found.minimal_models, found.minimal_threads, found.minimal) == (("B",), 1, True)
    assert found.needs_concurrency is False
    assert not any(trial.concurrent for trial in oracle.asked)


def test_part_that_fails_otherwise_is_not_followed() -> None:
    """A alone crashes, which is not the hang of A beside B."""

    def oracle(trial: Trial) -> SearchAnswer:
        if trial.models == ("A",):
            return SearchAnswer(answer=Answer.FAIL, outcome="crash")
        return FAILS if {"A", "B"} <= set(trial.models) and trial.threads > 1 else PASSES

    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["A"])
    assert found.minimal_models == ("A", "B")
    assert found.unjudged == ("B",)


@pytest.mark.parametrize("seed", range(12))
def test_flaky_pair_is_never_broken_up(seed: int) -> None:
    """p = 0.3: the search may keep too much (5 % per question), but blames nothing that was not seen to fail."""
    found = attribute(EIGHT, 4, Simulated(needs("B", "G"), rate=0.3, seed=seed), budget=ENOUGH)
    assert found.reproduced
    assert {"B", "G"} <= set(found.minimal_models)
    assert found.one_model_suffices is False
    assert found.needs_concurrency is True
    assert found.whole.fails == 3 or found.whole.runs == RUNS_MEASURED


@pytest.mark.slow
def test_flaky_pair_is_mostly_named_exactly_with_its_rate() -> None:
    found = [attribute(EIGHT, 4, Simulated(needs("B", "G"), rate=0.3, seed=seed), budget=ENOUGH) for seed in range(200)]
    assert sum(one.reproduced is False for one in found) <= 16  # 4 % expected
    assert sum(one.minimal_models == ("B", "G") for one in found) >= 170
    assert 0.25 < sum(one.whole.fails for one in found) / sum(one.whole.judged for one in found) < 0.4


def test_failure_that_does_not_come_back_is_not_attributed() -> None:
    oracle = Simulated(lambda trial: False)
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["A"])
    assert found == Attribution(models=EIGHT, threads=4, reproduced=False, whole=Tally(passes=9), trials=9)
    assert oracle.asked == [Trial(models=EIGHT, threads=4, repeat=repeat) for repeat in range(9)]


def test_whole_that_cannot_be_repeated_is_not_attributed() -> None:
    found = attribute(EIGHT, 4, Simulated(needs("A"), untestable=lambda trial: True), budget=ENOUGH)
    assert found == Attribution(models=EIGHT, threads=4, reproduced=None, whole=Tally(untestable=2), trials=2)


def test_untestable_parts_are_neither_guilty_nor_innocent() -> None:
    """Whatever has G without H cannot be tested, so H stays, and is said to be unjudged."""
    oracle = Simulated(needs("B", "G"), untestable=lambda trial: "G" in trial.models and "H" not in trial.models)
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH)
    assert found.minimal_models == ("B", "G", "H")
    assert found.unjudged == ("H",)
    assert found.minimal


def test_untestable_sequence_leaves_open_whether_concurrency_is_needed() -> None:
    oracle = Simulated(needs("B", "G"), untestable=lambda trial: trial.threads == 1)
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH)
    assert found.needs_concurrency is None
    assert (found.minimal_threads, found.minimal) == (2, False)


def test_untestable_number_of_threads_is_not_taken_for_a_pass() -> None:
    oracle = Simulated(needs("B", "G"), untestable=lambda trial: trial.threads in (2, 3))
    found = attribute(EIGHT, 8, oracle, budget=ENOUGH)
    assert (found.minimal_threads, found.minimal) == (4, False)


def test_budget_of_one_says_that_it_failed_again_and_no_more() -> None:
    found = attribute(EIGHT, 4, Simulated(needs("B", "G")), budget=1)
    assert found == Attribution(
        models=EIGHT,
        threads=4,
        reproduced=True,
        whole=Tally(fails=1, outcomes=("hang",)),
        minimal_models=EIGHT,
        minimal_threads=4,
        runs=Tally(fails=1, outcomes=("hang",)),
        trials=1,
        budget_ended=True,
    )


def test_one_clean_run_is_not_enough_to_say_that_it_does_not_come_back() -> None:
    found = attribute(EIGHT, 4, Simulated(lambda trial: False), budget=1)
    assert (found.reproduced, found.minimal_models, found.budget_ended) == (None, (), True)


def test_every_budget_tells_the_truth() -> None:
    enough = attribute(EIGHT, 8, Simulated(needs("B", "G", threads=3)), budget=ENOUGH).trials
    for budget in range(1, enough):
        oracle = Simulated(needs("B", "G", threads=3))
        found = attribute(EIGHT, 8, oracle, budget=budget)
        assert found.trials == len(oracle.asked) == budget
        assert found.budget_ended
        assert oracle.guilty(Trial(models=found.minimal_models, threads=found.minimal_threads))
        assert not found.minimal or (found.minimal_models, found.minimal_threads) == (("B", "G"), 3)
        assert found.one_model_suffices in (None, False)
        assert found.needs_concurrency in (None, True)
    assert not attribute(EIGHT, 8, Simulated(needs("B", "G", threads=3)), budget=enough).budget_ended


def test_same_answers_give_the_same_questions() -> None:
    """So an interrupted search over an oracle that remembers goes on by being started again."""
    one, other = (Simulated(needs("B", "G"), rate=0.5, seed=5) for _ in range(2))
    found = attribute(EIGHT, 4, one, budget=20)
    again = attribute(EIGHT, 4, other, budget=ENOUGH)
    assert found.budget_ended and not again.budget_ended
    assert other.asked[:20] == one.asked


def test_same_file_loaded_several_times_is_counted() -> None:
    oracle = Simulated(lambda trial: trial.models.count("A") >= 2 and trial.threads >= 2)
    found = attribute(("A",) * 6, 6, oracle, budget=ENOUGH)
    assert found.minimal_models == ("A", "A")
    assert (found.minimal_threads, found.minimal) == (2, True)


def test_progress_sees_every_run() -> None:
    seen: list[tuple[Trial, SearchAnswer]] = []
    oracle = Simulated(needs("B", "G"))
    attribute(EIGHT, 4, oracle, budget=ENOUGH, progress=lambda trial, answer: seen.append((trial, answer)))
    assert [trial for trial, _ in seen] == oracle.asked
    assert seen[0] == (Trial(models=EIGHT, threads=4), FAILS)
    assert {answer for _, answer in seen} == {FAILS, PASSES}


def test_models_without_a_suspect_cannot_show_the_failure_and_are_not_asked() -> None:
    oracle = Simulated(needs("B", "G"))
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["B"])
    assert found.minimal_models == ("B", "G")
    assert all("B" in trial.models for trial in oracle.asked)


def test_failure_of_another_outcome_is_never_the_one_that_is_searched_for() -> None:
    """Everything crashes that has C, whether B hangs or not."""

    def oracle(trial: Trial) -> SearchAnswer:
        if "C" in trial.models and len(trial.models) < 8:
            return SearchAnswer(answer=Answer.FAIL, outcome="crash of C")
        return FAILS if {"B", "G"} <= set(trial.models) and trial.threads > 1 and trial.side == "new" else PASSES

    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["B"], outcomes=["hang"])
    assert found.minimal_models == ("B", "G")


def test_whole_that_only_fails_otherwise_is_not_attributed() -> None:
    answer = SearchAnswer(answer=Answer.FAIL, outcome="crash of C")
    found = attribute(EIGHT, 4, lambda trial: answer, budget=ENOUGH, suspects=["B"], outcomes=["hang"])
    assert (found.reproduced, found.minimal_models) == (None, ())
    assert found.whole == Tally(differently=2, outcomes=("crash of C",))


def test_outcome_of_another_failure_does_not_become_the_one_that_is_searched_for() -> None:
    def oracle(trial: Trial) -> SearchAnswer:
        otherwise = len(trial.models) < 8 or trial.repeat == 0
        return SearchAnswer(answer=Answer.FAIL, outcome="crash of C") if otherwise else FAILS

    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["B"], outcomes=["hang"])
    assert found.reproduced
    assert found.minimal_models == EIGHT


KNOWN = replace(
    attribute(EIGHT, 4, Simulated(needs("C", threads=1)), budget=ENOUGH, suspects=["C"]), as_in="concurrent init"
)


def test_what_was_found_already_is_asked_first_and_ends_the_search() -> None:
    oracle = Simulated(needs("C", threads=1))
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["C", "D"], known=KNOWN)
    assert oracle.asked == [Trial(models=("C",), threads=1, concurrent=False)]
    assert (found.minimal_models, found.as_in, found.trials) == (("C",), "concurrent init", 1)
    assert (found.reproduced, found.one_model_suffices, found.needs_concurrency) == (True, True, False)
    assert found.runs == Tally(fails=1, outcomes=("hang",))


def test_what_was_found_in_several_threads_says_nothing_about_one() -> None:
    known = attribute(EIGHT, 4, Simulated(needs("C")), budget=ENOUGH, suspects=["C"])
    oracle = Simulated(needs("C"))
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["C"], known=replace(known, as_in="shared module"))
    assert oracle.asked == [Trial(models=("C",), threads=2)]
    assert (found.needs_concurrency, found.as_in) == (None, "shared module")


def test_what_passes_here_is_searched_as_ever() -> None:
    oracle = Simulated(needs("C", "D"))
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["C"], known=KNOWN)
    assert (found.minimal_models, found.as_in) == (("C", "D"), "")
    assert [trial.models for trial in oracle.asked[:6]] == [("C",)] * 5 + [EIGHT]


def test_time_ends_a_search_between_two_questions() -> None:
    oracle = Simulated(needs("B", "G"))
    found = attribute(EIGHT, 4, oracle, budget=ENOUGH, suspects=["B", "G"], stop=lambda spent: spent >= 5)
    assert found.trials == len(oracle.asked) == 5
    assert (found.budget_ended, found.time_ended, found.reproduced) == (True, True, True)
    assert not attribute(EIGHT, 4, Simulated(needs("B")), budget=5, stop=lambda spent: False).time_ended


@pytest.mark.parametrize(
    ("models", "threads", "suspects", "budget"),
    [((), 2, (), 9), (EIGHT, 0, (), 9), (EIGHT, 2, ("Z",), 9), (EIGHT, 2, (), 0)],
)
def test_nonsense_is_refused(models: tuple[str, ...], threads: int, suspects: tuple[str, ...], budget: int) -> None:
    with pytest.raises(InternalError):
        attribute(models, threads, Simulated(needs("A")), budget=budget, suspects=suspects)


def rates(new: Tally = Tally(fails=3), old: Tally = Tally()) -> FailureRates:
    return FailureRates(new=new, old=old)


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
    runs=Tally(fails=3),
    sequential=Tally(passes=3),
    rates=rates(old=Tally(passes=7)),
    trials=30,
)
ALONE = replace(PAIR, minimal_models=("A",), minimal_threads=1, one_model_suffices=True, needs_concurrency=False)
BESIDE = Attribution(models=("C", "D"), threads=4, reproduced=True, whole=Tally(fails=3), beside=("A", "B"))
SMALLEST_SEEN = replace(
    PAIR,
    minimal_threads=4,
    minimal=False,
    one_model_suffices=None,
    needs_concurrency=None,
    rates=FailureRates(),
    runs=Tally(fails=1),
    budget_ended=True,
)
SHARED = replace(PAIR, minimal_models=("A",), one_model_suffices=True)
NEEDS = "Needs 2 models at once in 2 threads, A and B: each alone passes; one after another they pass. "
END = " Fails in 3 of 3 runs; the old release passes 7 of 7 runs."

WORDS = {
    "pair": (
        PAIR,
        NEEDS + END[1:],
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
    "shared": (
        SHARED,
        "A fails with no other model beside it, but only when 2 threads bring up a copy of it each at once." + END,
    ),
    "shared, one thread untestable": (
        replace(SHARED, needs_concurrency=None, minimal=False),
        "A fails with no other model beside it, when 2 threads bring up a copy of it each at once; "
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
    "old too": (
        replace(PAIR, rates=rates(old=Tally(fails=1))),
        NEEDS + "Fails in 3 of 3 runs; the old release fails too (1 of 1 run), so this is no regression.",
    ),
    "old otherwise": (
        replace(PAIR, rates=rates(old=Tally(differently=7, outcomes=("crash",)))),
        NEEDS + "Fails in 3 of 3 runs; the old release fails in another way (crash).",
    ),
    "old untestable": (
        replace(PAIR, rates=rates(old=Tally(untestable=2))),
        NEEDS + "Fails in 3 of 3 runs; the old release could not be tested.",
    ),
    "old not decided": (
        replace(PAIR, rates=rates(Tally(fails=1, passes=9), Tally(passes=30))),
        NEEDS
        + "Fails in 1 of 10 runs; the old release passes 30 of 30 runs, too few to say that this is a regression.",
    ),
    "old less often": (
        replace(PAIR, rates=rates(Tally(fails=9), Tally(fails=1, passes=9))),
        NEEDS + "Fails in 9 of 9 runs; the old release fails less often (1 of 10 runs).",
    ),
    "both, by itself": (
        Attribution(models=("A",), threads=4, rates=rates(Tally(), Tally(fails=3))),
        "The old release fails too (3 of 3 runs), so this is no regression.",
    ),
    "no old release": (
        replace(PAIR, rates=None),
        NEEDS + "Fails in 3 of 3 runs.",
    ),
    "budget, some": (
        replace(SMALLEST_SEEN, minimal_models=("A", "B", "C"), trials=12),
        "The least that was seen to fail is 3 of 4 models (A, B and C) in 4 threads; the budget of 12 runs ended before "
        "it was known whether less does. "
        "Fails in 1 of 1 run; whether the old release fails too was not settled before the time ended.",
    ),
    "not reproduced": (
        Attribution(models=("A", "B"), threads=4, reproduced=False, whole=Tally(passes=9), trials=9),
        "Did not fail again in 9 repeats with 2 models in 4 threads: if it is a race, it shows in at most 29 % of runs "
        "(95 % confidence).",
    ),
    "not reproduced, and not in the old release either": (
        Attribution(
            models=("A", "B"),
            threads=4,
            reproduced=False,
            whole=Tally(passes=9),
            rates=rates(Tally(passes=30), Tally(passes=30)),
        ),
        "Did not fail again in 9 repeats with 2 models in 4 threads: if it is a race, it shows in at most 29 % of runs "
        "(95 % confidence). In the new release it fails in 0 of 30 runs; the old release passes 30 of 30 runs, too few "
        "to say that this is a regression.",
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
    "as in another scenario": (
        replace(ALONE, as_in="concurrent init"),
        "A fails alone, in one thread: neither another model nor concurrency is needed, as in concurrent init." + END,
    ),
    "without those that were known": (
        replace(PAIR, left_out=("X", "Y")),
        NEEDS + END[1:] + " Asked without X and Y, known to fail before.",
    ),
    "beside": (
        replace(BESIDE, apart=Tally(passes=9)),
        "Only seen beside A and B: without them it did not fail again in 9 repeats with 2 models in 4 threads.",
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
        ("while_serving", 4, "while 2 other copies of it serve"),
        ("processes", 4, "when 4 processes bring it up at once"),
        ("reinit", 2, "when 2 threads bring it up and tear it down again and again"),
        ("rolling", 2, "when it is replaced while another copy of it serves"),
        ("thread_per_request", 2, "when 2 threads answer its requests in new threads"),
        ("thread_counts", 2, "when 2 threads change the number of intra-op threads between its calls"),
        ("growing_shapes", 2, "when 2 threads call it with larger and larger inputs"),
        ("prefork", 2, "in processes that are forked after it was called"),
        ("prefork_cold", 2, "in processes that are forked after it was loaded"),
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
def test_mitigation_can_only_be_verified_for_what_fails_again(found: Attribution, why: str) -> None:
    assert unverifiable(found) == why


@pytest.mark.parametrize("runs", [1, 9, 58, 300])
def test_a_rate_that_large_would_have_shown_with_the_confidence_named(runs: int) -> None:
    assert (1 - rarer_than(runs)) ** runs == pytest.approx(0.05)


def test_what_searches_have_cost_that_ended_with_their_time_is_said_once() -> None:
    late = Attribution(models=("A",), threads=4, budget_ended=True, time_ended=True)
    (note,) = time_notes({("A", "concurrent"): late, ("B", "concurrent"): late, ("A", "shared"): late})
    assert "what it takes for A and B to fail" in note
    assert time_notes({("A", "alone"): replace(late, time_ended=False)}) == ()
