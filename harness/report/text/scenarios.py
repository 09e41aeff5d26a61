"""The table of initializations: a row per scenario, then a row per server group."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.core.measurement import RatioEstimate, limit_words
from harness.core.outcome import Status
from harness.core.plan import INITIALIZATION_FLOOR_S
from harness.core.report import RunReport, ScenarioReport, ScenarioSide
from harness.core.text import counted, first_few
from harness.report.document import BAD, DETAIL, FIRST, GOOD, OPEN, QUIET, Cell, placed
from harness.report.words.phrases import (
    NOT_MEASURED,
    STATUS_ORDER,
    growth,
    percent,
    scenario_words,
    seconds,
    seconds_pair,
    size,
    times,
)
from harness.serving.scenarios import INITIALIZATIONS

HEADS = (
    "scenario",
    "group",
    "models ready",
    "init time",
    "change",
    "load overlap",
    "memory",
    "failed rounds",
    "status",
)
_TONES = {Status.PASS: GOOD, Status.FAIL: BAD, Status.XPASS: BAD, Status.INCONCLUSIVE: OPEN, None: QUIET}
_TONES |= dict.fromkeys((Status.XFAIL, Status.SAME_FAIL, Status.UNSUPPORTED), QUIET)
_GROUPS_SHOWN = 6
# No reader has to see which server group it was.
_QUIET = (None, Status.PASS, Status.XFAIL)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioRow:
    """One server group in one scenario, or all of them together (``group`` is empty).

    ``status`` is the worst of the cells that it stands for, None where nobody judged them.
    """

    facts: ScenarioReport
    status: Status | None

    @property
    def red(self) -> bool:
        """Whether a reader must see which server group this is."""
        new = self.facts.new
        return bool(new.failed) or new.ready < self.facts.models or self.status not in _QUIET

    @property
    def overlaps(self) -> bool:
        """Whether the overlap of loading says anything: under Python's GIL it shows only how busy the machine was."""
        sides = (self.facts.old, self.facts.new)
        return self.facts.worker != "python" and any(side and side.load_overlap is not None for side in sides)

    @property
    def status_word(self) -> str:
        """The status as the table shows it."""
        return NOT_MEASURED if self.status is None else self.status.value


def scenario_rows(report: RunReport) -> tuple[ScenarioRow, ...]:
    """Return one row per scenario and server group, in the order of the report."""
    groups = {model.model: model.group for model in report.models}
    statuses: dict[tuple[str, str], list[Status]] = {}
    for cell in report.judgement.cells:
        statuses.setdefault((cell.scenario, groups.get(cell.model, "")), []).append(cell.status)
    return tuple(
        ScenarioRow(facts=item, status=_worst(statuses.get((item.scenario, item.group), ())))
        for item in report.scenarios
    )


def _worst(statuses: Sequence[Status | None]) -> Status | None:
    return min((item for item in statuses if item is not None), key=STATUS_ORDER.index, default=None)


def summary_row(rows: Sequence[ScenarioRow]) -> ScenarioRow:
    """Return all server groups of one scenario as one row: sums, the mean overlap per model, the largest memory."""
    old = [row.facts.old for row in rows if row.facts.old is not None]
    weights = [row.facts.models for row in rows]
    facts = replace(
        rows[0].facts,
        group="",
        models=sum(weights),
        new=_together([row.facts.new for row in rows], weights),
        old=_together(old, weights) if len(old) == len(rows) else None,
        hang_bound=max(row.facts.hang_bound for row in rows),
        init_ratio=None,
    )
    return ScenarioRow(facts=facts, status=_worst([row.status for row in rows]))


def _together(sides: Sequence[ScenarioSide], weights: Sequence[int]) -> ScenarioSide:
    times_s = [side.init_s for side in sides if side.init_s is not None]
    overlaps = [side.load_overlap for side in sides if side.load_overlap is not None]
    return ScenarioSide(
        rounds=sum(side.rounds for side in sides),
        failed=sum(side.failed for side in sides),
        ready=sum(side.ready for side in sides),
        init_s=math.fsum(times_s) if len(times_s) == len(sides) else None,
        load_overlap=_mean(overlaps, weights) if len(overlaps) == len(sides) else None,
        growth_bytes=max((side.growth_bytes for side in sides if side.growth_bytes is not None), default=None),
        max_rss_bytes=max((side.max_rss_bytes for side in sides if side.max_rss_bytes is not None), default=None),
    )


def _mean(values: Sequence[float], weights: Sequence[int]) -> float:
    weighted = (value * weight for value, weight in zip(values, weights, strict=True))
    return math.fsum(weighted) / max(1, sum(weights))


def facts_words(row: ScenarioRow, *, compact: bool) -> tuple[str, ...]:
    """Return the texts from ``models ready`` to ``status``; ``compact`` shows factors and the new release alone."""
    old, new = row.facts.old, row.facts.new
    models = row.facts.models
    failed_before = (old.failed, old.rounds) if old and not compact else None
    return (
        _of_pair((old.ready, models) if old else None, (new.ready, models)),
        _init_time(old.init_s if old else None, new.init_s, compact=compact),
        _change(row.facts.init_ratio, compact=compact),
        _overlap(None if compact else old, new) if row.overlaps else NOT_MEASURED,
        memory_words(new),
        _of_pair(failed_before, (new.failed, new.rounds)),
        row.status_word,
    )


def _of_pair(old: tuple[int, int] | None, new: tuple[int, int]) -> str:
    """Return ``"5 -> 4 of 5"``; ``"0 of 3 -> 1 of 1"`` where the totals differ; ``"4 of 5"`` without an old side."""
    after = f"{new[0]} of {new[1]}"
    if old is None:
        return after
    return f"{old[0]} -> {after}" if old[1] == new[1] else f"{old[0]} of {old[1]} -> {after}"


def _init_time(old_s: float | None, new_s: float | None, *, compact: bool) -> str:
    if old_s is not None and new_s is not None:
        return times(new_s / old_s if old_s > 0 else math.nan) if compact else seconds_pair(old_s, new_s)
    if old_s is not None:
        return f"{seconds(old_s)} -> {NOT_MEASURED}"
    return NOT_MEASURED if new_s is None else seconds(new_s)


def _change(ratio: RatioEstimate | None, *, compact: bool) -> str:
    if ratio is None:
        return NOT_MEASURED
    return percent(ratio.ratio) if compact else ratio.words


def _overlap(old: ScenarioSide | None, new: ScenarioSide) -> str:
    before = old.load_overlap if old is not None else None
    after = NOT_MEASURED if new.load_overlap is None else f"{new.load_overlap:.1f}"
    return after if before is None else f"{before:.1f} -> {after}"


def memory_words(side: ScenarioSide) -> str:
    """Return the growth of memory, which has a sign, else the largest resident memory of a process."""
    if side.growth_bytes is not None:
        return growth(side.growth_bytes)
    return NOT_MEASURED if side.max_rss_bytes is None else size(side.max_rss_bytes)


def _by_scenario(report: RunReport) -> dict[str, list[ScenarioRow]]:
    found: dict[str, list[ScenarioRow]] = {}
    for row in scenario_rows(report):
        found.setdefault(row.facts.scenario, []).append(row)
    return found


def initialization_rows(report: RunReport) -> Iterator[tuple[ScenarioRow, tuple[Cell, ...], int]]:
    """Yield a row for each scenario, then its server groups where it has several, with the cells behind their names.

    A terminal shows the groups in which something is wrong.
    """
    for rows in _by_scenario(report).values():
        together = [summary_row(rows)] if len(rows) > 1 else []
        for at, row in enumerate([*together, *rows]):
            quiet = bool(together) and at > 0 and not (row.red and at <= _GROUPS_SHOWN)
            wide, short = facts_words(row, compact=False), facts_words(row, compact=True)
            cells = [Cell(text, short=brief) for text, brief in zip(wide, short, strict=True)]
            cells[-1] = Cell(wide[-1], tone=_TONES.get(row.status, OPEN))
            yield row, tuple(cells), DETAIL if quiet else placed(FIRST + 30, at, 10)


WORKERS = {"libtorch": "the C++ worker", "python": "the Python worker"}

_NAMES_LISTED = 3
# Below it "1 in N" says more than a percentage.
_RARE = 0.1
_FEW = 0.7
"""One round or two exclude only what nearly every start would show: as a percentage that reads as nonsense."""
TOO_FEW = "a failure that is rare is not excluded; 59 starts would exclude one in 20 (95 %)"


def legend(scenarios: Sequence[ScenarioReport], limit: float) -> tuple[tuple[str, str], ...]:
    """Return labelled lines; none without a scenario. ``limit``: ratio from which a start is told as slower."""
    if not scenarios:
        return ()
    who = " and ".join(dict.fromkeys(map(_worker, scenarios)))
    threads = counted(max(item.threads for item in scenarios), "thread")
    columns = _columns_words(scenarios)
    compared = any(item.init_ratio for item in scenarios)
    warns = f", warns beyond {limit_words(limit)} and {INITIALIZATION_FLOOR_S:g} s" if compared else ""
    return (
        ("init", f"by {who}, {threads}; init time beside other probes{warns}" + (f"; {columns}" if columns else "")),
        *[("rounds", text) for text in rounds_words(scenarios)],
    )


def _worker(item: ScenarioReport) -> str:
    return WORKERS.get(item.worker, item.worker)


def _columns_words(scenarios: Sequence[ScenarioReport]) -> str:
    sides = [item.new for item in scenarios]
    said = []
    if any(ScenarioRow(facts=item, status=None).overlaps for item in scenarios):
        said.append("overlap above 1: threads loaded at once")
    grows = dict.fromkeys(
        INITIALIZATIONS[item.scenario].growth_per for item in scenarios if item.new.growth_bytes is not None
    )
    growing = f"growth per {' or '.join(grows)}"
    if any(side.growth_bytes is None and side.max_rss_bytes is not None for side in sides):
        said.append("memory: peak of a process" + (f", with a sign {growing}" if grows else ""))
    elif grows:
        said.append(f"memory: {growing}")
    return "; ".join(said)


def rounds_words(scenarios: Sequence[ScenarioReport]) -> tuple[str, ...]:
    """Return what the rounds bound, a line for all server groups of which they say the same."""
    several = len({item.group for item in scenarios}) > 1
    failing = {item.scenario for item in scenarios if item.new.failed}
    lines: dict[str, dict[str, None]] = {}
    for item in scenarios:
        own = item.new.failed or not item.new.rounds
        beside = " of other groups" if item.scenario in failing else ""
        group = f" of {item.group}" if own and several else "" if own else beside
        words = hang_bound_words(item.new.rounds, item.new.failed, item.hang_bound)
        lines.setdefault(words, {})[f"{scenario_words(item.scenario)}{group}"] = None
    if len(lines) == 1 and not failing:
        return tuple(lines)
    return tuple(f"{first_few([*places], _NAMES_LISTED)}: {words}" for words, places in lines.items())


def hang_bound_words(rounds: int, failed: int, bound: float) -> str:
    """Return what the rounds of one server group say about how often it fails.

    ``"9 rounds, none failed: a failure in more than 29 % of starts is excluded (95 %)"``. Percentages are rounded up:
    nothing is called excluded that the rounds do not exclude. Few rounds exclude so little that they say what more
    would.
    """
    if not rounds:
        return "no round ended, so nothing is known"
    if failed:
        said = f"{failed} of {counted(rounds, 'round')} failed"
        return said if bound >= 1 else f"{said}: up to {_rate(bound)} starts may fail (95 %)"
    said = f"{'started once' if rounds == 1 else counted(rounds, 'round')}, none failed"
    if bound > _FEW:
        return f"{said}: {TOO_FEW}"
    return f"{said}: a failure in more than {_rate(bound)} starts is excluded (95 %)"


def _rate(bound: float) -> str:
    """Return ``64 % of``, or ``1 in 20`` for what is rare."""
    if 0 < bound < _RARE:
        return f"1 in {math.floor(1 / bound + 1e-9)}"
    return f"{math.ceil(100 * bound - 1e-9)} % of"


def group_words(row: ScenarioRow) -> str:
    """Return one server group in one scenario as a sentence, for reports without a table."""
    texts = dict(zip(HEADS[2:], facts_words(row, compact=False), strict=True))
    said = [f"{name} {text}" for name, text in texts.items() if text != NOT_MEASURED]
    bound = hang_bound_words(row.facts.new.rounds, row.facts.new.failed, row.facts.hang_bound)
    who = f"{_worker(row.facts)}, {counted(row.facts.threads, 'thread')}"
    return f"{who}: {', '.join(said)}; {bound}"
