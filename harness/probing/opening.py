"""Opens what stages need to touch the world, and ends every process however that ends."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import date

from harness.domain.environment import Environment
from harness.domain.verdict import Waiver
from harness.environments.builder import EnvironmentBuilder
from harness.environments.native import build_stack_dumper
from harness.models.old_outputs import Records
from harness.probing.facts import Effects
from harness.probing.runner import Watchdog, ZygoteRunner
from harness.store.run_folder import RunDir
from harness.system.progress import Progress


@contextlib.contextmanager
def opened(
    environments: Mapping[str, Environment],
    run_dir: RunDir,
    *,
    builder: EnvironmentBuilder,
    progress: Progress,
    golden: Records,
    waivers: tuple[Waiver, ...],
    today: date,
    watchdog: Watchdog,
    reuse: bool = True,
) -> Iterator[Effects]:
    """Yield what probes in ``environments``, by side, need; the mapping may grow while it is open.

    Args:
        reuse: whether results that ``run_dir`` holds are returned in place of new probes.
    """
    runner = ZygoteRunner(environments, run_dir.probes, watchdog, reuse=reuse)
    native_folder = builder.root / "native"
    try:
        runner.stack_dumper = build_stack_dumper(native_folder)
        yield Effects(
            environments=environments,
            runner=runner,
            run_dir=run_dir,
            progress=progress,
            golden=golden,
            waivers=waivers,
            native_folder=native_folder,
            today=today,
        )
    finally:
        runner.close()
