"""A fleet on a terminal: its plan, and its merged answer, each in at most 60 lines."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from harness.core.fleet import NO_OWNER, FleetArtifact, FleetPlan, FleetReport, ShardDone, StoreStatus
from harness.core.text import counted, prose, visible
from harness.report.text.causes import LABEL, cause_blocks
from harness.report.text.grid import draw, filled
from harness.report.words.fleet import (
    answer_words,
    change_words,
    numbered,
    owners_words,
    plan_facts,
    since_facts,
    store_words,
    wave_words,
)
from harness.report.words.phrases import exit_words, seconds, shorten, size

MOST_LINES = 60
MOST_GROUPS, MOST_LEFT_OUT, MOST_NOTES, MOST_WAVES, MOST_FAULTS, MOST_CHANGES = 12, 6, 4, 14, 5, 5
LEAST_TEXT = 24


def render_plan(plan: FleetPlan, times: Sequence[tuple[int, float]], *, command: str, width: int = 100) -> str:
    """Return a plan in at most 60 lines.

    Args:
        times: (machines, seconds) that all takes.
        command: runs it.
    """
    lines = _labelled("fleet", f"{plan.store}, torch {plan.old} -> torch {plan.new}, {plan.device}", width)
    for label, text in plan_facts(plan):
        lines += _labelled(label, text, width)
    lines += _labelled("takes", _times(plan, times), width)
    groups = _groups(plan)
    if groups:
        rows = [
            [
                str(len(items)),
                str(len({item.owner or NO_OWNER for item in items})),
                items[0].predictions["new"].value,
                shorten(prose(why), max(width - 40, LEAST_TEXT)),
            ]
            for why, items in groups[:MOST_GROUPS]
        ]
        lines += [
            "",
            *draw([["artifacts", "owners", "in the new", "why"], *rows], heads=1, gap=2, right=(0, 1)).splitlines(),
        ]
        if len(groups) > MOST_GROUPS:
            lines.append(f"and {counted(len(groups) - MOST_GROUPS, 'more reason')}: plan.json has all")
    left = [item for item in plan.artifacts if item.left_out]
    lines += _listed("left out", [f"{item.path}: {item.left_out}" for item in left], MOST_LEFT_OUT, width, whole=True)
    lines += _listed("note", list(plan.notes), MOST_NOTES, width)
    return "\n".join([*lines, "", f"run it: {command}"]) + "\n"


def _times(plan: FleetPlan, times: Sequence[tuple[int, float]]) -> str:
    parts = [f"{seconds(taken)} on {counted(count, 'machine')}" for count, taken in times]
    asked = (
        f"; within {seconds(plan.within_s)}: {counted(plan.machines, 'machine')}" if plan.within_s is not None else ""
    )
    by = f"by {counted(plan.measured, 'result')} kept here" if plan.measured else "by defaults, until something has run"
    return f"about {', '.join(parts)} ({by}){asked}"


def _groups(plan: FleetPlan) -> list[tuple[str, list[FleetArtifact]]]:
    """Return the artifacts that reading says something of, by what it says, the riskiest and most first."""
    groups: dict[str, list[FleetArtifact]] = defaultdict(list)
    for item in plan.artifacts:
        if item.why and "new" in item.predictions:
            groups[item.why].append(item)
    risks = {name: unit.risk for unit in plan.units for name in unit.artifacts}
    return sorted(groups.items(), key=lambda pair: (risks.get(pair[1][0].name, 9), -len(pair[1]), pair[0]))


def render_answer(report: FleetReport, *, more: str, width: int = 100) -> str:
    """Return the merged answer in at most 60 lines: causes, then waves, then the decision.

    Args:
        more: the command that shows all.
    """
    lines = _labelled("fleet", f"{report.store}, {report.old} -> {report.new}, {report.device}", width)
    lines += _labelled("results", store_words(report), width)
    lines += _listed("note", list(report.notes), MOST_NOTES, width)
    tail = ["", *_waves(report, width), *_since(report, width), *_faults(report, width)]
    end = filled(visible(report.reason), width, first="  ", rest="  ") if report.reason else []
    tail += ["", f"{answer_words(report)}  (exit code {report.exit_code}: {exit_words(report.exit_code)})", *end[:2]]
    room = max(MOST_LINES - len(lines) - len(tail) - 1, 4)
    causes = [
        replace(item.cause, evidence=(("owners", owners_words(item.owners)), *item.cause.evidence))
        for item in report.causes
    ]
    for block in cause_blocks(causes, width=width, room=room, more=more) if causes else []:
        lines += ["", *block] if block else []
    return "\n".join([*lines, *tail]) + "\n"


def _waves(report: FleetReport, width: int) -> list[str]:
    room = max(width - 42, LEAST_TEXT)
    rows = [
        [
            number,
            str(len(wave.artifacts)),
            shorten(prose(wave_words(wave)), room),
            shorten(visible(owners_words(wave.owners, 2)), 22),
        ]
        for number, wave in numbered(report)[:MOST_WAVES]
    ]
    if not rows:
        return []
    drawn = draw([["wave", "artifacts", "upgrade", "owners"], *rows], heads=1, gap=2, right=(1,)).splitlines()
    left = len(report.waves) - MOST_WAVES
    return [*drawn, *([f"and {counted(left, 'more group')}: --format markdown has all"] if left > 0 else [])]


def _since(report: FleetReport, width: int) -> list[str]:
    if report.since is None:
        return []
    lines = [line for label, text in since_facts(report.since) for line in _labelled(label, text, width)]
    texts = [f"{item.name} ({item.owner or NO_OWNER}): {change_words(item)}" for item in report.since.changes]
    return ["", *lines, *_listed("changed", texts, MOST_CHANGES, width)]


def _faults(report: FleetReport, width: int) -> list[str]:
    texts = [f"{item.label}: {item.text} (tried {item.tries} times)" for item in report.faults]
    return _listed("no verdict", texts, MOST_FAULTS, width)


def _labelled(label: str, text: str, width: int) -> list[str]:
    return filled(visible(text), width, first=f"{label:<{LABEL}}", rest=" " * max(LABEL, len(label)))[:3]


def _listed(label: str, texts: Sequence[str], most: int, width: int, *, whole: bool = False) -> list[str]:
    """Return the first texts under a label, a line each; ``whole``: on as many as it takes, up to three."""
    if whole:
        lines = [line for text in texts[:most] for line in _labelled(f"{label:<{LABEL + 2}}", prose(text), width)]
    else:
        lines = [f"{label:<{LABEL + 2}}{shorten(prose(text), width - LABEL - 2)}" for text in texts[:most]]
    left = len(texts) - most
    lines += [f"{label:<{LABEL + 2}}and {left} more"] if left > 0 else []
    return ["", *lines] if lines else []


def render_shard(done: ShardDone, *, again: str, width: int = 100) -> str:
    """Return what a call of ``fleet run`` did; ``again`` shows the answer."""
    parts = [counted(done.units, "unit"), f"{done.known} known before", f"{done.made} made now"]
    parts += [f"{len(done.faults)} without a result"] if done.faults else []
    lines = _labelled("shard", ", ".join(parts), width)
    lines += _listed("run", list(done.runs), MOST_LEFT_OUT, width)
    lines += _listed("no verdict", [f"{item.label}: {item.text}" for item in done.faults], MOST_FAULTS, width)
    if done.faults:
        lines += ["", "the same command tries again what has no result"]
    return "\n".join([*lines, "", f"the answer: {again}"]) + "\n"


def render_more(done: ShardDone, *, again: str, width: int = 100) -> str:
    """Return what came of timing more; ``again`` shows the answer."""
    text = f"{counted(done.units, 'program')} undecided, {done.made} with more rounds now"
    lines = _labelled("timing", text if done.units else "nothing that was run here is undecided", width)
    lines += _listed("run", list(done.runs), MOST_LEFT_OUT, width)
    return "\n".join([*lines, "", f"the answer: {again}"]) + "\n"


def render_kept(status: StoreStatus, *, width: int = 100) -> str:
    """Return how much a fleet's folder keeps."""
    lines = _labelled("store", status.folder, width)
    lines += _labelled(
        "results", f"{status.results} of {counted(status.programs, 'program')}, {size(status.bytes)}", width
    )
    for pair, count in status.by_pair.items():
        lines += _labelled("", f"{count} of {pair}", width)
    lines += _labelled("faults", f"{status.faults} without a result for a reason that is no verdict", width)
    lines += _labelled("beside", f"runs {size(status.runs_bytes)}, fetched files {size(status.cache_bytes)}", width)
    lines += _labelled("oldest", f"last used {status.oldest_used or 'never'}", width)
    return "\n".join(lines) + "\n"
