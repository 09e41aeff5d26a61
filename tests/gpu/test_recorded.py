"""What a GPU record does not show is said, and no record with such a gap is green."""

from dataclasses import replace

import pytest

from harness.core.environment import Fingerprint
from harness.core.report import SideReport
from tests.gpu.recorded import GpuRecord, RecordedPart, exit_code, reservations

WHOLE = GpuRecord(
    name="RECORD-2026-11-23",
    started_at="2026-11-23T23:00:00+00:00",
    device="cuda",
    arguments=("--device", "cuda"),
    old=SideReport(name="old", fingerprint=Fingerprint(torch="2.11.0", git_revision="a", gpu="NVIDIA H100")),
    new=SideReport(name="new", fingerprint=Fingerprint(torch="2.12.0", git_revision="b", gpu="NVIDIA H100")),
    parts=(
        RecordedPart(name="models", arguments=("compat",), run="models/x", exit_code=0),
        RecordedPart(name="timing", arguments=("compat",), run="models/x", exit_code=0),
    ),
)


def with_codes(*codes: int | None) -> GpuRecord:
    parts = (replace(part, exit_code=code, why="why") for part, code in zip(WHOLE.parts, codes, strict=True))
    return replace(WHOLE, parts=tuple(parts))


def test_a_whole_record_on_a_gpu_is_green() -> None:
    assert reservations(WHOLE) == ()
    assert exit_code(WHOLE) == 0


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (replace(WHOLE, device="cpu"), "No GPU was used: a rehearsal on the device cpu."),
        (replace(WHOLE, device="fakedev"), "No GPU was used: a rehearsal on the device fakedev."),
        (replace(WHOLE, old=None, new=None), "No GPU was used"),
        (replace(WHOLE, old=WHOLE.new), "No upgrade was judged: both sides are torch 2.12.0."),
        (with_codes(0, None), "timing did not come to its end: why"),
    ],
)
def test_what_it_does_not_show_is_said_and_is_not_green(record: GpuRecord, said: str) -> None:
    (sentence,) = reservations(record)
    assert sentence.startswith(said)
    assert exit_code(record) == 4


@pytest.mark.parametrize(
    ("codes", "counts"), [((0, 1), 1), ((4, 1), 1), ((3, None), 3), ((2, 1), 2), ((5, 2), 5), ((None, None), 4)]
)
def test_the_gravest_exit_code_counts(codes: tuple[int | None, ...], counts: int) -> None:
    assert exit_code(with_codes(*codes)) == counts
