"""What a golden bundle may declare: what a fixture may, checked by the same kinds, for a bundle comes from anywhere."""

from typing import Final

from harness.domain.bundle import Bundle
from harness.errors import ConfigError
from harness.planning import given_names
from harness.planning.catalogue import DEVICES, NAME, PATHS, TOLERANCE, WORDS
from harness.planning.schema import DTYPES, Kind, choice

LONGEST_NAME: Final = 200
"""A name is part of file names."""
COMPUTES_IN: Final = choice(*DTYPES)
ABSENT: Final = ("artifact.reset", "tolerance", "computes_in")
"""What a description may leave out."""


def contradiction(bundle: Bundle) -> str:
    """Return what a description says that no gate would have written; empty if there is nothing."""
    checks: tuple[tuple[str, Kind, object], ...] = (
        ("model", NAME, bundle.model),
        ("tags", WORDS, bundle.tags),
        ("devices", DEVICES, bundle.devices),
        ("device", DEVICES, (bundle.device,)),
        ("unordered", PATHS, bundle.unordered),
        ("artifact.reset", NAME, bundle.artifact.reset),
        ("tolerance", TOLERANCE, bundle.tolerance),
        ("computes_in", COMPUTES_IN, bundle.computes_in),
    )
    for name, kind, value in checks:
        if value is None and name in ABSENT:
            continue
        try:
            kind.read(value, name)
        except ConfigError as error:
            return error.message
    if len(bundle.model) > LONGEST_NAME or given_names.is_reserved(bundle.model):
        return f"model: {bundle.model:.100} is too long, or the gate's own"
    if given_names.CANARY in bundle.tags:
        return f"tags: {given_names.CANARY} is the gate's own"
    if bundle.artifact.model != bundle.model:
        return f"it is of {bundle.model}, and its artifact of {bundle.artifact.model!a:.100}"
    if not bundle.artifact.input_sets:
        return "artifact.input_sets: there is none, so nothing was called"
    return ""
