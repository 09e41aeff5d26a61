"""Models of a folder in two releases, judged in this process, for tests of what comes after that."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.probing.facts import Attributed, Effects
from harness.probing.provision import sides
from harness.run import pipeline
from harness.run.options import Options, builder_for, golden_store
from harness.run.plan import make_plan
from harness.store.run_folder import RunDir
from harness.machine import clock
from harness.machine.progress import Progress
from tests.integration.gate import PROJECT


@contextmanager
def judged(
    fixtures: Path,
    pythons: tuple[str | Path, str | Path],
    reports: Path,
    expression: str | None = None,
    *,
    floor_s: int,
    scenarios: tuple[str, ...] = ("alone",),
    libraries: tuple[str, ...] = (),
    **overrides: object,
) -> Iterator[tuple[Attributed, Effects]]:
    """Yield the facts about these models as a search has them when it begins, with what asks for more.

    Args:
        pythons: interpreters of the old and of the new release.
        expression: which models; each is in a server group of its own.
        floor_s: the least deadline of a phase.
        overrides: further keys of the configuration; nothing is timed unless they say so.
    """
    options = Options(
        project=PROJECT,
        overrides={
            **{"fixtures": str(fixtures), "old": "old", "new": "new", "latency": "off"},
            **{"deadlines.floor_s": str(floor_s)},
            **overrides,
        },
        environments=tuple(f"{side}={python}" for side, python in zip(("old", "new"), pythons, strict=True)),
        libraries=libraries,
        scenarios=scenarios,
        expression=expression,
        out=str(reports),
    )
    plan = make_plan(options)
    plan = replace(plan, planted_defects=(), groups={model.name: (model.name,) for model in plan.models})
    progress = Progress(enabled=False)
    with (
        RunDir.create(reports, fixtures.name, clock.utc_now()) as run_dir,
        pipeline.provisioned(
            plan,
            sides(plan),
            run_dir,
            builder=builder_for(options, progress),
            progress=progress,
            golden=golden_store(options),
            waivers=(),
            today=clock.today(),
        ) as (effects, first),
    ):
        yield pipeline.judge(first, effects), effects
