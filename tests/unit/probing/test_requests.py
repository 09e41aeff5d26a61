"""Probe requests: what is asked, for how long, and under which key."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.core.environment import Fingerprint
from harness.core.models import ArtifactKind, InputSet
from harness.core.plan import Deadlines, LimitSettings
from harness.core.probe import (
    CallRecord,
    Deadline,
    ProbeRequest,
    Script,
    ServingProfile,
    TraceOrder,
    WorkerLimits,
)
from harness.probing.requests import (
    COMPILE_S,
    Requests,
    deadline_after,
    floor_deadline,
    reference_name,
    request_key,
    wire_request,
)
from harness.store import codec
from tests.programs import stub
from tests.unit.builders.stages import FINGERPRINTS, artifact, declared, near, planned, result

LIMIT = Deadline(load_s=1.0, call_s=2.0, total_s=3.0)
DEADLINES = Deadlines(floor_s=60.0, factor=20.0, total_s=900.0, export_s=120.0)
SECOND_NS = 1_000_000_000


def requests(worker: str = "w", fingerprint: Fingerprint = FINGERPRINTS["new"], **plan: Any) -> Requests:
    return Requests(planned(**plan), {**FINGERPRINTS, "new": fingerprint}, worker)


def profile(**changes: Any) -> ServingProfile:
    return ServingProfile(**changes)


def run(asker: Requests | None = None, side: str = "new", deadline: Deadline = LIMIT, **more: Any) -> ProbeRequest:
    """Return a run request; ``artifact`` holds changes of the artifact."""
    changes = more.pop("artifact", {})
    return (asker or requests()).run(side, [artifact(**changes)], deadline, **more)


def trace(**changes: Any) -> ProbeRequest:
    order = TraceOrder(**{"input_set": "example", "call": 0, **changes})
    return requests().trace("new", artifact(), order, LIMIT)


STEPS = (("load", "m"), ("calls", "m"))

# Each is the same request but for one input.
VARIANTS: dict[str, Callable[[], ProbeRequest]] = {
    "unchanged": run,
    "worker": lambda: run(requests(worker="other")),
    "torch version": lambda: run(requests(fingerprint=Fingerprint(torch="2.6.1", git_revision="b"))),
    "torch revision": lambda: run(requests(fingerprint=Fingerprint(torch="2.6.0", git_revision="c"))),
    "side": lambda: run(side="old"),
    "device": lambda: run(requests(device="cuda")),
    "runtime": lambda: run(runtime="libtorch"),
    "script": lambda: run(script=Script(threads=(STEPS,))),
    "script of two threads": lambda: run(script=Script(threads=(STEPS, STEPS))),
    "barrier": lambda: run(script=Script(threads=(STEPS,), barriers={"start": 1})),
    "latch": lambda: run(script=Script(threads=(STEPS,), latches={"start": 1})),
    "inter-op calls": lambda: run(script=Script(threads=(STEPS,), calls_through="inter_op")),
    "repeat": lambda: run(repeat=1),
    "load deadline": lambda: run(deadline=replace(LIMIT, load_s=9.0)),
    "call deadline": lambda: run(deadline=replace(LIMIT, call_s=9.0)),
    "total deadline": lambda: run(deadline=replace(LIMIT, total_s=9.0)),
    "calls": lambda: run(requests(settings={"calls": 5})),
    "reference": lambda: requests().with_reference(run()),
    "benchmark": lambda: requests().benchmark("new", [artifact()]),
    "trace": lambda: trace(),
    "trace of another call": lambda: trace(call=1),
    "trace of another input set": lambda: trace(input_set="other"),
    "forced trace": lambda: trace(mode="forced", beside="/p/a"),
    "patched trace": lambda: trace(mode="patched", beside="/p/a", places=((1,),)),
    "patched trace of another node": lambda: trace(mode="patched", beside="/p/a", places=((2,),)),
    "export": lambda: requests().export(declared()),
    "export of another source": lambda: requests().export(declared(source_digest="1")),
    "export of another seed": lambda: requests().export(declared(seed=1)),
    "export by trace": lambda: requests().export(declared(how="trace")),
    "export in the new release": lambda: requests().export(declared(), side="new"),
    "two artifacts": lambda: requests().run("new", [artifact(), artifact("n")], LIMIT),
    "two artifacts in another order": lambda: requests().run("new", [artifact("n"), artifact()], LIMIT),
    "profile name": lambda: run(profile=profile(name="other")),
    "intra-op pool": lambda: run(profile=profile(intra_op_threads=2)),
    "inter-op pool": lambda: run(profile=profile(inter_op_threads=2)),
    "switch off": lambda: run(profile=profile(switches={"profiling": False})),
    "switch on": lambda: run(profile=profile(switches={"profiling": True})),
    "environment variable": lambda: run(profile=profile(env={"OMP": "1"})),
    "value of it": lambda: run(profile=profile(env={"OMP": "2"})),
    "artifact": lambda: run(artifact={"digest": "d2"}),
    "inputs": lambda: run(artifact={"inputs_digest": "i2"}),
    "seed": lambda: run(artifact={"seed": 1}),
    "reset": lambda: run(artifact={"reset": "clear"}),
    "input sets": lambda: run(artifact={"input_sets": (InputSet(name="example"),)}),
    "method": lambda: run(artifact={"input_sets": (InputSet(name="example", method="encode"),)}),
}


def test_keys_differ_when_any_input_differs() -> None:
    keys = {name: codec.digest(make()) for name, make in VARIANTS.items()}
    same = [pair for pair in itertools.combinations(keys, 2) if keys[pair[0]] == keys[pair[1]]]
    assert same == []


@pytest.mark.parametrize("name", list(VARIANTS))
def test_same_request_has_the_same_key_every_time(name: str) -> None:
    assert codec.digest(VARIANTS[name]()) == codec.digest(VARIANTS[name]())


def test_order_of_switches_does_not_count() -> None:
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert codec.digest(run(profile=profile(switches=one))) == codec.digest(run(profile=profile(switches=other)))


def test_plan_gives_the_profile_unless_another_is_named() -> None:
    serving = profile(name="two", intra_op_threads=2)
    asker = requests(settings={"profile": serving})
    assert run(asker).profile == serving
    assert run(asker, profile=profile()).profile == profile()


def test_first_input_set_gets_every_call_and_later_ones_two() -> None:
    (asked,) = run(requests(settings={"calls": 4})).runs
    assert asked.schedule == (("example", 4), ("other values", 2), ("batch 3", 2))


def test_later_input_sets_get_no_more_calls_than_the_first() -> None:
    (asked,) = run(requests(settings={"calls": 1})).runs
    assert asked.schedule == (("example", 1), ("other values", 1), ("batch 3", 1))


def test_reference_runs_last_with_every_call_in_float64_under_a_name_of_its_own() -> None:
    plain = run(side="old")
    asked = requests().with_reference(plain)
    assert (asked.verb, asked.side) == ("run", "old")
    assert asked.runs[0] == plain.runs[0]
    assert asked.runs[0].precision is None
    assert asked.runs[1].precision == "float64"
    assert asked.runs[1].artifact.model == reference_name(artifact().model) != artifact().model
    assert asked.runs[1].schedule == plain.runs[0].schedule == (("example", 4), ("other values", 2), ("batch 3", 2))


def test_golden_record_says_itself_how_many_calls_it_holds() -> None:
    recorded = (("example", 2), ("batch 3", 1))
    (asked,) = run(requests(settings={"calls": 9}), artifact={"schedule": recorded}).runs
    assert asked.schedule == recorded


def test_benchmark_knows_every_input_set() -> None:
    asked = requests().benchmark("old", [artifact(), artifact("n")], profile(name="p"))
    assert (asked.verb, asked.side, asked.profile.name) == ("benchmark", "old", "p")
    assert [item.schedule for item in asked.runs] == [(("example", 4), ("other values", 2), ("batch 3", 2))] * 2
    assert asked.deadline == floor_deadline(Deadlines())


def test_program_is_loaded_once_and_each_input_set_is_called_under_a_name_of_its_own() -> None:
    sets = (InputSet(name="example"), InputSet(name="other"))
    program = artifact(input_sets=sets, path="m.pt2")
    request = requests(settings={"calls": 3}).run_exported("new", program, LIMIT)
    assert request.script is not None
    assert request.script.threads == (
        (("load", "m"), ("share", "m#1", "m"), ("calls", "m#1"), ("share", "m#2", "m"), ("calls", "m#2")),
    )
    assert [(run.artifact.model, run.schedule) for run in request.runs] == [
        ("m", ()),
        ("m#1", (("example", 3),)),
        ("m#2", (("other", 2),)),
    ]
    in_cpp = requests().run_exported("new", program, LIMIT, runtime="libtorch")
    assert (request.runtime, in_cpp.runtime, in_cpp.verb) == ("python", "libtorch", "run")


def test_export_goes_to_the_old_release_with_a_deadline_of_its_own() -> None:
    asked = requests(settings={"deadlines": DEADLINES}).export(declared())
    assert (asked.verb, asked.side, asked.declaration, asked.runs) == ("export", "old", declared(), ())
    assert asked.deadline == Deadline(load_s=120.0, call_s=120.0, total_s=240.0)


# deadlines


def calls(*durations_s: float) -> tuple[CallRecord, ...]:
    return tuple(
        CallRecord(input_set="example", call=index, duration_ns=round(value * SECOND_NS))
        for index, value in enumerate(durations_s)
    )


def test_unknown_model_gets_the_floor() -> None:
    floor = Deadline(load_s=60.0, call_s=60.0, total_s=900.0)
    assert floor_deadline(DEADLINES) == floor
    assert deadline_after(DEADLINES, ()) == floor
    assert deadline_after(DEADLINES, [result(load_ns=None)]) == floor


@pytest.mark.parametrize(("old_s", "limit_s"), [(0.001, 60.0), (2.999, 60.0), (3.0, 60.0), (3.5, 70.0), (40.0, 800.0)])
def test_phase_may_last_the_larger_of_the_floor_and_twenty_times_the_old_time(old_s: float, limit_s: float) -> None:
    load = deadline_after(DEADLINES, [result(load_ns=round(old_s * SECOND_NS))])
    assert (load.load_s, load.call_s) == (near(limit_s), 60.0)
    call = deadline_after(replace(DEADLINES, fast_floor_s=60.0), [result(calls=calls(0.1, old_s, 0.1))])
    assert (call.load_s, call.call_s) == (60.0, near(limit_s))


@pytest.mark.parametrize(
    ("old_s", "limit_s"), [(0.001, 12.0), (0.06, 12.0), (0.1, 20.0), (0.3, 60.0), (2.9, 60.0), (3.5, 70.0)]
)
def test_call_that_was_fast_has_a_lower_floor_and_200_times_its_old_time(old_s: float, limit_s: float) -> None:
    found = deadline_after(DEADLINES, [result(load_ns=1, calls=calls(old_s / 9, old_s))])
    assert (found.load_s, found.call_s) == (60.0, near(limit_s))


@pytest.mark.parametrize(("old_s", "limit_s"), [(0.001, 12.0), (0.1, 20.0), (2.9, 60.0), (3.5, 70.0)])
def test_load_that_was_fast_may_compute_as_long_as_such_a_call_and_wait_for_disks_up_to_the_floor(
    old_s: float, limit_s: float
) -> None:
    found = deadline_after(DEADLINES, [result(load_ns=round(old_s * SECOND_NS))])
    assert (found.load_s, found.load_cpu_s) == (near(max(60.0, limit_s)), near(limit_s))


def test_fast_calls_of_models_that_share_a_process_may_take_as_many_times_longer() -> None:
    assert deadline_after(DEADLINES, [result(calls=calls(0.02))], contention=10).call_s == near(40.0)


@pytest.mark.parametrize("floor_s", [1.0, 10.0])
def test_floor_below_that_of_fast_calls_holds_for_them_too(floor_s: float) -> None:
    settings = replace(DEADLINES, floor_s=floor_s)
    assert deadline_after(settings, [result(calls=calls(0.001))]).call_s == floor_s


def test_a_package_that_python_loads_may_take_as_long_as_a_compiler_and_a_program_may_not() -> None:
    kinds = {kind: replace(artifact(), kind=kind) for kind in ArtifactKind}
    loads_s = {kind: requests().run("new", [made], LIMIT).deadline.load_s for kind, made in kinds.items()}
    assert loads_s == {
        ArtifactKind.TORCHSCRIPT: LIMIT.load_s,
        ArtifactKind.PROGRAM: LIMIT.load_s,
        ArtifactKind.PACKAGE: COMPILE_S,
    }
    in_cpp = requests().run("new", [kinds[ArtifactKind.PACKAGE]], LIMIT, runtime="libtorch")
    assert in_cpp.deadline == LIMIT


def test_slowest_repeat_and_the_slowest_call_count() -> None:
    old = [result(load_ns=4 * SECOND_NS, calls=calls(5.0)), result(load_ns=6 * SECOND_NS, calls=calls(1.0, 7.0))]
    found = deadline_after(DEADLINES, old)
    assert (found.load_s, found.call_s) == (near(120.0), near(140.0))


def test_models_that_share_a_process_may_take_as_many_times_longer() -> None:
    old = [result(load_ns=4 * SECOND_NS, calls=calls(1.0))]
    found = deadline_after(DEADLINES, old, contention=5)
    assert (found.load_s, found.call_s) == (near(400.0), near(100.0))


def test_factor_and_floor_are_settings() -> None:
    settings = replace(DEADLINES, floor_s=1.0, factor=3.0)
    assert deadline_after(settings, [result(load_ns=SECOND_NS)]).load_s == near(3.0)
    assert floor_deadline(settings).call_s == 1.0


def test_total_never_cuts_a_phase_short_of_its_own_deadline() -> None:
    slow = deadline_after(DEADLINES, [result(load_ns=100 * SECOND_NS, calls=calls(50.0))])
    assert (slow.load_s, slow.call_s) == (near(2000.0), near(1000.0))
    assert slow.total_s == near(3000.0)
    assert deadline_after(DEADLINES, [result(load_ns=SECOND_NS)]).total_s == 900.0


def test_limits_of_a_process_are_those_of_the_settings_and_only_exports_have_a_network() -> None:
    asker = requests(settings={"limits": LimitSettings(memory_gb=2.5, cpu_s=7.0, file_gb=1.0)})
    found = run(asker).limits
    assert found == WorkerLimits(memory_bytes=2_500_000_000, cpu_s=7.0, file_bytes=1_000_000_000, network=False)
    asked = {
        "adopt": asker.adopt(declared()),
        "resave": asker.resave(declared(), "new"),
        "benchmark": asker.benchmark("new", []),
    }
    assert {verb: (request.verb, request.limits) for verb, request in asked.items()} == {
        verb: (verb, found) for verb in asked
    }
    derived = requests(settings={"limits": LimitSettings(memory_gb=2.5, memory_is_derived=True)})
    assert run(derived).limits == WorkerLimits(
        memory_bytes=2_500_000_000, memory_is_derived=True, file_bytes=16_000_000_000, network=False
    )
    exported = asker.export(declared()).limits
    assert exported is not None
    assert replace(exported, network=False) == found
    assert exported.network
    opened = run(requests(settings={"limits": LimitSettings(network=True)})).limits
    assert opened is not None
    assert opened.network


def test_a_given_artifact_is_taken_over_within_the_deadline_of_a_load() -> None:
    assert requests().adopt(declared()).deadline == floor_deadline(DEADLINES)
    assert requests().export(declared()).deadline.load_s == DEADLINES.export_s


def test_another_library_makes_another_key() -> None:
    fingerprint = FINGERPRINTS["new"]
    keys = {
        codec.digest(run(requests(fingerprint=replace(fingerprint, libraries=text)))) for text in ("", "a 1", "a 2")
    }
    assert len(keys) == 3


REQUEST = stub.run_request([], stub.PATIENT)
AUTO = WorkerLimits(memory_bytes=8, memory_is_derived=True, file_bytes=5)


def test_a_memory_limit_that_follows_the_machine_is_no_part_of_the_question() -> None:
    key = request_key(replace(REQUEST, limits=AUTO))
    assert key == request_key(replace(REQUEST, limits=replace(AUTO, memory_bytes=9)))
    assert key == request_key(replace(REQUEST, limits=replace(AUTO, memory_bytes=None, memory_is_derived=False)))
    assert key != request_key(replace(REQUEST, limits=replace(AUTO, file_bytes=6)))


def test_one_that_was_written_is() -> None:
    one, other = (replace(AUTO, memory_bytes=size, memory_is_derived=False) for size in (8, 9))
    assert request_key(replace(REQUEST, limits=one)) != request_key(replace(REQUEST, limits=other))


def test_code_is() -> None:
    assert len({request_key(REQUEST), request_key(REQUEST, "a"), request_key(REQUEST, "b")}) == 3
    assert len(request_key(REQUEST)) == 16


def test_request_carries_what_the_profile_pins() -> None:
    asked = replace(REQUEST, profile=ServingProfile(numerics={"deterministic": True}))
    assert wire_request(asked)["numerics"] == {"deterministic": True}


def test_warnings_that_a_caller_makes_errors_reach_its_models_and_no_work_of_the_gate() -> None:
    asker = requests(settings={"profile": profile(env={"PYTHONWARNINGS": "error", "A": "1"})})
    assert run(asker).profile.env == {"PYTHONWARNINGS": "error", "A": "1"}
    assert asker.benchmark("new", [artifact()]).profile.env == {"PYTHONWARNINGS": "error", "A": "1"}
    others = (
        asker.export(declared()),
        asker.adopt(declared()),
        asker.resave(declared(), "new"),
        asker.trace("new", artifact(), TraceOrder(input_set="example", call=0), LIMIT),
    )
    assert [request.profile.env for request in others] == [{"A": "1"}] * len(others)
