"""Building environments with fake installers: small programs that behave like uv, or misbehave like it."""

import io
import re
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.environments.builder import EnvironmentBuilder, EnvironmentSlot, default_environment_root, earlier_root
from harness.environments.pythons import OWN_PYTHON
from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.machine.progress import Progress
from harness.project import Project
from tests.programs import stub
from tests.programs.installers import fake_uv
from tests.programs.stub import eventually

UV_UNKNOWN = """Using Python 3.11.7 environment at: tv
error: No solution found when resolving dependencies
  cause: Because there is no version of torch==99.0.0 and you require torch==99.0.0, we can conclude that your \
requirements are unsatisfiable.
"""
OLD_UV_UNKNOWN = """  \u00d7 No solution found when resolving dependencies:
  ╰─▶ Because there is no version of torch==99.0.0 and you require
      torch==99.0.0, we can conclude that your requirements are unsatisfiable.
"""
UV_NO_WHEEL = """Using Python 3.13.0 environment at: tv13
error: No solution found when resolving dependencies
  cause: Because torch==2.1.2 has no wheels with a matching Python ABI tag (e.g., `cp313`) and you require \
torch==2.1.2, we can conclude that your requirements are unsatisfiable.

hint: You require CPython 3.13 (`cp313`), but we only found wheels for `torch` (v2.1.2) with the following Python ABI \
tags: `cp38`, `cp39`, `cp310`, `cp311`
"""
UV_UNREACHABLE = """Using Python 3.11.7 environment at: tv
error: Request failed after 3 retries in 10.7s
  cause: Failed to fetch: http://127.0.0.1:9/simple/torch/
  cause: error sending request for url (http://127.0.0.1:9/simple/torch/)
  cause: client error (Connect)
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""
UV_DISK_FULL = """Using Python 3.11.7 environment at: small/e
Resolved 2 packages in 179ms
warning: Failed to hardlink files; falling back to full copy. This may lead to degraded performance.
error: Failed to install: mpmath-1.3.0-py3-none-any.whl (mpmath==1.3.0)
  cause: Failed to copy to `/small/e/lib/python3.11/site-packages/mpmath/functions/zeta.py`
  cause: failed to copy file from /cache/mpmath/functions/zeta.py to /small/e/mpmath/.tmpUgXo4x: \
No space left on device (os error 28)
"""
UV_DENIED = """Using CPython 3.11.2 interpreter at: /usr/bin/python3.11
Creating virtual environment at: ro/x
error: Failed to create virtual environment
  cause: Permission denied (os error 13)
"""
UV_NO_PACKAGE = """error: No solution found when resolving dependencies
  cause: Because nosuchpkg was not found in the package registry and you require nosuchpkg==1.0, we can conclude \
that your requirements are unsatisfiable.
"""
PIP_UNKNOWN = """Looking in indexes: https://pypi.org/simple
ERROR: Could not find a version that satisfies the requirement torch==2.6.9 (from versions: 1.13.0, 2.5.1, 2.6.0, 2.7.0)
ERROR: No matching distribution found for torch==2.6.9
"""
PIP_UNREACHABLE = """Looking in indexes: http://127.0.0.1:9/simple
ERROR: Could not find a version that satisfies the requirement torch==2.6.0 (from versions: none)
ERROR: No matching distribution found for torch==2.6.0
"""


class Bench:
    """A root, a fake uv with a chosen behaviour, and what happened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "envs"
        self.calls_file = folder / "calls"
        self.said: list[tuple[str, str]] = []

    def uv(self, body: str = "", resolving: str = "") -> str:
        return str(fake_uv(self.folder / "fake_uv", calls=self.calls_file, body=body, resolving=resolving))

    def failing_uv(self, text: str) -> str:
        (self.folder / "text").write_text(text)
        failing = f'cat "{self.folder}/text"; exit 1'
        return self.uv(failing, failing)

    def builder(self, uv: str | None = None, *, deadline_s: float = 30.0, free: int = 0) -> EnvironmentBuilder:
        return EnvironmentBuilder(
            self.root,
            progress=lambda name, text: self.said.append((name, text)),
            uv=uv or self.uv(),
            deadline_s=deadline_s,
            free_disk_bytes=free,
        )

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().split() if self.calls_file.exists() else []

    def markers(self) -> list[Path]:
        return sorted(self.root.glob("*/environment.json"))

    def failure(self, uv: str, *specs: EnvSpec, **options: float) -> EnvironmentUnavailable:
        with pytest.raises(EnvironmentUnavailable) as caught:
            self.builder(uv, **options).build_all(specs or [spec()])  # type: ignore[arg-type]
        return caught.value


def spec(release: str = "2.6.0", *, extras: tuple[str, ...] = (), index_args: tuple[str, ...] = ()) -> EnvSpec:
    return EnvSpec(name=f"torch {release}", release=release, python=OWN_PYTHON, extras=extras, index_args=index_args)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_build_returns_a_working_interpreter_and_reports_start_and_end(bench: Bench) -> None:
    built = bench.builder().build(spec())
    assert Path(built.interpreter).exists()
    assert built.name == "torch 2.6.0"
    assert built.built_s > 0
    assert [text.split()[0] for _, text in bench.said] == ["installing", "ready"]


def test_folder_name_is_readable_and_differs_by_what_is_installed(bench: Bench) -> None:
    index = ("--index-url", "https://example.org/simple")
    asked = [spec(), spec("2.6.0", extras=("packaging",)), spec("2.6.0", index_args=index), spec("2.6.0+cpu")]
    folders = [Path(built.interpreter).parents[1].name for built in bench.builder().build_all(asked)]
    assert len(set(folders)) == 4
    assert all(
        folder.startswith("torch-2.6.0") and f"-cp{OWN_PYTHON.replace('.', '')}-" in folder for folder in folders
    )


def test_short_and_long_spelling_of_a_release_are_the_same_environment(bench: Bench) -> None:
    first, second = bench.builder().build(spec("2.6")), bench.builder().build(spec("2.6.0"))
    assert first.interpreter == second.interpreter


def test_warm_start_starts_no_process_and_touches_nothing(bench: Bench) -> None:
    cold = bench.builder().build_all([spec("2.1.2"), spec("2.6.0")])
    calls, stamps = bench.calls, [marker.stat().st_mtime_ns for marker in bench.markers()]
    started = time.process_time()
    warm = bench.builder("/nonexistent/uv").build_all([spec("2.1.2"), spec("2.6.0")])
    assert time.process_time() - started < 0.1
    assert bench.calls == calls
    assert [marker.stat().st_mtime_ns for marker in bench.markers()] == stamps
    assert [built.interpreter for built in warm] == [built.interpreter for built in cold]
    assert [built.built_s for built in warm] == [0.0, 0.0]


def test_two_environments_are_built_side_by_side(bench: Bench) -> None:
    # Each installer waits for the other one: built one after the other they would never end.
    meet = f'touch "{bench.folder}/$version"; while [ ! -e "{bench.folder}/2.1.2" -o ! -e "{bench.folder}/2.6.0" ]; '
    built = bench.builder(bench.uv(meet + "do sleep 0.02; done")).build_all([spec("2.1.2"), spec("2.6.0")])
    assert [environment.spec.release for environment in built] == ["2.1.2", "2.6.0"]


def test_half_built_environment_is_built_again(bench: Bench) -> None:
    folder = Path(bench.builder().build(spec()).interpreter).parents[1]
    (folder / "environment.json").unlink()
    (folder / "left-over").write_text("half")
    bench.builder().build(spec())
    assert bench.calls == ["venv", "pip"] * 2
    assert not (folder / "left-over").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 0}', "[" * 100_000])
def test_damaged_marker_is_not_trusted(bench: Bench, text: str) -> None:
    bench.builder().build(spec())
    bench.markers()[0].write_text(text)
    bench.builder().build(spec())
    assert bench.calls == ["venv", "pip"] * 2


def test_environment_whose_python_is_gone_is_built_again(bench: Bench) -> None:
    interpreter = Path(bench.builder().build(spec()).interpreter)
    interpreter.unlink()
    interpreter.symlink_to("/nonexistent/python")
    bench.builder().build(spec())
    assert interpreter.exists()


def test_credentials_are_in_no_file_and_do_not_change_the_environment(bench: Bench) -> None:
    for token in ("secret1", "secret2"):
        bench.builder().build(spec(index_args=("--index-url", f"https://user:{token}@example.org/simple")))
    assert bench.calls == ["venv", "pip"]
    files = [path for path in bench.root.rglob("*") if path.is_file() and path.name != "python"]
    assert not [path for path in files if "secret" in path.read_text(errors="replace")]


def test_concurrent_builders_build_once(bench: Bench) -> None:
    uv = bench.uv("sleep 0.5")
    found: list[Environment] = []
    builders = [bench.builder(uv), bench.builder(uv)]
    threads = [threading.Thread(target=lambda b=each: found.append(b.build(spec()))) for each in builders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len({built.interpreter for built in found}) == 1
    assert bench.calls == ["venv", "pip"]
    assert any("waiting for another run" in text for _, text in bench.said)


@pytest.mark.parametrize(
    ("text", "says", "quotes", "hint"),
    [
        (UV_UNKNOWN, "the index has no torch 99.0.0", "there is no version of torch==99.0.0", "the newest"),
        (OLD_UV_UNKNOWN, "the index has no torch 99.0.0", "you require torch==99.0.0", "the newest"),
        (UV_NO_WHEEL, "no wheel of torch 2.1.2 for Python", "has no wheels with", "Python 3.8, 3.9, 3.10, 3.11"),
        (UV_UNREACHABLE, "index could not be reached", "http://127.0.0.1:9/simple/torch/", "network, proxy"),
        (UV_DISK_FULL, "the disk is full", "No space left on device (os error 28)", "TORCHSCRIPT_GATE_ENVS"),
        (UV_DENIED, "could not be written", "Permission denied", "who owns"),
        (UV_NO_PACKAGE, "does not know the package nosuchpkg", "was not found in the package registry", "spelling"),
        (PIP_UNKNOWN, "the index has no torch 2.6.9", "torch==2.6.9", "it has 2.6.0;"),
        (PIP_UNREACHABLE, "offers no torch for Python", "from versions: none", "network"),
        ("first\nerror: strange thing\nlast\n", "ended with status 1", "error: strange thing", "read the log"),
        ("", "ended with status 1", "", "read the log"),
    ],
)
def test_installer_failure_becomes_one_clear_sentence(
    bench: Bench, text: str, says: str, quotes: str, hint: str
) -> None:
    failure = bench.failure(bench.failing_uv(text), spec("2.6.9"))
    assert failure.message.startswith("torch 2.6.9: ")
    assert "\n" not in failure.message
    assert says in failure.message
    assert quotes in failure.message
    assert hint in failure.hint
    log = Path(failure.hint.partition("full log: ")[2])
    assert text in log.read_text()
    assert not bench.markers()


def test_failure_of_one_ends_the_other_and_is_the_only_one_told(bench: Bench) -> None:
    uv = bench.uv(f'[ "$version" = 2.6.0 ] || {{ echo "{UV_DENIED}"; exit 1; }}; sleep 1000')
    failure = bench.failure(uv, spec("2.1.2"), spec("2.6.0"))
    assert failure.message.startswith("torch 2.1.2: ")
    assert not bench.markers() and not list(bench.root.glob("*/bin"))


def test_a_release_that_does_not_exist_is_reported_before_another_one_is_downloaded(bench: Bench) -> None:
    refused = f'case "$*" in *torch==2.1.99*) echo "{UV_UNKNOWN.replace("99.0.0", "2.1.99")}"; exit 1;; esac'
    message = bench.failure(bench.uv(resolving=refused), spec("2.1.99"), spec("2.6.0")).message
    assert message.startswith("torch 2.1.99: the index has no torch 2.1.99")
    assert bench.calls == []


def test_all_failures_are_named(bench: Bench) -> None:
    missing = EnvSpec(name="ours", interpreter=str(bench.folder / "no" / "python"))
    message = bench.failure(bench.failing_uv(UV_DISK_FULL), spec("2.1.2"), missing, spec("2.6.0")).message
    assert message.startswith("3 environments could not be provisioned")
    assert [line.split(":")[0] for line in message.splitlines()[1:]] == ["  torch 2.1.2", "  ours", "  torch 2.6.0"]


def test_installer_that_succeeds_and_leaves_another_torch_is_not_trusted(bench: Bench) -> None:
    failure = bench.failure(bench.uv("version=2.5.0"))
    assert "the installer left 2.5.0" in failure.message
    assert not bench.markers()


def test_installer_that_leaves_no_torch_is_not_trusted(bench: Bench) -> None:
    assert "the installer left none" in bench.failure(bench.uv("exit 0")).message


def test_local_build_satisfies_a_plain_release(bench: Bench) -> None:
    assert bench.builder(bench.uv("version=2.6.0+cu124")).build(spec("2.6.0")).built_s > 0


def test_installer_that_cannot_be_started_is_an_environment_problem(bench: Bench) -> None:
    assert "No such file" in bench.failure("/nonexistent/uv").message


def test_slow_installer_is_stopped_at_the_deadline_with_its_children(bench: Bench) -> None:
    uv = bench.uv(f"(sleep 60; touch '{bench.folder}/survived') & sleep 60")
    started = time.monotonic()
    assert "not built within 1 s" in bench.failure(uv, deadline_s=1.0).message
    assert time.monotonic() - started < 30
    assert stub.eventually(lambda: not stub.processes_naming(bench.folder)), stub.processes_naming(bench.folder)
    assert not bench.markers()


def test_long_installation_reports_its_elapsed_seconds(bench: Bench) -> None:
    bench.builder(bench.uv("sleep 2.3")).build(spec())
    told = [text for _, text in bench.said if re.fullmatch(r"installing torch 2.6.0, \d+ s", text)]
    assert told  # after how many seconds depends on what else the machine is doing


def test_full_disk_is_reported_before_anything_is_started(bench: Bench) -> None:
    failure = bench.failure(bench.uv(), free=10**18)
    assert "1000000000.0 GB" in failure.message
    assert bench.calls == []


def test_interrupt_ends_all_installers_and_leaves_nothing_trusted(bench: Bench) -> None:
    uv = bench.uv('touch "$site/half"; sleep 60')
    program = f"""
import signal, sys, pathlib
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits an ignored one
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder
specs = [EnvSpec(name=r, release=r, python={OWN_PYTHON!r}) for r in ("2.1.2", "2.6.0")]
builder = EnvironmentBuilder(pathlib.Path({str(bench.root)!r}), progress=print, uv={uv!r}, free_disk_bytes=0)
try:
    builder.build_all(specs)
except KeyboardInterrupt:
    print("interrupted")
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert eventually(lambda: len(list(bench.root.rglob("half"))) == 2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert "interrupted" in output
    assert not bench.markers()
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and uv in command_line(pid)]


def command_line(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_killed_controller_ends_its_installer_before_another_one_begins(bench: Bench) -> None:
    uv = bench.uv(
        f"sleep 1000 & echo $! > '{bench.folder}/draft'; mv '{bench.folder}/draft' '{bench.folder}/begun'; wait"
    )
    program = f"""
import sys, pathlib
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder
builder = EnvironmentBuilder(pathlib.Path({str(bench.root)!r}), progress=print, uv={uv!r}, free_disk_bytes=0)
builder.build(EnvSpec(name="x", release="2.6.0", python={OWN_PYTHON!r}))
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
    assert eventually((bench.folder / "begun").exists)
    process.kill()
    process.wait(20)
    (bench.folder / "fast").mkdir()
    quick = Bench(bench.folder / "fast")
    quick.root = bench.root
    still_runs = f"grep -q 'State:.[^Z]' /proc/$(cat '{bench.folder}/begun')/status"
    quick.builder(quick.uv(f"{still_runs} && exit 9; true")).build(spec())
    assert quick.calls


def test_ready_made_interpreter_is_taken_as_it_is(bench: Bench) -> None:
    python = bench.folder / "python"
    python.write_text(
        '#!/bin/sh\necho \'facts:{"implementation": "cpython", "python": "3.11.7", "torch": "2.6.0", "build": ""}\'\n'
    )
    python.chmod(0o755)
    built = bench.builder().build(EnvSpec(name="ours", interpreter=str(python)))
    assert (built.name, built.interpreter, built.built_s) == ("ours", str(python), 0.0)
    assert not list(bench.root.glob("torch-*"))


@pytest.mark.parametrize("wrong", [EnvSpec(name="x"), EnvSpec(name="x", release="2.6.0", interpreter="/bin/python")])
def test_spec_must_say_exactly_one_thing(bench: Bench, wrong: EnvSpec) -> None:
    with pytest.raises(ConfigError, match="either a torch release or a ready-made interpreter"):
        bench.builder().build(wrong)


def test_nonsense_release_is_a_configuration_error(bench: Bench) -> None:
    with pytest.raises(ConfigError, match=r"2\.six"):
        bench.builder().build(spec("2.six"))


def test_unwritable_root_is_an_environment_problem(bench: Bench) -> None:
    bench.root.write_text("a file where the root should be")
    assert "TORCHSCRIPT_GATE_ENVS" in bench.failure(bench.uv()).hint


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and nothing set that says where the cache lies."""
    for name in ("TORCHSCRIPT_GATE_ENVS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_default_root_is_the_cache_of_the_user_whatever_the_working_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_environment_root() == home / ".cache" / "torchscript-gate"
    monkeypatch.chdir(tmp_path)
    assert default_environment_root() == home / ".cache" / "torchscript-gate"


def test_the_cache_can_be_moved(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert default_environment_root() == tmp_path / "caches" / "torchscript-gate"
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(tmp_path / "elsewhere"))
    assert default_environment_root() == tmp_path / "elsewhere"
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", "~/here")
    assert default_environment_root() == home / "here"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without a name")
def test_a_user_without_a_home_is_told_what_to_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    program = """
import os
from harness.core.errors import ConfigError
from harness.environments.builder import default_environment_root
default_environment_root()
os.setuid(54321)  # who may be unable to read Python's own modules: all are imported
try:
    print(default_environment_root())
except ConfigError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "this user has no home folder for the cache; set HOME, or TORCHSCRIPT_GATE_ENVS to a folder\n"
    )
    assert not home.exists()


def test_a_home_of_nobody_is_refused_in_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", "~no-such-user/cache")
    with pytest.raises(ConfigError, match="TORCHSCRIPT_GATE_ENVS=~no-such-user/cache"):
        default_environment_root()
    assert not home.exists()


def test_environments_of_an_earlier_version_are_named_and_stay(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert earlier_root(tmp_path) is None
    marker = tmp_path / ".nox" / "torch" / "torch-2.6.0-cp311-00000000" / "environment.json"
    marker.parent.mkdir(parents=True)
    marker.write_text("{}")
    log = io.StringIO()
    project = Project(folder=tmp_path, progress=Progress(log))
    assert project.builder.root == home / ".cache" / "torchscript-gate"
    (line,) = log.getvalue().splitlines()
    assert str(tmp_path / ".nox" / "torch") in line and "TORCHSCRIPT_GATE_ENVS" in line
    assert marker.exists()
    monkeypatch.setenv("TORCHSCRIPT_GATE_ENVS", str(tmp_path / ".nox" / "torch"))
    assert earlier_root(tmp_path) is None


def test_git_sees_nothing_of_the_root_that_is_made(bench: Bench) -> None:
    bench.builder().build(spec())
    assert bench.root.joinpath(".gitignore").read_text().splitlines()[-1] == "*"
    assert not bench.folder.joinpath(".gitignore").exists()


def test_an_environment_of_an_image_that_nobody_may_write_to_is_used(bench: Bench) -> None:
    built = bench.builder().build(spec())
    for path in (*bench.root.glob("*.use"), bench.root / ".in-use"):
        path.unlink()
        path.symlink_to("/nonexistent/folder/lock")  # which root cannot make either
    again = bench.builder("/nonexistent/uv").build(spec())
    assert (again.interpreter, again.built_s) == (built.interpreter, 0.0)


def test_an_environment_that_is_asked_for_again_takes_no_more_descriptors(bench: Bench) -> None:
    builder = bench.builder()
    builder.build(spec())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        builder.build(spec())
    assert len(os.listdir("/proc/self/fd")) == before
    del builder
    assert len(os.listdir("/proc/self/fd")) < before
