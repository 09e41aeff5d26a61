"""The report on a terminal: the most important lines come last, so that they stay on the screen."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.core.outcome import Decision, Status
from harness.core.report import RunReport
from harness.core.text import counted, first_few, prose, visible
from harness.core.verdict import RowVerdict
from harness.report.text import scenarios
from harness.report.text.causes import cause_block, cause_blocks, cause_line, short_lines
from harness.report.text.scenarios import legend
from harness.report.text.table import (
    GUESSED,
    TableRow,
    guessed_words,
    not_measured,
    rows_by_need,
    table_rows,
    text_table,
    timed_in,
)
from harness.report.words.migration import run_migration_words
from harness.report.words.phrases import NO_REASON, shorten
from harness.report.words.policy import LET_PASS, is_noted, let_pass, policy_lines, shown_above, telling_cells
from harness.report.words.predictions import (
    back_heading,
    closed_rollbacks,
    foreseen,
    place,
    rollback_lines,
    rollback_words,
    static_words,
    wrong_predictions,
)
from harness.report.words.red_cells import RedCell, red_cells, run_directory, side_lines
from harness.report.words.since import disturbed_words, since_lines
from harness.report.words.summary import (
    common_words,
    cost_words,
    count_words,
    decision_words,
    difference_words,
    headline,
    pair_words,
    planted_words,
    run_words,
    time_words,
    torch_words,
)
from harness.verdict.causes import fails_the_run
from harness.verdict.commands import is_red, report_command
from harness.verdict.counting import counts_of

MOST_LINES = 60
LOST_BY_WRAPPING = 24  # the indent, and a word that does not fit into the first line
OTHERS_NAMED = 3
TIMES_SHOWN = 3
WAIVED = "waived until "
SIGNS = (
    (re.compile(r" x\d"), "x: new time / old time"),
    (re.compile(r"[%\])] \?(?: |$)"), "?: could not tell whether within the limit"),
    (re.compile(r" - "), "-: not measured"),
)
_LABEL = 10
_LEAST_WIDTH = 80
_COMMANDS = ("longer",)  # stand whole, so that they can be copied
_SIDE_LINES = 6
_ROLLBACKS = 8
_PROSE_LIMIT = 600

Paint = Callable[[str], str]

# A number stays with its unit and an interval stays whole where lines wrap. Visible text has no NUL.
_GLUE = "\0"
_GLUED = re.compile(
    r"(?<=\d) (?=(?:%|[mun]?s|min|h|x|of|bytes|[KM]iB)(?:\W|$))|(?<=[%\d]) (?=\[[-+\d])|(?<=\d,) (?=[-+\d])"
    r"|(?<=\bof) (?=\d)"
)
# By word, because a run and a cell share one of them.
_COLOURS = {
    Status.FAIL.value: "31",
    Status.XPASS.value: "31",
    Status.INCONCLUSIVE.value: "33",
    Status.SAME_FAIL.value: "36",
    Status.UNSUPPORTED.value: "36",
    Status.XFAIL.value: "36",
    Status.PASS.value: "32",
    Decision.UPGRADE_OK.value: "1;32",
    Decision.CELL_OK.value: "1;32",
    Decision.OK_WITH_MITIGATION.value: "1;33",
    Decision.BLOCKED.value: "1;31",
    Decision.NOTHING_TESTED.value: "1;31",
    "NO ROLLBACK": "33",
    "WRONG PREDICTION": "1;31",
}


def render_console(
    report: RunReport, *, width: int = 100, colour: bool = False, directory: str = "", verbose: bool = False
) -> str:
    """Return the report as text, ending with the decision line and a newline.

    It has at most ``MOST_LINES`` lines: each cause once, of everything else what a reader needs first.

    Args:
        report: what to show.
        verbose: nothing is left out, however long it becomes.
        width: columns, fewer than 80 count as 80; only paths and commands may be longer, so that they can be copied.
        colour: ANSI colour on status words, and nowhere else.
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
    """
    width = max(width, _LEAST_WIDTH)

    def paint(word: str) -> str:
        return f"\x1b[{_COLOURS[word]}m{word}\x1b[0m" if colour and word in _COLOURS else word

    made = _everything if verbose else _what_is_needed
    blocks = made(report, width, directory, paint)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _everything(report: RunReport, width: int, directory: str, paint: Paint) -> list[list[str]]:
    """Return all that the console can say of a run."""
    return [
        _header(report, width),
        _table(report, width, paint),
        _scenarios(report, width, paint),
        [cause_line(cause, width, paint) for cause in report.causes],
        _reasons(report, width, paint),
        *[_red_cell(cell, width, paint) for cell in red_cells(report, directory=directory)],
        _migration(report, width),
        *_closed_rollbacks(report, width, directory, paint),
        *_wrong_predictions(report, width, directory, paint),
        _list(policy_lines(report, shown=shown_above(report)), width),
        _list(since_lines(report), width),
        _footer(report, width, directory),
        [_decision(report, paint)],
    ]


class Room(NamedTuple):
    """How much of a run is shown beside its causes: rows of its table, lines of initializations, lines of each kind."""

    rows: int
    scenarios: int
    lines: int


# The first that leaves the causes what they need, or else as much as ``ROOM_OF_CAUSES``.
ROOMS = (Room(10, 7, 3), Room(6, 5, 2), Room(4, 0, 1))
ROOM_OF_CAUSES = 36


def _what_is_needed(report: RunReport, width: int, directory: str, paint: Paint) -> list[list[str]]:
    """Return what a reader needs first, in at most ``MOST_LINES`` lines: the causes get the room that is left."""
    where = run_directory(report, directory)
    again = report.policy.regated is not None  # by a policy that the run does not keep
    more = "the same command with --verbose" if again else report_command(report, where, "--verbose")
    places = [f"{'reports':<{_LABEL}}{visible(where)}/", f"{'more':<{_LABEL}}{visible(more)}"]
    places += [f"{label:<{_LABEL}}{visible(text)}" for label, text in side_lines(report) if label in _COMMANDS]
    wanted = sum(len(cause_block(cause, width, paint, details=1)) + 1 for cause in report.causes)
    above, below, left = list[list[str]](), list[list[str]](), 0
    for room in ROOMS:
        above = [
            _lines(_short_header(report), width),
            _short_table(report, width, paint, room.rows),
            _short_scenarios(report, width, paint, room.scenarios),
            _others(report, width, paint),
        ]
        below = [
            _migration(report, width),
            _wrong_prediction(report, width, directory, paint),
            [*_lines(_short_footer(report, room.lines), width), *places],
            [_decision(report, paint)],
        ]
        left = MOST_LINES - sum(len(block) + 1 for block in (*above, *below) if block)
        if left >= min(wanted, ROOM_OF_CAUSES):
            break
    return [*above, *cause_blocks(report.causes, width=width, room=left, more=more, paint=paint), *below]


def _lines(pairs: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Return the labelled lines of all pairs, two of them for a long text."""
    return [line for label, text in pairs for line in short_lines(label, text, width)]


def _short_header(report: RunReport) -> Iterator[tuple[str, str]]:
    """Yield the pair, what differs beside torch, and whether the gate can see."""
    yield "upgrade", f"{torch_words(report)}, {report.device}, profile {report.profile}"
    yield "differs", difference_words(report)
    yield "planted", f"defects: {planted_words(report)}"
    if static_words(report):
        yield "static", static_words(report)


def _short_table(report: RunReport, width: int, paint: Paint, most: int) -> list[str]:
    """Return the rows that a reader needs first, what the others are, and how many models have which status."""
    rows = rows_by_need(report)
    shown = rows if len(rows) <= most + 2 else rows[:most]
    left = counts_of([row.verdict for row in rows[len(shown) :]])
    rest = ", ".join(f"{count} {word}" for word, count in left.items())
    lines = text_table(shown, width=width, paint=paint).splitlines() if shown else []
    lines += [f"and {counted(sum(left.values()), 'model')} more: {rest}"] if rest else []
    disturbed, guessed = disturbed_words(report), guessed_words(rows)
    pairs = [("models", count_words(report))]
    pairs += [("table", _signs(lines[2:]))] if _signs(lines[2:]) else []
    pairs += [("times", timed_in(rows))] if timed_in(rows) else []
    pairs += [("machine", disturbed)] if disturbed else []
    pairs += [(GUESSED, f"{guessed}, listed in report.md")] if guessed else []
    return [*lines, *([""] if lines else []), *_lines(pairs, width)]


def _signs(lines: Sequence[str]) -> str:
    """Return what the signs in these rows of the table mean."""
    return ", ".join(words for sign, words in SIGNS if any(sign.search(line) for line in lines))


def _short_scenarios(report: RunReport, width: int, paint: Paint, most: int) -> list[str]:
    """Return the table of initializations, cut where there is no room for it."""
    lines = scenarios.text_table(report, width=width, paint=paint).splitlines()
    if len(lines) <= most or not most:
        return lines if most else []
    return [*lines[:most], f"and {len(lines) - most} more lines of initializations, in report.md"]


def _others(report: RunReport, width: int, paint: Paint) -> list[str]:
    """Return a line or two per status of the rows that are neither PASS nor of a cause: which, and why; if for several
    reasons, that of the first.
    """
    by_status: dict[str, list[TableRow]] = {}
    for row in table_rows(report):
        shown_with_cause = row.verdict is not None and any(is_red(cell) for cell in row.verdict.cells)
        if row.status is not Status.PASS and not shown_with_cause:
            by_status.setdefault(row.status_word, []).append(row)
    lines: list[str] = []
    for word, rows in by_status.items():
        names = first_few([_name(row.model) for row in rows], OTHERS_NAMED)
        reasons = list(map(_in_one_line, rows))
        whose = "" if len(set(reasons)) == 1 else f"; {_name(rows[0].model)}"
        text = f"{word}  {names}{whose}: {prose(reasons[0])}"
        # Its end says what to do, so that what is cut is in between.
        text = shorten(text, 2 * (width - 4) - LOST_BY_WRAPPING)
        first, *rest = textwrap.wrap(text, width - 4, subsequent_indent="  ", max_lines=2, break_on_hyphens=False)
        lines += [first.replace(word, paint(word), 1), *rest]
    return lines


def _in_one_line(row: TableRow) -> str:
    """Return why a row is neither green nor red; of one that is waived, who answers for it comes first."""
    reason = (row.verdict.reason if row.verdict is not None else "") or NO_REASON
    return "; ".join([*foreseen(row.verdict, row.facts), reason[max(0, reason.find(WAIVED)) :]])


def _migration(report: RunReport, width: int) -> list[str]:
    """Return how many models could leave TorchScript, and the command that says more; nothing where nobody asked."""
    found = report.migration
    if found is None:
        return []
    lines = _labelled("migrate", run_migration_words(found), width)
    return [*lines, *([f"{'says more':<{_LABEL}}{visible(found.command)}"] if found.command else [])]


def _wrong_prediction(report: RunReport, width: int, directory: str, paint: Paint) -> list[str]:
    """Return the first prediction that did not come true, and how many more did not."""
    blocks = _wrong_predictions(report, width, directory, paint)
    more = [f"and {counted(len(blocks) - 1, 'more wrong prediction')}, in report.md"] if len(blocks) > 1 else []
    return [*blocks[0][:3], *blocks[0][-1:], *more] if blocks else []


def _short_footer(report: RunReport, most: int) -> Iterator[tuple[str, str]]:
    """Yield changes, warnings and notes, ``most`` of each and how many more, and what the decision rests on."""
    changes = sorted(since_lines(report), key=lambda line: line[0] == "differs")
    yield from changes[: 2 * most]
    if len(changes) > 2 * most:
        yield "", f"and {len(changes) - 2 * most} more, in report.md"
    for lines in (
        tuple(line for line in side_lines(report) if line[0] not in _COMMANDS),
        policy_lines(report, shown=shown_above(report)),
        tuple(("note", note) for note in report.notes),
        tuple(("cost", cost) for cost in cost_words(report) if report.judgement.mitigation),
    ):
        yield from lines[:most]
        if len(lines) > most:
            yield "", f"and {len(lines) - most} more, in report.md"
    if report.rollback is not None:
        yield "rollback", rollback_words(report)
    if not _names_a_cause(report):
        yield "why", report.judgement.reason or NO_REASON
    yield "time", ", ".join(time_words(report).split(", ")[:TIMES_SHOWN])


def _names_a_cause(report: RunReport) -> bool:
    """Whether the reason of the decision is what the first red cell says, which stands with its cause, and no more."""
    if any(fails_the_run(found, report) for found in report.judgement.findings):
        return False
    reason = report.judgement.reason
    closed = report.rollback is not None and report.rollback.gates
    return not closed and any(reason.startswith(f"{model}: ") for cause in report.causes for model in cause.models)


def red_cell_text(cell: RedCell, *, width: int) -> str:
    """Return one red cell as the console shows it, for a place where nothing else of the run stands."""
    return "\n".join(_red_cell(cell, width, str))


def _labelled(label: str, text: str, width: int, *, indent: str = "") -> list[str]:
    """Return ``label`` and ``text`` in two columns; the text wraps in its own."""
    first = f"{indent}{label:<{_LABEL}}"
    if label in _COMMANDS:
        return [f"{first}{visible(text)}"]
    room = width - len(first)
    glued = _GLUED.sub(_GLUE, shorten(prose(text), _PROSE_LIMIT))
    lines = [line.replace(_GLUE, " ").strip() for line in textwrap.wrap(glued, room, break_on_hyphens=False)] or [""]
    return [f"{first}{lines[0]}".rstrip(), *[" " * len(first) + line for line in lines[1:]]]


def _list(pairs: Iterable[tuple[str, str]], width: int, *, indent: str = "") -> list[str]:
    """Return the labelled lines of all pairs."""
    return [line for label, text in pairs for line in _labelled(label, text, width, indent=indent)]


def _header(report: RunReport, width: int) -> list[str]:
    """Return the pair, what both sides ran on, what differs, and the planted defects."""
    pairs = [
        ("upgrade", f"{pair_words(report)}: {run_words(report)}"),
        ("torch", torch_words(report)),
        ("both", common_words(report)),
        ("differs", difference_words(report)),
        ("planted", f"defects: {planted_words(report)}"),
        ("static", static_words(report)),
    ]
    return _list([pair for pair in pairs if pair[1]], width)


def _table(report: RunReport, width: int, paint: Callable[[str], str]) -> list[str]:
    """Return the table, how many models have which status, what ``-`` hides, and whose inputs were guessed."""
    rows = table_rows(report)
    lines = [text_table(rows, width=width, paint=paint), ""] if rows else []
    lines += _labelled("models", count_words(report), width)
    absent = not_measured(rows)
    lines += _labelled("-", f"means not measured: {absent}", width) if absent else []
    lines += _labelled("times", timed_in(rows), width) if timed_in(rows) else []
    lines += _list([("machine", disturbed_words(report))] if disturbed_words(report) else [], width)
    guessed = guessed_words(rows)
    return lines + (_labelled(GUESSED, f"{guessed}, listed in report.md", width) if guessed else [])


def _scenarios(report: RunReport, width: int, paint: Callable[[str], str]) -> list[str]:
    """Return the table of initializations and what stands below it; nothing where none was made."""
    table = scenarios.text_table(report, width=width, paint=paint)
    if not table:
        return []
    lines = [table, "", *_list(legend(report.scenarios), width)]
    left_out = scenarios.groups_left_out(report)
    return [*lines, *(_labelled("", f"and {left_out} more server groups, in report.md", width) if left_out else [])]


def _reasons(report: RunReport, width: int, paint: Callable[[str], str]) -> list[str]:
    """Return the reason of every row that is neither PASS nor shown below as a red cell."""
    lines: list[str] = []
    for row in table_rows(report):
        if row.status is Status.PASS or (row.verdict and any(is_red(cell) for cell in row.verdict.cells)):
            continue
        why = _why(row.verdict) if row.verdict is not None else [("why", NO_REASON)]
        why += [("static", text) for text in foreseen(row.verdict, row.facts)]
        lines += [f"{paint(row.status_word)}  {_name(row.model)}", *_list(why, width, indent="  ")]
    return lines


def _why(row: RowVerdict) -> list[tuple[str, str]]:
    """Return a row's reason; what the policy lets pass apart from what was found."""
    passed = next((let_pass(cell) for cell in telling_cells(row) if is_noted(cell)), "")
    if not passed or not row.reason.endswith(passed):
        return [("why", row.reason or NO_REASON)]
    found = row.reason.removesuffix(passed).removesuffix("; ")
    return [*([("why", found)] if found else []), (LET_PASS, passed)]


def _name(model: str) -> str:
    """Return a model's name, visible and short enough for a heading."""
    return shorten(visible(model), 50)


def _red_cell(cell: RedCell, width: int, paint: Callable[[str], str]) -> list[str]:
    """Return one red cell; its paths and its command stand whole on their own lines."""
    lines = [f"{paint(cell.status.value)}  {_name(cell.model)}: {visible(cell.stage)}"]
    lines += _list(cell.brief, width, indent="  ")
    for index, path in enumerate(cell.evidence):
        lines.append(f"  {'' if index else 'evidence':<{_LABEL}}{visible(path)}")
    for index, path in enumerate(cell.found):
        lines.append(f"  {'' if index else 'found':<{_LABEL}}{visible(path)}")
    lines.append(f"  {'rerun':<{_LABEL}}{visible(cell.rerun)}")
    return [*lines, *([f"  {'bisect':<{_LABEL}}{visible(cell.bisect)}"] if cell.bisect else [])]


def _decision(report: RunReport, paint: Callable[[str], str]) -> str:
    """Return the last line: the decision, on which condition, and what its exit code means; short for any log."""
    word = report.judgement.decision.value
    condition, code = visible(headline(report).removeprefix(word)), report.judgement.exit_code
    short = f"exit code {code}"
    meanings = [decision_words(report)] if not condition else [decision_words(report), f"{short} until accepted", short]
    fitting = [words for words in meanings if len(word) + len(condition) + len(words) + 4 <= _LEAST_WIDTH]
    meaning = next(iter(fitting), meanings[-1])
    room = _LEAST_WIDTH - len(word) - len(meaning) - 4
    return f"{paint(word)}{shorten(condition, room)}  ({meaning})"


def _closed_rollbacks(report: RunReport, width: int, directory: str, paint: Callable[[str], str]) -> list[list[str]]:
    """Return a block per artifact that cannot be rolled back, and one line that counts those not shown."""
    if report.rollback is None:
        return []
    closed = [item for item in closed_rollbacks(report.rollback) if item.artifact]
    blocks = []
    for item in closed[:_ROLLBACKS]:
        word, subject = back_heading(report, item)
        lines = [f"{paint(word)}  {_name(subject)}", *_list(rollback_lines(item), width, indent="  ")]
        paths = (("artifact", place(item.artifact, run_directory(report, directory))), ("shows", item.command))
        blocks.append([*lines, *[f"  {label:<{_LABEL}}{visible(text)}" for label, text in paths if text]])
    rest = len(closed) - _ROLLBACKS
    return [*blocks, *([[f"and {rest} more models that may not be rolled back, in report.md"]] if rest > 0 else [])]


def _wrong_predictions(report: RunReport, width: int, directory: str, paint: Callable[[str], str]) -> list[list[str]]:
    """Return a block per prediction that did not come true: our bug, whatever the decision is."""
    word = paint("WRONG PREDICTION")
    return [
        [f"{word}  {_name(subject)}", *_list(texts, width, indent="  "), f"  {'shows':<{_LABEL}}{visible(command)}"]
        for subject, texts, command in wrong_predictions(report, run_directory(report, directory))
    ]


def _footer(report: RunReport, width: int, directory: str) -> list[str]:
    """Return warnings, notes, time shares, the path of the reports, the price of the cure and the reason."""
    side = side_lines(report)
    lines = _list(side[:_SIDE_LINES], width)
    if len(side) > _SIDE_LINES:
        lines += _labelled("", f"and {len(side) - _SIDE_LINES} more warnings, in report.md", width)
    lines += _list([("note", note) for note in report.notes], width)
    lines += _list([("rollback", rollback_words(report))] if report.rollback is not None else [], width)
    lines += _labelled("time", time_words(report), width)
    lines.append(f"{'reports':<{_LABEL}}{visible(run_directory(report, directory))}/")
    if report.judgement.decision is Decision.OK_WITH_MITIGATION:
        lines += _list([("cost", cost) for cost in cost_words(report)], width)
    return lines + _labelled("why", report.judgement.reason or NO_REASON, width)
