"""The profile of the new side."""

from pathlib import Path

import pytest

from harness.core.plan import PolicySettings
from harness.core.probe import ServingProfile
from harness.probing.facts import new_profile
from harness.worker import wire
from tests.unit.builders.stages import Folder, effects, planned


def test_new_side_runs_under_the_profile_of_production() -> None:
    serving = ServingProfile(name="p", intra_op_threads=3, switches={"cpu_fusion": True})
    assert new_profile(planned(settings={"profile": serving})) == serving


def test_accepted_mitigations_win_over_the_profile() -> None:
    serving = ServingProfile(switches={"cpu_fusion": True, "profiling": True})
    policy = PolicySettings(accepted_mitigations=("profiling off", "fusion depth 0"))
    found = new_profile(planned(settings={"profile": serving, "policy": policy}))
    assert dict(found.switches) == {"cpu_fusion": True, "profiling": False, "fusion_depth": 0}
    assert dict(serving.switches) == {"cpu_fusion": True, "profiling": True}


def test_accepted_mitigations_that_are_no_switch_are_applied_too() -> None:
    names = ("one intra-op thread", "oneDNN off", "fuser falls back", "freeze", "serialized loading")
    serving = ServingProfile(intra_op_threads=4, env={"A": "1"})
    found = new_profile(planned(settings={"profile": serving, "policy": PolicySettings(accepted_mitigations=names)}))
    assert found.intra_op_threads == 1
    assert found.numerics == {"mkldnn": False}
    assert found.env == {"A": "1", "PYTORCH_TENSOREXPR_FALLBACK": "2"}
    assert found.switches == {"freeze": True}


@pytest.mark.parametrize(
    ("stacks", "expected"), [(None, "probes/k"), ("", "probes/k"), ("Thread 0x1", "probes/k/stacks.txt")]
)
def test_evidence_is_the_stack_dump_if_there_is_one_relative_to_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacks: str | None, expected: str
) -> None:
    monkeypatch.setattr(Folder, "path", tmp_path)
    probe = tmp_path / "probes" / "k"
    probe.mkdir(parents=True)
    if stacks is not None:
        (probe / wire.STACKS).write_text(stacks)
    assert effects().evidence(str(probe)) == expected
    assert effects().evidence("/elsewhere/k") == "/elsewhere/k"
