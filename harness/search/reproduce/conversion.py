"""Makes a reproducer of a part that is not convertible: TorchScript answers, and torch's own converter gives up."""

from pathlib import Path

from harness.artifacts.adopted import archive_code
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.recorded import read_inputs
from harness.core.diagnosis import Culprit, Issue, Reproducer, Symptom
from harness.probing.facts import Effects, Exported
from harness.search.reproduce.files import ARCHIVE, ISSUE, PROGRAM, Tensors, is_small
from harness.search.reproduce.folder import Draft, finished, folder_name
from harness.search.reproduce.program import DOES, label_of, part_artifact
from harness.verdict.reproduction import looked_for

# A conversion takes seconds; torch.export imports for as long.
WAIT_S = 60.0


def reproduce_conversion(culprit: Culprit, model: str, facts: Exported, effects: Effects) -> Reproducer:
    """Return a reproducer of nodes that are not convertible; one that lies there already, of the same part, is kept."""
    part = part_artifact(culprit, model, facts, effects)
    archive = Path(part.path)
    label = f"{part.digest[:8]} {model} {label_of(culprit.nodes)}"
    name = folder_name(label, 0)
    if all((effects.folder(name) / file).is_file() for file in (PROGRAM, ISSUE)):
        return Reproducer(operator=label, folder=name)
    failure = effects.runner(facts.requests.convert("new", part, [part.input_sets[0].name])).models[0].failure
    if failure is None:
        return Reproducer(operator=label, note="the converter ends the process, which this script does not show")
    tensors = Tensors()
    try:
        recorded = read_inputs(Path(part.inputs_dir))
    except DecodeError as error:
        return Reproducer(operator=label, note=str(error))
    ((_, _, tree),) = recorded.entries
    small = is_small(archive)
    draft = Draft(
        kind="conversion",
        label=label,
        case={
            "recorded": f"not convertible in torch {facts.fingerprints['new'].torch}",
            "symptom": looked_for(Symptom.CONVERSION, failure),
            "artifact": {"file": ARCHIVE if small else None, "note": "" if small else Path(culprit.artifact).name},
            "arguments": tensors.taken(tree, recorded.buffer),
        },
        tensors=tensors,
        archive=archive if small else None,
        outside=None if small else archive,
        wait_s=WAIT_S,
        by_itself=True,
        issue=Issue(
            what=f"TS2EPConverter: a TorchScript program of {label_of(culprit.nodes)}",
            does=DOES[Symptom.CONVERSION],
            fine="TorchScript itself answers.",
            expected="An ExportedProgram, as TorchScript answers with the same arguments",
            actual=(culprit.new or f"raises {failure.type}: {failure.message}",),
            nodes=culprit.nodes,
            code=archive_code(str(archive)),
            old=facts.fingerprints["old"],
            new=facts.fingerprints["new"],
            remarks=() if culprit.minimal else ("The search ended before it was known whether each node is needed.",),
        ),
    )
    return finished(draft, facts, effects, index=0)
