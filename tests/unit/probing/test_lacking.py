"""What a machine lacked is told from what an artifact is guilty of, and may be there another day."""

from dataclasses import replace

import pytest

from harness.core.devices import TABLE
from harness.core.outcome import Outcome
from harness.core.probe import Failure, ModelResult, ProbeResult, WorkerLimits
from harness.probing.lacking import lack, lacked
from tests.programs import stub

REQUEST = stub.run_request([], stub.PATIENT)
AUTO = WorkerLimits(memory_bytes=8, memory_is_derived=True, file_bytes=5)


def ended(outcome: Outcome, failure: Failure | None = None) -> ProbeResult:
    model = ModelResult(model="m", outcome=outcome, failure=failure)
    return ProbeResult(key="k", side="new", outcome=outcome, models=(model,), directory="/d")


OUT_OF_MEMORY = replace(ended(Outcome.OUT_OF_MEMORY), memory_limit_bytes=8)


@pytest.mark.parametrize(
    ("found", "limits", "expected"),
    [
        (OUT_OF_MEMORY, AUTO, False),  # another run on the same machine: it reaches the same limit
        (OUT_OF_MEMORY, replace(AUTO, memory_bytes=7), False),
        (OUT_OF_MEMORY, replace(AUTO, memory_bytes=9), True),
        (OUT_OF_MEMORY, replace(AUTO, memory_bytes=9, memory_is_derived=False), False),
        (OUT_OF_MEMORY, None, False),
        (replace(OUT_OF_MEMORY, exit_detail="signal SIGKILL"), AUTO, True),  # the kernel was short of it
        (replace(OUT_OF_MEMORY, memory_limit_bytes=None), AUTO, True),
        (ended(Outcome.COMPLETED), replace(AUTO, memory_bytes=9), False),
    ],
)
def test_only_what_may_have_more_memory_than_a_derived_limit_gave_is_asked_again(
    found: ProbeResult, limits: WorkerLimits | None, expected: bool
) -> None:
    assert lacked(replace(REQUEST, limits=limits), found) is expected


def test_memory_of_a_gpu_is_shared_and_asked_again() -> None:
    request = replace(REQUEST, limits=AUTO, device=TABLE["cuda"])
    assert lacked(request, OUT_OF_MEMORY)


# As 2.6.0, 2.11.0 and 2.15.0 say it.
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx", "no compiler"),
        ("OSError: [Errno 28] No space left on device", "no space left"),
        ("RuntimeError: Failed to create temporary directory: No space left on device", "no space left"),
        (
            "RuntimeError: Failed to extract zip file a.so to destination file /tmp/xkn17M/a.so, mz_zip error string:"
            " write callback failed",
            "no space left",
        ),
        ("RuntimeError: Failed to create temporary directory: Permission denied", "no temporary folder"),
        ("RuntimeError: Error generating temporary directory: Permission denied", "no temporary folder"),
        ("ModuleNotFoundError: No module named 'setuptools'", "no setuptools"),
        ("RuntimeError: the file is damaged, mz_zip error string: crc-32 check failed", None),
    ],
)
def test_what_a_machine_lacked_is_named_and_asked_again(said: str, kind: str | None) -> None:
    found = lack(said)
    assert (found.kind if found is not None else None) == kind
    name, _, message = said.partition(": ")
    failure = Failure(type=name, message=message, phase="load")
    assert lacked(REQUEST, ended(Outcome.LOAD_ERROR, failure)) is (kind is not None)
