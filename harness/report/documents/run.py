"""A run as a document: the decision, what needs somebody, the models, and what the decision rests on."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.core.outcome import Decision, Status
from harness.core.plan import INITIALIZATION_LIMIT
from harness.core.quantities import INITIALIZATION
from harness.core.report import CellChange, CellTrend, RunReport
from harness.core.text import amount, counted, joined
from harness.core.verdict import Cause, CellVerdict
from harness.report.document import (
    ALL,
    BAD,
    DETAIL,
    FIRST,
    GOOD,
    MORE,
    OPEN,
    PLAIN,
    STAGE,
    USUAL,
    Block,
    Cell,
    Charts,
    Document,
    Fact,
    Figure,
    Part,
    Row,
    Table,
    Verdict,
    anchor,
    commands,
    facts,
    place,
    placed,
)
from harness.report.documents.causes import cause_part, causes_section
from harness.report.documents.fleet import CHANGE_TONES, DECISION_TONES
from harness.report.documents.migration import run_migration_words
from harness.report.documents.models import models_part, quantities_part, row_tone
from harness.report.documents.rules import policy_part, since_part, since_tone, waivers_fact, waivers_part
from harness.report.documents.run_facts import (
    calibration_part,
    environments_part,
    migration_part,
    planted_part,
    rollback_part,
    rollback_tone,
    static_part,
    timelines,
)
from harness.report.documents.screen import screen_parts
from harness.report.excess import ModelExcess, by_excess, steady_calls
from harness.report.text.scenarios import HEADS, initialization_rows, legend
from harness.report.text.table import (
    BY_FLOOR,
    TableRow,
    columns,
    floor_of,
    guessed_words,
    not_measured,
    row_cells,
    rows_by_need,
    table_rows,
    timed_in,
)
from harness.report.words.in_short import in_short
from harness.report.words.phrases import NO_REASON, scenario_words, shorten
from harness.report.words.predictions import foreseen, rollback_words, static_words
from harness.report.words.red_cells import RedCell, cell_words, quiet_cells, red_cells, run_directory, side_lines
from harness.report.words.since import disturbed_words, since_words
from harness.report.words.summary import (
    but_words,
    cost_words,
    count_words,
    decision_words,
    difference_words,
    headline,
    pair_words,
    planted_words,
    reason_words,
    time_words,
    title_words,
    torch_words,
)
from harness.report.words.to_upgrade import expectation, owners_of, rewritten_files, steps
from harness.verdict.commands import anyway_command, is_red, price_command, report_command
from harness.verdict.counting import cell_word, counts_of

SIGNS = "x: new time / old time; ?: could not tell whether within the limit; -: not measured"
MEDIANS = "medians of each release; how much slower it is comes of pairs of processes, and may differ where these do"
ROWS_SHOWN, OTHERS_SHOWN, LINES_SHOWN, STEPS_SHOWN, CELLS_SHOWN = 10, 6, 3, 5, 60
"""On a terminal: rows of the table, models neither green nor red, notes of each kind; everywhere: steps; on a page
cells of a cause.
"""


def run_document(
    report: RunReport,
    *,
    directory: str = "",
    calibration: str = "",
) -> Document:
    """Return the document of a run.

    Args:
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
        calibration: how often this version of the gate errs, as ``nox -s calibrate`` has written it.
    """
    where = run_directory(report, directory)
    rows, models = table_rows(report), by_excess(report)
    red = {cell.cell: cell for cell in red_cells(report, directory=directory)}
    judgement = report.judgement
    but = but_words(report)
    word = judgement.decision.value
    to_do = _steps(report, where)
    parts = (
        to_do,
        Part(title="", blocks=tuple(_head(report, where))),
        causes_section(
            [
                _cause(report, cause, at, red, where, stepped=bool(steps(report, where)))
                for at, cause in enumerate(report.causes)
            ],
            nothing=_nothing(report, models),
        ),
        _models(report, rows),
        _initialization(report),
        Part(title="Neither green nor red", noun="model", importance=FIRST, blocks=tuple(_others(report, rows))),
        policy_part(report),
        since_part(report),
        Part(title="All models at once", id="fleet", importance=ALL, blocks=(_fleet_charts(report, models),)),
        models_part(report, models, red),
        migration_part(report),
        waivers_part(report),
        rollback_part(report, where),
        static_part(report, where),
        _guesses(rows),
        environments_part(report),
        planted_part(report),
        calibration_part(calibration),
        Part(title="Run", id="run", noun="note", importance=FIRST, blocks=tuple(_run(report, rows))),
        quantities_part(models),
    )
    return Document(
        title=pair_words(report),
        eyebrow="TorchScript upgrade gate",
        verdict=Verdict(
            word=word,
            tone=OPEN if but else DECISION_TONES[judgement.decision],
            condition=headline(report).removeprefix(word),
            means=decision_words(report),
            reason=reason_words(report),
        ),
        old=report.old.name,
        new=report.new.name,
        full="report.json",
        things="model",
        tally=_tally(models),
        screen=screen_parts(report, models),
        beside=("report.json", "report.md", "junit.xml", "trace.json"),
        parts=tuple(part for part in parts if part.blocks or part.kind == "causes"),
    )


def _tally(models: Sequence[ModelExcess]) -> tuple[tuple[int, str, str], ...]:
    """Return how many models count as what, what needs somebody first."""
    tones = {item.row.status_word: row_tone(item.row) for item in models if item.row.shown_word == item.row.status_word}
    counts = counts_of([item.row.verdict for item in models])
    return tuple((number, word, tones.get(word, GOOD)) for word, number in counts.items())


def _head(report: RunReport, where: str) -> Iterator[Fact]:
    """Yield what was compared and what the decision rests on."""
    judgement = report.judgement
    costs = cost_words(report) if judgement.mitigation or judgement.decision is Decision.OK_WITH_MITIGATION else ()
    for at, cost in enumerate(costs):
        yield Fact("cost", cost, placed(FIRST, at, 30) if at < LINES_SHOWN else DETAIL)
    yield from facts(in_short(report), FIRST + 1, step=4)
    yield from waivers_fact(report)
    yield Fact("torch", f"{torch_words(report)}, {report.device}, profile {report.profile}")
    defects = judgement.planted_defects
    planted = OPEN if not defects else GOOD if all(item.caught for item in defects) else BAD
    for label, text, tone in (
        ("differs", difference_words(report), PLAIN),
        ("planted", f"defects: {planted_words(report)}", planted),
        ("models", count_words(report), PLAIN),
        ("static", static_words(report), PLAIN),
        ("rollback", rollback_words(report), rollback_tone(report)),
        ("migrate", run_migration_words(report.migration), PLAIN),
        ("baseline", since_words(report), since_tone(report)),
        ("machine", disturbed_words(report), OPEN),
    ):
        if text:
            yield Fact(label, text, tone=tone)
    yield Fact("time", time_words(report), USUAL)
    yield Fact("run", title_words(report), DETAIL)
    yield Fact("reports", f"{where}/", form="path")
    again = report.policy.regated is not None  # by a policy that the run does not keep
    more = "the same command with --verbose" if again else report_command(report, where, "--verbose")
    yield Fact("more", more, form="words" if again else "command")
    yield from commands(((label, text) for label, text in side_lines(report) if label == "longer"), FIRST)


def _steps(report: RunReport, where: str) -> Part:
    """Return what to do about each cause that blocks, and what is expected then."""
    to_do, blocks = steps(report, where), list[Fact]()
    for at, step in enumerate(to_do[:STEPS_SHOWN]):
        importance = placed(FIRST - 50, at, 5)
        blocks.append(Fact(f"{at + 1}", f"{step.whose}: {step.text}", importance))
        blocks += [Fact("", step.path, importance, "path")] if step.path else []
        blocks += [Fact("", command, importance, "command") for _, command in step.commands]
    rest = len(to_do) - STEPS_SHOWN
    words = joined(f"and {counted(rest, 'more step')}, each with its cause" if rest > 0 else "", expectation(report))
    blocks += [Fact("", words, FIRST)] if words else []
    files = rewritten_files(report)
    more = [f"and {counted(len(files) - STEPS_SHOWN, 'more rewritten file')}"] if len(files) > STEPS_SHOWN else []
    blocks += [Fact("", text, FIRST) for text in (*files[:STEPS_SHOWN], *more)]
    blocks += commands([("measure", price_command(report) if files else "")], FIRST)
    return Part(title="To upgrade", id="to-upgrade", kind="steps", blocks=tuple(blocks))


def _nothing(report: RunReport, models: Sequence[ModelExcess]) -> str:
    guessed = sum(bool(model.guessed) for model in report.models)
    if guessed:
        answered = f"{guessed} of {len(models)} answered guessed requests, which may not show a break"
        return f"Nothing is red. {answered}: give real ones."
    open_ = any(item.undecided or (item.over and item.over[0].factor is not None) for item in models)
    return "Nothing blocks; what is open stands beside." if open_ else "Nothing needs you."


def _cause(report: RunReport, cause: Cause, at: int, red: Mapping[str, RedCell], where: str, *, stepped: bool) -> Part:
    """Return one cause; on a page its models are links, and each of its cells says what happened there."""
    changes = {item.cell: item for item in report.baseline.changes} if report.baseline is not None else {}
    shown = [red[cell] for cell in cause.cells if cell in red]
    cells = tuple(_red_cell(cell, changes.get(cell.cell)) for cell in shown[:CELLS_SHOWN])
    what = "What the cell says" if len(shown) == 1 else f"What each of {len(shown)} cells says"
    left = f"and {len(shown) - len(cells)} more" if len(shown) > len(cells) else ""
    table = Table(heads=CELL_HEADS, rows=cells, kind="red-cell", left=left)
    fold = Part(title=what, folded=True, importance=ALL, blocks=(table,))
    before = facts([("owner", ", ".join(owners_of(report, cause)))])
    return cause_part(cause, at, before=before, after=[fold] if cells else [], where=where, stepped=stepped)


CELL_HEADS = ("model", "stage", "what happened", "since the baseline")


def _red_cell(cell: RedCell, change: CellChange | None) -> Row:
    by_label = dict(reversed(cell.lines))
    changed = change is not None and change.change is not CellTrend.UNCHANGED
    since = Cell(change.words, tone=CHANGE_TONES[change.change]) if change is not None and changed else Cell("")
    what = by_label.get("what") or by_label.get("why", "")
    return Row(
        cells=(
            Cell(cell.model, link=f"#{anchor(cell.model)}"),
            Cell(cell.stage, link=f"#{place(cell.cell)}"),
            shorten(what, 420),
            since,
        ),
        importance=ALL,
    )


def _models(report: RunReport, rows: Sequence[TableRow]) -> Part:
    """Return the table, one row per model: on paper by need, the clearest model of each cause first."""
    behind: dict[str, list[str]] = {}
    for cause in report.causes:
        for model in cause.models:
            behind.setdefault(model, []).append(f"cause:{cause.id}")
    shown = rows_by_need(report)
    limit = ROWS_SHOWN + 2 if len(shown) <= ROWS_SHOWN + 2 else ROWS_SHOWN
    made = tuple(
        Row(
            cells=tuple(_row_cells(row)),
            importance=placed(FIRST + 20 * (at > 3), at, 5) if at < limit else DETAIL,
            find=" ".join(_search(row, behind.get(row.model, ()))),
        )
        for at, row in enumerate(shown)
    )
    stages = Counter(name for row in rows for name in dict.fromkeys(cell.scenario for cell in _open_cells(row)))
    absent, guessed, timed = not_measured(rows), guessed_words(rows), timed_in(rows)
    floor = f"means decided by time: slower by less than {amount(floor_of(report), 's')} per call is no finding"
    notes = [
        *facts([("-", f"means not measured: {absent}" if absent else "")], DETAIL),
        *facts([("->", MEDIANS if timed else "")], DETAIL),
        *facts([("times", timed)], USUAL),
        *facts([("guessed", f"{guessed}, listed in report.md" if guessed else "")], FIRST),
        *facts([(BY_FLOOR, floor if any(row.by_floor for row in rows) else "")], FIRST),
    ]
    table = Table(
        heads=columns(rows),
        rows=made,
        caption="",
        numbers=(5, 6, 7),
        noun="model",
        status=len(columns(rows)) - 1,
        stages=tuple((place(name), scenario_words(name), count) for name, count in stages.items()),
        legend=SIGNS,
    )
    return Part(title="Models", id="models", kind="models", blocks=(table, *notes) if rows else (), importance=FIRST)


def _row_cells(row: TableRow) -> Iterator[Cell]:
    latency = row.facts.latency if row.facts is not None else None
    ratios = [latency.ratio(name) if latency else None for name in ("load", "first_calls")]
    ratios.append(latency.shown if latency else None)
    worst = row.facts.worst_relative if row.facts is not None else None
    numbers = [None] * 4 + [worst, *(ratio.ratio if ratio else None for ratio in ratios)]
    wide, short = row_cells(row, compact=False), row_cells(row, compact=True)
    yield Cell(row.model, link=f"#{anchor(row.model)}")
    for at, (text, brief) in enumerate(zip(wide[1:-1], short[1:-1], strict=True), start=1):
        number = numbers[at] if at < len(numbers) else None
        yield Cell(text, short=brief, key="" if number is None else f"{number:.6g}")
    yield Cell(row.shown_word, tone=row_tone(row), key=row.status_word)


def _open_cells(row: TableRow) -> list[CellVerdict]:
    return [cell for cell in row.cells if cell_word(cell) != Status.PASS.value]


def _search(row: TableRow, causes: Iterable[str]) -> Iterator[str]:
    """Yield the words by which a page finds a model."""
    model = row.facts
    texts = [model.group, *model.tags] if model is not None else []
    cells = [cell for cell in row.cells if is_red(cell)]
    texts += dict.fromkeys(item.kind for cell in cells for item in cell.findings)
    yield from (f"{STAGE}{place(cell.scenario)}" for cell in _open_cells(row))
    yield from (shorten(text.lower(), 80) for text in (*texts, *causes) if text)
    yield shorten(row.verdict.reason.lower(), 240) if row.verdict is not None else ""


def _initialization(report: RunReport) -> Part:
    """Return the table of initializations, what stands below it, and on a page the timelines."""
    shown = list(initialization_rows(report))
    change = HEADS.index("change")
    timed = any(row.facts.init_ratio for row, _, _ in shown)
    kept = [at for at in range(len(HEADS)) if timed or at != change]
    cells: list[tuple[str | Cell, ...]] = [
        (scenario_words(row.facts.scenario), row.facts.group or "all", *texts) for row, texts, _ in shown
    ]
    rows = tuple(
        Row(cells=tuple(texts[at] for at in kept), importance=importance)
        for texts, (_, _, importance) in zip(cells, shown, strict=True)
    )
    limit = report.limits.get(INITIALIZATION, INITIALIZATION_LIMIT)
    heads = tuple(HEADS[at] for at in kept)
    numbers = tuple(range(change - 1, len(heads) - 2))
    table = (
        [Table(heads=heads, rows=rows, numbers=numbers, long=(change,) * timed, noun="initialization")] if rows else []
    )
    blocks: tuple[Block, ...] = (
        *table,
        *facts(legend(report.scenarios, limit), MORE),
        *timelines(report),
    )
    return Part(title="Initialization", id="initialization", blocks=blocks, importance=FIRST)


def _others(report: RunReport, rows: Sequence[TableRow]) -> Iterator[Part]:
    """Yield the rows that are neither PASS nor told with a red cell, with their cells that say more."""
    at = 0
    for row in rows:
        if row.status is Status.PASS or any(is_red(cell) for cell in row.cells):
            continue
        reason = (row.verdict.reason if row.verdict is not None else "") or NO_REASON
        lines = [Fact("static", text, DETAIL) for text in foreseen(row.verdict, row.facts)]
        quiet = [cell for cell in quiet_cells(row) if cell.decides] if row.verdict is not None else []
        lines += [
            Fact(cell_word(cell), f"{scenario_words(cell.scenario)}: {cell_words(cell, reason)}", DETAIL)
            for cell in quiet
            if reason not in cell_words(cell, reason)
        ]
        importance = placed(FIRST + 5, at, 10) if at < OTHERS_SHOWN else DETAIL
        anyway = next(filter(None, (anyway_command(report, cell) for cell in row.cells)), "")
        yield Part(
            title=f"{shorten(row.model, 50)}: {reason}",
            word=row.status_word,
            tone=row_tone(row),
            importance=importance,
            blocks=(*lines, *commands([("mitigate", anyway)], importance)),
        )
        at += 1


def _fleet_charts(report: RunReport, models: Sequence[ModelExcess]) -> Charts:
    def draw() -> Iterator[Figure]:
        from harness.report.charts.fleet_charts import fleet_figures  # noqa: PLC0415  only a page draws

        yield from fleet_figures(steady_calls(report, models), len(models))

    return Charts(draw, kind="fleet")


def _guesses(rows: Sequence[TableRow]) -> Part:
    """Return the requests that were made up, one line per model."""
    guessed = [(row.model, row.facts.guessed) for row in rows if row.facts is not None and row.facts.guessed]
    made = tuple(Row(cells=(model, guess)) for model, guess in sorted(guessed))
    blocks = (Table(heads=("model", "requests"), rows=made, importance=DETAIL),) if made else ()
    return Part(title="Guessed inputs", id="guesses", importance=DETAIL, blocks=blocks)


def _run(report: RunReport, rows: Sequence[TableRow]) -> Iterator[Block]:
    """Yield warnings and notes, what may be another answer first, and what happened to the machine."""
    for at, row in enumerate(row for row in rows if row.unseen_changes):
        words = "; ".join(item.message for item in row.unseen_changes)
        yield Fact("warning", f"{row.model}: {words}", placed(FIRST - 10, at, 2))
    counts: Counter[str] = Counter()
    lines = [line for line in side_lines(report) if line[0] != "longer"]
    for label, text in (*lines, *(("note", note) for note in report.notes)):
        counts[label] += 1
        yield Fact(label, text, placed(FIRST - 10, counts[label], 20) if counts[label] <= LINES_SHOWN else DETAIL)
    events = report.during_run.events if report.during_run is not None else ()
    happened = tuple(Row(cells=(event.name, event.read, event.so_what, event.do_this)) for event in events)
    if happened:
        yield Part(
            title="What happened to the machine while it ran",
            id="machine",
            folded=True,  # no note, where these are counted
            opened=True,
            importance=DETAIL,
            blocks=(
                Table(heads=("what", "found", "so what", "do this"), rows=happened, long=(2, 3), importance=DETAIL),
            ),
        )
