"""The merged answer of a fleet as markdown, for the people who decide on the upgrade and for owners."""

from collections.abc import Iterator

from harness.core.fleet import NO_OWNER, FleetReport
from harness.core.text import counted, prose
from harness.report.markdown.text import CELL_LIMIT, bullets, code, command_block, escape, folded, table_line
from harness.report.words.fleet import (
    TREND_HEADS,
    answer_words,
    change_words,
    numbered,
    owners_words,
    since_facts,
    store_words,
    trend_row,
    wave_words,
)
from harness.report.words.phrases import exit_words
from harness.verdict.counting import cause_word

MOST_NAMED = 400


def render_fleet_markdown(report: FleetReport) -> str:
    """Return the whole answer as GitHub-flavoured markdown, ending with a newline."""
    lines = [
        f"# Upgrade plan: {escape(report.old)} to {escape(report.new)}",
        "",
        f"**{escape(answer_words(report))}** (exit code {report.exit_code}: {exit_words(report.exit_code)})"
        + (f": {escape(report.reason)}" if report.reason else ""),
        "",
        f"- {code(report.store)}, {escape(report.device)}: {escape(store_words(report))}",
        *(f"- {escape(note)}" for note in report.notes),
        "",
        *_since(report),
        *_waves(report),
        *_causes(report),
        *_faults(report),
        *_unjudged(report),
    ]
    return "\n".join(lines) + "\n"


def _since(report: FleetReport) -> Iterator[str]:
    found = report.since
    if found is None:
        return
    yield "## Since the earlier answer"
    yield ""
    yield from bullets(since_facts(found))
    yield ""
    yield table_line(TREND_HEADS)
    yield table_line(("---", "---", *(["---:"] * (len(TREND_HEADS) - 2))))
    for outline in found.trend:
        yield table_line([escape(text, CELL_LIMIT) for text in trend_row(outline)])
    if found.changes:
        names = [(f"{item.name} ({item.owner or NO_OWNER})", change_words(item)) for item in found.changes[:MOST_NAMED]]
        left = len(found.changes) - MOST_NAMED
        names += [("more", str(left))] if left > 0 else []
        yield ""
        yield folded(f"{counted(len(found.changes), 'artifact')} changed", bullets(names))
    yield ""


def _waves(report: FleetReport) -> Iterator[str]:
    yield "## Waves"
    yield ""
    yield table_line(("wave", "artifacts", "upgrade", "owners"))
    yield table_line(("---", "---:", "---", "---"))
    for number, wave in numbered(report):
        words = (
            number,
            str(len(wave.artifacts)),
            escape(wave_words(wave), CELL_LIMIT),
            escape(owners_words(wave.owners)),
        )
        yield table_line(words)
    guesses = {row.name: row.guessed for row in report.rows if row.guessed}
    for number, wave in numbered(report):
        names = [
            f"- {code(name)}" + (f": guessed requests, {code(guesses[name])}" if name in guesses else "")
            for name in wave.artifacts[:MOST_NAMED]
        ]
        left = len(wave.artifacts) - MOST_NAMED
        names += [f"- and {left} more"] if left > 0 else []
        head = f"{number if number != '-' else 'stays'}: {prose(wave_words(wave))} ({len(wave.artifacts)})"
        yield folded(head, names)


def _causes(report: FleetReport) -> Iterator[str]:
    if report.causes:
        yield ""
        yield "## Causes"
    for item in report.causes:
        cause = item.cause
        many = f"{counted(len(cause.models), 'artifact')}, {counted(item.programs, 'program')}"
        yield ""
        yield f"### {cause_word(cause)}: {escape(cause.title)}"
        yield ""
        pairs = [("artifacts", many), ("owners", owners_words(item.owners, len(item.owners))), *cause.evidence]
        yield from bullets([*pairs, *([("cure", cause.cure)] if cause.cure else [])])
        for _, command in cause.commands:
            yield ""
            yield from command_block(command)


def _faults(report: FleetReport) -> Iterator[str]:
    if report.faults:
        yield ""
        yield "## Without a verdict"
        yield ""
        yield from bullets(
            [(item.label, f"{item.text} (tried {item.tries} times)") for item in report.faults[:MOST_NAMED]]
        )


def _unjudged(report: FleetReport) -> Iterator[str]:
    if report.unjudged:
        shown = report.unjudged[:MOST_NAMED]
        pairs = [("/".join(filter(None, (item.path, item.member))), item.reason) for item in shown]
        left = len(report.unjudged) - MOST_NAMED
        pairs += [("more", str(left))] if left > 0 else []
        yield ""
        yield folded(f"{counted(len(report.unjudged), 'other file')} not judged", bullets(pairs))
