"""What gcc and clang print, as errors, each with the name that it is about; pure."""

import re
from collections.abc import Iterator

from harness.core.compiling import CompilerError

# Both: FILE:LINE:COLUMN: error: MESSAGE. With LC_ALL=C gcc quotes as clang does. Before an error in a template gcc says
# which line of whose code has asked for it.
ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$")
ASKED = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: +required from here$")
HEADER = re.compile(r"^'?(?P<api>[^':]+)'?(?:: No such file or directory| file not found)$")
# A class that lacks a function is refused wherever there is to be an object of it; gcc says once which ones it lacks.
ABSTRACT = re.compile(r"abstract (?:class )?type '(?P<of>[\w:]+)'|'(?P<type>[\w:]+)' is an abstract class$")
LACKS = re.compile(r"note: +because the following virtual functions are pure within '(?P<of>[\w:]+)'")
LACKED = re.compile(r"note: +'virtual [^']*?(?P<api>[\w:~]+)\([^']*'$")
LACKED_BY = re.compile(r"note: unimplemented pure virtual method '(?P<api>[\w~]+)' in '(?P<of>[\w:]+)'$")
# The first that fits names it; ``of`` is what it was looked for in.
NAMES = (
    re.compile(r"'(?P<api>[\w~:]+)(?:<[^']*)?' is not a member of '(?P<of>[\w:]+)"),
    re.compile(r"'(?P<api>[\w~]+)' in (?:namespace|class|struct) '(?P<of>[\w:]+)"),
    re.compile(
        r"'(?:using [^'=]* = )*(?:const )?(?:class |struct )?(?P<of>[\w:]+)[^']*'(?: \{aka [^}]*\})?"
        r" has no member named '(?P<api>[\w~]+)"
    ),
    re.compile(r"no (?:member|type|template) named '(?P<api>[\w~]+)' in (?:namespace )?'(?P<of>[\w:]+)"),
    re.compile(r"no matching (?:member )?function for call to '(?P<api>[\w:~]+)"),
    re.compile(r"too (?:few|many) arguments to (?:function )?(?:call )?'?(?:[^']*? )?(?P<api>[\w:~]+)\("),
    re.compile(r"use of (?:deleted function|undeclared identifier) '(?:[^']*? )?(?P<api>[\w:~]+)"),
    re.compile(
        r"'(?P<api>[\w:~]+)[^']*' (?:was not declared in this scope|has not been declared|does not name a type)"
    ),
    re.compile(r"unknown type name '(?P<api>[\w:]+)'"),
    re.compile(r"'(?:[^']*? )?(?P<api>[\w:~]+)\([^']*\)[^']*' (?:is private|is protected|marked 'override')"),
    re.compile(r"no viable conversion from '(?P<api>[^']+)' to"),
    re.compile(r"(?:cannot|could not) convert '[^']*?(?P<api>[\w:]+::\w+)"),
)


def errors_in(text: str) -> Iterator[CompilerError]:
    """Yield what a compiler refuses, in one line each name once: of what names nothing the first.

    That there is to be an object of an abstract class is about the function that the class lacks.
    """
    seen: set[tuple[str, int, str]] = set()
    lacked = _lacked(text)
    refused: set[str] = set()
    asked = None
    for line in text.splitlines():
        if (here := ASKED.match(line)) is not None:
            asked = here["file"], int(here["line"])
        if (match := ERROR.match(line)) is None:
            continue
        place, asked = asked or (match["file"], int(match["line"])), None
        message = match["message"].strip()
        api = api_of(message)
        if (abstract := ABSTRACT.search(message)) is not None:
            of = abstract["of"] or abstract["type"]
            own = [f"{of}::{name.rpartition('::')[2]}" for name in lacked.get(of, ())]
            api = next((name for name in own if name in refused), next(iter(lacked.get(of, ())), of))
        refused.add(api)
        if (*place, api) not in seen:
            seen.add((*place, api))
            yield CompilerError(file=place[0], line=place[1], message=message, api=api)


def _lacked(text: str) -> dict[str, list[str]]:
    """Return by abstract class the functions that it lacks, as their base class names them."""
    lacked: dict[str, list[str]] = {}
    of = ""
    for line in text.splitlines():
        if (match := LACKED_BY.search(line)) is not None:
            lacked.setdefault(match["of"], []).append(f"{match['of']}::{match['api']}")
        elif (match := LACKS.search(line)) is not None:
            of = match["of"]
        elif of and (match := LACKED.search(line)) is not None:
            lacked.setdefault(of, []).append(match["api"])
        elif ERROR.match(line) is not None:
            of = ""
    return lacked


def api_of(message: str) -> str:
    """Return the qualified name or the header that an error is about; empty where it names none."""
    if (header := HEADER.match(message)) is not None:
        return header["api"]
    for pattern in NAMES:
        if (match := pattern.search(message)) is not None:
            inside = match.groupdict().get("of") or ""
            name = match["api"]
            return name if not inside or "::" in name or inside == "::" else f"{inside}::{name}"
    return ""
