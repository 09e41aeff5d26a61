"""What is said below a state: what to do next, where to look, and how the gate makes it again."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.apps.attach.attach import _finished, _pools
from harness.core.attach import Attached, Attachment, Lock, LockKind, ProcessState, ThreadFacts, Traffic, Why
from harness.core.hang import Frame, ThreadStack
from harness.project import Project
from harness.report.document import Fact
from harness.report.documents.attach import attach_document
from tests.unit.builders.attached import BLOCKED, IDLE, LIBTORCH


def facts(process: Attached) -> dict[str, str]:
    document = attach_document(Attachment(asked="it", processes=(process,)))
    blocks = [block for part in document.parts for block in part.blocks]
    lines: dict[str, list[str]] = {}
    for block in blocks:
        if isinstance(block, Fact):
            lines.setdefault(block.label, []).append(block.text)
    return {label: "\n".join(texts) for label, texts in lines.items()}


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
    python = replace(circle, why=Why.OWNER_WAITS, culprits=(1, 2), threads=(_waiting(1, 7, 2), _waiting(2, 9, 0)))
    assert "holder is recorded nowhere" in facts(python)["because"]


def test_a_native_frame_of_the_servers_own_is_named_as_addr2line_takes_it() -> None:
    library = LIBTORCH.path
    frames = (
        Frame(function="__lll_lock_wait", file="libc.so.6", image="/usr/lib/libc.so.6", offset=9),
        Frame(function="at::add", file="libtorch_cpu.so", image=library, offset=0x77),
        Frame(function="{lambda()#3}::operator()", file="server", image="/srv/server", offset=0x1240),
    )
    thread = replace(_waiting(1, 0, 1), stack=ThreadStack(tid=1, frames=frames))
    circle = replace(BLOCKED, why=Why.CYCLE, culprits=(1,), threads=(thread,), groups=())
    assert "look at addr2line -Cfpie /srv/server 0x123f" in facts(circle)["next"]
    inside = replace(thread, stack=ThreadStack(tid=1, frames=frames[:2]))
    assert f"addr2line -Cfpie {library} 0x76" in facts(replace(circle, threads=(inside,)))["next"]


@pytest.mark.parametrize(
    ("table", "version", "expected"),
    [
        ({}, "2.6.0+cu124", "--old 2.5.1 --new 2.6.0"),
        ({"old": "2.1.2"}, "2.6.0", "--old 2.1.2 --new 2.6.0"),
        ({"old": "2.6.0"}, "2.6.0", "--old 2.5.1 --new 2.6.0"),
        ({}, "1.0", "--old 1.0 --new 1.0 --allow-same-torch"),
        ({}, "", "--old RELEASE --new RELEASE --allow-same-torch"),
    ],
)
def test_again_names_both_releases(table: dict[str, str], version: str, expected: str, tmp_path: Path) -> None:
    lines = "".join(f'{key} = "{value}"\n' for key, value in table.items())
    (tmp_path / "pyproject.toml").write_text(f"[tool.compat]\n{lines}")
    process = replace(BLOCKED, pid=2**22 + 1, torch=(replace(LIBTORCH, version=version),))
    finished = _finished(Project(folder=tmp_path), process)
    assert f" {expected} --scenario small_pools" in finished.again
    assert finished.next_command.endswith(f"attach {process.pid} --format json > attach.json")


def test_who_has_the_cpus_of_a_starved_process_is_asked_by_a_whole_command(tmp_path: Path) -> None:
    starved = replace(IDLE, state=ProcessState.STARVED, why=Why.OTHERS)
    finished = _finished(Project(folder=tmp_path), starved)
    assert finished.next_command.endswith("attach --system --pid 4100")
    assert facts(finished)["next"].splitlines()[-1] == finished.next_command
    assert _finished(Project(folder=tmp_path), replace(starved, why=Why.QUOTA)).next_command == ""


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
