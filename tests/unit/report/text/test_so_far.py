"""What is known before anything is timed, in lines."""

from harness.verdict.decide import judge_row
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, RowVerdict
from harness.report.text.so_far import MOST_LINES, render_so_far
from tests.unit.builders.verdicts import finding, row, verdict


def cell(model: str, kind: str, message: str, scenario: str = "alone") -> CellVerdict:
    return verdict(Status.FAIL, finding(kind, message), model=model, scenario=scenario)


def lines(*rows: RowVerdict, width: int = 200, then: str = "", missed: tuple[str, ...] = ()) -> list[str]:
    return render_so_far(rows, width=width, then=then, missed=missed).splitlines()


def test_healthy_models_are_one_line_with_what_comes_next() -> None:
    assert lines(row(model="a"), row(model="b"), then="timing takes about 40 s") == [
        "so far  2 models: 2 well; timing takes about 40 s"
    ]


def test_red_cell_is_a_line_and_what_says_the_same_shares_one() -> None:
    gone = "no such operator"
    rows = [
        judge_row("a", [cell("a", "values", "off by 0.1")]),
        *(
            judge_row(name, [cell(name, "load_error", gone), cell(name, "load_error", gone, "concurrent")])
            for name in "bcdefgh"
        ),
        row(model="i"),
        row(Status.INCONCLUSIVE, "j"),
    ]
    assert lines(*rows) == [
        "so far  10 models: 8 FAIL, 1 not decided, 1 well",
        "  FAIL  7 models (b, c, d, e, f and 2 more), load and calls, concurrent init: no such operator",
        "  FAIL  a, load and calls: off by 0.1",
    ]


def test_what_does_not_decide_is_no_line() -> None:
    known = verdict(Status.FAIL, finding("values", "off"), model="a", decides=False)
    assert lines(judge_row("a", [verdict(Status.PASS, model="a"), known])) == ["so far  1 model: 1 well"]


def test_missed_planted_defects_are_said_before_hours_are_spent_on_timing() -> None:
    assert lines(row(), missed=("planted_nan",))[1] == ("  BLIND  the gate missed its own planted defects: planted_nan")


def test_many_lines_are_counted_and_long_ones_cut() -> None:
    rows = [judge_row(f"m{number}", [cell(f"m{number}", "values", f"off by {number}" * 9)]) for number in range(20)]
    found = lines(*rows, width=60)
    assert len(found) == MOST_LINES + 2
    assert found[-1] == f"  and {20 - MOST_LINES} more, which the report shows"
    assert max(map(len, found)) == 60


def test_messages_steer_no_terminal() -> None:
    assert "\x1b" not in render_so_far([judge_row("a", [cell("a", "values", "\x1b[2J")])], width=80)


def test_what_answered_guesses_is_not_called_well() -> None:
    asked = verdict(Status.PASS, finding("guessed_inputs", "its inputs were guessed"), model="a")
    assert lines(judge_row("a", [asked]), row(model="b")) == ["so far  2 models: 1 well, 1 alike on guessed requests"]
    red = verdict(Status.FAIL, finding("hang", "hangs"), finding("guessed_inputs", "guessed"), model="a")
    assert lines(judge_row("a", [red]))[0] == "so far  1 model: 1 FAIL"
