"""What a GPU record does not show, and the exit code that follows from its parts."""

from harness.domain.report import GpuRecord
from harness.errors import ExitCode

# What of several exit codes counts.
GRAVEST_FIRST = (
    ExitCode.INTERNAL,
    ExitCode.CONFIGURATION,
    ExitCode.ENVIRONMENT,
    ExitCode.INCOMPATIBLE,
    ExitCode.INCONCLUSIVE,
    ExitCode.COMPATIBLE,
)
JUDGED = (ExitCode.COMPATIBLE, ExitCode.INCOMPATIBLE, ExitCode.INCONCLUSIVE)


def reservations(record: GpuRecord) -> tuple[str, ...]:
    """Return what the record does not show, a sentence each; empty where it is whole."""
    found = []
    if not record.gpu:
        found.append(f"No GPU was used: a rehearsal on the device {record.device}. It says nothing about a GPU.")
    if record.same_torch and record.new is not None and record.new.fingerprint is not None:
        found.append(f"No upgrade was judged: both sides are torch {record.new.fingerprint.torch}.")
    found += [
        f"{part.name} did not come to its end: {part.why}" for part in record.parts if part.exit_code not in JUDGED
    ]
    return tuple(found)


def exit_code(record: GpuRecord) -> ExitCode:
    """Return the gravest exit code of its parts; a record with reservations is never green."""
    codes = {part.exit_code for part in record.parts} | {ExitCode.INCONCLUSIVE if reservations(record) else None}
    return next((code for code in GRAVEST_FIRST if code in codes), ExitCode.INCONCLUSIVE)
