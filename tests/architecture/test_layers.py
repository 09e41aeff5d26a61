"""The house rules that a reader could not check by eye. CONTRIBUTING.md draws the same house."""

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HARNESS = PROJECT / "harness"

# High to low. A module imports from lines below its own; never from rooms on its line.
LAYERS = (
    ("__main__",),
    ("plugin",),
    *(
        tuple(f"apps.{name}" for name in names)
        for names in (
            ("shadow",),
            (
                "attach",
                "bisect",
                "cache",
                "compile_check",
                "completion",
                "diff",
                "env",
                "fleet",
                "inspect",
                "link_check",
                "matrix",
                "migration",
                "mitigate",
                "operators",
                "pack",
                "record",
                "waivers",
            ),
            ("rerun",),
            ("upgrade",),
            ("doctor", "gate", "golden"),
            ("report",),
        )
    ),
    ("cli",),
    ("project",),
    ("report",),
    ("search",),
    ("verdict",),
    ("checks.migration", "checks.shadow"),
    ("checks.attach", "checks.load", "checks.startup"),
    (
        "checks.latency",
        "checks.outputs",
        "checks.prediction",
        "checks.hang",
        "checks.compiling",
        "checks.interference",
        "checks.linking",
    ),
    ("probing",),
    ("artifacts", "environments"),
    ("config", "store"),
    ("serving",),
    ("machine",),
    ("worker",),
    ("core",),
    ("__init__", "apps", "checks"),
)
# Pure: a function of its arguments. No files, no processes, no clocks, no chance, and nothing impure is imported.
PURE_ROOMS = (
    "core",
    "serving",
    "artifacts.archive",
    "config",
    "report",
)
PURE_MODULES = (
    "apps.doctor.checks",
    "apps.doctor.during_run",
    "apps.doctor.facts",
    "apps.fleet.answer.since",
    "apps.fleet.answer.waves",
    "apps.fleet.engines.assignment",
    "apps.fleet.faults",
    "apps.fleet.stores.triton",
    "apps.fleet.units",
    "apps.upgrade.report.time_shares",
    "artifacts.declarations",
    "artifacts.names",
    "artifacts.requests",
    "artifacts.tensors.decode",
    "artifacts.tensors.outputs",
    "artifacts.tensors.samples",
    "artifacts.tensors.trees",
    "checks.attach.cures",
    "checks.attach.locks",
    "checks.attach.phases",
    "checks.hang.readings",
    "checks.hang.stack_formats",
    "checks.hang.stack_words",
    "checks.hang.story",
    "checks.hang.waits",
    "checks.interference.check",
    "checks.interference.recording",
    "checks.interference.statistics",
    "checks.interference.timeline",
    "checks.latency.allocator",
    "checks.latency.budget",
    "checks.latency.common_slowdown",
    "checks.latency.distributions",
    "checks.latency.limits",
    "checks.latency.looks",
    "checks.latency.machine",
    "checks.latency.moderation",
    "checks.latency.quantities",
    "checks.latency.statistics",
    "checks.compiling.diagnostics",
    "checks.linking.demangled",
    "checks.load.tail",
    "checks.migration.compilation",
    "checks.migration.deprecation",
    "checks.migration.dimensions",
    "checks.migration.facts",
    "checks.migration.known_races",
    "checks.migration.obstacles",
    "checks.migration.parts",
    "checks.migration.readiness",
    "checks.migration.structure",
    "checks.migration.words",
    "checks.outputs.elementwise",
    "checks.outputs.findings",
    "checks.outputs.metrics",
    "checks.outputs.noise",
    "checks.outputs.ordering",
    "checks.outputs.outputs",
    "checks.outputs.paired_calls",
    "checks.outputs.tolerances",
    "checks.outputs.totals",
    "checks.prediction.operator_libraries",
    "checks.prediction.predict",
    "checks.prediction.predict_programs",
    "checks.prediction.risks",
    "checks.prediction.schema_fit",
    "checks.prediction.semantics",
    "checks.shadow.answers",
    "checks.shadow.compare",
    "checks.startup.attribution_words",
    "checks.startup.groups",
    "checks.startup.measures",
    "checks.startup.rates",
    "checks.startup.slow_start",
    "environments.candidate_facts",
    "environments.cuda_support",
    "environments.operator_libraries",
    "environments.pythons",
    "environments.sides",
    "environments.undeclared",
    "environments.versions",
    "machine.typed",
    "probing.lacking",
    "probing.unasked_requests",
    "search.delta_debugging",
    "search.explained_cells",
    "search.first_bad_choice",
    "search.group_reduction",
    "search.reproduce.issue",
    "search.reproduce.snippet",
    "search.rewrite.order",
    "store.exact",
    "store.json",
    "verdict.attach",
    "verdict.bisection",
    "verdict.causes",
    "verdict.cell",
    "verdict.commands",
    "verdict.compiling",
    "verdict.counting",
    "verdict.decide",
    "verdict.demands",
    "verdict.enforce",
    "verdict.exit_codes",
    "verdict.first_bad",
    "verdict.horizon",
    "verdict.inputs",
    "verdict.interference",
    "verdict.latency",
    "verdict.machine",
    "verdict.matrix",
    "verdict.linking",
    "verdict.load",
    "verdict.migration",
    "verdict.mitigation",
    "verdict.prediction",
    "verdict.reduction",
    "verdict.regate",
    "verdict.reproduction",
    "verdict.served_packages",
    "verdict.shadow",
    "verdict.since",
    "verdict.startup",
    "verdict.waivers.apply",
    "verdict.waivers.entries",
    "verdict.waivers.making",
    "verdict.waivers.uses",
)
EFFECTS = {"subprocess", "signal", "socket", "fcntl", "select", "selectors", "multiprocessing", "ctypes", "shutil"}
EFFECTS |= {"time", "random", "secrets", "tempfile", "threading"}
# No effect that a caller could see: the lock guards what a library remembers of types.
LOCKED = {"machine.typed": {"threading"}}
OF_OS = {"path", "sep", "fspath", "PathLike"}
READS_AND_WRITES = {
    "open",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "mkdir",
    "unlink",
    "rename",
    "iterdir",
}
ENTRY_POINT = "cli.__init__"
READS_ITS_OWN_TEMPLATES = "report.backends.html"
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


CONTROLLER = [path for path in sorted(HARNESS.rglob("*.py")) if path.relative_to(HARNESS).parts[0] != "worker"]
MODULES = {".".join(path.relative_to(HARNESS).with_suffix("").parts): path for path in CONTROLLER}


def room_in(parts: Sequence[str]) -> str:
    """The room that a dotted name below ``harness`` begins with: a folder, one of ``checks`` or ``apps``, a module."""
    return next((room for end in (2, 1) if (room := ".".join(parts[:end])) in RANK), "__init__")


def room_of(path: Path) -> str:
    return room_in(path.relative_to(HARNESS).with_suffix("").parts)


@functools.cache
def imports_of(path: Path) -> tuple[tuple[str, str], ...]:
    """What a module imports, each with the place where it does."""
    found: list[tuple[str, str]] = []
    for node in nodes_of(path):
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


def upwards(room: str, target: str) -> bool:
    """Whether an import of ``target`` by a module of ``room`` is not to a lower line, to a peer, nor inside its own."""
    parts = target.split(".")
    if parts[0] != "harness" or len(parts) == 1:
        return False
    other = room_in(parts[1:])
    return other != room and RANK[other] <= RANK[room]


def module_in(target: str) -> str | None:
    """The module of ours that an import names, or that has what it names."""
    parts = target.split(".")[1:] if target.startswith("harness.") else []
    return next((name for end in (len(parts), len(parts) - 1) if (name := ".".join(parts[:end])) in MODULES), None)


def is_pure(name: str) -> bool:
    empty = name.endswith("__init__") and name != ENTRY_POINT
    return name in PURE_MODULES or any(name.startswith(f"{room}.") for room in PURE_ROOMS) or empty


def test_there_is_something_to_check() -> None:
    assert len(CONTROLLER) > 200
    assert {room_of(path) for path in CONTROLLER} == set(RANK) - {"worker"}
    assert upwards("core", "harness.verdict.decide") and not upwards("verdict", "harness.core.plan")
    assert upwards("probing", "harness.checks.hang.proof") and not upwards(
        "checks.startup", "harness.checks.hang.story"
    )


def test_imports_point_downwards() -> None:
    assert [f"{at}: {target}" for path, at, target in every_import() if upwards(room_of(path), target)] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    ways = {
        name: {module_in(target) for _, target in imports_of(path)} - {None, name} for name, path in MODULES.items()
    }
    done: set[str] = set()

    def follow(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " > ".join((*way[way.index(name) :], name))
        if name not in done:
            for other in ways[name]:
                assert other is not None
                follow(other, (*way, name))
            done.add(name)

    for name in ways:
        follow(name, ())


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


def test_pure_modules_touch_nothing_and_import_nothing_that_does() -> None:
    assert [name for name in PURE_MODULES if name not in MODULES] == []
    for name, path in MODULES.items():
        if not is_pure(name):
            continue
        for at, target in imports_of(path):
            assert target.split(".")[0] not in EFFECTS - LOCKED.get(name, set()), f"{at}: {target}"
            ours = module_in(target)
            assert ours is None or is_pure(ours), f"{at}: {target} is not pure"
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                assert node.attr in OF_OS, f"{path}:{node.lineno}: os.{node.attr}"
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert called not in READS_AND_WRITES or name == READS_ITS_OWN_TEMPLATES, f"{path}:{node.lineno}: {called}"


def test_only_the_clock_module_asks_what_day_it_is() -> None:
    for path in CONTROLLER:
        called = {
            node.attr
            for node in nodes_of(path)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("datetime", "date")
        }
        assert path == HARNESS / "machine" / "clock.py" or not called & {"now", "today", "utcnow"}, path


def test_only_one_module_reads_values_as_types() -> None:
    """Elsewhere two threads could make msgspec learn of a type at once, which it does not survive."""
    asks = ("msgspec.convert", "msgspec.json.decode", "msgspec.json.Decoder")
    ends = {name.rpartition(".")[2] for name in asks}
    asking = {
        path.relative_to(HARNESS).as_posix()
        for path in CONTROLLER
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in ends and ast.unparse(node) in asks
    }
    assert asking == {"machine/typed.py"}


def test_names_say_what_is_inside() -> None:
    for path in CONTROLLER:
        assert path.stem not in ("utils", "helpers", "common", "manager", "misc"), path


def test_pairs_are_never_cut_short_silently() -> None:
    for path in CONTROLLER:
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
                assert any(keyword.arg == "strict" for keyword in node.keywords), f"{path}:{node.lineno}"


def test_what_measures_does_not_judge() -> None:
    """A ``passed`` below the decision would be a judgement in the wrong place."""
    for path in CONTROLLER:
        if room_of(path) in ("core", "artifacts", "probing"):
            attributes = {node.attr for node in nodes_of(path) if isinstance(node, ast.Attribute)}
            assert "passed" not in attributes, path
