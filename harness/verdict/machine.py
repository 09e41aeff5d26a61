"""What happened to the machine during a run, and which verdicts are to be read with it. Pure."""

from harness.core.machine import ENDS, ERRORS, TIMES, MachineDuringRun, MachineEvent
from harness.core.verdict import CellVerdict

KINDS = {
    ENDS: frozenset({"out_of_memory", "crash", "hang", "starved", "protocol_error"}),
    ERRORS: frozenset({"load_error", "call_error", "concurrent_error", "export_error"}),
}


def touching(during_run: MachineDuringRun | None, cell: CellVerdict) -> tuple[MachineEvent, ...]:
    """Return the events that a verdict is to be read with: times with load, ends without an answer with kills."""
    if during_run is None:
        return ()
    touched = {name for name, kinds in KINDS.items() if not kinds.isdisjoint(cell.kinds)} | (
        {TIMES} if cell.scenario == "latency" else set()
    )
    return tuple(event for event in during_run.events if touched & {*event.touches})


def disturbing(during_run: MachineDuringRun | None) -> tuple[MachineEvent, ...]:
    """Return the events that every time of the run is to be read with."""
    return tuple(event for event in during_run.events if TIMES in event.touches) if during_run is not None else ()
