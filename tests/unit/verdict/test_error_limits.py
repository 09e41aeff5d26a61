"""How far outputs are off, and what a policy's limit makes of it."""

from harness.checks.outputs.findings import output_findings
from harness.verdict.enforce import beyond, is_excused
from harness.core.outcome import Status
from tests.unit.builders.verdicts import call, compared, equal, tensor, verdict


def test_worst_output_of_all_calls_is_what_counts() -> None:
    found = compared(call(tensor(max_abs=2e-4)), call(tensor(max_abs=6e-4, path="output[1]"), index=1))
    told = beyond(found, 1e-4)
    assert told is not None
    assert (told.size, told.where) == (3e-4, "example call 1 output[1]")
    assert told.message == "output[1]: off by 0.0003 of its largest value, limit 0.0001 of the policy"
    assert beyond(found, 3e-4) is None


def test_integers_and_equal_bits_have_no_error() -> None:
    assert beyond(compared(call(equal(), tensor(dtype="int64", max_abs=2.0))), 1e-9) is None
    assert beyond(None, 1e-9) is None


def test_complex_and_half_outputs_have_one() -> None:
    for dtype in ("complex64", "float16", "bfloat16", "float8_e4m3fn"):
        assert beyond(compared(call(tensor(dtype=dtype))), 1e-3) is not None


def test_one_output_that_no_limit_covers_excuses_none() -> None:
    floats = call(tensor(max_abs=2e-4))
    both = call(tensor(max_abs=2e-4), tensor(dtype="int64", max_abs=1.0, path="output[1]"))
    told = [
        is_excused(verdict(Status.FAIL, *output_findings(compared(one))), compared(one), 1e-3) for one in (floats, both)
    ]
    assert told == ["off by 0.0001 of the largest value, limit 0.001", ""]
