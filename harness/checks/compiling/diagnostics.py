"""What gcc and clang print, as errors, each with the name that it is about; pure."""

import re
from collections.abc import Iterator

from harness.core.compiling import CompilerError

# Both: FILE:LINE:COLUMN: error: MESSAGE. With LC_ALL=C gcc quotes as clang does. Before an error in a template gcc says
# which line of whose code has asked for it.
ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$")
ASKED = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: +required from here$")
HEADER = re.compile(r"^'?(?P<api>[^':]+)'?(?:: No such file or directory| file not found)$")
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
    re.compile(r"(?:cannot declare variable|invalid new-expression|cannot allocate an object) .*'(?P<api>[\w:]+)'"),
    re.compile(r"no viable conversion from '(?P<api>[^']+)' to"),
    re.compile(r"(?:cannot|could not) convert '[^']*?(?P<api>[\w:]+::\w+)"),
)


def errors_in(text: str) -> Iterator[CompilerError]:
    """Yield what a compiler refuses, in one line each name once: of what names nothing the first."""
    seen: set[tuple[str, int, str]] = set()
    asked = None
    for line in text.splitlines():
        if (here := ASKED.match(line)) is not None:
            asked = here["file"], int(here["line"])
        if (match := ERROR.match(line)) is None:
            continue
        place, asked = asked or (match["file"], int(match["line"])), None
        message = match["message"].strip()
        api = api_of(message)
        if (*place, api) not in seen:
            seen.add((*place, api))
            yield CompilerError(file=place[0], line=place[1], message=message, api=api)


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
