"""Where the models of a run are declared, as the repository that holds them names these places."""

from collections.abc import Mapping
from pathlib import Path

from harness.domain.plan import Plan
from harness.domain.report import RunReport
from harness.errors import RunDirError
from harness.store import codec
from harness.store.run_folder import PLAN


def declared_at(report: RunReport, folder: Path, project: Path) -> Mapping[str, str]:
    """Return model -> ``file:line`` relative to the root of the repository around ``project``.

    The plan of a run knows in which folder a declaration lies; without one, what the report says is looked for in the
    project. Models that no file of the repository declares are left out.
    """
    root = _repository(project.resolve())
    folders = _folders(folder)
    found = {}
    for model in report.models:
        path, _, line = model.where.rpartition(":")
        named = Path(folders.get(model.model) or project) / (path if line.isdecimal() else model.where)
        place = _file(named) if model.where else None
        if place is not None and place.is_relative_to(root):
            found[model.model] = str(place.relative_to(root)) + (f":{line}" if path and line.isdecimal() else "")
    return found


def _file(path: Path) -> Path | None:
    """Return the file that a path leads to, or None; a report from elsewhere may say what no file can be called."""
    try:
        place = path.resolve()
        return place if place.is_file() else None
    except (OSError, ValueError):
        return None


def _repository(project: Path) -> Path:
    """Return the nearest folder with ``.git``, else the project itself."""
    return next((folder for folder in (project, *project.parents) if (folder / ".git").exists()), project)


def _folders(folder: Path) -> dict[str, str]:
    """Return model -> the folder that its declaration is relative to; empty where the plan says nothing."""
    try:
        plan = codec.read_json(folder / PLAN, Plan)
    except RunDirError:
        return {}
    return {model.name: model.package_root for model in plan.models}
