"""A fleet as documents: its plan, its merged answer, and what a call of ``fleet run`` did."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.core.fleet import (
    NO_OWNER,
    Examination,
    FleetArtifact,
    FleetChange,
    FleetPlan,
    FleetReport,
    FleetRow,
    FleetSince,
    ShardDone,
    StoreStatus,
    Unjudged,
    Wave,
    WaveKind,
)
from harness.core.outcome import Decision, Status
from harness.core.prediction import Prediction
from harness.core.report import CellTrend
from harness.core.text import counted, first_few, joined
from harness.report.document import (
    ALL,
    ALWAYS,
    BAD,
    DETAIL,
    FIRST,
    GOOD,
    OPEN,
    QUIET,
    USUAL,
    Block,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    commands,
    facts,
    placed,
)
from harness.report.documents.causes import TONES, cause_part, causes_section
from harness.report.words.phrases import but_of, exit_words, seconds, size
from harness.verdict.counting import OVER_LIMIT, UNDECIDED

OWNERS_NAMED, CAUSES_NAMED, REASONS_NAMED, MOST_NAMED = 3, 3, 3, 400
NO_RESULT = "NO RESULT"
KIND_WORDS = {
    WaveKind.READY: "ready now",
    WaveKind.SWITCH: "ready with a switch",
    WaveKind.BLOCKED: "blocked",
    WaveKind.UNKNOWN: "unknown",
}
WAVE_TONES = {WaveKind.READY: GOOD, WaveKind.SWITCH: OPEN, WaveKind.BLOCKED: BAD, WaveKind.UNKNOWN: OPEN}
DECISION_TONES = {
    Decision.UPGRADE_OK: GOOD,
    Decision.CELL_OK: GOOD,
    Decision.OK_WITH_MITIGATION: OPEN,
    Decision.BLOCKED: BAD,
    Decision.INCONCLUSIVE: OPEN,
    Decision.NOTHING_TESTED: BAD,
}
CHANGE_TONES = {
    CellTrend.NEW: BAD,
    CellTrend.GREW: BAD,
    CellTrend.FLAKY: OPEN,
    CellTrend.UNDECIDED: OPEN,
    CellTrend.FIXED: GOOD,
    CellTrend.GONE: QUIET,
    CellTrend.ADDED: QUIET,
    CellTrend.NOT_COMPARABLE: OPEN,
    CellTrend.UNCHANGED: QUIET,
}
ARTIFACT_HEADS = ("artifact", "owner", "tier", "status", "wave", "upgrade", "reason")
FILTERS = (Status.FAIL.value, Status.INCONCLUSIVE.value, NO_RESULT, OVER_LIMIT, UNDECIDED, Status.PASS.value)


def fleet_document(report: FleetReport, *, more: str = "") -> Document:
    """Return the merged answer: causes with whose they are, then what can move when; ``more``: what shows all."""
    counts = [
        (sum(len(wave.artifacts) for wave in report.waves if wave.kind is kind), words, WAVE_TONES[kind])
        for kind, words in KIND_WORDS.items()
    ]
    but = but_of(report)
    causes = [
        cause_part(
            replace(item.cause, evidence=(("owners", owners_words(item.owners)), *item.cause.evidence)),
            at,
            things="artifact",
            programs=item.programs,
            owners=tuple(item.owners),
        )
        for at, item in enumerate(report.causes)
    ]
    return Document(
        title=f"{report.old} -> {report.new}, {counted(len(report.rows), 'artifact')}",
        eyebrow="TorchScript upgrade gate: a fleet",
        verdict=Verdict(
            word=report.decision.value,
            condition=f", {but}" if but else "",
            tone=OPEN if but else DECISION_TONES[report.decision],
            means=f"exit code {report.exit_code}: {exit_words(report.exit_code)}",
            reason=report.reason,
        ),
        old=report.old,
        new=report.new,
        full="fleet.json",
        beside=("fleet.json", "fleet.md", "owners.csv"),
        things="artifact",
        tally=tuple(count for count in counts if count[0] or count[1] in ("ready now", "blocked")),
        parts=(
            Part(
                title="",
                noun="note",
                blocks=(
                    *facts(
                        [
                            ("fleet", f"{report.store}, {report.old} -> {report.new}, {report.device}"),
                            ("results", store_words(report)),
                        ]
                    ),
                    *_most("warning", [_warning_words(wave, report.new) for wave in report.waves if wave.warning], 3),
                    *_most("note", report.notes, 4),
                    *commands([("more", more)]),
                ),
            ),
            causes_section(causes, nothing="Nothing needs anybody."),
            _waves(report),
            *([_since(report.since)] if report.since is not None else []),
            _faults(report),
            Part(
                title=f"{counted(len(report.unjudged), 'other file')} not judged",
                noun="file",
                importance=DETAIL,
                folded=True,
                blocks=facts(
                    ("/".join(filter(None, (item.path, item.member))), item.reason)
                    for item in report.unjudged[:MOST_NAMED]
                ),
            ),
            _artifacts(report),
        ),
    )


def _warning_words(wave: Wave, new: str) -> str:
    known = f"{wave.warning}: known to answer otherwise in {new}"
    return f"{known}, and guessed requests may not show it: {first_few(wave.artifacts, OWNERS_NAMED)}"


def _most(label: str, texts: Sequence[str], most: int) -> tuple[Fact, ...]:
    return tuple(Fact(label, text, placed(USUAL, at, 10) if at < most else DETAIL) for at, text in enumerate(texts))


def _waves(report: FleetReport) -> Part:
    rows = tuple(
        Row(
            cells=(
                number,
                str(len(wave.artifacts)),
                Cell(_wave_words(wave), tone=WAVE_TONES[wave.kind]),
                wave.fix,
                owners_words(wave.owners),
            ),
            importance=placed(FIRST + 10, at, 5) if at < 14 else DETAIL,
            owners=tuple(wave.owners),
        )
        for at, (number, wave) in enumerate(numbered(report))
    )
    beside = {
        row.name: joined(
            row.reason if row.status is Status.PASS else "", f"guessed requests, {row.guessed}" if row.guessed else ""
        )
        for row in report.rows
    }
    members = tuple(
        Part(
            title=f"{'stays' if number == '-' else number}: {_wave_words(wave)} ({len(wave.artifacts)})",
            folded=True,
            noun="artifact",
            importance=DETAIL,
            kind="paper",
            blocks=tuple(
                Fact("", ": ".join(filter(None, (name, beside.get(name, ""))))) for name in wave.artifacts[:MOST_NAMED]
            ),
            left=f"and {len(wave.artifacts) - MOST_NAMED} more" if len(wave.artifacts) > MOST_NAMED else "",
        )
        for number, wave in numbered(report)
    )
    heads = ("wave", "artifacts", "upgrade", "fix", "owners")
    table = Table(heads=heads, rows=rows, numbers=(1,), noun="wave", long=(3,), main=2, soft=(4,))
    return Part(title="All waves", id="waves", blocks=(table, *members), importance=FIRST, panel="Waves")


def _since(found: FleetSince) -> Part:
    trend = tuple(
        Row(
            cells=(
                f"{outline.old} -> {outline.new}",
                outline.decision.value,
                *(str(outline.waves.get(kind.value, 0)) for kind in KIND_WORDS),
            )
        )
        for outline in found.trend
    )
    changes = tuple(
        Row(
            cells=(item.name, item.owner or NO_OWNER, change_words(item)),
            importance=placed(FIRST + 30, at, 10) if at < 5 else DETAIL,
        )
        for at, item in enumerate(found.changes[:MOST_NAMED])
    )
    heads = ("upgrade", "decision", *KIND_WORDS.values())
    blocks: tuple[Block, ...] = (
        *facts(since_facts(found)),
        Table(heads=heads, rows=trend, numbers=tuple(range(2, 6)), importance=DETAIL, caption="Every answer"),
    )
    if changes:
        blocks += (Table(heads=("artifact", "owner", "change"), rows=changes, noun="change"),)
    return Part(title="Since the earlier answer", id="since", blocks=blocks, importance=FIRST)


def _faults(report: FleetReport) -> Part:
    lines = tuple(
        Fact(
            "no verdict",
            f"{item.label}: {item.text} (tried {item.tries} times)",
            placed(USUAL, at, 10) if at < 5 else DETAIL,
        )
        for at, item in enumerate(report.faults[:MOST_NAMED])
    )
    return Part(title="Without a verdict", id="faults", noun="fault", blocks=lines, importance=FIRST)


def _artifacts(report: FleetReport) -> Part:
    """Return all artifacts, those that need somebody first: a page searches them."""
    waves = {name: (number, wave) for number, wave in numbered(report) for name in wave.artifacts}
    changes = {item.name: item for item in report.since.changes} if report.since is not None else {}
    place = urgency(report)
    causes: dict[str, list[str]] = {}
    for item in report.causes:
        for name in item.cause.models:
            causes.setdefault(name, []).append(item.cause.id)

    def row_of(row: FleetRow) -> Row:
        number, wave = waves.get(row.name, ("", None))
        change = changes.get(row.name)
        word = row.standing or NO_RESULT
        odd = word in (NO_RESULT, OVER_LIMIT, UNDECIDED)
        status = Cell(word, tone=OPEN if odd else next((TONES[item] for item in Status if item.value == word), OPEN))
        return Row(
            cells=(
                row.name,
                row.owner or NO_OWNER,
                row.tier,
                status,
                "stays" if number == "-" else number,
                _wave_words(wave) if wave is not None else "",
                row_words(row),
            ),
            owners=(row.owner or NO_OWNER,),
            find=" ".join(causes.get(row.name, ())),
            tip=row.path,
            change=(change.change.words, CHANGE_TONES[change.change]) if change is not None else ("", ""),
        )

    rows = tuple(map(row_of, sorted(report.rows, key=lambda row: (place.get(row.name, 0), row.name))))
    table = Table(heads=ARTIFACT_HEADS, rows=rows, noun="artifact", status=3, choices=FILTERS)
    return Part(title="Artifacts", id="artifacts", blocks=(table,), importance=ALL, kind="upgrade")


def owners_words(owners: Mapping[str, int]) -> str:
    """Return whose artifacts these are and how many: ``"ads 5, search 2 and 3 more"``."""
    return first_few([f"{owner} {count}" for owner, count in owners.items()], OWNERS_NAMED)


def _wave_words(wave: Wave) -> str:
    if wave.kind is WaveKind.READY:
        but = f", but {wave.warning} may answer otherwise on real requests" if wave.warning else ""
        return f"ready now{f', tier {wave.needs}' if wave.needs else ''}{but}"
    if wave.kind is WaveKind.SWITCH:
        where = f" (profile {wave.profile})" if wave.profile else ""
        return f"ready with {wave.needs}{where}: {wave.cost}"
    return f"blocked by {wave.needs}" if wave.kind is WaveKind.BLOCKED else f"unknown: {wave.needs}"


def waves_of(report: FleetReport) -> dict[str, tuple[str, str]]:
    """Return artifact -> the number of its wave and what that is."""
    return {name: (number, _wave_words(wave)) for number, wave in numbered(report) for name in wave.artifacts}


def numbered(report: FleetReport) -> list[tuple[str, Wave]]:
    """Return the waves with their numbers; what cannot move has none."""
    movable, made = 0, []
    for wave in report.waves:
        moves = wave.kind in (WaveKind.READY, WaveKind.SWITCH)
        movable += moves
        made.append((str(movable) if moves else "-", wave))
    return made


def trend_counts(counts: Mapping[str, int]) -> str:
    """Return how many have changed in which way; what is new and what is fixed also where nothing is."""
    numbers = [(change, counts.get(change.value, 0)) for change in CellTrend]
    always = (CellTrend.NEW, CellTrend.FIXED)
    return ", ".join(f"{count} {change.words}" for change, count in numbers if count or change in always)


def since_facts(found: FleetSince) -> list[tuple[str, str]]:
    """Return (label, text) of what has changed since an earlier answer."""
    pairs = [("since", f"{trend_counts(found.counts)}; then {found.decision.value}, {found.old} -> {found.new}")]
    for label, titles in (("new cause", found.new_causes), ("ended", found.ended_causes)):
        if titles:
            pairs.append((label, first_few(titles, CAUSES_NAMED)))
    return pairs


def change_words(change: FleetChange) -> str:
    """Return what became of an artifact: ``new: PASS -> FAIL``."""
    was, now = (status.value if status is not None else "no result" for status in (change.was, change.now))
    words = {CellTrend.ADDED: now, CellTrend.GONE: was}.get(change.change, f"{was} -> {now}")
    return joined(f"{change.change.words}: {words}", change.why)


def urgency(report: FleetReport) -> dict[str, int]:
    """Return artifact -> place among those that need somebody: what is blocked first, then what nobody knows."""
    kinds = (WaveKind.BLOCKED, WaveKind.UNKNOWN, WaveKind.SWITCH, WaveKind.READY)
    waves = sorted(report.waves, key=lambda wave: kinds.index(wave.kind))
    return {name: at for at, wave in enumerate(waves) for name in wave.artifacts}


def store_words(report: FleetReport) -> str:
    """Return what the answer is about."""
    total, known = len(report.rows), sum(row.status is not None for row in report.rows)
    guessed = sum(bool(row.guessed) for row in report.rows)
    words = f"{known} of {counted(total, 'artifact')} have a result"
    words += f", {guessed} of them to guessed requests" if guessed else ""
    counts = ", ".join(f"{count} {word}" for word, count in report.counts.items())
    return joined(words, counts, unjudged_words(report.unjudged))


def row_words(row: FleetRow) -> str:
    """Return why a row is what it is, and what was asked where nobody gave requests."""
    return joined(row.reason, f"its requests are guesses: {row.guessed}" if row.guessed else "")


def unjudged_words(unjudged: Sequence[Unjudged]) -> str:
    """Return how much of a store no verdict speaks of, and why, most first; empty where nothing is so."""
    if not unjudged:
        return ""
    reasons = [f"{count} {reason}" for reason, count in Counter(item.reason for item in unjudged).most_common()]
    return f"not judged: {counted(len(unjudged), 'other file')} ({first_few(reasons, REASONS_NAMED, '; ')})"


def plan_document(plan: FleetPlan, times: Sequence[tuple[int, float]], *, command: str) -> Document:
    """Return a plan; ``times`` has (machines, seconds) that all takes, ``command`` runs it."""
    rows = tuple(
        Row(
            cells=(
                str(len(items)),
                str(len({item.owner or NO_OWNER for item in items})),
                items[0].predictions["new"].value,
                why,
            ),
            importance=placed(USUAL, at, 5) if at < 12 else DETAIL,
        )
        for at, (why, items) in enumerate(_groups(plan))
    )
    left = [f"{item.path}: {item.left_out}" for item in plan.artifacts if item.left_out]
    return Document(
        title="fleet plan",
        verdict=Verdict(),
        full="plan.json",
        parts=(
            Part(title="", blocks=commands([("run it", command)])),
            Part(
                title="",
                noun="note",
                blocks=(
                    *facts(
                        [
                            ("fleet", f"{plan.store}, torch {plan.old} -> torch {plan.new}, {plan.device}"),
                            *_plan_facts(plan),
                            ("takes", _times(plan, times)),
                        ]
                    ),
                    *_most("note", plan.notes, 4),
                ),
            ),
            Part(
                title="",
                blocks=(
                    Table(heads=("artifacts", "owners", "in the new", "why"), rows=rows, numbers=(0, 1), noun="reason"),
                ),
            ),
            Part(title="Left out", noun="file", blocks=_most("left out", left, 6)),
        ),
    )


def _plan_facts(plan: FleetPlan) -> Iterator[tuple[str, str]]:
    usable = [item for item in plan.artifacts if not item.left_out]
    predicted = Counter(item.predictions.get("new", Prediction.UNKNOWN) for item in usable)
    full = sum(unit.examination is Examination.FULL for unit in plan.units)
    copies = len(usable) - len({item.key for item in usable})
    left = len(plan.artifacts) - len(usable)
    what = f"{len(usable)} to judge, {counted(len({item.program for item in usable}), 'program')}"
    yield "artifacts", joined(f"{what}, {copies} are copies of others", f"{left} left out" if left else "")
    words = ", ".join(f"{predicted[item]} {item.value}" for item in Prediction if predicted[item])
    yield "reading", f"torch of the new release: {words}"
    rest = f"{len(plan.units) - full} loaded and compared"
    yield "to run", f"{len(plan.units)} units: {full} in full, once per program; {rest}"
    yield "known", f"{sum(unit.known for unit in plan.units)} of {len(plan.units)} have a result already"
    yield "beside", unjudged_words(plan.unjudged)


def _times(plan: FleetPlan, times: Sequence[tuple[int, float]]) -> str:
    parts = [f"{seconds(spent)} on {counted(count, 'machine')}" for count, spent in times]
    within = plan.within_s
    wanted = f"; within {seconds(within)}: {counted(plan.machines, 'machine')}" if within is not None else ""
    by = f"by {counted(plan.measured, 'result')} kept here" if plan.measured else "by defaults, until something has run"
    return f"about {', '.join(parts)} ({by}){wanted}"


def _groups(plan: FleetPlan) -> list[tuple[str, list[FleetArtifact]]]:
    """Return the artifacts that reading says something of, by what it says, the riskiest and most first."""
    groups: dict[str, list[FleetArtifact]] = defaultdict(list)
    for item in plan.artifacts:
        if item.why and "new" in item.predictions:
            groups[item.why].append(item)
    risks = {name: unit.risk for unit in plan.units for name in unit.artifacts}
    return sorted(groups.items(), key=lambda pair: (risks.get(pair[1][0].name, 9), -len(pair[1]), pair[0]))


def shard_document(done: ShardDone, *, again: str, more: bool = False) -> Document:
    """Return what a call of ``fleet run`` did; ``again`` shows the answer; ``more``: it timed what was undecided."""
    if more:
        words = f"{counted(done.units, 'program')} undecided, {done.made} with more rounds now"
        head = ("timing", words if done.units else "nothing that was run here is undecided")
    else:
        parts = [counted(done.units, "unit"), f"{done.known} known before", f"{done.made} made now"]
        parts += [f"{len(done.faults)} without a result"] if done.faults else []
        head = ("shard", ", ".join(parts))
    tries = [("", "the same command tries again what has no result")] if done.faults and not more else []
    return Document(
        title="fleet run",
        verdict=Verdict(),
        parts=(
            Part(title="", blocks=commands([("the answer", again)])),
            Part(title="", noun="run", blocks=(*facts([head]), *_most("run", done.runs, 6))),
            Part(
                title="",
                noun="fault",
                importance=ALWAYS,
                blocks=(*_most("no verdict", [f"{item.label}: {item.text}" for item in done.faults], 5), *facts(tries)),
            ),
        ),
    )


def kept_document(status: StoreStatus) -> Document:
    """Return how much a fleet's folder keeps."""
    results = f"{status.results} of {counted(status.programs, 'program')}, {size(status.bytes)}"
    pairs = [f"{count} of {pair}" for pair, count in status.by_pair.items()]
    lines = [
        ("store", status.folder),
        ("results", "; ".join([results, *pairs])),
        ("faults", f"{status.faults} without a result for a reason that is no verdict"),
        ("beside", f"runs {size(status.runs_bytes)}, fetched files {size(status.cache_bytes)}"),
        ("oldest", f"last used {status.oldest_used or 'never'}"),
    ]
    return Document(title="", verdict=Verdict(), parts=(Part(title="", blocks=facts(lines)),))
