"""The table of models, and what stands behind each of its rows, in the room that a page of many has for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.core.comparison import OutputComparison, TensorMetrics
from harness.core.findings import Severity, weight
from harness.core.golden import Trust
from harness.core.measurement import LatencyMeasurement
from harness.core.outcome import Status
from harness.core.report import ModelReport, RunReport
from harness.core.text import joined, prose, visible
from harness.core.verdict import Cause, CellVerdict, Mitigation
from harness.report.excess import ModelExcess, factor_words
from harness.report.page.figures import Figure, model_figures
from harness.report.page.head import row_tone
from harness.report.page.parts import GOOD, OPEN, Fact, anchor, cause_tone, link, place, tone
from harness.report.text.table import TableRow, row_cells
from harness.report.words.phrases import NO_REASON, scenario_words, shorten, size
from harness.report.words.quantities import QuantityRow, limits_of, quantity_rows
from harness.report.words.red_cells import RedCell, finding_words
from harness.report.words.story import story_of
from harness.verdict.commands import is_red, rerun_command
from harness.verdict.counting import OVER_LIMIT, UNDECIDED, cell_word

TEXT_BYTES = 1_000_000
"""Of all that is said of cells: with 500 models there is room for charts beside it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What is said of one cell: at most so many findings, so many lines of its story, and characters of each."""

    findings: int
    lines: int
    text: int


ROOMS = (
    Room(findings=8, lines=60, text=900),
    Room(findings=3, lines=12, text=400),
    Room(findings=2, lines=4, text=200),
    Room(findings=1, lines=0, text=120),
)


def room_of(report: RunReport) -> Room:
    """Return the roomiest in which all cells fit."""
    cells = report.judgement.cells
    return next((room for room in ROOMS if sum(_bytes(cell, room) for cell in cells) <= TEXT_BYTES), ROOMS[-1])


def _bytes(cell: CellVerdict, room: Room) -> int:
    """Return what is said of a cell, as bytes of the page."""
    found = cell.findings[: room.findings]
    story = [text for item in found for _, text in item.story][: room.lines]
    return _sum((*(item.message for item in found), *story), room.text)


def _sum(texts: Iterable[str], most: int) -> int:
    return sum(len(text[:most].encode("ascii", "xmlcharrefreplace")) for text in texts)


TENSORS_SHOWN = 6
_NAME_LIMIT, _VALUES_LIMIT = 80, 60
Texts = tuple[str, ...]


def differing(comparisons: Sequence[OutputComparison]) -> tuple[Texts, ...]:
    """Return output, stages, place, dtype and numbers of those that differ most; stages that are equal share a row."""
    worst: dict[tuple[str, str], tuple[float, Texts]] = {}
    for scenario, rank, texts in _tensors(comparisons):
        key = (scenario, texts[0])
        if key not in worst or rank > worst[key][0]:
            worst[key] = (rank, texts)
    stages: dict[tuple[float, Texts], list[str]] = {}
    for (scenario, _), found in worst.items():
        stages.setdefault(found, []).append(scenario)
    ranked = sorted(stages.items(), key=lambda item: -item[0][0])
    return tuple((texts[0], ", ".join(names), *texts[1:]) for (_, texts), names in ranked[:TENSORS_SHOWN])


def _tensors(comparisons: Sequence[OutputComparison]) -> Iterator[tuple[str, float, Texts]]:
    """Yield the stage of every tensor that differs, how much it does, and its texts."""
    for comparison in comparisons:
        stage = visible(scenario_words(comparison.scenario))
        for call in comparison.calls:
            where = f"{visible(call.input_set)} call {call.call}"
            yield from ((stage, _rank(item), _texts(item, where)) for item in call.tensors if not item.bit_equal)


def _rank(tensor: TensorMetrics) -> float:
    if tensor.nan_mismatches or tensor.inf_mismatches:
        return float("inf")
    return tensor.max_abs / tensor.scale if tensor.scale > 0 else tensor.max_abs


def _texts(tensor: TensorMetrics, where: str) -> Texts:
    beyond = tensor.nan_mismatches + tensor.inf_mismatches or tensor.mismatched
    values = f"{tensor.worst_expected} → {tensor.worst_actual}" if tensor.worst_actual else ""
    return (
        shorten(visible(tensor.path), _NAME_LIMIT),
        where,
        visible(tensor.dtype),
        f"{tensor.max_abs:.3g}",
        f"{tensor.tolerance_abs:.3g}",
        f"{beyond} of {tensor.elements}",
        shorten(prose(values), _VALUES_LIMIT),
    )


QUIET = (Status.PASS, Status.UNSUPPORTED)
AS_BEFORE = "as in the old release"
_TEXT_LIMIT, _REASON_LIMIT = 900, 240
FOLDED = ("threads", "frames")
"""Labels of a story that are long and read last."""
TOLD_OTHERWISE = ("what", "why", "errors", "cure", "no cure")
"""Labels of a red cell that the findings, the charts and the table of switches show better."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowView:
    """One row of the table; ``keys`` are what its columns sort by: a number, or empty where there is none."""

    name: str
    anchor: str
    group: str
    texts: tuple[str, ...]
    keys: tuple[str, ...]
    status: str
    tone: str
    search: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CellView:
    """One stage of a model; ``places`` are the ids by which links find it.

    ``story`` and ``stacks`` are labelled lines, ``evidence`` paths with their links.

    ``found`` are such paths too, of what searches about the cell have left.
    """

    stage: str
    places: tuple[str, ...]
    status: str
    tone: str
    findings: tuple[str, ...]
    story: tuple[Fact, ...]
    stacks: tuple[Fact, ...]
    evidence: tuple[Fact, ...]
    found: tuple[Fact, ...]
    commands: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MitigationView:
    """A switch that was tried."""

    name: str
    stage: str
    cures: bool
    price: str
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelView:
    """Everything about one model."""

    name: str
    anchor: str
    status: str
    tone: str
    reason: str
    facts: tuple[Fact, ...]
    cells: tuple[CellView, ...]
    tensors: tuple[tuple[str, ...], ...]
    figures: tuple[Figure, ...]
    quantities: tuple[QuantityRow, ...]
    mitigations: tuple[MitigationView, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupView:
    """Models whose details stand together, by their anchors: those behind one cause, or all that need nobody."""

    title: str
    tone: str
    models: tuple[str, ...]


def groups_of(models: Sequence[ModelExcess], causes: Sequence[Cause]) -> tuple[GroupView, ...]:
    """Return every model in one group: of its first cause, else of those that are undecided, or of the others."""
    titles = {cause.id: (shorten(prose(cause.title), 2 * _NAME_LIMIT), cause_tone(cause)) for cause in causes}
    first = {model: cause.id for cause in reversed(causes) for model in cause.models}
    groups: dict[tuple[str, str], list[str]] = {title: [] for title in titles.values()}
    groups |= {("passing, something undecided", OPEN): [], ("nobody has to look at", GOOD): []}
    for item in models:
        cause = first.get(item.row.model)
        is_open = item.row.status_word in (UNDECIDED, OVER_LIMIT)
        own = ("passing, something undecided", OPEN) if is_open else ("nobody has to look at", GOOD)
        groups[titles[cause] if cause is not None else own].append(anchor(item.row.model))
    return tuple(
        GroupView(title=title, tone=tone, models=tuple(names)) for (title, tone), names in groups.items() if names
    )


def row_views(models: Sequence[ModelExcess], causes: Sequence[Cause]) -> tuple[RowView, ...]:
    """Return the rows of the table in their order."""
    behind: dict[str, list[str]] = {}
    for cause in causes:
        for model in cause.models:
            behind.setdefault(model, []).append(f"cause:{cause.id}")
    return tuple(_row(item, behind.get(item.row.model, [])) for item in models)


def _row(item: ModelExcess, causes: Sequence[str]) -> RowView:
    row = item.row
    facts = row.facts
    latency = facts.latency if facts is not None else None
    ratios = [latency.ratio(name) if latency else None for name in ("load", "first_calls")]
    ratios.append(latency.shown if latency else None)
    worst = facts.worst_relative if facts is not None else None
    numbers = [worst, *(ratio.ratio if ratio else None for ratio in ratios)]
    name, reason = visible(row.model), row.verdict.reason if row.verdict else ""
    group = visible(facts.group) if facts is not None else ""
    tags = facts.tags if facts is not None else ()
    said = [shorten(visible(text).lower(), _NAME_LIMIT) for text in (group, *tags, *red_kinds(row), *causes)]
    return RowView(
        name=shorten(name, _NAME_LIMIT),
        anchor=anchor(row.model),
        group=shorten(group, 40),
        texts=row_cells(row, compact=False)[1:-1],
        keys=("", "", "", *("" if number is None else f"{number:.6g}" for number in numbers), ""),
        status=item.row.status_word,
        tone=row_tone(item),
        search=" ".join(text for text in (*said, shorten(prose(reason).lower(), _REASON_LIMIT)) if text),
    )


def red_kinds(row: TableRow) -> tuple[str, ...]:
    """Return the kinds of findings that make cells of a model red, each once."""
    cells = [cell for cell in row.verdict.cells if is_red(cell)] if row.verdict is not None else []
    grave = (Severity.FAIL, Severity.INCONCLUSIVE)
    found = (item.kind for cell in cells for item in cell.findings if weight(cell, item.kind) in grave)
    return tuple(dict.fromkeys(found))


def model_views(
    report: RunReport, models: Sequence[ModelExcess], red: Mapping[str, RedCell], room: Room
) -> tuple[ModelView, ...]:
    """Return the sections of all models in their order, with all of their drawings; ``red``: red cells by their ids."""
    trust = {item.model: item for item in report.trust}
    return tuple(_model(report, item, red, trust=trust, room=room) for item in models)


def _model(
    report: RunReport,
    item: ModelExcess,
    red: Mapping[str, RedCell],
    *,
    trust: Mapping[str, Trust],
    room: Room,
) -> ModelView:
    row = item.row
    cells = row.verdict.cells if row.verdict else ()
    timed = next((cell for cell in cells if cell.scenario == "latency"), None)
    facts = row.facts
    limits = limits_of(report, facts)
    latency = facts.latency if facts is not None else None
    return ModelView(
        name=visible(row.model),
        anchor=anchor(row.model),
        status=item.row.status_word,
        tone=row_tone(item),
        reason=_reason(item),
        facts=_facts(facts, trust.get(row.model)) if facts is not None else (),
        cells=_together([_cell(report, cell, red.get(cell.cell), room) for cell in cells]),
        tensors=differing(facts.comparisons) if facts is not None else (),
        figures=tuple(model_figures(facts, limits)) if facts is not None else (),
        quantities=tuple(_quantities(latency, limits, timed)) if latency is not None else (),
        mitigations=tuple(_mitigation(item, cells) for item in row.mitigations),
    )


def _reason(item: ModelExcess) -> str:
    """Return why a model is not PASS, of another what is beyond a limit all the same."""
    reason = item.row.verdict.reason if item.row.verdict is not None else ""
    if not reason and item.over:
        reason = f"{item.over[0].words}, {factor_words(item.over[0].factor)} the limit {item.over[0].limit}"
    return shorten(prose(reason), _REASON_LIMIT)


def _quantities(
    latency: LatencyMeasurement, limits: Mapping[str, float], cell: CellVerdict | None
) -> Iterator[QuantityRow]:
    """Yield what has a change to tell; report.json has the rest."""
    for row in quantity_rows(latency, limits, cell):
        if row.ratio is not None or row.beyond:
            yield replace(row, words=shorten(visible(row.words), _NAME_LIMIT))


def _facts(facts: ModelReport, trust: Trust | None) -> tuple[Fact, ...]:
    accepted = f"{trust.release}, accepted {trust.accepted.isoformat()}" if trust is not None else ""
    accepted += f" by {trust.by}" if trust is not None and trust.by else ""
    found = [
        ("declared", facts.where),
        ("server group", facts.group),
        ("tags", ", ".join(facts.tags)),
        ("artifact", f"{size(facts.artifact_bytes)}, {facts.artifact_digest[:12]}" if facts.artifact_digest else ""),
        ("golden record", f"{accepted}: {trust.reason}" if trust is not None else ""),
        ("guessed inputs", facts.guessed),
    ]
    return tuple((label, shorten(prose(text), _TEXT_LIMIT)) for label, text in found if text)


def _cell(report: RunReport, cell: CellVerdict, red: RedCell | None, room: Room) -> CellView:
    order = {severity: index for index, severity in enumerate(Severity)}
    found = sorted(cell.findings, key=lambda item: order[weight(cell, item.kind)])
    said = [shorten(prose(finding_words(item)), room.text) for item in found[: room.findings]]
    if len(found) > room.findings:
        said.append(f"and {len(found) - room.findings} more, in report.json")
    if cell.note and not any(cell.note in item.message for item in found):
        said.append(prose(cell.note))
    if not said:
        said.append(AS_BEFORE if cell.status is Status.PASS else NO_REASON)
    if red is not None:
        story_lines = [line for line in red.lines if line[0] not in TOLD_OTHERWISE or line in red.searched]
    else:
        story_lines = list(story_of(found))
    story = [(label, shorten(prose(text), room.text)) for label, text in story_lines[: room.lines]]
    commands = [("rerun", "" if cell.status in QUIET else rerun_command(report, cell.cell))]
    commands += [("bisect", red.bisect)] if red is not None else []
    return CellView(
        stage=visible(scenario_words(cell.scenario)),
        places=(place(cell.cell),),
        status=cell_word(cell) if cell.decides else f"{cell_word(cell)}, does not decide",
        tone=tone(cell.status),
        findings=tuple(said),
        story=tuple(line for line in story if line[0] not in FOLDED),
        stacks=tuple(line for line in story if line[0] in FOLDED),
        evidence=tuple(dict.fromkeys((visible(item.evidence), link(item.evidence)) for item in found if item.evidence)),
        found=_left(report, red) if red is not None else (),
        commands=tuple((label, visible(command)) for label, command in commands if command),
    )


def _left(report: RunReport, red: RedCell) -> tuple[Fact, ...]:
    """Return what searches have left: in the run's folder with a link, elsewhere as a reader would type it."""
    paths = dict.fromkeys(path for item in report.explained if item.cell == red.cell for path in item.paths)
    inside = [path for path in paths if link(path)]
    outside = [path for path in red.found if not any(path.endswith(f"/{one}") for one in inside)]
    return (*((visible(path), link(path)) for path in inside), *((visible(path), "") for path in outside))


def _together(cells: Sequence[CellView]) -> tuple[CellView, ...]:
    """Return the stages, those of which there is nothing else to tell in one, last."""
    plain = [cell for cell in cells if cell.findings == (AS_BEFORE,)]
    rest = [cell for cell in cells if cell.findings != (AS_BEFORE,)]
    if not plain:
        return tuple(rest)
    places = tuple(name for cell in plain for name in cell.places)
    return (*rest, replace(plain[0], stage=", ".join(cell.stage for cell in plain), places=places))


def _mitigation(item: Mitigation, cells: Sequence[CellVerdict]) -> MitigationView:
    scenario = next((cell.scenario for cell in cells if cell.cell == item.cell), "")
    breaks = f"breaks {', '.join(item.breaks)}" if item.breaks else ""
    return MitigationView(
        name=visible(item.name),
        stage=visible(scenario_words(scenario)),
        cures=item.cures,
        price=item.price.words if item.price is not None else "",
        note=shorten(prose(joined(breaks, item.note)), _TEXT_LIMIT),
    )
