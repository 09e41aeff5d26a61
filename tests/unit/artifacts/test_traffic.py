"""Files of requests: what is written is read, whole lines survive a kill, and a mistake is named by file and line."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.artifacts.traffic import TrafficWriter, read_header, read_traffic
from harness.core.errors import ConfigError
from harness.core.traffic import TrafficHeader, TrafficRequest

FIRST = '{"format": "torchscript-gate requests", "version": 1}'

requests_of_any_kind = st.builds(
    TrafficRequest,
    at=st.floats(0, 1e6),
    method=st.sampled_from(("GET", "POST")),
    path=st.from_regex(r"\A/[!-~]{0,30}\Z"),
    headers=st.dictionaries(st.from_regex(r"\A[a-z-]{1,9}\Z"), st.from_regex(r"\A[ -~é]{0,9}\Z"), max_size=3),
    body=st.binary(max_size=60) | st.text(max_size=40).map(str.encode),
)


@given(st.lists(requests_of_any_kind, max_size=4))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, requests: list[TrafficRequest]) -> None:
    file = tmp_path_factory.mktemp("requests") / "requests.jsonl"
    header = TrafficHeader(
        protocol="v2", source="http://x", started="2026-01-01T00:00:00Z", sampled=0.5, redacted=("a",)
    )
    with TrafficWriter(file, header) as writer:
        for request in requests:
            writer.write(request)
    assert read_header(file) == header
    assert list(read_traffic(file)) == requests
    file.unlink()


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_line_that_a_kill_cut_off_does_not_count(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_bytes((FIRST + '\n{"path": "/a", "body": "é"}\n{"path": "/b"}\n').encode()[:-cut])
    assert [request.path for request in read_traffic(file)] == (["/a", "/b"] if cut == 1 else ["/a"])


def test_by_hand_a_body_is_json_and_most_fields_have_defaults(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text(FIRST + '\n\n{"path": "/a", "body": {"json": {"x": [1, "é"]}}}\n')
    assert list(read_traffic(file)) == [TrafficRequest(path="/a", body='{"x":[1,"é"]}'.encode())]
    assert next(read_traffic(file)).line == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ":1: no file of requests; the first line is"),
        ('{"inputs": []}\n', ":1: no file of requests; the first line is"),
        ('{"format": "har", "version": 1}\n', ':1.format: expected one of torchscript-gate requests, got "har"'),
        (FIRST.replace("1}", "2}"), ":1.version: expected 1, the version that this gate reads, got 2"),
        (FIRST + '\n{"path": "/a"\n{"path": "/b"}\n', ":2: no JSON: "),
        (FIRST + "\n[]\n", ":2: expected an object, got []"),
        (FIRST + '\n{"path": "/a"}\n{"at": 1}\n', ":3.path: missing"),
        (FIRST + '\n{"path": "/a b"}\n', ':2.path: expected a path that begins with "/"'),
        (FIRST + '\n{"path": "/a", "boby": ""}\n', ":2.boby: unknown key"),
        (FIRST + '\n{"path": "/a", "at": -1}\n', ":2.at: expected a number of seconds >= 0, got -1"),
        (FIRST + '\n{"path": "/a", "headers": {"A": "b"}}\n', ":2.headers.A: unknown key"),
        (FIRST + '\n{"path": "/a", "headers": {"a": "b\\r\\nc: d"}}\n', ":2.headers.a: expected text of one line"),
        (FIRST + '\n{"path": "/a", "body": {"base64": "%"}}\n', ":2.body.base64: no base64"),
        (FIRST + '\n{"path": "/a", "body": {"x": 1}}\n', ":2.body: expected text, "),
    ],
)
def test_a_mistake_is_named_by_file_and_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        list(read_traffic(file))
    assert str(refused.value).startswith(f"{file}{words}")


def test_nothing_is_overwritten_and_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    with pytest.raises(ConfigError, match="requests.jsonl cannot be read: No such file"):
        read_header(file)
    file.touch()
    with pytest.raises(ConfigError, match="requests.jsonl is there already"):
        TrafficWriter(file, TrafficHeader())


def test_many_requests_are_read_in_little_memory(tmp_path: Path) -> None:
    """100 MB of lines, in a process that may have 40 MB more than it starts with."""
    file = tmp_path / "requests.jsonl"
    line = '{"at": 1.5, "path": "/a", "body": "' + 10_000 * "x" + '"}\n'
    file.write_text(FIRST + "\n" + 10_000 * line)
    program = (
        "import resource, sys; from pathlib import Path; from harness.artifacts.traffic import read_traffic\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(sum(1 for _ in read_traffic(Path(sys.argv[1]))))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
    count, kilobytes = map(int, done.stdout.split())
    assert count == 10_000
    assert kilobytes < 40_000
