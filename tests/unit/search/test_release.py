"""A key says which environment on which machine, never what somebody called it."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.devices import CPU, TABLE, Device
from harness.core.environment import Environment, EnvSpec
from harness.core.probe import ServingProfile
from harness.core.errors import RunDirError
from harness.checks.hang import watchdog
from harness.probing.runner import ZygoteRunner
from harness.search import release
from harness.search.release import fingerprint_of, release_key
from harness.store import probe_files
from tests.programs import stub
from tests.unit.builders.stages import declared

SPEC = EnvSpec(name="torch 2.6.0", release="2.6.0", python="3.11", extras=("torchvision==0.21.0",))
BUILT = Environment(name="torch 2.6.0", interpreter="/envs/a/bin/python", spec=SPEC)


def test_the_name_is_no_part_of_the_key() -> None:
    other = replace(BUILT, name="production", spec=replace(SPEC, name="production"), built_s=3.0)
    assert release_key(other, CPU) == release_key(BUILT, CPU)
    assert release_key(BUILT, CPU).startswith("torch-2.6.0-")


@pytest.mark.parametrize(
    "other",
    [
        replace(BUILT, interpreter="/envs/b/bin/python"),
        replace(BUILT, spec=replace(SPEC, release="2.6.0+cpu")),
        replace(BUILT, spec=replace(SPEC, extras=("torchvision==0.21.1",))),
        replace(BUILT, spec=replace(SPEC, libraries=("/ops/libmy.so",))),
    ],
)
def test_everything_that_may_change_an_answer_is(other: Environment) -> None:
    assert release_key(other, CPU) != release_key(BUILT, CPU)


def test_what_is_installed_in_a_ready_made_interpreter_is_part_of_the_key(tmp_path: Path) -> None:
    ready = stub.make_environment(tmp_path / "env")
    before = release_key(ready, CPU)
    (site,) = (tmp_path / "env" / "lib").glob("*/site-packages")
    (site / "torchvision").mkdir()
    assert release_key(ready, CPU) == before
    told = site / "torchvision-0.21.0.dist-info"
    told.mkdir()
    first = release_key(ready, CPU)
    told.rename(site / "torchvision-0.21.1.dist-info")
    assert len({before, first, release_key(ready, CPU)}) == 3


def test_results_of_another_kind_of_machine_have_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    here = release_key(BUILT, CPU)
    monkeypatch.setattr(release, "_machine", lambda device: [device, "another CPU"])
    assert release_key(BUILT, CPU) != here


def test_results_of_another_device_have_other_keys() -> None:
    others = (Device(name=name, words=name, torch=name) for name in ("npu", "hpu"))
    assert len({release_key(BUILT, device) for device in (CPU, *others)}) == 3


def test_an_environment_says_once_what_it_is(
    tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment
) -> None:
    def asked(runner: ZygoteRunner, *, anew: bool = False) -> str:
        folder = tmp_path / "releases"
        found = fingerprint_of("key", runner, folder, profile=ServingProfile(), device=CPU, anew=anew)
        return found.torch

    with closing(ZygoteRunner({"key": stub_environment}, tmp_path / "probes", watchdog)) as runner:
        assert asked(runner) == "2.1.2"
    with closing(ZygoteRunner({"key": other_stub_environment}, tmp_path / "probes", watchdog)) as other:
        assert asked(other) == "2.1.2"
        assert other._zygotes == {}
        assert asked(other, anew=True) == "2.6.0"


@pytest.mark.parametrize("content", [b"", b"{"])
def test_a_result_that_cannot_be_read_is_made_anew_where_the_store_is_not_strict(
    tmp_path: Path, artifacts: Path, stub_environment: Environment, content: bytes
) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT)
    sides = {"old": stub_environment, "new": stub_environment}
    with closing(ZygoteRunner(sides, tmp_path / "probes", watchdog)) as runner:
        good = runner(request)
        stored = Path(good.directory, probe_files.PACKED)
        stored.write_bytes(content)
        with pytest.raises(RunDirError):
            runner(request)
    with closing(ZygoteRunner(sides, tmp_path / "probes", watchdog, imported=lambda _: None)) as lasting:
        again = lasting(request)
        assert (again.outcome, lasting.results.reused) == (good.outcome, set())
        assert list(stored.parent.iterdir()) == [stored]
        lasting(request)
        assert lasting.results.reused == {good.key}


def test_what_an_export_depends_on_names_its_result_and_what_cannot_be_told_is_not_reused(
    tmp_path: Path, artifacts: Path, stub_environment: Environment
) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT)
    exporting = replace(request, declaration=declared())
    sides = {"old": stub_environment, "new": stub_environment}
    code: dict[str, str | None] = {"m": "a"}
    with closing(
        ZygoteRunner(sides, tmp_path / "probes", watchdog, imported=lambda declaration: code[declaration.name])
    ) as runner:
        keys = [runner(exporting).key, runner(exporting).key]
        assert runner.results.reused == {keys[0]} == set(keys)
        code["m"] = "b"
        assert runner(exporting).key not in keys
        plain = runner(request).key
    with closing(ZygoteRunner(sides, tmp_path / "probes", watchdog, imported=lambda declaration: None)) as again:
        assert (again(request).key, again.results.reused) == (plain, {plain})  # it declares nothing
        assert again(exporting).key not in again.results.reused  # made anew


def test_what_is_known_is_asked_once_more_where_nobody_wants_it(
    tmp_path: Path, artifacts: Path, stub_environment: Environment
) -> None:
    request = stub.run_request([stub.write_artifact(artifacts, "model")], stub.PATIENT)
    written = []
    for reuse in (True, False, True):
        with closing(
            ZygoteRunner({"new": stub_environment, "old": stub_environment}, tmp_path, watchdog, reuse=reuse)
        ) as runner:
            found = runner(request)
            written.append(Path(found.directory, probe_files.PACKED).stat().st_mtime_ns)
            assert runner.results.reused == ({found.key} if len(written) == 3 else set())
            runner(request)
            assert Path(found.directory, probe_files.PACKED).stat().st_mtime_ns == written[-1]  # once is enough
    assert written[0] < written[1] == written[2]


def test_releasing_a_side_ends_its_zygote_and_the_next_request_starts_another(
    tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment
) -> None:
    with closing(ZygoteRunner({"a": stub_environment, "b": other_stub_environment}, tmp_path, watchdog)) as runner:
        for side in ("a", "b"):
            runner.fingerprint(side, ServingProfile())
        runner.release("a")
        assert [side for side, _ in runner._zygotes] == ["b"]
        assert runner.fingerprint("a", ServingProfile()).torch == "2.1.2"
        assert sorted(side for side, _ in runner._zygotes) == ["a", "b"]
    assert runner.unreaped == []


def test_gpus_and_devices_outside_of_torch_are_part_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number, name in enumerate(("NVIDIA A10", "NVIDIA H200")):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "information").write_text(f"Model: \t{name}\nIRQ: {number}\n")
    monkeypatch.setattr(release, "GPUS", str(tmp_path))
    npu = Device(name="npu", words="npu", torch="npu")
    keys = {release_key(BUILT, device) for device in (CPU, TABLE["cuda"], npu)}
    assert len(keys) == 3
    (tmp_path / "1" / "information").write_text("Model: NVIDIA H100\n")
    assert release_key(BUILT, TABLE["cuda"]) not in keys
    assert {release_key(BUILT, CPU), release_key(BUILT, npu)} < keys
