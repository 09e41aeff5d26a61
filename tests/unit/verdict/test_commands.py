"""Which commands a report prints for its cells."""

from dataclasses import replace

from harness.core.outcome import Status
from harness.core.verdict import Finding
from harness.verdict.commands import anyway_command, bisect_command
from tests.unit.builders.reports import blocked, verdict

HANG = Finding(kind="hang", message="call 1 has not returned after 60 s")


def test_a_hang_of_both_releases_has_a_search_of_its_own() -> None:
    report = blocked()
    both = verdict("fused_ranker", "alone", Status.SAME_FAIL, HANG)
    assert anyway_command(report, both).endswith("fused_ranker/alone --anyway")
    assert " mitigate " in anyway_command(report, both)
    new = replace(both, status=Status.FAIL)
    assert anyway_command(report, new) == ""
    assert " bisect " in bisect_command(report, new)
    assert anyway_command(report, replace(both, findings=(replace(HANG, kind="values"),))) == ""
    assert anyway_command(replace(report, old=replace(report.old, golden=True)), both) == ""
