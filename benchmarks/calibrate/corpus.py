"""The corpus through the stages of the gate: exported in the old release, planted in the new one, judged as planted defects."""

import contextlib
import datetime
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.artifacts.fixture_folders import read_fixtures
from harness.checks.outputs.compare import compare_model
from harness.core.comparison import OutputComparison
from harness.core.models import ModelDeclaration
from harness.core.outcome import Outcome, Status
from harness.core.probe import ProbeResult
from harness.core.verdict import PlantedDefectResult
from harness.probing.alone import probe_model
from harness.probing.facts import Answered, Effects
from harness.run.planted_defects import probe_planted_defects
from tests.integration.servers import answered, planned, provisioned

PROJECT = Path(__file__).resolve().parents[2]
CORPUS = PROJECT / "fixtures" / "planted" / "seeded"
RESULTS = PROJECT / "docs" / "calibration"
OLD, NEW = "2.1.2", "2.6.0"
ANY_MODELS = (
    "tests/integration/checks/startup/concurrency"  # a plan needs a folder of models; they are left out of it again
)


@dataclass(frozen=True)
class Case:
    """One model of the corpus after it was probed.

    Attributes:
        old_directory: of the probe with the golden of its twin, named ``control``; empty where there is none.
        comparison: of its outputs with that golden; None where it did not complete.
    """

    declaration: ModelDeclaration
    result: PlantedDefectResult
    twin: str
    old_directory: str
    probe: ProbeResult | None
    comparison: OutputComparison | None

    @property
    def arguments(self) -> dict[str, Any]:
        """The combination of the grid that this is."""
        return dict(self.declaration.arguments)

    @property
    def is_healthy(self) -> bool:
        """Whether no detector may fire: the corpus tags a healthy pair ``sound``."""
        return self.declaration.planted_defect is None or "sound" in self.declaration.tags

    @property
    def flagged(self) -> bool:
        """Whether the gate holds it for defective, of whatever kind."""
        planted = self.declaration.planted_defect is not None
        return (planted and self.result.caught) or self.result.note.startswith(f"came out {Status.FAIL}")

    @property
    def left_alone(self) -> bool:
        """Whether the gate holds it for healthy: neither flagged nor undecided."""
        if self.declaration.planted_defect is None:
            return self.result.caught
        return self.result.note.startswith(f"came out {Status.PASS}")


def declared(*files: str) -> tuple[ModelDeclaration, ...]:
    """Return the corpus's declarations in ``files``, by stem, with the twins that they name."""
    every = read_fixtures(CORPUS)
    chosen = [item for item in every if Path(item.source).stem in files]
    wanted = {item.name for item in chosen} | {
        item.planted_defect.twin for item in chosen if item.planted_defect is not None
    }
    return tuple(item for item in every if item.name in wanted)


@contextlib.contextmanager
def planted(
    folder: Path,
    declarations: Sequence[ModelDeclaration],
    *,
    scenarios: Sequence[str] = ("alone",),
) -> Iterator[tuple[Answered, Effects]]:
    """Both releases, with the corpus in place of the planted defects; exported, with the goldens of the twins."""
    plan = planned(folder, ANY_MODELS, scenarios=scenarios, overrides={"old": OLD, "new": NEW})
    plan = replace(plan, models=(), groups={}, planted_defects=tuple(declarations))
    with provisioned(folder, plan) as (facts, effects):
        yield answered(facts, effects), effects


def probed(facts: Answered, effects: Effects) -> list[Case]:
    """Return every model of the corpus as the planted defect stage judges it."""
    results = probe_planted_defects(facts, effects)
    declarations = {item.name: item for item in facts.plan.planted_defects}
    return [_case(declarations[result.name], result, facts, effects) for result in results]


def _case(declaration: ModelDeclaration, result: PlantedDefectResult, facts: Answered, effects: Effects) -> Case:
    twin = declaration.name if declaration.planted_defect is None else declaration.planted_defect.twin
    baseline, probe, comparison = facts.baselines.get(twin), None, None
    if facts.exports[declaration.name].artifact is not None:
        probe = probe_model(declaration, facts, effects, facts.plan.settings.profile)  # a stored result by now
        if probe.models[0].outcome is Outcome.COMPLETED:
            comparison = compare_model(declaration.name, probe.directory, baseline, facts)
    directory = baseline.directory if baseline is not None else ""
    return Case(declaration, result, twin, directory, probe, comparison)


def measured() -> dict[str, Any]:
    """Return when and on what something is measured; take it before the work, for the load average's sake."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=PROJECT, capture_output=True, text=True)
    dirty = subprocess.run(["git", "status", "--porcelain"], cwd=PROJECT, capture_output=True, text=True)
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "commit": commit.stdout.strip() + (" and changes" if dirty.stdout.strip() else ""),
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu[0].partition(":")[2].strip() if cpu else "unknown",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "load_average": round(os.getloadavg()[0], 1),
        "new": NEW,
        "old": OLD,
    }


def store(name: str, parts: dict[str, Any]) -> Path:
    """Write ``parts`` into the named file of results; parts that are there and were not measured anew stay."""
    path = RESULTS / name
    known = json.loads(path.read_text()) if path.exists() else {}
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(rendered({**known, **parts}) + "\n")
    return path


def rendered(value: Any, indent: int = 0) -> str:
    """Return JSON with sorted keys: a line per entry, but a list of plain values or of rows stays narrow."""
    inner = " " * (indent + 1)
    if isinstance(value, dict) and any(isinstance(item, dict) or _is_table(item) for item in value.values()):
        items = (f"{inner}{json.dumps(key)}: {rendered(value[key], indent + 1)}" for key in sorted(value))
        return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}"
    if _is_table(value):
        return "[\n" + ",\n".join(inner + rendered(item, indent + 1) for item in value) + "\n" + " " * indent + "]"
    return json.dumps(value, sort_keys=True)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict | list) for item in value)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="gate-calibrate-") as folder:
        yield Path(folder)
