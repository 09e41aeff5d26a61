"""The house rules that a reader could not check by eye. CONTRIBUTING.md draws the same house."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HARNESS = PROJECT / "harness"

# High to low. A module imports from lines below its own; rooms on one line only where PEERS says so.
LAYERS = (
    ("__main__",),
    ("cli", "plugin"),
    ("fleet",),
    ("run",),
    ("report",),
    ("diagnosis", "releases", "doctor"),
    ("decision",),
    ("correctness", "latency", "startup", "hang", "static", "golden", "successor"),
    ("probing",),
    ("models", "environments"),
    ("config", "tensors", "archive", "search", "store"),
    ("settings", "scenarios"),
    ("system",),
    ("worker",),
    ("domain",),
    ("devices", "quantities"),
    ("errors", "__init__"),
)
# Who may import whom on its own line, and what for.
PEERS = {
    ("plugin", "cli"): "the options of a test are those of compat, typed in the same words",
    ("diagnosis", "releases"): "an explained cell names the first bad release",
    ("doctor", "releases"): "the index is asked for the versions of a release",
    ("golden", "correctness"): "two records are compared as outputs are",
    ("startup", "correctness"): "outputs made beside others are judged as outputs are",
    ("startup", "hang"): "a model that does not come up is told with the story of its process",
    ("startup", "static"): "the C++ worker is built only where the artifacts are ones that it can load",
    ("successor", "correctness"): "a program's outputs are judged as an artifact's are",
    ("successor", "latency"): "packages are timed beside TorchScript as releases are beside each other",
    ("successor", "startup"): "packages are served together as artifacts are",
    ("successor", "static"): "how long an archive still loads is predicted as by the static check",
    ("tensors", "store"): "recorded outputs lie where the files of a probe do",
    ("static", "hang"): "a prediction is held against the failure that was seen",
}
# Pure: a function of its arguments. No files, no processes, no clocks, no chance, and nothing impure is imported.
PURE_ROOMS = ("domain", "archive", "search", "config", "settings", "scenarios", "devices", "quantities", "report")
PURE_MODULES = (
    "correctness.elementwise",
    "correctness.judging",
    "correctness.metrics",
    "correctness.noise",
    "correctness.ordering",
    "correctness.outputs",
    "correctness.paired_calls",
    "correctness.tolerances",
    "correctness.totals",
    "decision.causes",
    "decision.cells",
    "decision.commands",
    "decision.counting",
    "decision.demands",
    "decision.enforce",
    "decision.decide",
    "decision.inputs",
    "decision.regate",
    "decision.since",
    "decision.waivers.apply",
    "decision.waivers.entries",
    "decision.waivers.making",
    "decision.waivers.uses",
    "diagnosis.bisect.judging",
    "diagnosis.cure.judging",
    "diagnosis.explanation",
    "diagnosis.reduce.judging",
    "diagnosis.reproduce.issue",
    "diagnosis.reproduce.judging",
    "diagnosis.reproduce.snippet",
    "diagnosis.rewrite.order",
    "doctor.checks",
    "doctor.cuda_support",
    "doctor.during_run",
    "environments.undeclared",
    "environments.libraries",
    "environments.pythons",
    "environments.sides",
    "fleet.engines.assignment",
    "fleet.faults",
    "fleet.planning",
    "fleet.answer.since",
    "fleet.stores.triton",
    "fleet.answer.waves",
    "hang.readings",
    "hang.stack_formats",
    "hang.stack_words",
    "hang.story",
    "hang.waits",
    "latency.allocator",
    "latency.common_slowdown",
    "latency.distributions",
    "latency.judging",
    "latency.looks",
    "latency.machine",
    "latency.moderation",
    "latency.quantities",
    "latency.spending",
    "latency.statistics",
    "models.declarations",
    "models.names",
    "models.requests",
    "probing.lacking",
    "probing.rest",
    "releases.first_bad_search",
    "releases.judging",
    "releases.matrix_judging",
    "releases.versions",
    "run.report.time_shares",
    "startup.attribution",
    "startup.groups",
    "startup.judging",
    "startup.measures",
    "startup.rates",
    "static.judging",
    "static.operator_libraries",
    "static.predict",
    "static.predict_programs",
    "static.schema_fit",
    "static.semantics",
    "successor.compilation",
    "successor.cures",
    "successor.deprecation",
    "successor.dimensions",
    "successor.facts",
    "successor.horizon",
    "successor.judging",
    "successor.known_races",
    "successor.obstacles",
    "successor.serving_judging",
    "successor.words",
    "successor.readiness",
    "successor.structure",
    "store.exact",
    "store.json",
    "system.typed",
    "tensors.decode",
    "tensors.outputs",
    "tensors.samples",
    "tensors.trees",
)
EFFECTS = {"subprocess", "signal", "socket", "fcntl", "select", "selectors", "multiprocessing", "ctypes", "shutil"}
EFFECTS |= {"time", "random", "secrets", "tempfile", "threading"}
# No effect that a caller could see: the lock guards what a library remembers of types.
LOCKED = {"system.typed": {"threading"}}
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
MOST_IN_A_FOLDER = 22


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


CONTROLLER = [path for path in sorted(HARNESS.rglob("*.py")) if path.relative_to(HARNESS).parts[0] != "worker"]
MODULES = {".".join(path.relative_to(HARNESS).with_suffix("").parts): path for path in CONTROLLER}


def room_of(path: Path) -> str:
    """The folder below ``harness``, or the module itself."""
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


def upwards(room: str, target: str) -> bool:
    """Whether an import of ``target`` by a module of ``room`` is not to a lower line, to a peer, nor inside its own."""
    parts = target.split(".")
    if parts[0] != "harness" or len(parts) == 1:
        return False
    other = parts[1] if parts[1] in RANK else "__init__"
    return other != room and (room, other) not in PEERS and RANK[other] <= RANK[room]


def module_in(target: str) -> str | None:
    """The module of ours that an import names, or that has what it names."""
    parts = target.split(".")[1:] if target.startswith("harness.") else []
    return next((name for end in (len(parts), len(parts) - 1) if (name := ".".join(parts[:end])) in MODULES), None)


def is_pure(name: str) -> bool:
    empty = name.endswith("__init__") and name != ENTRY_POINT
    return name in PURE_MODULES or name.split(".")[0] in PURE_ROOMS or name == "errors" or empty


def test_there_is_something_to_check() -> None:
    assert len(CONTROLLER) > 200
    assert {room_of(path) for path in CONTROLLER} == set(RANK) - {"worker"}
    assert upwards("domain", "harness.decision.decide") and not upwards("decision", "harness.domain.plan")
    assert upwards("probing", "harness.hang.proof") and not upwards("startup", "harness.hang.story")


def test_imports_point_downwards() -> None:
    assert [f"{at}: {target}" for path, at, target in every_import() if upwards(room_of(path), target)] == []


def test_every_peer_that_is_allowed_is_used() -> None:
    used = {
        (room_of(path), target.split(".")[1]) for path, _, target in every_import() if target.startswith("harness.")
    }
    assert set(PEERS) <= used


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
        for node in ast.walk(tree_of(path)):
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
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("datetime", "date")
        }
        assert path == HARNESS / "system" / "clock.py" or not called & {"now", "today", "utcnow"}, path


def test_only_one_module_reads_values_as_types() -> None:
    """Elsewhere two threads could make msgspec learn of a type at once, which it does not survive."""
    asks = ("msgspec.convert", "msgspec.json.decode", "msgspec.json.Decoder")
    asking = {
        path.relative_to(HARNESS).as_posix()
        for path in CONTROLLER
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in asks
    }
    assert asking == {"system/typed.py"}


def test_folders_are_seen_at_a_glance_and_names_say_what_is_inside() -> None:
    sources = [path for path in HARNESS.rglob("*.*") if path.suffix in (".py", ".cpp", ".hpp")]
    assert {path.relative_to(HARNESS).parts[0] for path in sources} >= {"native", "worker"}
    for folder in {path.parent for path in sources}:
        inside = [path for path in sources if path.parent == folder and path.stem != "__init__"]
        assert len(inside) <= MOST_IN_A_FOLDER, f"{folder}: is a room missing?"
    for path in CONTROLLER:
        assert path.stem not in ("utils", "helpers", "common", "manager", "misc"), path


def test_pairs_are_never_cut_short_silently() -> None:
    for path in CONTROLLER:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
                assert any(keyword.arg == "strict" for keyword in node.keywords), f"{path}:{node.lineno}"


def test_what_measures_does_not_judge() -> None:
    """A ``passed`` below the decision would be a judgement in the wrong place."""
    for path in CONTROLLER:
        if room_of(path) in ("domain", "tensors", "probing", "models"):
            attributes = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
            assert "passed" not in attributes, path
