"""What stands below the table of initializations."""

from dataclasses import replace

import pytest

from harness.report.text.scenarios import TOO_FEW, hang_bound_words, legend, rounds_words
from harness.checks.startup.rates import upper_bound
from tests.unit.builders.reports import blocked, golden, upgrade_ok


@pytest.mark.parametrize(
    ("rounds", "failed", "text"),
    [
        (3, 0, "3 rounds, none failed: a failure in more than 64 % of starts is excluded (95 %)"),
        (1, 0, f"started once, none failed: {TOO_FEW}"),
        (59, 0, "59 rounds, none failed: a failure in more than 1 in 20 starts is excluded (95 %)"),
        (3000, 0, "3000 rounds, none failed: a failure in more than 1 in 1001 starts is excluded (95 %)"),
        (10, 1, "1 of 10 rounds failed: up to 40 % of starts may fail (95 %)"),
        (3, 3, "3 of 3 rounds failed"),
        (0, 0, "no round ended, so nothing is known"),
    ],
)
def test_rounds_bound_how_often_it_can_fail(rounds: int, failed: int, text: str) -> None:
    assert hang_bound_words(rounds, failed, upper_bound(failed, rounds)) == text


@pytest.mark.parametrize("rounds", [3, 7, 20, 58, 59, 60, 500])
def test_nothing_is_called_excluded_that_the_rounds_do_not_exclude(rounds: int) -> None:
    words = hang_bound_words(rounds, 0, upper_bound(0, rounds)).partition("more than ")[2]
    said = 1 / int(words.split()[2]) if words.startswith("1 in") else int(words.split()[0]) / 100
    assert said >= upper_bound(0, rounds) - 1e-12


def test_groups_of_which_the_rounds_say_the_same_share_a_line_and_all_of_them_need_no_name() -> None:
    more, few = rounds_words(upgrade_ok().scenarios)
    assert more == "concurrent init: 3 rounds, none failed: a failure in more than 64 % of starts is excluded (95 %)"
    assert few.startswith("load while serving: 9 rounds, none failed: a failure in more than 29 % of")
    assert rounds_words(golden().scenarios) == (f"started once, none failed: {TOO_FEW}",)


def test_a_group_that_failed_is_distinguished_from_the_others() -> None:
    failing, others, cycles = rounds_words(blocked().scenarios)
    assert failing == "concurrent init of ranking: 2 of 3 rounds failed: up to 99 % of starts may fail (95 %)"
    assert others.startswith("concurrent init of other groups") and cycles.startswith("init and teardown: 6 rounds, ")
    (line,) = rounds_words([replace(blocked().scenarios[0], group=f"group_{index}") for index in range(9)])
    assert line.startswith(
        "concurrent init of group_0, concurrent init of group_1, concurrent init of group_2 and 6 more: "
    )


def test_the_legend_says_who_initialized_and_what_columns_mean() -> None:
    assert legend(blocked().scenarios, 1.25)[0] == (
        "init",
        "by the C++ worker, 4 threads; init time beside other probes, warns beyond +25 % and 1 s; overlap above 1: "
        "threads loaded at once; memory: peak of a process, with a sign growth per cycle",
    )
    assert legend(golden().scenarios, 1.25)[0][1] == (
        "by the Python worker, 4 threads; init time beside other probes; memory: peak of a process"
    )
    assert legend((), 1.25) == ()


def test_a_worker_that_is_not_known_is_named_as_it_is() -> None:
    item = replace(upgrade_ok().scenarios[0], worker="rust", threads=1)
    assert legend((item,), 1.25)[0][1].startswith("by rust, 1 thread;")
