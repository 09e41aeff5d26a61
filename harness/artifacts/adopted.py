"""Makes an ``Artifact`` of what a worker exported, adopted, extracted or rewrote; archives are read as zip files."""

import hashlib
import io
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

from harness.artifacts import file_copies, files
from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.members import read_directory, read_member
from harness.artifacts.archive.reading import read_artifact
from harness.artifacts.provenance import write_provenance
from harness.core.archive import ArchiveFacts
from harness.core.diagnosis import Refusal, RefusedNode, RewriteReport, RuleWords, TracedNode
from harness.core.models import Artifact, InputSet, ModelDeclaration
from harness.core.probe import ExtractOrder, ProbeResult
from harness.core.verdict import Provenance
from harness.machine.files import ZIP_DAMAGE
from harness.worker import wire

# Members that change with the path of the source and say nothing about the model (docs/evidence.md#archive-members).
VOLATILE = (".debug_pkl", "serialization_id")
# Limits on what an archive unpacks to, far beyond how well code compresses: torch stores tensors uncompressed.
MOST_TIMES = 4
MOST_MORE_BYTES = 256 << 20
CHUNK_BYTES = 1 << 20
VERSIONS = ("version", ".data/version")
LONGEST_VERSION_BYTES = 100


def archive_identity(path: Path) -> tuple[str, str | None, str | None]:
    """Return (digest, archive version, operator version) of a TorchScript archive.

    The digest is a sha256 over (member name without its root folder, content), in name order, without the volatile
    members; so the same model saved under another file name has the same identity. Raises ``ValueError``: the file is
    not a readable zip archive, has two members of one name, or unpacks to far more than it is.
    """
    try:
        with path.open("rb") as stream:
            return stream_identity(stream, path.stat().st_size, path)
    except OSError as error:
        raise ValueError(f"{path} is not a readable TorchScript archive: {error}") from error


class ArchiveFields(TypedDict):
    """What an ``Artifact`` says of its file."""

    path: str
    digest: str
    size_bytes: int
    archive_version: str | None
    operator_version: str | None


def archive_fields(path: Path) -> ArchiveFields:
    """Return where an archive lies and what identifies it, as an ``Artifact`` has them; raises as
    ``archive_identity``.
    """
    digest, archive_version, operator_version = archive_identity(path)
    return ArchiveFields(
        path=str(path),
        digest=digest,
        size_bytes=path.stat().st_size,
        archive_version=archive_version,
        operator_version=operator_version,
    )


def stream_identity(content: BinaryIO, size_bytes: int, path: Path) -> tuple[str, str | None, str | None]:
    """Return what ``archive_identity`` does, for an open archive; errors name it by ``path``."""
    digest = hashlib.sha256()
    versions: dict[str, str] = {}
    try:
        with zipfile.ZipFile(content) as archive:
            files = [info.filename.partition("/")[2] for info in archive.infolist() if not info.is_dir()]
            if len(set(files)) < len(
                files
            ):  # below two roots, say: torch would read one of them, and this function the other
                raise ValueError(f"{path} holds two members of one name: it has no identity")
            members = {info.filename.partition("/")[2]: info for info in archive.infolist()}
            unpacked = sum(info.file_size for info in members.values())
            if unpacked > MOST_TIMES * size_bytes + MOST_MORE_BYTES:
                raise ValueError(f"{path} unpacks to {unpacked} bytes, far more than it is: not read")
            for name in sorted(members):
                if name.endswith(VOLATILE):
                    continue
                digest.update(f"{len(name)} {name} {members[name].file_size} ".encode())
                with archive.open(members[name]) as stream:
                    chunk = stream.read(CHUNK_BYTES)
                    if name in VERSIONS:
                        versions[name] = chunk[:LONGEST_VERSION_BYTES].decode("ascii", "replace").strip()
                    while chunk:
                        digest.update(chunk)
                        chunk = stream.read(CHUNK_BYTES)
    except (OSError, *ZIP_DAMAGE) as error:
        raise ValueError(f"{path} is not a readable TorchScript archive: {error}") from error
    return digest.hexdigest(), versions.get("version"), versions.get(".data/version")


def has_digest(digest: str, content: io.BufferedReader | io.BytesIO, size_bytes: int, path: Path) -> bool:
    """Return whether open content has an ``Artifact.digest``: of a given file's bytes, or of an export."""
    if hashlib.file_digest(content, "sha256").hexdigest() == digest:
        return True
    content.seek(0)
    try:
        return stream_identity(content, size_bytes, path)[0] == digest
    except ValueError:
        return False


def has_changed(artifact: Artifact) -> bool:
    path, inputs = Path(artifact.path), Path(artifact.inputs_dir)
    try:
        with path.open("rb") as content:
            same = has_digest(artifact.digest, content, path.stat().st_size, path)
        return not same or (bool(artifact.inputs_digest) and inputs_digest(inputs) != artifact.inputs_digest)
    except OSError:
        return True


def artifact_of(declaration: ModelDeclaration, export: ProbeResult) -> Artifact:
    """Return the artifact that a completed export left in its folder. Raises ``ValueError``: it is no readable
    archive.
    """
    folder = Path(export.directory)
    exported = export.data["exported"]
    return Artifact(
        **archive_fields(folder / f"{declaration.name}.pt"),
        model=declaration.name,
        operators=tuple(exported["operators"]),
        inputs_dir=str(folder / "inputs"),
        inputs_digest=inputs_digest(folder / "inputs"),
        input_sets=tuple(InputSet(name=name, method=method) for name, method in exported["input_sets"]),
        reset=declaration.reset,
        seed=declaration.seed,
    )


def inputs_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
        with (folder / name).open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def uncovered(declaration: ModelDeclaration, artifact: Artifact) -> tuple[str, ...]:
    present = {operator.partition(".")[0] for operator in artifact.operators}
    return tuple(operator for operator in declaration.covers if operator not in present)


ARCHIVE = "extracted.pt"
WITHOUT_VALUES = "extracted out without a trace: only the types of its inputs are known"


def extracted_artifact(artifact: Artifact, order: ExtractOrder, extraction: ProbeResult) -> Artifact:
    """Return the part extracted from ``artifact``, under its name, with the traced values as its one request."""
    folder = Path(extraction.directory)
    called = order.beside is not None
    return Artifact(
        **archive_fields(folder / ARCHIVE),
        model=artifact.model,
        operators=tuple(extraction.data["extracted"]["operators"]),
        inputs_dir=str(folder / "inputs"),
        inputs_digest=inputs_digest(folder / "inputs"),
        input_sets=(InputSet(name=order.input_set),) if called else (),
        seed=artifact.seed,
        inputs_note="" if called else WITHOUT_VALUES,
    )


def rewrite_report(probe: ProbeResult) -> RewriteReport:
    """Return what a worker said of its rewrite; empty if it said nothing."""
    mark: Mapping[str, Any] = probe.data.get("rewritten", {})
    return RewriteReport(
        fits=tuple((rule, tuple(address)) for rule, address in mark.get("fits", ())),
        refused=tuple(
            Refusal(rule=rule, address=tuple(address), why=why) for rule, address, why in mark.get("refused", ())
        ),
        rules={name: RuleWords(**words) for name, words in mark.get("rules", {}).items()},
        found=tuple(RefusedNode(**{**node, "address": tuple(node["address"])}) for node in mark.get("found", ())),
        emptied=tuple(mark.get("emptied", ())),
        done=tuple(map(_node, mark.get("nodes", ()))),
    )


def _node(node: Mapping[str, Any]) -> TracedNode:
    address, kind = tuple(node["address"]), node["operator"].partition(".")[0]
    return TracedNode(place=address, address=address, kind=kind, schema=node["schema"], source=node["source"])


def rewritten_artifact(artifact: Artifact, probe: ProbeResult) -> Artifact:
    """Return ``artifact`` as it was rewritten, with the same requests. Raises ``ValueError``: it is no readable
    archive.
    """
    return replace(artifact, **archive_fields(Path(probe.directory) / f"{artifact.model}.pt"))


def keep_rewritten(artifact: Artifact, folder: Path, provenance: Provenance) -> Path:
    """Copy a rewritten archive, its provenance and its requests into ``folder``; return the archive there.

    They lie beside it as a run looks for them: whoever judges the file by itself asks the same requests, where plain
    data can hold them, and is reminded of the price.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{artifact.model}.pt"
    shutil.copyfile(artifact.path, path)
    write_provenance(path, provenance)
    requests = Path(artifact.path).with_name(f"{artifact.model}{files.REQUESTS}.pt")
    if requests.is_file():
        shutil.copyfile(requests, folder / requests.name)
    return path


def uncalled_methods(named: Sequence[str], adopted: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why each ``named`` method without an input set is not called; ``adopted``: the worker's mark."""
    called = {"forward" if method == wire.KEYWORDS_METHOD else method for _, method in adopted["input_sets"]}
    why = dict(adopted.get("given_up", ()))
    return tuple(why.get(method, f"{method}: no request asks it") for method in named if method not in called)


def adopted(declaration: ModelDeclaration, kept: file_copies.Kept, adoption: ProbeResult) -> Artifact:
    """Return the artifact made from an adopted file, without inputs if the adoption failed.

    Versions and operators come from static reading, and are empty where that finds none. Raises ``CannotRead``: the
    file cannot be read any more.
    """
    inputs = Path(adoption.directory) / "inputs"
    mark = adoption.data.get("adopted") or _without_inputs(adoption, inputs)
    archive_version = operator_version = None
    operators: tuple[str, ...] = ()
    with files.opened(str(kept.path)) as source:
        try:
            facts = read_artifact(source, str(kept.path))
        except CannotRead:
            pass  # probing will show what it is
        else:
            operators = _names_of_operators(facts)
            archive_version, operator_version = facts.archive_version, facts.operator_version
        size_bytes = source.size
    return Artifact(
        model=declaration.name,
        path=str(kept.path),
        kind=declaration.kind,
        digest=kept.sha256,
        size_bytes=size_bytes,
        operators=operators,
        inputs_dir=str(inputs),
        inputs_digest=inputs_digest(inputs),
        input_sets=tuple(InputSet(name=name, method=method) for name, method in mark["input_sets"]),
        reset=declaration.reset,
        seed=declaration.seed,
        archive_version=archive_version,
        operator_version=operator_version,
        inputs_note=mark["inputs_note"],
        uncalled=uncalled_methods(declaration.given.methods if declaration.given is not None else (), mark),
    )


def _names_of_operators(facts: ArchiveFacts) -> tuple[str, ...]:
    """Return the operators by the names that TorchScript has for them; a program writes ``aten.add.Tensor``."""
    names = {use.name for use in facts.operators}
    for called in facts.program.operators if facts.program is not None else ():
        namespace, _, name = called.partition(".")
        names.add(f"{namespace}::{name.partition('.')[0]}")
    return tuple(sorted(names))


def saved_again(artifact: Artifact, resaving: ProbeResult) -> Artifact:
    """Return ``artifact`` as another release has saved it again, same inputs. Raises ``CannotRead``."""
    path = Path(resaving.directory) / f"{artifact.model}{artifact.kind.suffix}"
    with files.opened(str(path)) as source:
        return replace(artifact, path=str(path), digest=file_copies.digest_of(source), size_bytes=source.size)


def _without_inputs(adoption: ProbeResult, inputs: Path) -> Mapping[str, Any]:
    """Return a mark for an adoption that failed; probing will say whether the file loads."""
    inputs.mkdir(exist_ok=True)
    for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
        (inputs / name).write_bytes(b"")
    (model,) = adoption.models
    how = adoption.exit_detail or (model.failure.first_line if model.failure is not None else model.outcome.value)
    return {"input_sets": [], "inputs_note": f"taking it over ended in {model.phase or 'its start'}: {how}"}


MOST_BYTES = 64 << 10
FOLDER, SUFFIX = "code/", ".py"


def archive_code(path: str) -> str:
    """Return all code files, each under a comment with its name; empty if unreadable or more than a reader reads."""
    try:
        with files.opened(path) as source:
            directory = read_directory(source, LIMITS)
            members = {name: directory.inside[name] for name in sorted(directory.inside) if _is_code(name)}
            if sum(member.size for member in members.values()) > MOST_BYTES:
                return ""
            texts = {name: read_member(source, member, MOST_BYTES, LIMITS) for name, member in members.items()}
    except CannotRead:
        return ""
    parts = [(name, data.decode(errors="replace").rstrip()) for name, data in texts.items()]
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(f"# {name}\n{text}" for name, text in parts)


def _is_code(name: str) -> bool:
    return name.startswith(FOLDER) and name.endswith(SUFFIX)
