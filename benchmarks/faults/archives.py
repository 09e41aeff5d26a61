"""Edited archives: no file that a release refuses may be predicted to load in it.

Genuine artifacts of the zoo, without the large ones that are there for times, are exported in several releases and
edited in the fields of the zip, the opcodes of a pickle, the words and lines of their code, or their members; others
have bits flipped anywhere. After an edit of contents the archive is written as torch writes one: with its serialization
id as it was, made again (as only a forger would), or left out with ``byteorder`` (as torch before 2.1 did).
"""

import json
import pickletools
import random
import re
import struct
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from packaging.version import Version

from harness.artifacts.archive.members import END, ENTRY, LOCAL, SERIALIZATION_ID
from harness.artifacts.fixture_folders import read_fixtures
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.registries import registry_of
from harness.core.environment import Environment, EnvSpec
from harness.core.prediction import Prediction
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from tests.integration.checks.prediction.answers import torch_answers

PROJECT = Path(__file__).resolve().parents[2]
COUNT = 1000
EXPORTERS, LOADERS = ("2.1.2", "2.15.0"), ("2.1.2", "2.6.0")
DEADLINE_S = 1800.0
Members = dict[str, bytes]
Edit = Callable[[random.Random, Members], str]

# Layouts of the zip's records: their signature and the offsets of fields of 2 and of 4 bytes.
RECORDS = (
    (END, (4, 6, 8, 10, 20), (12, 16)),
    (ENTRY, (4, 6, 8, 10, 28, 30, 32, 34, 36), (16, 20, 24, 38, 42)),
    (LOCAL, (4, 6, 8, 26, 28), (14, 18, 22)),
)


@dataclass(frozen=True)
class Mutant:
    """An edited archive and what was done to it."""

    data: bytes
    what: str


def attack(count: int, seed: int) -> list[str]:
    """Return the mutants that a release refused and that were predicted to load in it, or the reverse."""
    with tempfile.TemporaryDirectory(prefix="gate-archives-") as folder:
        environments = {release: _environment(release) for release in {*EXPORTERS, *LOADERS}}
        declarations = [item for item in read_fixtures(PROJECT / "fixtures" / "zoo") if "served" not in item.tags]
        genuine = []
        for release in EXPORTERS:
            made = Path(folder) / release
            python = environments[release].interpreter
            wanted = [
                item for item in declarations if item.requires is None or Version(item.requires) <= Version(release)
            ]
            genuine += sorted(torch_answers(python, made, wanted, []))
        loaders = {side: environments[release] for side, release in zip(("old", "new"), LOADERS, strict=True)}
        artifacts = [Path(path).read_bytes() for path in genuine]
        return wrong_predictions(artifacts, loaders, Path(folder) / "mutants", count, seed)


def wrong_predictions(
    genuine: Sequence[bytes], environments: Mapping[str, Environment], folder: Path, count: int, seed: int
) -> list[str]:
    """Write ``count`` mutants of ``genuine`` into ``folder`` and return a line for each wrong prediction."""
    folder.mkdir()
    drawn = {f"{index:05}.pt": mutant(genuine, random.Random(f"{seed} {index}")) for index in range(count)}
    for name, item in drawn.items():
        (folder / name).write_bytes(item.data)
    root = default_environment_root()
    registries = {side: registry_of(environment, root) for side, environment in environments.items()}
    verdicts = {name: inspect_file(str(folder / name), registries).verdicts for name in drawn}
    for name, sides in verdicts.items():
        if all(verdict.prediction is Prediction.UNKNOWN for verdict in sides.values()):  # whatever torch says
            (folder / name).unlink()
    said = {side: _loaded(environment.interpreter, folder) for side, environment in environments.items()}
    wrong, tally = [], dict.fromkeys(Prediction, 0)
    for name, item in drawn.items():
        for side, verdict in verdicts[name].items():
            tally[verdict.prediction] += 1
            refused = said[side].get(name, "")
            if verdict.prediction is (Prediction.LOADS if refused else Prediction.FAILS):
                first = next((finding.text for finding in verdict.findings), "")
                wrong.append(
                    f"{name} {registries[side].torch}: {item.what}: {verdict.prediction} {first}"
                    f"; torch: {' '.join(refused.split())[:160] or 'loaded'}"
                )
    print(f"{count} mutants in {len(registries)} releases:", ", ".join(f"{n} {word}" for word, n in tally.items()))
    return wrong


def mutant(genuine: Sequence[bytes], chance: random.Random) -> Mutant:
    """Return one archive of ``genuine`` with one drawn edit."""
    data = chance.choice(genuine)
    kind = chance.choice(("zip", "bits", "pickle", "pickle", "code", "code", "code", "members"))
    if kind == "zip":
        return _with_field(data, chance)
    if kind == "bits":
        return _with_flips(data, chance)
    members, methods = _unpacked(data)
    edit = chance.choice(EDITS[kind])
    what = edit(chance, members)
    sealed = chance.choice(("kept", "forged", "absent"))
    if sealed == "absent":
        for name in (SERIALIZATION_ID, "byteorder"):
            members.pop(name, None)
    return Mutant(_packed(members, methods, forge=sealed == "forged"), f"{what}, serialization id {sealed}")


def _environment(release: str) -> Environment:
    root = default_environment_root()
    builder = EnvironmentBuilder(root, progress=lambda _name, _text: None, uv=find_uv())
    return builder.build(EnvSpec(name=release, release=release))


def _loaded(python: str, folder: Path) -> dict[str, str]:
    program = str(Path(__file__).with_name("_load_each.py"))
    done = subprocess.run(
        [python, "-s", program, str(folder)], capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


def _with_field(data: bytes, chance: random.Random) -> Mutant:
    edited = bytearray(data)
    signature, short, long = chance.choice(RECORDS)
    places = [match.start() for match in re.finditer(re.escape(signature), data)]
    at, width = chance.choice([*((offset, 2) for offset in short), *((offset, 4) for offset in long)])
    place = chance.choice(places)
    top = (1 << 8 * width) - 1
    before = int.from_bytes(data[place + at : place + at + width], "little")
    value = chance.choice((0, 1, 2, top, top - 1, before + 1, before - 1, before ^ 1 << chance.randrange(8 * width)))
    edited[place + at : place + at + width] = (value & top).to_bytes(width, "little")
    return Mutant(bytes(edited), f"zip {signature[2:].hex()} +{at}: {before} -> {value & top}")


def _with_flips(data: bytes, chance: random.Random) -> Mutant:
    edited = bytearray(data)
    begin = chance.choice((0, data.rfind(ENTRY, 0, data.index(ENTRY) + 1), len(data) - 22))
    places = [chance.randrange(begin, len(data)) for _ in range(chance.choice((1, 1, 2, 8)))]
    for place in places:
        edited[place] ^= 1 << chance.randrange(8)
    return Mutant(bytes(edited), f"bits of bytes {places}")


def _rewritten(edit: Callable[[random.Random, bytes], bytes], what: str, ending: str) -> Edit:
    """Return an edit of the content of a drawn member whose name ends with ``ending``."""

    def apply(chance: random.Random, members: Members) -> str:
        names = [name for name in members if name.endswith(ending) and len(members[name]) > 3]
        name = chance.choice(names)
        members[name] = edit(chance, members[name])
        return f"{what} in {name}"

    return apply


def _operations(content: bytes) -> list[bytes]:
    starts = [position for _, _, position in pickletools.genops(content)]
    return [content[begin:end] for begin, end in zip(starts, [*starts[1:], len(content)], strict=True)]


def _operation(change: Callable[[random.Random, list[bytes], int], None], of: bytes = b"") -> Callable[..., bytes]:
    def edit(chance: random.Random, content: bytes) -> bytes:
        pieces = _operations(content)
        places = [index for index, piece in enumerate(pieces) if index and (not of or piece[:1] in of)]
        if places:
            change(chance, pieces, chance.choice(places))
        return b"".join(pieces)

    return edit


def _set(value: Callable[[random.Random, bytes], bytes]) -> Callable[[random.Random, list[bytes], int], None]:
    def change(chance: random.Random, pieces: list[bytes], index: int) -> None:
        pieces[index] = value(chance, pieces[index])

    return change


def _duplicate(_: random.Random, pieces: list[bytes], index: int) -> None:
    pieces.insert(index, pieces[index])


def _delete(_: random.Random, pieces: list[bytes], index: int) -> None:
    del pieces[index]


def _swap(_: random.Random, pieces: list[bytes], index: int) -> None:
    pieces[index - 1], pieces[index] = pieces[index], pieces[index - 1]


def _copy(chance: random.Random, pieces: list[bytes], index: int) -> None:
    pieces[index] = chance.choice(pieces)


def _misspelt(chance: random.Random, text: bytes) -> bytes:
    """Return a global or a string with one letter replaced; its length stays."""
    letters = [match.start() for match in re.finditer(rb"[A-Za-z_]", text) if match.start() > 4]
    if not letters:
        return text
    at = chance.choice(letters)
    return text[:at] + chance.choice([b"q", b"Z", b"_"]) + text[at + 1 :]


def _other_global(chance: random.Random, _: bytes) -> bytes:
    return chance.choice((b"cos\nsystem\n", b"cbuiltins\neval\n", b"ctorch\nTensor\n", b"ctorch\nQuatStorage\n"))


def _lines(change: Callable[[random.Random, list[bytes], int], None]) -> Callable[[random.Random, bytes], bytes]:
    def edit(chance: random.Random, content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        change(chance, lines, chance.randrange(1, len(lines)))
        return b"".join(lines)

    return edit


def _words(pattern: bytes, value: Callable[[random.Random, bytes, list[bytes]], bytes]) -> Callable[..., bytes]:
    def edit(chance: random.Random, content: bytes) -> bytes:
        found = list(re.finditer(pattern, content))
        if not found:
            return content
        match = chance.choice(found)
        word = value(chance, match[0], [item[0] for item in found])
        return content[: match.start()] + word + content[match.end() :]

    return edit


def _indented(chance: random.Random, line: bytes) -> bytes:
    return chance.choice((b" " + line, b"  " + line, line.removeprefix(b" "), line.removeprefix(b"  "), b"\t" + line))


WORD, TYPE, LITERAL = (
    rb"[A-Za-z_][\w.]*",
    rb"(?<=: )[A-Z]\w+|(?<=> )[A-Z]\w+|(?<=\[)[A-Z]\w+",
    rb"\b\d+(?:\.\d*)?|\"\w*\"",
)
SIGNS = rb"[()\[\],:=.\-]"
EDITS: Mapping[str, Sequence[Edit]] = {
    "pickle": [
        _rewritten(edit, what, ending)
        for ending in ("data.pkl", "data.pkl", "constants.pkl")
        for what, edit in {
            "a misspelt global": _operation(_set(_misspelt), b"c"),
            "another global": _operation(_set(_other_global), b"c"),
            "a misspelt string": _operation(_set(_misspelt), b"X"),
            "an operation twice": _operation(_duplicate),
            "an operation less": _operation(_delete),
            "two operations swapped": _operation(_swap),
            "an operation replaced": _operation(_copy),
            "another number": _operation(_set(lambda chance, _: b"K" + chance.randbytes(1)), b"KMJ\x8a"),
            "another value": _operation(
                _set(lambda chance, _: chance.choice((b"N", b"\x88", b")", b"]", b"}"))), b"KMJGNX\x88\x89"
            ),
            "another reference": _operation(_set(lambda chance, _: b"h" + chance.randbytes(1)), b"hj"),
            "cut off": lambda chance, content: content[: chance.randrange(1, len(content))],
            "more behind it": lambda chance, content: content + chance.randbytes(3),
        }.items()
    ],
    "code": [
        _rewritten(edit, what, ".py")
        for what, edit in {
            "a misspelt word": _words(WORD, lambda chance, word, _: _misspelt(chance, b"     " + word)[5:]),
            "another word": _words(WORD, lambda chance, _, all_: chance.choice(all_)),
            "a misspelt type": _words(TYPE, lambda _chance, word, _: word + b"s"),
            "another type": _words(TYPE, lambda chance, _, all_: chance.choice([*all_, b"int", b"str", b"Quaternion"])),
            "another literal": _words(
                LITERAL, lambda chance, _, all_: chance.choice([*all_, b"None", b'"x"', b"-1", b"1.5"])
            ),
            "a malformed constant": _words(
                rb"(?<=\] = ).+", lambda chance, word, _: chance.choice((word[1:], word[:-1], b"x", b"[1", b'"a"'))
            ),
            "a sign less": _words(SIGNS, lambda _chance, _word, _all: b""),
            "another sign": _words(SIGNS, lambda chance, _, all_: chance.choice(all_)),
            "wrong indentation": _lines(_set(_indented)),
            "a line less": _lines(_delete),
            "a line twice": _lines(_duplicate),
            "two lines swapped": _lines(_swap),
            "a line replaced": _lines(_copy),
            "cut off": lambda chance, content: content[: chance.randrange(1, len(content))],
            "a byte replaced": lambda chance, content: _byte_replaced(chance, content),
        }.items()
    ],
}


def _byte_replaced(chance: random.Random, content: bytes) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + chance.randbytes(1) + content[at + 1 :]


def _member(change: Callable[[random.Random, Members, str], None], what: str) -> Edit:
    def apply(chance: random.Random, members: Members) -> str:
        name = chance.choice(sorted(members, key=lambda item: ("/" in item, item))[: chance.choice((6, len(members)))])
        change(chance, members, name)
        return f"{what} {name}"

    return apply


def _remove(_: random.Random, members: Members, name: str) -> None:
    del members[name]


def _rename(chance: random.Random, members: Members, name: str) -> None:
    members[_misspelt(chance, b"     " + name.encode())[5:].decode()] = members.pop(name)


def _exchange(chance: random.Random, members: Members, name: str) -> None:
    other = chance.choice(list(members))
    members[name], members[other] = members[other], members[name]


def _shorten(chance: random.Random, members: Members, name: str) -> None:
    members[name] = members[name][: chance.randrange(len(members[name]) + 1)]


def _revise(chance: random.Random, members: Members, _: str) -> None:
    name = chance.choice([name for name in ("version", ".data/version", "byteorder") if name in members])
    members[name] = chance.choice((b"", b"big", b"0\n", b"3", b"99\n", b"x\n", b"-1\n", b" 3\n", b"3.0\n", b"\xff"))


EDITS = {
    **EDITS,
    "members": [
        _member(_remove, "without"),
        _member(_rename, "another name for"),
        _member(_exchange, "other content of"),
        _member(_shorten, "a shorter"),
        _member(_revise, "another version or byteorder beside"),
    ],
}


def _unpacked(data: bytes) -> tuple[Members, dict[str, int]]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        items = archive.infolist()
        root = items[0].filename.partition("/")[0] + "/"
        contents = {item.filename.removeprefix(root): archive.read(item) for item in items}
        return contents, {item.filename.removeprefix(root): item.compress_type for item in items}


def _packed(members: Members, methods: Mapping[str, int], *, forge: bool) -> bytes:
    """Return a zip as torch writes it; ``forge`` makes its serialization id again."""
    if forge and SERIALIZATION_ID in members:
        identity = members.pop(SERIALIZATION_ID)
        seed = 0
        for content in filter(None, members.values()):
            seed ^= (zlib.crc32(content) + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & 0xFFFFFFFFFFFFFFFF
        members[SERIALIZATION_ID] = identity[:20] + b"%020d" % seed
    body, directory = b"", b""
    for name, content in members.items():
        method, raw = methods.get(name, 0), f"net/{name}".encode()
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        stored = content if method == zipfile.ZIP_STORED else packer.compress(content) + packer.flush()
        facts = struct.pack("<III", zlib.crc32(content), len(stored), len(content))
        head = struct.pack("<HHHHH", 0, 0x0808 if content else 0x0800, method, 0, 0)
        directory += (
            ENTRY + struct.pack("<H", 0) + head + facts + struct.pack("<HHHHHII", len(raw), *[0] * 5, len(body)) + raw
        )
        body += LOCAL + head + (bytes(12) if content else facts) + struct.pack("<HH", len(raw), 0) + raw + stored
        body += b"PK\x07\x08" + facts if content else b""
    count = len(members)
    return body + directory + END + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
