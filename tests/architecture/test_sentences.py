"""No decision reads a sentence that we wrote: facts are fields, enums and types of exceptions (DESIGN.md, "Words")."""

import ast
import functools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
HARNESS = PROJECT / "harness"

FIELDS = frozenset("hint message note problem reason text title why words".split())
"""What our own types call a text for people; what a local name is bound to from one is such a text too."""
NAMES = frozenset("message note problem reason".split())
"""Arguments of these names are such texts as well."""
LOOKS = frozenset(
    "count endswith find index partition removeprefix removesuffix rfind rpartition rsplit split startswith".split()
)
PATTERNS = frozenset(("findall", "finditer", "fullmatch", "match", "search"))
Constants = Mapping[str, tuple[str, ...]]
SENTENCE = re.compile(r"[A-Za-z][\w'-]*[,:;]? +[A-Za-z(]")

# Texts that others have written: module -> function -> whose.
FOREIGN: Mapping[str, Mapping[str, str]] = {
    "cli.parser": {"error": "argparse's errors"},
    "environments.candidates": {"_is_cached": "uv's dry run"},
    "environments.cuda_support": {"gpu_trouble": "torch's and the driver's errors"},
    "core.text": {"marked_expression": "TorchScript's errors"},
    "environments.installer": {"why_unresolved": "pip's errors", "_tags": "uv's errors"},
    "environments.interpreters": {"verified_python": "what an interpreter prints of itself"},
    "checks.hang.stack_formats": {"faulthandler": "faulthandler's dump", "gil_holder": "what pystack prints"},
    "probing.loaded_libraries": {"_what_to_do": "the dynamic linker's errors"},
    "environments.index": {"_unreachable": "pip's errors"},
    "checks.migration.compilation": {"not_compiled": "the errors of torch._inductor and of C++ compilers"},
    "verdict.migration": {"_refuses_size": "torch.export's guards"},
    "checks.compiling.diagnostics": {"api_of": "compilers' errors", "errors_in": "compilers' errors"},
    "machine.gpu": {"_first_known": "nvidia-smi's errors"},
    "worker.fingerprint": {"_cpu": "/proc/cpuinfo"},
    "worker.requests.files": {"_load_tensors": "torch.load's errors"},
    "worker.requests.repairs": {"of": "torch's errors", "_retyped": "torch's errors"},
    "worker.requests.values": {"first_line": "TorchScript's errors"},
    "worker.settings": {"capability": "torch's names of CPU capabilities"},
}
# Labels of our own that are shown in another way; nothing is decided by them.
SHOWN: Mapping[str, frozenset[str]] = {
    "checks.hang.stack_formats": frozenset({"_own_threads", "depth"}),
    "checks.migration.obstacles": frozenset({"without_owner"}),
    "report.backends.html": frozenset({"_share"}),
    "report.documents.fleet": frozenset({"fleet_document"}),
    "report.documents.migration": frozenset({"horizon_facts"}),
    "verdict.inputs": frozenset({"guess_of"}),
}
# TorchScript's own code, of which every token has a text.
READS_CODE = "artifacts.archive."


def sentences_read(tree: ast.Module, constants: Constants) -> Iterator[tuple[int, str]]:
    """Yield (line, function) wherever code decides by what stands in a text for people.

    Args:
        constants: the texts that names of modules' constants stand for, those that are imported too.
    """
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for scope in scopes:
        nodes = tuple(ast.walk(scope))
        bound = _bound_to_texts(nodes)
        for node in nodes:
            if _reads_a_text(node, bound, constants):
                assert isinstance(node, ast.expr)
                yield node.lineno, scope.name


def _bound_to_texts(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Return the local names of a function's nodes that stand for a field of text."""
    bound = set()
    for node in nodes:
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.NamedExpr):
            pairs = [(node.target, node.value)]
        else:
            continue
        bound |= {
            target.id
            for target, value in pairs
            if isinstance(target, ast.Name) and isinstance(value, ast.Attribute) and value.attr in FIELDS
        }
    return frozenset(bound)


def _is_text(node: ast.expr, bound: frozenset[str]) -> bool:
    """Whether an expression is a text for people: a field that holds one, or a name that stands for one."""
    if isinstance(node, ast.Name):
        return node.id in bound or node.id in NAMES
    return isinstance(node, ast.Attribute) and node.attr in FIELDS


def _reads_a_text(node: ast.AST, bound: frozenset[str], constants: Constants) -> bool:
    """Whether a text is compared with a literal, or anything of it is looked for by a literal or by a constant.

    That it equals a named constant is no reading: that one is reworded for both.
    """
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        within = isinstance(node.ops[0], ast.In | ast.NotIn) and not isinstance(
            sides[1], ast.Tuple | ast.Set | ast.List
        )
        if not within and not isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            return False
        literals = [text for side in sides for text in _texts(side, {})]
        ours = any(_is_text(side, bound) for side in sides)
        named = [text for side in sides for text in _texts(side, constants)] if within else literals
        return any(map(SENTENCE.search, literals)) or (ours and any(named))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        texts = [text for argument in node.args for text in _texts(argument, constants)]
        if node.func.attr in LOOKS:
            return any(map(SENTENCE.search, texts)) or (_is_text(node.func.value, bound) and any(texts))
        if node.func.attr in PATTERNS:
            return any(_is_text(argument, bound) for argument in node.args)
    return False


def _texts(node: ast.expr, constants: Constants) -> tuple[str, ...]:
    """Return the texts that an expression names: a literal, several, or a constant of a module."""
    if isinstance(node, ast.Constant):
        return (node.value,) if isinstance(node.value, str) else ()
    if isinstance(node, ast.JoinedStr):
        return ("".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values),)
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return tuple(text for element in node.elts for text in _texts(element, constants))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return constants.get(f"{node.value.id}.{node.attr}", ())
    return constants.get(node.id, ()) if isinstance(node, ast.Name) else ()


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of the gate, by its name below ``harness``."""
    paths = HARNESS.rglob("*.py")
    return {
        ".".join(path.relative_to(HARNESS).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(paths)
    }


@functools.cache
def imports() -> dict[str, tuple[ast.ImportFrom, ...]]:
    """The imports of every module, those within functions too."""
    return {
        name: tuple(node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        for name, tree in modules().items()
    }


@functools.cache
def own_constants(module: str) -> Constants:
    """Return the texts among the constants of a module, by name."""
    found: dict[str, tuple[str, ...]] = {}
    for node in modules()[module].body if module in modules() else ():
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if value is not None:
            found |= {target.id: _texts(value, found) for target in targets if isinstance(target, ast.Name)}
    return found


def constants_in(module: str) -> Constants:
    """Return the texts that a module's names stand for, its own and those that it imports."""
    found = dict(own_constants(module))
    for node in imports()[module]:
        if (node.module or "").startswith("harness"):
            source = (node.module or "").partition(".")[2]
            for alias in node.names:
                name = alias.asname or alias.name
                if f"{source}.{alias.name}".strip(".") in modules():
                    inner = own_constants(f"{source}.{alias.name}".strip("."))
                    found |= {f"{name}.{constant}": texts for constant, texts in inner.items()}
                elif alias.name in own_constants(source):
                    found[name] = own_constants(source)[alias.name]
    return found


def read_in(module: str) -> set[str]:
    """Return the functions of a module that read a text, but for those that may."""
    allowed = FOREIGN.get(module, {}).keys() | SHOWN.get(module, frozenset())
    return {
        f"{function}, line {line}"
        for line, function in sentences_read(modules()[module], constants_in(module))
        if function not in allowed
    }


def test_no_decision_reads_a_sentence_that_we_wrote() -> None:
    """A text for people is free to be reworded: what happened is a field, an enum or the type of an exception."""
    read = {module: places for module in modules() if not module.startswith(READS_CODE) and (places := read_in(module))}
    assert read == {}


def test_nothing_is_allowed_that_is_not_there() -> None:
    for module, functions in [*FOREIGN.items(), *SHOWN.items()]:
        assert set(functions) <= {function for _, function in sentences_read(modules()[module], constants_in(module))}


@pytest.mark.parametrize(
    "line",
    [
        'return finding.message.startswith("the disk is full")',
        "return FULL in error.message",
        "return FULL in files.why(error) or reason.endswith(FULL)",
        'return row.reason.partition(": ")[0]',
        'return "changed in place" in said',
        'return state == "a mutex"',
        'text = model.note; return text.removeprefix("guessed: ")',
        "return PATTERN.search(finding.message) is not None",
    ],
)
def test_reading_a_sentence_is_seen(line: str) -> None:
    body = "\n".join(f"    {part}" for part in line.split("; "))
    tree = ast.parse(f"def decide(finding, error, row, model, said, state, reason):\n{body}\n")
    assert [function for _, function in sentences_read(tree, {"FULL": ("the disk is full",)})] == ["decide"]


def test_reading_fields_is_none() -> None:
    """Names, paths and constants that stand for a state are compared; texts are joined, wrapped and shown."""
    source = """
    def decide(finding, error, path, state, note):
        if finding.kind == "crash" or isinstance(error, DiskFull) or state == BUSY or path.endswith(".pt"):
            return f"{finding.message}; {note}".strip()
        return textwrap.wrap(finding.message) if state in (BUSY, "idle") and note else ""
    """
    assert list(sentences_read(ast.parse(textwrap.dedent(source)), {"BUSY": ("busy without progress",)})) == []
