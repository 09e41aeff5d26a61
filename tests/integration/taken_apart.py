"""Models of ``tests/integration/reduced`` in two releases, judged alone, for tests of what comes after that."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.run.plan import make_plan
from harness.run.options import Options, builder_for, golden_store
from harness.probing.facts import Attributed, Effects
from harness.probing.provision import sides
from harness.run import pipeline
from harness.store.run_folder import RunDir
from harness.system import clock
from harness.system.progress import Progress
from tests.integration.gate import PROJECT

REDUCED = PROJECT / "tests" / "integration" / "reduced"


@contextmanager
def judged(
    old: str, new: str, reports: Path, *names: str, new_profile: str | None = None
) -> Iterator[tuple[Attributed, Effects]]:
    """Yield the facts about these models as ``bisect`` has them, with what asks for more."""
    overrides: dict[str, object] = {
        "fixtures": str(REDUCED),
        "old": "old",
        "new": "new",
        "latency": "off",
        "deadlines.floor_s": "3",
    }
    if new_profile is not None:
        overrides["new_profile"] = new_profile
    options = Options(
        project=PROJECT,
        overrides=overrides,
        environments=(f"old={old}", f"new={new}"),
        scenarios=("alone",),
        expression=" or ".join(names),
        out=str(reports),
    )
    plan = replace(make_plan(options), planted_defects=())
    progress = Progress(enabled=False)
    with RunDir.create(reports, "reduced", clock.utc_now()) as run_dir:
        ready = pipeline.provisioned(
            plan,
            sides(plan),
            run_dir,
            builder=builder_for(options, progress),
            progress=progress,
            golden=golden_store(options),
            waivers=(),
            today=clock.today(),
        )
        with ready as (effects, first):
            yield pipeline.judge(first, effects), effects
