"""The allocator of a timed process, as its environment variables."""

import pytest

from harness.core.probe import Deadline, ProbeRequest, ServingProfile
from harness.checks.latency.allocator import HIGHEST, settled


def request(env: dict[str, str]) -> ProbeRequest:
    return ProbeRequest(
        verb="benchmark",
        side="old",
        environment="e",
        profile=ServingProfile(env=env),
        deadline=Deadline(load_s=1.0, call_s=1.0, total_s=1.0),
        worker_digest="w",
    )


def test_thresholds_are_where_glibc_leaves_them_and_the_profile_stays() -> None:
    assert settled(request({"OMP_WAIT_POLICY": "passive"})).profile.env == {"OMP_WAIT_POLICY": "passive", **HIGHEST}


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "LD_PRELOAD"])
def test_a_profile_that_speaks_of_the_allocator_is_left_as_it_is(name: str) -> None:
    own = request({name: "2"})
    assert settled(own) is own
