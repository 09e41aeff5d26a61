"""An inspection as JSON: everything that was read and said. ``docs/formats/inspect.md`` documents it."""

import msgspec

from harness import __version__
from harness.domain.prediction import Inspection
from harness.report.json.text import json_text
from harness.static.predict import exit_code

SCHEMA_VERSION = 1


def dump_inspection(inspection: Inspection) -> str:
    """Return indented JSON with a fixed order of keys, ending with a newline."""
    told = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "exit_code": int(exit_code(inspection)),
        **msgspec.to_builtins(inspection),
    }
    return json_text(told)
