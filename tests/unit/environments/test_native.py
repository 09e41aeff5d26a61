"""Building the C++ worker: the cache, the lock, and every way in which there is no compiler. Compilers are stubs."""

import os
import shlex
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.environments import native
from harness.environments.native import find_compiler, first_error, standard_of
from harness.environments.native import LibTorch, NativeBuild, build_library, build_worker
from harness.machine.pool import Cancelled
from tests.programs.stub import eventually

STUB = """#!/bin/sh
case " $* " in *" -dM "*)
  case " $* " in *"c++{unknown}"*) echo "error: unrecognized command-line option" >&2; exit 1;; esac
  echo '#define __GNUC__ {major}'; echo '#define __VERSION__ "{major}.2.0"'; exit 0;;
esac
echo "$$ $*" >> "{calls}"
{body}
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo built > "$2"; fi; shift; done
"""


class Stub:
    """A compiler that writes down its command lines."""

    def __init__(self, folder: Path) -> None:
        self.path, self.calls = folder / "stub-g++", folder / "calls"
        self.be()

    def be(self, body: str = "", major: int = 12, unknown: str = "none") -> None:
        self.path.write_text(STUB.format(body=body, major=major, unknown=unknown, calls=self.calls))
        self.path.chmod(0o755)

    @property
    def commands(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    made = Stub(tmp_path)
    monkeypatch.setenv("CXX", shlex.quote(str(made.path)))
    return made


@pytest.fixture
def libtorch(tmp_path: Path) -> LibTorch:
    header = tmp_path / "torch" / "include" / native.NEEDED_HEADER
    header.parent.mkdir(parents=True)
    header.touch()
    return LibTorch(torch="2.6.0+cu124", root=tmp_path / "torch", cxx11_abi=False, git_revision="abc")


def demand(libtorch: LibTorch, text: str) -> None:
    path = libtorch.root / "include" / "ATen" / "ATen.h"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_second_build_compiles_nothing(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    first = build_worker(libtorch, tmp_path / "native")
    second = build_worker(libtorch, tmp_path / "native")
    assert first.binary is not None
    assert first.binary.read_text() == "built\n"
    assert (first.cached, second.cached) == (False, True)
    assert second.binary == first.binary
    assert second.seconds < 5
    assert len(stub.commands) == 1


@pytest.mark.parametrize(
    "change", [{"torch": "2.6.1"}, {"cxx11_abi": True}, {"git_revision": "def"}], ids=lambda change: next(iter(change))
)
def test_another_torch_is_another_build(
    stub: Stub, libtorch: LibTorch, tmp_path: Path, change: dict[str, object]
) -> None:
    fields = {name: getattr(libtorch, name) for name in ("torch", "root", "cxx11_abi", "git_revision")}
    other = LibTorch(**{**fields, **change})
    assert build_worker(libtorch, tmp_path / "native").binary != build_worker(other, tmp_path / "native").binary
    assert len(stub.commands) == 2


def test_another_compiler_version_is_another_build(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    build_worker(libtorch, tmp_path / "native")
    stub.be(major=13)
    assert not build_worker(libtorch, tmp_path / "native").cached


def test_another_source_is_another_build(stub: Stub, tmp_path: Path) -> None:
    source = tmp_path / "src" / "part.cpp"
    source.parent.mkdir()
    source.write_text("int a;")
    first = build_library(source, tmp_path / "native")
    source.with_name("part.hpp").write_text("int b;")
    second = build_library(source, tmp_path / "native")
    assert first.binary is not None
    assert first.binary.name == "libpart.so"
    assert not second.cached
    assert second.binary != first.binary


def test_flags_follow_the_wheel(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    build_worker(libtorch, tmp_path / "native")
    (command,) = stub.commands
    assert "-D_GLIBCXX_USE_CXX11_ABI=0 " in command
    assert "-std=c++17 " in command
    assert f"-Xlinker -rpath={libtorch.root}/lib" in command
    assert "torch_cuda" not in command


def test_headers_that_ask_for_newer_cpp_get_it(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    demand(
        libtorch, "#if (defined(_MSVC_LANG) && _MSVC_LANG < 202002L) || \\\n (__cplusplus < 202002L)\n#error C++20\n"
    )
    build_worker(libtorch, tmp_path / "native")
    assert "-std=c++20 " in stub.commands[0]


@pytest.mark.parametrize(
    ("text", "standard"),
    [("", 17), ("__cplusplus < 201402L", 17), ("__cplusplus < 202002L", 20), ("__cplusplus<202302L", 23)],
)
def test_standard_is_read_from_the_headers_own_check(libtorch: LibTorch, text: str, standard: int) -> None:
    demand(libtorch, text)
    assert standard_of(libtorch.root / "include") == standard


def test_failed_build_tells_its_first_error_and_where_the_log_is(
    stub: Stub, libtorch: LibTorch, tmp_path: Path
) -> None:
    stub.be("echo 'In file included from a.hpp:' >&2; echo 'b.hpp:7:3: error: no member x' >&2; exit 1")
    built = build_worker(libtorch, tmp_path / "native")
    assert built.binary is None
    assert "b.hpp:7:3: error: no member x" in built.why_not
    log = Path(built.why_not.rpartition("full log: ")[2])
    assert "In file included" in log.read_text()
    stub.be()
    assert build_worker(libtorch, tmp_path / "native").binary is not None


def test_compiler_that_was_killed_leaves_no_binary_and_no_temporary_file(
    stub: Stub, libtorch: LibTorch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    stub.be('echo half > "$TMPDIR/half.s"; while [ "$1" != -o ]; do shift; done; echo half > "$2"; kill -9 $$')
    built = build_worker(libtorch, tmp_path / "native")
    assert built.binary is None
    assert not [path for path in (tmp_path / "native").rglob("*") if "worker" in path.name]
    assert not list(tmp_path.rglob("half.s"))


def test_no_compiler_is_said_with_what_to_do(
    libtorch: LibTorch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    built = build_worker(libtorch, tmp_path / "native")
    assert find_compiler() is None
    assert built == NativeBuild(binary=None, why_not=built.why_not, seconds=built.seconds, begin_ns=built.begin_ns)
    assert "no C++ compiler was found: install g++" in built.why_not


def test_compiler_that_cxx_names_in_vain_is_named(
    libtorch: LibTorch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    assert "CXX names '/nowhere/g++', which is not there" in build_worker(libtorch, tmp_path).why_not


def test_cxx_may_hold_a_wrapper(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"env '{stub.path}'")
    assert find_compiler() == f"env '{stub.path}'"
    assert native.ask_compiler(17).command == ("env", str(stub.path))


def test_old_compiler_is_refused_before_it_fails(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    stub.be(major=9)
    assert "is version 9, and 11 is the oldest" in build_worker(libtorch, tmp_path / "native").why_not
    stub.be(unknown="20")
    demand(libtorch, "__cplusplus < 202002L")
    assert "does not know C++20" in build_worker(libtorch, tmp_path / "native").why_not
    assert stub.commands == []


def test_wheel_without_headers_is_said(stub: Stub, tmp_path: Path) -> None:
    for torch in (LibTorch.from_mark({}), LibTorch(torch="2.6.0", root=tmp_path, cxx11_abi=True)):
        assert "has no C++ headers" in build_worker(torch, tmp_path / "native").why_not


def test_cuda_without_its_headers_is_said(
    stub: Stub, libtorch: LibTorch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "CUDA_TOOLKITS", ())
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "no-toolkit"))
    assert "install the CUDA toolkit" in build_worker(libtorch, tmp_path / "native", cuda=True).why_not


def test_cuda_headers_come_from_the_wheels_and_crt_from_elsewhere(
    stub: Stub, libtorch: LibTorch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for header in ("nvidia/cuda_runtime/include/cuda_runtime_api.h", "toolkit/include/crt/host_defines.h"):
        path = libtorch.root.parent / header
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setenv("CUDA_HOME", str(libtorch.root.parent / "toolkit"))
    assert build_worker(libtorch, tmp_path / "native", cuda=True).binary is not None
    (command,) = stub.commands
    assert "-DGATE_WITH_CUDA" in command
    assert f"-isystem {libtorch.root.parent}/nvidia/cuda_runtime/include" in command
    assert f"-idirafter {libtorch.root.parent}/toolkit/include" in command


def test_folder_that_cannot_be_written_is_said(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "Not a directory" in build_worker(libtorch, tmp_path / "file" / "native").why_not


def test_two_builds_at_once_compile_once(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    stub.be("sleep 0.3")
    built: list[NativeBuild] = []
    threads = [
        threading.Thread(target=lambda: built.append(build_worker(libtorch, tmp_path / "native"))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len({build.binary for build in built}) == 1
    assert sorted(build.cached for build in built) == [False, True, True]
    assert len(stub.commands) == 1


def is_gone(pid: int) -> bool:
    limit = time.monotonic() + 5
    while time.monotonic() < limit:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


@pytest.mark.slow
def test_exception_ends_the_compiler_with_its_group(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    child = tmp_path / "child"
    stub.be(f"sleep 60 & echo $! > '{child}'; wait")

    def interrupt() -> None:
        if child.exists() and child.read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_worker(libtorch, tmp_path / "native", tick=interrupt)
    assert is_gone(int(child.read_text()))
    assert is_gone(int(stub.commands[0].split()[0]))


def test_cancelled_build_ends_soon(stub: Stub, libtorch: LibTorch, tmp_path: Path) -> None:
    stub.be("sleep 60")
    cancelled = threading.Event()

    def cancel() -> None:
        assert eventually(lambda: bool(stub.commands))
        cancelled.set()

    with ThreadPoolExecutor(1) as beside, pytest.raises(Cancelled):
        begun = beside.submit(cancel)
        build_worker(libtorch, tmp_path / "native", cancelled=cancelled)
    begun.result()
    assert is_gone(int(stub.commands[0].split()[0]))


def test_first_error_is_the_telling_line() -> None:
    assert first_error("$ g++ x\nIn file\nx.hpp:1: error: a\nx.hpp:2: error: b\n") == "x.hpp:1: error: a"
    assert first_error("/usr/bin/ld: x.o: undefined reference to `y'\n").endswith("`y'")
    assert first_error("Killed\n") == "Killed"
    assert first_error("") == "it said nothing"
