"""Limits of a worker, against the real kernel: each is set in a process of its own and tried there."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LIMITS = Path(__file__).resolve().parents[3] / "harness" / "worker" / "limits.py"
NONE: dict[str, Any] = {"memory_bytes": None, "cpu_s": None, "file_bytes": None, "network": True}
TRY = """
import importlib.util, json, os, resource, socket, sys, threading
spec = importlib.util.spec_from_file_location("limits", sys.argv[1])
limits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(limits)
print(json.dumps(limits.apply(json.loads(sys.argv[2]), sys.argv[3] or None)), flush=True)
def tried(action):
    try:
        action()
    except BaseException as error:
        return type(error).__name__, getattr(error, "errno", None)
    return "fine", None
"""


def run(code: str, own: Path | None = None, **limits: object) -> tuple[dict[str, str], list[Any]]:
    """Return what was refused, and what ``code`` prints under these limits."""
    command = [sys.executable, "-c", TRY + code, str(LIMITS), json.dumps({**NONE, **limits}), str(own or "")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    refused, *lines = map(json.loads, done.stdout.splitlines())
    return refused, lines


def test_nothing_is_limited_that_was_not_asked_for() -> None:
    refused, (kinds, sockets) = run("""
print(json.dumps([resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_CPU)]))
print(json.dumps(tried(lambda: socket.socket(socket.AF_INET).close())))
""")
    assert refused == {}
    assert kinds == [-1, -1]
    assert sockets == ["fine", None]


def test_memory_beyond_the_limit_is_an_error_and_what_is_below_it_is_not() -> None:
    _, (large, small) = run(
        "print(json.dumps(tried(lambda: bytearray(1 << 30))))\nprint(json.dumps(tried(lambda: bytearray(1 << 26))))",
        memory_bytes=1 << 29,
    )
    assert large == ["MemoryError", None]
    assert small == ["fine", None]


def test_a_file_beyond_the_limit_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write = f"file = open({str(path)!r}, 'wb')\nfile.write(bytes(9000))\n"
    _, (written,) = run(f"{write}print(json.dumps(tried(file.flush)), flush=True)\nos._exit(0)", file_bytes=5000)
    assert written == ["OSError", 27]
    assert path.stat().st_size == 5000


@pytest.mark.parametrize("before", [1 << 29, 1 << 28])
def test_soft_and_hard_limit_are_one_so_that_a_model_cannot_raise_it_and_one_that_was_lower_stays(before: int) -> None:
    _, (data,) = run(
        f"resource.setrlimit(resource.RLIMIT_DATA, ({before}, {before}))\n"
        "limits.apply(json.loads(sys.argv[2]))\nprint(json.dumps(resource.getrlimit(resource.RLIMIT_DATA)))",
        memory_bytes=1 << 29,
    )
    assert data == [before, before]


def test_without_a_network_only_local_sockets_open_in_every_thread_and_program() -> None:
    refused, (sockets, thread, program, ring) = run(
        """
families = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
print(json.dumps([tried(lambda f=f: socket.socket(f).close()) for f in families]))
seen = []
asking = threading.Thread(target=lambda: seen.append(tried(lambda: socket.socket(socket.AF_INET).close())))
asking.start(); asking.join()
print(json.dumps(seen))
print(json.dumps(os.system(sys.executable + " -c 'import socket; socket.socket()' 2>/dev/null") != 0))
libc = limits.ctypes.CDLL(None, use_errno=True)
print(json.dumps([libc.syscall(limits.IO_URING_SETUP, 1, 0), limits.ctypes.get_errno()]))
""",
        network=False,
    )
    if "network" in refused:
        pytest.skip(f"this kernel refuses: {refused['network']}")
    assert sockets == [["PermissionError", 13], ["PermissionError", 13], ["fine", None]]
    assert thread == [["PermissionError", 13]]
    assert program is True
    assert ring == [-1, 13]


def test_what_cannot_be_applied_is_reported_and_the_rest_is_applied() -> None:
    refused, (found,) = run(
        "limits.platform.machine = lambda: 'sparc'\n"
        "print(json.dumps([limits.apply(json.loads(sys.argv[2])), resource.getrlimit(resource.RLIMIT_DATA)[0]]))",
        network=False,
        memory_bytes=1 << 29,
    )
    assert found == [{"network": "no filter is known for sparc"}, 1 << 29]
    assert "memory" not in refused


def test_the_worker_is_the_first_that_the_kernel_ends() -> None:
    _, (score,) = run("print(json.dumps(open('/proc/self/oom_score_adj').read().strip()))")
    assert score == "1000"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    kept = (
        "run/.lock",
        "run/given/there",
        "run/probes/other/there",
        "run/probes/own/there",
        "beside/there",
        "open/there",
    )
    for name in kept:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"kept")
    return tmp_path


OWN = ["run/probes/own/new", "run/probes/own/there"]
OTHERS = ["run/given/there", "run/given/new", "run/probes/other/there"]


@pytest.mark.parametrize(
    ("runs_code", "where", "is_open"),
    [
        *((runs_code, where, True) for runs_code in (False, True) for where in OWN),
        *((runs_code, where, False) for runs_code in (False, True) for where in OTHERS),
        *((False, where, True) for where in ("beside/new", "beside/there")),
        *((True, where, False) for where in ("beside/new", "beside/there", "new")),
        *((True, where, True) for where in ("open/there", "open/new")),
        (False, "run/report.json", False),
    ],
)
def test_of_the_run_a_worker_writes_into_its_own_folder_alone_and_elsewhere_unless_it_runs_code(
    folders: Path, *, runs_code: bool, where: str, is_open: bool
) -> None:
    path, own = str(folders / where), folders / "run" / "probes" / "own"
    close = f"limits.close_elsewhere({str(own)!r}, {[str(folders / 'open')]!r})" if runs_code else "None"
    actions = (
        close,
        f"open({path!r}, 'ab').close()",
        f"os.rename({path!r}, {path + '2'!r})",
        f"os.mkdir({path + '-folder'!r})",
    )
    code = "\n".join(f"print(json.dumps(tried(lambda: {action})), flush=True)" for action in actions)
    refused, (closed, *found) = run(code, own=None if runs_code else own)
    if "results" in refused or closed[0] != "fine":
        pytest.skip(f"no Landlock here: {refused} {closed}")
    if is_open:
        assert found == [["fine", None]] * 3
    else:
        assert found[0] == found[2] == ["PermissionError", 13]
        assert found[1][0] in ("PermissionError", "FileNotFoundError")


def test_what_runs_code_reads_writes_to_devices_and_ends_its_own_processes_and_no_others(tmp_path: Path) -> None:
    code = f"""
print(json.dumps(tried(lambda: limits.close_elsewhere({str(tmp_path)!r}))), flush=True)
print(json.dumps(tried(lambda: open("/dev/null", "w").write("x"))), flush=True)
print(json.dumps(tried(lambda: open(sys.argv[1]).read())), flush=True)
pid = os.fork()
if pid == 0:
    import time
    time.sleep(60)
    os._exit(0)
print(json.dumps(tried(lambda: os.kill(pid, 9))), flush=True)
os.waitpid(pid, 0)
print(json.dumps(tried(lambda: os.kill(os.getppid(), 0))), flush=True)
version = limits.ctypes.CDLL(None).syscall(limits.CREATE_RULESET, None, 0, limits.RULESET_VERSION)
print(json.dumps(version >= limits.SCOPES_SINCE), flush=True)
"""
    _, (closed, device, reading, child, parent, refuses_signals) = run(code)
    if closed[0] != "fine":
        pytest.skip(f"no Landlock here: {closed}")
    assert [device, reading, child] == [["fine", None]] * 3
    assert parent == (["PermissionError", 1] if refuses_signals else ["fine", None])
