"""Puts the parts of a ``reproduce.py`` into one file that stands alone."""

import ast
from functools import cache

from harness.probing import processes

PROGRAM = "reproduce.py"
# The last part of each kind has the docstring and the entry; the parts before it are what it needs.
PARTS = {
    "operator": ("endings", "process", "../setters", "settings", "../values/recorded", "values", "operator"),
    "program": (
        *("endings", "process", "../setters", "settings", "../values/recorded", "values", "timing", "threads"),
        "program",
    ),
}
PACKAGE = "gate_worker"


@cache
def script_of(kind: str) -> str:
    """Return the whole program of a reproducer of an ``"operator"`` or a ``"program"``; equal parts give equal text."""
    folder = processes.BOOTSTRAP.parent / "reproduce"
    sources = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in PARTS[kind]]
    imports: dict[str, None] = {}
    bodies = []
    docstring = ""
    for source in sources:
        docstring, found, body = _taken_apart(source)
        imports.update(dict.fromkeys(found))
        bodies.append(body)
    plain = sorted(text for text in imports if text.startswith("import "))
    named = sorted(text for text in imports if text.startswith("from "))
    head = f'"""{docstring}"""\n\n' + "\n".join((*plain, *named)) + "\n\n"
    return head + "\n\n\n".join(bodies) + "\n"


def _taken_apart(source: str) -> tuple[str, list[str], str]:
    """Return (docstring, imports from outside, the code without both) of one part."""
    tree = ast.parse(source)
    lines = source.splitlines()
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    outside = [
        ast.unparse(node) for node in imports if not (isinstance(node, ast.ImportFrom) and _is_ours(node.module))
    ]
    first = tree.body[0]
    assert isinstance(first, ast.Expr), "every part begins with a docstring"
    gone = {line for node in (first, *imports) for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    kept = [text for number, text in enumerate(lines, start=1) if number not in gone]
    return ast.get_docstring(tree, clean=False) or "", outside, "\n".join(kept).strip("\n")


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == PACKAGE
