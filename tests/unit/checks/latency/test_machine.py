"""When the machine of a benchmark was busy, and what the report says then."""

from dataclasses import replace

import pytest

from harness.core.machine import GpuState, MachineState
from harness.checks.latency.machine import busy_notes

QUIET_GPU = GpuState(name="NVIDIA H200", sm_clock_mhz=1980, max_sm_clock_mhz=1980, temperature_c=40)
QUIET = MachineState(cores=(1,), stolen=0.05, others=0.10, quota_cores=2.0, gpu=QUIET_GPU)


def test_quiet_machine_says_nothing() -> None:
    assert busy_notes([], 0.0) == ()
    assert busy_notes([QUIET, replace(QUIET, gpu=None)], 0.05) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"others": 0.42},
            "other processes used up to 42 % of the benchmark's cores in a round: repeat it on a machine",
        ),
        (
            {"stolen": 0.07},
            "the hypervisor took up to 7 % of the benchmark's cores in a round: use a machine with cores",
        ),
        (
            {"quota_throttled_s": 1.25, "quota_cores": 1.5},
            "the container's CPU quota of 1.5 cores stopped everything for 1.2 s: raise the quota",
        ),
        ({"quota_throttled_s": 1.25, "quota_cores": None}, "the container's CPU quota stopped everything for 1.2 s"),
        (
            {"cores": (), "why_not_pinned": "4 cores are wanted and 2 may be used"},
            "the processes of the benchmark were not pinned (4 cores are wanted and 2 may be used): expect wider intervals",
        ),
    ],
)
def test_what_disturbed_a_round_is_said_with_what_to_do(change: dict[str, object], said: str) -> None:
    (note,) = busy_notes([QUIET, replace(QUIET, **change), QUIET], 0.0)  # type: ignore[arg-type]
    assert note.startswith(said)


def test_callers_that_waited_are_reported() -> None:
    (note,) = busy_notes([QUIET], 0.31)
    assert note.startswith("callers waited for a core, for up to 31 % of a model's time")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"other_processes": 1},
            "other processes were on this GPU: choose another one with CUDA_VISIBLE_DEVICES, or wait",
        ),
        (
            {"sm_clock_mhz": 1200, "throttle_reasons": ("idle", "power cap", "sync boost")},
            "the GPU ran at 1200 of 1980 MHz (power cap, sync boost): lock its clocks",
        ),
    ],
)
def test_disturbed_gpu_is_reported(change: dict[str, object], said: str) -> None:
    disturbed = replace(QUIET_GPU, **change)  # type: ignore[arg-type]
    (note,) = busy_notes([QUIET, replace(QUIET, gpu=disturbed)], 0.0)
    assert note.startswith(said)


@pytest.mark.parametrize(
    "change",
    [
        {"sm_clock_mhz": 1200},
        {"sm_clock_mhz": 345, "throttle_reasons": ("idle",)},
        {"sm_clock_mhz": 1500, "throttle_reasons": ("clocks set by the user",)},
        {"sm_clock_mhz": 1900, "throttle_reasons": ("power cap",)},
        {"sm_clock_mhz": None, "throttle_reasons": ("power cap",)},
        {"sm_clock_mhz": 300, "max_sm_clock_mhz": None, "throttle_reasons": ("power cap",)},
    ],
)
def test_clocks_that_are_low_on_purpose_or_hardly_low_are_not_told(change: dict[str, object]) -> None:
    gpu = replace(QUIET_GPU, **change)  # type: ignore[arg-type]
    assert busy_notes([replace(QUIET, gpu=gpu)], 0.0) == ()
