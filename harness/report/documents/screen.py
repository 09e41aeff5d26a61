"""The first screen of a run's page: who is furthest over a limit, what is open, faster and slow to start, in short."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from harness.core.prediction import RollbackAnswer
from harness.core.report import RunReport, SideReport
from harness.core.text import counted, first_few
from harness.core.verdict import WaiverState, WaiverUse
from harness.report.document import BAD, GOOD, OPEN, QUIET, Fact, Part, anchor, facts
from harness.report.documents.fleet import CHANGE_TONES
from harness.report.documents.migration import run_migration_words
from harness.report.documents.waivers import is_soon, waiver_tone
from harness.report.excess import ModelExcess, slow_starts, start_words, steady_calls
from harness.report.text.table import TableRow, not_measured, table_rows, timed_of
from harness.report.words.in_short import in_short
from harness.report.words.phrases import beyond_words, percent
from harness.report.words.since import trend_counts
from harness.report.words.summary import common_words, difference_words, run_words, time_words

SHOWN, OF_ONE_CAUSE, NOTES_SHOWN, KNOWN_SHOWN, REVISION = 5, 2, 2, 3, 10


def screen_parts(report: RunReport, models: Sequence[ModelExcess]) -> tuple[Part, ...]:
    """Return the parts; ``models`` are all, the furthest over a limit first."""
    return (
        _worst(report, models),
        *news_parts(report, models),
        Part(title="", kind="glances", blocks=tuple(_glances(report))),
        Part(
            title="What was compared: both releases, and the machine",
            kind="context",
            blocks=(
                *facts(_side("runs today", report.old)),
                *facts(_side("to move to", report.new)),
                *facts(
                    [
                        ("question", run_words(report)),
                        ("both run on", common_words(report)),
                        ("apart from torch", difference_words(report)),
                        ("time", time_words(report)),
                    ]
                ),
            ),
        ),
    )


def _side(role: str, side: SideReport) -> Iterator[tuple[str, str]]:
    found = side.fingerprint
    yield role, f"{side.name}{', golden outputs' if side.golden else ''}"
    if found is None:
        yield "state", "" if side.golden else "never started"
        return
    yield "torch", f"{found.torch}, revision {(found.git_revision or 'unknown')[:REVISION]}"
    yield "cuda", found.cuda or ""
    yield "python", found.python
    yield "gpu", found.gpu or ""


def _worst(report: RunReport, models: Sequence[ModelExcess]) -> Part:
    """Return the models furthest over a limit, a few of each cause before more of any; bars are logarithms."""
    over = [item for item in models if item.over and item.over[0].factor is not None]
    first = {model: cause.id for cause in reversed(report.causes) for model in cause.models}
    counts: Counter[str] = Counter()
    chosen: list[ModelExcess] = []
    others: list[ModelExcess] = []
    for item in over:
        cause = first.get(item.row.model, item.row.model)
        counts[cause] += 1
        (chosen if counts[cause] <= OF_ONE_CAUSE else others).append(item)
    shown = {item.row.model for item in (*chosen, *others)[:SHOWN]}
    ordered = [item for item in over if item.row.model in shown]
    ordered += [item for item in over if item.row.model not in shown]
    longest = math.log1p(max((item.over[0].factor or 0.0 for item in over), default=0.0)) or 1.0
    blocks = []
    for item in ordered:
        most = item.over[0]
        share = 100 * math.log1p(most.factor or 0.0) / longest
        blocks.append(
            Part(
                title=item.row.model,
                id=anchor(item.row.model),
                word=most.standing,
                tone=BAD if most.fails else OPEN,
                detail=beyond_words(most.beyond, brief=True),
                brief=f"{most.standing}: {most.words}{f', limit {most.limit}' if most.limit else ''}",
                blocks=(Fact(f"{share:.1f}", "%"),),
            )
        )
    known = dict.fromkeys(_known_words(use) for use in report.waivers if use.state is WaiverState.USED)
    nothing = f"Nothing measured is over a limit{f', beside what is waived: {_few(known)}' if known else ''}."
    return Part(title="Furthest over a limit", kind="worst", id="models", nothing=nothing, blocks=tuple(blocks))


def news_parts(report: RunReport, models: Sequence[ModelExcess]) -> tuple[Part, Part, Part]:
    """Return what is undecided, what is clearly faster, and what starts slower, the furthest first."""
    undecided = sorted((item for item in models if item.undecided), key=lambda item: -_open_to(item))
    lines = [
        Fact(
            "",
            f"{item.row.model}{f' up to {percent(_open_to(item))}' if _open_to(item) else ''}",
            link=f"#{anchor(item.row.model)}",
        )
        for item in undecided
    ]
    timed = steady_calls(report, models)
    faster = [
        Fact("", f"{item.model} {item.ratio.words}", link=f"#{anchor(item.model)}")
        for item in reversed(timed)
        if item.faster
    ]
    compared = any(item.old is not None and item.old.init_s and item.new.init_s for item in report.scenarios)
    starts = [Fact("", start_words(*item), link="#initialization") for item in slow_starts(report)]
    return (
        Part(title="not decided", kind="news", tone=OPEN, nothing="Everything was decided.", blocks=tuple(lines)),
        Part(
            title=f"faster ({timed_of(len(timed), len(models))})" if len(timed) < len(models) else "faster",
            kind="news",
            tone=GOOD,
            nothing="Nothing is clearly faster." if timed else "No latency was measured.",
            blocks=tuple(faster),
        ),
        Part(
            title="start slower",
            kind="news",
            tone=OPEN,
            nothing="No server group starts clearly slower." if compared else "No time of a start was compared.",
            blocks=tuple(starts),
        ),
    )


def _open_to(item: ModelExcess) -> float:
    """Return how much slower an undecided model may be, at most; 0 where nobody knows."""
    latency = item.row.facts.latency if item.row.facts is not None else None
    high = latency.shown.high if latency is not None and latency.shown is not None else 0.0
    return high if math.isfinite(high) else 0.0


def _glances(report: RunReport) -> Iterator[Fact]:
    """Yield lines in the order in which somebody who decides wants them, each with where the rest stands."""
    for label, words, tone, target in (
        *((label, words, QUIET, "") for label, words in in_short(report)),
        *_since(report),
        *_waivers(report),
        *_policy(report),
        *_golden(report),
        *_planted(report),
        *_rollback(report),
        *_migration(report),
        *_machine(report),
        *_unseen(table_rows(report)),
        *_not_measured(table_rows(report)),
        *_notes(report),
    ):
        yield Fact(label, words, link=f"#{target}" if target else "", tone=tone)


Glances = Iterator[tuple[str, str, str, str]]


def _since(report: RunReport) -> Glances:
    found = report.baseline
    if found is None:
        return
    counts = trend_counts(found)
    words = ", ".join(f"{count} {words}" for _, words, count in counts if count) or "no cell to compare"
    tones = [CHANGE_TONES[change] for change, _, count in counts if count]
    tone = next((tone for tone in (BAD, OPEN) if tone in tones), GOOD)
    yield "since baseline", f"{words}; then {found.decision.value}", tone, "baseline"


def _waivers(report: RunReport) -> Glances:
    uses = report.waivers
    if not uses:
        return
    counts = Counter(use.state for use in uses)
    words = [f"{counts[state]} {state.value}" for state in WaiverState if counts[state]]
    soon = sum(is_soon(use) for use in uses)
    words += [f"{soon} about to expire"] if soon else []
    known = dict.fromkeys(_known_words(use) for use in uses if use.state is WaiverState.USED)
    words += [_few(known)] if known else []
    tones = {waiver_tone(use) for use in uses}
    yield "waivers", ", ".join(words), BAD if BAD in tones else OPEN if soon or OPEN in tones else GOOD, "waivers"


def _known_words(use: WaiverUse) -> str:
    waiver = use.waiver
    return f"{waiver.model} ({waiver.owner}, until {waiver.expires.isoformat()})"


def _few(names: Iterable[str]) -> str:
    return first_few(list(names), KNOWN_SHOWN)


def _policy(report: RunReport) -> Glances:
    """Yield what another policy than the default made of the run; nothing where it changed nothing."""
    policy = report.policy
    unmet = [item.what for item in policy.demands if not item.met]
    ruled = sum(len(cell.ruled) for cell in report.judgement.cells)
    words = [f"NOT MET: {', '.join(unmet)}"] if unmet else []
    words += [f"{counted(ruled, 'finding')} weighed otherwise"] if ruled else []
    own = policy.regated.decision if policy.regated is not None else report.judgement.decision
    words += [f"the run itself said {own.value}"] if own is not report.judgement.decision else []
    if words:
        yield "policy", "; ".join(words), BAD if unmet else OPEN, "policy"


def _golden(report: RunReport) -> Glances:
    """Yield whose and how old the records are that stood in for the old release."""
    if not report.trust:
        return
    days = sorted(item.accepted.isoformat() for item in report.trust)
    when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    people = ", ".join(dict.fromkeys(sorted(item.by for item in report.trust if item.by)))
    words = f"{counted(len(report.trust), 'record')}, accepted {when}{f' by {people}' if people else ''}"
    yield "golden", words, QUIET, "environments"


def _planted(report: RunReport) -> Glances:
    defects = report.judgement.planted_defects
    if report.judgement.of_cell:
        return
    if not defects:
        yield "planted defects", "none ran: nothing shows that a defect would have been seen", OPEN, "planted_defects"
        return
    missed = [item.name for item in defects if not item.caught]
    words = f"{len(defects) - len(missed)} of {len(defects)} came out right"
    words = f"MISSED {', '.join(missed)}; {words}" if missed else words
    yield "planted defects", words, BAD if missed else GOOD, "planted_defects"


def _rollback(report: RunReport) -> Glances:
    found = report.rollback
    if found is None:
        return
    if not found.models:
        yield "rollback", f"not known: {found.reason}", OPEN, ""
        return
    shut = [item.model for item in found.models if item.answer is found.answer]
    of_them = f" {len(shut)} of {counted(len(found.models), 'model')}: {', '.join(shut)}"
    tone, words = {
        RollbackAnswer.YES: (GOOD, "yes, of every model"),
        RollbackAnswer.NO: (BAD if found.gates else OPEN, f"no, of{of_them}"),
        RollbackAnswer.UNKNOWN: (OPEN, f"not known, of{of_them}"),
    }[found.answer]
    yield "rollback", words + ("" if found.method == "probed" else " (read, not probed)"), tone, "rollback"


def _migration(report: RunReport) -> Glances:
    """Yield how many models could leave TorchScript: no tone, for it decides nothing."""
    if report.migration is not None:
        yield "migrate", run_migration_words(report.migration), QUIET, "migration" if report.migration.models else ""


def _machine(report: RunReport) -> Glances:
    events = report.during_run.events if report.during_run is not None else ()
    if events:
        yield "machine", "; ".join(f"{event.name}: {event.read}" for event in events), OPEN, "machine"


def _unseen(rows: Sequence[TableRow]) -> Glances:
    """Yield which models pass though an operator of theirs is known to answer otherwise."""
    models = [row.model for row in rows if row.unseen_changes]
    if models:
        words = f"{counted(len(models), 'model')} with an operator that is known to answer otherwise: {_few(models)}"
        yield "warning", words, OPEN, "run"


def _not_measured(rows: Sequence[TableRow]) -> Glances:
    words = not_measured(rows)
    if words:
        yield "not measured", words, QUIET, "models"


def _notes(report: RunReport) -> Glances:
    for note in report.notes[:NOTES_SHOWN]:
        yield "note", note, QUIET, "run"
    if len(report.notes) > NOTES_SHOWN:
        yield "note", f"and {len(report.notes) - NOTES_SHOWN} more", QUIET, "run"
