"""The stage of a run that reads its artifacts and predicts what both releases will do with them."""

from collections.abc import Mapping
from dataclasses import replace

from harness.artifacts.archive.code import CodeMemory
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.predict import never_loads, runs_code, touches_files
from harness.checks.prediction.registries import registries_of
from harness.core.archive import OperatorRegistry
from harness.core.errors import GateError
from harness.core.outcome import Outcome
from harness.core.prediction import InspectedFile
from harness.core.text import first_few
from harness.probing.facts import Effects, ExportedByBoth, Inspected


def predict_loading(facts: ExportedByBoth, effects: Effects) -> Inspected:
    """Return the facts with predictions, also for archives the new release wrote; if one cannot say, a note tells."""
    effects.progress.stage("operators of both releases" if "old" in effects.environments else "operators")
    try:
        registries = registries_of(effects.environments, effects.environment_root)
    except GateError as error:
        notes = (f"nothing was predicted: {error.message}",)
        return Inspected(**ExportedByBoth.known(facts), predictions={}, static_notes=notes)
    return predict_with(registries, facts, effects)


def predict_with(registries: Mapping[str, OperatorRegistry], facts: ExportedByBoth, effects: Effects) -> Inspected:
    """Return the facts with the predictions that follow from what the releases accept, by side."""
    exports = [facts.exports[model.name] for model in facts.plan.models]
    artifacts = [export.artifact for export in exports if export.artifact is not None]
    untried = [
        (export.declaration.name, export.declaration.given)
        for export in exports
        if export.outcome is Outcome.UNSUPPORTED and export.declaration.given is not None
    ]
    written = [way.export.artifact for way in facts.rollback_probes.values() if way.export.artifact is not None]
    effects.progress.stage("static check", len(artifacts) + len(written) + len(untried))
    memory = CodeMemory()

    def read(model: str, path: str, within: str = "") -> InspectedFile:
        file = inspect_file(path, registries, memory, within=within)
        effects.progress.step(model)
        return file

    predictions = {artifact.model: read(artifact.model, artifact.path) for artifact in artifacts}
    predictions |= {name: read(name, given.path, given.within) for name, given in untried}
    ways = {
        artifact.model: replace(facts.rollback_probes[artifact.model], file=read(artifact.model, artifact.path))
        for artifact in written
    }
    facts = replace(facts, rollback_probes={**facts.rollback_probes, **ways})
    notes = tuple(_file_notes(predictions))
    return Inspected(**ExportedByBoth.known(facts), predictions=predictions, static_notes=notes)


def _file_notes(predictions: Mapping[str, InspectedFile]) -> list[str]:
    facts = {name: file.facts for name, file in predictions.items() if file.facts is not None}
    warnings = {
        "may write or read files of this user when called (aten::save, aten::from_file)": touches_files,
        "code in the file runs when it is loaded (a .pt2 is unpickled, a package's library opened)": runs_code,
    }
    warned = {what: [name for name, fact in facts.items() if does(fact)] for what, does in warnings.items()}
    notes = [f"{first_few(names, 3)}: {what}" for what, names in warned.items() if names]
    for name, fact in facts.items():
        notes += [f"{name}: was saved, and {finding.words}: {finding.what_to_do}" for finding in never_loads(fact)[:1]]
    return notes
