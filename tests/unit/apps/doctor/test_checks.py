"""Every check of the doctor: a planted bad case that it flags, and a healthy twin that it does not.

Those of GPUs and drivers are in ``test_gpus.py``.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.verdict.exit_codes import exit_code
from harness.apps.doctor.checks import CHECKS, Facts, examined, run_notes
from harness.core.machine import CheckStatus, Checkup, Gpus, MachineCheck
from harness.environments.candidate_facts import Wheel
from harness.environments.candidate_facts import Candidate, IndexAnswer
from harness.apps.doctor.facts import Container, Disk, Host, Limits, Memory, Tools
from harness.core.errors import ExitCode
from tests.unit.builders.machines import (
    CARD,
    CORES,
    DISK,
    GB,
    GPUS,
    HOST,
    MEMORY,
    NEW,
    OLD,
    TOOLS,
    WHEEL,
)

BOTH = ("torch 2.1.2", "torch 2.6.0")
MISSING = replace(NEW, built=False, index=IndexAnswer(found=True))


def checks(
    candidates: Sequence[Candidate] = (OLD, NEW),
    host: Host = HOST,
    disk: Disk = DISK,
    tools: Tools = TOOLS,
    **asked: Any,
) -> tuple[MachineCheck, ...]:
    more = {"device": "auto", "jobs": 4, **asked}
    return examined(Facts(host=host, candidates=tuple(candidates), disk=disk, tools=tools, **more))


def wrong(*args: Any, **asked: Any) -> list[MachineCheck]:
    return [check for check in checks(*args, **asked) if check.status is not CheckStatus.OK]


def one_wrong(*args: Any, **asked: Any) -> MachineCheck:
    """The single check that is not ok; it says so what and what to do, a sentence each."""
    (found,) = wrong(*args, **asked)
    for text in (found.so_what, found.do_this):
        assert text.endswith("."), text
    assert bool(found.blocks) is (found.status is CheckStatus.FAIL)
    return found


def on(**change: Any) -> Host:
    return replace(HOST, **change)


def test_a_healthy_machine_has_nothing_wrong_and_nothing_to_do() -> None:
    assert wrong() == []
    assert wrong([OLD, MISSING]) == []
    assert wrong(host=on(gpus=Gpus())) == []
    assert not any(check.so_what or check.do_this for check in checks())


def test_no_installed_python_blocks_that_environment() -> None:
    lost = Candidate(name="torch 2.15.0", trouble="no working CPython 3.11 was found", hint="install Python 3.11")
    found = one_wrong([OLD, lost])
    assert (found.name, found.status, found.blocks) == ("Python", CheckStatus.FAIL, ("torch 2.15.0",))
    assert found.do_this == "Install Python 3.11."


def test_a_configured_python_that_suits_no_wheel_is_a_warning() -> None:
    found = one_wrong([OLD, replace(NEW, built=False, python="3.8", unsuited=True)])
    assert (found.name, found.about, found.status) == ("Python", "torch 2.6.0", CheckStatus.WARN)
    assert found.read == "3.8, as configured; wheels for Python 3.9 to 3.13"


@pytest.mark.parametrize(
    ("here", "needed", "status"),
    [("2.26", "2.28", CheckStatus.FAIL), ("2.28", "2.28", None), ("2.9", "2.17", CheckStatus.FAIL), ("", "2.17", "x")],
)
def test_glibc_is_compared_as_a_version(here: str, needed: str, status: object) -> None:
    found = wrong([replace(NEW, wheel=replace(WHEEL, glibc=needed))], on(glibc=here))
    assert [(check.name, check.blocks) for check in found] == ([("glibc", (NEW.name,))] if status else [])


@pytest.mark.parametrize(
    ("name", "wheel", "change"),
    [
        ("wheel", None, {}),
        ("glibc", WHEEL, {"glibc": "2.x"}),
        ("GPU driver", WHEEL, {"gpus": replace(GPUS, driver="")}),
        ("GPU architecture", WHEEL, {"gpus": replace(GPUS, cards=(replace(CARD, capability=""),))}),
    ],
)
def test_what_nobody_tells_is_unknown(name: str, wheel: Wheel | None, change: dict[str, Any]) -> None:
    unknown = one_wrong([replace(NEW, wheel=wheel)], on(**change))
    assert (unknown.name, unknown.about, unknown.status) == (name, NEW.name, CheckStatus.UNKNOWN)


def test_what_is_just_enough_is_enough() -> None:
    assert wrong(host=on(cores=replace(CORES, quota=16.0))) == []
    assert wrong(host=on(cores=replace(CORES, stolen=0.05))) == []
    assert wrong(host=on(memory=replace(MEMORY, available=int(3.5 * GB)))) == []
    assert wrong([OLD, MISSING], disk=replace(DISK, free=6_000_000_000)) == []


def test_a_build_without_cuda_cannot_use_the_gpu_that_is_here() -> None:
    found = one_wrong([replace(NEW, wheel=Wheel(cuda=None, glibc="2.17", source="table"))])
    assert (found.name, found.blocks) == ("CUDA", ("torch 2.6.0",))
    assert wrong([replace(NEW, wheel=Wheel(cuda=None, glibc="2.17", source="table"))], on(gpus=Gpus())) == []


def test_kernels_for_other_gpus_block_the_release() -> None:
    volta = replace(CARD, capability="7.0", machine_state=replace(CARD.machine_state, name="Tesla V100"))
    newer = replace(NEW, wheel=replace(WHEEL, architectures=("sm_75", "sm_80", "sm_90")))
    found = one_wrong([newer], on(gpus=replace(GPUS, cards=(volta,))))
    assert (found.name, found.blocks) == ("GPU architecture", ("torch 2.6.0",))
    assert 'On Tesla V100 every call would end with "no kernel image is available"' in found.so_what
    assert wrong([newer]) == []
    mixed = one_wrong([newer], on(gpus=replace(GPUS, cards=(volta, CARD))))
    assert (mixed.status, mixed.blocks) == (CheckStatus.WARN, ())


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (IndexAnswer(found=False, said="the index has no torch 9.9.9", hint="check the release"), CheckStatus.FAIL),
        (IndexAnswer(found=False, cached=True, said="no", hint="check"), CheckStatus.FAIL),
        (
            IndexAnswer(found=None, reached=False, said="the package index could not be reached", hint="check proxy"),
            CheckStatus.FAIL,
        ),
        (IndexAnswer(found=None, reached=False, said="no answer in 3 s"), CheckStatus.WARN),
        (IndexAnswer(found=None, reached=False, cached=True, said="no answer in 3 s"), CheckStatus.WARN),
        (IndexAnswer(found=None, reached=False, cached=True, said="unreachable", hint="check"), CheckStatus.WARN),
        (IndexAnswer(found=True, reached=False, cached=True), None),
        (IndexAnswer(found=True), None),
    ],
)
def test_an_index_that_is_away_blocks_only_where_the_cache_does_not_have_it(
    answer: IndexAnswer, status: object
) -> None:
    found = wrong([OLD, replace(MISSING, index=answer)])
    assert [check.status for check in found] == ([status] if status else [])
    assert all(check.name == "index" for check in found)
    if answer.cached and answer.found is None:
        assert "UV_OFFLINE=1" in found[0].do_this


def test_a_full_disk_blocks_what_no_longer_fits() -> None:
    both = [replace(MISSING, name="torch 2.1.2"), MISSING]
    found = one_wrong(both, disk=replace(DISK, free=7 * GB))
    assert (found.name, found.blocks) == ("disk", ("torch 2.6.0",))
    assert one_wrong(both, disk=replace(DISK, free=2 * GB)).blocks == BOTH
    assert one_wrong(both, disk=replace(DISK, writable=False)).blocks == BOTH
    assert wrong(both, disk=replace(DISK, free=12_000_000_000)) == []
    assert wrong(disk=replace(DISK, free=0)) == []  # nothing is to be built


def test_memory_is_held_against_the_jobs() -> None:
    found = one_wrong(host=on(memory=replace(MEMORY, available=3 * GB)))
    assert (found.name, found.status) == ("memory", CheckStatus.WARN)
    assert one_wrong(host=on(memory=replace(MEMORY, usable=3 * GB))).name == "memory"
    assert wrong(host=on(memory=replace(MEMORY, available=3 * GB)), jobs=1) == []


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(), False),
        (Limits(tasks=256), True),
        (Limits(open_files=256), True),
        (Limits(tasks=448, open_files=1024), False),
    ],
)
def test_low_limits_on_threads_and_files_are_reported(limits: Limits, told: bool) -> None:
    found = wrong(host=on(limits=limits))
    assert [(check.name, check.status) for check in found] == ([("limits", CheckStatus.WARN)] if told else [])


def test_without_an_installer_nothing_can_be_built() -> None:
    found = one_wrong([OLD, replace(MISSING, index=None)], tools=replace(TOOLS, installer=""))
    assert (found.name, found.read, found.blocks) == ("index", "neither uv nor pip", ("torch 2.6.0",))
    assert wrong(tools=replace(TOOLS, installer="")) == []  # nothing is to be built
    assert wrong([OLD, MISSING], tools=replace(TOOLS, installer="pip")) == []


def test_without_a_compiler_the_python_worker_serves_unless_the_other_was_asked_for() -> None:
    none = Tools(installer="uv", no_compiler="no C++ compiler was found: install g++ 11 or later")
    found = one_wrong(tools=none)
    assert (found.name, found.status, found.read) == ("C++ compiler", CheckStatus.WARN, "no C++ compiler was found")
    assert found.do_this == "Install g++ 11 or later."
    assert one_wrong(tools=none, runtime="libtorch").blocks == BOTH


def test_profilers_are_named() -> None:
    found = one_wrong(host=on(gpus=replace(GPUS, profilers=("nsys", "nv-hostengine"))))
    assert (found.name, found.read) == ("profilers", "nsys, nv-hostengine")


@pytest.mark.parametrize(
    ("container", "unlinked", "status"),
    [
        (Container(kind="docker", group="/system.slice/docker-1f.scope"), True, CheckStatus.WARN),
        (Container(kind="docker", group="/docker/1f"), True, None),
        (Container(kind="docker", group="/"), True, None),
        (Container(group="/user.slice/user-0.slice/session-1.scope"), True, CheckStatus.WARN),
        (Container(group="/user.slice/user-0.slice/session-1.scope"), False, None),
        (Container(group="/"), True, CheckStatus.UNKNOWN),
    ],
)
def test_the_trap_of_systemd_and_missing_device_links(container: Container, unlinked: bool, status: object) -> None:
    links = ("/dev/nvidia0", "/dev/nvidiactl") if unlinked else ()
    found = wrong(host=on(container=container, gpus=replace(GPUS, unlinked=links)))
    assert [(check.name, check.status) for check in found] == ([("device links", status)] if status else [])


@pytest.mark.parametrize(
    ("change", "name", "status"),
    [
        ({"quota": 2.0}, "cores", CheckStatus.WARN),
        ({"stolen": 0.2}, "steal time", CheckStatus.WARN),
    ],
)
def test_cores_that_make_times_untrue_are_reported(change: dict[str, Any], name: str, status: CheckStatus) -> None:
    found = one_wrong(host=on(cores=replace(CORES, **change)))
    assert (found.name, found.status) == (name, status)


def test_the_exit_code_is_3_only_where_an_environment_is_blocked() -> None:
    fine = MachineCheck(name="a", area="b", read="c", status=CheckStatus.WARN)
    bad = replace(fine, status=CheckStatus.FAIL, blocks=("torch 2.6.0", "torch 2.1.2"))
    assert exit_code(Checkup(environments=BOTH, checks=(fine,))) is ExitCode.COMPATIBLE
    checkup = Checkup(environments=BOTH, checks=(fine, bad))
    assert exit_code(checkup) is ExitCode.ENVIRONMENT
    assert checkup.blocked == BOTH


def test_a_run_is_told_what_is_wrong_and_no_more() -> None:
    assert run_notes(Facts(host=HOST, jobs=4, device="cuda")) == ()
    bad = on(
        memory=Memory(usable=3 * GB),
        limits=Limits(open_files=256),
        cores=replace(CORES, quota=2.0, stolen=None),
        gpus=replace(GPUS, profilers=("nv-hostengine",), unlinked=("/dev/nvidia0",)),
    )
    told = [note.partition(":")[0] for note in run_notes(Facts(host=bad, jobs=4, device="cuda"))]
    assert told == ["memory", "limits", "profilers", "cores"]
    assert [note.partition(":")[0] for note in run_notes(Facts(host=bad, jobs=4, device="cpu"))] == [
        "memory",
        "limits",
        "cores",
    ]


def test_the_guide_has_the_table_of_checks() -> None:
    page = (Path(__file__).parents[4] / "docs" / "guide" / "doctor.md").read_text(encoding="utf-8")
    table = page.partition("| check | read from | what must hold |\n|---|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == [f"| {check.name} | {check.source} | {check.limit} |" for check in CHECKS]
    problems = [problem for check in CHECKS for problem in check.problems.values()]
    assert all(problem.so_what and problem.do_this for problem in problems)
