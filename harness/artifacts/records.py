"""One golden record: written, and read with every byte verified. It has one format, wherever it lies.

    record.json  specs, provenance, what was declared of the model, and the sha256 of the files beside it
    artifact     the artifact, byte for byte, of whatever kind; left out of git where it is large
    inputs       the bytes of its recorded inputs
    values       the bytes of its answers, equal ones once

``golden/records/MODEL/DIGEST`` and ``golden/proposed/MODEL`` hold these files, and ``NAME.gate`` is a zip of them.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from harness.artifacts.adopted import has_digest, inputs_digest
from harness.artifacts.old_outputs import Remembered
from harness.artifacts.tensors.checking import Digests, Spec, check_sample, checked_tree
from harness.artifacts.tensors.decode import Buffer, DecodeError
from harness.artifacts.tensors.outputs import CallKey, Outputs, SideEffects
from harness.artifacts.tensors.recorded import bytes_of
from harness.artifacts.tensors.trees import Tree, mapped
from harness.core.errors import GoldenError
from harness.core.golden import ARTIFACT, FILES, INPUTS, RECORD, RECORD_SCHEMA_VERSION, VALUES, Answer, GoldenRecord
from harness.core.models import Artifact
from harness.machine.files import unwritable
from harness.store import codec
from harness.store.json import DAMAGE, JsonError, from_json, parsed
from harness.worker import wire

AGAIN = "propose and accept it again"
CHUNK_BYTES = 1 << 20
GOLDEN, REPEAT, THREADS, REFERENCE = RUNS = ("golden", "repeat", "threads", "reference")

Write = Callable[[str, Iterable[bytes]], str]
"""Writes a file of a record, by its name, and returns its sha256."""


def write_record(
    record: GoldenRecord, artifact: Artifact, remembered: Remembered, write: Write, *, keep_artifact: bool = True
) -> GoldenRecord:
    """Write the files of a record, and return what its ``record.json`` says.

    Args:
        record: what it says of itself; inputs, answers and digests are filled in here, paths and variables taken out.
        artifact: with the paths of the file and of its recorded inputs.

    Raises:
        GoldenError: artifact or inputs cannot be read.
        OSError: a file cannot be written.
    """
    inputs, answers = Path(artifact.inputs_dir), list[Answer]()
    files = {ARTIFACT: write(ARTIFACT, chunks_of(Path(artifact.path)))} if keep_artifact else {}
    files[INPUTS] = write(INPUTS, chunks_of(inputs / wire.TENSORS_BIN))
    files[VALUES] = write(VALUES, _values(remembered, answers))
    source = record.source
    record = replace(
        record,
        producer=replace(record.producer, env_vars={}),
        source=replace(source, profile=replace(source.profile, env={})) if source is not None else None,
        artifact=replace(artifact, path="", inputs_dir="", schedule=()),
        inputs=_index(inputs / wire.TENSORS_INDEX),
        answers=answers,
        files=files,
    )
    write(RECORD, [codec.canonical(record)])
    return record


def chunks_of(path: Path) -> Iterator[bytes]:
    """Yield the content of a file. Raises ``GoldenError``: it cannot be read."""
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise GoldenError(f"{path} cannot be read: {error.strerror or error}", AGAIN) from error


def _index(path: Path) -> list[Any]:
    try:
        return [parsed(line) for line in b"".join(chunks_of(path)).decode().splitlines()]
    except (ValueError, RecursionError) as error:
        raise GoldenError(f"{path} is damaged: {error}", "run again, then propose") from error


def _values(remembered: Remembered, answers: list[Answer]) -> Iterator[bytes]:
    """Yield the bytes of the tensors, equal ones once; append the answers that point to them to ``answers``."""
    known: dict[bytes, int] = {}
    fresh: list[bytes] = []
    end = 0

    def add(data: bytes) -> int:
        nonlocal end
        digest = hashlib.sha256(data).digest()
        if digest not in known:
            known[digest] = end
            end += len(data)
            fresh.append(data)
        return known[digest]

    for answer in answers_of(remembered, add):
        answers.append(answer)
        yield from fresh
        fresh.clear()


def answers_of(remembered: Remembered, add: Callable[[bytes], int]) -> Iterator[Answer]:
    """Yield an answer per call; ``add`` keeps the bytes of a tensor and returns where they lie."""
    for run, index, outputs in _runs(remembered):
        for (input_set, call), tree in sorted(outputs.calls.items(), key=lambda item: item[0]):
            moved = _moved(tree, outputs, add)
            answer = Answer(run=run, index=index, input_set=input_set, call=call, tree=moved)
            if outputs.effects is not None:
                effects = outputs.effects[input_set, call]
                changed = {path: _moved(value, outputs, add) for path, value in effects.changed.items()}
                answer = replace(answer, changed=changed, shared=effects.shared)
            yield answer


def _runs(remembered: Remembered) -> Iterator[tuple[str, int, Outputs]]:
    reference = () if remembered.reference is None else (remembered.reference,)
    kinds = (
        (GOLDEN, (remembered.golden,)),
        (REPEAT, remembered.repeats),
        (THREADS, remembered.other_threads),
        (REFERENCE, reference),
    )
    for run, many in kinds:
        yield from ((run, index, outputs) for index, outputs in enumerate(many))


def _moved(tree: Tree, outputs: Outputs, add: Callable[[bytes], int]) -> Tree:
    def moved(spec: Spec, _path: str) -> Spec:
        data = bytes(memoryview(outputs.buffer)[spec["offset"] : spec["offset"] + spec["nbytes"]])
        return {**spec, "offset": add(data), "sha256": hashlib.sha256(data).hexdigest()}

    return mapped(tree, moved, with_keys=True)


class _Version(msgspec.Struct):
    schema_version: int


def parsed_record(data: bytes, where: str, hint: str) -> GoldenRecord:
    """Return what a ``record.json`` says; errors begin with ``where``. Raises ``GoldenError``: damaged, too new."""
    try:
        version = from_json(data, _Version).schema_version
        if version > RECORD_SCHEMA_VERSION:
            read = f"and this gate reads versions up to {RECORD_SCHEMA_VERSION}"
            raise GoldenError(f"{where} is of version {version}, {read}", "use a gate as new as the one that wrote it")
        record = from_json(data, GoldenRecord)
    except JsonError as error:
        raise GoldenError(f"{where} is damaged or from another version: {str(error)[:200]}", hint) from error
    if not {INPUTS, VALUES} <= set(record.files) <= set(FILES):
        raise GoldenError(f"{where} names other files than {', '.join(FILES)}", hint)
    return record


def accepted_record(folder: Path, model: str, sha256: str) -> GoldenRecord:
    """Return a record, every byte verified against ``sha256`` of its ``record.json``. Raises ``GoldenError``."""
    return own_record(folder, model, sha256=sha256, since="accepted")[0]


def own_record(
    folder: Path, model: str, *, sha256: str | None = None, since: str = "proposed"
) -> tuple[GoldenRecord, str]:
    """Return a record of ``model``, and the sha256 of its ``record.json``; its files are verified.

    ``sha256``: what that of ``record.json`` must be; None for a record that nobody accepted yet; ``since``: what fixed
    the files, for errors: "changed after it was proposed". Raises ``GoldenError``: it is damaged, or its files are not
    those that it names.
    """
    path = folder / RECORD
    data = _bytes_of(path, sha256, since=since)
    record = parsed_record(data, str(path), AGAIN)
    if record.model != model:
        raise GoldenError(f"{path} is the record of {record.model}, in another model's folder", f"git checkout {path}")
    content = {name: _bytes_of(folder / name, digest, since=since) for name, digest in record.files.items()}
    archive = content.get(ARTIFACT)
    try:
        if archive is not None:
            verify_artifact(record, io.BytesIO(archive), len(archive))
        verify_values(record, content[INPUTS], content[VALUES])
    except DecodeError as error:
        raise GoldenError(f"{path} does not fit what lies beside it: {error}", AGAIN) from error
    return record, hashlib.sha256(data).hexdigest()


def _bytes_of(path: Path, sha256: str | None, *, since: str) -> bytes:
    """Return the bytes of a record's file; ``sha256`` is what they must be."""
    restore = f"git checkout {path}" if since == "accepted" else "propose it again"
    if path.is_symlink() or path.parent.is_symlink() or (path.exists() and not path.is_file()):
        raise GoldenError(f"{path} is a link or no file: a record is files of its own", restore)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise GoldenError(f"{path} cannot be read: {error.strerror or error}", restore) from error
    actual = hashlib.sha256(data).hexdigest()
    if sha256 not in (None, actual):
        raise GoldenError(
            f"{path} was changed after it was {since} (sha256 {actual[:12]}, {since} was {(sha256 or '')[:12]})",
            f"restore it ({restore}) or propose and accept it again with a reason" if since == "accepted" else restore,
        )
    return data


def verify_artifact(record: GoldenRecord, content: io.BufferedReader | io.BytesIO, size_bytes: int) -> None:
    """Raise ``DecodeError`` unless the artifact is the described one: diffs and runs trust its digest."""
    promised = record.artifact
    if size_bytes != promised.size_bytes:
        raise DecodeError(f"{ARTIFACT} has {size_bytes} bytes, and {RECORD} promises {promised.size_bytes}")
    if not has_digest(promised.digest, content, size_bytes, Path(ARTIFACT)):
        raise DecodeError(f"{ARTIFACT} is another artifact than {RECORD} says")


def verify_values(record: GoldenRecord, inputs: Buffer, values: Buffer) -> None:
    """Raise ``DecodeError`` unless inputs and answers can be read and have the digests that they say."""
    try:
        _verify_trees((entry["tree"] for entry in record.inputs), inputs)
    except (DecodeError, *DAMAGE) as error:
        raise DecodeError(f"its inputs cannot be read: {str(error)[:200] or type(error).__name__}") from error
    try:
        _verify_trees((tree for answer in record.answers for tree in (answer.tree, *_changed(answer))), values)
    except (DecodeError, *DAMAGE) as error:
        raise DecodeError(f"its golden outputs cannot be read: {str(error)[:200] or type(error).__name__}") from error
    answers = outputs_by_run(record, values)
    if (GOLDEN, 0) not in answers:
        raise DecodeError("it has no golden outputs")
    calls = answers[GOLDEN, 0].calls
    made = Counter(input_set for input_set, _ in calls)
    if calls.keys() != {(item.name, n) for item in record.artifact.input_sets for n in range(made[item.name] or 1)}:
        raise DecodeError("its golden outputs are not of the calls 0, 1, ... of its input sets")


def _verify_trees(trees: Iterable[Tree], buffer: Buffer) -> None:
    digests = Digests(buffer)

    def check(spec: Spec) -> None:
        check_sample(spec, buffer)
        digests.check(spec)

    for tree in trees:
        checked_tree(tree, check)


def _changed(answer: Answer) -> Iterable[Tree]:
    return (answer.changed or {}).values()


def outputs_by_run(record: GoldenRecord, values: Buffer) -> dict[tuple[str, int], Outputs]:
    """Return the outputs of every run of a record, by kind and number. Raises ``DecodeError``: a call twice."""
    runs: dict[tuple[str, int], tuple[dict[CallKey, Tree], dict[CallKey, SideEffects]]] = {}
    for answer in record.answers:
        calls, effects = runs.setdefault((answer.run, answer.index), ({}, {}))
        key = (answer.input_set, answer.call)
        if answer.run not in RUNS or key in calls:
            raise DecodeError(f"{answer.run!a:.50} has call {key[1]} of {key[0]!a:.50} already, or is no run")
        calls[key] = answer.tree
        if answer.changed is not None:
            effects[key] = SideEffects(changed=answer.changed, shared=answer.shared)
    return {
        run: Outputs(calls=calls, buffer=values, effects=effects if len(effects) == len(calls) else None)
        for run, (calls, effects) in sorted(runs.items())
    }


def outputs_of(folder: Path, record: GoldenRecord) -> Outputs:
    """Return the golden outputs of a verified record; large tensors are samples. Raises ``GoldenError``."""
    return outputs_by_run(record, _bytes_of(folder / VALUES, record.files[VALUES], since="recorded"))[GOLDEN, 0]


def lay_out(record: GoldenRecord, destination: Path, chunks: Callable[[str], Iterable[bytes]]) -> Artifact:
    """Write artifact, inputs and values where a worker and ``laid_out_values`` find them; return the artifact.

    Its path is empty if it was not kept. ``chunks``: the content of a file of the record, by its name. Raises
    ``DecodeError``: a file is not what its digest promises; ``RunDirError``: ``destination`` cannot be written.
    """
    inputs = destination / "inputs"
    path = destination / f"artifact{record.artifact.kind.suffix}" if ARTIFACT in record.files else None
    targets = {ARTIFACT: path, INPUTS: inputs / wire.TENSORS_BIN, VALUES: destination / VALUES}
    try:
        inputs.mkdir(parents=True, exist_ok=True)
        for name, target in targets.items():
            if target is not None and write_file(target, chunks(name)) != record.files[name]:
                raise DecodeError(f"{name} is not what its digest promises")
        lines = b"".join(codec.canonical(entry) + b"\n" for entry in record.inputs)
        (inputs / wire.TENSORS_INDEX).write_bytes(lines)
    except OSError as error:
        hint = "free space, or name another folder with --out"
        raise unwritable(f"{destination} cannot be written", error, hint) from error
    made = Counter(answer.input_set for answer in record.answers if answer.run == GOLDEN)
    return replace(
        record.artifact,
        path=str(path or ""),
        inputs_dir=str(inputs),
        inputs_digest=inputs_digest(inputs),
        schedule=tuple((item.name, made[item.name]) for item in record.artifact.input_sets),
    )


def laid_out_chunks(folder: Path, record: GoldenRecord) -> Callable[[str], Iterable[bytes]]:
    return lambda name: [_bytes_of(folder / name, record.files[name], since="recorded")]


def remembered_of(record: GoldenRecord, values: Path) -> Remembered:
    outputs = outputs_by_run(record, bytes_of(values))
    return Remembered(
        golden=outputs[GOLDEN, 0],
        repeats=tuple(value for (run, _), value in outputs.items() if run == REPEAT),
        other_threads=tuple(value for (run, _), value in outputs.items() if run == THREADS),
        reference=outputs.get((REFERENCE, 0)),
        numerics=record.numerics,
    )


def write_file(path: Path, chunks: Iterable[bytes]) -> str:
    """Write a file, and return its sha256. Raises ``OSError``: it cannot be written."""
    digest = hashlib.sha256()
    with path.open("wb") as stream:
        for chunk in chunks:
            digest.update(chunk)
            stream.write(chunk)
    return digest.hexdigest()


def run_of(record: GoldenRecord) -> str:
    return record.source.run if record.source is not None else ""


def same_content(first: GoldenRecord, other: GoldenRecord) -> bool:
    profiles = [record.profile for record in (first, other) if record.profile is not None]
    return _content(first) == _content(other) and (len(profiles) < 2 or profiles[0] == profiles[1])


def _content(record: GoldenRecord) -> str:
    # Not the archive's own file: saved again, it has other bytes with the same members.
    files = {name: digest for name, digest in record.files.items() if name != ARTIFACT}
    kept, archive = ARTIFACT in record.files, record.artifact.digest
    return codec.digest((files, kept, archive, record.inputs, record.answers, record.producer.identity, record.device))
