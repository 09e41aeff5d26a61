"""Whole files: what they are, what they hold, and that no damage brings the reader down."""

import gzip
import json
import random
import time
import tracemalloc
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given, strategies as st

from harness.artifacts.archive.code import CodeMemory
from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.reading import read_artifact
from harness.core.archive import ArchiveFacts, ArchiveFormat, Reach
from tests.unit.builders.archives import CODE, CODE, GOLDEN, MODULE, BytesSource, golden, torchscript, zipped

RECORDS = sorted(path.parents[1].name for path in GOLDEN.glob("*/*/artifact"))
# What torch prints without a call: casts and conversions, subscripts, variables without a value.
SUGAR = {"", "aten::__getitem__", "prim::unchecked_cast", "prim::Uninitialized", "prim::isinstance", "aten::Int"}
SUGAR |= {
    "aten::Float",
    "aten::Bool",
    "prim::fork",
    "prim::annotate",
    "aten::IntImplicit",
    "prim::TupleIndex",
    "prim::TupleUnpack",
}


def facts_of(data: bytes) -> ArchiveFacts:
    return read_artifact(BytesSource(data), "net.pt")


@pytest.mark.parametrize("model", RECORDS)
def test_real_artifacts_tell_the_operators_that_torch_saw(model: str) -> None:
    facts = facts_of(golden(model))
    assert facts.format is ArchiveFormat.TORCHSCRIPT
    assert facts.problems == ()
    recorded = json.loads(next((GOLDEN / model).glob("*/record.json")).read_text())["artifact"]
    names = {use.name for use in facts.operators}
    assert {name.partition(".")[0] for name in recorded["operators"]} - SUGAR <= names
    assert facts.archive_version == recorded["archive_version"]
    assert {item["method"] for item in recorded["input_sets"]} <= set(facts.methods)


@pytest.mark.parametrize(
    ("name", "content", "kinds"),
    [
        ("data/0", b"other weights", ["changed_after_save"]),
        (".data/serialization_id", b"1" * 40, ["changed_after_save"]),
        (".data/serialization_id", None, ["changed_after_save"]),
        ("byteorder", b"big", ["changed_after_save", "foreign_zip"]),
    ],
)
def test_members_that_torch_did_not_write_are_a_problem(name: str, content: bytes | None, kinds: list[str]) -> None:
    with zipfile.ZipFile(BytesIO(golden("early_exit"))) as archive:
        members: dict[str, bytes | str] = {item: archive.read(item) for item in archive.namelist()}
    (whole,) = (item for item in members if item.endswith(f"/{name}"))
    if content is None:
        del members[whole]
    else:
        members[whole] = content
    found = [problem.kind for problem in facts_of(zipped(members)).problems]
    assert found[: len(kinds)] == kinds


def test_what_torch_reads_beside_the_code_is_unpacked() -> None:
    data = bytearray(golden("early_exit"))
    at = data.index(b".py.debug_pkl", data.index(b"PK\1\2"))
    entry = data.rindex(b"PK\1\2", 0, at)
    data[entry + 24] ^= 1  # its size
    with pytest.raises(CannotRead):
        facts_of(bytes(data))


def test_weights_are_never_read() -> None:
    source = BytesSource(
        zipped({"net/data.pkl": MODULE, "net/constants.pkl": b"\x80\x02).", "net/data/0": b"x" * (8 << 20)})
    )
    tracemalloc.start()
    read_artifact(source, "net.pt")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert source.taken < 70_000 + 2_000  # the end of the file, where a zip's directory is, and the rest
    assert peak < 1 << 20


def test_facts_of_an_archive() -> None:
    facts = facts_of(torchscript())
    assert (facts.root_class, facts.methods, facts.classes) == ("__torch__.m.Net", ("forward",), 1)
    (use,) = facts.operators
    assert (use.name, use.arguments, use.count, use.reach) == ("aten::relu", ("Tensor",), 1, Reach.STRAIGHT)
    assert (use.place.member, use.place.line) == ("code/__torch__/m.py", 7)


def test_only_what_a_method_calls_on_its_own_module_is_a_call_of_the_modules_methods() -> None:
    calling = "    return (self).nms((self.part).encode(torch.relu(x), ), )"
    facts = facts_of(torchscript(CODE.replace("    return torch.relu(x)", calling)))
    assert facts.calls == {"forward": ("nms",)}


def test_equal_calls_are_counted_and_the_easiest_way_is_reported() -> None:
    code = (
        CODE
        + "  def unused(self: __torch__.m.Net, x: Tensor) -> Tensor:\n    if x:\n      y = torch.relu(x)\n    return x\n"
    )
    (use,) = facts_of(torchscript(code)).operators
    assert (use.count, use.reach) == (2, Reach.STRAIGHT)


def test_code_that_nothing_calls_is_reported() -> None:
    code = CODE + "class Other(Module):\n  def lost(self: X, x: Tensor) -> Tensor:\n    return torch.cholesky(x)\n"
    reaches = {use.name: use.reach for use in facts_of(torchscript(code)).operators}
    assert reaches == {"aten::relu": Reach.STRAIGHT, "aten::cholesky": Reach.UNCALLED}


def test_a_setstate_that_loops_is_reported() -> None:
    code = CODE + "  def __setstate__(self: __torch__.m.Net, s: int) -> NoneType:\n    while True:\n      pass\n"
    facts = facts_of(torchscript(code))
    assert facts.runs_at_load == facts.loops_at_load == ("__torch__.m.Net",)


def test_a_loop_in_what_setstate_calls_is_reported() -> None:
    code = CODE + "  def __setstate__(self: __torch__.m.Net, s: int) -> NoneType:\n    _0 = __torch__.m.spin(s, )\n"
    looping = code + "def spin(s: int) -> int:\n  while True:\n    pass\n"
    assert facts_of(torchscript(looping)).loops_at_load == ("__torch__.m.Net",)
    assert facts_of(torchscript(code + "def spin(s: int) -> int:\n  return s\n")).loops_at_load == ()


def test_functions_with_a_loop_are_known_by_their_code() -> None:
    spin = "def spin(x: Tensor) -> Tensor:\n  while True:\n    {2} = __torch__.{0}Of.f(x, {1}, )\n  return x\n"
    of = "def Of(x: Tensor) -> Tensor:\n  return x\n"

    def loops(*pieces: object) -> Mapping[str, str]:
        return facts_of(torchscript(CODE + of + spin.format(*pieces))).loops

    found = loops("m.", "CONSTANTS.c0", "_0")
    assert list(found) == ["__torch__.m.spin"]
    assert loops("m.___torch_mangle_4.", "CONSTANTS.c12", "_7") == found  # what torch numbers anew in each archive
    assert loops("n.", "CONSTANTS.c0", "_0") != found != loops("m.", "CONSTANTS.c0", "x")
    assert facts_of(torchscript(CODE + of)).loops == {}


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"K\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
)
WITH_TENSOR = MODULE.replace(b"ub.", b"X\x01\x00\x00\x00w" + TENSOR + b"ub.")
CODE_OF_TENSOR = CODE.replace("  training", "  w : Tensor\n  training")


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"data__0": b"x" * 8}, ""),
        ({}, "member_missing"),
        ({"data__0": b"x" * 7}, "member_short"),
    ],
)
def test_weights_are_there_though_they_are_not_read(changes: dict[str, bytes], kind: str) -> None:
    facts = facts_of(torchscript(CODE_OF_TENSOR, **{"data.pkl": WITH_TENSOR, **changes}))
    assert [problem.kind for problem in facts.problems] == ([kind] if kind else [])
    assert facts.storages[0].nbytes == 8


@pytest.mark.parametrize("pickled", [MODULE.replace(b"\x80\x02", b"\x80\x04"), MODULE.replace(b"}(", b"}0}(")])
def test_a_pickle_that_torch_did_not_write_is_a_problem(pickled: bytes) -> None:
    assert [problem.kind for problem in facts_of(torchscript(**{"data.pkl": pickled})).problems] == ["foreign_pickle"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("x = torch . gone(x)", "foreign_code"),
        ("x = torch.\\\n      gone(x)", "foreign_code"),
        ("f = torch.gone", "foreign_code"),
        ("f = torch", "foreign_code"),
        ("x = x.gone()", "foreign_code"),
        ("x = torch.nn.gone(x)", "foreign_code"),
        ("x = x @ x", "foreign_code"),
        ("y = annotate(List[int], x.tolist())", ""),
        ('x = torch.format("a + b", -1)', ""),
        ("x = __torch__.gone.helper(x, )", "class_missing"),
        ("x = (torch.relu6(x)).gone()", "class_missing"),
        ("x = (self).forward(x, )", ""),
        ("x = (x).ops", "foreign_code"),
        ("ops = 1", "foreign_code"),
    ],
)
def test_code_that_may_hide_a_call_is_a_problem(line: str, kind: str) -> None:
    code = CODE.replace("    return", f"    {line}\n    return")
    assert [problem.kind for problem in facts_of(torchscript(code)).problems] == ([kind] if kind else [])


def test_long_names_within_each_other_do_not_multiply() -> None:
    name = "q" * 30_000
    files = {f"code__{name}.py": "def f():\n" * 5000, "code__a.py": f"class {name}(M):\n" + "  def f():\n" * 5000}
    tracemalloc.start()
    facts = facts_of(torchscript(**files))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [problem.kind for problem in facts.problems] == ["too_large"]
    assert peak < 20 << 20


def test_damaged_code_is_a_problem_and_the_rest_is_read() -> None:
    facts = read_artifact(
        BytesSource(zipped({"net/data.pkl": MODULE, "net/constants.pkl": b"\x80\x02).", "net/code/b.py": "x = (", "net/code/c.py": b"\xff", "net/code/__torch__/m.py": CODE})),
        "net.pt",
    )  # fmt: skip
    assert [(problem.kind, "and 1 more" in problem.text) for problem in facts.problems] == [("damaged_code", True)]
    assert len(facts.operators) == 1


def test_remembered_code_says_the_same() -> None:
    memory = CodeMemory(limit_bytes=len(CODE))
    source = BytesSource(torchscript())
    first, again = (read_artifact(source, "net.pt", memory=memory) for _ in range(2))
    assert first == again == read_artifact(source, "net.pt")


PICKLED_TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n)R"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", ArchiveFormat.EMPTY),
        (torchscript(), ArchiveFormat.TORCHSCRIPT),
        (torchscript(bytecode_pkl="x").replace(b"bytecode_pkl", b"bytecode.pkl"), ArchiveFormat.MOBILE),
        (zipped({"m/model.json": "{}", "m/code/m.py": ""}), ArchiveFormat.LEGACY_TORCHSCRIPT),
        (torchscript(**{"model.json": "{}"}), ArchiveFormat.LEGACY_TORCHSCRIPT),
        (zipped({"m/.data/extern_modules": "", "m/a.pkl": ""}), ArchiveFormat.TORCH_PACKAGE),
        (zipped({"serialized_exported_program.json": "{}", "version": "8"}), ArchiveFormat.EXPORTED_PROGRAM),
        (zipped({"m/models/model.json": "{}", "m/archive_format": "pt2"}), ArchiveFormat.EXPORTED_PROGRAM),
        (zipped({"m/data.pkl": b"\x80\x02}X\x01\x00\x00\x00a" + PICKLED_TENSOR + b"s."}), ArchiveFormat.STATE_DICT),
        (zipped({"m/data.pkl": b"\x80\x02cmine\nNet\n)\x81."}), ArchiveFormat.PICKLED_MODULE),
        (zipped({"m/data.pkl": b"\x80\x02}X\x01\x00\x00\x00aK\x01s."}), ArchiveFormat.TORCH_SAVE),
        (zipped({"a.npy": b""}), ArchiveFormat.NUMPY),
        (b"GGUF\x03\0\0\0", ArchiveFormat.GGUF),
        (b"<!DOCTYPE html><html><body>404 Not Found</body></html>", ArchiveFormat.WEB_PAGE),
        (b"\n<HTML><head>", ArchiveFormat.WEB_PAGE),
        (b"<xml/>", ArchiveFormat.TEXT),
        (zipped({"META-INF/x": b""}), ArchiveFormat.OTHER_ZIP),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02", ArchiveFormat.LEGACY_SAVE),
        (b"\x80\x04N.", ArchiveFormat.PICKLE),
        (b"\x1c\0\0\0TFL3", ArchiveFormat.TENSORFLOW_LITE),
        (b"\x08\x07\x12\x07pytorch", ArchiveFormat.ONNX),
        (b"\x10\0\0\0\0\0\0\0{\"a\":1}       ", ArchiveFormat.SAFETENSORS),
        (b"\x89HDF\r\n\x1a\n", ArchiveFormat.HDF5),
        (gzip.compress(b"x", mtime=0), ArchiveFormat.GZIP),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ArchiveFormat.LFS_POINTER),
        (b"\x7fELF\x02", ArchiveFormat.SHARED_LIBRARY),
        (b"<html>not found</html>\n", ArchiveFormat.WEB_PAGE),
        (b"\x00\x01\x02\xff" * 9, ArchiveFormat.UNKNOWN),
    ],
)  # fmt: skip
def test_what_is_not_torchscript_is_named(data: bytes, found: ArchiveFormat) -> None:
    facts = facts_of(data)
    assert facts.format is found
    assert facts.has_code == (found in (ArchiveFormat.TORCHSCRIPT, ArchiveFormat.MOBILE))


@pytest.mark.parametrize("first", ["data.pkl", "README", "notes/README", "__MACOSX/net/._data.pkl", "net.txt", "a/b/c"])
def test_no_release_finds_a_model_behind_a_member_of_no_folder_or_of_another(first: str) -> None:
    folder = "" if first == "data.pkl" else "net/"
    model = {f"{folder}data.pkl": MODULE, f"{folder}constants.pkl": b"\x80\x02)."}
    facts = facts_of(zipped({first: b"", **model}) if folder else zipped(model))
    assert facts.format is ArchiveFormat.TORCHSCRIPT
    (problem,) = facts.problems
    assert problem.kind == "stray_first_member"
    assert repr(first) in problem.text


@pytest.mark.parametrize("member", ["data.pkl", "constants.pkl", "version", "code/__torch__/m.py", "data/0"])
@pytest.mark.parametrize(
    ("method", "word"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "lzma"), (zipfile.ZIP_DEFLATED, "")]
)
def test_no_release_unpacks_other_members_than_deflated_ones(member: str, method: int, word: str) -> None:
    content = BytesIO()
    with zipfile.ZipFile(BytesIO(torchscript(data__0=b"x"))) as plain, zipfile.ZipFile(content, "w") as archive:
        for name in plain.namelist():
            ending = name.partition("/")[2]
            archive.writestr(name, plain.read(name), method if ending == member else zipfile.ZIP_STORED)
    found = {problem.kind: problem.text for problem in facts_of(content.getvalue()).problems}
    assert ("packing_refused" in found) == bool(word)
    if word:
        assert word in found["packing_refused"]


@pytest.mark.parametrize("model", RECORDS[:: max(1, len(RECORDS) // 10)])
def test_deflated_weights_are_no_reason_for_doubt_and_broken_ones_are(model: str) -> None:
    content = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(golden(model))) as plain,
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in plain.namelist():
            archive.writestr(name, plain.read(name))
    assert not facts_of(content.getvalue()).problems
    assert facts_of(content.getvalue()).storages == facts_of(golden(model)).storages
    with zipfile.ZipFile(content) as archive:
        weight = max(
            (item for item in archive.infolist() if "/data/" in item.filename), key=lambda item: item.file_size
        )
    data = bytearray(content.getvalue())
    data[weight.header_offset + 30 + len(weight.filename)] |= 7  # a kind of block that deflate does not have
    assert {problem.kind for problem in facts_of(bytes(data)).problems} == {"foreign_zip"}


@pytest.mark.parametrize("model", RECORDS[:: max(1, len(RECORDS) // 10)])
def test_equal_members_that_zipfile_has_packed_again_are_no_change(model: str) -> None:
    content = BytesIO()
    with zipfile.ZipFile(BytesIO(golden(model))) as plain, zipfile.ZipFile(content, "w") as archive:
        for name in plain.namelist():
            archive.writestr(name, plain.read(name))
    assert not facts_of(content.getvalue()).problems


def test_a_flatbuffer_that_ends_after_its_name_is_damaged() -> None:
    with pytest.raises(CannotRead, match="truncated"):
        facts_of(b"\x1c\0\0\0PTMF")


def test_ways_to_call_are_limited() -> None:
    lines = "".join(f"    x = torch.f{index}(x)\n" for index in range(30))
    facts = read_artifact(
        BytesSource(torchscript(CODE.replace("    return", lines + "    return"))), "net.pt", replace(LIMITS, uses=10)
    )
    assert len(facts.operators) == 10
    assert {problem.kind for problem in facts.problems} == {"too_large"}
    facts = read_artifact(
        BytesSource(torchscript(CODE.replace("    return", lines + "    return"))),
        "net.pt",
        replace(LIMITS, uses_characters=500),
    )
    assert 3 < len(facts.operators) < 20
    assert {problem.kind for problem in facts.problems} == {"too_large"}


def test_calls_of_all_files_are_limited_together() -> None:
    data = torchscript(**{f"code__{name}.py": CODE for name in "abc"})
    assert len(read_artifact(BytesSource(data), "net.pt", replace(LIMITS, named=12)).operators) == 1
    with pytest.raises(CannotRead, match="more than 11 calls"):
        read_artifact(BytesSource(data), "net.pt", replace(LIMITS, named=11))


SMALL = golden("early_exit")


@given(st.integers(0, len(SMALL) - 1), st.integers(0, 300), st.binary(max_size=40))
def test_a_damaged_archive_is_read_or_refused(at: int, cut: int, piece: bytes) -> None:
    try:
        facts_of(SMALL[:at] + piece + SMALL[at + cut :])
    except CannotRead:
        pass


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.slow)])  # of each model
@pytest.mark.parametrize("model", ["early_exit", "frequency_cap", "int8_ranker", "mel_front_end", "mmoe"])
def test_corruptions_neither_crash_nor_hang_nor_grow(model: str, count: int) -> None:
    whole = golden(model)
    chance = random.Random(model)
    tracemalloc.start()
    begin = time.process_time()
    for _ in range(count):
        data = bytearray(whole)
        tail = chance.random() < 0.5  # the directory decides most
        for _ in range(chance.choice((1, 3, 30))):
            data[chance.randrange(len(data) - 3000 if tail else 0, len(data))] = chance.randrange(256)
        try:
            facts_of(bytes(data[: chance.choice((None, chance.randrange(len(data))))]))
        except CannotRead:
            continue
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20
    assert time.process_time() - begin < 12
