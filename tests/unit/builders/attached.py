"""Processes that were looked at: one that is blocked with a known meaning, beside others; and one that is idle."""

from harness.core.attach import (
    Attached,
    Attachment,
    KnownHang,
    LoadedLibrary,
    Lock,
    LockKind,
    ProcessState,
    ThreadFacts,
    ThreadGroup,
    Traffic,
    Why,
)

TORCH = "/opt/venv/lib/python3.11/site-packages/torch/lib"
LIBTORCH = LoadedLibrary(path=f"{TORCH}/libtorch_cpu.so", version="2.6.0+cu124")
LOCK = Lock(kind=LockKind.MUTEX, address=0x7F3A10, owner=4003, lives=True)
BLOCKED = Attached(
    pid=4000,
    command="server 8080 ranker.pt=4x16",
    age_s=7300,
    window_s=2.0,
    state=ProcessState.BLOCKED,
    why=Why.OWNER_WAITS,
    culprits=(4002, 4003),
    phase="call",
    threads=(
        ThreadFacts(tid=4002, name="server", runs=0, lock=LOCK, stack_wait="a mutex", phase="call"),
        ThreadFacts(tid=4003, name="server", runs=0, waits_for="a lock", stack_wait="a condition variable"),
        *(ThreadFacts(tid=tid, name="server", runs=0, waits_for="a lock") for tid in range(4010, 4074)),
    ),
    groups=(
        ThreadGroup(tids=(4002,), like=4002, frames=("ranker::lookup", "jit::InterpreterState::run")),
        ThreadGroup(tids=(4003,), like=4003, frames=("ranker::refresh  /srv/src/ranker/refresh.cpp:31",)),
        ThreadGroup(tids=tuple(range(4010, 4074)), like=4010),
    ),
    stops_s=(0.034, 0.012),
    cpus=8,
    traffic=Traffic(ports=(8080,), connections=9, unanswered=2, oldest_s=41.0),
    torch=(LIBTORCH,),
    openmp=(
        LoadedLibrary(path=f"{TORCH}/libgomp-a34b3233.so.1"),
        LoadedLibrary(path="/usr/lib/x86_64-linux-gnu/libgomp.so.1"),
    ),
    artifacts=("argument: /srv/models/ranker.pt",),
    known=KnownHang(
        name="inter-op-pool-exhausted",
        title="the inter-op pool is exhausted",
        words="the inter-op pool is exhausted: the only thread of it runs a task that waits for another task",
        source="https://github.com/pytorch/pytorch/issues/109782",
        lines={"wide inter-op pool": {"python": "import torch\n\ntorch.set_num_interop_threads(32)"}},
    ),
    scenario="small_pools",
    next_command="python -m harness attach 4000 --format json > attach.json",
    tool="eu-stack, py-spy",
)
IDLE = Attached(
    pid=4100,
    command="server 8081",
    age_s=90,
    window_s=2.0,
    state=ProcessState.IDLE,
    why=Why.LISTENS,
    threads=(ThreadFacts(tid=4100, name="server", waits_for="the network"),),
    groups=(ThreadGroup(tids=(4100,), like=4100),),
    traffic=Traffic(ports=(8081,), connections=3, maybe=3),
)
GROUP = Attachment(asked="--name server", processes=(BLOCKED, IDLE), wall_s=3.1)
ALONE = Attachment(asked="process 4100", processes=(IDLE,), wall_s=3.1)
