"""A plan is read as it was written; what is none, or is somebody else's, is one line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.plan import PolicySettings, Settings
from harness.errors import RunDirError
from harness.fleet.plan import load_plan, settings_digest
from harness.report.json.results import dump_fleet
from tests.unit.builders.fleets import fleet_plan

PLAN = fleet_plan(("a", "b", "c"))


def test_a_plan_reads_back_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(dump_fleet(PLAN))
    for name in (tmp_path, tmp_path / "plan.json"):
        planned = load_plan(str(name), to_run=True)
        assert (planned.plan, planned.folder) == (PLAN, tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no plan"),
        ("[", "damaged or from another version"),
        (json.dumps({"schema_version": 99}), "no plan of a fleet of this version"),
        (json.dumps({"version": 2, "models": []}), "no plan of a fleet"),
        (json.dumps({"schema_version": 1}), "damaged"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "plan.json").write_text(content)
    with pytest.raises(RunDirError, match=said):
        load_plan(str(tmp_path))


def test_a_link_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text(dump_fleet(PLAN))
    (tmp_path / "plan.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(RunDirError, match="is a link"):
        load_plan(str(tmp_path), to_run=True)


def test_only_what_may_change_a_result_is_in_the_digest_of_the_settings() -> None:
    base = Settings(old="2.1.2", new="2.6.0")
    same = replace(
        base,
        jobs=9,
        old="x",
        new="y",
        explain=60.0,
        migrate=True,
        groups={"a": "b"},
        policy=PolicySettings(gates=("p99",)),
    )
    other = [
        replace(base, calls=9),
        replace(base, scenarios=("alone",)),
        replace(base, latency=replace(base.latency, budget="off")),
        replace(base, policy=PolicySettings(accepted_mitigations=("profiling off",))),
    ]
    digests = [settings_digest(item) for item in (base, same, *other)]
    assert digests[0] == digests[1] and len(set(digests)) == 1 + len(other)
