"""An exported program is read without torch: container, versions, operators, dtypes; what is damaged is one clear line."""

import json
import random

import pytest

from harness.artifacts.archive.limits import CannotRead, Limits
from harness.artifacts.archive.plain_json import MOST_VALUES, read_json
from harness.artifacts.archive.programs import MOST_USES
from harness.artifacts.archive.reading import read_artifact
from harness.core.archive import ArchiveFacts, ArchiveFormat, ProgramContainer, ProgramFacts, SchemaUse
from tests.unit.builders.archives import BytesSource, library, zipped

NODES = [
    {"target": "torch.ops.aten.relu.default", "inputs": []},
    {
        "target": "torch.ops.higher_order.cond",
        "inputs": [{"arg": {"as_graph": {"graph": {"nodes": [{"target": "torch.ops.aten.add.Tensor"}]}}}}],
    },
    {"target": "_operator.mul"},
]
PROGRAM = {
    "graph_module": {
        "graph": {"nodes": NODES, "tensor_values": {"x": {"dtype": 7, "sizes": []}, "y": {"dtype": 99, "sizes": []}}}
    },
    "schema_version": {"major": 8, "minor": 20},
    "torch_version": "2.15.0+cpu",
}


def archive(program: object = PROGRAM, **members: str) -> bytes:
    inside = {"archive_format": "pt2", "archive_version": "0", "models/model.json": json.dumps(program), **members}
    return zipped({f"net/{name}": content for name, content in inside.items()})


def older(program: object = PROGRAM) -> bytes:
    return zipped({"version": "8.2", "serialized_exported_program.json": json.dumps(program)})


def facts_of(data: bytes) -> ArchiveFacts:
    found = read_artifact(BytesSource(data), "net.pt2")
    assert found.format is ArchiveFormat.EXPORTED_PROGRAM
    return found


def program_of(data: bytes) -> ProgramFacts:
    found = facts_of(data).program
    assert found is not None
    return found


def test_an_archive_tells_its_versions_operators_and_dtypes_those_of_branches_too() -> None:
    assert program_of(archive()) == ProgramFacts(
        container=ProgramContainer.ARCHIVE,
        archive_version="0",
        schema=(8, 20),
        torch="2.15.0+cpu",
        operators=("aten.add.Tensor", "aten.relu.default", "higher_order.cond"),
        dtypes=("dtype 99", "float32"),
        callables=("_operator.mul",),
        uses=SchemaUse(
            fields=(
                *(("", "graph_module"), ("", "schema_version"), ("", "torch_version")),
                *(("graph", "nodes"), ("graph", "tensor_values"), ("nodes", "inputs"), ("nodes", "target")),
                *(("schema_version", "major"), ("schema_version", "minor")),
                *(("tensor_values", "dtype"), ("tensor_values", "sizes")),
            ),
            alternatives=(
                *(("arg", "as_graph"), ("as_graph", "graph"), ("graph", "nodes"), ("graph_module", "graph")),
                *(("inputs", "arg"), ("nodes", "target")),
            ),
            numbers=(("dtype", 7), ("dtype", 99)),
        ),
    )


def test_weights_that_lie_one_by_one_are_told_by_their_list() -> None:
    assert program_of(archive(**{"data/weights/model_weights_config.json": "{}"})).weights_listed
    assert not program_of(archive(**{"data/weights/model.pt": ""})).weights_listed


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ([{"as_tensors": [{"name": "getitem"}]}], ("higher_order.cond",)),
        ([{"as_tensor": {"name": "getitem"}}], ()),
        ([{"as_tensors": []}, {"as_tensors": []}], ()),
        (None, ()),
    ],
)
def test_an_operator_of_python_with_one_result_written_as_a_list_is_named(outputs: object, found: object) -> None:
    node = {"target": "torch.ops.higher_order.cond", "outputs": outputs}
    assert (
        program_of(archive({"nodes": [node, {"target": "torch.ops.aten.x", "outputs": outputs}]})).lists_of_one == found
    )


def test_every_program_of_an_archive_is_read_and_the_one_that_is_returned_must_be_there() -> None:
    other = {"nodes": [{"target": "torch.ops.aten.sub.Tensor"}]}
    assert "aten.sub.Tensor" in program_of(archive(**{"models/other.json": json.dumps(other)})).operators
    found = facts_of(zipped({"net/archive_format": "pt2", "net/models/other.json": json.dumps(PROGRAM)}))
    assert [problem.kind for problem in found.problems] == ["member_missing"]


def test_a_program_with_too_many_ways_of_using_a_schema_is_refused() -> None:
    with pytest.raises(CannotRead) as raised:
        facts_of(archive({f"key{number}": 1 for number in range(MOST_USES + 1)}))
    assert raised.value.kind == "too_large"


def test_json_of_too_many_values_is_refused_before_it_is_read() -> None:
    with pytest.raises(CannotRead) as raised:
        read_json("models/model.json", b"[" + b"0," * MOST_VALUES + b"0]")
    assert raised.value.kind == "too_large"


def test_the_container_before_2_8_is_recognised() -> None:
    found = program_of(older({**PROGRAM, "schema_version": {"major": 8, "minor": 2}}))
    assert (found.container, found.archive_version, found.schema) == (ProgramContainer.OLDER, "8.2", (8, 2))


def test_a_package_of_compiled_code_is_recognised_whatever_its_folder() -> None:
    for name in ("net/data/aotinductor/model/m.so", "data/aotinductor/model/m.so"):
        assert program_of(zipped({name: library(0x3E)})).container is ProgramContainer.COMPILED


def package(machine: int, **metadata: object) -> bytes:
    folder = "net/data/aotinductor/model/"
    called = {"nodes": [{"name": "buf0", "node": {"target": "aten::sort.stable"}}, {"node": 3}, None]}
    taken = ("aoti_torch_clone", "torch_call_dispatcher", "memcpy")
    return zipped(
        {
            folder + "m.wrapper.so": library(machine, taken=taken, offered=("AOTInductorModelRun",)),
            folder + "m.wrapper_metadata.json": json.dumps(metadata),
            folder + "m.wrapper.json": json.dumps(called),
        }
    )


def test_a_package_tells_machine_instructions_device_and_what_it_calls_by_name() -> None:
    found = program_of(package(0x3E, AOTI_DEVICE_KEY="cpu", AOTI_MACHINE="x86_64", AOTI_CPU_ISA="AVX512 AVX512_VNNI"))
    assert (found.machine, found.instructions, found.on) == ("x86_64", ("avx512f", "avx512_vnni"), "cpu")
    assert found.operators == ("aten.sort.stable",)
    assert found.functions == ("aoti_torch_clone", "torch_call_dispatcher")


def test_a_package_without_a_library_that_can_be_read_has_a_problem() -> None:
    for members, kind in (({"m.cpp": ""}, "member_missing"), ({"m.so": "MZ"}, "no_library")):
        data = zipped({f"net/data/aotinductor/model/{name}": content for name, content in members.items()})
        assert [problem.kind for problem in facts_of(data).problems] == [kind]


def test_the_library_says_its_machine_where_nothing_is_written_beside_it() -> None:
    found = program_of(package(0xB7, AOTI_CPU_ISA=3))
    assert (found.machine, found.instructions, found.on) == ("aarch64", (), "")


def test_damaged_metadata_of_a_package_is_named() -> None:
    with pytest.raises(CannotRead, match="m_metadata.json"):
        facts_of(zipped({"net/data/aotinductor/model/m_metadata.json": "{"}))


@pytest.mark.parametrize("program", [{}, [], 7, {"schema_version": "8"}, {"schema_version": {"major": "8"}}])
def test_a_program_without_a_schema_version_has_a_problem(program: object) -> None:
    found = facts_of(archive(program))
    assert [problem.kind for problem in found.problems] == ["version_unreadable"]


def test_an_archive_without_a_program_has_a_problem() -> None:
    found = facts_of(zipped({"net/archive_format": "pt2", "net/archive_version": "0"}))
    assert [problem.kind for problem in found.problems] == ["member_missing"]


@pytest.mark.parametrize(
    "text", ["", "{", "nonsense", "[" * 100_000, "\ud83d".encode("utf-16-le", "surrogatepass").decode("latin-1")]
)
def test_what_is_no_json_is_damaged(text: str) -> None:
    with pytest.raises(CannotRead, match="models/model.json") as raised:
        facts_of(zipped({"net/archive_format": "pt2", "net/models/model.json": text}))
    assert raised.value.kind == "damaged"


def test_a_program_beyond_the_limits_is_not_read() -> None:
    with pytest.raises(CannotRead) as raised:
        read_artifact(BytesSource(archive()), "net.pt2", Limits(program_bytes=100))
    assert raised.value.kind == "too_large"


def test_mutilated_programs_are_read_or_refused_and_never_a_failure_of_ours() -> None:
    draw, text = random.Random(3), json.dumps(PROGRAM)
    refused = 0
    for _ in range(300):
        at = draw.randrange(len(text))
        broken = text[:at] + draw.choice(["", "[", "}", '"', "9", "null", "\x00"]) + text[at + draw.randrange(4) :]
        try:
            schema = program_of(zipped({"n/archive_format": "pt2", "n/models/model.json": broken})).schema
            assert all(type(number) is int for number in schema)
        except CannotRead as error:
            refused += 1
            assert error.kind == "damaged"
    assert 100 < refused < 300
