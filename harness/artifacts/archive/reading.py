"""Reads one archive into facts: its directory, its code, and the names in its pickles. Weights are not read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.artifacts.archive.code import CodeFacts, CodeMemory, may_loop, reachable
from harness.artifacts.archive.flatbuffers import MobileModule, read_flatbuffer
from harness.artifacts.archive.formats import recognise
from harness.artifacts.archive.grammar import CODE_REFUSED, NAME_REFUSED, unmet, why_refused
from harness.artifacts.archive.limits import LIMITS, CannotRead, Limits, Source
from harness.artifacts.archive.members import (
    SERIALIZATION_ID,
    STORED,
    Directory,
    Member,
    can_unpack,
    contents,
    read_member,
)
from harness.artifacts.archive.pickle_facts import Built, Global, Pickled, name_of, read_pickle
from harness.artifacts.archive.programs import read_program
from harness.artifacts.archive.values import Declared, constant_misfits, declared_by, module_misfits
from harness.core.archive import (
    TORCHS_MODULES,
    ArchiveFacts,
    ArchiveFormat,
    ArchiveProblem,
    CodePlace,
    OperatorUse,
    Reach,
    StorageGroup,
)

OPENED = frozenset(("data.pkl", "constants.pkl", "version", ".data/version", "byteorder"))
BELOW = ("code/", "constants/", "data/")
METHODS = {12: "bzip2", 14: "lzma", 93: "zstandard"}
OPERATORS_HIDDEN = "operators_hidden"
SIGN = re.compile(r"[-+*/.]")
OWN = "__torch__."
CUSTOM = "__torch__.torch.classes."
# Storage class -> dtype and its bytes, as torch's pickler writes them (ScalarType.h).
STORAGES: Mapping[str, tuple[str, int]] = {
    "Float": ("float32", 4),
    "Double": ("float64", 8),
    "Half": ("float16", 2),
    "BFloat16": ("bfloat16", 2),
    "Long": ("int64", 8),
    "Int": ("int32", 4),
    "Short": ("int16", 2),
    "Char": ("int8", 1),
    "Byte": ("uint8", 1),
    "Bool": ("bool", 1),
    "UInt16": ("uint16", 2),
    "UInt32": ("uint32", 4),
    "UInt64": ("uint64", 8),
    "ComplexHalf": ("complex32", 4),
    "ComplexFloat": ("complex64", 8),
    "ComplexDouble": ("complex128", 16),
    "QInt8": ("qint8", 1),
    "QUInt8": ("quint8", 1),
    "QInt32": ("qint32", 4),
    "QUInt4x2": ("quint4x2", 1),
    "QUInt2x4": ("quint2x4", 1),
    "Float8_e4m3fn": ("float8_e4m3fn", 1),
    "Float8_e5m2": ("float8_e5m2", 1),
    "Float8_e4m3fnuz": ("float8_e4m3fnuz", 1),
    "Float8_e5m2fnuz": ("float8_e5m2fnuz", 1),
    "Float8_e8m0fnu": ("float8_e8m0fnu", 1),
    "Float4_e2m1fn_x2": ("float4_e2m1fn_x2", 1),
    **{name.capitalize(): (name, 1) for name in ("bits8", "bits4x2", "bits2x4", "bits1x8")},
    "Bits16": ("bits16", 2),
    **{f"Int{bits}": (f"int{bits}", 1) for bits in range(1, 8)},
    **{f"UInt{bits}": (f"uint{bits}", 1) for bits in range(1, 8)},
}
# What torch's own pickler writes (torch/csrc/jit/serialization/pickler.h); its unpickler reads little more.
OPCODES = frozenset(b"\x80\x81\x85\x86\x87\x88\x89\x8a(.GJKMNQRXbcehjqrtu)]}")
BUILT_IN = frozenset(("tolist",))
"""Methods of torch's own types that it prints as such."""
META = "meta"
"""The device of tensors without values."""
TINY = 1024
"""Bytes of a member that holds a number."""


def read_artifact(source: Source, path: str, limits: Limits = LIMITS, memory: CodeMemory | None = None) -> ArchiveFacts:
    """Return what ``source`` is and holds.

    ``memory``: what code files that were read before say; give the same one for all files of a fleet. Raises
    ``CannotRead``: it begins as an archive and is damaged, hostile or beyond a limit.
    """
    kind, directory = recognise(source, limits)
    facts = ArchiveFacts(path=path, size_bytes=source.size, format=kind)
    if kind is ArchiveFormat.FLATBUFFER:
        mobile = _Flatbuffer(read_flatbuffer(source, limits), limits, memory or CodeMemory())
        return _with_code(replace(facts, container="flatbuffer"), mobile)
    if directory is None:
        return facts
    facts = replace(facts, container="zip", members=directory.count, problems=directory.problems)
    if kind is ArchiveFormat.EXPORTED_PROGRAM:
        program, problems = read_program(source, directory, limits)
        return replace(facts, program=program, problems=(*facts.problems, *problems))
    if kind not in (ArchiveFormat.TORCHSCRIPT, ArchiveFormat.MOBILE):
        return facts
    never = _why_not_opened(kind, directory)
    if never is not None:
        return replace(facts, problems=(never, *(item for item in facts.problems if item.kind != "unsupported")))
    return _with_code(facts, _Archive(source, directory, limits, memory or CodeMemory()))


def _why_not_opened(kind: ArchiveFormat, directory: Directory) -> ArchiveProblem | None:
    """Return why no release finds or unpacks what it reads of an archive; None if they do."""
    if kind is ArchiveFormat.TORCHSCRIPT and (not directory.root or "data.pkl" not in directory.inside):
        first = next(iter(directory.inside))
        name = f"{directory.root}/{first}" if directory.root else first
        text = f"its first member is {name!r}, and torch looks for the model in the folder of the first member"
        return ArchiveProblem(kind="stray_first_member", text=text)
    for name, member in directory.inside.items():
        if (name in OPENED or name.startswith(BELOW)) and not can_unpack(member):
            method = METHODS.get(member.method, f"method {member.method}")
            text = f"{member.name!r} is encrypted, or packed with {method}"
            return ArchiveProblem(kind="packing_refused", text=text)
    return None


class _Contents(ABC):
    """What an archive or a mobile flatbuffer holds; what cannot be read is a problem where the rest can go on.

    ``refused``: code file -> kind and words of what no release reads in it.
    """

    def __init__(self, limits: Limits, memory: CodeMemory, problems: Sequence[ArchiveProblem] = ()) -> None:
        self.limits = limits
        self.memory = memory
        self.problems = list(problems)
        self.refused: dict[str, tuple[str, str]] = {}

    @abstractmethod
    def check_as_written(self) -> None:
        """Keep a problem where it is not what torch has written, or no release loads it, as far as it says itself."""

    @abstractmethod
    def pickles(self) -> Iterator[tuple[str, Pickled]]:
        """Yield the name of each pickle, without its suffix, and what it holds."""

    @abstractmethod
    def code_files(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield member, qualifier and text of each code file, in order of name."""

    @abstractmethod
    def storages(self, pickles: Sequence[tuple[str, Pickled]]) -> tuple[StorageGroup, ...]:
        """Return the storages that tensors refer to; one that several share counts once."""

    @abstractmethod
    def check_values(self, declared: Declared, pickles: Sequence[tuple[str, Pickled]]) -> None:
        """Keep a problem where values do not fit what the code declares."""

    @abstractmethod
    def text(self, name: str) -> str | None:
        """Return the text of a small member; None where it is not there."""

    def problem(self, kind: str, texts: Sequence[str]) -> None:
        """Keep one problem for all that ``texts`` are about: hostile files have many."""
        if texts:
            more = f", and {len(texts) - 1} more" if len(texts) > 1 else ""
            self.problems.append(ArchiveProblem(kind=kind, text=texts[0] + more))

    def code(self) -> Iterator[tuple[str, int, CodeFacts]]:
        """Yield member, bytes and facts of each code file, in order of name."""
        named = self.limits.named
        bad: dict[str, list[str]] = {}
        for name, qualifier, content in self.code_files():
            try:
                facts = self.memory.read(content.decode(), qualifier, self.limits)
            except CannotRead as error:
                if error.kind == NAME_REFUSED:
                    self.refused[qualifier] = error.kind, f"{name}, {error.text}"
                else:
                    bad.setdefault(error.kind, []).append(f"{name}: {error.text}")
            except UnicodeDecodeError:
                bad.setdefault("damaged_code", []).append(f"{name}: no UTF-8 text")
            else:
                named -= len(facts.calls) + len(facts.functions) + len(facts.classes)
                if named < 0:
                    raise CannotRead("too_large", f"more than {self.limits.named} calls and functions")
                odd, why = facts.foreign_line or facts.shape.line, facts.shape.why if not facts.foreign_line else ""
                if facts.shape.refused:
                    text = f"{name}, line {facts.shape.line}: {facts.shape.refused}"
                    self.refused[qualifier] = facts.shape.refused_kind, text
                elif odd:
                    text = f"{name}, line {odd}: not as torch prints" + (f" ({why})" if why else "")
                    bad.setdefault("foreign_code", []).append(text)
                yield name, len(content), facts
        for kind, texts in sorted(bad.items()):
            self.problem(kind, texts)


class _Archive(_Contents):
    """The members of a zip."""

    def __init__(self, source: Source, directory: Directory, limits: Limits, memory: CodeMemory) -> None:
        super().__init__(limits, memory, directory.problems)
        self.source = source
        self.members = directory.inside
        self.fingerprint = directory.fingerprint

    def read(self, name: str, limit: int) -> bytes:
        return read_member(self.source, self.members[name], limit, self.limits)

    def text(self, name: str) -> str | None:
        return self.read(name, TINY).decode("ascii", "replace").strip() if name in self.members else None

    def check_as_written(self) -> None:
        written_id, order = self.text(SERIALIZATION_ID), self.text("byteorder")
        # The second half: PyTorchStreamWriter::writeSerializationId in caffe2/serialize/inline_container.cc. The first
        # is of the names by std::hash, which is another one on other systems. Both members exist since torch 2.1.
        if written_id is not None and written_id[20:] != f"{self.fingerprint:020d}":
            self.problem(
                "changed_after_save", [f"its members, or their order, are not those that {SERIALIZATION_ID} is about"]
            )
        elif written_id is None and order is not None:
            self.problem("changed_after_save", [f"{SERIALIZATION_ID} is not there, which torch writes with byteorder"])
        if order not in (None, "little"):
            self.problem("foreign_zip", ["byteorder is not little, as it is on every machine that torch supports"])
        left = self.limits.debug_bytes
        for name in sorted(name for name in self.members if name.startswith("code/") and name.endswith(".debug_pkl")):
            left -= len(self.read(name, left))  # torch reads it with the code

    def pickles(self) -> Iterator[tuple[str, Pickled]]:
        for name in ("data", "constants"):
            if f"{name}.pkl" not in self.members:  # of an archive for the lite interpreter alone
                self.problem("member_missing", [f"{name}.pkl is not there"])
                continue
            content = self.read(f"{name}.pkl", self.limits.pickle_bytes)
            pickled = read_pickle(content, self.limits)
            if content[:2] != b"\x80\x02" or not pickled.opcodes <= OPCODES:
                self.problem("foreign_pickle", [f"{name}.pkl is written as torch does not write it"])
            yield name, pickled

    def code_files(self) -> Iterator[tuple[str, str, bytes]]:
        left = self.limits.total_code_bytes
        for name in sorted(name for name in self.members if name.startswith("code/") and name.endswith(".py")):
            content = self.read(name, min(left, self.limits.code_bytes))
            left -= len(content)
            yield name, name[5:-3].replace("/", "."), content

    def check_values(self, declared: Declared, pickles: Sequence[tuple[str, Pickled]]) -> None:
        checks = {"data": module_misfits, "constants": constant_misfits}
        for name, pickled in pickles:
            self.problem("foreign_pickle", [f"{name}.pkl: {text}" for text in checks[name](pickled, declared)])

    def storages(self, pickles: Sequence[tuple[str, Pickled]]) -> tuple[StorageGroup, ...]:
        groups: dict[tuple[str, str], tuple[int, int | None]] = {}
        missing, short, bad, left = [], [], [], self.limits.packed_bytes
        for folder, pickled in pickles:
            seen = set()
            for item in pickled.persistent:
                if not (isinstance(item, tuple) and len(item) == 5 and isinstance(item[1], Global)):
                    continue
                _, kind, key, device, elements = item
                if not (isinstance(key, str) and isinstance(device, str) and isinstance(elements, int)):
                    continue
                if (key, kind, elements) in seen:
                    continue
                seen.add((key, kind, elements))
                dtype, width = STORAGES.get(kind.name.removeprefix("torch.").removesuffix("Storage"), (kind.name, None))
                count, nbytes = groups.get((dtype, device), (0, 0))
                groups[dtype, device] = (
                    count + 1,
                    None if width is None or nbytes is None else nbytes + elements * width,
                )
                member = self.members.get(f"{folder}/{key}")
                if member is None:
                    missing.append(f"{folder}/{key} is not there")
                elif member.method != STORED and (left := left - member.size) < 0:
                    bad.append(f"{folder}/{key} is packed, and too large to see whether it can be unpacked")
                elif member.method != STORED and (why := _why_not_unpacked(self.source, member)):
                    bad.append(why)
                elif width is not None and member.size < elements * width and device != META:
                    short.append(f"{folder}/{key} has {member.size} bytes of {elements * width}")
        self.problem("member_missing", missing)
        self.problem("member_short", short)
        self.problem("foreign_zip", bad)
        return tuple(
            StorageGroup(dtype=dtype, device=device, count=count, nbytes=nbytes)
            for (dtype, device), (count, nbytes) in sorted(groups.items())
        )


ESCAPE = re.compile(rb"""\\(?:[\\'abfnrtv]|[0-7]{3}|"(?=\w))""")


class _Flatbuffer(_Contents):
    """A mobile flatbuffer: ``torch.jit.load`` compiles the code that it holds."""

    def __init__(self, module: MobileModule, limits: Limits, memory: CodeMemory) -> None:
        super().__init__(limits, memory)
        self.module = module

    def check_as_written(self) -> None:
        if not self.module.sources:
            self.problem("member_missing", ["it holds no code, which torch.jit.load compiles"])
        if self.module.has_enums:
            self.problem(
                CODE_REFUSED, ["it holds a value of an enum, which torch writes to a flatbuffer and never reads"]
            )

    def pickles(self) -> Iterator[tuple[str, Pickled]]:
        yield "data", Pickled(root=Built(Global(self.module.root), ()), classes=dict.fromkeys(self.module.classes))

    def code_files(self) -> Iterator[tuple[str, str, bytes]]:
        for qualifier, content in sorted(self.module.sources.items()):
            yield qualifier, qualifier, ESCAPE.sub(b"_", content)

    def storages(self, _pickles: Sequence[tuple[str, Pickled]]) -> tuple[StorageGroup, ...]:
        groups: dict[str, list[int]] = {}
        for dtype, size in self.module.storages:
            groups.setdefault(dtype, []).append(size)
        return tuple(
            StorageGroup(dtype=dtype, device="cpu", count=len(sizes), nbytes=sum(sizes))
            for dtype, sizes in sorted(groups.items())
        )

    def text(self, name: str) -> str | None:
        return str(self.module.operator_version) if name == ".data/version" else None

    def check_values(self, declared: Declared, pickles: Sequence[tuple[str, Pickled]]) -> None:
        """Keep nothing: how values fit their classes is not read."""


def _why_not_unpacked(source: Source, member: Member) -> str:
    try:
        for _ in contents(source, member):
            pass
    except CannotRead as error:
        return error.text
    return ""


def _with_code(facts: ArchiveFacts, archive: _Contents) -> ArchiveFacts:
    archive.check_as_written()
    pickles = list(archive.pickles())
    code = list(archive.code())
    parts = [part for _, _, part in code]
    named = {name for _, pickled in pickles for name in pickled.classes}
    root = next((name_of(pickled.root) for name, pickled in pickles if name == "data"), "")
    functions = [function for part in parts for function in part.functions]
    own = [item for item in functions if item.name == f"{root}.{item.method}"]
    setters = [item.name for item in functions if item.method == "__setstate__" and _class_of(item.name) in named]
    looping = may_loop(functions)
    custom = {name.removeprefix(CUSTOM) for name in named if name.startswith(CUSTOM)}
    defined = {name for part in parts for name in part.classes} | {item.name for item in functions}
    archive.problem(
        "class_missing",
        [
            f"{name} is used and its code is not there"
            for name in sorted(named.union(*(part.named for part in parts)))
            # also a value of an enum, or a method
            if name.startswith(OWN) and not name.startswith(CUSTOM) and not defined & {name, _class_of(name)}
        ],
    )
    used = {_class_of(name) for name in named.union(*(part.named for part in parts))}
    used |= set(map(_class_of, used))
    refused = [item for qualifier, item in sorted(archive.refused.items()) if qualifier in used]
    archive.problem(CODE_REFUSED, [text for kind, text in refused if kind == CODE_REFUSED])
    archive.problem(
        NAME_REFUSED,
        [text for kind, text in refused if kind == NAME_REFUSED]
        or [f"{name}: {why}" for name in sorted(named) if (why := _why_refused(name))],
    )
    archive.problem(
        OPERATORS_HIDDEN,
        [
            f"{name}, line {part.hiding_line}: a value called 'torch' takes the operators for methods of its own"
            for name, _, part in code
            if part.hiding_line
        ],
    )
    custom.update(*(part.custom_classes for part in parts))
    unknown = set().union(*(part.called for part in parts)) - {item.method for item in functions} - BUILT_IN
    if not custom:  # their methods are not in the archive
        archive.problem("class_missing", [f"no class has the method {name} that is called" for name in sorted(unknown)])
    if not root.startswith(OWN):
        archive.problem("root_unreadable", ["data.pkl holds no module"])
    operators = tuple(_uses(code, reachable(functions, root), archive))
    storages = archive.storages(pickles)
    shapes = [part.shape for part in parts]
    # Else shapes may be incomplete, and nothing is promised anyway.
    if all(item.kind == OPERATORS_HIDDEN for item in archive.problems):
        archive.problem("class_missing", list(unmet(shapes)))
        archive.check_values(declared_by(shapes), pickles)
    return replace(
        facts,
        archive_version=archive.text("version"),
        operator_version=archive.text(".data/version"),
        code_bytes=sum(size for _, size, _ in code),
        root_class=root,
        methods=tuple(sorted(item.method for item in own)),
        calls={item.method: tuple(sorted(item.own)) for item in own if item.own},
        classes=sum(len(part.classes) for part in parts),
        custom_classes=tuple(sorted(custom)),
        runs_at_load=tuple(sorted(map(_class_of, setters))),
        loops_at_load=tuple(sorted(_class_of(name) for name in setters if name in looping)),
        loops={
            item.name: f"{item.checksum:08x}"
            for item in sorted(functions, key=lambda item: item.name)
            if item.loops and not item.name.startswith(TORCHS_MODULES)
        },
        type_names=tuple(sorted(set().union(*(part.type_names for part in parts)))),
        devices=tuple(sorted(set().union(*(part.devices for part in parts)))),
        storages=storages,
        operators=operators,
        answers=tuple(sorted(set().union(*(shape.answers for shape in shapes)))),
        problems=tuple(archive.problems),
    )


def _why_refused(name: str) -> str:
    """Return why no release reads the name of a class; it is parsed as an expression, so signs may be within."""
    return why_refused(".".join(filter(None, SIGN.split(name)))) if name.startswith(OWN) else ""


def _class_of(name: str) -> str:
    return name.rpartition(".")[0]


def _uses(code: Sequence[tuple[str, int, CodeFacts]], reached: Container[str], archive: _Contents) -> list[OperatorUse]:
    """Return the ways in which operators are called, in order of name; equal ones counted together."""
    ease, left = list(Reach), archive.limits.uses_characters
    uses: dict[tuple[str, tuple[str, ...], tuple[str, ...], int], OperatorUse] = {}
    for member, _, part in code:
        for call in part.calls:
            key = (call.name, call.arguments, call.keywords, call.results)
            reach = Reach.UNCALLED if call.function not in reached else Reach.BRANCH if call.branch else Reach.STRAIGHT
            known = uses.get(key)
            if known is not None:
                reach = min(reach, known.reach, key=ease.index)
                uses[key] = replace(known, count=known.count + 1, reach=reach)
                continue
            left -= sum(map(len, (member, call.name, call.function, *call.arguments, *call.keywords)))
            left -= 2 * len(call.arguments)
            if len(uses) >= archive.limits.uses or left < 0:
                archive.problem("too_large", [f"more than {len(uses)} ways to call operators"])
                return [uses[key] for key in sorted(uses)]
            uses[key] = OperatorUse(
                name=call.name,
                arguments=call.arguments,
                keywords=call.keywords,
                results=call.results,
                place=CodePlace(member=member, line=call.line, function=call.function),
                reach=reach,
            )
    return [uses[key] for key in sorted(uses)]
