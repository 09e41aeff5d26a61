import pytest

from harness.checks.startup.slow_start import slow_start
from harness.core.findings import SEVERITY, Severity


def test_a_server_group_that_starts_clearly_slower_is_warned_of_with_both_times() -> None:
    found = slow_start(67.0, 101.0, 1.25, group="ranking", words="load while serving")
    assert found is not None and SEVERITY[found.kind] is Severity.NAMED
    assert found.size == pytest.approx(101 / 67)
    for said in ("load while serving", "ranking", "101 s", "67 s before", "+50.7 %", "limit +25.0 %"):
        assert said in found.message


@pytest.mark.parametrize(("old_s", "new_s"), [(67.0, 83.0), (67.0, 40.0), (0.2, 1.1), (0.0, 0.9)])
def test_a_start_within_the_limit_or_by_less_than_a_second_slower_is_not_warned_of(old_s: float, new_s: float) -> None:
    assert slow_start(old_s, new_s, 1.25, group="ranking", words="load while serving") is None
