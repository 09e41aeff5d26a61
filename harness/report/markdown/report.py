"""The report as GitHub-flavoured markdown: ``report.md`` and the step summary of a CI job."""

from collections.abc import Iterator, Sequence

from harness.core.outcome import Decision, Status
from harness.core.prediction import ModelRollback, PredictedModel, RollbackReport
from harness.core.report import RunReport
from harness.core.text import counted, joined, prose
from harness.core.verdict import WaiverState, WaiverUse
from harness.report.markdown.text import CELL_LIMIT, bullets, code, command_block, escape, folded, table_line
from harness.report.text.causes import models_words
from harness.report.text.scenarios import MARKDOWN_COLUMNS, facts_words, legend, scenario_rows
from harness.report.text.table import (
    GUESSED,
    TableRow,
    columns,
    guessed_words,
    not_measured,
    row_cells,
    table_rows,
    timed_in,
)
from harness.report.text.waivers import bound_words, place_words
from harness.report.words.migration import run_migration_words
from harness.report.words.phrases import NO_REASON, NOT_MEASURED, scenario_words, shorten
from harness.report.words.policy import policy_lines, shown_above
from harness.report.words.predictions import (
    NAMED,
    back_heading,
    closed_rollbacks,
    finding_words,
    place,
    rollback_lines,
    rollback_words,
    static_words,
    wrong_predictions,
)
from harness.report.words.quantities import COLUMNS as QUANTITIES
from harness.report.words.quantities import QuantityRow, limits_of, quantity_rows
from harness.report.words.red_cells import RedCell, cell_words, quiet_cells, red_cells, run_directory, side_lines
from harness.report.words.since import disturbed_words, since_lines, since_words
from harness.report.words.summary import (
    but_words,
    common_words,
    cost_words,
    count_words,
    decision_words,
    difference_words,
    headline,
    numerics_words,
    pair_words,
    planted_words,
    run_words,
    time_words,
    title_words,
    torch_words,
)
from harness.verdict.counting import cause_word, cell_word
from harness.verdict.waivers.apply import range_words, size_words
from harness.verdict.waivers.uses import days_words

# Models that are told in full, and rows of a folded table.
_TOLD = 50
_MARKDOWN_PREDICTED_ROWS_SHOWN = 400


def rollback_section(report: RunReport, directory: str) -> list[str]:
    """Return whether one can roll back, each model that cannot, and a folded table; nothing where nobody asked."""
    found = report.rollback
    if found is None:
        return []
    where = run_directory(report, directory)
    closed = closed_rollbacks(found)
    rest = len(closed) - _TOLD
    return [
        "",
        "## Rollback",
        "",
        escape(rollback_words(report)),
        *[_rollback(report, item, where) for item in closed[:_TOLD]],
        *(["", f"And {rest} more, in `report.json`."] if rest > 0 else []),
        *([_rollback_probes(found)] if found.models else []),
    ]


def _rollback(report: RunReport, item: ModelRollback, directory: str) -> str:
    word, subject = back_heading(report, item)
    lines = ["", f"### {word}: {escape(subject, CELL_LIMIT)}", "", *bullets(rollback_lines(item))]
    lines += [f"- **artifact** {code(place(item.artifact, directory))}"] if item.artifact else []
    return "\n".join([*lines, *(["", *command_block(item.command)] if item.command else [])])


def _rollback_probes(found: RollbackReport) -> str:
    lines = [table_line(("model", "predicted", "happened", "probe", "can be rolled back")), table_line(["---"] * 5)]
    for item in found.models[:_MARKDOWN_PREDICTED_ROWS_SHOWN]:
        prediction = item.predicted
        happened = prediction.happened if prediction is not None and found.method == "probed" else NOT_MEASURED
        texts = (
            item.model,
            prediction.prediction if prediction is not None else NOT_MEASURED,
            happened,
            item.verdict.status.value if item.verdict is not None else NOT_MEASURED,
            item.answer,
        )
        lines.append(table_line(escape(text, CELL_LIMIT) for text in texts))
    return folded(f"rollback of {counted(len(found.models), 'model')}", [*lines, *_more(len(found.models))])


def migration_section(report: RunReport) -> list[str]:
    """Return how many models could leave TorchScript, what the others stop at, folded; nothing where nobody asked."""
    found = report.migration
    if found is None:
        return []
    stopped = found.stopped
    table = [table_line(("model", "outcome", "why", "instead")), table_line(["---"] * 4)]
    for model in stopped[:_MARKDOWN_PREDICTED_ROWS_SHOWN]:
        texts = (model.outcome.value, model.reason, model.cure)
        table.append(table_line((code(model.model), *(escape(text, _CAUSE_LIMIT) for text in texts))))
    return [
        "",
        "## Leaving TorchScript",
        "",
        escape(run_migration_words(found)),
        *(["", *command_block(found.command)] if found.command else []),
        *([folded(f"{counted(len(stopped), 'model')} not ready", [*table, *_more(len(stopped))])] if stopped else []),
    ]


def static_section(report: RunReport, directory: str) -> list[str]:
    """Return each wrong prediction, then all of them beside what happened, folded; nothing where none was made."""
    predicted = [(model.model, model.static) for model in report.models if model.static is not None]
    if not predicted:
        return []
    wrong = []
    for subject, lines, command in wrong_predictions(report, run_directory(report, directory)):
        wrong += ["", f"### WRONG PREDICTION: {escape(subject, CELL_LIMIT)}", "", *bullets(lines), ""]
        wrong += command_block(command)
    sides = [
        (side, getattr(report, side).name) for side in ("old", "new") if any(side in it.sides for _, it in predicted)
    ]
    heads = ("model", *(name for _, name in sides), "worth knowing")
    table = [table_line(escape(head) for head in heads), table_line(["---"] * len(heads))]
    for model, static in predicted[:_MARKDOWN_PREDICTED_ROWS_SHOWN]:
        found = [static.sides.get(side) for side, _ in sides]
        notes = "; ".join(dict.fromkeys(text for item in found if item is not None for text in _notes(item)))
        cells = [escape(text, CELL_LIMIT) for text in (model, *(_beside(item) for item in found))]
        table.append(table_line([*cells, escape(notes or NOT_MEASURED)]))
    summary = f"{counted(len(predicted), 'model')}: predicted, and what happened"
    table_of_all = folded(summary, [*table, *_more(len(predicted))])
    return ["", "## Static check", "", escape(static_words(report)), *wrong, table_of_all]


def _beside(predicted: PredictedModel | None) -> str:
    if predicted is None:
        return NOT_MEASURED
    wrong = " WRONG" if predicted.agreed is False else ""
    return f"{predicted.prediction}: {predicted.happened}{wrong}"


def _notes(predicted: PredictedModel) -> Iterator[str]:
    if predicted.note:
        yield predicted.note
    found = predicted.verdict.findings if predicted.verdict is not None else ()
    yield from (finding_words(finding) for finding in found[:NAMED])
    if len(found) > NAMED:
        yield f"and {len(found) - NAMED} more in {predicted.release}"


def _more(count: int) -> list[str]:
    rest = count - _MARKDOWN_PREDICTED_ROWS_SHOWN
    return ["", f"And {rest} more models, in `report.json`."] if rest > 0 else []


# What needs somebody first. A waiver that nothing could need in this run is counted only.
ORDER = (
    WaiverState.EXCEEDED,
    WaiverState.EXPIRED,
    WaiverState.UNUSED,
    WaiverState.OTHER_PAIR,
    WaiverState.USED,
)
WAIVER_COLUMNS = ("model", "finding", "where", "covers", "seen", "until", "owner", "reason", "state")
_MARKDOWN_WAIVERS_ROWS_SHOWN = 200


def waivers_section(report: RunReport) -> list[str]:
    """Return a line per waiver that this run has something to say of; nothing where there is none."""
    uses = [use for use in report.waivers if use.state in ORDER]
    uses.sort(key=lambda use: ORDER.index(use.state))
    if not uses:
        return []
    lines = [_line(use) for use in uses[:_MARKDOWN_WAIVERS_ROWS_SHOWN]]
    rest = (
        [f"{len(uses) - _MARKDOWN_WAIVERS_ROWS_SHOWN} more are in report.json."]
        if len(uses) > _MARKDOWN_WAIVERS_ROWS_SHOWN
        else []
    )
    quiet = len(report.waivers) - len(uses)
    rest += [f"Of {quiet} more nothing was judged that could need them."] if quiet else []
    table = ["", "## Waivers", "", table_line(WAIVER_COLUMNS), table_line(("---",) * len(WAIVER_COLUMNS)), *lines]
    return [*table, *(["", *rest] if rest else [])]


def _line(use: WaiverUse) -> str:
    waiver = use.waiver
    seen = size_words(waiver.kind, waiver.bound, use.size)[1] if use.size is not None else ""
    texts = (
        waiver.model,
        waiver.kind,
        place_words(waiver),
        joined(bound_words(waiver), f"torch {range_words(waiver)}"),
        seen,
        f"{waiver.expires} ({days_words(use.days_left)})",
        waiver.owner,
        " ".join(part for part in (waiver.reason, waiver.issue) if part),
        "; ".join((use.state.value, *use.broad)),
    )
    return table_line([escape(text, CELL_LIMIT) for text in texts])


# GitHub drops the summary of a step over 1024 KiB as a whole, and nobody reads as much as this.
LIMIT_BYTES = 400_000

# Rows of the folded table, and models whose quantities are all told: the worst ones.
_ROWS_SHOWN = 200
_MODELS_SHOWN = 50
_CHANGES_SHOWN = 200
_CAUSES_SHOWN = 60
_CAUSE_LIMIT = 400
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
        *_causes(report),
        *_table(rows),
        *_scenarios(report),
        *_reasons(rows),
        *_policy(report),
        *_since(report),
        *(["", "## Red cells"] if cells else []),
        *_red_cells(cells, limit_bytes),
        *migration_section(report),
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
        ("planted", planted_words(report)),
        ("models", count_words(report)),
        ("static check", static_words(report)),
        ("rollback", rollback_words(report)),
        ("migrate", run_migration_words(report.migration)),
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


def _causes(report: RunReport) -> list[str]:
    """Return what needs a reader as a table, each cause once."""
    if not report.causes:
        return []
    heads = ("status", "cause", "models", "what", "cure")
    lines = ["", "## Causes", "", table_line(heads), table_line(("---",) * len(heads))]
    for cause in report.causes[:_CAUSES_SHOWN]:
        texts = [cause.title, cause.evidence[0][1]] if cause.evidence else [cause.title]
        text = escape(": ".join(dict.fromkeys(texts)), _CAUSE_LIMIT)
        row = (f"**{cause_word(cause)}**", code(cause.id), escape(models_words(cause)), text, escape(cause.cure))
        lines.append(table_line(row))
    rest = len(report.causes) - _CAUSES_SHOWN
    lines += ["", f"And {counted(rest, 'more cause')}, in `report.json`."] if rest > 0 else []
    again = [command for cause in report.causes for label, command in cause.commands if label == "rerun"]
    if not again:
        return lines
    return [*lines, "", "All cells of a cause again, such as those of the first one:", "", *command_block(again[0])]


def _title(report: RunReport) -> str:
    """Return the decision and the pair."""
    if report.judgement.mitigation or but_words(report):
        return f"{escape(headline(report))} ({escape(pair_words(report))})"
    return f"{report.judgement.decision.value}: {escape(pair_words(report))}"


def _table(rows: tuple[TableRow, ...]) -> list[str]:
    """Return the table, one line per model, and what ``-`` hides."""
    if not rows:
        return []
    heads = columns(rows)
    marks = ("---",) * 5 + ("---:",) * 3 + ("---",) * (len(heads) - 8)
    lines = ["", "## Models", "", table_line(heads), table_line(marks)]
    lines += [_judged_line(row_cells(row, compact=False), row.status) for row in rows]
    absent = not_measured(rows)
    lines += ["", f"`-` means not measured: {absent}."] if absent else []
    lines += ["", f"Times are {timed_in(rows)}."] if timed_in(rows) else []
    guessed = guessed_words(rows)
    return lines + (["", f"`{GUESSED}` {guessed}, listed below."] if guessed else [])


def _guesses(rows: Sequence[TableRow]) -> list[str]:
    """Return the table of the requests that were made up, one line per model; nothing where all were given."""
    with_guesses = [(row.model, row.facts.guessed) for row in rows if row.facts is not None and row.facts.guessed]
    if not with_guesses:
        return []
    lines = [
        table_line((escape(model, CELL_LIMIT), escape(guess, _GUESS_LIMIT))) for model, guess in sorted(with_guesses)
    ]
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
            f"  - {cell_word(cell)} {code(cell.cell)}: {escape(cell_words(cell, reason))}"
            for cell in quiet_cells(row)
            if cell.decides
        ]
    return ["", "## Not PASS", "", *lines] if lines else []


def _policy(report: RunReport) -> list[str]:
    """Return the policy that decided and what it made of the run; nothing where none was written."""
    lines = bullets(policy_lines(report, listed=_CHANGES_SHOWN, shown=shown_above(report)))
    return ["", "## Policy", "", *lines] if lines else []


def _since(report: RunReport) -> list[str]:
    """Return what has changed since another run; nothing where nobody asked."""
    if report.baseline is None:
        return []
    lines = bullets(since_lines(report, listed=_CHANGES_SHOWN)[1:])
    return ["", f"## Since {escape(report.baseline.run)}", "", *(lines or ["Nothing changed."])]


def _red_cells(cells: Sequence[RedCell], limit_bytes: int) -> Iterator[str]:
    """Yield a section for each cell; it is empty where those before it are over the limit already."""
    used = 0
    for cell in cells:
        section = _red_cell(cell) if used <= limit_bytes else ""
        used += len(section.encode())
        yield section


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
    """Return what the benchmark measured, folded: a table of changes, then all quantities of models with a finding."""
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
    with_findings = [(model, found) for model, has_finding, found in worst_first if has_finding]
    rest = len(with_findings) - _MODELS_SHOWN
    return [
        "",
        "## Times and memory",
        "",
        f"New over old, from the benchmark; **bold** is beyond its limit, `{NOT_MEASURED}` was not measured.",
        _changes([(model, found) for model, _, found in worst_first]),
        *[_quantities(model, found) for model, found in with_findings[:_MODELS_SHOWN]],
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
