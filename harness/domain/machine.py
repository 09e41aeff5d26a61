"""What the machine was like while a duel ran. Facts; what to make of them is ``harness/policy/machine.py``'s."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuScene:
    """A GPU while it worked, beside a block that is not recorded.

    Attributes:
        throttle_reasons: why its clocks were held down, in the driver's words; ``"idle"`` is one of them.
        other_processes: processes with a context on it that are not of the duel; 0 also where that is not known.
    """

    name: str
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    other_processes: int = 0
    temperature_c: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineScene:
    """The machine in one round of a duel, while models were loaded and blocks ran.

    Attributes:
        cores: to which all processes were pinned; empty: not pinned, ``why_not_pinned`` says why.
        stolen: share of these cores' time that the hypervisor gave to others, 0 to 1; of all cores where not pinned.
        others: share of it that processes other than the duel's used, 0 to 1.
        quota_cores: how many cores' worth of time the container may use; None: all that it sees.
        quota_throttled_s: for how long the container was stopped because it had used that up.
        gpu: None on the CPU, and where ``nvidia-smi`` gave no answer.
    """

    cores: tuple[int, ...] = ()
    why_not_pinned: str = ""
    stolen: float = 0.0
    others: float = 0.0
    quota_cores: float | None = None
    quota_throttled_s: float = 0.0
    gpu: GpuScene | None = None
