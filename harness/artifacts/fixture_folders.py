"""Finds the fixture files and packages that ``--fixtures`` names, and reads their declarations without running them."""

import hashlib
import os
import pkgutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from harness.artifacts.declarations import merge_catalogue, read_declarations
from harness.artifacts.given import changed_files
from harness.config.selection import did_you_mean
from harness.core.errors import FixtureError
from harness.core.models import ModelDeclaration

HARNESS = Path(__file__).resolve().parent.parent
SHIPPED = HARNESS / "shipped"
# A wheel has them inside the package: beside it are the controller's own packages, which no exporter may import.
PLANTED_DEFECTS = (SHIPPED if SHIPPED.is_dir() else HARNESS.parent) / "fixtures" / "planted"
ZOO = PLANTED_DEFECTS.with_name("zoo")


def read_fixtures(folder: Path, *, subfolders: bool = True) -> tuple[ModelDeclaration, ...]:
    """Return every model declared in the Python files of ``folder``, in the order of files and lines.

    ``subfolders``: whether the folders in it are read too. ``PLANTED_DEFECTS`` has one with a corpus of seeded faults,
    which calibration plants and no ordinary run. Raises ``FixtureError``: the folder does not exist or declares
    nothing, or a file cannot be read as declarations.
    """
    if not folder.is_dir():
        raise FixtureError(f"there is no fixture folder {folder}", "name a folder of fixture files with --fixtures")
    folder = folder.resolve()
    declarations = read_sources(
        sorted(folder.rglob("*.py") if subfolders else folder.glob("*.py")), package_root(folder)
    )
    if not declarations:
        raise FixtureError(f"{folder} declares no model", f"{ZOO.with_name('README.md')} says how to declare one")
    return merge_catalogue(declarations)


def read_sources(paths: Iterable[Path], root: Path, *, package_root: str | None = None) -> list[ModelDeclaration]:
    """Return every model that the files ``paths`` declare, which lie below ``root``.

    ``package_root``: what goes onto ``sys.path`` of the exporter, if not ``root``; empty: nothing, and ``source`` is an
    absolute path. Raises ``FixtureError``: a file cannot be read as declarations.
    """
    declarations: list[ModelDeclaration] = []
    place = str(root) if package_root is None else package_root
    for path in paths:
        relative = path.relative_to(root)
        module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FixtureError(f"{path} cannot be read: {error}", "save it as UTF-8 text") from error
        source = str(relative if place else path)
        declarations += read_declarations(text, source=source, module=module, package_root=place)
    return declarations


def changed_sources(models: Iterable[ModelDeclaration]) -> list[str]:
    """Return the fixture files, artifacts, requests and manifests that are not as when ``models`` were read."""
    models = tuple(models)
    changed = [path for model in models if model.given is not None for path in changed_files(model)]
    digests = {(model.package_root, model.source): model.source_digest for model in models if model.given is None}
    for (root, source), digest in digests.items():
        path = Path(root) / source
        # As text, as the declarations were read: line endings do not count.
        if not path.is_file() or hashlib.sha256(path.read_text(encoding="utf-8").encode()).hexdigest() != digest:
            changed.append(source)
    return list(dict.fromkeys(changed))


def package_root(folder: Path) -> Path:
    """Return the folder that must be on ``sys.path`` for the package of ``folder`` to import."""
    root = folder
    while (root / "__init__.py").is_file():
        root = root.parent
    return root


GROUP: Final = "torchscript_gate.fixtures"
OWN_ZOO: Final = "zoo"
WRITE: Final = (
    f"name a folder, a package such as mypkg.zoo, an entry point of the group {GROUP}, or zoo, the gate's own; "
    "or files with --artifacts"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FixtureSource:
    """A package or module: its source files, and the folder that makes its name importable."""

    files: tuple[Path, ...]
    root: Path


def declared_in(name: str, project: Path) -> tuple[ModelDeclaration, ...]:
    """Return every model that ``--fixtures name`` means.

    Args:
        name: a folder, relative to ``project`` if it is relative; else a dotted name, searched in the project, its
            ``src``, PYTHONPATH and the path of this Python; else an entry point, whose value is a dotted name; else
            ``zoo``, the models that came with the gate.

    Returns:
        Declarations. What lies in an environment's own folder of packages has an empty ``package_root``: that folder
        would hide the packages of the environments under test, so the package must be importable there by itself.

    Raises:
        FixtureError: there is none, or it declares nothing.
    """
    folder = project / name
    if folder.is_dir():
        return read_fixtures(folder)
    if "/" in name or not all(part.isidentifier() for part in name.replace("-", "_").split(".")):
        raise FixtureError(f"there is no fixture folder {folder}", WRITE)
    places = _places(project)
    value = name if _is_there(name, places) else _entry_points(places).get(name, name)
    if value == OWN_ZOO and not _is_there(value, places):
        return read_fixtures(ZOO)
    declarations: list[ModelDeclaration] = []
    for sources in _find(value, places, option=name):
        own = _is_installed(sources.root)
        declarations += read_sources(sources.files, sources.root, package_root="" if own else str(sources.root))
    if not declarations:
        raise FixtureError(f"{value} declares no model", f"{ZOO.with_name('README.md')} says how to declare one")
    return merge_catalogue(declarations)


def _places(project: Path) -> list[str]:
    """Return where packages are looked for, each folder once; the working directory is this Python's ``''``."""
    written = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return list(
        dict.fromkeys(
            os.path.abspath(place)  # noqa: PTH100
            for place in (str(project), str(project / "src"), *filter(None, written), *sys.path)
        )
    )


def _entry_points(places: Sequence[str]) -> dict[str, str]:
    """Return name -> dotted module of the group's entry points; of two with one name the first on the path counts."""
    entries: dict[str, str] = {}
    for distribution in distributions(path=list(places)):
        for point in distribution.entry_points.select(group=GROUP):
            entries.setdefault(point.name, point.value.partition(":")[0].strip())
    return entries


def _is_there(name: str, places: Sequence[str]) -> bool:
    return _spec(name.partition(".")[0], places) is not None


def _find(name: str, places: Sequence[str], *, option: str) -> Iterator[FixtureSource]:
    parts = name.split(".")
    looked, spec = list(places), None
    for index, part in enumerate(parts):
        spec = _spec(part, looked)
        if spec is None:
            raise _missing(parts, index, looked, places, option)
        if index + 1 < len(parts):
            looked = list(spec.submodule_search_locations or ())
    assert spec is not None  # a name has at least one part
    above = len(parts) - 1
    if spec.submodule_search_locations is not None:
        for place in spec.submodule_search_locations:
            folder = Path(place)
            yield FixtureSource(files=tuple(sorted(folder.rglob("*.py"))), root=folder.parents[above])
    elif spec.origin is not None and isinstance(spec.loader, SourceFileLoader):
        yield FixtureSource(files=(Path(spec.origin),), root=Path(spec.origin).parents[above])
    else:
        raise FixtureError(f"{name} is no Python source: {spec.origin}", "declarations are read, not run: " + WRITE)


def _spec(part: str, places: Sequence[str]) -> ModuleSpec | None:
    """Return where one part of a dotted name lies, as if it were the first: so no parent is imported."""
    PathFinder.invalidate_caches()
    return PathFinder.find_spec(part, list(places)) if part.isidentifier() else None


def _missing(
    parts: Sequence[str], index: int, looked: Sequence[str], places: Sequence[str], option: str
) -> FixtureError:
    part, parent, whole = parts[index], ".".join(parts[:index]), ".".join(parts)
    option = option if whole == option else f"{option}, which is the entry point of {whole}"
    known = [module.name for module in pkgutil.iter_modules(list(looked))]
    known = [name for name in known if name not in sys.stdlib_module_names]
    if parent:
        why = f"{parent} has no {part} (looked in {', '.join(looked)})" if looked else f"{parent} is no package"
        return FixtureError(f"--fixtures {option}: {why}", did_you_mean(part, known) + WRITE)
    points = _entry_points(places)
    listed = f"; entry points: {', '.join(sorted(points))}" if points else ""
    why = f"there is no such folder, package or entry point (looked in {', '.join(places)}){listed}"
    return FixtureError(f"--fixtures {option}: {why}", did_you_mean(part, [*points, *known]) + WRITE)


def _is_installed(root: Path) -> bool:
    """Return whether ``root`` is a folder of installed packages, or of Python's own modules."""
    own = {os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    named = root.name in ("site-packages", "dist-packages") or os.path.realpath(root) in own
    return named or any(root.glob("*.dist-info"))  # of pip install --target
