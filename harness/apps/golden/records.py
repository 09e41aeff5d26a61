"""Golden records by command: proposed from a run, compared, accepted with a reason, verified, tidied up."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.apps.golden.review import change_of, compare_records, facts_between, gravest_first
from harness.apps.report.files import read_report
from harness.artifacts.golden_index import PROPOSED, RECORDS, locked
from harness.artifacts.golden_records import ATTRIBUTES, IGNORED, GoldenStore, Why
from harness.artifacts.records import own_record, run_of, same_content
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.trees import leaves
from harness.checks.outputs.compare import precision_under
from harness.config.selection import select
from harness.core.comparison import OutputComparison
from harness.core.errors import ConfigError, GoldenError
from harness.core.golden import (
    RECORD,
    GoldenRecord,
    GoldenStatus,
    LeftOver,
    RecordChange,
    RecordDiff,
    RecordFacts,
    RecordProblem,
    Review,
    Source,
    Trust,
)
from harness.core.models import ModelDeclaration
from harness.core.report import RunReport
from harness.machine import clock
from harness.machine.files import remove, size_of
from harness.machine.person import who
from harness.probing.verification import legible_outputs
from harness.project import Project, shown_path
from harness.store import probe_files
from harness.store.run_folder import BASELINES, RunDir, StoredBaseline, find_run
from harness.worker import wire

NOBODY = "no model is called so any more"
UNNAMED = "the index does not name it"


@dataclass(frozen=True, kw_only=True)
class Proposing:
    """What became of the models of a run.

    ``diffs``: proposals that wait now, against the accepted records; ``same``: models whose accepted record says the
    same already; ``left_out``: (model, why there is nothing to propose).
    """

    diffs: tuple[RecordDiff, ...] = ()
    same: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def propose(project: Project, run_name: str) -> Proposing:
    folder = find_run(project.reports, run_name, with_report=True)
    plan = RunDir(folder).load_plan()
    if plan.golden is not None:
        raise GoldenError(f"{folder.name} was judged by golden records", "propose from a run with the old release")
    report = read_report(project, run_name).report
    if report.judgement.interrupted:
        raise GoldenError(f"{folder.name} was interrupted", f"finish it: --resume {folder.name}")
    store, producer = project.golden_store(), report.old.fingerprint
    source = Source(run=folder.name, profile=replace(plan.settings.profile, env={}))
    waiting: list[str] = []
    same: list[str] = []
    left_out: list[tuple[str, str]] = []
    baselines = RunDir(folder).baselines()
    for model in select(plan.models, project.expression):
        baseline = baselines.get(model.name)
        outputs = _recorded(baseline)
        why = _not_golden(model.name, outputs, report) or _foreign(model.name, baseline, folder)
        if why or baseline is None or producer is None:
            left_out.append((model.name, why))
            continue
        try:
            waits = store.propose(baseline.artifact, outputs, producer, plan.device, source) is not None
        except GoldenError as error:
            left_out.append((model.name, str(error)))
        else:
            (waiting if waits else same).append(model.name)
    diffs = diff(project, waiting).diffs if waiting else ()
    return Proposing(diffs=diffs, same=tuple(same), left_out=tuple(left_out))


def _recorded(baseline: StoredBaseline | None) -> Outputs:
    """Return the golden outputs of a run; empty if they, or the artifact that gave them, are gone."""
    # os.path: Path.is_file raises where a name is too long, and baselines.json may name anything
    if baseline is None or not (os.path.isfile(baseline.artifact.path) and os.path.isdir(baseline.artifact.inputs_dir)):  # noqa: PTH112, PTH113
        return Outputs(calls={})
    return legible_outputs(baseline.directory, baseline.artifact.model)


def _foreign(model: str, baseline: StoredBaseline | None, run: Path) -> str:
    """Return why what ``baselines.json`` names may not become a record: it may name any file of this user's."""
    if baseline is None:
        return ""
    if baseline.artifact.model != model:
        return f"{run.name}/{BASELINES} names the answers of another model"
    inputs, outputs = Path(baseline.artifact.inputs_dir), Path(baseline.directory)
    folders = (inputs, outputs / wire.OUTPUTS)
    recorded = [folder / name for folder in folders for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN)]
    for path in (Path(baseline.artifact.path), *recorded, outputs / probe_files.PACKED):
        if not Path(os.path.realpath(path)).is_relative_to(run.resolve()):
            return f"{path} lies outside of {run}: a proposal is made of a run's own files"
    return ""


def _not_golden(model: str, outputs: Outputs, report: RunReport) -> str:
    """Return why a model of the run has no golden outputs fit to be kept; empty if it has."""
    if not outputs.calls or report.old.fingerprint is None:
        return "the old release gave no outputs in this run, or they are no longer in its folder"
    unstable = sorted(
        {
            path
            for row in report.models
            if row.model == model
            for comparison in row.comparisons
            if comparison.scenario == "alone"
            for path in comparison.unstable
        }
    )
    return f"{', '.join(unstable[:3])} differs between repeats of the old release itself" if unstable else ""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A record with its outputs; ``facts`` are what a diff says of it."""

    record: GoldenRecord
    outputs: Outputs
    facts: RecordFacts


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the outputs of a model are to be read: as the project declares it."""

    declared: Mapping[str, ModelDeclaration]
    computes_in: Mapping[str, str]


def diff(project: Project, models: Sequence[str] = (), since: str | None = None) -> Review:
    """Return what the waiting proposals change; or, with ``since``, what changed since another golden folder.

    ``models``: those that are compared; empty: all that differ; ``since``: a golden folder from before, such as that of
    the main branch.
    """
    store, reading = project.golden_store(), _reading(project)
    if since is None:
        names = tuple(models) or store.proposed()
        diffs = [_proposal_diff(store, name, reading) for name in names]
        return Review(old="accepted", new="proposed", diffs=gravest_first(diffs))
    before = _earlier(since)
    ours, theirs = store.entries(), before.entries()
    unknown = [name for name in models if name not in ours and name not in theirs]
    if unknown:
        raise GoldenError(f"there is no golden record of {unknown[0]}, here or in {since}", "see golden status")
    names = tuple(models) or tuple(
        name
        for name in sorted({*ours, *theirs})
        if name not in ours or name not in theirs or ours[name].sha256 != theirs[name].sha256
    )
    diffs = [_diff(name, _accepted(before, name), _accepted(store, name), reading) for name in names]
    return Review(old=f"accepted in {since}", new="accepted now", diffs=gravest_first(diffs))


def status(project: Project) -> GoldenStatus:
    store = project.golden_store()
    folder = shown_path(store.folder)
    try:
        names = store.names()
    except GoldenError as error:
        return GoldenStatus(folder=folder, problems=(_problem("", error),))
    problems: list[RecordProblem] = []
    for name in names:
        with _noting(problems, name):
            store.record(name)
    useless = 0 if problems else len(left_over(project))
    waiting, reading = list[RecordDiff](), _reading(project)
    for name in store.proposed():
        with _noting(problems, name):
            waiting.append(_proposal_diff(store, name, reading))
    return GoldenStatus(
        folder=folder,
        accepted=store.trust(names),
        waiting=gravest_first(waiting),
        problems=tuple(problems),
        left_over=useless,
    )


@contextlib.contextmanager
def _noting(problems: list[RecordProblem], name: str) -> Iterator[None]:
    try:
        yield
    except GoldenError as error:
        problems.append(_problem(name, error))


def _problem(model: str, error: GoldenError) -> RecordProblem:
    return RecordProblem(model=model, message=error.message, hint=error.hint)


def _earlier(since: str) -> GoldenStore:
    """Return the earlier golden folder; a path is relative to the working directory."""
    store = GoldenStore(Path(since))
    if not store.exists():
        raise GoldenError(f"--since {since}: there is no such folder", "name the golden folder of an earlier commit")
    return store


def _reading(project: Project) -> Reading:
    declared = {model.name: model for model in declared_models(project)}
    return Reading(declared=declared, computes_in=project.settings.computes_in)


def _proposal_diff(store: GoldenStore, name: str, reading: Reading) -> RecordDiff:
    record, sha256, outputs = store.proposal(name)
    new = Kept(record=record, outputs=outputs, facts=_facts(record, sha256, outputs))
    try:
        old = _accepted(store, name)
    except GoldenError as error:  # it can still be replaced, which repairs it
        words = f"the accepted record cannot be compared: {error.message}"
        return RecordDiff(model=name, change=RecordChange.UNKNOWN, words=words, new=new.facts)
    return _diff(name, old, new, reading)


def _accepted(store: GoldenStore, name: str) -> Kept | None:
    if name not in store.entries():
        return None
    record = store.record(name)
    outputs = store.outputs(name)
    (trust,) = store.trust([name])
    return Kept(record=record, outputs=outputs, facts=_facts(record, trust.record, outputs, trust))


def _facts(record: GoldenRecord, sha256: str, outputs: Outputs, trust: Trust | None = None) -> RecordFacts:
    return RecordFacts(
        record=sha256,
        release=record.producer.torch,
        run=run_of(record),
        device=record.device,
        calls=len(outputs.calls),
        tensors=sum(1 for tree in outputs.calls.values() for _ in leaves(tree)),
        trust=trust,
    )


def _diff(name: str, old: Kept | None, new: Kept | None, reading: Reading) -> RecordDiff:
    if old is None or new is None:
        kept = new or old
        assert kept is not None
        words = f"{kept.facts.tensors} tensors in {kept.facts.calls} calls, by torch {kept.facts.release}"
        return RecordDiff(
            model=name,
            change=RecordChange.NEW if old is None else RecordChange.GONE,
            words=words,
            old=old.facts if old else None,
            new=new.facts if new else None,
        )
    comparison = _compared(name, old, new, reading)
    change, words = change_of(comparison)
    return RecordDiff(
        model=name,
        change=change,
        words=words,
        old=old.facts,
        new=new.facts,
        facts=facts_between(old.record, new.record),
        comparison=comparison,
    )


def _compared(name: str, old: Kept, new: Kept, reading: Reading) -> OutputComparison:
    model = reading.declared.get(name)
    declared = reading.computes_in.get(name) if model is None or model.tolerance is None else model.tolerance
    numerics = new.record.profile.numerics if new.record.profile is not None else {}
    try:
        return compare_records(
            name,
            old.outputs,
            new.outputs,
            precision=declared or precision_under(numerics),
            unordered=model.unordered if model is not None else (),
        )
    except DecodeError as error:
        raise GoldenError(f"the record of {name} cannot be read: {error}", "propose it again") from error


def accept(project: Project, models: Sequence[str], reason: str) -> list[tuple[str, str]]:
    """Accept proposals with a reason; return (model, what that changes)."""
    if not reason.strip():
        raise GoldenError("a golden record is accepted with a reason", "say why these outputs are right: --reason TEXT")
    why = Why(reason=" ".join(reason.split()), by=who(project.folder), on=clock.today())
    compared = _named_proposals(project, models)
    project.golden_store().accept(list(compared), why, {name: record for name, (record, _) in compared.items()})
    return [(name, change) for name, (_, change) in compared.items()]


def _named_proposals(project: Project, models: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return (record, what it changes) of the named proposals, ``all`` or some, compared with what is accepted now."""
    proposed = project.golden_store().proposed()
    named = dict.fromkeys(proposed, "") if list(models) == ["all"] else dict(_named(models, proposed))
    if not named:
        raise GoldenError("no proposal is waiting", "propose one: golden propose RUN")
    compared = {}
    for item in diff(project, list(named)).diffs:
        record = item.new.record if item.new is not None else ""
        if not record.startswith(named[item.model]):
            message = f"the proposal for {item.model} is record {record[:12]}, not {named[item.model]}"
            raise GoldenError(message, f"look at it again: golden diff {item.model}")
        compared[item.model] = (record, f"{item.change}: {item.words}")
    return {name: compared[name] for name in named}


def _named(models: Sequence[str], proposed: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (model, the beginning of its record's digest) of ``MODEL`` and ``MODEL@RECORD``."""
    for model in models:
        name, _, record = model.rpartition("@")
        yield (name, record) if model not in proposed and name in proposed else (model, "")


def declared_models(project: Project) -> tuple[ModelDeclaration, ...]:
    """Return the models that the project declares; none if they are given on the command line."""
    project.settings  # noqa: B018  a wrong configuration is an error all the same
    try:
        return project.models.models
    except ConfigError:  # a fixture that cannot be read says nothing about the records
        return ()


def left_over(project: Project) -> tuple[LeftOver, ...]:
    """Return what ``gc`` would remove: what no record names, and what belongs to no declared model."""
    store = project.golden_store()
    declared = {model.name for model in declared_models(project)}
    # If not one record has its model, this is another project's folder, or models are given on the command line.
    gone = [name for name in store.names() if name not in declared] if declared & set(store.names()) else []
    return (*_records(store, gone), *_proposals(store, declared))


def collect(project: Project, removable: Sequence[LeftOver]) -> None:
    store = project.golden_store()
    if models := [item.model for item in removable if item.model]:
        store.remove(models)
    with locked(store.folder):
        still = {item.path for item in left_over(project)}
        for item in removable:
            if not item.model and item.path in still:
                remove(Path(item.path))


def _records(store: GoldenStore, gone: Sequence[str]) -> Iterator[LeftOver]:
    records = store.folder / RECORDS
    for name in store.names():
        if name in gone:  # its folder may be missing: removed by another branch, before a merge
            yield _item(records / name, f"an accepted record, and {NOBODY}", model=name)
        else:
            folder, named = store.record_folder(name), {RECORD, *store.record(name).files}
            yield from (_item(path, UNNAMED) for path in _within(records / name) if path != folder)
            beside = [path for path in _within(folder) if path.name not in named]
            yield from (_item(path, "the record does not name it") for path in beside)
    known = {*store.names(), ATTRIBUTES}
    yield from (_item(path, UNNAMED) for path in _within(records) if path.name not in known)


def _within(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _proposals(store: GoldenStore, declared: set[str]) -> Iterator[LeftOver]:
    for folder in _within(store.folder / PROPOSED):
        why = _useless(store, folder, declared)
        if why and folder.name != IGNORED:
            yield _item(folder, why)


def _useless(store: GoldenStore, folder: Path, declared: set[str]) -> str:
    try:
        record, _ = own_record(folder, folder.name)
    except GoldenError:
        return "no whole proposal"
    if declared and folder.name not in declared:
        return f"a proposal, and {NOBODY}"
    known = store.record(folder.name) if folder.name in store.names() else None
    return "the accepted record says the same" if known is not None and same_content(known, record) else ""


def _item(path: Path, why: str, *, model: str = "") -> LeftOver:
    return LeftOver(path=shown_path(path), why=why, size_bytes=size_of(path), model=model)
