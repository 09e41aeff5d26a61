"""``attach``: what users name, and every form of the answer."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.apps.attach import attach  # noqa: F401  imported before processes that are to end meanwhile
from harness.apps.attach.find import container_ids
from harness.cli import main
from harness.machine.files import text_of
from harness.report.formats import ATTACH

SLEEPER = "import time; print('ready', flush=True); time.sleep(600)"


@pytest.fixture
def sleeper(request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", getattr(request, "param", SLEEPER)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("4194305",), "no process 4194305 here"),
        (("65534",), "a port? --port 65534"),
        (("1", "--absent", "fail"), "--absent without --probe"),
        (("-4",), "-4 is no number of a process"),
        (("server",), "server is no number of a process"),
        (("--container", "my-server"), "--container my-server is no id"),
        (("--port", "0"), "--port 0 is no TCP port"),
        (("--port", "1"), "--port 1: no process that can be seen here"),
        (("--name", "no-such-server"), "--name no-such-server: no process that can be seen here"),
        (("--container", "0123456789ab"), "--container 0123456789ab: no process that can be seen here"),
        (("1", "--window", "0"), "--window 0 is no such time"),
        (("1", "--out", "evidence"), "--out without --watch"),
        (("1", "--watch", "-3"), "--watch -3 is no time"),
        (("1", "--probe", "--gdb"), "--gdb with --probe"),
        (("--port", "1", "--watch", "0.1"), "--port 1: no process that can be seen here"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(
    words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attach", *words]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
    assert expected in line
    assert ";" in line  # what to do


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--absent", "fail"), 1)])
@pytest.mark.parametrize("which", [("--port", "1"), ("--name", "no-such-server"), ("4194305",)])
def test_a_probe_of_a_server_that_is_not_there_yet_passes_unless_it_is_told_to_fail(
    which: tuple[str, ...], options: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attach", *which, "--probe", *options]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: ")
    assert f"exit code {code}" in line


def test_the_command_itself_and_a_thread_are_no_processes_to_look_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", str(os.getpid())]) == 2
    assert "is this command itself" in capsys.readouterr().err
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    assert main(["attach", str(thread.native_id)]) == 2
    done.set()
    assert f"name its process: {os.getpid()}" in capsys.readouterr().err


def test_a_process_that_ends_meanwhile_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    process = subprocess.Popen(["sleep", "0.6"])
    waiting = threading.Thread(target=process.wait)
    waiting.start()
    assert main(["attach", str(process.pid), "--window", "1.5"]) == 2
    waiting.join()
    assert "it has ended while it was looked at" in capsys.readouterr().err


@pytest.mark.parametrize(
    "groups",
    [
        "12:pids:/docker/{}\n1:name=systemd:/docker/{}\n",
        "0::/system.slice/docker-{}.scope\n",
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podabc.slice/cri-containerd-{}.scope\n",
        "0::/machine.slice/libpod-{}.scope/container\n",
    ],
)
def test_a_container_is_known_by_its_control_group(groups: str) -> None:
    container = "3f2a1b" + "0" * 58
    assert set(container_ids(groups.replace("{}", container))) == {container}
    assert container_ids("0::/user.slice/user-1000.slice/session-3.scope\n") == []


@pytest.mark.parametrize("form", ATTACH.names)
def test_every_format_is_made_and_the_exit_code_says_that_it_is_not_certain(
    sleeper: "subprocess.Popen[bytes]", form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attach", str(sleeper.pid), "--window", "0.5", "--no-stop", "--format", form]) == 4
    out = capsys.readouterr().out
    assert "cannot be told" in out
    assert ("listens on no port" in out) == (form != "json")
    if form == "json":
        document = json.loads(out)
        (process,) = document["processes"]
        assert (document["exit_code"], process["pid"], process["state"]) == (4, sleeper.pid, "cannot be told")
        assert process["threads"][0]["waits_for"] == "a timer"
        assert process["stops_s"] == []


def test_a_probe_fails_only_for_what_hangs(
    sleeper: "subprocess.Popen[bytes]", capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["attach", str(sleeper.pid), "--probe", "--window", "0.5"]
    assert main(words) == 0
    (line,) = capsys.readouterr().out.strip().splitlines()
    assert f"process {sleeper.pid}" in line
    os.kill(sleeper.pid, signal.SIGSTOP)
    assert main(words) == 1
    assert capsys.readouterr().out.startswith("stopped")
    assert main(["attach", str(sleeper.pid), "--no-stop", "--window", "0.5"]) == 1
    assert f"kill -CONT {sleeper.pid}" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
@pytest.mark.parametrize("words", [(), ("--gdb",)])
def test_gdb_stops_a_process_only_where_it_is_asked_for(
    sleeper: "subprocess.Popen[bytes]",
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "gdb").symlink_to(shutil.which("gdb") or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    main(["attach", str(sleeper.pid), "--window", "0.5", "--format", "json", *words])
    (answer,) = json.loads(capsys.readouterr().out)["processes"]
    assert ("gdb" in answer["tool"]) == bool(words)
    assert bool(words) or "apt-get install elfutils" in " ".join(answer["remarks"])


@pytest.mark.skipif(text_of(Path("/proc/2/comm")) != "kthreadd\n", reason="sees no kernel threads")
def test_a_kernel_thread_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", "2"]) == 2
    assert "is a kernel thread" in capsys.readouterr().err


@pytest.mark.slow
def test_a_watch_waits_for_the_hang_and_leaves_a_bounded_number_of_files(
    sleeper: "subprocess.Popen[bytes]", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        (tmp_path / f"attach-20250101T0000{number:02}-1.json").write_text("{}")
    begin = time.monotonic()
    stop = threading.Timer(2.0, os.kill, (sleeper.pid, signal.SIGSTOP))
    stop.start()
    words = ["--watch", "60", "--window", "0.5", "--out", str(tmp_path)]
    assert main(["attach", str(sleeper.pid), *words]) == 1
    assert 2.0 < time.monotonic() - begin < 20.0
    files = sorted(tmp_path.iterdir())
    assert len(files) == 10
    assert json.loads(files[-1].read_text())["processes"][0]["state"] == "stopped"
    written = capsys.readouterr()
    assert written.out.rstrip().splitlines()[-1].startswith("stopped")
    assert f"evidence: {files[-1]}" in written.err


@pytest.mark.slow
def test_a_watch_of_a_port_waits_for_the_server_and_for_its_restart(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = f"import socket, time; one = socket.create_server(('127.0.0.1', {port})); time.sleep(600)"
    command = [sys.executable, "-m", "harness", "attach", "--port", str(port), "--watch", "60", "--window", "0.5"]
    watching = subprocess.Popen([*command, "--out", str(tmp_path)], stdout=subprocess.DEVNULL)
    servers: list[subprocess.Popen[bytes]] = []
    try:
        time.sleep(2)
        for _ in range(2):
            servers.append(subprocess.Popen([sys.executable, "-c", program]))
            time.sleep(3)
            assert watching.poll() is None
            if len(servers) == 1:
                servers[0].kill()
                servers[0].wait()
        os.kill(servers[1].pid, signal.SIGSTOP)
        assert watching.wait(30) == 1
        assert [path.name.endswith(f"-{servers[1].pid}.json") for path in tmp_path.iterdir()] == [True]
    finally:
        for process in (watching, *servers):
            process.kill()
            process.wait()


def test_a_watch_ends_in_time(sleeper: "subprocess.Popen[bytes]") -> None:
    begin = time.monotonic()
    assert main(["attach", str(sleeper.pid), "--watch", "0.1", "--window", "0.5"]) == 0
    assert time.monotonic() - begin < 5


LISTENER = (
    "import socket, time; one = socket.create_server(('127.0.0.1', 0));"
    " print(one.getsockname()[1], flush=True); one.accept()"
)


def test_who_listens_on_a_port_and_who_has_a_name_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    process = subprocess.Popen([sys.executable, "-c", LISTENER, "named-for-attach"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        for words in (["--port", str(port)], ["--name", "named-for-attach"]):
            assert main(["attach", *words, "--window", "0.5", "--no-stop", "--format", "json"]) == 0
            (answer,) = json.loads(capsys.readouterr().out)["processes"]
            assert (answer["pid"], answer["state"]) == (process.pid, "idle")
        with socket.create_connection(("127.0.0.1", port)):
            process.wait()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
