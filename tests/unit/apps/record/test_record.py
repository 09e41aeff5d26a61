"""The recorder between real clients and real servers of HTTP; no torch."""

import contextlib
import http.client
import http.server
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.apps.record.record import without
from harness.artifacts.traffic import read_header, read_traffic
from harness.core.traffic import TrafficRequest
from tests.integration.gate import PROJECT
from tests.programs.planting import free_port

BIG = b"x" * 3_000_000


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it got; ``/slow`` after a while, ``/big`` with much."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/slow":
            time.sleep(0.5)
        answer = BIG if self.path == "/big" else body
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.send_header("x-key", self.headers.get("authorization", ""))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def recording(tmp_path: Path, *options: str) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """The recorder in a process of its own before a server of ours, on the port that it listens on."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()
    port = free_port()
    to = f"http://127.0.0.1:{server.server_address[1]}"
    command = (
        sys.executable,
        "-m",
        "harness",
        "record",
        "--listen",
        str(port),
        "--to",
        to,
        "--out",
        str(tmp_path / "requests.jsonl"),
    )
    process = subprocess.Popen(
        (*command, *options), cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield port, process
    finally:
        process.kill()
        process.communicate()
        server.shutdown()
        server.server_close()


def post(port: int, path: str, body: bytes, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer, answer.read()


def test_every_byte_passes_and_requests_are_written_without_keys_and_named_fields(tmp_path: Path) -> None:
    with recording(tmp_path, "--redact", "user_id", "--protocol", "v2") as (port, process):
        body = json.dumps(
            {"user_id": 7, "inputs": [{"name": "x", "data": [0.1, 1e-320]}, {"name": "user_id", "data": [7]}]}
        )
        answer, echoed = post(
            port, "/v2/models/a/infer?user_id=7&b=1", body.encode(), authorization="secret", accept="*/*"
        )
        assert (answer.status, echoed.decode(), answer.headers["x-key"]) == (200, body, "secret")
        _, big = post(port, "/big", b"not JSON: 7")
        assert big == BIG
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            for place in range(3):  # kept alive
                connection.request("POST", "/kept", b'{"place": %d}' % place)
                connection.getresponse().read()
        process.terminate()
        printed, progress = process.communicate(timeout=20)
    assert process.returncode == 0, progress
    assert "4 requests of 5" in printed
    assert "not written: 1 (a body whose fields cannot be removed" in printed
    assert "shadow server.toml --requests" in printed
    first, *others = read_traffic(tmp_path / "requests.jsonl")
    assert first.path == "/v2/models/a/infer?user_id=&b=1"
    assert first.headers == {"accept": "*/*"}
    assert json.loads(first.body) == {
        "user_id": None,
        "inputs": [{"name": "x", "data": [0.1, 1e-320]}, {"name": "user_id", "data": None}],
    }
    assert [json.loads(request.body) for request in others] == [{"place": place} for place in range(3)]
    assert [request.at for request in others] == sorted(request.at for request in others)
    assert read_header(tmp_path / "requests.jsonl").redacted == ("user_id",)
    assert "secret" not in (tmp_path / "requests.jsonl").read_text()


def test_a_request_under_way_is_answered_before_the_recorder_ends(tmp_path: Path) -> None:
    with recording(tmp_path) as (port, process):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            connection.request("POST", "/slow", b"{}")
            time.sleep(0.2)
            process.terminate()
            assert connection.getresponse().read() == b"{}"
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert [request.path for request in read_traffic(tmp_path / "requests.jsonl")] == ["/slow"]


def test_a_killed_recorder_leaves_whole_requests(tmp_path: Path) -> None:
    with recording(tmp_path) as (port, process):
        for place in range(20):
            post(port, f"/{place}", b"x" * 1000)
        time.sleep(0.1)
        process.kill()
        process.communicate(timeout=20)
    assert [request.path for request in read_traffic(tmp_path / "requests.jsonl")] == [
        f"/{place}" for place in range(20)
    ]


def test_a_share_and_a_size_bound_the_file_and_requests_pass_still(tmp_path: Path) -> None:
    with recording(tmp_path, "--share", "0.5", "--most", "0.01MB") as (port, process):
        for _ in range(60):
            assert post(port, "/", b"x" * 1000)[0].status == 200
        process.terminate()
        printed, _ = process.communicate(timeout=20)
    assert (tmp_path / "requests.jsonl").stat().st_size <= 10_000 + 100
    assert "the file reached --most 0.01MB" in printed
    assert 5 <= len(list(read_traffic(tmp_path / "requests.jsonl"))) <= 9


def test_a_server_that_is_not_there_is_counted_and_its_client_is_let_go(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with recording(tmp_path, "--to", gone) as (port, process):
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                post(port, "/", b"{}")
            process.terminate()
            printed, _ = process.communicate(timeout=20)
    assert "the server refused the connection" in printed


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--to", "https://a"), "what is encrypted cannot be read on its way"),
        (("--to", "localhost:8000"), "expected http://HOST:PORT"),
        (("--listen", "http"), "expected [HOST:]PORT"),
        (("--share", "2"), "expected a share above 0, at most 1"),
        (("--most", "much"), "expected a size"),
    ],
)
def test_what_was_typed_wrongly_is_one_line(tmp_path: Path, options: tuple[str, str], says: str) -> None:
    right = {"--listen": "1234", "--to": "http://localhost:1", "--out": str(tmp_path / "r.jsonl"), **dict([options])}
    words = [word for pair in right.items() for word in pair]
    ended = subprocess.run(
        (sys.executable, "-m", "harness", "record", *words), cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert says in ended.stderr
    assert ended.stderr.count("\n") <= 2
    assert not (tmp_path / "r.jsonl").exists()


def test_without_names_nothing_is_parsed() -> None:
    request = TrafficRequest(path="/", body=b"\xff")
    assert without(request, frozenset()) is request
    with pytest.raises(ValueError, match="."):
        without(request, frozenset({"a"}))
