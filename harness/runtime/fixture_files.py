"""Reads fixture files as declarations, without running them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from harness.domain.fixture import ModelDeclaration
from harness.errors import FixtureError
from harness.planning.catalogue import merge_catalogue, read_declarations
from harness.runtime.given_sources import is_unchanged

HARNESS = Path(__file__).resolve().parent.parent
SHIPPED = HARNESS / "shipped"
# A wheel has them inside the package: beside it lie the controller's own packages, which no exporter may import.
CANARIES = (SHIPPED if SHIPPED.is_dir() else HARNESS.parent) / "fixtures" / "canaries"
ZOO = CANARIES.with_name("zoo")


def read_fixtures(folder: Path, *, subfolders: bool = True) -> tuple[ModelDeclaration, ...]:
    """Return every model declared in the Python files of ``folder``, in the order of files and lines.

    Args:
        folder: where to look.
        subfolders: whether the folders in it are read too. ``CANARIES`` has one with a corpus of seeded faults, which
            calibration plants and no ordinary run.

    Raises:
        FixtureError: the folder does not exist or declares nothing, or a file cannot be read as declarations.
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

    Args:
        paths: Python files.
        root: the folder from which their dotted names count.
        package_root: what goes onto ``sys.path`` of the exporter, if not ``root``; empty: nothing, and ``source`` is an
            absolute path.

    Raises:
        FixtureError: a file cannot be read as declarations.
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
    """Return the fixture files, and the artifacts, that are no longer what they were when ``models`` were read."""
    models = tuple(models)
    given = [model.given.path for model in models if model.given is not None and not is_unchanged(model)]
    digests = {(model.package_root, model.source): model.source_digest for model in models if model.given is None}
    changed = list(given)
    for (root, source), digest in digests.items():
        path = Path(root) / source
        # As text, like the catalogue: what a file's line endings are is not what it says.
        if not path.is_file() or hashlib.sha256(path.read_text(encoding="utf-8").encode()).hexdigest() != digest:
            changed.append(source)
    return changed


def package_root(folder: Path) -> Path:
    """Return the folder that must be on ``sys.path`` for the package of ``folder`` to import."""
    root = folder
    while (root / "__init__.py").is_file():
        root = root.parent
    return root
