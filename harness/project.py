"""One project: what was typed, what its files say with it, and what works on it. Made once and passed on."""

import math
import os
import shlex
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness import DISTRIBUTION, PACKAGE
from harness.config.assignments import assigned, merged
from harness.config.command_words import OTHER_SIDE
from harness.config.load import load_settings
from harness.config.policy import parse_policy
from harness.config.selection import find_model, select
from harness.core.devices import AUTO, CPU, ROWS, Device, device_named
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError, EnvironmentUnavailable, SelectionError
from harness.core.findings import SEVERITY
from harness.core.models import ModelDeclaration
from harness.core.plan import PolicySettings, Settings
from harness.core.verdict import Waiver
from harness.environments.pins import PINNED, pinned_release
from harness.environments.sides import env_spec, env_specs
from harness.machine.progress import Progress, in_ci
from harness.serving.settings.mitigations import MITIGATIONS
from harness.verdict.waivers.entries import WAIVER_KINDS, parse_waivers

if TYPE_CHECKING:
    from harness.artifacts.given import GivenModels
    from harness.artifacts.golden_records import GoldenStore
    from harness.environments.builder import EnvironmentBuilder

CONFIG = "pyproject.toml"
ROOT = Path("/")
# Of a project: where runs lie unless ``--out`` says where.
REPORTS = "reports"
# Below the folder of runs: what the version matrix, searches over releases and migrations have asked.
ANSWERS = "matrix"
INSTALLED = ("site-packages", "dist-packages")
# What a policy may weigh otherwise; findings about waivers follow ``policy.unused_waivers``.
KINDS = tuple(kind for kind in SEVERITY if kind not in WAIVER_KINDS)


@dataclass(frozen=True, kw_only=True)
class Project:
    """A folder with a configuration, and what the command line said; None and empty mean not given.

    What is made of the two is made where it is asked for first, and imported there: a command that only shows a run
    reads no configuration, and one that reads a file builds no environment.

    Attributes:
        assumed: whether ``folder`` is only where the command was typed, and nobody named it.
        trusted: whether a run that is resumed or repeated may be somebody else's.
        until: where the run ends, one of ``UNTIL``; empty: with everything that was planned.
        more: for how long a run that is resumed times what it left undecided, such as ``10min``; empty: as planned.
        policy_file: of ``--policy``.
        whole_fleet: False where one model is checked alone, of which policy asks no number of models and no scenarios.
    """

    folder: Path
    assumed: bool = False
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
    budget: str = ""
    more: str = ""
    policy_file: str | None = None
    arguments: Sequence[str] = ()
    whole_fleet: bool = True
    progress: Progress = field(default_factory=Progress, compare=False)

    def sets(self, key: str) -> bool:
        """Return whether the command line says what a key of the configuration is."""
        return key in self.overrides or any(text.partition("=")[0].strip() == key for text in self.assignments)

    @cached_property
    def table(self) -> dict[str, Any]:
        """``[tool.compat]`` with what the command line set. Raises ``ConfigError``: no TOML, or a bad assignment."""
        return merged(read_config(self.folder), assigned(self.assignments))

    @cached_property
    def settings(self) -> Settings:
        """The settings of a run. Raises ``ConfigError``: file or option, full key, what was expected and found."""
        from harness.machine import memory

        settings = load_settings(
            self.table,
            file=CONFIG,
            overrides={**self.overrides, **({"artifacts": list(self.artifacts)} if self.artifacts else {})},
            mitigations=tuple(MITIGATIONS),
            kinds=KINDS,
            policy=self.given_policy,
            auto_jobs=_cores() + 1,
            auto_memory_gb=memory.share_gb(),
        )
        if not self.whole_fleet:
            settings = replace(settings, policy=replace(settings.policy, minimum_models=0, required_scenarios=()))
        new = pinned_release(self.folder) if settings.new == PINNED else settings.new
        return replace(settings, new=new, policy_file=self.policy_file or "")

    @cached_property
    def given_policy(self) -> PolicySettings | None:
        """The policy of ``--policy``, relative to the working directory. Raises ``ConfigError``: wrong, or beside
        ``--set``.
        """
        if self.policy_file is None:
            return None
        if any(text.strip().startswith("policy.") for text in self.assignments):
            raise ConfigError("--policy beside --set policy.…: the file is the whole policy", "write it into the file")
        try:
            text = Path(self.policy_file).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--policy {self.policy_file}: {error.strerror}", "name a TOML file") from error
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"--policy {self.policy_file} cannot be read: {error}", "save it as UTF-8 text"
            ) from error
        return parse_policy(text, file=self.policy_file, mitigations=tuple(MITIGATIONS), kinds=KINDS)

    def waivers(self, settings: Settings | None = None, path: Path | None = None) -> tuple[Waiver, ...]:
        """Return the waivers of ``golden/waivers.toml``, none where there is no such file; or of ``path``.

        ``settings``: those that know the devices, where they are a plan's and not the project's. Raises
        ``ConfigError``: the file cannot be read, or an entry is wrong or names a device that nobody knows.
        """
        if path is not None and not path.exists():
            raise ConfigError(f"{path} cannot be read: No such file", "name a file such as golden/waivers.toml")
        from harness.verdict.waivers import file

        path = path or self.waivers_path
        waivers = parse_waivers(file.read(path), file=str(path))
        devices = (settings or self.settings).devices
        for number, waiver in enumerate(waivers, start=1):
            try:
                device_named(waiver.device or CPU.name, devices)
            except ConfigError as error:
                raise ConfigError(f"{path}: waiver {number}: {error.message}", error.hint) from None
        return waivers

    @cached_property
    def models(self) -> "GivenModels":
        """Every model of the fixtures, and of the artifacts that are given, with notes on what was left out.

        What the command line names is relative to the working directory, what the configuration names to the project.
        """
        from harness.artifacts import fixture_folders
        from harness.artifacts.declarations import merge_catalogue
        from harness.artifacts.given import GivenModels, given_models

        settings = self.settings
        models = fixture_folders.declared_in(settings.fixtures, self.folder) if settings.fixtures else ()
        if not settings.artifacts:
            return GivenModels(models=models)
        given = given_models(settings.artifacts, base=None if self.artifacts else self.folder)
        return replace(given, models=merge_catalogue((*models, *given.models)))

    def selected(self, known: "GivenModels | None" = None) -> "GivenModels":
        """Return the models that ``-k`` means, for a plan.

        ``known``: those that there are, where something else than the command line and the configuration says it.
        Raises ``SelectionError``: the expression means none, or ``[tool.compat.computes_in]`` names none.
        """
        from harness.artifacts.file_copies import planned

        known = known or self.models
        models = tuple(map(planned, select(known.models, self.expression)))
        self.check_computes_in(known.models)
        return replace(known, models=models)

    def check_computes_in(self, models: Sequence[ModelDeclaration]) -> None:
        """Refuse a ``[tool.compat.computes_in]`` that names none of ``models``."""
        for name in self.settings.computes_in:
            try:
                find_model(models, name)
            except SelectionError as error:
                raise SelectionError(f"{CONFIG}: tool.compat.computes_in: {error.message}", error.hint) from None

    @cached_property
    def builder(self) -> "EnvironmentBuilder":
        """What builds environments in the user's cache; environments that lie in the project are named in a note."""
        from harness.environments.builder import (
            ROOT_VARIABLE,
            EnvironmentBuilder,
            default_environment_root,
            earlier_root,
        )
        from harness.environments.installer import find_uv

        earlier = earlier_root(self.folder)
        if earlier is not None:
            self.progress.note(
                f"environments of an earlier version of the gate lie in {earlier} and are not used: "
                f"remove that folder, or set {ROOT_VARIABLE} to it"
            )
        return EnvironmentBuilder(
            default_environment_root(),
            progress=lambda name, text: self.progress.tick(f"{name}: {text}"),
            uv=find_uv(),
            note=self.progress.note,
        )

    def sides(self) -> tuple[EnvSpec, EnvSpec]:
        """Return what to build or use on the old and on the new side; errors as of ``env_specs``."""
        return env_specs(
            self.table, self.settings, self.environments, file=CONFIG, libraries=self.libraries, project=self.folder
        )

    def side(self, side: Literal["old", "new"]) -> EnvSpec:
        """Return what to build or use on one side, which may be the only one."""
        return env_spec(
            self.table,
            self.settings,
            side,
            self.environments,
            file=CONFIG,
            libraries=self.libraries,
            project=self.folder,
        )

    def release(self, name: str, *, names: Collection[str]) -> EnvSpec:
        """Return what to build or use for one release; ``names`` are all that libraries may be meant for."""
        return env_spec(
            self.table,
            replace(self.settings, old=name, new=name),
            "new",
            self.interpreters_for(name),
            file=CONFIG,
            libraries=self.libraries_for(name, names),
            project=self.folder,
        )

    def releases(self, names: Sequence[str]) -> dict[str, EnvSpec]:
        """Return each named release's spec. Raises ``ConfigError``: no release or ``--env`` NAME, or a spare NAME."""
        unused = next((name for name in map(_name_of, self.environments) if name not in names), None)
        if unused is not None:
            raise ConfigError(f"--env {unused}: it is none of the releases", f"name it: --releases {unused} ...")
        return {name: self.release(name, names=names) for name in names}

    @property
    def sides_given(self) -> frozenset[str]:
        """The sides that an ``--env`` replaces by its interpreter, whatever releases they are else."""
        return frozenset(OTHER_SIDE) & set(map(_name_of, self.environments))

    def interpreters_for(self, name: str) -> list[str]:
        return [argument for argument in self.environments if _name_of(argument) == name]

    def libraries_for(self, name: str, names: Collection[str]) -> list[str]:
        """Return the arguments of ``--library`` for one release; ``names`` are all that they may be meant for."""
        return [argument for argument in self.libraries if library_of(argument, names) in (None, name)]

    @property
    def reports(self) -> Path:
        return Path(self.out).absolute() if self.out is not None else self.folder / REPORTS

    @property
    def answers(self) -> Path:
        """Where results are kept for every later command over many releases: what one has asked is known to all."""
        return self.reports if self.out is not None else self.reports / ANSWERS

    @property
    def waivers_path(self) -> Path:
        return self.folder / "golden" / "waivers.toml"

    def of_run(self, run: Path) -> "Project":
        """Return the project to which a run belongs, unless one was named.

        That is the nearest folder around it with ``[tool.compat]``, or the working directory where that comes first;
        where neither lies around it, the folder in whose ``reports`` it lies. ``--out`` says that runs lie elsewhere.
        """
        if not self.assumed or self.out is not None:
            return self
        around = Path(os.path.abspath(run)).parents  # noqa: PTH100  links stay links
        folder = next((home for home in around if home == self.folder or _is_configured(home)), None)
        if folder is None:
            folder = around[1] if around[0].name == REPORTS else self.folder
        return self if folder == self.folder else replace(self, folder=folder)

    def golden_store(self, folder: str | None = None) -> "GoldenStore":
        from harness.artifacts.golden_records import GoldenStore

        return GoldenStore(self.folder / (folder or "golden"))

    def command(self, *words: str) -> str:
        return own_command(self.folder, *words)


def read_config(folder: Path) -> dict[str, Any]:
    """Return a project's ``[tool.compat]``, empty without. Raises ``ConfigError``: the file is not TOML."""
    path = folder / CONFIG
    if not folder.is_dir():
        raise ConfigError(f"there is no project folder {folder}", "name one with --project, or leave that out")
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


def _is_configured(folder: Path) -> bool:
    try:
        return bool(read_config(folder))
    except ConfigError:  # of a project, whatever is wrong there
        return True
    except OSError:
        return False


def chosen_device(settings: Settings) -> Device:
    """Return the device of a run; ``auto`` is the first that the machine shows of those that it may take, or the CPU.

    Raises:
        ConfigError: there is no such device.
        EnvironmentUnavailable: it was asked for, and this machine does not show it.
    """
    if settings.device == AUTO:
        return next((row for row in ROWS if row.automatic and is_shown(row)), CPU)
    device = device_named(settings.device, settings.devices)
    if not is_shown(device):
        raise EnvironmentUnavailable(
            f"--device {device.name}: this machine shows no {device.words} ({' or '.join(device.nodes)})",
            f"run with --device {' or '.join(row.name for row in ROWS if is_shown(row))}",
        )
    return device


def is_shown(device: Device) -> bool:
    """Whether one of its files is there; a device that has none is shown by torch alone."""
    return not device.nodes or any(any(ROOT.glob(node.lstrip("/"))) for node in device.nodes)


def library_of(argument: str, names: Collection[str]) -> str | None:
    """Return which of ``names`` a ``NAME=LIB`` is for; None for all."""
    name, equals, _ = argument.partition("=")
    return name if equals and name in names else None


def own_command(project: Path, *words: str) -> str:
    """Return a command of this very program, as it runs from any folder of this machine's shells.

    It names the interpreter, or the console script that was called, and the project: none depends on where it is typed
    nor on what ``python`` is there. Every command that is printed begins with it. ``words``: what follows, each as the
    program is to get it; none: what commands begin with. In a CI job that stands in the project it is a command of
    whoever has the gate, and stands in a checkout of that project: the runner and its folders are gone by then.
    """
    if in_ci() and project.absolute() == Path.cwd():
        return shlex.join([*_started_anywhere(), *words])
    return shlex.join([*started_by(), "--project", str(project.absolute()), *words])


def in_command(path: Path) -> str:
    """Return a path as a printed command names it: absolute, and in a CI job as ``shown_path``."""
    return shown_path(path) if in_ci() else str(path.absolute())


def _started_anywhere() -> list[str]:
    first, *rest = started_by()
    if not rest:
        return [DISTRIBUTION]
    return ["python", "-m", PACKAGE] if rest[0] == "-m" or Path(rest[0]).parent == Path.cwd() else [first, *rest]


def started_by() -> list[str]:
    script = Path(sys.argv[0] if sys.argv else "")
    if script.name.startswith(DISTRIBUTION) and script.is_file():
        return [str(script.absolute())]
    python, package = str(Path(sys.executable).absolute()), Path(__file__).absolute().parent
    # Python finds what is installed wherever one is; a checkout it finds by its path.
    return [python, "-m", PACKAGE] if package.parent.name in INSTALLED else [python, str(package)]


def shown_path(path: Path) -> str:
    """Return ``path`` as a user here would type it: relative to the working directory where it lies below."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _cores() -> int:
    from harness.machine.load import quota

    allowed, granted = len(os.sched_getaffinity(0)), quota().cores
    return allowed if granted is None else max(1, min(allowed, math.ceil(granted)))


def _name_of(argument: str) -> str:
    return argument.partition("=")[0]
