"""The house rules that a reader could not check by eye."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
HARNESS = PROJECT / "harness"

# High to low; packages on one line do not import each other. A module may import only from lines below its own.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("arguments", "commands"),
    ("pipeline",),
    ("stages",),
    ("runtime", "render"),
    ("archive", "planning", "numerics", "policy", "search"),
    ("worker",),
    ("domain",),
    ("errors", "__init__"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PROCESS_MODULES = {"subprocess", "signal", "socket", "fcntl", "select", "selectors", "multiprocessing", "ctypes"}
CLOCKS_AND_CHANCE = {"time", "random", "secrets"}


def controller_files() -> Iterator[Path]:
    return (path for path in sorted(HARNESS.rglob("*.py")) if path.parent.name != "worker")


def part_of(path: Path) -> str:
    """The layer's name: the package below ``harness``, or the module itself."""
    relative = path.relative_to(HARNESS)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield node.lineno, str(node.module)
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def names(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("path", list(controller_files()), ids=names)
def test_imports_point_downwards(path: Path) -> None:
    part = part_of(path)
    for line, target in imports_of(path):
        parts = target.split(".")
        if parts[0] != "harness" or len(parts) == 1:
            continue
        other = parts[1] if parts[1] in RANK else "__init__"
        assert other == part or RANK[other] > RANK[part], f"{path}:{line}: {part} imports {target}"


@pytest.mark.parametrize("path", list(controller_files()), ids=names)
def test_the_controller_never_imports_torch_and_of_the_worker_only_the_wire(path: Path) -> None:
    for line, target in imports_of(path):
        assert target.split(".")[0] != "torch", f"{path}:{line}"
        if target.startswith("harness.worker"):
            assert target.startswith("harness.worker.wire") or target == "harness.worker", f"{path}:{line}: {target}"


@pytest.mark.parametrize("path", list(controller_files()), ids=names)
def test_only_runtime_touches_processes_clocks_and_chance(path: Path) -> None:
    if part_of(path) == "runtime":
        return
    allowed = {"signal"} if part_of(path) == "cli" else set()  # SIGTERM ends a run like Ctrl-C
    for line, target in imports_of(path):
        root = target.split(".")[0]
        assert root not in (PROCESS_MODULES | CLOCKS_AND_CHANCE) - allowed, f"{path}:{line}: {target}"
    called = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("datetime", "date")
    }
    assert not called & {"now", "today", "utcnow"}, path


@pytest.mark.parametrize(
    "path", [*sorted((HARNESS / "worker").glob("*.py")), *sorted((PROJECT / "fixtures").rglob("*.py"))], ids=names
)
def test_the_foreign_side_keeps_to_python_3_8_grammar(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("path", list(controller_files()), ids=names)
def test_modules_do_one_thing(path: Path) -> None:
    assert path.stem not in ("utils", "helpers", "common", "manager", "misc")
    assert len(path.read_text().splitlines()) <= 300, "split it: one module does one thing"


@pytest.mark.parametrize("path", list(controller_files()), ids=names)
def test_pairs_are_never_cut_short_silently(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            assert any(keyword.arg == "strict" for keyword in node.keywords), f"{path}:{node.lineno}"


def test_every_module_of_policy_alone_speaks_of_statuses() -> None:
    """A ``passed`` below policy would be a judgement in the wrong place."""
    for part in ("numerics", "planning", "domain"):
        for path in sorted((HARNESS / part).glob("*.py")):
            attributes = {
                node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
            }
            assert "passed" not in attributes, path
