"""What other commands than a run found, as JSON: all of it, and the exit code where there is one.

``docs/guide/doctor.md`` and, of golden records, inspections, matrices and fleets, ``docs/formats/`` document it.
"""

from typing import Any

import msgspec

from harness import __version__
from harness.checks.migration.readiness import by_owner, unlocked
from harness.core.atlas import OperatorChanges
from harness.core.cache import Cache, CacheCleaning
from harness.core.errors import RunDirError
from harness.core.fleet import FleetPlan, FleetReport
from harness.core.golden import GoldenStatus, Review
from harness.core.machine import Checkup
from harness.core.migration import Migration
from harness.core.releases import FirstBad, Matrix
from harness.machine.typed import converted
from harness.report.documents.first_bad import answer_words
from harness.report.json.text import json_text
from harness.store.json import JsonError, from_json
from harness.verdict.exit_codes import exit_code
from harness.verdict.matrix import judge_matrix
from harness.verdict.prediction import confusion_by_direction

SCHEMA_VERSION = 1


def dump(found: object) -> str:
    """Return a result as indented JSON with a fixed order of keys, ending with a newline; beside it what it amounts to.

    A fleet's plan and answer say their versions themselves.
    """
    plain, more = msgspec.to_builtins(found, order="deterministic"), dict[str, Any]()
    match found:
        case FleetPlan() | FleetReport():
            return json_text(plain)
        case Cache() | Review() | GoldenStatus() | OperatorChanges():
            pass
        case CacheCleaning():
            more = {"freed_bytes": found.freed_bytes}
        case Matrix():
            verdict = judge_matrix(found)
            pairs = [{**msgspec.to_builtins(pair), "status": pair.status.value} for pair in verdict.pairs.values()]
            predictions = msgspec.to_builtins(confusion_by_direction(found.cells))
            more = {"exit_code": int(verdict.exit_code), "summary": list(verdict.sentences), "pairs": pairs}
            more |= {"predictions": predictions}
        case _:
            more = {"exit_code": int(exit_code(found)), **_amounts_to(found)}
            plain = {"checkup": plain} if isinstance(found, Checkup) else plain
    return json_text({"schema_version": SCHEMA_VERSION, "harness_version": __version__, **more, **plain})


def _amounts_to(found: object) -> dict[str, Any]:
    match found:
        case Checkup():
            return {"blocked": list(found.blocked)}
        case FirstBad():
            return {"answer": answer_words(found)}
        case Migration():
            return {
                "counts": {outcome.value: count for outcome, count in found.counts.items()},
                "unlocked": msgspec.to_builtins(unlocked(found)),
                "owners": {owner: msgspec.to_builtins(counts) for owner, counts in by_owner(found).items()},
            }
        case _:
            return {}


def load_fleet(data: bytes, *, file: str) -> FleetReport:
    """Return the merged answer of a fleet in ``data``. ``file`` is its name for messages.

    Raises:
        RunDirError: no JSON, of another version, or not the shape of an answer.
    """
    again = "name a fleet.json of `fleet report`"
    try:
        plain = from_json(data)
        if not isinstance(plain, dict) or plain.get("schema_version") != SCHEMA_VERSION:
            raise RunDirError(f"{file} is no answer of a fleet of schema version {SCHEMA_VERSION}", again)
        answer: FleetReport = converted(plain, FleetReport)
        return answer
    except (JsonError, msgspec.ValidationError) as error:
        raise RunDirError(f"{file} is damaged: {error}", again) from error
