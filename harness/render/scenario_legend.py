"""What stands below the table of initializations: who initialized, what columns mean, what the rounds bound."""

import math
from collections.abc import Collection, Mapping, Sequence

from harness.domain.report import ScenarioReport
from harness.render.scenario_table import MARKDOWN_COLUMNS, ScenarioRow, facts_words
from harness.render.words import NOT_MEASURED, counted, scenario_words

WORKERS = {"libtorch": "the C++ worker", "python": "the Python worker"}

_NAMES_LISTED = 3
# Below it "1 in N" says more than a percentage.
_RARE = 0.1


def legend(scenarios: Sequence[ScenarioReport]) -> tuple[tuple[str, str], ...]:
    """Return labelled lines; none without a scenario."""
    if not scenarios:
        return ()
    who = " and ".join(dict.fromkeys(map(_worker, scenarios)))
    threads = counted(max(item.threads for item in scenarios), "thread")
    columns = _columns_words(scenarios)
    return (
        ("init", f"by {who}, {threads}; init time beside other probes" + (f"; {columns}" if columns else "")),
        *[("rounds", text) for text in rounds_words(scenarios)],
    )


def _worker(item: ScenarioReport) -> str:
    return WORKERS.get(item.worker, item.worker)


def _columns_words(scenarios: Sequence[ScenarioReport]) -> str:
    sides = [item.new for item in scenarios]
    said = []
    if any(ScenarioRow(facts=item, status=None).overlaps for item in scenarios):
        said.append("overlap above 1: threads loaded at once")
    grows = any(side.growth_bytes is not None for side in sides)
    if any(side.growth_bytes is None and side.max_rss_bytes is not None for side in sides):
        said.append("memory: peak of a process" + (", with a sign growth per cycle" if grows else ""))
    elif grows:
        said.append("memory: growth per cycle")
    return "; ".join(said)


def rounds_words(scenarios: Sequence[ScenarioReport]) -> tuple[str, ...]:
    """Return what the rounds bound: a line for groups that failed alike, and one for all that did not."""
    several = len({item.group for item in scenarios}) > 1
    failing = {item.scenario for item in scenarios if item.new.failed}
    failed: dict[str, list[str]] = {}
    passed: dict[tuple[int, float], dict[str, None]] = {}
    for item in scenarios:
        place = scenario_words(item.scenario)
        if item.new.failed or not item.new.rounds:
            told = hang_bound_words(item.new.rounds, item.new.failed, item.hang_bound)
            failed.setdefault(told, []).append(f"{place} of {item.group}" if several else place)
        else:
            place += " of other groups" if item.scenario in failing else ""
            passed.setdefault((item.new.rounds, item.hang_bound), {})[place] = None
    lines = [f"{_listed(places)}: {told}" for told, places in failed.items()]
    if len(passed) > 1:
        lines.append(f"{'elsewhere ' if lines else ''}{_several_bounds(passed, each=several)}")
    for (rounds, bound), places in passed.items() if len(passed) == 1 else ():
        who = f"{_listed(places)}: " if lines else ""
        lines.append(f"{who}{hang_bound_words(rounds, 0, bound, each=several)}")
    return tuple(lines)


def _several_bounds(passed: Mapping[tuple[int, float], Collection[str]], *, each: bool) -> str:
    """Return one sentence for scenarios with unequal numbers of rounds, none of which failed."""
    most = max(passed.values(), key=len)
    said: list[str] = []
    for (rounds, bound), places in passed.items():
        names = _listed(places) if places is not most or len(places) <= _NAMES_LISTED else "all others"
        if said:
            said.append(f"{_rate(bound).removesuffix(' of')} after {rounds} ({names})")
        else:
            after = f"{counted(rounds, 'round')}{' per group' if each else ''}"
            said.append(f"{_rate(bound)} starts after {after} ({names})")
    return f"none failed: a failure is excluded (95 %) in more than {', '.join(said)}"


def _listed(names: Collection[str]) -> str:
    """Return all names, or the first and how many more there are."""
    shown = list(names) if len(names) <= _NAMES_LISTED + 1 else [*names][:_NAMES_LISTED]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def hang_bound_words(rounds: int, failed: int, bound: float, *, each: bool = False) -> str:
    """Return what the rounds of one server group say about how often it fails.

    ``"3 rounds, none failed: a failure in more than 64 % of starts is excluded (95 %)"``. Percentages are rounded up:
    nothing is called excluded that the rounds do not exclude. ``each`` says that every server group had so many.
    """
    if not rounds:
        return "no round came to its end, so nothing is known"
    if failed:
        said = f"{failed} of {counted(rounds, 'round')} failed"
        return said if bound >= 1 else f"{said}: up to {_rate(bound)} starts may fail (95 %)"
    said = f"{counted(rounds, 'round')}{' per group' if each else ''}, none failed"
    return f"{said}: a failure in more than {_rate(bound)} starts is excluded (95 %)"


def _rate(bound: float) -> str:
    """Return ``64 % of``, or ``1 in 20`` for what is rare."""
    if 0 < bound < _RARE:
        return f"1 in {math.floor(1 / bound + 1e-9)}"
    return f"{math.ceil(100 * bound - 1e-9)} % of"


def group_words(row: ScenarioRow) -> str:
    """Return one server group in one scenario as a sentence, for reports without a table."""
    texts = dict(zip(MARKDOWN_COLUMNS[2:], facts_words(row, compact=False), strict=True))
    said = [f"{name} {text}" for name, text in texts.items() if text != NOT_MEASURED]
    bound = hang_bound_words(row.facts.new.rounds, row.facts.new.failed, row.facts.hang_bound)
    who = f"{_worker(row.facts)}, {counted(row.facts.threads, 'thread')}"
    return f"{who}: {', '.join(said)}; {bound}"
