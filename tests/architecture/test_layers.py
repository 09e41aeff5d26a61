"""The house rules that a reader could not check by eye."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HARNESS = PROJECT / "harness"

# High to low; packages on one line do not import each other. A module may import only from lines below its own.
LAYERS = (
    ("__main__",),
    ("cli", "plugin"),
    ("verbs",),
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


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


CONTROLLER = [path for path in sorted(HARNESS.rglob("*.py")) if path.parent.name != "worker"]


def part_of(path: Path) -> str:
    """The layer's name: the package below ``harness``, or the module itself."""
    relative = path.relative_to(HARNESS)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@functools.cache
def imports_of(path: Path) -> tuple[tuple[str, str], ...]:
    """What a module imports, each with the place where it does."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        at = f"{path.relative_to(PROJECT)}:{node.lineno}"
        if isinstance(node, ast.Import):
            found += [(at, name.name) for name in node.names]
        else:
            assert node.level == 0, f"{at}: relative import"
            found += [(at, str(node.module)), *((at, f"{node.module}.{name.name}") for name in node.names)]
    return tuple(found)


def every_import() -> Iterator[tuple[Path, str, str]]:
    return ((path, at, target) for path in CONTROLLER for at, target in imports_of(path))


def upwards(part: str, target: str) -> bool:
    """Whether an import of ``target`` by a module of layer ``part`` is not to a lower layer, nor inside its own."""
    parts = target.split(".")
    if parts[0] != "harness" or len(parts) == 1:
        return False
    other = parts[1] if parts[1] in RANK else "__init__"
    return other != part and RANK[other] <= RANK[part]


def test_there_is_something_to_check() -> None:
    assert len(CONTROLLER) > 300
    assert {part_of(path) for path in CONTROLLER} == set(RANK) - {"worker"}
    assert upwards("domain", "harness.policy.gate") and not upwards("policy", "harness.domain.plan")
    assert upwards("runtime", "harness.render.console")


def test_imports_point_downwards() -> None:
    assert [f"{at}: {target}" for path, at, target in every_import() if upwards(part_of(path), target)] == []


def test_the_controller_never_imports_torch_and_of_the_worker_only_the_wire() -> None:
    for _, at, target in every_import():
        assert target.split(".")[0] != "torch", at
        if target.startswith("harness.worker"):
            assert target.startswith("harness.worker.wire") or target == "harness.worker", f"{at}: {target}"


def test_what_every_pytest_loads_imports_nothing_of_the_gate_and_nothing_heavy() -> None:
    tree = tree_of(PROJECT / "torchscript_gate_plugin.py")
    for_types = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    left_out = {found for node in for_types for found in ast.walk(node)}
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in left_out
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [item.name for item in node.names])
    }
    assert imported == {"importlib", "os", "collections.abc", "pathlib", "typing", "pytest"}


def test_only_runtime_touches_processes_clocks_and_chance() -> None:
    for path in CONTROLLER:
        if part_of(path) == "runtime":
            continue
        allowed = {"signal"} if part_of(path) == "cli" else set()  # SIGTERM ends a run like Ctrl-C
        for at, target in imports_of(path):
            root = target.split(".")[0]
            assert root not in (PROCESS_MODULES | CLOCKS_AND_CHANCE) - allowed, f"{at}: {target}"
        called = {
            node.attr
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("datetime", "date")
        }
        assert not called & {"now", "today", "utcnow"}, path


def test_modules_do_one_thing() -> None:
    for path in CONTROLLER:
        assert path.stem not in ("utils", "helpers", "common", "manager", "misc"), path
        assert len(path.read_text().splitlines()) <= 300, f"{path}: split it: one module does one thing"


def test_pairs_are_never_cut_short_silently() -> None:
    for path in CONTROLLER:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
                assert any(keyword.arg == "strict" for keyword in node.keywords), f"{path}:{node.lineno}"


def test_every_module_of_policy_alone_speaks_of_statuses() -> None:
    """A ``passed`` below policy would be a judgement in the wrong place."""
    for part in ("numerics", "planning", "domain"):
        for path in sorted((HARNESS / part).glob("*.py")):
            attributes = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
            assert "passed" not in attributes, path
