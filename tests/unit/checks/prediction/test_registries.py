"""What a release accepts is asked once, kept whole, and asked again when anything about it changes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.environment import EnvSpec, Environment
from harness.environments.interpreters import InterpreterFacts
from harness.core.errors import EnvironmentUnavailable, InternalError
from harness.checks.prediction import registries
from harness.checks.prediction.dumps import Dump, parsed
from harness.checks.prediction.registries import registries_of, registry_of
from harness.machine.pool import Patience

DUMP = Dump(
    torch="2.6.0+cu124",
    operator_version=10,
    schemas=["aten::relu(Tensor self) -> Tensor", "aten::size.int(Tensor self, int dim) -> int", "aten::size(Tensor self) -> int[]"],
    upgraders=[("div_0_3", 4, "aten::div.Tensor(Tensor self, Tensor other) -> Tensor")],
    custom_classes=["quantized.LinearPackedParamsBase"],
    dtypes=["float32"],
    type_names=["Await"],
)  # fmt: skip
ENVIRONMENT = Environment(name="torch 2.6.0", interpreter="/env/bin/python", spec=EnvSpec(name="x", release="2.6.0"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def answer(environment: Environment, run_dir: Path, _patience: Patience) -> None:
        asked.append(environment.interpreter)
        (run_dir / "registry.json").write_bytes(msgspec.json.encode(DUMP))

    monkeypatch.setattr(registries, "_run", answer)
    return asked


def test_a_release_is_asked_once(tmp_path: Path, asked: list[str]) -> None:
    first, again = registry_of(ENVIRONMENT, tmp_path), registry_of(ENVIRONMENT, tmp_path)
    assert first == again
    assert len(asked) == 1
    assert len(first.schemas["aten::size"]) == 2
    assert first.upgraders["aten::div"][0].below_version == 4
    assert {path.suffix for path in (tmp_path / "registries").iterdir()} == {".json", ".lock"}


def test_what_a_killed_asker_left_is_removed(tmp_path: Path, asked: list[str]) -> None:
    registry_of(ENVIRONMENT, tmp_path)
    (kept,) = (tmp_path / "registries").glob("*.json")
    left = kept.with_name(f".{kept.stem}.asking")
    left.mkdir()
    (left / "events.jsonl").write_text("{}")
    kept.unlink()
    registry_of(ENVIRONMENT, tmp_path)
    assert len(asked) == 2
    assert not left.exists()


def test_two_that_ask_at_once_ask_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_environment: Environment, run_dir: Path, _patience: Patience) -> None:
        begun.set()
        assert go_on.wait(30)
        (run_dir / "registry.json").write_bytes(msgspec.json.encode(DUMP))

    monkeypatch.setattr(registries, "_run", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(registry_of, ENVIRONMENT, tmp_path)
        assert begun.wait(30)
        begun.clear()
        second = pool.submit(registry_of, ENVIRONMENT, tmp_path)
        assert not begun.wait(0.3)
        go_on.set()
        assert first.result(30) == second.result(30)
    assert not begun.is_set()


def test_another_interpreter_and_another_worker_are_asked_again(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry_of(ENVIRONMENT, tmp_path)
    registry_of(Environment(name="y", interpreter="/other/bin/python", spec=ENVIRONMENT.spec), tmp_path)
    (tmp_path / "registry.py").write_text("another")
    monkeypatch.setattr(registries, "WORKER", tmp_path / "registry.py")
    registry_of(ENVIRONMENT, tmp_path)
    assert len(asked) == 3


def test_another_build_of_the_same_version_is_asked_again(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = Environment(name="x", interpreter="/env/bin/python", spec=EnvSpec(name="x", interpreter="/env/bin/python"))
    for build in ("a", "a", "b"):
        facts = InterpreterFacts(python="3.11.7", torch="2.6.0", build=build)
        monkeypatch.setattr(registries, "inspect_interpreter", lambda _path, facts=facts: facts)
        registry_of(ready, tmp_path)
    assert len(asked) == 2


def test_environments_are_asked_side_by_side_and_all_that_fail_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = threading.Barrier(2, timeout=30)

    def silent(_environment: Environment, run_dir: Path, _patience: Patience) -> None:
        meeting.wait()
        (run_dir / "stderr").write_text("no libcudart")

    monkeypatch.setattr(registries, "_run", silent)
    sides = {
        side: Environment(name=side, interpreter=f"/{side}/python", spec=ENVIRONMENT.spec) for side in ("old", "new")
    }
    with pytest.raises(EnvironmentUnavailable, match=r"old did not say(.|\n)*new did not say"):
        registries_of(sides, tmp_path)


def test_a_damaged_file_is_asked_again(tmp_path: Path, asked: list[str]) -> None:
    registry_of(ENVIRONMENT, tmp_path)
    (kept,) = (tmp_path / "registries").glob("*.json")
    kept.write_bytes(kept.read_bytes()[:100])
    registry_of(ENVIRONMENT, tmp_path)
    assert len(asked) == 2


def test_a_release_that_says_nothing_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_environment: Environment, run_dir: Path, _patience: Patience) -> None:
        (run_dir / "stderr").write_text("Traceback\nImportError: libcudart is missing\n")

    monkeypatch.setattr(registries, "_run", silent)
    with pytest.raises(EnvironmentUnavailable, match="libcudart is missing"):
        registry_of(ENVIRONMENT, tmp_path)
    assert {path.suffix for path in (tmp_path / "registries").iterdir()} == {".lock"}


def test_a_schema_that_cannot_be_parsed_is_our_bug_and_not_a_missing_operator() -> None:
    broken: dict[str, Any] = {**msgspec.to_builtins(DUMP), "schemas": ["aten::relu"]}
    registry = parsed(msgspec.convert(broken, Dump))
    assert "aten::relu" in registry.schemas and "aten::gone" not in registry.schemas
    with pytest.raises(InternalError, match="no schema"):
        registry.schemas["aten::relu"]
