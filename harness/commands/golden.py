"""Golden records by command: proposed from a run, accepted with a reason, listed and verified."""

from collections.abc import Sequence
from pathlib import Path

from harness.commands.compat import read_report
from harness.commands.options import Options, golden_store
from harness.errors import GoldenError
from harness.planning.selection import select
from harness.runtime import clock
from harness.runtime.outputs import read_outputs
from harness.runtime.run_dir import RunDir, find_run


def propose(options: Options, run_name: str) -> list[Path]:
    """Write the golden outputs of a run as proposals; return their folders.

    Raises:
        SelectionError: no such run, or nothing matches ``-k``.
        GoldenError: the run has no golden outputs of its own.
    """
    folder = find_run(options.reports, run_name, with_report=True)
    plan = RunDir(folder).load_plan()
    if plan.golden is not None:
        raise GoldenError(f"{folder.name} was judged by golden records", "propose from a run with the old release")
    report = read_report(options, run_name).report
    store = golden_store(options)
    folders = []
    producer = report.old.fingerprint
    baselines = RunDir(folder).baselines()
    for model in select(plan.models, options.expression):
        found = baselines.get(model.name)
        if found is not None and producer is not None:
            outputs = read_outputs(found.directory, model.name)
            folders.append(store.propose(found.artifact, outputs, producer, plan.device))
    return folders


def accept(options: Options, models: Sequence[str], reason: str) -> list[str]:
    """Accept proposals with a reason; return their names."""
    if not reason.strip():
        raise GoldenError("a golden record is accepted with a reason", "say why these outputs are right: --reason TEXT")
    store = golden_store(options)
    names = list(store.proposed()) if list(models) == ["all"] else list(models)
    if not names:
        raise GoldenError("no proposal is waiting", "python -m harness golden propose RUN")
    for name in names:
        store.accept(name, reason, clock.today())
    return names


def status(options: Options) -> str:
    """Return one line per accepted record and per waiting proposal; every record is verified on the way."""
    store = golden_store(options)
    lines = []
    for name, entry in store.entries().items():
        store.record(name)
        lines.append(f"accepted  {name:34} torch {entry.release:14} {entry.accepted} {entry.reason}")
    lines += [f"proposed  {name}" for name in store.proposed()]
    return "\n".join(lines) or "no golden records yet"
