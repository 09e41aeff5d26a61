"""Each defect of a planted server is found in the new release, its twin is not, and nothing is left of either.

The server needs no torch: the environments are stubs.
"""

import importlib.util
import json

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.apps.shadow.shadow import shadow
from harness.checks.shadow.tree import MARK
from harness.core.environment import Environment
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.core.outcome import Decision
from harness.core.shadow import Quantity, Reason, Shadow
from harness.project import Project
from harness.report.formats import SHADOW, Shown
from tests.programs import stub

SERVER = stub.PROJECT / "tests" / "programs" / "planted_server.py"
FIRST = '{"format": "torchscript-gate requests", "version": 1, "protocol": "v2"}\n'
Run = Callable[..., Shadow]


def request(value: float, path: str = "/v2/models/m/infer") -> str:
    tensor = {"name": "x", "datatype": "FP32", "shape": [2], "data": [value, 0.5]}
    return json.dumps({"path": path, "body": {"json": {"inputs": [tensor]}}}) + "\n"


def left(folder: Path) -> list[str]:
    """Processes of a server of the gate that this test has started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}=".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return [command for command in found if str(folder) in command]


@pytest.fixture
def project(tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment) -> Iterator[Project]:
    sides = {"old": stub_environment, "new": other_stub_environment}
    made = Project(
        folder=tmp_path,
        environments=[f"{side}={environment.interpreter}" for side, environment in sides.items()],
        out=str(tmp_path / "out"),
    )
    yield made
    made.progress.finish()


def written(folder: Path, defect: str, more: str = "", ready_s: float = 3.0) -> Path:
    file = folder / "server.toml"
    file.write_text(
        f'command = "{{python}} {SERVER} {{port}} {{side}} {defect} {folder}"\nprotocol = "v2"\nrequest_deadline_s = 6\n'
        f"ready = {{ deadline_s = {ready_s} }}\nstop = {{ deadline_s = 3 }}\n{more}"
    )
    return file


@pytest.fixture
def run(project: Project) -> Run:
    def run_one(defect: str, count: int = 60, more: str = "") -> Shadow:
        file = None
        if count:
            file = project.folder / "requests.jsonl"
            slow = [request(at, "/v2/models/m/infer?slow") for at in range(6)]
            file.write_text(FIRST + "".join([*slow, *map(request, range(6, count))]))
        try:
            return shadow(project, written(project.folder, defect, more), requests=file)
        finally:
            assert left(project.folder) == []

    return run_one


def red(result: Shadow) -> dict[Quantity, Reason]:
    return {row.quantity: row.reason for row in result.rows if row.status == "FAIL"}


def test_a_server_that_exits_at_once_is_red_with_its_last_lines(run: Run) -> None:
    result = run("exits", count=0)
    assert (result.decision, red(result)) == (Decision.BLOCKED, {Quantity.READY: Reason.FAILS})
    life = result.new.lives[0]
    assert (life.end, life.log) == ("exit code 1", ("loading models", "error: unsupported operator aten::gone"))
    assert (Path(result.new.folder) / "server-1.log").read_text().startswith("loading models")
    text = SHADOW.render("console", result, Shown())
    assert "new: ended with exit code 1 before it was ready" in text


@pytest.mark.parametrize(
    ("server", "requests", "words"),
    [
        ('command = "gone-server {port}"', None, r"server.toml.command: gone-server cannot be executed: No such file"),
        ('command = "serve"', None, r"neither command nor environment has \{port\}"),
        ('command = "serve {port}"', '{"path": "/a"}\n', "requests.jsonl:1: no file of requests"),
        ('command = "serve {port}"', FIRST, r"protocol v2, and .*server.toml has http"),
        ('command = "serve {port}"\nprotocol = "v2"', FIRST, "requests.jsonl has no request"),
        ('command = "serve {port}"\nprotocol = "v2"', FIRST + "{}\n", "requests.jsonl:2.path: missing"),
        (
            'command = "serve {port}"\nprotocol = "v2"\nload = { arrivals = "recorded" }',
            FIRST + 2 * '{"path": "/a"}\n',
            "requests.jsonl: all requests arrived at one moment",
        ),
    ],
)
def test_bad_input_is_one_line(project: Project, server: str, requests: str | None, words: str) -> None:
    (project.folder / "server.toml").write_text(server)
    file = project.folder / "requests.jsonl" if requests is not None else None
    if file is not None:
        file.write_text(requests or "")
    with pytest.raises(ConfigError, match=words):
        shadow(project, project.folder / "server.toml", requests=file)


def test_a_gate_without_aiohttp_says_what_to_install(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EnvironmentUnavailable, match=r"needs aiohttp\b.*torchscript-gate\[server\]"):
        shadow(project, written(project.folder, "healthy"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("defect", "expected"),
    [
        ("never_ready", {Quantity.READY: Reason.LATE}),
        ("deadlocks", {Quantity.READY: Reason.HANGS}),
        ("other_port", {Quantity.READY: Reason.LATE}),
        ("hangs", {Quantity.ANSWERS: Reason.HANGS}),
        ("dies", {Quantity.ANSWERS: Reason.FAILS}),
        ("one_differs", {Quantity.ANSWERS: Reason.DIFFERS}),
        ("html", {Quantity.ANSWERS: Reason.DIFFERS}),
        ("unauthorized", {Quantity.ANSWERS: Reason.DIFFERS}),
        ("half", {Quantity.ANSWERS: Reason.DIFFERS}),
        ("other_names", {Quantity.ANSWERS: Reason.DIFFERS}),
        ("leaks", {Quantity.GROWTH: Reason.BEYOND}),
        ("drops", {Quantity.STOP: Reason.DIFFERS}),
        ("dies_at_stop", {Quantity.STOP: Reason.DIFFERS, Quantity.EXIT: Reason.DIFFERS}),
        ("ignores_stop", {Quantity.EXIT: Reason.DIFFERS}),
        ("leaves_a_daemon", {Quantity.EXIT: Reason.DIFFERS}),
    ],
)
def test_a_planted_defect_is_found(run: Run, defect: str, expected: dict[Quantity, Reason]) -> None:
    result = run(defect)
    assert (result.decision, red(result)) == (Decision.BLOCKED, expected)
    assert red(run(f"both:{defect}")) == {}


@pytest.mark.slow
@pytest.mark.parametrize("twin", ["healthy", "rounds"])
def test_a_healthy_twin_is_green(run: Run, twin: str) -> None:
    assert run(twin).decision == Decision.UPGRADE_OK


@pytest.mark.slow
def test_a_server_that_varies_in_both_releases_cannot_be_told_and_says_what_to_ignore(run: Run) -> None:
    result = run("both:varies")
    assert result.decision == Decision.INCONCLUSIVE
    assert "ignore = ['outputs.scores']" in " ".join(SHADOW.render("console", result, Shown()).split())
    assert run("both:varies", more='ignore = ["outputs.scores"]').decision == Decision.UPGRADE_OK


@pytest.mark.slow
def test_limits_that_were_written_block(run: Run) -> None:
    more = 'limits = { ready = "+50 %", memory = "+50 %" }'
    assert red(run("large", more=more))[Quantity.MEMORY] is Reason.BEYOND
    assert red(run("loads_slowly", more=more)) == {Quantity.READY_TIME: Reason.BEYOND}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_where_the_command_is_interrupted(project: Project, number: int) -> None:
    server = written(project.folder, "both:never_ready", ready_s=60.0)
    words = [word for each in project.environments for word in ("--env", each)]
    command = [sys.executable, "-m", "harness", "shadow", str(server), *words, "--out", str(project.folder / "out")]
    started = subprocess.Popen(command, cwd=stub.PROJECT, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not left(project.folder) and time.monotonic() < end:
        time.sleep(0.05)
    assert left(project.folder)
    started.send_signal(number)
    assert started.wait(20) == 130
    assert left(project.folder) == []
