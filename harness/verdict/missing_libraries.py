"""What a verdict is worth where the gate was not given an operator library: nothing failed that torch could help."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness.checks.prediction.operator_libraries import how_to_give
from harness.checks.prediction.predict import TORCHS_CLASSES, TORCHS_OWN
from harness.core.outcome import Status
from harness.core.probe import ModelResult
from harness.core.verdict import CellVerdict, Finding
from harness.probing.loaded_libraries import LoadedLibraries

MISSING: Final = (
    re.compile(r"Unknown builtin op: (?P<space>\w+)::(?P<name>\w+)"),
    re.compile(r"Following ops cannot be found: \[(?P<space>\w+)::(?P<name>\w+)"),
    re.compile(r"(?:Unknown type name '|class )__torch__\.torch\.classes\.(?P<space>\w+)\.(?P<name>\w+)"),
    re.compile(r"'_OpNamespace' '(?P<space>\w+)' object has no attribute '(?P<name>\w+)'"),
)
"""How the importers of TorchScript and of flatbuffers, and torch.ops, say that nobody has registered what they need."""


def with_libraries(
    verdict: CellVerdict,
    old: Sequence[ModelResult],
    new: ModelResult,
    libraries: Mapping[str, LoadedLibraries],
) -> CellVerdict:
    """Return the verdict with what is missing of operator libraries, if that is why the model does not load.

    Where the old release was not given what the model needs, it has not failed before: nothing is known of the upgrade.
    Where a library that is loaded in both has lost the operator, the failure stands, and its story says so. ``old`` is
    empty where golden records stand in for the old release; ``libraries``: what was loaded on each side.
    """
    lacking = {"old": next(filter(None, map(_missing, old)), None), "new": _missing(new)}
    sides = [side for side, operator in lacking.items() if operator is not None]
    if "old" in sides or (sides and not old):
        findings = [
            Finding(kind="library_missing", message=words, subject=operator)
            for operator, words in _not_there(lacking, libraries)
        ]
        return replace(verdict, status=Status.INCONCLUSIVE, findings=(*findings, *verdict.findings))
    operator, before, after = lacking["new"], libraries.get("old"), libraries.get("new")
    if operator is None or before is None or after is None or not after.registers(operator):
        return verdict
    story = ("library", f"{after.words} does not register {operator}; {before.words} does")
    return replace(verdict, findings=tuple(replace(item, story=(story, *item.story)) for item in verdict.findings))


def _missing(result: ModelResult) -> str | None:
    text = result.failure.message if result.failure is not None else ""
    match = next((matching for pattern in MISSING if (matching := pattern.search(text)) is not None), None)
    if match is None or match["space"] in TORCHS_OWN | TORCHS_CLASSES:
        return None
    return f"{match['space']}::{match['name']}"


def _not_there(
    lacking: Mapping[str, str | None], libraries: Mapping[str, LoadedLibraries]
) -> Iterator[tuple[str, str]]:
    for operator in dict.fromkeys(filter(None, lacking.values())):
        sides = [side for side, lacked in lacking.items() if lacked == operator]
        loaded = [libraries[side] for side in sides if side in libraries and libraries[side].registers(operator)]
        known = list(dict.fromkeys(library.words for library in loaded))
        if known:
            verb = "registers" if len(known) == 1 else "register"
            yield operator, f"{' and '.join(known)} (--library) {verb} no {operator}: name the release that does"
            continue
        where = f" in the {sides[0]} release" if len(sides) == 1 else ""
        give = how_to_give(operator.partition("::")[0])
        yield (
            operator,
            f"needs {operator}, which torch alone does not have, and no library was given for it{where}: {give}",
        )
