"""Edits the text of ``golden/waivers.toml``: adds or removes an entry, and leaves everything else as written."""

import re
import tomllib
from collections.abc import Collection, Sequence

from harness.decision.waivers.entries import OPTIONAL, REQUIRED, parse_waivers
from harness.domain.verdict import Waiver
from harness.errors import ConfigError

NEW_FILE = "# Known findings (waivers --help says more). Each stops counting on the day after `expires`.\n"
KEYS = (*REQUIRED, *OPTIONAL)
_HEADER = re.compile(r"""\[\[\s*(?:waiver|"waiver"|'waiver')\s*\]\]\s*(?:#.*)?""")
_QUOTED = {'"': '\\"', "\\": "\\\\"}
BY_HAND = "begin every waiver with [[waiver]] on a line of its own, or edit the file by hand"


def entry_text(waiver: Waiver) -> str:
    """Return a waiver as the lines of its entry.

    Raises:
        ConfigError: a text of it has no place in a TOML file.
    """
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
    """Return a text in quotes; what is not printable, such as a change of direction, is written as its number."""
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
    """Return the file's text with entries at its end.

    Raises:
        ConfigError: the file cannot be read, or nothing can be added to it as it is written.
    """
    known = parse_waivers(text, file=file)
    newline = "\r\n" if "\r\n" in text else "\n"
    entries = "\n".join(entry_text(waiver) for waiver in added).replace("\n", newline)
    gap = newline if text.strip() else ""
    head = text if not text or text.endswith("\n") else text + newline
    longer = head + gap + entries
    return _checked(longer, (*known, *added), file, "nothing can be added to it")


def without_entries(text: str, removed: Collection[int], *, file: str) -> str:
    """Return the file's text without some of its entries, each with the comment lines right above it.

    Args:
        removed: places of the entries in the file, from 0.

    Raises:
        ConfigError: the file cannot be read, or is written in a way that hides where an entry begins.
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
    if len(known) - 1 in removed and shorter.strip():  # the blank lines before it would end the file
        shorter = shorter.rstrip("\r\n") + ("\r\n" if "\r\n" in text else "\n")
    left = tuple(waiver for place, waiver in enumerate(known) if place not in removed)
    return _checked(shorter, left, file, "entries cannot be taken out of it")


def _begins(lines: Sequence[str]) -> list[int]:
    """Return the lines on which an entry begins; one inside a text of several lines looks alike and is none."""
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
    """Return the lines of an entry: the comments right above it, its keys, and the blank lines that end it.

    A comment at the head of the file is the file's.
    """
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
    """Return the text if it says what is meant: a file that people keep is not written on a guess."""
    try:
        said = parse_waivers(text, file=file)
    except ConfigError:
        said = ()
    if said != expected:
        raise ConfigError(f"{file} is written in another way than [[waiver]] by [[waiver]]: {problem}", BY_HAND)
    return text
