"""What a verdict is worth where the gate was not given an operator library: nothing failed that torch could help."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness.domain.outcome import Status
from harness.domain.probe import ModelResult
from harness.domain.verdict import CellVerdict, Finding
from harness.probing.loaded_libraries import LoadedLibraries
from harness.static.operator_libraries import how_to_give
from harness.static.predict import TORCHS_CLASSES, TORCHS_OWN

MISSING: Final = (
    re.compile(r"Unknown builtin op: (?P<space>\w+)::(?P<name>\w+)"),
    re.compile(r"(?:Unknown type name '|class )__torch__\.torch\.classes\.(?P<space>\w+)\.(?P<name>\w+)"),
    re.compile(r"'_OpNamespace' '(?P<space>\w+)' object has no attribute '(?P<name>\w+)'"),
)
"""How torch says that nobody has registered an operator or a class: TorchScript's importer, and torch.ops."""


def with_libraries(
    verdict: CellVerdict,
    old: Sequence[ModelResult],
    new: ModelResult,
    libraries: Mapping[str, LoadedLibraries],
) -> CellVerdict:
    """Return the verdict with what is missing of operator libraries, if that is why the model does not load.

    Where it loads in no release for want of one, nothing is known of the upgrade. Where a library that is loaded in
    both has lost the operator, the failure stands, and its story says so.

    Args:
        old: empty where golden records stand in for the old release.
        libraries: ``"old"`` and ``"new"`` -> what has been loaded there.
    """
    missing = _missing(new)
    if missing is None:
        return verdict
    operator, namespace = missing
    if all(_missing(result) == missing for result in old):
        words = _not_there(operator, namespace, libraries.values())
        found = Finding(kind="library_missing", message=words, detail={"needs": operator})
        return replace(verdict, status=Status.INCONCLUSIVE, findings=(found, *verdict.findings))
    lost = [one.words for one in (libraries.get("new"),) if one is not None and one.registers(operator)]
    before = libraries.get("old")
    if not lost or before is None:
        return verdict
    story = ("library", f"{lost[0]} does not register {operator}; {before.words} does")
    return replace(verdict, findings=tuple(replace(item, story=(story, *item.story)) for item in verdict.findings))


def _missing(result: ModelResult) -> tuple[str, str] | None:
    """Return the operator or class that no part of torch itself would register, and its namespace."""
    text = result.failure.message if result.failure is not None else ""
    match = next((found for pattern in MISSING if (found := pattern.search(text)) is not None), None)
    if match is None or match["space"] in TORCHS_OWN | TORCHS_CLASSES:
        return None
    return f"{match['space']}::{match['name']}", match["space"]


def _not_there(operator: str, namespace: str, loaded: Iterable[LoadedLibraries]) -> str:
    known = [one.words for one in loaded if one.registers(operator)]
    if known:
        which = " and ".join(dict.fromkeys(known))
        return f"{which} (--library) register{'s' if len(known) == 1 else ''} no {operator}: name the release that does"
    return (
        f"needs {operator}, which torch alone does not have, and no library was given for it: {how_to_give(namespace)}"
    )
