"""The doctor's checks as a document: below each problem its effect and what to do."""

from harness.core.machine import CheckStatus, Checkup, MachineCheck
from harness.core.text import counted
from harness.report.document import BAD, GOOD, OPEN, QUIET, Document, Part, Verdict, facts
from harness.report.words.phrases import seconds
from harness.verdict.exit_codes import exit_code

TONES = {CheckStatus.OK: GOOD, CheckStatus.WARN: OPEN, CheckStatus.UNKNOWN: QUIET, CheckStatus.FAIL: BAD}


def checkup_document(checkup: Checkup) -> Document:
    """Return the checks by area, and whether the machine is ready."""
    areas: dict[str, list[Part]] = {}
    for check in checkup.checks:
        areas.setdefault(check.area, []).append(_check(check))
    counts = {status: sum(check.status is status for check in checkup.checks) for status in CheckStatus}
    code = int(exit_code(checkup))
    why = (
        f"cannot be provisioned here: {', '.join(checkup.blocked)}"
        if code
        else f"{', '.join(checkup.environments)} can be provisioned here"
    )
    parts = [
        counted(counts[CheckStatus.WARN], "warning"),
        f"{counts[CheckStatus.UNKNOWN]} unknown",
        f"{counted(len(checkup.checks), 'check')} in {seconds(checkup.wall_s)}",
    ]
    return Document(
        title="Doctor",
        verdict=Verdict(
            word="NOT READY" if code else "READY",
            tone=BAD if code else GOOD,
            means=f"exit code {code}: {why}; {', '.join(parts)}",
        ),
        parts=(Part(title="", blocks=tuple(Part(title=area, blocks=tuple(of)) for area, of in areas.items())),),
    )


def _check(check: MachineCheck) -> Part:
    about = f", {check.about}" if check.about else ""
    return Part(
        title=f"{check.name}{about}: {check.read}",
        word=check.status.value,
        tone=TONES[check.status],
        blocks=facts([("so what", check.so_what), ("do this", check.do_this)]),
    )
