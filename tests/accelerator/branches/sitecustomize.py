"""Notes the outcomes of conditions that read the device, in every Python process that has this folder on PYTHONPATH.

DEVICE_BRANCHES names the file where they are noted, one ``PLACE OUTCOME`` a line; without it nothing happens. Workers
run under the Python of an environment, are forked from zygotes and are killed, so that each outcome is written when a
process first sees it. It keeps to Python 3.8 and the standard library, as they do.
"""

import ast
import builtins
import importlib.machinery
import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
HARNESS = PROJECT / "harness"
VARIABLE = "DEVICE_BRANCHES"
# What the code calls a device; every condition of these files is about one.
NAMES = {"device", "_device", "runs_on"}
ABOUT_DEVICES = {HARNESS / "devices.py", HARNESS / "worker" / "device.py"}
NOTE = "__note_device_branch__"


class Conditions(ast.NodeTransformer):
    """Finds the conditions of one file, each operand of ``and`` and ``or`` by itself, and has them noted when they run.

    A condition decides an ``if``, a ``while``, a conditional expression, a filter of a comprehension, or whether the next
    operand is looked at. ``found``: by ``FILE:LINE:COLUMN`` what is written there.
    """

    def __init__(self, path, source):
        self._file = path.relative_to(PROJECT)
        self._all = path in ABOUT_DEVICES
        self._source = source
        self.found = {}

    def _reads_device(self, node):
        parts = ast.walk(node)
        return self._all or any(getattr(part, "id", getattr(part, "attr", "")) in NAMES for part in parts)

    def _noted(self, node):
        if isinstance(node, ast.BoolOp):
            node.values = [self._noted(value) for value in node.values]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._noted(node.operand)
            return node
        if not self._reads_device(node):
            return self.visit(node)
        place = "%s:%d:%d" % (self._file, node.lineno, node.col_offset)
        self.found[place] = ast.get_source_segment(self._source, node)
        call = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(place), self.visit(node)], [])
        return ast.copy_location(call, node)

    def _decided(self, node):
        node.test = self._noted(node.test)
        return self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = _decided

    def visit_comprehension(self, node):
        node.ifs = [self._noted(condition) for condition in node.ifs]
        return self.generic_visit(node)

    def visit_BoolOp(self, node):
        node.values = [*(self._noted(value) for value in node.values[:-1]), self.visit(node.values[-1])]
        return node

    def visit_Call(self, node):
        return node if getattr(node.func, "id", "") == NOTE else self.generic_visit(node)


def conditions(path):
    """Return the conditions of a file by place, and its tree, which notes them."""
    source = path.read_text(encoding="utf-8")
    finder = Conditions(path, source)
    return finder.found, ast.fix_missing_locations(finder.visit(ast.parse(source)))


def _noting(file):
    seen = set()

    def note(place, value):
        outcome = "%s %s" % (place, bool(value))
        if outcome not in seen:
            seen.add(outcome)
            with open(file, "a") as notes:
                notes.write(outcome + "\n")
        return value

    return note


def _begin(file):
    setattr(builtins, NOTE, _noting(file))
    get_code = importlib.machinery.SourceFileLoader.get_code

    def noting_code(loader, name):
        path = Path(loader.path).resolve()
        if HARNESS not in path.parents:
            return get_code(loader, name)
        found, tree = conditions(path)
        return compile(tree, str(path), "exec", dont_inherit=True) if found else get_code(loader, name)

    importlib.machinery.SourceFileLoader.get_code = noting_code


if VARIABLE in os.environ:
    _begin(os.environ[VARIABLE])
