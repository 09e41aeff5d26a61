"""Settings that change numbers: pinned, read back and effective alike in both workers, on an old and a new release."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.config.schema import NUMERICS
from harness.core.devices import TABLE
from harness.core.models import Artifact
from harness.core.probe import ModelRun, ServingProfile
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[3]
PINNED: dict[str, bool | str] = {
    "quantized_engine": "qnnpack",
    "matmul_precision": "high",
    "cudnn": False,
    "cudnn_tf32": False,
    "mkldnn": False,
    "deterministic": True,
    "flush_denormal": True,
    "autocast": "bfloat16",
}


@dataclass(frozen=True)
class Stand:
    runner: ZygoteRunner
    artifacts: dict[str, Artifact]

    def run(
        self, worker: str, numerics: Mapping[str, bool | str], **switches: bool | int
    ) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return the switches and the state as the worker tells them, and what the models answer."""
        runs = tuple(ModelRun(artifact=artifact, schedule=(("example", 2),)) for artifact in self.artifacts.values())
        request = replay.asked("run", worker, profile=ServingProfile(numerics=numerics, switches=switches), runs=runs)
        result = self.runner(request)
        assert result.outcome == "completed", result.exit_detail
        return result.data["switches"], result.data["numerics"], replay.outputs(Path(result.directory))


@pytest.fixture(scope="module", params=["old_workers", "new_workers"])
def stand(request: pytest.FixtureRequest) -> Stand:
    runner: ZygoteRunner = request.getfixturevalue(request.param)
    folders = (PROJECT / "fixtures" / "zoo", PROJECT / "tests" / "integration" / "search" / "late")
    declared = [model for folder in folders for model in read_fixtures(folder) if model.name in MODELS]
    return Stand(runner, replay.export(runner, tuple(declared)))


MODELS = ("market_ranker", "anchor_detector", "tanh_gelu", "exact_gelu")


def test_every_setting_is_pinned_and_read_back_by_both_workers(stand: Stand) -> None:
    assert PINNED.keys() == NUMERICS.keys()
    for worker in replay.WORKERS:
        switches, state, _ = stand.run(worker, PINNED)
        assert {name: switches[name] for name in PINNED} == {
            name: {"requested": value, "read_back": value, "supported": True} for name, value in PINNED.items()
        }
        assert state == PINNED


def test_both_workers_have_the_same_defaults_and_tell_no_request(stand: Stand) -> None:
    (switches, state, answers), (_, native_state, native_answers) = (stand.run(worker, {}) for worker in replay.WORKERS)
    assert state == native_state
    assert answers == native_answers
    assert set(state) == set(NUMERICS)
    assert None not in state.values()
    assert (state["autocast"], state["flush_denormal"], state["deterministic"]) == ("off", False, False)
    assert not set(switches) & set(NUMERICS)


def test_autocast_changes_the_answers_alike_in_both_workers(stand: Stand) -> None:
    plain = stand.run("python", {})[2]
    python, native = (stand.run(worker, {"autocast": "bfloat16"})[2] for worker in replay.WORKERS)
    assert python == native
    assert python != plain


def test_autocast_of_a_gpu_is_set_and_read_back_by_the_cpp_worker_without_one(stand: Stand) -> None:
    pinned = ServingProfile(numerics={"autocast": "float16", "cudnn_tf32": False, "matmul_precision": "highest"})
    result = stand.runner(replay.asked("run", "libtorch", device=TABLE["cuda"], profile=pinned))
    assert result.outcome == "completed", result.exit_detail
    assert {name: result.data["numerics"][name] for name in pinned.numerics} == pinned.numerics
    assert result.data["switches"]["autocast"] == {"requested": "float16", "read_back": "float16", "supported": True}


def test_fusion_by_onednn_drops_the_tanh_of_gelu_from_the_second_call_on_alike_in_both_workers(stand: Stand) -> None:
    plain = stand.run("python", {})[2]
    switches, _, python = stand.run("python", {}, onednn_fusion=True)
    native_switches, _, native = stand.run("libtorch", {}, onednn_fusion=True)
    on = {"requested": True, "read_back": True, "supported": True}
    assert (switches["onednn_fusion"], native_switches["onednn_fusion"]) == (on, on)
    assert python == native
    fused = {call for call, answer in python.items() if answer != plain[call] and "gelu" in call}
    assert "tanh_gelu example 1" in fused
    assert "tanh_gelu example 0" not in fused


def test_engine_that_a_release_does_not_have_is_said_to_be_unsupported(stand: Stand) -> None:
    for worker in replay.WORKERS:
        switches, state, _ = stand.run(worker, {"quantized_engine": "none_such"})
        assert switches["quantized_engine"]["supported"] is False
        assert "none_such" in switches["quantized_engine"]["reason"]
        assert state["quantized_engine"] != "none_such"


def test_the_exporter_tells_its_own(stand: Stand) -> None:
    (declaration,) = [model for model in read_fixtures(PROJECT / "fixtures" / "zoo") if model.name == MODELS[0]]
    request = replay.asked("export", declaration=declaration, profile=ServingProfile(numerics={"deterministic": True}))
    data = stand.runner(request).data
    assert data["numerics"]["deterministic"] is True
