"""A machine with GPUs that are not there: device files, the driver's version, and an ``nvidia-smi`` that answers."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.core.machine import Gpus
from harness.machine.gpu import survey

HERE = Path(__file__).parent
DRIVER = "550.54.14"
Card = Mapping[str, object]
"""Keys and values as ``libnvidia_ml.c`` explains them; of a tuple each is a line of its own, None is no line."""

H200: Card = {
    "uuid": "GPU-b6dfbd9a-2ba4-3b33-8d5a-0d3b4f5b8a11",
    "name": "NVIDIA H200",
    "capability": "9.0",
    "compute_mode": 0,
    "mig": 0,
    "memory_used_mib": 1,
    "memory_mib": 143771,
    "sm_clock_mhz": 345,
    "max_sm_clock_mhz": 1980,
    "reasons": "0x1",
    "temperature_c": 28,
    "ecc_errors": 0,
}
A10: Card = {
    **H200,
    "uuid": "GPU-f15ae561-21b1-6003-c768-861fc285203b",
    "name": "NVIDIA A10",
    "capability": "8.6",
    "mig": None,
    "memory_mib": 23028,
    "max_sm_clock_mhz": 1695,
}
# What people report of a GPU that has to be reset: it is listed, and its sensors say so.
WANTS_RESET: Card = {
    **H200,
    "returns": tuple(
        f"nvmlDeviceGet{what} 16" for what in ("Temperature", "ClockInfo", "CurrentClocksThrottleReasons")
    ),
}
# NVML's return codes.
NO_PERMISSION, DRIVER_NOT_LOADED, GPU_IS_LOST, LIBRARY_MISMATCH, UNKNOWN = 4, 9, 15, 18, 999


def cannot_begin(code: int | str) -> str:
    """Return the line with which NVML cannot be initialized."""
    return f"returns nvmlInitWithFlags {code}"


def build(folder: Path) -> Path:
    """Compile the library and ``nvidia-smi`` into ``folder`` (0.2 s), and return it."""
    compiler = ("gcc", "-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror")
    library, program = folder / "libnvidia-ml.so.1", folder / "nvidia-smi"
    shared = ("-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1")
    for flags, source, result, with_what in (
        (shared, "libnvidia_ml.c", library, ("-ldl",)),
        (("-Wl,-rpath,$ORIGIN",), "nvidia_smi.c", program, (str(library),)),
    ):
        command = (*compiler, *flags, str(HERE / source), "-o", str(result), *with_what)
        subprocess.run(command, check=True, timeout=60)
    return folder


class Machine:
    """The files of a machine in ``folder``, and its scenario: ``has`` says what is so from now on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.proc, self.dev = folder, folder / "proc", folder / "dev"
        for one in (self.proc / "driver" / "nvidia", self.dev):
            one.mkdir(parents=True)

    @property
    def scenario(self) -> Path:
        """What NVML_SCENARIO has to name."""
        return self.folder / "scenario"

    def has(self, *cards: Card, driver: str = DRIVER, lines: Sequence[str] = (), nodes: int | None = None) -> "Machine":
        """Give it these GPUs; ``nodes``: how many have a device file, if not all."""
        said = [f"driver {driver}", *lines]
        for card in cards:
            said += ["gpu", *(f"{key} {text}" for key, value in card.items() for text in _texts(value))]
        self.scenario.write_text("\n".join(said) + "\n")
        version = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Thu Feb 22 01:44:30 UTC 2024\n"
        (self.proc / "driver" / "nvidia" / "version").write_text(version)
        for path in self.dev.iterdir():
            path.unlink()
        count = len(cards) if nodes is None else nodes
        for name in [*(f"nvidia{number}" for number in range(count)), *(["nvidiactl"] if count else [])]:
            (self.dev / name).touch()
        return self

    def survey(self, visible: str | None = None) -> Gpus:
        """Return what the gate's own look finds."""
        return survey(self.proc, self.dev, visible)


def _texts(value: object) -> tuple[object, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)
