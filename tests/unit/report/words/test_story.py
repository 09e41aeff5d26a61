"""The story of a hang: whole in files, short on a terminal, and harmless."""

from functools import partial
from dataclasses import replace

from harness.core.report import RunReport
from harness.core.verdict import Finding
from harness.report.markdown.report import render_markdown
from harness.report.text.console import render_console
from harness.report.words.red_cells import red_cells
from harness.report.words.story import LINES_SHOWN, short_story, story_of
from tests.unit.builders.reports import STORY, blocked, hanging_model

LONG = (
    *[("threads", f"thread {index} (model_{index}, load): waits for a lock") for index in range(30)],
    ("frames", "all: pthread_mutex_lock"),
    ("meaning", "a deadlock: " + "each waits for the next, " * 12),
    ("seen", "pystack, two samples"),
)

everything = partial(render_console, verbose=True)


def with_story(*stories: tuple[tuple[str, str], ...]) -> RunReport:
    """Return a report with one hanging model per story."""
    report = blocked()
    rows = tuple(hanging_model(f"model_{index}", story)[0] for index, story in enumerate(stories))
    return replace(report, judgement=replace(report.judgement, rows=rows))


def test_a_short_story_is_reported_whole_and_repeats_no_label() -> None:
    assert [label for label, _ in short_story(STORY)] == [
        "needs",
        "meaning",
        "proof",
        "threads",
        "",
        "",
        "frames",
        "",
        "seen",
    ]
    assert [text for _, text in short_story(STORY)] == [text for _, text in STORY]


def test_many_threads_do_not_hide_what_they_mean() -> None:
    lines = short_story(LONG)
    assert len(lines) == LINES_SHOWN + 1
    assert [label for label, _ in lines if label] == ["threads", "frames", "meaning", "seen"]
    assert lines[-1] == ("", "and 21 more lines, in report.md")
    assert lines[LINES_SHOWN - 2] == LONG[31]


def test_a_long_thread_line_is_cut_and_a_long_meaning_is_not() -> None:
    (_, thread), (_, meaning) = short_story((("threads", "x" * 500), ("meaning", "y" * 500)))
    assert len(thread) == 150
    assert len(meaning) == 500


def test_a_long_stack_loses_whole_frames_from_its_middle() -> None:
    frames = [f"namespace::Class{index}::method_{index}" for index in range(9)]
    ((_, text),) = short_story((("frames", " < ".join(frames)),))
    assert text == " < ".join([*frames[:3], "...", *frames[-2:]])
    ((_, whole),) = short_story((("frames", " < ".join(frames[:3])),))
    assert whole == " < ".join(frames[:3])
    ((_, one),) = short_story((("frames", "f" * 500),))
    assert len(one) == 160


def test_threads_stand_one_per_line_in_their_column() -> None:
    lines = everything(blocked(), width=120).splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("  threads   "))
    assert lines[first + 1] == "            thread 1 (fused_ranker#1, call 0 of example): waits for a lock"


def test_the_console_stays_short_and_markdown_tells_all() -> None:
    report = with_story(LONG)
    assert everything(report).count("waits for a lock") < 12
    text = render_markdown(report)
    assert text.count("waits for a lock") == 30
    assert "each waits for the next" in text


def test_a_story_that_several_models_share_is_reported_once_on_the_console() -> None:
    report = with_story(STORY, STORY, ())
    first, second, third = red_cells(report)
    assert ("seen", "as for model_0 in concurrent init, above") in second.brief
    assert not [line for line in second.brief if line[0] == "threads"]
    assert set(STORY) <= set(second.lines)
    assert set(STORY) <= set(first.lines)
    assert not [line for line in third.brief if line[0] in ("seen", "threads")]


def test_the_heaviest_finding_tells_its_story() -> None:
    report = blocked()
    row = report.judgement.rows[0]
    light = Finding(kind="stride", message="other strides", story=(("seen", "nothing"),))
    cell = replace(row.cells[1], findings=(light, *row.cells[1].findings))
    report = replace(report, judgement=replace(report.judgement, rows=(replace(row, cells=(cell,)),)))
    assert set(STORY) <= set(red_cells(report)[0].lines)


def test_a_label_fits_its_column_and_steers_no_terminal() -> None:
    finding = Finding(kind="hang", message="", story=(("\x1b[31mthreads of the process", "x"),))
    ((label, _),) = story_of([finding])
    assert len(label) <= 9
    assert label.isprintable()
    text = everything(with_story((("\x1b]0;title\x07", "\x1b[2J\u202e gone\nnext"),)))
    assert "\\x1b[2J\\u202e gone next" in text
    assert "\x1b" not in text
