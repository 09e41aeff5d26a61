"""What stands behind each model of a run: its stages with what happened, switches, charts, numbers; and quantities."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.core.comparison import OutputComparison, TensorMetrics
from harness.core.golden import Trust
from harness.core.outcome import Status
from harness.core.report import ModelReport, RunReport
from harness.core.text import counted
from harness.core.verdict import CellVerdict
from harness.report.document import (
    ALL,
    DETAIL,
    GOOD,
    OPEN,
    Block,
    Cell,
    Fact,
    Part,
    Row,
    Table,
    anchor,
    commands,
    facts,
    inside,
    place,
    placed,
)
from harness.report.documents.causes import cause_tone, tone
from harness.report.excess import ModelExcess
from harness.report.text.table import TableRow, timed_of
from harness.report.words.phrases import NOT_MEASURED, beyond_words, scenario_words, shorten, size
from harness.report.words.quantities import COLUMNS, QuantityRow
from harness.report.words.red_cells import RedCell, described_cell
from harness.verdict.commands import anyway_command, is_red
from harness.verdict.counting import cell_word
from harness.verdict.mitigation import provenance_words

FOLDED = ("threads", "frames")
"""Labels of a story that are long and read last."""
TENSORS_SHOWN, LINES_SHOWN, ROWS_SHOWN = 6, 12, 200
AS_BEFORE = "as in the old release"


def row_tone(row: TableRow) -> str:
    """Return the tone of a model: of its status, but of an open one where it passes and not all is well."""
    return OPEN if row.status is Status.PASS and row.shown_word != Status.PASS.value else tone(row.status)


def models_part(report: RunReport, models: Sequence[ModelExcess], red: Mapping[str, RedCell]) -> Part:
    """Return all models: on paper those with red cells, on a page those behind one cause together, each folded.

    Where a page has too little room, the last models lose their details first.
    """
    trust = {item.model: item for item in report.trust}
    first = {model: cause.id for cause in reversed(report.causes) for model in cause.models}
    titles = {cause.id: (cause.title, cause_tone(cause)) for cause in report.causes}
    groups: dict[tuple[str, str], list[Part]] = {title: [] for title in titles.values()}
    open_, quiet = ("passing, something undecided", OPEN), ("nobody has to look at", GOOD)
    warned = ("passing, with a warning", OPEN)
    groups |= {open_: [], warned: [], quiet: []}
    for at, item in enumerate(models):
        cause = first.get(item.row.model)
        own = quiet
        if item.row.status is Status.PASS and row_tone(item.row) == OPEN:
            own = warned if item.row.status_word == Status.PASS.value else open_
        groups[titles[cause] if cause is not None else own].append(
            _model(report, item, red, trust.get(item.row.model), ALL + 90 * at // len(models))
        )
    parts = tuple(
        Part(
            title=title, tone=tone, detail=counted(len(of), "model"), kind="group", blocks=tuple(of), importance=DETAIL
        )
        for (title, tone), of in groups.items()
        if of
    )
    return Part(title="Model by model", id="details", importance=DETAIL, blocks=parts)


def _model(report: RunReport, item: ModelExcess, red: Mapping[str, RedCell], trust: Trust | None, details: int) -> Part:
    row, model = item.row, item.row.facts
    reason = row.verdict.reason if row.verdict is not None else ""
    if not reason and item.over:
        reason = f"{item.over[0].words}, {beyond_words(item.over[0].beyond)}"
    blocks: list[Block] = [*facts(_facts(model, trust), details)] if model is not None else []
    blocks += _stages(report, row, red, details)
    if model is not None:
        blocks += _tensors(model.comparisons, details)
        blocks += _quantities(item, details)
    return Part(
        title=row.model,
        word=row.shown_word,
        tone=row_tone(row),
        brief=shorten(reason, 240),
        kind="model",
        id=anchor(row.model),
        importance=DETAIL - ALL + details if any(is_red(cell) for cell in row.cells) else ALL,
        blocks=tuple(blocks),
    )


def _facts(model: ModelReport, trust: Trust | None) -> Iterator[tuple[str, str]]:
    yield "declared", model.where
    yield "server group", model.group
    yield "tags", ", ".join(model.tags)
    digest = model.artifact_digest
    yield "artifact", f"{size(model.artifact_bytes)}, {digest[:12]}" if digest else ""
    if trust is not None:
        by = f" by {trust.by}" if trust.by else ""
        yield "golden record", f"{trust.release}, accepted {trust.accepted.isoformat()}{by}: {trust.reason}"
    yield "guessed inputs", model.guessed
    yield "file", provenance_words(model.provenance) if model.provenance is not None else ""


def _stages(report: RunReport, row: TableRow, red: Mapping[str, RedCell], details: int) -> Iterator[Part]:
    """Yield the stages; those of which there is nothing else to tell in one, last."""
    plain = [cell for cell in row.cells if cell.status is Status.PASS and not (cell.findings or cell.note)]
    for cell in row.cells:
        if cell.cell in red:
            yield cell_part(report, cell, red[cell.cell])
        elif cell not in plain:
            yield cell_part(report, cell, described_cell(report, row, cell), details)
    if plain:
        yield Part(
            title=", ".join(scenario_words(cell.scenario) for cell in plain),
            word=Status.PASS.value,
            tone=GOOD,
            kind="stage",
            id=place(plain[0].cell),
            more_ids=tuple(place(cell.cell) for cell in plain[1:]),
            importance=details,
            blocks=(Fact("", AS_BEFORE, details),),
        )


def cell_part(report: RunReport, cell: CellVerdict, red: RedCell, importance: int = DETAIL) -> Part:
    """Return a cell with all that is to be said of it; its paths and commands stand whole."""
    lines = [line for line in red.lines if line[0] not in FOLDED]
    stacks = [line for line in red.lines if line[0] in FOLDED]
    fold = Part(
        title="Threads and stacks",
        folded=True,
        kind="stacks",
        importance=importance,
        noun="line",
        blocks=tuple(
            Fact(label, text, importance if at < LINES_SHOWN else placed(ALL, at))
            for at, (label, text) in enumerate(stacks)
        ),
    )
    inside_run = [path for item in report.explained if item.cell == red.cell for path in item.paths if inside(path)]
    evidence = {finding.evidence for finding in cell.findings}
    links = {path: inside(path) for path in (*evidence, *inside_run) if inside(path)}
    paths = [("evidence", path) for path in red.evidence] + [("found", path) for path in red.found]
    silent = cell.status in (Status.PASS, Status.UNSUPPORTED)
    again = [("rerun", "" if silent else red.rerun), ("bisect", red.bisect), ("mitigate", anyway_command(report, cell))]
    return Part(
        title=red.stage,
        word=f"{cell_word(cell)}{'' if cell.decides else ', does not decide'}",
        tone=tone(cell.status),
        kind="stage",
        id=place(cell.cell),
        importance=importance,
        blocks=(
            *(Fact(label, text, placed(importance, at, 5)) for at, (label, text) in enumerate(lines)),
            *([fold] if stacks else []),
            *(Fact(label, path, importance, "path", link=_link(path, links)) for label, path in paths),
            *commands(again, importance),
        ),
    )


def _link(path: str, links: Mapping[str, str]) -> str:
    """Return where a page, which lies in the run's folder, finds a path as a reader types it."""
    return next((link for name, link in links.items() if path == name or path.endswith(f"/{name}")), "")


def _tensors(comparisons: Sequence[OutputComparison], details: int) -> Iterator[Table]:
    """Yield the outputs that differ most, each at its worst; stages with equal numbers share a row."""
    worst: dict[tuple[str, str], tuple[float, tuple[str, ...]]] = {}
    for comparison in comparisons:
        for call in comparison.calls:
            for tensor in call.tensors:
                key = (scenario_words(comparison.scenario), tensor.path)
                if not tensor.bit_equal and (key not in worst or _rank(tensor) > worst[key][0]):
                    worst[key] = (_rank(tensor), _texts(tensor, f"{call.input_set} call {call.call}"))
    stages: dict[tuple[float, tuple[str, ...]], list[str]] = {}
    for (stage, _), found in worst.items():
        stages.setdefault(found, []).append(stage)
    ranked = sorted(stages.items(), key=lambda item: -item[0][0])[:TENSORS_SHOWN]
    rows = tuple(Row(cells=(texts[0], ", ".join(names), *texts[1:])) for (_, texts), names in ranked)
    heads = ("output", "stage", "worst at", "dtype", "max error", "tolerance", "beyond", "worst, old → new")
    if rows:
        yield Table(heads=heads, rows=rows, caption="Outputs that differ, each at its worst", importance=details)


def _rank(tensor: TensorMetrics) -> float:
    if tensor.nan_mismatches or tensor.inf_mismatches:
        return float("inf")
    return tensor.max_abs / tensor.scale if tensor.scale > 0 else tensor.max_abs


def _texts(tensor: TensorMetrics, where: str) -> tuple[str, ...]:
    beyond = tensor.nan_mismatches + tensor.inf_mismatches or tensor.mismatched
    values = f"{tensor.worst_expected} → {tensor.worst_actual}" if tensor.worst_actual else ""
    numbers = (f"{tensor.max_abs:.3g}", f"{tensor.tolerance_abs:.3g}", f"{beyond} of {tensor.elements}")
    return (tensor.path, where, tensor.dtype, *numbers, shorten(values, 60))


QUANTITY_HEADS = ("quantity", "told from", "change", "old -> new")


def _quantities(item: ModelExcess, details: int) -> Iterator[Table]:
    """Yield what has a change to tell; report.json has the rest."""
    rows = _quantity_rows(row for row in item.quantities if row.ratio is not None or row.beyond)
    if rows:
        yield Table(heads=QUANTITY_HEADS, rows=rows, caption="Times and memory", numbers=(1, 2), importance=details)


def _quantity_rows(told: Iterable[QuantityRow]) -> tuple[Row, ...]:
    return tuple(
        Row(
            cells=(
                item.words,
                item.limit,
                Cell(item.change, tone=OPEN) if item.beyond and item.ratio else item.change,
                Cell(item.values, tone=OPEN) if item.beyond and not item.ratio else item.values,
            )
        )
        for item in told
    )


def quantities_part(models: Sequence[ModelExcess]) -> Part:
    """Return what the benchmark measured, for paper: the changes of every model, those over a limit first."""
    measured = [(item.row.model, item.quantities) for item in models if item.quantities]
    worst_first = sorted(measured, key=lambda pair: not any(item.beyond for item in pair[1]))
    seen = {item.column for _, told in measured for item in told}
    heads = {name: head for name, (head, _) in COLUMNS.items() if name in seen}
    table_rows = tuple(
        Row(cells=(model, *_brief(told, heads)), importance=DETAIL if at < ROWS_SHOWN else ALL)
        for at, (model, told) in enumerate(worst_first)
    )
    table = Table(
        heads=("model", *heads.values()),
        rows=table_rows,
        numbers=tuple(range(1, len(heads) + 1)),
        noun="model",
        importance=DETAIL,
    )
    title = f"Changes, the worst input shape each: {timed_of(len(measured), len(models))}"
    changes = Part(title=title, folded=True, blocks=(table,), importance=DETAIL)
    about = Fact(
        "",
        f"New over old, the mean over pairs of processes that were timed side by side; medians of each release, as in "
        f"the table of models, may differ from it; what is beyond its limit is marked; {NOT_MEASURED}: not measured",
        DETAIL,
    )
    return Part(
        title="Times and memory",
        kind="paper",
        noun="model",
        importance=DETAIL,
        blocks=(about, changes) if measured else (),
    )


def _brief(told: Sequence[QuantityRow], heads: Iterable[str]) -> Iterator[Cell]:
    """Yield the change of each column, of several input shapes the worst."""
    worst: dict[str, QuantityRow] = {}
    for item in sorted(told, key=lambda item: (item.beyond, item.ratio.ratio if item.ratio else item.new)):
        worst[item.column] = item
    for name in heads:
        found = worst.get(name)
        yield Cell(found.brief, tone=OPEN if found.beyond else "") if found is not None else Cell(NOT_MEASURED)
