"""Waivers: known findings with an owner and an expiry date. They hang off stable names, never off fixtures."""

import datetime as dt
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.domain.outcome import Status
from harness.domain.verdict import CellVerdict, Finding
from harness.errors import ConfigError
from harness.policy.findings import SEVERITY, Severity

REQUIRED = ("model", "kind", "reason", "owner", "expires")


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiver:
    """One entry of ``golden/waivers.toml``: findings of ``kind`` on ``model`` are known until ``expires``."""

    model: str
    kind: str
    reason: str
    owner: str
    expires: dt.date


def parse_waivers(text: str, *, file: str) -> tuple[Waiver, ...]:
    """Return the ``[[waiver]]`` tables of a waiver file.

    Raises:
        ConfigError: not TOML, a key is missing or unknown, or a value has the wrong type; names file and entry.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML: {error}", "mend the file") from error
    entries = tables.pop("waiver", [])
    if tables or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        what = f"has unknown keys {', '.join(tables)}" if tables else "does not hold a list of waivers"
        raise ConfigError(f"{file} {what}", "begin every waiver with [[waiver]]")
    return tuple(_parse(entry, f"{file}: waiver {index + 1}") for index, entry in enumerate(entries))


def _parse(entry: Mapping[str, Any], place: str) -> Waiver:
    missing = [key for key in REQUIRED if key not in entry]
    unknown = [key for key in entry if key not in REQUIRED]
    if missing or unknown:
        what = f"lacks {', '.join(missing)}" if missing else f"has unknown keys {', '.join(unknown)}"
        raise ConfigError(f"{place} {what}", f"a waiver has exactly: {', '.join(REQUIRED)}")
    wrong = [key for key in REQUIRED if key != "expires" and not isinstance(entry[key], str)]
    if wrong:
        raise ConfigError(f"{place}: {wrong[0]} is {entry[wrong[0]]!r}", "write a text in quotes")
    if entry["kind"] not in SEVERITY:
        raise ConfigError(f"{place}: kind {entry['kind']!r} is unknown", f"one of: {', '.join(SEVERITY)}")
    if type(entry["expires"]) is not dt.date:  # a datetime is one too, and does not compare with a date
        raise ConfigError(f"{place}: expires is {entry['expires']!r}", "write a date without quotes: 2026-12-31")
    return Waiver(**{key: entry[key] for key in REQUIRED})


def apply_waivers(verdict: CellVerdict, waivers: Sequence[Waiver], today: dt.date) -> CellVerdict:
    """Return the verdict: XFAIL if every failing finding is covered by a waiver that has not expired."""
    mine = [waiver for waiver in waivers if waiver.model == verdict.model]
    if not mine:
        return verdict
    failing = [finding for finding in verdict.findings if SEVERITY[finding.kind] is Severity.FAIL]
    valid = {waiver.kind: waiver for waiver in mine if waiver.expires >= today}
    expired = {waiver.kind: waiver for waiver in mine if waiver.expires < today}
    if verdict.status is Status.FAIL:
        if all(finding.kind in valid for finding in failing):
            waiver = valid[failing[0].kind]
            note = f"waived until {waiver.expires} by {waiver.owner}: {waiver.reason}"
            return replace(verdict, status=Status.XFAIL, note=note)
        late = [expired[finding.kind] for finding in failing if finding.kind in expired]
        warnings = tuple(
            Finding(kind="waiver_expired", message=f"the waiver of {waiver.owner} expired on {waiver.expires}")
            for waiver in late
        )
        return replace(verdict, findings=verdict.findings + warnings)
    return verdict


def unused_waivers(waivers: Sequence[Waiver], verdicts: Sequence[CellVerdict]) -> tuple[Waiver, ...]:
    """Return the waivers whose model was judged and that no finding of this run needed."""
    judged = {verdict.model for verdict in verdicts if verdict.status in (Status.PASS, Status.FAIL, Status.XFAIL)}
    needed = {(verdict.model, finding.kind) for verdict in verdicts for finding in verdict.findings}
    return tuple(waiver for waiver in waivers if waiver.model in judged and (waiver.model, waiver.kind) not in needed)
