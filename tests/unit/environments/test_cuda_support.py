"""Which driver a CUDA needs, and on which GPU kernels run."""

import pytest

from harness.environments.cuda_support import is_older, minimal_driver, runs_on


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [("13.2", "580"), ("12.1", "525.60.13"), ("11.7", "450.80.02"), ("10.2", "440.33"), ("10.1", None), ("14.0", None)],
)
def test_the_driver_goes_by_the_major_version(cuda: str, driver: str | None) -> None:
    assert minimal_driver(cuda) == driver


@pytest.mark.parametrize(
    ("version", "least", "older"),
    [
        ("525.60.11", "525.60.13", True),
        ("525.60.13", "525.60.13", False),
        ("535.161.07", "525.60.13", False),
        ("450.119.03", "450.80.02", False),
        ("570.86", "580", True),
        ("unknown", "580", None),
        ("", "580", None),
        ("580.65.06", "", None),
    ],
)
def test_drivers_are_compared_as_versions(version: str, least: str, older: bool | None) -> None:
    assert is_older(version, least) is older


@pytest.mark.parametrize(
    ("architectures", "capability", "runs"),
    [
        (("sm_80",), "8.6", True),  # binary compatible within a major version, upwards
        (("sm_86",), "8.0", False),
        (("sm_80",), "9.0", False),
        (("sm_50", "compute_80"), "9.0", True),  # PTX is compiled for what comes later
        (("compute_90",), "8.9", False),
        (("compute_90",), "9.0", True),
        (("sm_75", "sm_90", "sm_100", "sm_120"), "7.0", False),
        (("sm_75", "sm_90", "sm_100", "sm_120"), "10.3", True),
        (("sm_75", "sm_90", "sm_100", "sm_120"), "12.1", True),
        (("sm_75", "sm_90"), "12.0", False),
        (("sm_90a",), "9.0", True),
        ((), "9.0", False),
        (("sm_90",), "", None),
        (("sm_90",), "N/A", None),
    ],
)
def test_kernels_run_within_a_major_version_and_ptx_on_all_that_follow(
    architectures: tuple[str, ...], capability: str, runs: bool | None
) -> None:
    assert runs_on(architectures, capability) is runs
