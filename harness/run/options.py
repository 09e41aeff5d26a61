"""What the command line said, and what the project's files say with it."""

import math
import os
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import harness
from harness.artifacts import fixture_folders
from harness.artifacts.declarations import merge_catalogue
from harness.artifacts.given import GivenModels, given_models
from harness.artifacts.golden_records import GoldenStore
from harness.config.assignments import assigned, merged
from harness.config.load import load_settings
from harness.config.policy import IN_CONFIG, parse_policy
from harness.config.selection import find_model
from harness.core.devices import CPU, device_named
from harness.core.errors import ConfigError, SelectionError
from harness.core.findings import SEVERITY
from harness.core.plan import Plan, PolicySettings, Settings
from harness.core.verdict import Waiver
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.machine import memory
from harness.machine.load import quota
from harness.machine.progress import Progress
from harness.serving.settings.mitigations import MITIGATIONS
from harness.verdict.waivers import file
from harness.verdict.waivers.entries import WAIVER_KINDS, parse_waivers

CONFIG = "pyproject.toml"
INSTALLED = ("site-packages", "dist-packages")
# What a policy may weigh otherwise; findings about waivers follow ``policy.unused_waivers``.
KINDS = tuple(kind for kind in SEVERITY if kind not in WAIVER_KINDS)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line said; None and empty mean not given.

    Attributes:
        trusted: whether a run that is resumed or repeated may be somebody else's.
        until: where the run ends, one of ``UNTIL``; empty: with everything that was planned.
        more: for how long a run that is resumed times what it left undecided, such as ``10min``; empty: as planned.
        whole_fleet: False where one model is checked alone, of which policy asks no number of models and no scenarios.
    """

    project: Path
    overrides: Mapping[str, object] = field(default_factory=dict)
    assignments: Sequence[str] = ()
    environments: Sequence[str] = ()
    expression: str | None = None
    scenarios: Sequence[str] = ()
    golden: str | None = None
    artifacts: Sequence[str] = ()
    libraries: Sequence[str] = ()
    out: str | None = None
    resume: str | None = None
    trusted: bool = False
    until: str = ""
    more: str = ""
    policy: str | None = None
    arguments: Sequence[str] = ()
    whole_fleet: bool = True

    @property
    def reports(self) -> Path:
        """Where runs are kept."""
        return Path(self.out).absolute() if self.out is not None else self.project / "reports"

    @property
    def out_again(self) -> str:
        """The words that a command for the same folder of runs ends with; empty where ``--out`` was not given."""
        return "" if self.out is None else f" --out {shlex.quote(self.out)}"

    def sets(self, key: str) -> bool:
        """Return whether the command line says what a key of the configuration is."""
        return key in self.overrides or any(text.partition("=")[0].strip() == key for text in self.assignments)


def _cores() -> int:
    """Return how many cores this process may use: those that it may run on, within the quota of its container."""
    allowed, granted = len(os.sched_getaffinity(0)), quota().cores
    return allowed if granted is None else max(1, min(allowed, math.ceil(granted)))


def read_config(project: Path) -> dict[str, Any]:
    """Return the ``[tool.compat]`` table of the project; empty where there is none.

    Raises:
        ConfigError: the file is not TOML.
    """
    path = project / CONFIG
    if not project.is_dir():
        raise ConfigError(f"there is no project folder {project}", "name one with --project, or leave that out")
    if not path.is_file():
        return {}
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (ValueError, RecursionError) as error:  # Python reads no number of thousands of digits
        raise ConfigError(f"{path}: not valid TOML: {error}", "mend the file") from error
    table = tool.get("compat", {}) if isinstance(tool, dict) else tool
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.compat: expected a table, got {table!r}", "write [tool.compat]")
    return table


def settings_of(options: Options) -> tuple[dict[str, Any], Settings]:
    """Return the configuration table, with what the command line set in it, and the settings of a run."""
    table = merged(read_config(options.project), assigned(options.assignments))
    policy = read_policy(options)
    settings = load_settings(
        table,
        file=CONFIG,
        overrides={**options.overrides, **({"artifacts": list(options.artifacts)} if options.artifacts else {})},
        mitigations=tuple(MITIGATIONS),
        kinds=KINDS,
        policy=policy,
        auto_jobs=_cores() + 1,
        auto_memory_gb=memory.share_gb(),
    )
    if not options.whole_fleet:
        settings = replace(settings, policy=replace(settings.policy, minimum_models=0, required_scenarios=()))
    return table, replace(settings, policy_file=options.policy or "")


def read_policy(options: Options) -> PolicySettings | None:
    """Return the policy in the file that ``--policy`` names, relative to the working directory; None without one.

    Raises:
        ConfigError: there is no such file, it is wrong, or ``--set`` changes the policy that it replaces.
    """
    if options.policy is None:
        return None
    if any(text.strip().startswith("policy.") for text in options.assignments):
        raise ConfigError("--policy beside --set policy.…: the file is the whole policy", "write it into the file")
    try:
        text = Path(options.policy).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--policy {options.policy}: {error.strerror}", "name a TOML file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"--policy {options.policy} cannot be read: {error}", "save it as UTF-8 text") from error
    return parse_policy(text, file=options.policy, mitigations=tuple(MITIGATIONS), kinds=KINDS)


def other_policy(plan: Plan, options: Options) -> tuple[str, ...]:
    """Return a note where the policy says something else than it did when a run was planned."""
    if any(word.startswith("--set") for word in plan.arguments) and not options.assignments:
        return ()  # which may have said some of it
    try:
        _, now = settings_of(replace(options, policy=plan.settings.policy_file or None))
    except ConfigError:
        return ()
    where = plan.settings.policy_file or IN_CONFIG
    note = f"{where} has changed since this run was planned, and judged it as it was then: gate judges it by today's"
    return () if now.policy == plan.settings.policy else (note,)


def known_models(options: Options, settings: Settings) -> GivenModels:
    """Return every model of the fixtures, and of the artifacts that are given, with notes on what was left out.

    What the command line names is relative to the working directory, what the configuration names to the project.
    """
    models = fixture_folders.declared_in(settings.fixtures, options.project) if settings.fixtures else ()
    if not settings.artifacts:
        return GivenModels(models=models)
    given = given_models(settings.artifacts, base=None if options.artifacts else options.project)
    return GivenModels(models=merge_catalogue((*models, *given.models)), notes=given.notes)


def check_computes_in(options: Options, settings: Settings, known: GivenModels | None = None) -> None:
    """Refuse a ``[tool.compat.computes_in]`` that names no declared model.

    Raises:
        SelectionError: names the nearest.
    """
    if not settings.computes_in:
        return
    models = (known or known_models(options, settings)).models
    for name in settings.computes_in:
        try:
            find_model(models, name)
        except SelectionError as error:
            raise SelectionError(f"{CONFIG}: tool.compat.computes_in: {error.message}", error.hint) from None


def builder_for(options: Options, progress: Progress) -> EnvironmentBuilder:
    """Return the one builder of environments."""
    return EnvironmentBuilder(
        default_environment_root(options.project),
        progress=lambda name, text: progress.tick(f"{name}: {text}"),
        uv=find_uv(),
    )


def golden_store(options: Options, folder: str | None = None) -> GoldenStore:
    """Return the golden records of the project, or those in ``folder``."""
    return GoldenStore(options.project / (folder or "golden"))


def waivers_path(project: Path) -> Path:
    """Return where a project keeps its waivers."""
    return project / "golden" / "waivers.toml"


def read_waivers(project: Path, settings: Settings) -> tuple[Waiver, ...]:
    """Return the waivers of ``golden/waivers.toml``; none where there is no such file."""
    return waivers_in(waivers_path(project), settings, needed=False)


def waivers_in(path: Path, settings: Settings, *, needed: bool = True) -> tuple[Waiver, ...]:
    """Return the waivers of a file; none where it may be missing and is.

    Raises:
        ConfigError: it cannot be read, or an entry is wrong or names a device that ``settings`` do not know.
    """
    if needed and not path.exists():
        raise ConfigError(f"{path} cannot be read: No such file", "name a file such as golden/waivers.toml")
    found = parse_waivers(file.read(path), file=str(path))
    for number, waiver in enumerate(found, start=1):
        try:
            device_named(waiver.device or CPU.name, settings.devices)
        except ConfigError as error:
            raise ConfigError(f"{path}: waiver {number}: {error.message}", error.hint) from None
    return found


def own_command(project: Path, *words: str) -> str:
    """Return a command of this very program, as it runs from any folder of this machine's shells.

    It names the interpreter, or the console script that was called, and the project: none depends on where it is typed
    nor on what ``python`` is there. Every command that is printed begins with it.

    Args:
        words: what follows, each as the program is to get it; none: what commands begin with.
    """
    return shlex.join([*started_by(), "--project", str(project.absolute()), *words])


def started_by() -> list[str]:
    """Return the words that start this program from any folder."""
    script = Path(sys.argv[0] if sys.argv else "")
    if script.name.startswith("torchscript-gate") and script.is_file():
        return [str(script.absolute())]
    python, package = str(Path(sys.executable).absolute()), Path(harness.__file__).absolute().parent
    # Python finds what is installed wherever one is; a checkout it finds by its path.
    return [python, "-m", "harness"] if package.parent.name in INSTALLED else [python, str(package)]


def shown_path(path: Path) -> str:
    """Return ``path`` as a user here would type it: relative to the working directory where it lies below."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
