"""The pages of the documentation, and what the tests read out of them."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *PROJECT.glob("*.md"),
        *(PROJECT / "docs").rglob("*.md"),
        *(PROJECT / "fixtures").glob("*.md"),
        *(PROJECT / "golden").glob("*.md"),
    ]
)
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))

LINK = re.compile(r"(?<!!)\[[^\]\[]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
FENCE = re.compile(r"^( *)```([a-z]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(
    r"(?:run: +)?(?P<command>(?:\S*/)?(?:python3? -m harness|nox -s|python3 noxfile\.py -s)(?: .*)?"
    r"|torchscript-gate [a-z-]+(?: [^$|]*)?|pytest --torchscript-compat=[a-z]\S*(?: .*)?)"
)


class Command(NamedTuple):
    """One command line and the page it stands on."""

    page: str
    text: str


def without_redirection(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words up to where a shell would send the output elsewhere."""
    end = next((at for at, word in enumerate(words) if word in (">", ">>", "|")), len(words))
    return tuple(words[:end])


def name_of(path: Path) -> str:
    """Return the path as a reader of the repository names it."""
    return str(path.relative_to(PROJECT))


def links(page: Path) -> list[str]:
    """Return the targets of the links on ``page``, code left out."""
    text = SPAN.sub("``", FENCE.sub("", page.read_text(encoding="utf-8")))
    return LINK.findall(text)


def anchors(page: Path) -> set[str]:
    """Return what a link may put after ``#``: the headings as GitHub spells them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def commands() -> list[Command]:
    """Return every command line of ours: in code blocks, indented lines, code spans, and workflows."""
    return [Command(name_of(page), text) for page in (*PAGES, *WORKFLOWS) for text in _command_texts(page)]


def _command_texts(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    # The console output in the README holds commands too: those of its rerun lines.
    candidates = [line.removeprefix("$ ").removeprefix("rerun").strip() for line in lines]
    candidates += SPAN.findall(FENCE.sub("", text)) if page.suffix == ".md" else []
    for candidate in candidates:
        match = COMMAND.fullmatch(candidate)
        if match is not None and "..." not in candidate:
            yield match["command"].partition("  #")[0].strip()


def nox_sessions() -> set[str]:
    """Return the names of the sessions in ``noxfile.py``, which is not imported: nox need not be here."""
    tree = ast.parse((PROJECT / "noxfile.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if any("session" in ast.unparse(item) for item in node.decorator_list)}
