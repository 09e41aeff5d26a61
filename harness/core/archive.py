"""What an archive contains, read without torch and without running anything; and what a release accepts in one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.core.models import ArtifactKind

TORCHS_MODULES = "__torch__.torch."
"""How the qualified names of torch's own Python code begin."""


class ArchiveFormat(StrEnum):
    """What kind of file it is; only the first three hold TorchScript code that can be read here."""

    TORCHSCRIPT = "torchscript"
    MOBILE = "mobile"
    LEGACY_TORCHSCRIPT = "legacy_torchscript"
    FLATBUFFER = "flatbuffer"
    STATE_DICT = "state_dict"
    PICKLED_MODULE = "pickled_module"
    TORCH_SAVE = "torch_save"
    LEGACY_SAVE = "legacy_save"
    TAR_SAVE = "tar_save"
    PICKLE = "pickle"
    TORCH_PACKAGE = "torch_package"
    EXPORTED_PROGRAM = "exported_program"
    GOLDEN_BUNDLE = "golden_bundle"
    ONNX = "onnx"
    SAFETENSORS = "safetensors"
    HDF5 = "hdf5"
    NUMPY = "numpy"
    TENSORFLOW_LITE = "tensorflow_lite"
    GZIP = "gzip"
    LFS_POINTER = "lfs_pointer"
    SHARED_LIBRARY = "shared_library"
    GGUF = "gguf"
    WEB_PAGE = "web_page"
    TEXT = "text"
    OTHER_ZIP = "other_zip"
    EMPTY = "empty"
    UNKNOWN = "unknown"


class Reach(StrEnum):
    """How the code that calls an operator can be reached from the methods of the root module.

    ``UNCALLED`` is certain; the other two are not: a method is taken for called when any reachable code calls a method
    of that name.
    """

    STRAIGHT = "straight"
    BRANCH = "branch"
    UNCALLED = "uncalled"


@dataclass(frozen=True, kw_only=True, slots=True)
class CodePlace:
    """A line of the archive's own code: member (without the root folder), line from 1, qualified function."""

    member: str
    line: int
    function: str


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorUse:
    """One way in which the archive's code calls an operator; equal ways are counted together.

    Attributes:
        name: ``"aten::add"``.
        arguments: the type of each positional argument as the code writes types (``"Tensor"``, ``"Optional[int]"``),
            ``"List"`` for one of unknown elements, ``"~int"`` for an int or perhaps None, ``"~Scalar"`` for a number or
            perhaps a tensor, empty where nothing is known.
        keywords: names of the keyword arguments, in order.
        results: into how many variables the answer is unpacked; 0 where it is not.
        place: the first such call; ``count`` in all.
    """

    name: str
    arguments: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    results: int = 0
    place: CodePlace
    count: int = 1
    reach: Reach = Reach.STRAIGHT


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageGroup:
    """Storages of one dtype on one device: how many, and their bytes (None for a dtype of unknown width)."""

    dtype: str
    device: str
    count: int
    nbytes: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveProblem:
    """Something wrong with a file; ``kind`` is a stable word, ``text`` says what."""

    kind: str
    text: str


class ProgramContainer(StrEnum):
    """How a .pt2 is packed: as a plain zip before 2.8, as an archive since, or as a package of compiled code."""

    OLDER = "zip before 2.8"
    ARCHIVE = "pt2 archive"
    COMPILED = "AOTInductor package"


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaUse:
    """Which parts of its schema (torch/_export/serde/schema.py) an exported program uses.

    Attributes:
        fields: name of a field -> one within its value. Of lists and of mappings, the values are meant.
        alternatives: likewise, where the value has nothing but this one: what a union holds is written like that.
        numbers: name of a field -> the number that stands for a dtype, a layout, ...
    """

    fields: tuple[tuple[str, str], ...] = ()
    alternatives: tuple[tuple[str, str], ...] = ()
    numbers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramFacts:
    """What was read of an exported program.

    Attributes:
        archive_version: as the container says it.
        schema: version of the program's schema, the major one first; empty where it does not say.
        torch: the release that wrote it, empty where it does not say.
        operators: ``"aten.add.Tensor"``, ...; ``dtypes``: of its tensors. Of a package those that it calls by name:
            the others are compiled.
        callables: functions that are no operators, ``"_operator.mul"`` or ``"torch.sym_max"``.
        uses: of its schema; ``lists_of_one``: operators of Python whose only result is written as a list.
        weights_listed: whether weights lie one by one, with a list of them beside.
        functions: of torch's C interface, which the code of a package calls.
        machine: for which a package is compiled, ``"x86_64"``, ...; ``instructions``: of the CPU, as ``/proc/cpuinfo``
            names them; ``on``: the kind of device. Empty where it does not say.
    """

    container: ProgramContainer
    archive_version: str = ""
    schema: tuple[int, ...] = ()
    torch: str = ""
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    callables: tuple[str, ...] = ()
    uses: SchemaUse = SchemaUse()
    lists_of_one: tuple[str, ...] = ()
    weights_listed: bool = False
    functions: tuple[str, ...] = ()
    machine: str = ""
    instructions: tuple[str, ...] = ()
    on: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Processor:
    """What compiled code meets: the machine as ``platform.machine`` has it, and what its CPU knows."""

    machine: str
    instructions: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveFacts:
    """What was read of one file.

    Attributes:
        path: as the caller named it.
        format: what it is; the rest is empty where it holds no TorchScript code.
        container: ``"zip"``, ``"golden_bundle"`` for the artifact in one, or empty.
        archive_version, operator_version: ``version`` and ``.data/version``, as written.
        members: how many the archive has; ``code_bytes``: of its code, unpacked.
        root_class: qualified name of the root module; ``methods``: those it defines, ``calls``: method -> those that
            it calls on the same module.
        custom_classes: TorchBind classes that it names, e.g. ``"quantized.LinearPackedParamsBase"``.
        runs_at_load: classes whose ``__setstate__`` runs while the archive is loaded; ``loops_at_load``: has a loop.
        loops: functions and methods with a loop, those of torch left out -> checksum of their code, which is the same
            in every archive that has it.
        type_names: types of TorchScript that not every release knows, where the code names them.
        devices: written as constants into the code.
        answers: operators, each with a type (without spaces) that the code expects of an answer.
        problems: what makes a prediction unsafe, or the reading incomplete.
        program: of an exported program; None of anything else.
    """

    path: str
    size_bytes: int
    format: ArchiveFormat
    container: str = ""
    archive_version: str | None = None
    operator_version: str | None = None
    members: int = 0
    code_bytes: int = 0
    root_class: str = ""
    methods: tuple[str, ...] = ()
    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: int = 0
    custom_classes: tuple[str, ...] = ()
    runs_at_load: tuple[str, ...] = ()
    loops_at_load: tuple[str, ...] = ()
    loops: Mapping[str, str] = field(default_factory=dict)
    type_names: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    storages: tuple[StorageGroup, ...] = ()
    operators: tuple[OperatorUse, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    problems: tuple[ArchiveProblem, ...] = ()
    program: ProgramFacts | None = None

    @property
    def is_judged(self) -> bool:
        return self.has_code or self.program is not None

    @property
    def kind(self) -> ArtifactKind:
        """What it is loaded as; what holds no program is taken for TorchScript."""
        if self.program is None:
            return ArtifactKind.TORCHSCRIPT
        is_compiled = self.program.container is ProgramContainer.COMPILED
        return ArtifactKind.PACKAGE if is_compiled else ArtifactKind.PROGRAM

    @property
    def has_code(self) -> bool:
        """Whether TorchScript code was read that a release may accept or refuse."""
        return self.format in (ArchiveFormat.TORCHSCRIPT, ArchiveFormat.MOBILE, ArchiveFormat.FLATBUFFER)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a schema; ``type`` without alias marks, e.g. ``"Tensor?"`` or ``"int[2]"``."""

    name: str
    type: str
    keyword_only: bool
    has_default: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """One overload of an operator; ``takes_more`` where further positional arguments are allowed."""

    overload: str
    parameters: tuple[Parameter, ...]
    returns: tuple[str, ...]
    takes_more: bool = False


@dataclass(frozen=True, slots=True)
class Upgrader:
    """How archives below an operator version are read: with the ``old`` schema, by a function of that ``name``."""

    name: str
    below_version: int
    old: Schema


@dataclass(frozen=True, kw_only=True, slots=True)
class Programs:
    """Which exported programs and packages a release reads.

    Attributes:
        schema: the version that it writes, the major one first; empty where it has no torch.export.
        archive: the version of archives that it reads and writes; empty where it knows only the older container.
        alternatives, fields, numbers: name of a field of the schema -> what it knows within its value, see
            ``SchemaUse``.
        skips_fields: whether a field that it does not know is passed over; else loading fails there.
        weights_listed: whether it reads weights that lie one by one.
        operators: those that are there once torch.export is imported and that are no part of ``schemas``: of Python.
        packages: whether it loads packages of AOTInductor; ``functions``: those of torch's C interface that its
            libraries export.
    """

    schema: tuple[int, ...] = ()
    archive: str = ""
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    skips_fields: bool = False
    weights_listed: bool = False
    operators: tuple[str, ...] = ()
    callables: tuple[str, ...] = ()
    packages: bool = False
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorRegistry:
    """What a release accepts.

    Attributes:
        torch: its version, as it says itself.
        schemas: ``"aten::add"`` -> its overloads.
        custom_classes: TorchBind classes, e.g. ``"quantized.LinearPackedParamsBase"``.
        library_operators: those of ``schemas`` that operator libraries have registered.
        dtypes: ``"float32"``, ...; ``packed_dtypes``: of several values in a byte, those that it loads.
        type_names: those of the types asked for that its parser knows.
    """

    torch: str
    operator_version: int
    schemas: Mapping[str, tuple[Schema, ...]]
    upgraders: Mapping[str, tuple[Upgrader, ...]]
    custom_classes: frozenset[str]
    dtypes: frozenset[str]
    type_names: frozenset[str]
    packed_dtypes: frozenset[str] = frozenset()
    library_operators: frozenset[str] = frozenset()
    programs: Programs = Programs()

    def __hash__(self) -> int:
        return hash(self.torch)  # so that what follows from it can be remembered
