"""What other commands than a run found, as JSON: all of it, and the exit code where there is one.

``docs/guide/doctor.md`` and, of golden records, inspections, matrices and fleets, ``docs/formats/`` document it.
"""

from typing import Any, TypeVar

import msgspec

from harness import __version__
from harness.checks.migration.readiness import by_owner, unlocked
from harness.core.attach import Attachment
from harness.core.cache import Cache, CacheCleaning
from harness.core.compiling import CompileCheck
from harness.core.errors import RunDirError
from harness.core.fleet import FleetPlan, FleetReport
from harness.core.golden import GoldenStatus, Review
from harness.core.interference import Interference
from harness.core.linking import LinkCheck
from harness.core.machine import Checkup
from harness.core.migration import Migration
from harness.core.prediction import Inspection
from harness.core.releases import FirstBad, Matrix
from harness.machine.typed import converted
from harness.report.documents.first_bad import answer_words
from harness.report.json.text import json_text
from harness.store.json import JsonError, from_json
from harness.verdict.exit_codes import exit_code
from harness.verdict.matrix import MatrixVerdict
from harness.verdict.prediction import confusion_by_direction

SCHEMA_VERSION = 1
T = TypeVar("T")


def _dump(**found: Any) -> str:
    """Return indented JSON with a fixed order of keys, ending with a newline."""
    return json_text({"schema_version": SCHEMA_VERSION, "harness_version": __version__, **found})


def dump_checkup(checkup: Checkup) -> str:
    """Return the doctor's checks."""
    return _dump(
        exit_code=int(exit_code(checkup)),
        blocked=list(checkup.blocked),
        checkup=msgspec.to_builtins(checkup),
    )


def dump_cache(cache: Cache | CacheCleaning) -> str:
    """Return what lies in the cache, or was removed there."""
    freed = {"freed_bytes": cache.freed_bytes} if isinstance(cache, CacheCleaning) else {}
    return _dump(**msgspec.to_builtins(cache), **freed)


def dump_review(review: Review) -> str:
    """Return every number of a diff of golden records."""
    return _dump(**msgspec.to_builtins(review))


def dump_status(status: GoldenStatus) -> str:
    """Return the state of all golden records."""
    return _dump(**msgspec.to_builtins(status))


def dump_inspection(inspection: Inspection) -> str:
    """Return everything that was read of files and said about them."""
    return _dump(exit_code=int(exit_code(inspection)), **msgspec.to_builtins(inspection))


def dump_compile_check(check: CompileCheck) -> str:
    """Return what became of each source, and what is broken."""
    return _dump(exit_code=int(exit_code(check)), **msgspec.to_builtins(check))


def dump_link_check(check: LinkCheck) -> str:
    """Return what becomes of each binary, with the mangled names of what it misses."""
    return _dump(exit_code=int(exit_code(check)), **msgspec.to_builtins(check))


def dump_attachment(attachment: Attachment) -> str:
    """Return what each process does, with all of its threads and their whole stacks."""
    return _dump(exit_code=int(exit_code(attachment)), **msgspec.to_builtins(attachment, order="deterministic"))


def dump_interference(found: Interference) -> str:
    """Return what holds up a process, and every process that did something meanwhile."""
    return _dump(exit_code=int(exit_code(found)), **msgspec.to_builtins(found))


def dump_matrix(matrix: Matrix, verdict: MatrixVerdict) -> str:
    """Return every cell of a matrix and what they amount to."""
    return _dump(
        exit_code=int(verdict.exit_code),
        summary=list(verdict.sentences),
        pairs=[{**msgspec.to_builtins(pair), "status": pair.status.value} for pair in verdict.pairs.values()],
        predictions=msgspec.to_builtins(confusion_by_direction(matrix.cells)),
        **msgspec.to_builtins(matrix),
    )


def dump_first_bad(found: FirstBad) -> str:
    """Return the answer of a search for the first bad release, and every release that was asked."""
    return _dump(exit_code=int(exit_code(found)), answer=answer_words(found), **msgspec.to_builtins(found))


def dump_migration(migration: Migration) -> str:
    """Return what became of each artifact outside of TorchScript, and what that is for all of them together."""
    return _dump(
        exit_code=int(exit_code(migration)),
        counts={outcome.value: count for outcome, count in migration.counts.items()},
        unlocked=msgspec.to_builtins(unlocked(migration)),
        owners={owner: msgspec.to_builtins(counts) for owner, counts in by_owner(migration).items()},
        **msgspec.to_builtins(migration),
    )


def load_matrix(data: bytes, *, file: str) -> Matrix:
    """Return the matrix in ``data``; what it amounted to is judged anew. ``file`` is its name for messages.

    Raises:
        RunDirError: no JSON, of another version, or not the shape of a matrix.
    """
    return _loaded(data, Matrix, file=file, what="matrix", again="make it with: matrix")


def _loaded(data: bytes, kind: type[T], *, file: str, what: str, again: str) -> T:
    try:
        plain = from_json(data)
        if not isinstance(plain, dict) or plain.get("schema_version") != SCHEMA_VERSION:
            raise RunDirError(f"{file} is no {what} of schema version {SCHEMA_VERSION}", again)
        value: T = converted(plain, kind)
        return value
    except (JsonError, msgspec.ValidationError) as error:
        raise RunDirError(f"{file} is damaged: {error}", again) from error


def load_fleet(data: bytes, *, file: str) -> FleetReport:
    """Return the merged answer of a fleet in ``data``. ``file`` is its name for messages.

    Raises:
        RunDirError: no JSON, of another version, or not the shape of an answer.
    """
    return _loaded(data, FleetReport, file=file, what="answer of a fleet", again="name a fleet.json of `fleet report`")


def dump_fleet(found: FleetPlan | FleetReport) -> str:
    """Return a fleet's plan, or its merged answer, which say their versions themselves."""
    return json_text(msgspec.to_builtins(found))
