"""The text of ``golden/waivers.toml``: what an entry may hold; entries are added and removed, all else stays."""

import datetime as dt
import re
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.core.devices import NAME_PATTERN
from harness.core.errors import ConfigError
from harness.core.findings import MEASURES, OF_THE_RUN, SEVERITY
from harness.core.verdict import Waiver
from harness.serving.scenarios import CELL_SCENARIOS

REQUIRED = ("model", "kind", "reason", "owner", "expires")
OPTIONAL = ("issue", "bound", "about", "old", "new", "scenario", "device", "profile")
# Findings about waivers themselves.
WAIVER_KINDS = ("waiver_expired", "waiver_exceeded", "waiver_elsewhere", "waiver_unused")
DEVICE = re.compile(NAME_PATTERN)
MOST = sys.float_info.max  # TOML's whole numbers may be larger than any float
LINK = re.compile(r"https?://[^\s/]\S*")


def parse_waivers(text: str, *, file: str) -> tuple[Waiver, ...]:
    """Return the ``[[waiver]]`` tables of a waiver file.

    Raises ``ConfigError``, which names file and entry: not TOML, a key is missing or unknown, or a value has the wrong
    type.
    """
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Python refuses numbers of thousands of digits
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
    kinds = [name for name in SEVERITY if name not in (*WAIVER_KINDS, *OF_THE_RUN)]
    if kind not in kinds:
        of_the_run = "is of the run, not of a model" if kind in OF_THE_RUN else "is unknown"
        what = "is about waivers" if kind in WAIVER_KINDS else of_the_run
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
    if "device" in entry and not DEVICE.fullmatch(entry["device"]):
        raise ConfigError(f"{place}: device is {entry['device']!r}", "write the name of one, such as cuda")
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


NEW_FILE = "# Known findings (waivers --help says more). Each stops counting on the day after `expires`.\n"
KEYS = (*REQUIRED, *OPTIONAL)
_HEADER = re.compile(r"""\[\[\s*(?:waiver|"waiver"|'waiver')\s*\]\]\s*(?:#.*)?""")
_QUOTED = {'"': '\\"', "\\": "\\\\"}
BY_HAND = "begin every waiver with [[waiver]] on a line of its own, or edit the file by hand"


def entry_text(waiver: Waiver) -> str:
    """Return a waiver as the lines of its entry. Raises ``ConfigError``: a text that TOML cannot hold."""
    lines = ["[[waiver]]"]
    for key in KEYS:
        value = getattr(waiver, key)
        if key == "expires":
            lines.append(f"expires = {value.isoformat()}")
        elif isinstance(value, float):
            lines.append(f"{key} = {value!r}")
        elif value is not None and value != "":
            lines.append(f"{key} = {_string(value)}")
    return "\n".join(lines) + "\n"


def _string(text: str) -> str:
    """Return a text in quotes; unprintable characters, such as changes of direction, are escaped."""
    return '"' + "".join(map(_character, text)) + '"'


def _character(char: str) -> str:
    if char in _QUOTED:
        return _QUOTED[char]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise ConfigError("half a character (a lone surrogate) cannot be written to a file", "rename the model")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def with_waivers(text: str, added: Sequence[Waiver], *, file: str) -> str:
    """Return the file's text with entries at its end. Raises ``ConfigError``: it cannot be read or added to."""
    known = parse_waivers(text, file=file)
    newline = "\r\n" if "\r\n" in text else "\n"
    entries = "\n".join(entry_text(waiver) for waiver in added).replace("\n", newline)
    gap = newline if text.strip() else ""
    head = text if not text or text.endswith("\n") else text + newline
    longer = head + gap + entries
    return _checked(longer, (*known, *added), file, "nothing can be added to it")


def without_entries(text: str, removed: Collection[int], *, file: str) -> str:
    """Return the file's text without some of its entries, each with the comment lines right above it.

    ``removed``: places of the entries in the file, from 0. Raises ``ConfigError``: the file cannot be read, or is
    written in a way that hides where an entry begins.
    """
    known = parse_waivers(text, file=file)
    lines = re.split(r"(?<=\n)", text)  # not splitlines: a reason may hold what Unicode calls a line's end
    begins = _begins(lines)
    if len(begins) != len(known):
        raise ConfigError(f"{file}: {len(known)} waivers, and {len(begins)} lines [[waiver]]", BY_HAND)
    keep = [True] * len(lines)
    for place in removed:
        end = begins[place + 1] if place + 1 < len(begins) else len(lines)
        for index in _own_lines(lines, begins[place], end):
            keep[index] = False
    shorter = "".join(line for line, kept in zip(lines, keep, strict=True) if kept)
    if len(known) - 1 in removed and shorter.strip():  # else the blank lines before it would end the file
        shorter = shorter.rstrip("\r\n") + ("\r\n" if "\r\n" in text else "\n")
    left = tuple(waiver for place, waiver in enumerate(known) if place not in removed)
    return _checked(shorter, left, file, "entries cannot be taken out of it")


def _begins(lines: Sequence[str]) -> list[int]:
    """Return the lines on which an entry begins; a line inside a multi-line text may look the same and is none."""
    begins: list[int] = []
    for index, line in enumerate(lines):
        if _HEADER.fullmatch(line.strip()) and _is_whole("".join(lines[begins[-1] if begins else 0 : index])):
            begins.append(index)
    return begins


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _own_lines(lines: Sequence[str], begin: int, end: int) -> range:
    """Return an entry's lines, comments above and blanks below; a comment at the file's head is the file's."""
    last = end
    while last > begin + 1 and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
        last -= 1
    while last < end and not lines[last].strip():
        last += 1
    first = begin
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return range(first or begin, last)


def _checked(text: str, expected: tuple[Waiver, ...], file: str, problem: str) -> str:
    """Return the text if it reads as ``expected``: a file that people keep is not written on a guess."""
    try:
        parsed = parse_waivers(text, file=file)
    except ConfigError:
        parsed = ()
    if parsed != expected:
        raise ConfigError(f"{file} is written in another way than [[waiver]] by [[waiver]]: {problem}", BY_HAND)
    return text
