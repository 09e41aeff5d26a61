"""The report as GitHub-flavoured markdown: ``report.md`` and the step summary of a CI job."""

from collections.abc import Sequence

from harness.domain.outcome import Decision, Status
from harness.domain.report import RunReport
from harness.render.foretold import rollback_words, static_words
from harness.render.markdown_foretold import rollback_section, static_section
from harness.render.markdown_text import CELL_LIMIT, bullets, code, command_block, escape, folded, table_line
from harness.render.markdown_waivers import waivers_section
from harness.render.policy_text import policy_lines, told_above
from harness.render.quantities import COLUMNS as QUANTITIES
from harness.render.quantities import QuantityRow, limits_of, quantity_rows
from harness.render.red_cells import RedCell, cell_words, quiet_cells, red_cells, run_directory, side_lines
from harness.render.scenario_legend import legend
from harness.render.scenario_table import MARKDOWN_COLUMNS, facts_words, scenario_rows
from harness.render.since import disturbed_words, since_lines, since_words
from harness.render.summary import (
    canary_words,
    common_words,
    cost_words,
    count_words,
    decision_words,
    difference_words,
    headline,
    numerics_words,
    pair_words,
    run_words,
    time_words,
    title_words,
    torch_words,
)
from harness.render.table import COLUMNS, GUESSED, TableRow, guessed_words, not_measured, row_cells, table_rows
from harness.render.words import NO_REASON, NOT_MEASURED, counted, prose, scenario_words, shorten

# GitHub drops a step summary over 1024 KiB as a whole.
LIMIT_BYTES = 1_000_000

# Rows of the folded table, and models whose quantities are all told: the worst ones.
_ROWS_SHOWN = 400
_MODELS_SHOWN = 100
_CHANGES_SHOWN = 200
_GUESS_LIMIT = 600


def render_markdown(report: RunReport, *, directory: str = "", limit_bytes: int = LIMIT_BYTES) -> str:
    """Return the report as markdown, with the decision first and at most about ``limit_bytes`` long.

    Args:
        report: what to show.
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
        limit_bytes: what is over it is left out, whole lines and whole red cells, and the last line says so.
    """
    rows = table_rows(report)
    cells = red_cells(report, directory=directory)
    pieces = [
        *_head(report),
        *_table(rows),
        *_scenarios(report),
        *_reasons(rows),
        *_policy(report),
        *_since(report),
        *(["", "## Red cells"] if cells else []),
        *[_red_cell(cell) for cell in cells],
        *waivers_section(report),
        *rollback_section(report, directory),
        *static_section(report, directory),
        *_guesses(rows),
        *_foot(report, directory),
        *_times_and_memory(report, rows),
    ]
    return "\n".join(_bounded(pieces, limit_bytes)) + "\n"


def _head(report: RunReport) -> list[str]:
    """Return the decision, its reason and price, and what was compared."""
    judgement = report.judgement
    costs = cost_words(report) if judgement.decision is Decision.OK_WITH_MITIGATION else ()
    facts = [
        ("why", judgement.reason or NO_REASON),
        *[("cost", cost) for cost in costs],
        ("upgrade", run_words(report)),
        ("torch", torch_words(report)),
        ("both", common_words(report)),
        ("differs", difference_words(report)),
        ("canaries", canary_words(report)),
        ("models", count_words(report)),
        ("static check", static_words(report)),
        ("rollback", rollback_words(report)),
        ("baseline", since_words(report)),
        ("machine", disturbed_words(report)),
    ]
    return [
        f"# {_title(report)}",
        "",
        f"**{decision_words(report)}**",
        "",
        *bullets(fact for fact in facts if fact[1]),
    ]


def _title(report: RunReport) -> str:
    """Return the decision and the pair."""
    if report.judgement.mitigation:
        return f"{escape(headline(report))} ({escape(pair_words(report))})"
    return f"{report.judgement.decision.value}: {escape(pair_words(report))}"


def _table(rows: tuple[TableRow, ...]) -> list[str]:
    """Return the table, one line per model, and what ``-`` hides."""
    if not rows:
        return []
    lines = ["", "## Models", "", table_line(COLUMNS), table_line(("---",) * 5 + ("---:",) * 3 + ("---",))]
    lines += [_judged_line(row_cells(row, compact=False), row.status) for row in rows]
    absent = not_measured(rows)
    lines += ["", f"`-` means not measured: {absent}."] if absent else []
    guessed = guessed_words(rows)
    return lines + (["", f"`{GUESSED}` {guessed}, listed below."] if guessed else [])


def _guesses(rows: Sequence[TableRow]) -> list[str]:
    """Return the table of the requests that were made up, one line per model; nothing where all were given."""
    told = [(row.model, row.facts.guessed) for row in rows if row.facts is not None and row.facts.guessed]
    if not told:
        return []
    lines = [table_line((escape(model, CELL_LIMIT), escape(guess, _GUESS_LIMIT))) for model, guess in sorted(told)]
    return ["", "## Guessed inputs", "", table_line(("model", "requests")), table_line(("---", "---")), *lines]


def _scenarios(report: RunReport) -> list[str]:
    """Return the table of initializations, one line per scenario and server group, and what stands below it."""
    rows = scenario_rows(report)
    if not rows:
        return []
    lines = ["", "## Initialization", "", table_line(MARKDOWN_COLUMNS)]
    lines.append(table_line(("---",) * 3 + ("---:",) * 3 + ("---",) * 2))
    for row in rows:
        texts = (scenario_words(row.facts.scenario), row.facts.group, *facts_words(row, compact=False))
        lines.append(_judged_line(texts, row.status))
    return [*lines, "", *bullets(legend(report.scenarios))]


def _judged_line(texts: Sequence[str], status: Status | None) -> str:
    """Return one line of a table; the status, its last text, is bold unless it is PASS or nobody judged."""
    *cells, word = (escape(text, CELL_LIMIT) for text in texts)
    quiet = status is Status.PASS or word == NOT_MEASURED
    return table_line([*cells, word if quiet else f"**{word}**"])


def _reasons(rows: tuple[TableRow, ...]) -> list[str]:
    """Return the reason of every row that is not PASS, with its cells that are neither PASS nor red."""
    lines = []
    for row in rows:
        if row.status is Status.PASS:
            continue
        reason = (row.verdict and row.verdict.reason) or NO_REASON
        lines.append(f"- **{row.status_word}** {escape(row.model)}: {escape(reason)}")
        lines += [
            f"  - {cell.status.value} {code(cell.cell)}: {escape(cell_words(cell, reason))}"
            for cell in quiet_cells(row)
            if cell.decides
        ]
    return ["", "## Not PASS", "", *lines] if lines else []


def _policy(report: RunReport) -> list[str]:
    """Return the policy that decided and what it made of the run; nothing where none was written."""
    lines = bullets(policy_lines(report, listed=_CHANGES_SHOWN, told=told_above(report)))
    return ["", "## Policy", "", *lines] if lines else []


def _since(report: RunReport) -> list[str]:
    """Return what has changed since another run; nothing where nobody asked."""
    if report.baseline is None:
        return []
    lines = bullets(since_lines(report, listed=_CHANGES_SHOWN)[1:])
    return ["", f"## Since {escape(report.baseline.run)}", "", *(lines or ["Nothing changed."])]


def _red_cell(cell: RedCell) -> str:
    """Return one red cell as one piece, so that it is never cut in two."""
    lines = [
        "",
        f"### {cell.status.value}: {escape(cell.model, CELL_LIMIT)}, {escape(cell.stage)}",
        "",
        *bullets(cell.lines),
        *[f"- **evidence** {code(path)}" for path in cell.evidence],
        *[f"- **found** {code(path)}" for path in cell.found],
        "",
        *command_block(cell.rerun),
        *(["", *command_block(cell.bisect)] if cell.bisect else []),
    ]
    return "\n".join(lines)


def _foot(report: RunReport, directory: str) -> list[str]:
    """Return notes, time shares and where the reports are."""
    return [
        "",
        "## Run",
        "",
        *bullets([("run", title_words(report)), *side_lines(report), *[("note", note) for note in report.notes]]),
        *bullets(fact for fact in [("numerics", numerics_words(report)), ("time", time_words(report))] if fact[1]),
        f"- **reports** {code(run_directory(report, directory) + '/')}",
    ]


def _times_and_memory(report: RunReport, rows: Sequence[TableRow]) -> list[str]:
    """Return what the duel measured, folded: a table of changes, then all quantities of models with a finding."""
    measured = []
    for row in rows:
        cells = row.verdict.cells if row.verdict else ()
        cell = next((cell for cell in cells if cell.scenario == "latency"), None)
        if row.facts is not None and row.facts.latency is not None:
            found = quantity_rows(row.facts.latency, limits_of(report, row.facts), cell)
            if found:
                measured.append((row.model, bool(cell and cell.findings), found))
    if not measured:
        return []
    worst_first = sorted(measured, key=lambda item: not any(found.beyond for found in item[2]))
    told = [(model, found) for model, has_finding, found in worst_first if has_finding]
    rest = len(told) - _MODELS_SHOWN
    return [
        "",
        "## Times and memory",
        "",
        f"New over old, from the duel; **bold** is beyond its limit, `{NOT_MEASURED}` was not measured.",
        _changes([(model, found) for model, _, found in worst_first]),
        *[_quantities(model, found) for model, found in told[:_MODELS_SHOWN]],
        *(["", f"And {rest} more models with a finding, in `report.json`."] if rest > 0 else []),
    ]


def _changes(measured: Sequence[tuple[str, tuple[QuantityRow, ...]]]) -> str:
    """Return the table with a row per model and a column per quantity, the worst input shape in one."""
    seen = {row.column for _, found in measured for row in found}
    heads = {name: head for name, (head, _) in QUANTITIES.items() if name in seen}
    lines = [table_line(("model", *heads.values())), table_line(("---", *("---:" for _ in heads)))]
    for model, found in measured[:_ROWS_SHOWN]:
        worst: dict[str, QuantityRow] = {}
        for row in sorted(found, key=lambda row: (row.beyond, row.ratio.ratio if row.ratio else row.new)):
            worst[row.column] = row
        texts = (_marked(worst[name].brief, worst[name]) if name in worst else NOT_MEASURED for name in heads)
        lines.append(table_line((escape(model, CELL_LIMIT), *texts)))
    rest = len(measured) - _ROWS_SHOWN
    after = ["", f"And {rest} more models, in `report.json`."] if rest > 0 else []
    return folded(f"{counted(len(measured), 'model')}, all quantities", lines + after)


def _quantities(model: str, found: Sequence[QuantityRow]) -> str:
    """Return all quantities of one model, folded."""
    lines = [table_line(("quantity", "old -> new", "change", "told from")), table_line(("---", *["---:"] * 3))]
    for row in found:
        values = escape(row.values) if row.ratio else _marked(row.values, row)
        change = _marked(row.change, row) if row.ratio else row.change
        lines.append(table_line((escape(row.words, CELL_LIMIT), values, change, escape(row.limit))))
    beyond = [row.name for row in found if row.beyond]
    name = shorten(prose(model), CELL_LIMIT)
    return folded(f"{name}: {len(beyond)} of {len(found)} beyond their limits" if beyond else name, lines)


def _marked(text: str, row: QuantityRow) -> str:
    return f"**{escape(text)}**" if row.beyond else escape(text)


def _bounded(pieces: list[str], limit_bytes: int) -> list[str]:
    """Return the pieces that fit in ``limit_bytes``, and a last line that counts the rest."""
    used = 0
    for index, piece in enumerate(pieces):
        used += len(piece.encode()) + 1
        if used > limit_bytes:
            rest = f"Cut here: {len(pieces) - index} more lines and cells are in `report.json`."
            return [*pieces[:index], "", rest]
    return pieces
