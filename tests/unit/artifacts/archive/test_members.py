"""The zip directory: limits hold before memory is spent, and nothing odd passes silently."""

import io
import struct
import zipfile
from dataclasses import replace

import pytest

from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.members import END, END64, ENTRY, LOCAL, LOCATOR64, read_directory, read_member
from tests.unit.builders.archives import BytesSource, torchscript, zipped


def kinds(data: bytes) -> set[str]:
    return {problem.kind for problem in read_directory(BytesSource(data), LIMITS).problems}


def refusal(data: bytes) -> str:
    with pytest.raises(CannotRead) as caught:
        directory = read_directory(BytesSource(data), LIMITS)
        for member in directory.inside.values():
            read_member(BytesSource(data), member, 1 << 20, LIMITS)
    return caught.value.kind


@pytest.mark.parametrize("packed", [False, True])
def test_members_are_named_below_the_root_and_read_back(packed: bool) -> None:
    source = BytesSource(zipped({"net/version": "3\n", "net/code/a.py": "x" * 5000}, packed=packed))
    directory = read_directory(source, LIMITS)
    assert (directory.root, directory.count, directory.problems) == ("net", 2, ())
    assert read_member(source, directory.inside["version"], 100, LIMITS) == b"3\n"
    assert read_member(source, directory.inside["code/a.py"], 5000, LIMITS) == b"x" * 5000


def test_members_of_other_folders_are_kept_apart() -> None:
    directory = read_directory(BytesSource(zipped({"net/version": "3", "other/version": "4"})), LIMITS)
    assert set(directory.inside) == {"version", "../other/version"}


@pytest.mark.parametrize("name", ["net/../../etc/passwd", "/etc/passwd", "net\\..\\x", "C:/x", "net/.."])
def test_a_name_that_leaves_the_folder_is_a_problem(name: str) -> None:
    assert kinds(zipped({"net/version": "3", name: "x"})) == {"unsafe_name"}


def test_a_symbolic_link_is_a_problem() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("net/version", "3")
        link = zipfile.ZipInfo("net/data.pkl")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert kinds(buffer.getvalue()) == {"symlink"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_a_problem() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("net/version", "3")
        archive.writestr("net/version", "10")
    assert kinds(buffer.getvalue()) == {"duplicate_member"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("net/DATA/0", "duplicate_member"),
        ("NET/data/0", "duplicate_member"),
        ("net/.data/Version", "misspelt_name"),
        ("net/data/1", ""),
    ],
)
def test_capitals_are_not_distinguished_as_in_torch(name: str, kind: str) -> None:
    assert kinds(zipped({"net/data/0": "3", name: "x"})) == ({kind} if kind else set())


def test_a_name_that_is_no_utf_8_is_a_problem() -> None:
    data = zipped({"net/version": "3", "net/data/QQ": "x"}).replace(b"/QQ", b"/\xff\xfe")
    assert kinds(data) == {"unreadable_name"}


def test_a_bomb_is_not_unpacked() -> None:
    assert refusal(zipped({"net/code/a.py": b"\0" * 900_000}, packed=True)) == "zip_bomb"


def test_a_member_that_unpacks_to_more_than_it_promises_is_damaged() -> None:
    data = zipped({"net/a": b"abc" * 1000}, packed=True)
    assert refusal(data.replace(struct.pack("<I", 3000), struct.pack("<I", 30))) == "damaged"


def test_a_member_beyond_its_limit_is_not_read() -> None:
    source = BytesSource(zipped({"net/a": b"x" * 50_000}))
    directory = read_directory(source, LIMITS)
    before = source.taken
    with pytest.raises(CannotRead, match="at most 10"):
        read_member(source, directory.inside["a"], 10, LIMITS)
    assert source.taken == before


def test_a_changed_byte_is_seen_by_the_checksum() -> None:
    assert refusal(zipped({"net/a": b"hello world"}).replace(b"hello", b"hellO")) == "damaged"


def test_too_many_members_are_not_listed() -> None:
    data = zipped({f"net/{index}": b"" for index in range(20)})
    with pytest.raises(CannotRead, match="20 members; at most 10"):
        read_directory(BytesSource(data), replace(LIMITS, members=10))


def test_an_absurd_size_of_the_directory_is_refused() -> None:
    data = bytearray(torchscript())
    data[-10:-6] = struct.pack("<I", 0xFFFFFF00)
    assert refusal(bytes(data)) == "too_large"


def test_every_truncation_is_damage() -> None:
    whole = torchscript()
    for length in range(4, len(whole) - 1, 7):
        assert refusal(whole[:length]) == "damaged"


def test_what_stands_before_the_archive_is_damage_as_for_torch() -> None:
    assert refusal(b"PK\3\4" + b"x" * 100 + torchscript()) == "damaged"


def test_encrypted_members_are_not_supported() -> None:
    data = bytearray(zipped({"net/a": b"x"}))
    data[data.index(b"PK\1\2") + 8] |= 1
    assert refusal(bytes(data)) == "unsupported"
    assert kinds(bytes(data)) == {"unsupported"}  # also of weights, which are not read


@pytest.mark.parametrize(
    ("signature", "field", "value"),
    [
        (END, 4, 1),  # this disk
        (END, 6, 1),  # the disk with the directory
        (END, 8, 9),  # members on this disk
        (END, 20, 5),  # bytes of a comment
        (ENTRY, 8, 0x20),  # flags: a patch
        (ENTRY, 34, 1),  # the disk of a member
        (ENTRY, 38, 0x10),  # attributes: a folder
        (LOCAL, 6, 8),  # flags, but not in the directory
        (LOCAL, 8, 8),  # packed, but not in the directory
        (LOCAL, 22, 7),  # size
        (LOCAL, 26, 4),  # bytes of the name
        (LOCAL, 28, 9999),  # bytes of further fields, up to the directory
    ],
)
def test_fields_that_torch_does_not_write_are_a_problem(signature: bytes, field: int, value: int) -> None:
    data = bytearray(zipped({"net/a": b"x", "net/b": b"y"}))
    assert not kinds(bytes(data))
    struct.pack_into("<H", data, data.index(signature) + field, value)
    assert kinds(bytes(data)) == {"foreign_zip"}


@pytest.mark.parametrize("at", [4, 16, 24, 72])  # bytes of the record, its disk, members on it, number of disks
def test_a_64_bit_directory_of_several_disks_is_a_problem(at: int) -> None:
    plain = zipped({"net/a": b"x"})
    where = plain.index(END)
    count, size, offset = struct.unpack("<HII", plain[where + 10 : where + 20])
    record = struct.pack("<4sQHHIIQQQQ", END64, 44, 45, 45, 0, 0, count, count, size, offset)
    whole = bytearray(plain[:where] + record + struct.pack("<4sIQI", LOCATOR64, 0, where, 1) + plain[where:])
    assert not kinds(bytes(whole))
    whole[where + at] += 1
    assert kinds(bytes(whole)) == {"foreign_zip"}


def test_a_member_that_ends_beyond_the_file_is_damage_before_it_is_read() -> None:
    data = zipped({"net/a": b"x" * 77}).replace(struct.pack("<II", 77, 77), struct.pack("<II", 7777, 7777))
    with pytest.raises(CannotRead, match="outside the archive"):
        read_directory(BytesSource(data), LIMITS)


@pytest.mark.parametrize(("count", "refused"), [(1, False), (0xFFFF, False), (2, True)])
def test_a_64_bit_directory_is_the_one_that_counts(count: int, refused: bool) -> None:
    data = zipped({"net/a": b"x"})
    at = data.rindex(b"PK\5\6")
    size, offset = struct.unpack("<II", data[at + 12 : at + 20])
    record = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, size, offset)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, at, 1)
    end = data[at : at + 10] + struct.pack("<H", count) + data[at + 12 :]
    whole = data[:at] + record + locator + end
    if refused:
        assert refusal(whole) == "damaged"
    else:
        assert read_directory(BytesSource(whole), LIMITS).count == 1


def test_sizes_of_64_bits_are_read() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, archive.open("net/a", "w", force_zip64=True) as member:
        member.write(b"content")
    source = BytesSource(buffer.getvalue())
    assert read_member(source, read_directory(source, LIMITS).inside["a"], 100, LIMITS) == b"content"
