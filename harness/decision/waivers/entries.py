"""The entries of ``golden/waivers.toml``: their keys, and the values that each allows."""

import datetime as dt
import re
import sys
import tomllib
from collections.abc import Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.domain.findings import MEASURES, SEVERITY
from harness.domain.verdict import Waiver
from harness.errors import ConfigError
from harness.scenarios import CELL_SCENARIOS

REQUIRED = ("model", "kind", "reason", "owner", "expires")
OPTIONAL = ("issue", "bound", "old", "new", "scenario", "device", "profile")
# What a waiver itself gives reason to tell.
WAIVER_KINDS = ("waiver_expired", "waiver_exceeded", "waiver_elsewhere", "waiver_unused")
DEVICES = ("cpu", "cuda")
MOST = sys.float_info.max  # a whole number of TOML may be larger than any float
LINK = re.compile(r"https?://[^\s/]\S*")


def parse_waivers(text: str, *, file: str) -> tuple[Waiver, ...]:
    """Return the ``[[waiver]]`` tables of a waiver file.

    Raises:
        ConfigError: not TOML, a key is missing or unknown, or a value has the wrong type; names file and entry.
    """
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Python reads no number of thousands of digits
        raise ConfigError(f"{file}: not valid TOML: {error}", "mend the file") from error
    entries = tables.pop("waiver", [])
    if tables or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        what = f"has unknown keys {', '.join(tables)}" if tables else "does not hold a list of waivers"
        raise ConfigError(f"{file} {what}", "begin every waiver with [[waiver]]")
    return tuple(_parse(entry, f"{file}: waiver {index + 1}") for index, entry in enumerate(entries))


def _parse(entry: Mapping[str, Any], place: str) -> Waiver:
    missing = [key for key in REQUIRED if key not in entry]
    unknown = [key for key in entry if key not in REQUIRED + OPTIONAL]
    if missing or unknown:
        what = f"lacks {', '.join(missing)}" if missing else f"has unknown keys {', '.join(unknown)}"
        hint = f"a waiver has {', '.join(REQUIRED)}, and may have {', '.join(OPTIONAL)}"
        raise ConfigError(f"{place} {what}", hint)
    for key, value in entry.items():
        if key not in ("expires", "bound") and (not isinstance(value, str) or not value.strip()):
            raise ConfigError(f"{place}: {key} is {value!r}", "write a text in quotes")
    if type(entry["expires"]) is not dt.date:  # a datetime is one too, and does not compare with a date
        raise ConfigError(f"{place}: expires is {entry['expires']!r}", "write a date without quotes: 2026-12-31")
    _check_kind(entry["kind"], place)
    _check_optional(entry, place)
    bound = float(entry["bound"]) if "bound" in entry else None
    return Waiver(**{**entry, "bound": bound})


def _check_kind(kind: str, place: str) -> None:
    kinds = [name for name in SEVERITY if name not in WAIVER_KINDS]
    if kind not in kinds:
        what = "is about waivers" if kind in WAIVER_KINDS else "is unknown"
        raise ConfigError(f"{place}: kind {kind!r} {what}", f"one of: {', '.join(kinds)}")


def _check_optional(entry: Mapping[str, Any], place: str) -> None:
    for key in ("old", "new"):
        if key in entry and not _is_range(entry[key]):
            what = f"{place}: {key} is {entry[key]!r}, which is no range of releases"
            raise ConfigError(what, 'write one like "~=2.6.0" or ">=2.6,<2.8"')
    if "scenario" in entry and entry["scenario"] not in CELL_SCENARIOS:
        raise ConfigError(
            f"{place}: there is no scenario {entry['scenario']!r}", f"one of: {', '.join(CELL_SCENARIOS)}"
        )
    if entry.get("device", "cpu") not in DEVICES:
        raise ConfigError(f"{place}: there is no device {entry['device']!r}", f"one of: {', '.join(DEVICES)}")
    if "issue" in entry and not LINK.fullmatch(entry["issue"]):
        raise ConfigError(f"{place}: issue is {entry['issue']!r}", "write a link that begins with https://")
    if "bound" in entry:
        problem = why_no_bound(entry["kind"], entry["bound"])
        if problem is not None:
            raise ConfigError(f"{place}: bound is {entry['bound']!r}{problem[0]}", problem[1])


def _is_range(text: str) -> bool:
    try:
        return bool(list(SpecifierSet(text)))  # commas alone say nothing
    except InvalidSpecifier:
        return False


def why_no_bound(kind: str, bound: object) -> tuple[str, str] | None:
    """Return why a finding kind cannot have this bound, and what to do; None if it can."""
    sized = ", ".join(MEASURES)
    match MEASURES.get(kind), bound:
        case None, _:
            return (f", and {kind} has no size", f"leave bound out; kinds with a size: {sized}")
        case (_, bool()) | (_, str()):
            return ("", "write a number")
        case "ratio", float() | int() as number if 1 < number <= MOST:
            return None
        case "ratio", _:
            return ("", "write a ratio new/old above 1, such as 1.2")
        case _, float() | int() as number if 0 < number <= MOST:
            return None
    return ("", "write a share of the largest golden value, such as 0.001")
