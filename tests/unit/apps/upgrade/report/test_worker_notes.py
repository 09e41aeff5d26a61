"""What a reader is told of workers that ran otherwise than they should."""

from harness.core.devices import CPU, TABLE
from harness.core.environment import EnvSpec, Environment
from harness.probing.loaded_libraries import LoadedLibraries
from harness.apps.upgrade.report.worker_notes import worker_notes
from tests.unit.builders.stages import probed, result

ENVIRONMENTS = {"old": Environment(name="torch 2.1.2", interpreter="/python", spec=EnvSpec(name="torch 2.1.2"))}


def loaded(threads: int) -> dict[str, LoadedLibraries]:
    return {"old": LoadedLibraries(names=("visionlib",), paths=(), threads=threads)}


def test_where_everything_held_there_is_nothing_to_say() -> None:
    assert worker_notes(ENVIRONMENTS, loaded(0), CPU, [probed(), probed(data={"switches": {}})]) == ()


def test_a_library_that_starts_threads_is_named_for_what_a_fork_lacks() -> None:
    (note,) = worker_notes(ENVIRONMENTS, loaded(3), CPU, [])
    assert "torch 2.1.2: loading visionlib has started 3 threads" in note


def test_a_limit_that_the_kernel_refuses_is_reported_once() -> None:
    probes = [probed(data={"limits": {"network": "Invalid argument"}})] * 2
    assert worker_notes(ENVIRONMENTS, {}, CPU, probes) == (
        "workers ran without a limit, the network stayed open to them: Invalid argument",
    )


def test_who_may_write_anywhere_and_runs_code_of_an_artifact_is_reported_once() -> None:
    probes = [probed(data={"not_confined": "Operation not supported"})] * 2
    assert worker_notes(ENVIRONMENTS, {}, CPU, probes) == (
        "workers ran without a limit, programs and packages could write wherever this user may: Operation not supported",
    )


def test_contexts_are_counted_once_for_each_probe_and_who_failed_among_others_alone_is_named() -> None:
    probes = [
        probed(key="a", contexts=2, side="old"),
        probed(key="b", contexts=1),
        probed(result("m"), key="c", failed_after_others="/run/probes/batch-new-3/c, after 4 others"),
    ]
    among, counted = worker_notes(ENVIRONMENTS, {}, TABLE["cuda"], [*probes, probes[1]])
    assert counted == "contexts on cuda: 3 for 3 probes (old 2, new 1), besides the benchmark's"
    assert among.startswith("m failed in a process that had done other probes, and came through in one of its own")
    assert among.endswith("/run/probes/batch-new-3/c, after 4 others")
