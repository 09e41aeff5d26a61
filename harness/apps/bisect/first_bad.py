"""``bisect --over releases``: which torch release broke a model."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.apps.rerun.selected import SelectedCell, as_the_run, keep_explanation, refuse_changed
from harness.apps.upgrade.plan import plan_of_probes
from harness.artifacts.file_copies import planned
from harness.artifacts.given import GivenModels
from harness.config import command_words
from harness.config.selection import find_model, select
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError, SelectionError
from harness.core.models import ArtifactKind, ModelDeclaration
from harness.core.plan import Settings
from harness.core.releases import FirstBad
from harness.environments.index import ReleaseIndex
from harness.environments.installer import find_uv
from harness.environments.interpreters import find_pythons, verified_python
from harness.environments.pythons import choose_python
from harness.environments.sides import direction_of
from harness.environments.torch_backends import common_build, with_build
from harness.environments.versions import in_order
from harness.project import ANSWERS, Project, library_of
from harness.report.json.results import dump
from harness.search.explained_cells import by_first_bad
from harness.search.first_bad import search_first_bad
from harness.store.explanations import place_of
from harness.store.run_folder import RunDir

ENV = command_words.ENV
FULL = "first-bad.json"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a search is about.

    ``project``: whose command line says which environments there are; that of the run, for a cell of one.
    """

    model: ModelDeclaration
    project: Project
    settings: Settings
    store: Path
    selected: SelectedCell | None = None


def subject_of(
    project: Project, *, model: str | None, selected: SelectedCell | None, ends: Sequence[str] = ()
) -> Subject:
    """Return what to search about; the first and last of ``ends`` are the ends unless the command line names them."""
    if selected is None:
        project = with_ends(project, ends)
        known = project.models.models
        project.check_computes_in(known)
        return Subject(
            model=planned(one_model(project, known, model)),
            project=project,
            settings=project.settings,
            store=project.answers,
        )
    return Subject(
        model=_model_of(selected),
        project=replace(as_the_run(selected, project), overrides={}),
        settings=_settings_of_run(selected),
        store=project.reports / ANSWERS,
        selected=selected,
    )


def _model_of(selected: SelectedCell) -> ModelDeclaration:
    if selected.cell.scenario != "alone":
        raise ConfigError(
            f"{selected.cell.id}: a search over environments asks what a model does alone",
            "name its cell of the scenario alone, or the scenario's own search: bisect without --over",
        )
    model = selected.model
    refuse_changed((model,), "search")
    return model


def _settings_of_run(selected: SelectedCell) -> Settings:
    plan = selected.plan
    if plan.old is None:
        raise ConfigError(f"{selected.folder.name} was judged by golden records", "name the ends: --model --old --new")
    if plan.settings.new_profile is not None:
        raise ConfigError(
            f"the sides of {selected.folder.name} have different profiles, and a search has one for all environments",
            "name it: --model --old --new --profile",
        )
    old, new = (spec.release or spec.name for spec in (plan.old, plan.new))
    return replace(plan.settings, old=old, new=new)


def with_ends(project: Project, releases: Sequence[str]) -> Project:
    if not releases:
        return project
    if len(releases) < 2 and not {"old", "new"} <= set(project.overrides):
        raise ConfigError("one release is no range", "such as --releases 2.1.2 2.3.1 2.6.0")
    return replace(project, overrides={"old": releases[0], "new": releases[-1], **project.overrides})


def one_model(project: Project, known: Sequence[ModelDeclaration], name: str | None) -> ModelDeclaration:
    """Return the model called ``name``; None: the only one that is given or selected."""
    if name is not None:
        return find_model(known, name)
    models = select(known, project.expression)
    if len(models) != 1:
        raise SelectionError(f"{len(models)} models are selected, and one can be searched for", "name it with --model")
    return models[0]


def bisect_command(model: str, good: str, bad: str, project: Project, *, releases: Sequence[str] = ()) -> str:
    """Return the command that looks between two neighbours among ``releases``, with what says how the model is run."""
    after: list[str] = []
    for option in command_words.typed(project.arguments, (*command_words.REPEATED, ENV), here=str(Path.cwd())):
        if option.name == ENV and option.values[0].partition("=")[0] not in (good, bad):
            continue
        if option.name == command_words.LIBRARY and library_of(option.values[0], releases) not in (None, good, bad):
            continue
        after.extend(option.words)
    words = ["bisect", "--model", model, "--old", good, "--new", bad, *after]
    return f"{project.command()} {shlex.join(words)}"


def first_bad(
    project: Project,
    *,
    model: str | None = None,
    selected: SelectedCell | None = None,
    releases: Sequence[str] = (),
    build_limit: int | None = None,
) -> FirstBad:
    """Search the first release between the old and the new end in which a model shows what it shows in the new one.

    ``model`` may be left out where only one is given or selected; ``selected``: a cell of a finished run, in place of
    ``model`` and ends, whose report tells of it from now on; ``releases``: those to choose from, by default what the
    package index has; ``build_limit``: environments between the ends that may be built, None: what halving needs.
    """
    _refuse_what_is_not_searched(project)
    if build_limit is not None and build_limit < 0:
        raise ConfigError(f"--builds {build_limit}: expected a number from 0 on", "0 asks only what is built")
    subject = subject_of(project, model=model, selected=selected, ends=releases)
    names, source, notes = _line(releases, subject)
    project = subject.project
    specs = specs_of(names, project)
    old, *_, new = specs.values()
    selected_only = GivenModels(models=(subject.model,), notes=notes)
    plan = plan_of_probes(project, selected_only, subject.settings, old=old, new=new)
    plan = replace(plan, direction=direction_of(old.release, new.release), groups={})
    with RunDir.shared(subject.store) as store:
        try:
            outcome = search_first_bad(
                plan,
                specs,
                source=source,
                store=store,
                builder=project.builder,
                progress=project.progress,
                golden=project.golden_store(),
                build_limit=build_limit,
            )
        except KeyboardInterrupt:
            project.progress.note("what was answered is kept, and the same command goes on with it")
            raise
        outcome = replace(outcome, command=_next_command(outcome, subject, names))
        dumped = dump(outcome).encode()
        store.write(f"first-bad-{subject.model.name}.json", dumped)
    if subject.selected is not None:
        cell = subject.selected.cell.id
        explained = by_first_bad(cell, outcome, path=f"{place_of(cell)}/{FULL}")
        keep_explanation(subject.selected, explained, project.progress, {FULL: dumped})
    return outcome


def _refuse_what_is_not_searched(project: Project) -> None:
    if project.resume is not None:
        raise ConfigError("--resume beside --over", "repeat the same command: what was answered is kept")
    if "new_profile" in project.overrides:
        raise ConfigError("--new-profile beside --over: a search has one profile", "name it with --profile")
    if "latency" in project.overrides:
        raise ConfigError("--latency beside --over: what is only slower is not searched for there", "leave it out")


def _next_command(outcome: FirstBad, subject: Subject, names: Sequence[str]) -> str:
    """Return the command that goes on between the two neighbours; empty where there is none."""
    ends = outcome.conclusion
    if not (ends.last_good and ends.first_bad) or subject.model.kind is not ArtifactKind.TORCHSCRIPT:
        return ""
    return bisect_command(subject.model.name, ends.last_good, ends.first_bad, subject.project, releases=names)


def _line(releases: Sequence[str], subject: Subject) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    project = subject.project
    ends = [_in_full(text, project) for text in (subject.settings.old, subject.settings.new)]
    if releases:
        inner = [_in_full(text, project) for text in releases]
        named = in_order([text for text in inner if text not in ends], ends[0], ends[1])
        return named, "as named", ()
    specs = [project.release(text, names=ends) for text in ends]
    if any(spec.release is None for spec in specs):
        raise ConfigError("a ready-made interpreter has no releases after it", "name the releases with --releases")
    in_order((), ends[0], ends[1])  # refuses equal ends
    pythons = find_pythons()
    python = specs[1].python or choose_python(ends, list(pythons))
    index = ReleaseIndex(
        uv=find_uv(),
        python=python,
        interpreter=verified_python(python, pythons),
        index_args=specs[1].index_args,
        folder=project.builder.root / "releases",
    )
    listing = index.releases(ends[0], ends[1])
    source = f"package index, Python {python}, asked {listing.asked[:10]}"
    return listing.releases, source, (listing.note,) if listing.note else ()


def _in_full(text: str, project: Project) -> str:
    return project.release(text, names=(text,)).release or text


def specs_of(names: Sequence[str], project: Project) -> dict[str, EnvSpec]:
    specs = _with_python(project.releases(names), names)
    backend = common_build([specs[names[0]], specs[names[-1]]], project.builder)
    return {name: with_build(spec, backend) for name, spec in specs.items()}


def _with_python(specs: dict[str, EnvSpec], names: Sequence[str]) -> dict[str, EnvSpec]:
    ends = [specs[name] for name in (names[0], names[-1])]
    open_ends = [spec.release for spec in ends if spec.release is not None and spec.python is None]
    if not open_ends:
        open_ends = [spec.release for spec in specs.values() if spec.release is not None and spec.python is None]
    if not open_ends:
        return specs
    python = choose_python(open_ends, list(find_pythons()))
    return {
        name: replace(spec, python=python) if spec.release is not None and spec.python is None else spec
        for name, spec in specs.items()
    }
