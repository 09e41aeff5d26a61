"""A fleet's answer as one HTML page: causes and waves on the first screen, and all artifacts in a table of its own.

The artifacts are data, of which the script makes only those rows that are in sight; each text is in it once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.core.fleet import NO_OWNER, FleetCause, FleetReport, FleetRow, Wave, WaveKind
from harness.core.outcome import Status
from harness.core.text import counted, prose, visible
from harness.report.page.artifacts import (
    TEXT,
    TITLE,
    ArtifactCauseView,
    CountView,
    artifact_cause,
    artifact_data,
    numbers_of,
    short,
)
from harness.report.page.engine import digest, own, page_of
from harness.report.page.parts import BAD, CHANGE_TONES, GOOD, OPEN, decision_tone, tone
from harness.report.words.fleet import (
    KIND_WORDS,
    TREND_HEADS,
    change_words,
    numbered,
    owners_words,
    row_words,
    since_facts,
    store_words,
    trend_row,
    urgency,
    wave_words,
)
from harness.report.words.phrases import exit_words, shorten
from harness.report.words.summary import but_of
from harness.verdict.counting import OVER_LIMIT, UNDECIDED

COLUMNS = ("artifact", "owner", "tier", "status", "wave", "upgrade", "reason")
CAUSES_SHOWN, SHORT, FAULTS_SHOWN, CHANGES_SHOWN, NOTES_SHOWN = 300, 5, 200, 400, 20
NO_RESULT = "NO RESULT"
FILTERS = (Status.FAIL.value, Status.INCONCLUSIVE.value, NO_RESULT, OVER_LIMIT, UNDECIDED, Status.PASS.value)
TONES = {WaveKind.READY: GOOD, WaveKind.SWITCH: OPEN, WaveKind.BLOCKED: BAD, WaveKind.UNKNOWN: OPEN}


@dataclass(frozen=True, kw_only=True, slots=True)
class WaveView:
    """One wave, or what keeps artifacts from moving."""

    number: str
    kind: str
    tone: str
    count: int
    words: str
    cure: str
    whose: str
    owners: str


def render_fleet_html(report: FleetReport) -> str:
    """Return the page, ending with a newline; identical answers give identical bytes."""
    style, script = own("style.css") + own("artifacts.css"), own("artifacts.js")
    owners = sorted({row.owner or NO_OWNER for row in report.rows})
    numbers = {owner: at for at, owner in enumerate(owners)}
    waves = [_wave(number, wave, numbers) for number, wave in numbered(report)]
    causes = [_cause(item, numbers) for item in report.causes[:CAUSES_SHOWN]]
    since = report.since
    return page_of(
        "fleet.html",
        {
            "style": style,
            "style_hash": digest(style),
            "script": script,
            "script_hash": digest(script),
            "decision": report.decision.value,
            "tone": OPEN if but_of(report) else decision_tone(report.decision),
            "but": shorten(prose(but_of(report)), TEXT),
            "old": visible(report.old),
            "new": visible(report.new),
            "reason": shorten(prose(report.reason), TEXT),
            "exit": f"exit code {report.exit_code}: {exit_words(report.exit_code)}",
            "store": f"{visible(report.store)}, {visible(report.device)}: {visible(store_words(report))}",
            "notes": tuple(shorten(prose(note), TEXT) for note in report.notes[:NOTES_SHOWN]),
            "total": len(report.rows),
            "counts": tuple(_counts(report)),
            "waves": waves,
            "causes": causes,
            "more_causes": len(report.causes) - len(causes),
            "short": SHORT,
            "since": since_facts(since) if since is not None else (),
            "trend_heads": TREND_HEADS,
            "trend": [tuple(visible(text) for text in trend_row(one)) for one in since.trend] if since else (),
            "changes": [
                (visible(item.name), visible(item.owner or NO_OWNER), short(change_words(item)))
                for item in (since.changes[:CHANGES_SHOWN] if since is not None else ())
            ],
            "more_changes": max(0, len(since.changes) - CHANGES_SHOWN) if since is not None else 0,
            "faults": [
                (item.label, short(item.text), f"tried {item.tries} times") for item in report.faults[:FAULTS_SHOWN]
            ],
            "more_faults": max(0, len(report.faults) - FAULTS_SHOWN),
            "columns": COLUMNS,
            "statuses": FILTERS,
            "data": _data(report, owners),
        },
    )


def _counts(report: FleetReport) -> Iterator[CountView]:
    for kind, words in KIND_WORDS.items():
        number = sum(len(wave.artifacts) for wave in report.waves if wave.kind is kind)
        if number or kind in (WaveKind.READY, WaveKind.BLOCKED):
            yield CountView(number=number, word=words, tone=TONES[kind])


def _wave(number: str, wave: Wave, numbers: dict[str, int]) -> WaveView:
    return WaveView(
        number=number if number != "-" else "stays",
        kind=KIND_WORDS[wave.kind],
        tone=TONES[wave.kind],
        count=len(wave.artifacts),
        words=shorten(prose(wave_words(wave)), TITLE),
        cure=shorten(prose(wave.cure), TEXT),
        whose=visible(owners_words(wave.owners)),
        owners=numbers_of(wave.owners, numbers),
    )


def _cause(item: FleetCause, numbers: dict[str, int]) -> ArtifactCauseView:
    count = f"{counted(len(item.cause.models), 'artifact')}, {counted(item.programs, 'program')}"
    return artifact_cause(item.cause, item.owners, numbers, count)


def _data(report: FleetReport, owners: Sequence[str]) -> str:
    """Return the artifacts, those that need somebody first."""
    waves = {name: (number, wave) for number, wave in numbered(report) for name in wave.artifacts}
    changes = {item.name: item for item in report.since.changes} if report.since is not None else {}
    place = urgency(report)

    causes: dict[str, list[str]] = {}
    for item in report.causes:
        for name in item.cause.models:
            causes.setdefault(name, []).append(item.cause.id)

    def row_of(row: FleetRow) -> tuple[str, ...]:
        number, wave = waves.get(row.name, ("", None))
        change = changes.get(row.name)
        return (
            row.name,
            row.owner or NO_OWNER,
            row.tier,
            row.standing or NO_RESULT,
            number if number != "-" else "stays",
            wave_words(wave) if wave is not None else "",
            row_words(row),
            " ".join(causes.get(row.name, ())),
            change.change.words if change is not None else "",
            row.path,
        )

    rows = sorted(report.rows, key=lambda row: (place.get(row.name, 0), row.name))
    tones = {status.value: tone(status) for status in Status} | dict.fromkeys((NO_RESULT, OVER_LIMIT, UNDECIDED), OPEN)
    changed = {item.words: CHANGE_TONES[item] for item in CHANGE_TONES}
    return artifact_data(COLUMNS, map(row_of, rows), status="status", owners=owners, tones=tones, changes=changed)
