"""The run of artifacts that ``--torchscript-compat`` names: apart, because finished runs need nothing of this."""

from pathlib import Path

from harness.run.execute import compat
from harness.run.options import Options
from harness.system.progress import Progress


def made(options: Options, *, say: bool) -> Path:
    """Return the folder of a run that is made now.

    Args:
        options: as of ``compat``.
        say: whether progress is written to standard error.

    Raises:
        GateError: it could not be made.
    """
    return compat(options, Progress(enabled=say)).folder
