"""What is said below a state: what to do next, where to look, and how the gate makes it again."""

from dataclasses import replace

from harness.apps.attach.attach import _pools
from harness.core.attach import Attached, Attachment, Lock, LockKind, ProcessState, ThreadFacts, Traffic, Why
from harness.core.hang import Frame, ThreadStack
from harness.report.document import Fact
from harness.report.documents.attach import attach_document
from tests.unit.builders.attached import BLOCKED, IDLE


def facts(process: Attached) -> dict[str, str]:
    document = attach_document(Attachment(asked="it", processes=(process,)))
    blocks = [block for part in document.parts for block in part.blocks]
    return {block.label: block.text for block in blocks if isinstance(block, Fact)}


def _waiting(tid: int, line: int, owner: int) -> ThreadFacts:
    frames = (
        Frame(function="sem_wait", file="libc.so.6"),
        Frame(function="swap", file="/srv/app.py", line=line, language="python"),
    )
    lock = Lock(kind=LockKind.MUTEX, address=16, owner=owner, lives=True) if owner else None
    return ThreadFacts(tid=tid, waits_for="a lock", runs=0, lock=lock, stack=ThreadStack(tid=tid, frames=frames))


def test_a_circle_names_both_lines_and_a_lock_of_python_has_no_holder() -> None:
    circle = replace(BLOCKED, why=Why.CYCLE, culprits=(1, 2), threads=(_waiting(1, 7, 2), _waiting(2, 9, 1)), groups=())
    words = facts(circle)["next"]
    assert "srv/app.py:7 and /srv/app.py:9, which take the same two locks" in words
    assert "attach.json" in words
    python = replace(circle, why=Why.OWNER_WAITS, culprits=(1, 2), threads=(_waiting(1, 7, 2), _waiting(2, 9, 0)))
    assert "holder is recorded nowhere" in facts(python)["because"]


def test_what_listens_on_no_port_may_be_the_wrong_process() -> None:
    unknown = replace(IDLE, state=ProcessState.UNKNOWN, why=Why.NO_EVIDENCE, traffic=Traffic())
    assert "--port" in facts(unknown)["next"]
    assert "right PID" not in facts(replace(unknown, traffic=Traffic(ports=(80,))))["next"]


def test_the_gate_gets_as_many_threads_as_the_process_has() -> None:
    """Of a number that no process has, nothing tells the environment."""
    shared = replace(BLOCKED, pid=2**22 + 1, scenario="shared")
    assert _pools(shared) == ["--set", "serving.intra_op_threads=8"]
    assert _pools(replace(shared, threads=shared.threads[:3])) == ["--set", "serving.intra_op_threads=3"]
    child = replace(shared, threads=shared.threads[:1], parent=3999, cpus=1)
    assert _pools(child) == ["--set", "serving.intra_op_threads=2"]  # one would hide a hang after the fork
    stack = ThreadStack(tid=1, frames=(Frame(function="c10::ThreadPool::main_loop(unsigned long)"),))
    pool = replace(shared, threads=(replace(shared.threads[0], stack=stack),) * 2)
    assert _pools(pool)[-1] == "serving.inter_op_threads=2"
    assert _pools(replace(pool, scenario="small_pools")) == []
