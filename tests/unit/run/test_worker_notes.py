"""What a reader is told of workers that ran otherwise than they should."""

from harness.domain.environment import EnvSpec, Environment
from harness.probing.loaded_libraries import LoadedLibraries
from harness.run.worker_notes import worker_notes
from tests.unit.builders.stages import probed

ENVIRONMENTS = {"old": Environment(name="torch 2.1.2", interpreter="/python", spec=EnvSpec(name="torch 2.1.2"))}


def loaded(threads: int) -> dict[str, LoadedLibraries]:
    return {"old": LoadedLibraries(names=("visionlib",), paths=(), threads=threads)}


def test_where_everything_held_there_is_nothing_to_say() -> None:
    assert worker_notes(ENVIRONMENTS, loaded(0), [probed(), probed(data={"switches": {}})]) == ()


def test_a_library_that_starts_threads_is_named_for_what_a_fork_lacks() -> None:
    (note,) = worker_notes(ENVIRONMENTS, loaded(3), [])
    assert "torch 2.1.2: loading visionlib has started 3 threads" in note


def test_a_limit_that_the_kernel_refuses_is_reported_once() -> None:
    probes = [probed(data={"limits": {"network": "Invalid argument"}})] * 2
    assert worker_notes(ENVIRONMENTS, {}, probes) == (
        "workers ran without a limit, the network stayed open to them: Invalid argument",
    )
