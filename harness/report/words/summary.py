"""What the report says outside its table, as plain facts: console and markdown only lay them out."""

from harness.core.errors import ExitCode
from harness.core.findings import Severity
from harness.core.outcome import Decision, Status
from harness.core.report import RunReport, SideReport
from harness.core.text import counted, first_few, joined
from harness.core.verdict import Mitigation, PlantedDefectResult, RowVerdict
from harness.report.text.table import table_rows
from harness.report.words.phrases import NO_REASON, but_of, exit_words, seconds
from harness.report.words.to_upgrade import dear_words, upgradable_after
from harness.verdict.counting import counts_of
from harness.verdict.decide import GREEN, UNJUDGED, unjudged_words
from harness.verdict.since import gone_models, gone_words

_REVISION, NAMED = 10, 3
_SHARED = {
    "python": "python",
    "cpu": "",
    "isa": "",
    "gpu": "",
    "driver": "driver",
    "cuda": "cuda",
    "glibc": "glibc",
    "intra_op_threads": "intra-op threads",
    "inter_op_threads": "inter-op threads",
}


def pair_words(report: RunReport) -> str:
    """Return the two sides in the direction of travel, e.g. ``torch 2.1.2 -> torch 2.6.0``."""
    return f"{report.old.name} -> {report.new.name}"


def run_words(report: RunReport) -> str:
    """Return what the pair was asked, on which device and under which profile."""
    what = "rollback" if report.direction == "forward" else report.direction
    artifacts = f"artifacts of {report.old.name} in {report.new.name}"
    return f"{what} ({artifacts}), device {report.device}, profile {report.profile}"


def torch_words(report: RunReport) -> str:
    """Return version and source revision of both sides, and what stood in for the old one if anything did."""
    return f"{_build(report.old)} -> {_build(report.new)}"


def _build(side: SideReport) -> str:
    """Return the torch of one side, as it said itself."""
    golden = ", golden outputs" if side.golden else ""
    found = side.fingerprint
    if found is None:
        return side.name if side.golden else f"{side.name} (never started)"
    return f"{found.torch} ({(found.git_revision or 'unknown')[:_REVISION]}{golden})"


def common_words(report: RunReport) -> str:
    """Return what both sides ran on, where they agree; what only one side says is taken from it."""
    found = [side.fingerprint for side in (report.new, report.old) if side.fingerprint]
    parts = []
    for name, words in _SHARED.items():
        values = {getattr(fingerprint, name) for fingerprint in found} - {None, ""}
        if len(values) == 1:
            value = str(values.pop())
            parts.append(value if value.startswith(words) else f"{words} {value}")
    return ", ".join(parts)


def difference_words(report: RunReport) -> str:
    """Return what differs between the environments beside torch itself, sorted by field."""
    differences = sorted(report.environment_differences.items())
    said = [f"{name} {old} -> {new}" for name, (old, new) in differences if name not in {"torch", "git_revision"}]
    return "; ".join(said) or "nothing beside torch itself"


def numerics_words(report: RunReport) -> str:
    """Return the settings that change numbers, exporter, old and new beside each other where they are not the same."""
    said = []
    for name, values in sorted(report.numerics.items()):
        known = dict.fromkeys(value for value in values if value)
        sides = zip(("exporter", "old", "new"), values, strict=True)
        apart = " (" + ", ".join(f"{side} {value}" for side, value in sides if value) + ")"
        said += [f"{name} {next(iter(known))}" if len(known) == 1 else f"{name}{apart}"] if known else []
    return "; ".join(said)


def planted_words(report: RunReport) -> str:
    """Return ``9 of 9 caught``, and each one that was not, with what was reported in its place."""
    planted_defects = report.judgement.planted_defects
    if not planted_defects:
        return "none ran: nothing shows that this run would have seen a defect"
    caught = sum(planted_defect.caught for planted_defect in planted_defects)
    missed = [missed_words(planted_defect) for planted_defect in planted_defects if not planted_defect.caught]
    return "; ".join([f"{caught} of {len(planted_defects)} caught", *missed])


def missed_words(planted_defect: PlantedDefectResult) -> str:
    """Return why a planted defect counts as missed."""
    reported = ", ".join(planted_defect.reported) or "nothing"
    expected = planted_defect.expected or "nothing (a healthy twin)"
    note = f" ({planted_defect.note})" if planted_defect.note else ""
    return f"MISSED {planted_defect.name}: expected {expected}, reported {reported}{note}"


def count_words(report: RunReport) -> str:
    """Return how many models have which status, reddest first."""
    rows = table_rows(report)
    if not rows:
        return "none: no model was tested"
    counts = counts_of([row.verdict for row in rows])
    return f"{len(rows)}: " + ", ".join(f"{count} {word}" for word, count in counts.items())


def time_words(report: RunReport) -> str:
    """Return the wall time and where it went, largest share first."""
    shares = sorted(report.time_shares_s.items(), key=lambda item: (-item[1], item[0]))
    if not shares:
        return f"{seconds(report.wall_s)}; where it went was not measured"
    whole = report.wall_s if report.wall_s > 0 else sum(report.time_shares_s.values())
    said = [f"{name} {seconds(spent)} ({100 * spent / whole:.0f} %)" if whole > 0 else name for name, spent in shares]
    return f"{seconds(report.wall_s)}: " + ", ".join(said)


def headline(report: RunReport) -> str:
    """Return the decision, with what is to be set and at which price, and what it must not be read without."""
    judgement = report.judgement
    words = f"{judgement.decision.value}: {judgement.mitigation}" if judgement.mitigation else judgement.decision.value
    known = known_failures(report) if judgement.decision in GREEN else {}
    failures = f"with {counted(len(known), 'known failure')}: {first_few(list(known), NAMED)}" if known else ""
    return ", ".join(part for part in (words, failures, but_words(report)) if part)


def known_failures(report: RunReport) -> dict[str, str]:
    """Return model -> who lets its failure pass, of every model that fails and is let pass."""
    return {row.model: _let_pass_by(row) for row in report.judgement.rows if row.status is Status.XFAIL}


def _let_pass_by(row: RowVerdict) -> str:
    waivers = dict.fromkeys(f"{item.owner}, until {item.expires}" for cell in row.cells for item in cell.waived)
    ruled = any(cell.status is Status.XFAIL and not cell.waived for cell in row.cells)
    return "; ".join([*waivers, *(["the policy"] if ruled else [])])


def reason_words(report: RunReport) -> str:
    """Return why it was decided so; of a blocked upgrade first how much is red, for how many causes, and what helps."""
    reason = report.judgement.reason or NO_REASON
    causes = [cause for cause in report.causes if cause.status is Status.FAIL]
    if report.judgement.decision is not Decision.BLOCKED or not causes:
        return reason
    models = {model for cause in causes for model in cause.models}
    verified = sum(cause.fix_verified for cause in causes)
    after = upgradable_after(report)
    which = f", {verified} of them" if verified < len(causes) else ", each" if verified > 1 else ""
    fixes = f"{which} with a verified fix{dear_words(report)}" if verified and not after else ""
    fails = f"{len(models)} of {counted(len(report.models), 'model')} {'fails' if len(models) == 1 else 'fail'}"
    return joined(after, f"{fails}, {counted(len(causes), 'cause')}{fixes}", reason)


def but_words(report: RunReport) -> str:
    """Return what a green decision must not be read without; empty where nothing is.

    That is what is surely over its limit, which models of the baseline this run does not have, and which files that lay
    there have no verdict.
    """
    judgement, severity = report.judgement, report.policy.settings.severity
    if judgement.decision not in GREEN:
        return but_of(judgement)
    gone = gone_models(report) if severity.get("gone", Severity.NAMED) == Severity.NAMED else []
    is_named = severity.get(UNJUDGED, Severity.NAMED) == Severity.NAMED
    unjudged = unjudged_words(report.unjudged, len(judgement.rows)) if is_named else ""
    return ", ".join(filter(None, (but_of(judgement), gone_words(gone) if gone else "", unjudged)))


def decision_words(report: RunReport) -> str:
    """Return what the exit code means for this decision."""
    judgement = report.judgement
    code = judgement.exit_code
    if judgement.decision is Decision.OK_WITH_MITIGATION and code == ExitCode.INCOMPATIBLE:
        return f"exit code {code} until the policy accepts the mitigation"
    during = f" during {judgement.interrupted}" if judgement.interrupted else ""
    return f"exit code {code}: {exit_words(code)}{during}"


def mitigations(report: RunReport) -> tuple[Mitigation, ...]:
    """Return every mitigation that mitigates its cell, in the order of the rows."""
    rows = table_rows(report)
    return tuple(item for row in rows for item in row.mitigations if item.mitigates)


def mitigation_words(mitigation: Mitigation) -> str:
    """Return a mitigation with its switches, its price and what it breaks elsewhere."""
    switches = ", ".join(f"{name}={value}" for name, value in sorted(mitigation.switches.items()))
    price = "price not measured" if mitigation.price is None else f"steady latency {mitigation.price.words}"
    breaks = f"; but breaks {', '.join(mitigation.breaks)}" if mitigation.breaks else ""
    note = f" ({mitigation.note})" if mitigation.note else ""
    return f"{mitigation.name}{f' ({switches})' if switches else ''}: {price}{breaks}{note}"


def cost_words(report: RunReport) -> tuple[str, ...]:
    """Return one line per mitigated model, for a run whose answer is to set a switch."""
    accepted = report.judgement.accepted_mitigations
    lines = []
    for mitigation in mitigations(report):
        state = ", accepted by the policy" if mitigation.name in accepted else ""
        lines.append(f"{mitigation.model}: {mitigation_words(mitigation)}{state}")
    return tuple(dict.fromkeys(lines))


def title_words(report: RunReport) -> str:
    """Return the run's name, when it started and which gate made it."""
    models = counted(len(table_rows(report)), "model")
    return f"{report.run}, started {report.started_at}, harness {report.harness_version}, {models}"
