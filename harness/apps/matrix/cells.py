"""The version matrix: every release exports, every other one loads the result, one environment at a time."""

from collections.abc import Sequence
from dataclasses import replace

from harness.artifacts.archive.code import CodeMemory
from harness.checks.outputs.compare import answers_hold_value, compare_alone
from harness.checks.prediction.predict import predict
from harness.core.findings import cell_reason
from harness.core.outcome import Outcome, Status
from harness.core.plan import Cell, Plan
from harness.core.prediction import PredictedLoad, StaticVerdict
from harness.core.probe import ModelResult
from harness.core.releases import GIVEN, SAME, MatrixCell
from harness.core.verdict import CellVerdict
from harness.machine import pool
from harness.probing.alone import deadline_of
from harness.probing.facts import Effects, Export, Provisioned
from harness.search.release import Release, Row, make_row
from harness.verdict.alone import judge_one, not_made, unsupported_words
from harness.verdict.cell import judge_alone
from harness.verdict.inputs import with_inputs
from harness.verdict.matrix import direction_of
from harness.verdict.prediction import deciding, loading


def matrix_rows(plan: Plan, releases: Sequence[Release], golden_in: Release, effects: Effects) -> list[Row]:
    """Return a row per exporter, and last one of the artifacts that are given; each release ends its processes."""
    made = [model for model in plan.models if model.given is None]
    given = [model for model in plan.models if model.given is not None]
    facts = Provisioned(plan=plan, fingerprints={release.key: release.fingerprint for release in releases})
    memory = CodeMemory()
    rows = []
    for release in releases:
        if made:
            rows.append(make_row(release.name, release, made, facts, effects, memory=memory))
        if given and release is golden_in:
            rows.append(make_row(GIVEN, release, given, facts, effects, memory=memory))
        effects.runner.release(release.key)
    return sorted(rows, key=lambda row: row.name == GIVEN)


def matrix_cells(rows: Sequence[Row], releases: Sequence[Release], effects: Effects) -> tuple[MatrixCell, ...]:
    cells: dict[tuple[str, str, str], MatrixCell] = {}
    for loader in releases:
        work: list[tuple[Row, Export]] = []
        for row in rows:
            for name, export in row.facts.exports.items():
                if export.artifact is None:
                    cells[row.name, loader.name, name] = _absent(row, export, loader)
                elif row.release is loader:
                    cells[row.name, loader.name, name] = _at_home(row, export, effects)
                else:
                    work.append((row, export))
        effects.progress.stage(f"load and call in {loader.name}", len(work))

        def load(item: tuple[Row, Export], loader: Release = loader) -> MatrixCell:
            cell = _abroad(*item, loader, effects)
            effects.progress.step(f"{cell.model} of {cell.exporter}: {cell.outcome.value}")
            return cell

        work.sort(key=_works_at_home)  # what hangs only waits for its deadline, while the others work
        for cell in pool.each(load, work, jobs=_jobs(rows)):
            cells[cell.exporter, loader.name, cell.model] = cell
        effects.runner.release(loader.key)
    keys = [(row.name, loader.name, name) for row in rows for loader in releases for name in row.facts.exports]
    return tuple(cells[key] for key in keys)


def _jobs(rows: Sequence[Row]) -> int:
    return rows[0].facts.plan.settings.jobs if rows else 1


def _works_at_home(item: tuple[Row, Export]) -> bool:
    row, export = item
    results = row.facts.baselines[export.declaration.name].results
    return all(result.outcome is Outcome.COMPLETED for result in results)


def _abroad(row: Row, export: Export, loader: Release, effects: Effects) -> MatrixCell:
    facts, model = row.facts, export.declaration
    baseline = facts.baselines[model.name]
    deadline = deadline_of(model, facts)
    probe = effects.runner(facts.requests.run(loader.key, [facts.artifact(model.name)], deadline))
    direction = direction_of(row.release.fingerprint, loader.fingerprint)
    verdict = judge_one(
        Cell(model.name, "alone").id,
        export=export,
        baseline=baseline,
        probe=probe,
        comparison=compare_alone(model.name, probe, baseline, facts),
        names=(row.release.environment.name, loader.environment.name),
        fingerprints={"old": row.release.fingerprint, "new": loader.fingerprint},
        effects=effects,
    )
    return _cell(row, loader, direction, verdict, probe.models[:1], evidence=effects.evidence(probe.directory))


def _at_home(row: Row, export: Export, effects: Effects) -> MatrixCell:
    """Return the cell of an artifact in the release that wrote it: the golden runs, which need no other probe."""
    facts, name = row.facts, export.declaration.name
    baseline = facts.baselines[name]
    failed = next((result for result in baseline.results if result.outcome is not Outcome.COMPLETED), None)
    cell = Cell(name, "alone").id
    home = row.release.environment.name
    if failed is None:
        verdict = CellVerdict(cell=cell, model=name, scenario="alone", status=Status.PASS)
    else:
        verdict = judge_alone(cell, old=baseline.results, new=failed, comparison=None, old_name=home, new_name=home)
        verdict = replace(verdict, note="")  # there is no upgrade that it could have failed before
    verdict = with_inputs(verdict, facts.artifact(name), answered=answers_hold_value(baseline))
    evidence = effects.evidence(baseline.directory) if baseline.directory else ""
    return _cell(row, row.release, SAME, verdict, baseline.results, evidence=evidence)


def _cell(
    row: Row, loader: Release, direction: str, verdict: CellVerdict, results: Sequence[ModelResult], *, evidence: str
) -> MatrixCell:
    static = _prediction(row, loader, verdict.model)
    failed = next((result for result in results if result.outcome is not Outcome.COMPLETED), results[0])
    happy = verdict.status is Status.PASS
    return MatrixCell(
        model=verdict.model,
        exporter=row.name,
        loader=loader.name,
        direction=direction,
        status=verdict.status,
        predicted=static.prediction if static is not None else None,
        why_predicted=_why(static),
        outcome=failed.outcome,
        happened=loading(results),
        kind="" if happy else next(iter(verdict.kinds), ""),
        reason="" if happy else cell_reason(verdict),
        evidence=evidence,
    )


def _prediction(row: Row, loader: Release, model: str) -> StaticVerdict | None:
    here, there = row.release.registry, loader.registry
    if model not in row.read or here is None or there is None:
        return None
    return predict(row.read[model], {"old": here, "new": there})["new"]


def _why(static: StaticVerdict | None) -> str:
    reasons = deciding(static) if static is not None else ()
    return f"{reasons[0].subject}: {reasons[0].text}" if reasons else ""


def _absent(row: Row, export: Export, loader: Release) -> MatrixCell:
    unsupported = export.outcome is Outcome.UNSUPPORTED
    return MatrixCell(
        model=export.declaration.name,
        exporter=row.name,
        loader=loader.name,
        direction=direction_of(row.release.fingerprint, loader.fingerprint),
        status=Status.UNSUPPORTED if unsupported else Status.INCONCLUSIVE,
        exported=False,
        outcome=export.outcome,
        happened=PredictedLoad.UNKNOWN,
        kind="not_measured" if unsupported else "export_error",
        reason=unsupported_words(export) if unsupported else not_made(export, row.release.environment.name),
    )
