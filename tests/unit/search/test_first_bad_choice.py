"""The search for the first bad release, against simulated releases whose answers are known."""

import itertools
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.releases import Conclusion, Ending, ReleaseAnswer
from harness.search.first_bad_choice import (
    Line,
    conclude,
    good_again,
    most_builds,
    most_questions,
    next_likely,
    next_question,
)

GOOD, BAD, UNTESTABLE = ReleaseAnswer.GOOD, ReleaseAnswer.BAD, ReleaseAnswer.UNTESTABLE


@dataclass
class Simulated:
    """A search over releases ``0 ... n - 1`` of which ``first_bad`` and all later ones are bad.

    Both ends are built already, as after the run that showed the red cell. ``ahead``: every environment that the rule
    allows to be built ahead is built, whether it is needed or not: the worst that a prefetch can do.
    """

    n: int
    first_bad: int
    untestable: Collection[int] = ()
    built_before: Collection[int] = ()
    ahead: bool = False
    limit: int | None = None
    asked: list[str] = field(default_factory=list)
    built: set[str] = field(default_factory=set)

    def run(self) -> Conclusion:
        names = tuple(map(str, range(self.n)))
        limit = most_builds(self.n) if self.limit is None else self.limit
        ready = {"0", names[-1], *map(str, self.built_before)}
        answers: dict[str, ReleaseAnswer] = {}

        def line() -> Line:
            left = limit - len(self.built)
            built = ready | self.built
            return Line(releases=names, answers=answers, ready=built, builds_left=left)

        while (name := next_question(line())) is not None:
            assert name not in answers
            likely = next_likely(line(), name) if self.ahead else ()
            self.asked.append(name)
            self.built |= {name} - ready
            self.built |= set(likely)
            answers[name] = self.truth(int(name))
        return conclude(line())

    def truth(self, place: int) -> ReleaseAnswer:
        if place in self.untestable:
            return UNTESTABLE
        return BAD if place >= self.first_bad else GOOD


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 16, 17, 20, 32, 33])
def test_every_position_is_found_within_the_promised_questions_and_builds(n: int, ahead: bool) -> None:
    for first_bad in range(1, n):
        search = Simulated(n=n, first_bad=first_bad, ahead=ahead)
        found = search.run()
        assert (found.ending, found.last_good, found.first_bad) == (
            Ending.FOUND,
            str(first_bad - 1),
            str(first_bad),
        )
        assert len(search.asked) <= most_questions(n)
        assert len(search.built) <= most_builds(n)


def test_bar_of_the_issue_at_most_5_environments_for_20_releases() -> None:
    assert (most_builds(20), most_questions(20)) == (5, 7)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.slow
def test_untestable_releases_are_never_taken_for_bad_and_the_bar_of_builds_holds(count: int, ahead: bool) -> None:
    """All positions among 20 with one untestable one anywhere, or some pairs: builds that could not be tested count."""
    one_of = 0
    chosen = list(itertools.combinations(range(1, 19), count))
    for first_bad in range(1, 20):
        for untestable in random.Random(first_bad).sample(chosen, 18):
            search = Simulated(n=20, first_bad=first_bad, untestable=untestable, ahead=ahead)
            found = search.run()
            assert len(search.built) <= 5
            assert len(search.asked) - len(set(search.asked) & set(map(str, untestable))) <= most_questions(20)
            truth = str(first_bad)
            if found.ending is Ending.FOUND:
                assert found.first_bad == truth
            else:
                one_of += 1
                assert found.ending is Ending.ONE_OF
                assert truth in found.one_of
                assert found.one_of[-1] == found.first_bad
                assert set(found.one_of[:-1]) == {*found.untestable, *found.not_asked}
    assert one_of > 0


@given(st.data())
@settings(max_examples=100)
def test_with_enough_builds_only_untestable_releases_leave_doubt(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 24))
    first_bad = data.draw(st.integers(1, n - 1))
    inner = st.integers(1, max(1, n - 2))
    untestable = {place for place in data.draw(st.sets(inner)) if place < n - 1}
    built_before = {place for place in data.draw(st.sets(inner)) if place < n - 1}
    search = Simulated(n=n, first_bad=first_bad, untestable=untestable, built_before=built_before, limit=n)
    found = search.run()
    assert not found.not_asked
    assert str(first_bad) in (found.one_of or (found.first_bad,))
    assert set(found.one_of[:-1]) <= set(map(str, untestable))
    assert all(int(name) in untestable for name in found.untestable)
    assert len(search.asked) == len(set(search.asked))


@given(st.integers(3, 24), st.data())
@settings(max_examples=60)
def test_environments_that_are_there_save_builds_and_cost_no_question_too_many(n: int, data: st.DataObject) -> None:
    first_bad = data.draw(st.integers(1, n - 1))
    built_before = data.draw(st.sets(st.integers(1, n - 2)))
    search = Simulated(n=n, first_bad=first_bad, built_before=built_before)
    found = search.run()
    assert (found.ending, found.first_bad) == (Ending.FOUND, str(first_bad))
    assert len(search.asked) <= most_questions(n)
    assert len(search.built) <= min(most_builds(n), n - 2 - len(built_before))


def line(n: int, *, ready: Collection[int] = (), builds_left: int = 99, **answers: ReleaseAnswer) -> Line:
    """``r3=GOOD``: release 3 is good; the ends are known and built."""
    known = {"0": GOOD, str(n - 1): BAD, **{name[1:]: answer for name, answer in answers.items()}}
    return Line(
        releases=tuple(map(str, range(n))),
        answers=known,
        ready={"0", str(n - 1), *map(str, ready)},
        builds_left=builds_left,
    )


def test_both_ends_come_first_and_a_wrong_end_ends_the_search() -> None:
    names = ("a", "b", "c")
    assert next_question(Line(releases=names, answers={})) == "a"
    assert next_question(Line(releases=names, answers={"a": GOOD})) == "c"
    assert next_question(Line(releases=names, answers={"a": GOOD, "c": BAD})) == "b"
    ends: Mapping[str, dict[str, ReleaseAnswer]] = {
        "old not good": {"a": BAD},
        "end untestable": {"a": UNTESTABLE},
        "not bad": {"a": GOOD, "c": GOOD},
    }
    for ending, answers in ends.items():
        assert next_question(Line(releases=names, answers=answers)) is None
        assert conclude(Line(releases=names, answers=answers)).ending == ending
    untestable = conclude(Line(releases=names, answers={"a": GOOD, "c": UNTESTABLE}))
    assert (untestable.ending, untestable.untestable) == (Ending.END_UNTESTABLE, ("c",))


def test_without_environments_the_middle_is_asked() -> None:
    assert next_question(line(21)) == "10"
    assert next_question(line(21, r10=BAD)) == "5"
    assert next_question(line(21, r10=GOOD)) == "15"


def test_a_built_release_near_the_middle_is_asked_before_one_that_must_be_built() -> None:
    assert next_question(line(20, ready=[8])) == "8"
    assert next_question(line(20, ready=[1])) not in ("1", "0")


def test_a_built_release_beside_an_end_is_not_worth_a_question() -> None:
    """It would leave 15 of 16 possibilities, and a build for each of the four halvings of those."""
    assert next_question(line(17, ready=[1])) == "8"


def test_neighbours_of_a_run_of_untestable_releases_are_avoided() -> None:
    asked = next_question(line(21, r9=UNTESTABLE, r10=UNTESTABLE, r11=UNTESTABLE))
    assert asked in ("7", "13", "6", "14")


def test_no_builds_left_means_that_only_what_is_there_is_asked() -> None:
    assert next_question(line(9, ready=[2], builds_left=0)) == "2"
    rest = line(9, ready=[2], builds_left=0, r2=GOOD)
    assert next_question(rest) is None
    found = conclude(rest)
    assert (found.ending, found.one_of) == (Ending.ONE_OF, ("3", "4", "5", "6", "7", "8"))
    assert found.not_asked == ("3", "4", "5", "6", "7")


def test_both_ways_on_are_built_ahead_the_likelier_first_where_builds_allow_it() -> None:
    start = line(12)
    current = next_question(start)
    assert current is not None
    likely = next_likely(start, current)
    ways = {next_question(replace(start, answers={**start.answers, current: answer})) for answer in (GOOD, BAD)}
    assert set(likely) == ways
    assert next_likely(line(12, ready=[int(name) for name in likely]), current) == ()


def test_nothing_is_built_ahead_that_could_cost_a_needed_build() -> None:
    """17 releases need 4 builds in the worst case: one for nothing would make it 5."""
    assert next_likely(line(17, builds_left=4), "8") == ()
    assert len(next_likely(line(17, builds_left=5), "8")) == 1
    assert len(next_likely(line(17, builds_left=6), "8")) == 2


def test_answers_that_contradict_one_switch_are_reported_and_the_last_switch_is_found() -> None:
    odd = line(9, r3=BAD, r5=GOOD)
    assert good_again(odd) == (("3", "5"),)
    found = conclude(line(9, r3=BAD, r5=GOOD, r6=BAD))
    assert (found.ending, found.last_good, found.first_bad) == (Ending.FOUND, "5", "6")
    assert found.good_again == (("3", "5"),)
    assert conclude(line(9, r5=GOOD, r6=BAD)).good_again == ()


def test_one_of_names_untestable_releases_and_the_first_known_bad_one() -> None:
    found = conclude(line(6, r1=GOOD, r2=UNTESTABLE, r3=UNTESTABLE, r4=BAD))
    assert (found.ending, found.last_good, found.one_of) == (Ending.ONE_OF, "1", ("2", "3", "4"))
    assert found.untestable == ("2", "3")


def test_a_random_walk_of_contradictions_ends() -> None:
    chance = random.Random(3)
    for _ in range(200):
        n = chance.randrange(3, 16)
        truth = [GOOD, *(chance.choice([GOOD, BAD, UNTESTABLE]) for _ in range(n - 2)), BAD]
        answers: dict[str, ReleaseAnswer] = {}
        names = tuple(map(str, range(n)))
        while (name := next_question(Line(releases=names, answers=answers))) is not None:
            answers[name] = truth[int(name)]
        found = conclude(Line(releases=names, answers=answers))
        between = truth[int(found.last_good) + 1 : int(found.first_bad)]
        assert (truth[int(found.last_good)], truth[int(found.first_bad)]) == (GOOD, BAD)
        assert all(answer is UNTESTABLE for answer in between)
