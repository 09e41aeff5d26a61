"""Golden records as JSON: every number of a diff, and the state of all records. ``docs/formats/golden.md`` has both."""

import msgspec

from harness import __version__
from harness.domain.golden import GoldenStatus, Review
from harness.report.json.text import json_text

SCHEMA_VERSION = 1


def dump_review(review: Review) -> str:
    """Return a diff as indented JSON with a fixed order of keys, ending with a newline."""
    return _dump(review)


def dump_status(status: GoldenStatus) -> str:
    """Return the state of all records, in the same way."""
    return _dump(status)


def _dump(value: Review | GoldenStatus) -> str:
    told = {"schema_version": SCHEMA_VERSION, "harness_version": __version__, **msgspec.to_builtins(value)}
    return json_text(told)
