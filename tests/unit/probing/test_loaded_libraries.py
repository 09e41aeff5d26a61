"""Operator libraries as the controller sees them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.environment import Environment, EnvSpec
from harness.probing import loaded_libraries
from harness.probing.loaded_libraries import LoadedLibraries
from harness.worker import wire

ENVIRONMENT = Environment(name="torch 2.6.0", interpreter="/env/bin/python", spec=EnvSpec(name="x", release="2.6.0"))


def wrote(folder: Path, library: str, message: str | None, phase: str = wire.LIBRARY) -> Path:
    """Write what a worker says that fails at ``library``, or ends there without a word."""
    events: list[dict[str, object]] = [
        {"ev": "mark", "name": "library", "data": library},
        {"ev": "begin", "phase": phase, "model": "", "thread": 0, "ident": 1},
    ]
    if message is not None:
        events.append({"ev": "error", "phase": phase, "type": "X", "message": message, "traceback": ""})
    (folder / wire.EVENTS).write_text("".join(json.dumps({**event, "ns": 1}) + "\n" for event in events))
    return folder


@pytest.mark.parametrize(
    ("library", "why", "hint"),
    [
        ("torchvision", "ModuleNotFoundError: No module named 'torchvision'", "extras"),
        ("/no/such.so", "OSError: /no/such.so: cannot open shared object file", "name a file that exists"),
        (__file__, "OSError: undefined symbol: _ZN3c10", "build it against this release's LibTorch"),
        (__file__, "OSError: file too short", "by hand"),
    ],
)
def test_refusal_names_environment_library_reason_and_mitigation(
    tmp_path: Path, library: str, why: str, hint: str
) -> None:
    refused = loaded_libraries.refused(wrote(tmp_path, library, f"{library}: {why}\nmore"), "torch 2.6.0")
    assert refused is not None
    assert refused.message == f"torch 2.6.0: the operator library {library} cannot be loaded: {why}"
    assert hint in str(refused.hint)


def test_a_library_that_ends_the_process_is_named(tmp_path: Path) -> None:
    refused = loaded_libraries.refused(wrote(tmp_path, "a.so", None), "here")
    assert refused is not None
    assert "a.so cannot be loaded: the process ended" in refused.message


def test_what_fails_elsewhere_is_no_refusal_of_a_library(tmp_path: Path) -> None:
    assert loaded_libraries.refused(wrote(tmp_path, "a.so", "no torch", wire.IMPORT), "here") is None
    assert loaded_libraries.refused(tmp_path / "nowhere", "here") is None


def test_threads_are_those_that_came_with_the_libraries() -> None:
    mark = {"names": ["a"], "paths": ["/a.so"], "operators": ["a::b"], "threads": [2, 5], "versions": {"a": "1.2"}}
    assert LoadedLibraries.from_mark(mark) == LoadedLibraries(
        names=("a",), paths=("/a.so",), operators=("a::b",), threads=3, versions={"a": "1.2"}
    )
    assert LoadedLibraries.from_mark({**mark, "threads": [5, 2]}).threads == 0


def test_identity_follows_names_files_and_where_modules_are_installed(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    file = tmp_path / "a.so"
    file.write_bytes(b"1")

    def identity(*names: str) -> list[list[object]]:
        spec = replace(ENVIRONMENT.spec, libraries=names)
        return loaded_libraries.identity(replace(ENVIRONMENT, interpreter=str(tmp_path / "bin" / "python"), spec=spec))

    assert identity() == []
    one, module = identity(str(file)), identity("torchvision")
    assert one == identity(str(file)) != identity(str(tmp_path / "b.so"))
    file.write_bytes(b"22")
    assert identity(str(file)) != one
    (site / "torchvision").mkdir()
    assert identity("torchvision") != module
