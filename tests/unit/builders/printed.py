"""The commands that a format prints, found as a reader finds them, and parsed as the shell and the program do."""

import csv
import html
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from harness.cli.parser import parser


def texts(form: str, text: str) -> Iterator[str]:
    """Yield the texts that a reader of a format sees."""
    if form in ("json", "ctrf", "trace", "sarif"):
        yield from _strings(json.loads(text))
    elif form == "csv":
        yield from (cell for line in csv.reader(io.StringIO(text)) for cell in line)
    elif form == "junit":
        root = ET.fromstring(text)  # noqa: S314  our own
        yield from (part for item in root.iter() for part in (*item.attrib.values(), item.text or ""))
    elif form == "html":
        yield from map(html.unescape, re.findall(r">([^<]+)<", text))
    elif form == "github":
        yield from (line.replace("%0A", "\n").replace("%25", "%") for line in text.splitlines())
    else:
        yield from (html.unescape(line.replace("\\", "")) if form == "comment" else line for line in text.splitlines())


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def commands_in(form: str, text: str, begin: str) -> list[str]:
    """Return the commands in the output of a format; each goes on to the end of its line or its code span."""
    found = []
    for said in texts(form, text):
        for line in said.splitlines():
            at = line.find(begin)
            if at >= 0 and line != begin:  # which the report says by itself
                found.append(line[at:].split("`")[0].split("}}")[0].rstrip().removesuffix("</code>"))
    return found


def check(command: str, begin: str, *, artifacts: bool = False) -> None:
    """Parse a command as the shell and the program do, from where it is typed; what it names is there.

    ``artifacts``: those too, of a run that had some.
    """
    words = shlex.split(command)
    assert words[: len(shlex.split(begin))] == shlex.split(begin)
    assert Path(words[0]).is_file() and Path(words[1]).exists() and Path(words[3]).is_dir()
    typed = words[words.index("--project") :]
    parsed = parser("gate", typed=typed).parse_args(typed)
    for name in ("run", "resume"):
        folder = getattr(parsed, name, None)
        assert folder is None or (Path(folder).is_absolute() and (Path(folder) / "report.json").is_file()), command
    for path in (*(getattr(parsed, "artifacts", None) or ()), *(getattr(parsed, "files", None) or ())) * artifacts:
        assert Path(path).is_absolute() and Path(path).exists(), command
