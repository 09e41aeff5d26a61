"""The doctor's checks as JSON. ``docs/guide/doctor.md`` documents it."""

import msgspec

from harness import __version__
from harness.doctor.checks import exit_code
from harness.domain.machine import Checkup
from harness.report.json.text import json_text

SCHEMA_VERSION = 1


def dump_checkup(checkup: Checkup) -> str:
    """Return indented JSON with a fixed order of keys, ending with a newline."""
    told = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "exit_code": int(exit_code(checkup)),
        "blocked": list(checkup.blocked),
        "checkup": msgspec.to_builtins(checkup),
    }
    return json_text(told)
