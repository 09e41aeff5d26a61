"""From verdicts on files to an exit code."""

from harness.domain.inspection import Inspection, Prediction
from harness.errors import ExitCode


def exit_code(inspection: Inspection) -> ExitCode:
    """Return 1 if a file will not load somewhere, else 4 if one could not be read or judged, else 0."""
    verdicts = [verdict for file in inspection.files for verdict in file.verdicts.values()]
    if any(verdict.prediction is Prediction.FAILS for verdict in verdicts):
        return ExitCode.INCOMPATIBLE
    unjudged = any(file.facts is None or not file.facts.has_code for file in inspection.files)
    if unjudged or any(verdict.prediction is Prediction.UNKNOWN for verdict in verdicts):
        return ExitCode.INCONCLUSIVE
    return ExitCode.COMPATIBLE
