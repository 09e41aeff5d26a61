"""Golden records by command: proposed from a run; accepted or rejected with a reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.config.selection import select
from harness.domain.golden import RecordDiff, Source
from harness.domain.report import RunReport
from harness.errors import GoldenError
from harness.golden import decisions
from harness.golden.decisions import Compared, Why
from harness.run.files import read_report
from harness.run.golden.review import diff
from harness.run.options import Options, golden_store
from harness.store.run_folder import RunDir, StoredBaseline, find_run
from harness.system import clock
from harness.system.person import who
from harness.tensors.decode import DecodeError
from harness.tensors.outputs import Outputs
from harness.tensors.recorded import read_outputs


@dataclass(frozen=True, kw_only=True)
class Proposing:
    """What became of the models of a run.

    Attributes:
        diffs: proposals that wait now, against the accepted records.
        same: models whose accepted record says the same already.
        left_out: (model, why there is nothing to propose).
    """

    diffs: tuple[RecordDiff, ...] = ()
    same: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def propose(options: Options, run_name: str) -> Proposing:
    """Write the golden outputs of a run as proposals; return what became of each selected model.

    Raises:
        SelectionError: no such run, or nothing matches ``-k``.
        GoldenError: the run has no golden outputs of its own.
    """
    folder = find_run(options.reports, run_name, with_report=True)
    plan = RunDir(folder).load_plan()
    if plan.golden is not None:
        raise GoldenError(f"{folder.name} was judged by golden records", "propose from a run with the old release")
    report = read_report(options, run_name).report
    store, producer = golden_store(options), report.old.fingerprint
    source = Source(run=folder.name, profile=replace(plan.settings.profile, env={}))
    waiting, same, left_out = [], [], []
    baselines = RunDir(folder).baselines()
    for model in select(plan.models, options.expression):
        found = baselines.get(model.name)
        outputs = _recorded(found)
        why = _not_golden(model.name, outputs, report)
        if why or found is None or producer is None:
            left_out.append((model.name, why))
        elif store.propose(found.artifact, outputs, producer, plan.device, source) is not None:
            waiting.append(model.name)
        else:
            same.append(model.name)
    diffs = diff(options, waiting).diffs if waiting else ()
    return Proposing(diffs=diffs, same=tuple(same), left_out=tuple(left_out))


def _recorded(found: StoredBaseline | None) -> Outputs:
    """Return the golden outputs of a run; none where they, or the artifact that gave them, are no longer there."""
    if found is None or not (Path(found.artifact.path).is_file() and Path(found.artifact.inputs_dir).is_dir()):
        return Outputs(calls={})
    try:
        return read_outputs(found.directory, found.artifact.model)
    except DecodeError:
        return Outputs(calls={})


def _not_golden(model: str, outputs: Outputs, report: RunReport) -> str:
    """Return why a model of the run has no golden outputs that one may keep; empty where it has."""
    if not outputs.calls or report.old.fingerprint is None:
        return "the old release gave no outputs in this run, or they are no longer in its folder"
    unstable = sorted(
        {
            path
            for told in report.models
            if told.model == model
            for comparison in told.comparisons
            if comparison.scenario == "alone"
            for path in comparison.unstable
        }
    )
    return f"{', '.join(unstable[:3])} differs between repeats of the old release itself" if unstable else ""


def accept(options: Options, models: Sequence[str], reason: str, *, in_place: bool = False) -> list[tuple[str, str]]:
    """Accept proposals, or what lies in the records already, with a reason; return (model, what that changes)."""
    store, why = golden_store(options), _why(options, reason, "say why these outputs are right: --reason TEXT")
    if in_place:
        return [(name, "") for name in decisions.accept_in_place(store, models, why)]
    compared = _compared(options, models)
    decisions.accept(store, list(compared), why, compared)
    return [(name, found.change) for name, found in compared.items()]


def reject(options: Options, models: Sequence[str], reason: str) -> list[str]:
    """Reject proposals with a reason; return their names."""
    why = _why(options, reason, "say what is wrong with these outputs: --reason TEXT")
    compared = _compared(options, models)
    decisions.reject(golden_store(options), list(compared), why, compared)
    return list(compared)


def _why(options: Options, reason: str, hint: str) -> Why:
    if not reason.strip():
        raise GoldenError("a golden record is accepted or rejected with a reason", hint)
    return Why(reason=" ".join(reason.split()), by=who(options.project), at=clock.utc_now())


def _compared(options: Options, models: Sequence[str]) -> dict[str, Compared]:
    """Return the proposals that were named, compared with what is accepted now; ``all`` is every one that waits.

    Raises:
        GoldenError: none waits, or ``MODEL@RECORD`` names another one than waits by now.
    """
    proposed = golden_store(options).proposed()
    named = dict.fromkeys(proposed, "") if list(models) == ["all"] else dict(_named(models, proposed))
    if not named:
        raise GoldenError("no proposal is waiting", "python -m harness golden propose RUN")
    compared = {}
    for found in diff(options, list(named)).diffs:
        record = found.new.record if found.new is not None else ""
        if not record.startswith(named[found.model]):
            message = f"the proposal for {found.model} is record {record[:12]}, not {named[found.model]}"
            raise GoldenError(message, f"look at it again: python -m harness golden diff {found.model}")
        compared[found.model] = Compared(record=record, change=f"{found.change}: {found.words}")
    return {name: compared[name] for name in named}


def _named(models: Sequence[str], proposed: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (model, the beginning of its record's digest) of ``MODEL`` and ``MODEL@RECORD``."""
    for model in models:
        name, _, record = model.rpartition("@")
        yield (name, record) if model not in proposed and name in proposed else (model, "")
