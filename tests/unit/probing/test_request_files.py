"""A key changes with what was asked, and with nothing else."""

from dataclasses import replace

import pytest

from harness.domain.outcome import Outcome
from harness.domain.probe import ModelResult, ProbeResult, ServingProfile, WorkerLimits
from harness.probing.request_files import lacked_memory, request_key, wire_request
from tests.programs import stub

REQUEST = stub.run_request([], stub.PATIENT)
AUTO = WorkerLimits(memory_bytes=8, memory_is_derived=True, file_bytes=5)


def test_a_memory_limit_that_follows_the_machine_is_no_part_of_the_question() -> None:
    key = request_key(replace(REQUEST, limits=AUTO))
    assert key == request_key(replace(REQUEST, limits=replace(AUTO, memory_bytes=9)))
    assert key == request_key(replace(REQUEST, limits=replace(AUTO, memory_bytes=None, memory_is_derived=False)))
    assert key != request_key(replace(REQUEST, limits=replace(AUTO, file_bytes=6)))


def test_one_that_was_written_is() -> None:
    one, other = (replace(AUTO, memory_bytes=size, memory_is_derived=False) for size in (8, 9))
    assert request_key(replace(REQUEST, limits=one)) != request_key(replace(REQUEST, limits=other))


def test_code_is() -> None:
    assert len({request_key(REQUEST), request_key(REQUEST, "a"), request_key(REQUEST, "b")}) == 3
    assert len(request_key(REQUEST)) == 16


@pytest.mark.parametrize(
    ("outcome", "limits", "expected"),
    [
        (Outcome.OUT_OF_MEMORY, AUTO, True),
        (Outcome.OUT_OF_MEMORY, replace(AUTO, memory_is_derived=False), False),
        (Outcome.OUT_OF_MEMORY, None, False),
        (Outcome.COMPLETED, AUTO, False),
    ],
)
def test_only_what_ran_out_of_a_derived_limit_may_end_otherwise(
    outcome: Outcome, limits: WorkerLimits | None, expected: bool
) -> None:
    found = ProbeResult(
        key="k", side="new", outcome=outcome, models=(ModelResult(model="m", outcome=outcome),), directory="/d"
    )
    assert lacked_memory(replace(REQUEST, limits=limits), found) is expected


def test_request_carries_what_the_profile_pins() -> None:
    asked = replace(REQUEST, profile=ServingProfile(numerics={"deterministic": True}))
    assert wire_request(asked)["numerics"] == {"deterministic": True}
