"""Models under test: declared in a fixture file or given as a file, and the artifact that an export leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.core.devices import ANY

GridValue = bool | int | float | str


@dataclass(frozen=True, kw_only=True, slots=True)
class PlantedDefectMark:
    """A planted defect: judged by the golden of its healthy ``twin``, it must raise ``expect``."""

    twin: str
    expect: str
    scenario: str = "alone"
    switches: Mapping[str, bool | int] = field(default_factory=dict)
    deadline_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakMark:
    """A genuine break between two releases, with its upstream source."""

    old: str
    new: str
    expect: str
    upstream: str
    direction: str = "backward"


PROGRAM_SUFFIX = ".pt2"


class ArtifactKind(StrEnum):
    """What a saved model is: a TorchScript archive, a ``.pt2`` of torch.export, or a package of AOTInductor."""

    TORCHSCRIPT = "torchscript"
    PROGRAM = "program"
    PACKAGE = "package"

    @property
    def words(self) -> str:
        return WORDS[self]

    @property
    def suffix(self) -> str:
        """How a file of one ends: packages are loaded by no other name."""
        return ".pt" if self is ArtifactKind.TORCHSCRIPT else PROGRAM_SUFFIX


WORDS = {
    ArtifactKind.TORCHSCRIPT: "a TorchScript archive",
    ArtifactKind.PROGRAM: "an exported program",
    ArtifactKind.PACKAGE: "a package of AOTInductor",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class UnjudgedFile:
    """A file of a folder that was given, of which no verdict speaks.

    ``path``: within that folder; ``what``: what it is, in a few words.
    """

    path: str
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenArtifact:
    """An artifact that exists already: nothing exports it, the old release only adopts it.

    Attributes:
        path: absolute path of the file.
        inputs: absolute path of the file with its requests (``.pt``, ``.npz``, ``.safetensors``, ``.py``, or the index
            of inputs that a worker has recorded), or empty.
        requests: requests that a manifest describes: ``{"name", "method", "arguments"}``, the arguments as plain
            values, ``{"shape", "dtype", "below"}`` for a tensor. Or those of a model server, with ``"inputs"`` by name,
            which the worker binds to the method's arguments and fills. Without these and a file they are inferred.
        methods: which methods are called where the inputs do not say; empty means ``forward``.
        bundle: whether the file is a golden bundle, made by ``pack``.
        within: the real path of the folder that somebody named, where the file was found in one: a link that leads out
            of it is not followed.
        sha256, inputs_sha256: of the bytes of both files when the run was planned, and nothing else is judged; empty
            where one could not be read then, None where nothing was planned.
    """

    path: str
    inputs: str = ""
    requests: tuple[Mapping[str, Any], ...] = ()
    methods: tuple[str, ...] = ()
    bundle: bool = False
    kind: ArtifactKind = ArtifactKind.TORCHSCRIPT
    within: str = ""
    sha256: str | None = None
    inputs_sha256: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelDeclaration:
    """One model: where its factory is and how it becomes an artifact, or the artifact that it is.

    Attributes:
        package_root: absolute folder that goes on ``sys.path`` in the exporter; empty where the environment itself has
            the module.
        module: dotted name of the fixture module, e.g. ``"fixtures.zoo.recommendation"``.
        source: path relative to ``package_root``, absolute where that is empty, with ``line`` for messages.
        source_digest: sha256 of the fixture file; part of the export's key.
        how: ``"script"``, ``"trace"``, or ``"file"`` for an artifact that is given.
        tags: words for ``-k``; the first is the default server group.
        owner: who answers for it, as its reader writes that; empty where nobody said.
        covers: operators (no overload) that must occur in the artifact.
        requires: first torch release that can express the model, or None.
        devices: where it can run.
        unordered: paths of outputs whose order is no part of the answer, e.g. ``"output[*]"``.
        arguments: what the factory is called with, by the name of the parameter: one combination of a grid.
        tolerance: largest difference of a floating output as a share of its largest magnitude, in place of the
            factors of ``harness/checks/outputs/tolerances.py``; None: those.
        timed: whether its latency is measured; a miniature, which tests correctness, says no.
        shares: verbs of probes (``adopt``, ``run``) that a process may do of it that has done others before: what they
            show of its program is seen alone, here or under another name.
        given: the artifact, where no factory makes one; ``module`` and ``factory`` are empty then, ``package_root`` is
            the folder of the file or manifest that names it, ``source`` that file, and ``source_digest`` stands for
            what the artifact and its inputs are by now: by content where they are small, else by size and time.
    """

    name: str
    package_root: str
    module: str = ""
    factory: str = ""
    source: str
    line: int = 0
    source_digest: str = ""
    how: str = "script"
    tags: tuple[str, ...] = ()
    owner: str = ""
    covers: tuple[str, ...] = ()
    requires: str | None = None
    seed: int = 0
    freeze: bool = False
    reset: str | None = None
    devices: tuple[str, ...] = ANY
    unordered: tuple[str, ...] = ()
    arguments: tuple[tuple[str, GridValue], ...] = ()
    planted_defect: PlantedDefectMark | None = None
    known_break: BreakMark | None = None
    tolerance: float | None = None
    timed: bool = True
    shares: tuple[str, ...] = ()
    given: GivenArtifact | None = None

    @property
    def kind(self) -> ArtifactKind:
        """What the artifact is: what factories make is TorchScript."""
        return self.given.kind if self.given is not None else ArtifactKind.TORCHSCRIPT

    @property
    def where(self) -> str:
        """``file:line`` of the declaration; the file alone where no line declares it."""
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass(frozen=True, kw_only=True, slots=True)
class InputSet:
    """One named request: which method is called. The values lie in the inputs folder."""

    name: str
    method: str = "forward"


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """A saved model with its inputs: a TorchScript archive, or what it became outside of TorchScript.

    Attributes:
        path: absolute path of the file.
        kind: what the file is; workers load and call it accordingly.
        digest: of a given file the sha256 of its bytes; of an export the identity over the archive's members with the
            root folder stripped and ``serialization_id`` and ``debug_pkl`` left out (they change with path and
            process). ``harness.artifacts.adopted.has_digest`` knows both.
        archive_version: ``archive/version``; ``operator_version``: ``.data/version``. Two numbers.
        operators: ``name.overload`` as the exporter saw them in the saved archive, sorted.
        inputs_dir: folder with ``tensors.jsonl`` and ``tensors.bin``.
        input_sets: in declared order; the first is the example.
        schedule: the calls that a golden record holds; empty where the settings say how many to make.
        inputs_note: how the inputs were come by where nobody gave them; or why there are none, where ``input_sets`` is
            empty: then the artifact is loaded and not called.
        uncalled: why a method that somebody named is not called, one text for each: nothing could be guessed for it, or
            no request asks it.
    """

    model: str
    path: str
    digest: str
    size_bytes: int
    operators: tuple[str, ...]
    inputs_dir: str
    input_sets: tuple[InputSet, ...]
    kind: ArtifactKind = ArtifactKind.TORCHSCRIPT
    reset: str | None = None
    seed: int = 0
    archive_version: str | None = None
    operator_version: str | None = None
    inputs_digest: str = ""
    schedule: tuple[tuple[str, int], ...] = ()
    inputs_note: str = ""
    uncalled: tuple[str, ...] = ()
