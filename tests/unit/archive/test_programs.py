"""An exported program is read without torch: container, versions, operators, dtypes; what is damaged is one clear line."""

import json
import random

import pytest

from harness.archive.limits import CannotRead, Limits
from harness.archive.reading import read_artifact
from harness.domain.archive import ArchiveFacts, ArchiveFormat, ProgramContainer, ProgramFacts
from tests.unit.builders.archives import BytesSource, zipped

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
    )


def test_the_container_before_2_8_is_recognised() -> None:
    found = program_of(older({**PROGRAM, "schema_version": {"major": 8, "minor": 2}}))
    assert (found.container, found.archive_version, found.schema) == (ProgramContainer.OLDER, "8.2", (8, 2))


def test_a_package_of_compiled_code_is_recognised_whatever_its_folder() -> None:
    for name in ("net/data/aotinductor/model/m.so", "data/aotinductor/model/m.so"):
        assert program_of(zipped({name: b"\x7fELF"})).container is ProgramContainer.COMPILED


def package(machine: int, **metadata: object) -> bytes:
    folder = "net/data/aotinductor/model/"
    called = {"nodes": [{"name": "buf0", "node": {"target": "aten::sort.stable"}}, {"node": 3}, None]}
    return zipped(
        {
            folder + "m.wrapper.so": b"\x7fELF\x02\x01" + bytes(12) + machine.to_bytes(2, "little") + bytes(44),
            folder + "m.wrapper_metadata.json": json.dumps(metadata),
            folder + "m.wrapper.json": json.dumps(called),
        }
    )


def test_a_package_tells_machine_instructions_device_and_what_it_calls_by_name() -> None:
    found = program_of(package(0x3E, AOTI_DEVICE_KEY="cpu", AOTI_MACHINE="x86_64", AOTI_CPU_ISA="AVX512 AVX512_VNNI"))
    assert (found.machine, found.instructions, found.on) == ("x86_64", ("avx512f", "avx512_vnni"), "cpu")
    assert found.operators == ("aten.sort.stable",)


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
