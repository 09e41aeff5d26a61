"""Which conditions on a device have run, and with which outcomes: noted in every Python process of a measured environment.

The code that is measured knows nothing of it: ``measured`` makes an environment with the packages of another one, whose
Python imports a copy of this file before anything else. It keeps to Python 3.8 and the standard library, as workers do.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import CodeType
from typing import Any

# A condition is one on a device where a name in it says so; every one of these files is.
WORDS = re.compile("device|runs_on|cuda|gpu|nvidia|nvml|graphs|captur|contexts|is_cpu", re.IGNORECASE)
ABOUT_DEVICES = ("devices.py", os.path.join("worker", "device.py"))
NOTE = "__note_condition__"


class Conditions(ast.NodeTransformer):
    """Finds the conditions of one file, each operand of ``and`` and ``or`` by itself, and has their outcomes noted.

    A condition decides an ``if``, a ``while``, a conditional expression, a filter of a comprehension, or whether the next
    operand is looked at. ``found``: by ``FILE:LINE:COLUMN`` what is written there.
    """

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source
        self.found: dict[str, str] = {}

    def _is_about_a_device(self, node: ast.AST) -> bool:
        return self._name in ABOUT_DEVICES or any(WORDS.search(_name_of(part)) for part in ast.walk(node))

    def _noted(self, node: ast.expr) -> Any:
        if isinstance(node, ast.BoolOp):
            node.values = [self._noted(value) for value in node.values]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._noted(node.operand)
            return node
        if not self._is_about_a_device(node):
            return self.visit(node)
        place = "%s:%d:%d" % (self._name, node.lineno, node.col_offset)
        self.found[place] = " ".join((ast.get_source_segment(self._source, node) or "").split())
        call = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(place), self.visit(node)], [])
        return ast.copy_location(call, node)

    def _decided(self, node: Any) -> Any:
        node.test = self._noted(node.test)
        return self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = _decided

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        node.ifs = [self._noted(condition) for condition in node.ifs]
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        node.values = [*(self._noted(value) for value in node.values[:-1]), self.visit(node.values[-1])]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        return node if getattr(node.func, "id", "") == NOTE else self.generic_visit(node)


def _name_of(node: ast.AST) -> str:
    """Return the identifier or key that a node stands for, empty where it stands for none."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return str(getattr(node, "id", getattr(node, "attr", "")))


def conditions(package: str | Path, name: str) -> tuple[dict[str, str], ast.Module]:
    """Return the conditions of a file of ``package`` by place, and its tree, in which they are noted."""
    source = Path(package, name).read_text(encoding="utf-8")
    finder = Conditions(name, source)
    return finder.found, ast.fix_missing_locations(finder.visit(ast.parse(source)))


def all_conditions(package: str | Path) -> dict[str, str]:
    """Return what is written in each condition below ``package``, by place."""
    names = sorted(os.path.relpath(path, package) for path in Path(package).rglob("*.py"))
    return {place: text for name in names for place, text in conditions(package, name)[0].items()}


def measured(python: str, folder: Path, package: Path, notes: Path) -> str:
    """Return the Python of a new environment in ``folder`` that has what ``python`` has and writes into ``notes``.

    One ``PLACE OUTCOME`` a line. Whoever starts it notes the conditions of ``package``, and so do its forks.
    """
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    own = next(Path(folder).glob("lib/python3.*/site-packages"))
    shutil.copyfile(__file__, own / "device_conditions.py")
    begin = "import device_conditions; device_conditions.begin(%r, %r)" % (str(package), str(notes))
    (own / "device_conditions.pth").write_text("%s\n%s\n" % (begin, site))
    return str(Path(folder, "bin", "python"))


def begin(package: str, notes: str) -> None:
    """Have the outcomes of the conditions below ``package`` noted, each when this process first sees it."""
    # Opened now: a worker may write outside of its folder no more once it has begun. A fork must not share a buffer.
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    seen = set()

    def note(place: str, value: Any) -> Any:
        outcome = (place, bool(value))
        if outcome not in seen:
            seen.add(outcome)
            os.write(file, ("%s %s\n" % outcome).encode())
        return value

    get_code = importlib.machinery.SourceFileLoader.get_code

    def noting(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        path = os.path.realpath(loader.path)
        if not path.startswith(package + os.sep):
            return get_code(loader, name)
        found, tree = conditions(package, os.path.relpath(path, package))
        return compile(tree, path, "exec", dont_inherit=True) if found else get_code(loader, name)

    setattr(builtins, NOTE, note)
    importlib.machinery.SourceFileLoader.get_code = noting  # type: ignore[assignment,method-assign]
