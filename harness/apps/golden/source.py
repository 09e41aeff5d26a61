"""What replaces the old environment: the golden records of ``--golden``, or models that are golden bundles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.artifacts.bundles import BundleStore
from harness.artifacts.old_outputs import Provenance, Records
from harness.config.assignments import assigned
from harness.core.errors import ConfigError, GoldenError
from harness.core.models import ModelDeclaration
from harness.core.plan import Plan
from harness.core.probe import ServingProfile
from harness.core.text import first_few
from harness.project import Project


@dataclass(frozen=True, kw_only=True)
class GoldenSource:
    """Models, and where golden outputs of them are; of one without any its row says so.

    ``folder``: where they lie, for ``Plan.golden``; ``computes_in``: what bundles say of the dtypes in which they
    compute.
    """

    folder: str
    models: tuple[ModelDeclaration, ...]
    computes_in: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def golden_source(
    models: Sequence[ModelDeclaration], project: Project, store: Records, device: str, profile: ServingProfile
) -> GoldenSource | None:
    """Return what replaces the old environment, None without; ``store``: the records that ``--golden`` names."""
    bundles = [model for model in models if model.given is not None and model.given.bundle]
    if project.golden is not None:
        if bundles:
            raise ConfigError(
                f"--golden beside {bundles[0].where}: a golden bundle has golden outputs of its own", "drop --golden"
            )
        return _records(models, project, store, device, profile=profile)
    if not bundles or _old_is_named(project):
        return None
    if len(bundles) < len(models):
        bare = next(model for model in models if model not in bundles)
        raise ConfigError(
            f"{bundles[0].where} is a golden bundle and {bare.where} is none: only the old release knows its answers",
            "name the old release with --old to ask it about all of them, or judge the two kinds in runs of their own",
        )
    return _bundles(bundles, device, profile)


def records_of(plan: Plan, project: Project) -> Records:
    bundles = BundleStore(plan.models)
    return bundles if plan.golden is not None and bundles.names() else project.golden_store(plan.golden)


def _old_is_named(project: Project) -> bool:
    assigned_keys = {**assigned(project.assignments), **project.overrides}
    return "old" in assigned_keys or any(given.partition("=")[0] == "old" for given in project.environments)


def _records(
    models: Sequence[ModelDeclaration], project: Project, store: Records, device: str, *, profile: ServingProfile
) -> GoldenSource:
    assert project.golden is not None
    names = store.names()
    recorded = tuple(model for model in models if model.name in names)
    if not recorded:
        what = "no selected model has a golden record"
        if not (project.folder / project.golden).is_dir():
            what = f"there is no folder {project.golden}"
        raise GoldenError(what, "propose some: golden propose RUN")
    made = {f"record of {model.name}": store.record(model.name) for model in recorded}
    _require_device(made, device, "propose records from a run")
    profiles = {model.name: record.profile for model, record in zip(recorded, made.values(), strict=True)}
    return GoldenSource(folder=project.golden, models=tuple(models), notes=_other_profiles(profiles, profile))


def _bundles(models: Sequence[ModelDeclaration], device: str, profile: ServingProfile) -> GoldenSource:
    store = BundleStore(models)
    described = {model.name: store.record(model.name) for model in models}
    _require_device({f"bundle {model.where}": described[model.name] for model in models}, device, "pack it")
    return GoldenSource(
        folder=str(Path(models[0].package_root)),
        models=tuple(models),
        computes_in={
            name: record.declared.computes_in
            for name, record in described.items()
            if record.declared.computes_in is not None
        },
        notes=_other_profiles({name: record.profile for name, record in described.items()}, profile),
    )


def _require_device(made: Mapping[str, Provenance], device: str, again: str) -> None:
    for what, kept in made.items():
        if kept.device != device:
            raise GoldenError(
                f"the golden {what} was made on {kept.device} and cannot judge {device}",
                f"run with --device {kept.device}, or {again} on {device}",
            )


def _other_profiles(made: Mapping[str, ServingProfile | None], profile: ServingProfile) -> tuple[str, ...]:
    here = replace(profile, name="", env={})
    others = [
        name
        for name, profile_made in made.items()
        if profile_made is not None and replace(profile_made, name="", env={}) != here
    ]
    if not others:
        return ()
    what = f"the golden outputs of {first_few(others, 3)} were made under another serving profile"
    return (f"{what} than {profile.name}: what differs may come from that",)
