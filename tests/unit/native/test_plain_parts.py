"""The parts of the C++ worker that need no torch, held against Python's own: JSON, float texts, SHA-256, wire names."""

import hashlib
import json
import math
import random
import re
import shlex
import struct
import subprocess
from pathlib import Path

import pytest

from harness.environments.native import find_compiler
from harness.worker import wire

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[2] / "harness" / "native"
CONTRACT = NATIVE.parents[1] / "docs" / "formats" / "wire.md"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = find_compiler()
    if found is None:
        pytest.skip("no C++ compiler here")
    binary = tmp_path_factory.mktemp("plain") / "plain"
    command = [*shlex.split(found), "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, f"-I{NATIVE}", str(HERE / "plain.cpp"), "-o", str(binary)], check=True, timeout=120)
    return binary


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def say(plain: Path, text: str, *, code: int = 0) -> str:
    done = subprocess.run([str(plain)], input=text.encode(), capture_output=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout
    return done.stdout.decode().rstrip("\n")


def test_floats_are_written_as_python_writes_them(plain: Path) -> None:
    chance = random.Random(0)
    bits = (struct.unpack("<d", chance.randbytes(8))[0] for _ in range(20000))
    short = (chance.randrange(10**6) * 10.0 ** chance.randrange(-25, 25) for _ in range(20000))
    edges = [0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 9999999999999998.0, 1e-4, 1e-5, 5e-324, 2.0**-44, 1.7976931348623157e308]
    values = [value for value in (*edges, *bits, *short) if not math.isnan(value)]
    assert say(plain, json.dumps(values)) == compact(values)


def test_numbers_that_json_does_not_have_are_written_as_python_does(plain: Path) -> None:
    assert say(plain, "[NaN, Infinity, -Infinity]") == "[NaN,Infinity,-Infinity]"


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_strings_come_back(plain: Path, ensure_ascii: bool) -> None:
    points = [*range(0x300), 0x7FF, 0x800, 0x20AC, 0xFFFD, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]
    values = [chr(point) for point in points] + ["", 'a"b\\c/d', "\r\n\t\b\f", "né 😀"]
    assert say(plain, json.dumps(values, ensure_ascii=ensure_ascii)) == compact(values)


def test_any_structure_comes_back(plain: Path) -> None:
    value = {"a": [1, -(2**63), 2**63 - 1, True, False, None, [], {}], "": {"x": [[["deep"]]]}, "order": 1, "kept": 2}
    assert json.loads(say(plain, json.dumps(value, indent=2))) == value
    assert list(json.loads(say(plain, json.dumps(value)))) == list(value)


@pytest.mark.parametrize("text", ["", "[", "[1,]", '{"a"}', '"a', '"\\x"', '"\\u12"', "nul", "1 2", "--1", "{1:2}"])
def test_what_is_no_json_is_refused(plain: Path, text: str) -> None:
    assert say(plain, text, code=1).startswith("not JSON at byte")


@pytest.mark.parametrize("size", [0, 1, 3, 55, 56, 63, 64, 65, 119, 120, 1000])
def test_digests_are_those_of_hashlib(plain: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    done = subprocess.run([str(plain), "digest"], input=data, capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().strip() == hashlib.sha256(data).hexdigest()


def test_wire_names_are_those_of_the_python_side() -> None:
    text = (NATIVE / "wire.hpp").read_text()
    names = dict(re.findall(r'const char\* k(\w+) = "(.*)";', text))
    numbers = {
        name: int(value.replace("'", "")) for name, value in re.findall(r"(?:int|long) k(\w+) = ([\d']+);", text)
    }
    assert names.pop("Outputs") == wire.OUTPUTS
    for name, value in names.items():
        python = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
        assert getattr(wire, python) == value
    assert numbers["Protocol"] == wire.PROTOCOL
    assert numbers["ExitOrphaned"] == wire.EXIT_ORPHANED
    assert numbers["ExitBroken"] == wire.EXIT_BROKEN
    assert numbers["ExitStepsDone"] == wire.EXIT_STEPS_DONE
    assert numbers["BeatNs"] == wire.BEAT_S * 1e9
    assert (numbers["LeastPauseNs"], numbers["MostPauseNs"]) == (wire.LEAST_PAUSE_S * 1e9, wire.MOST_PAUSE_S * 1e9)
    assert numbers["PauseFactor"] == wire.PAUSE_FACTOR
    assert numbers["ExitWaitS"] == wire.EXIT_WAIT_S
    assert f"kMostValues = {wire.MOST_VALUES // 1000}'000;" in text
    assert f"kLongestLineBytes = std::size_t{{{wire.LONGEST_LINE_BYTES >> 20}}} << 20;" in text


def test_every_step_of_the_wire_is_known_to_the_interpreter() -> None:
    steps = re.findall(r'^    \["(\w+)"', CONTRACT.read_text(), re.MULTILINE)
    script = (NATIVE / "run" / "script.hpp").read_text()
    assert len(steps) >= 10
    assert [step for step in steps if f'verb == "{step}"' not in script] == []
