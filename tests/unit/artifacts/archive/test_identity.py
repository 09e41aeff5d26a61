"""A program is told from its weights: retrained models have one program, and another code is another one."""

import io
import zipfile

import pytest

from harness.artifacts.archive.identity import Identity, identity_of
from harness.artifacts.archive.limits import CannotRead
from tests.unit.builders.archives import CODE, BytesSource, golden, torchscript, zipped


def identity(data: bytes) -> Identity:
    return identity_of(BytesSource(data))


def rewritten(data: bytes, change: dict[str, bytes]) -> bytes:
    """The archive with some members, named without its root folder, replaced."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return zipped({name: change.get(name.partition("/")[2], archive.read(name)) for name in archive.namelist()})


def test_other_weights_leave_the_program_as_it_is() -> None:
    data = golden("dlrm")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        tensor = next(name for name in archive.namelist() if "/data/" in name)
        other = bytes(byte ^ 1 for byte in archive.read(tensor))
    before, after = identity(data), identity(rewritten(data, {tensor.partition("/")[2]: other}))
    assert before.program == after.program and before.weights != after.weights


def test_another_root_folder_and_debug_information_change_nothing() -> None:
    before = torchscript(code__debug_pkl=b"")
    assert identity(before) == identity(before.replace(b"net/", b"old/"))
    assert identity(torchscript()) == identity(torchscript(code__x__py__debug_pkl=b"where it came from"))


@pytest.mark.parametrize("member", ["code____torch____m.py", "data.pkl", "constants.pkl", "version", ".data__version"])
def test_code_structure_and_versions_are_the_program(member: str) -> None:
    name = member.replace("____torch____", "/__torch__/").replace(".data__", ".data/")
    before = {"net/data.pkl": b"\x80\x02}.", "net/constants.pkl": b"\x80\x02).", "net/version": b"3\n"}
    before |= {"net/.data/version": b"3\n", "net/code/__torch__/m.py": CODE.encode()}
    after = {**before, f"net/{name}": before[f"net/{name}"] + b" "}
    assert identity(zipped(before)).program != identity(zipped(after)).program


def mangled(first: int, second: int, *, crossed: bool = False) -> bytes:
    """A module with two classes of one name, numbered as the exporting process counted them."""
    bodies = {first: "x + 1", second: "x + 2"}
    root = (second, first) if crossed else (first, second)
    members = {
        "net/data.pkl": "".join(f"c__torch__.___torch_mangle_{number}\nNet\n" for number in root),
        "net/version": "3\n",
    }
    for number, body in bodies.items():
        members[f"net/code/__torch__/___torch_mangle_{number}.py"] = (
            f"def f(x: __torch__.___torch_mangle_{number}.Net): {body}"
        )
    return zipped(members)


def test_numbers_that_the_exporting_process_gave_to_classes_say_nothing() -> None:
    assert identity(mangled(3, 4)) == identity(mangled(17, 5))
    assert identity(mangled(3, 4)) == identity(mangled(9, 10))


def test_classes_that_are_used_the_other_way_round_are_another_program() -> None:
    assert identity(mangled(3, 4)).program != identity(mangled(3, 4, crossed=True)).program


def test_a_packed_tensor_is_what_it_unpacks_to() -> None:
    members = {"net/data.pkl": b"\x80\x02}.", "net/data/0": bytes(range(250)) * 20_000}
    assert identity(zipped(members, packed=True)) == identity(zipped(members))


def test_a_packed_tensor_that_cannot_be_unpacked_has_no_identity() -> None:
    data = bytearray(zipped({"net/data.pkl": b"\x80\x02}.", "net/data/0": bytes(range(250)) * 40}, packed=True))
    at = data.index(b"net/data/0") + len(b"net/data/0")
    data[at] |= 7  # a kind of block that deflate does not have
    with pytest.raises(CannotRead, match="unpacked"):
        identity(bytes(data))
