"""A healthy machine and healthy environments, for tests that break one thing."""

from harness.core.machine import Cores, GpuCard, GpuState, Gpus
from harness.environments.candidate_facts import Wheel
from harness.environments.candidate_facts import Candidate
from harness.apps.doctor.facts import Disk, Host, Limits, Memory, Tools

GB = 10**9
WHEEL = Wheel(
    cuda="12.4", architectures=("sm_50", "sm_80", "sm_86", "sm_90"), glibc="2.17", source="the installed wheel"
)
OLD = Candidate(name="torch 2.1.2", built=True, python="3.11", pythons="Python 3.8 to 3.11", wheel=WHEEL)
NEW = Candidate(name="torch 2.6.0", built=True, python="3.11", pythons="Python 3.9 to 3.13", wheel=WHEEL)
CORES = Cores(visible=16, allowed=16, stolen=0.0)
MEMORY = Memory(usable=64 * GB, available=60 * GB)
DISK = Disk(folder="/home/me/project/.nox/torch", free=100 * GB)
TOOLS = Tools(installer="uv (/usr/bin/uv)", compiler="/usr/bin/g++, 12.2.0")
LIMITS = Limits(tasks=98736, open_files=1048576)
CARD = GpuCard(
    uuid="GPU-b6dfbd9a-2ba4-3b33-8d5a-0d3b4f5b8a11",
    capability="9.0",
    machine_state=GpuState(
        name="NVIDIA H200", sm_clock_mhz=345, max_sm_clock_mhz=1980, throttle_reasons=("idle",), temperature_c=28
    ),
    compute_mode="Default",
    memory_used_mib=1,
    ecc_errors=0,
)
GPUS = Gpus(nodes=("/dev/nvidia0",), driver="550.54.14", cards=(CARD,))
HOST = Host(
    cores=CORES,
    memory=MEMORY,
    limits=LIMITS,
    gpus=GPUS,
    glibc="2.36",
)
