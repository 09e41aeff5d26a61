"""``inspect`` and ``pack``: files that are read, and files that are taken along."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.commands.inspect import inspect as read
from harness.commands.pack import pack as take_along
from harness.domain.prediction import Inspection
from harness.errors import ExitCode
from harness.report.ci.sarif import render_sarif
from harness.report.json.inspection import dump_inspection
from harness.report.text.bundles import render_packing
from harness.report.text.inspection import render_static
from harness.static.predict import exit_code
from harness.system.progress import Progress
from harness.verbs.shared import options_of, say, width


def inspect(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Read files without running them."""
    found = read(options_of(parsed, arguments), parsed.files, Progress())
    say(INSPECTION_FORMATS[parsed.format](found))
    return exit_code(found)


def pack(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Write golden bundles."""
    packing = take_along(options_of(parsed, arguments), Path(parsed.into), Progress())
    say(render_packing(packing, width=width()))
    return ExitCode.COMPATIBLE if packing.complete else ExitCode.INCONCLUSIVE


INSPECTION_FORMATS: dict[str, Callable[[Inspection], str]] = {
    "json": dump_inspection,
    "sarif": render_sarif,
    "text": lambda found: render_static(found, width=width()),
}
