"""``doctor``: whether this machine and these environments are fit for a run."""

import argparse
from collections.abc import Callable, Sequence

from harness.commands.doctor import doctor as look
from harness.doctor import checks as checkup_policy
from harness.domain.machine import Checkup
from harness.report.json.doctor import dump_checkup
from harness.report.text.doctor import render_checkup
from harness.verbs.shared import colour, options_of, say


def doctor(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Look at the machine before a run."""
    found = look(options_of(parsed, arguments), parsed.named)
    say(DOCTOR_FORMATS[parsed.format](found))
    return checkup_policy.exit_code(found)


DOCTOR_FORMATS: dict[str, Callable[[Checkup], str]] = {
    "console": lambda found: render_checkup(found, colour=colour()),
    "json": dump_checkup,
}
