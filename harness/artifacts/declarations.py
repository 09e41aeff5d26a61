"""The declarations in a fixture file, read with ``ast``: the controller has no torch and never runs fixtures.

``SIGNATURES`` repeats the decorators of ``fixtures/declare.py``; a test compares the two.
"""

import ast
import functools
import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, NoReturn

from msgspec import Meta

from harness.config.schema import FLAG, POSITIVE, RELEASE, SWITCHES, Kind, Table, choice, read
from harness.config.selection import did_you_mean
from harness.core.devices import TABLE
from harness.core.errors import FixtureError
from harness.core.models import BreakMark, GridValue, ModelDeclaration, PlantedDefectMark

MOST_MODELS: Final = 1000  # per declaration; a larger grid is a slip

# No infinity (`1e999` is a literal), and no number that JSON cannot carry to the exporter.
_Value = (
    bool
    | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[float, Meta(ge=-1e308, le=1e308)]
    | Annotated[str, Meta(min_length=1)]
)
_Parameter = Annotated[str, Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]*\Z")]
_Values = Annotated[tuple[_Value, ...], Meta(min_length=1)]
GRID: Final = Kind(
    'a dict of parameters and tuples of their values such as {"size": (1e-3, 1e-2)}',
    Annotated[dict[_Parameter, _Values], Meta(min_length=1)],
)
PLACEHOLDER: Final = r"\{([A-Za-z_][A-Za-z0-9_]*)\}"

Grid = Mapping[str, Sequence[GridValue]]


def combinations(grid: Grid) -> Iterator[dict[str, GridValue]]:
    """Yield the arguments of each model of a grid, ``{}`` for an empty one; the last parameter changes fastest."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def too_large(grid: Grid) -> str:
    models = math.prod(len(values) for values in grid.values())
    return f"the grid has {models} combinations" if models > MOST_MODELS else ""


def joined(name: str, arguments: Mapping[str, GridValue]) -> str:
    """Return the name of one model: the declared one and the values, e.g. ``drift_one_1e_07``."""
    return "_".join((name, *map(_word, arguments.values())))


def filled(text: str, arguments: Mapping[str, GridValue]) -> str:
    """Return ``text`` with each ``{parameter}`` replaced. Raises ``KeyError``: the grid does not have it."""
    return re.sub(PLACEHOLDER, lambda match: _word(arguments[match[1]]), text)


def why_uncallable(factory: ast.FunctionDef, grid: Grid) -> tuple[str, str]:
    """Return why ``factory`` cannot be called with the parameters of ``grid``, and what to do; empty if it can."""
    spec = factory.args
    given = set(grid)
    positional = [*spec.posonlyargs, *spec.args]
    needed = {argument.arg for argument in positional[: len(positional) - len(spec.defaults)]}
    needed |= {
        argument.arg for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is None
    }
    named = {argument.arg for argument in (*spec.args, *spec.kwonlyargs)}
    if needed and not given:
        return f"factory {factory.name} has parameters", "it is called without arguments"
    missing, extra = sorted(needed - given), sorted(given - named) if spec.kwarg is None else []
    if missing:
        return f"factory {factory.name} has a parameter {missing[0]}", "the grid gives it no values"
    if extra:
        return f"factory {factory.name} has no parameter {extra[0]}", "the grid's parameters are given by name"
    return "", ""


def _word(value: GridValue) -> str:
    return re.sub(r"\W", "_", str(value), flags=re.ASCII)


EXPECTABLE: Final = (
    *("load_error", "call_error", "crash", "hang", "out_of_memory", "export_error"),
    *("structure", "dtype", "nan_placement", "values", "late_divergence", "input_changed", "latency", "race"),
    "capture_error",
)
# Where a planted defect shows: alone, in the benchmark, or in an initialization that any plan can add.
PLANTED_DEFECT_SCENARIOS: Final = (
    "alone",
    "latency",
    "small_pools",
    "prefork",
    "shared",
    "rolling",
    "thread_per_request",
    "thread_per_connection",
    "thread_counts",
    "growing_shapes",
    "cuda_graphs",
)
# A name and a tag must be a word of a -k expression.
_Name = Annotated[str, Meta(pattern=r"\A(?!(?:and|or|not)\Z)[A-Za-z_][A-Za-z0-9_]*\Z")]
_Twin = Annotated[str, Meta(pattern=rf"\A(?:[A-Za-z_]|{PLACEHOLDER})(?:[A-Za-z0-9_]|{PLACEHOLDER})*\Z")]
_Operator = Annotated[str, Meta(pattern=r"\A[A-Za-z_]\w*::[A-Za-z_]\w*\Z")]
_Link = Annotated[str, Meta(pattern=r"\Ahttps?://\S+\Z")]
_Path = Annotated[str, Meta(pattern=r"\Aoutput(?:\[(?:\*|-?\d+|'[^'\]]*')\]|\.[A-Za-z_]\w*)*\Z")]
_Device = Literal[(*TABLE,)]  # type: ignore[valid-type]

NAME: Final = Kind("a Python identifier", _Name)
TWIN: Final = Kind('a Python identifier, with "{parameter}" of a grid', _Twin)
WORDS: Final = Kind('a tuple of identifiers such as ("ranking", "ads")', tuple[_Name, ...])
OPERATORS: Final = Kind('a tuple of operators without overload such as ("aten::bmm",)', tuple[_Operator, ...])
DEVICES: Final = Kind(
    f"a tuple of devices out of {', '.join(TABLE)}, not empty", Annotated[tuple[_Device, ...], Meta(min_length=1)]
)
PATHS: Final = Kind('a tuple of paths such as ("output[1]", "output[*]")', tuple[_Path, ...])
TOLERANCE: Final = Kind("a number > 0 and <= 0.1, such as 1e-3", Annotated[float, Meta(gt=0, le=0.1)])
EXPECT: Final = choice(*EXPECTABLE)


class Argument(NamedTuple):
    """What a decorator's argument may hold; ``nullable`` if it may be None too."""

    schema: Kind | Table
    required: bool = False
    nullable: bool = False


SIGNATURES: Final[Mapping[str, Mapping[str, Argument]]] = {
    "model": {
        "name": Argument(NAME, required=True),
        "how": Argument(choice("script", "trace")),
        "tags": Argument(WORDS),
        "covers": Argument(OPERATORS),
        "requires": Argument(RELEASE, nullable=True),
        "seed": Argument(Kind("a whole number >= 0", Annotated[int, Meta(ge=0)])),
        "freeze": Argument(FLAG),
        "reset": Argument(NAME, nullable=True),
        "devices": Argument(DEVICES),
        "unordered": Argument(PATHS),
        "grid": Argument(GRID, nullable=True),
        "tolerance": Argument(TOLERANCE, nullable=True),
        "timed": Argument(FLAG),
    },
    "planted_defect": {
        "twin": Argument(TWIN, required=True),
        "expect": Argument(EXPECT, required=True),
        "scenario": Argument(choice(*PLANTED_DEFECT_SCENARIOS)),
        "switches": Argument(Table(SWITCHES), nullable=True),
        "deadline_s": Argument(POSITIVE, nullable=True),
    },
    "break_between": {
        "old": Argument(RELEASE, required=True),
        "new": Argument(RELEASE, required=True),
        "expect": Argument(EXPECT, required=True),
        "upstream": Argument(Kind("a link that starts with https://", _Link), required=True),
        "direction": Argument(choice("backward", "forward")),
    },
}
DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ON_FUNCTION: Final = "write it as a decorator with arguments, above a function at module level"


class Decoration(NamedTuple):
    decorator: str
    line: int
    values: dict[str, Any]


@functools.lru_cache(
    maxsize=4096
)  # a run reads the same folders for its models, its planted defects and what has changed
def read_declarations(text: str, *, source: str, module: str, package_root: str) -> tuple[ModelDeclaration, ...]:
    """Return the models that a fixture file declares, in the order of its lines; none for a file without any.

    ``package_root`` is the absolute folder that makes the name importable. Raises ``FixtureError``: ``source:line``,
    what was expected and what to do.
    """
    tree = _parse(text, source)
    names = _local_names(tree)
    _refuse_strays(tree, names, source)
    digest = hashlib.sha256(text.encode()).hexdigest()
    defined = Counter(node.name for node in tree.body if isinstance(node, DEFINITIONS))
    declarations: list[ModelDeclaration] = []
    for node in tree.body:
        decorations = list(_decorations(node, names, source))
        if not isinstance(node, ast.FunctionDef) or not decorations:
            continue
        if defined[node.name] > 1:
            _refuse(source, node.lineno, f"{node.name} is defined more than once", "give each factory its own name")
        place = {"package_root": package_root, "module": module, "factory": node.name, "source": source}
        declarations += _declare(node, decorations, source, {**place, "source_digest": digest})
    return tuple(declarations)


def merge_catalogue(declarations: Iterable[ModelDeclaration]) -> tuple[ModelDeclaration, ...]:
    """Return the declarations of all files, sorted by source and line.

    Raises:
        FixtureError: a name is declared twice (names both places), or the twin of a planted defect is missing or a
            planted defect.
    """
    catalogue = sorted(declarations, key=lambda model: (model.package_root, model.source, model.line))
    by_name: dict[str, ModelDeclaration] = {}
    for model in catalogue:
        if model.name in by_name:
            message = f'model "{model.name}" is already declared at {by_name[model.name].where}'
            raise FixtureError(f"{model.where}: {message}", "cells and goldens hang off the name: rename one")
        by_name[model.name] = model
    for model in catalogue:
        if model.planted_defect is None:
            continue
        twin = by_name.get(model.planted_defect.twin)
        where = f'{model.where}: twin "{model.planted_defect.twin}" of planted defect "{model.name}"'
        if twin is None:
            raise FixtureError(
                f"{where} is not declared", did_you_mean(model.planted_defect.twin, by_name) + "declare it"
            )
        if twin.planted_defect is not None:
            raise FixtureError(f"{where} is a planted defect itself", "name a healthy model: its golden is the judge")
    return tuple(catalogue)


def _refuse(source: str, line: int, message: str, hint: str = "") -> NoReturn:
    raise FixtureError(f"{source}:{line}: {message}", hint)


def _parse(text: str, source: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        _refuse(source, error.lineno or 1, f"expected Python source: {error.msg}", "correct the syntax")
    except (ValueError, RecursionError, MemoryError) as error:
        _refuse(source, 1, f"expected Python source: {error}", "correct the file")


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement below ``node``: of the whole tree, which ``ast.walk`` yields, expressions are the most."""
    left = [node]
    while left:
        node = left.pop()
        for block in ("body", "handlers", "orelse", "finalbody", "cases"):
            below = getattr(node, block, ())
            yield from below
            left += below


def _local_names(tree: ast.Module) -> dict[str, str]:
    """Return the names by which the file calls the decorators, e.g. ``{"declare.model": "model"}``."""
    names: dict[str, str] = {}
    for node in _statements(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        from_declare = isinstance(node, ast.ImportFrom) and f".{node.module}".endswith(".declare")
        for alias in node.names:
            local = alias.asname or alias.name
            if from_declare:
                names |= {name: name for name in SIGNATURES if local == "*"}
                names |= {local: alias.name} if alias.name in SIGNATURES else {}
            elif f".{alias.name}".endswith(".declare"):
                names |= {f"{local}.{name}": name for name in SIGNATURES}
    return names


def _decorators(node: ast.AST) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, DEFINITIONS) else []


def _decorator(node: ast.expr, names: Mapping[str, str]) -> str | None:
    function = node.func if isinstance(node, ast.Call) else node
    return names.get(ast.unparse(function)) if isinstance(function, ast.Name | ast.Attribute) else None


def _refuse_strays(tree: ast.Module, names: Mapping[str, str], source: str) -> None:
    """Refuse a decorator of ours where it would declare nothing and silently leave a model untested."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    read_here = {id(call) for node in functions for call in _decorators(node) if isinstance(call, ast.Call)}
    for node in _places(tree):
        decorator = _decorator(node, names)
        if decorator and id(node) not in read_here:
            _refuse(source, node.lineno, f"@{decorator} declares nothing here", ON_FUNCTION)


def _places(tree: ast.Module) -> Iterator[ast.expr]:
    # Inside functions a variable may well be called model, so only decorators count there.
    for node in _statements(tree):
        yield from _decorators(node)
    for statement in tree.body:
        if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
            yield from (node for node in ast.walk(statement) if isinstance(node, ast.Call))


def _decorations(node: ast.stmt, names: Mapping[str, str], source: str) -> Iterator[Decoration]:
    for call in _decorators(node):
        decorator = _decorator(call, names)
        if decorator and isinstance(call, ast.Call):
            yield Decoration(decorator, call.lineno, _arguments(call, decorator, source))


def _arguments(call: ast.Call, decorator: str, source: str) -> dict[str, Any]:
    signature = SIGNATURES[decorator]
    values: dict[str, Any] = {}
    for name, value in _bind(call, decorator, source):
        where = f"{source}:{value.lineno}: @{decorator} {name}"
        if name in values:
            raise FixtureError(f"{where}: given twice", "keep one")
        argument, literal = signature[name], _literal(value, where)
        nothing = literal is None and argument.nullable
        values[name] = None if nothing else read(literal, argument.schema, where, error=FixtureError)
    missing = [name for name, argument in signature.items() if argument.required and name not in values]
    if missing:
        _refuse(source, call.lineno, f"@{decorator}: {missing[0]} is missing", f"allowed: {', '.join(signature)}")
    return {name: value for name, value in values.items() if value is not None}


def _bind(call: ast.Call, decorator: str, source: str) -> Iterator[tuple[str, ast.expr]]:
    signature = SIGNATURES[decorator]
    literal = "write each argument out: the controller reads this file without running it"
    for index, value in enumerate(call.args):
        if isinstance(value, ast.Starred):
            _refuse(source, value.lineno, f"@{decorator}: expected literal arguments, got *", literal)
        if index >= len(signature):
            _refuse(source, value.lineno, f"@{decorator}: too many arguments", f"allowed: {', '.join(signature)}")
        yield list(signature)[index], value
    for item in call.keywords:
        if item.arg is None:
            _refuse(source, item.value.lineno, f"@{decorator}: expected literal arguments, got **", literal)
        if item.arg not in signature:
            hint = f"{did_you_mean(item.arg, signature)}allowed: {', '.join(signature)}"
            _refuse(source, item.value.lineno, f'@{decorator}: unknown argument "{item.arg}"', hint)
        yield item.arg, item.value


def _literal(node: ast.expr, where: str) -> Any:
    if any(isinstance(part, ast.Set) for part in ast.walk(node)):
        return ast.unparse(node)  # a text, which no argument accepts: the order of a set differs between processes
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        hint = "write the value out: the controller reads this file without running it"
        raise FixtureError(f"{where}: expected a literal, got {ast.unparse(node)}", hint) from None


def _declare(
    factory: ast.FunctionDef, decorations: list[Decoration], source: str, place: Mapping[str, Any]
) -> Iterator[ModelDeclaration]:
    planted_defects, breaks = (
        [item for item in decorations if item.decorator == name] for name in ("planted_defect", "break_between")
    )
    models = [item for item in decorations if item.decorator == "model"]
    if not models:
        _refuse(
            source, decorations[0].line, f"@{decorations[0].decorator} without @model", "add @model(name) beside it"
        )
    if len(planted_defects) + len(breaks) > 1:
        extra = [*planted_defects, *breaks][1]
        _refuse(source, extra.line, f"@{extra.decorator} is the second mark of this factory", "keep one")
    known_break = BreakMark(**breaks[0].values) if breaks else None
    if known_break and known_break.old == known_break.new:
        _refuse(source, breaks[0].line, "@break_between: old and new are the same release", "name two releases")
    for item in models:
        name, grid = item.values.pop("name"), item.values.pop("grid", {})
        wrong, hint = why_uncallable(factory, grid)
        if wrong:
            _refuse(source, factory.lineno, wrong, hint)
        excess = too_large(grid)
        if excess:
            _refuse(source, item.line, f"@model grid: {excess}", f"at most {MOST_MODELS}: leave values out")
        for arguments in combinations(grid):
            yield ModelDeclaration(
                **item.values,
                **place,
                name=joined(name, arguments),
                line=item.line,
                arguments=tuple(sorted(arguments.items())),
                planted_defect=_mark(planted_defects[0], arguments, source) if planted_defects else None,
                known_break=known_break,
            )


def _mark(planted_defect: Decoration, arguments: Mapping[str, GridValue], source: str) -> PlantedDefectMark:
    try:
        twin = filled(planted_defect.values["twin"], arguments)
    except KeyError as error:
        _refuse(
            source,
            planted_defect.line,
            f"@planted_defect twin: no grid has a parameter {error.args[0]}",
            "give it values",
        )
    return PlantedDefectMark(**{**planted_defect.values, "twin": twin})
