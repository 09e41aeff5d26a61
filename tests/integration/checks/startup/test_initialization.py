"""Planted defects of concurrent initialization, each with a healthy twin, on two real releases and the C++ worker."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.verdict.decide import judge_row
from harness.core.hang import Evidence, HangKind
from harness.core.outcome import Decision, Outcome, Status
from harness.core.probe import ProbeResult, model_of
from harness.environments.native import build_library
from harness.core.errors import EnvironmentUnavailable, ExitCode
from harness.checks.hang import watchdog
from harness.checks.hang.readings import reading
from harness.checks.hang.stack_words import INTERPRETER, relevant_frames
from harness.probing.alone import probe_alone
from harness.probing.verification import legible_outputs
from harness.probing.facts import Effects, Judged, Probed, WithWorker
from harness.serving.settings.mitigations import JIT_SWITCHES, MITIGATIONS
from harness.checks.startup.initialize import bring_up, scenario_result
from harness.checks.startup.launch import Launcher
from harness.checks.startup.measures import growth_bytes
from harness.checks.startup.native import build_workers
from harness.checks.startup.readiness import init_s, own_s
from harness.serving.scenarios import CYCLES, INITIALIZATIONS, NEW_SIZES, NEW_THREADS
from tests.integration.gate import Run, compat, harness
from tests.integration.artifacts.libraries.building import library_for, libtorch_of
from tests.integration.servers import answered, cell, decided, judged, launcher, planned, provisioned

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

CONCURRENCY = "tests/integration/checks/startup/concurrency"
FUSING = Path(__file__).with_name("fusing")
SIDES = {"profile": "wide_inter_op", "new_profile": "inference_mode"}
CPU_FUSION = {"cpu_fusion": True}
# Healthy models come through these in ``known`` already; and of Python, what it does otherwise than C++ with one script.
BROUGHT_UP, OF_PYTHON = (
    ("shared", "while_serving", "inter_op"),
    ("python_server", "python_keeping", "processes", "prefork"),
)


def able() -> Iterator[tuple[str, str, bool]]:
    """Yield what either worker can bring up on a CPU, and whether nothing else asks about it."""
    for name, item in INITIALIZATIONS.items():
        if not item.graphs:
            yield name, "libtorch", name not in BROUGHT_UP
            if not item.native_only:
                yield name, "python", name in OF_PYTHON


ABLE = [pytest.param(scenario, worker, marks=() if asked else pytest.mark.slow) for scenario, worker, asked in able()]

Known = tuple[Judged, Effects]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory, old_python: str, new_python: str) -> Iterator[Known]:
    """All planted defects and their twins brought up in three scenarios, and what may be asked after that."""
    out = tmp_path_factory.mktemp("initialization")
    scenarios = ("alone", "shared", "while_serving", "inter_op")
    plan = planned(out, CONCURRENCY, scenarios=scenarios, overrides=SIDES)
    plan = replace(plan, groups={name: plan.groups[name] for name in ("pool", "state", "crash")})
    with provisioned(out, plan) as (first, effects):
        yield judged(build_workers(probe_alone(answered(first, effects), effects), effects), effects), effects


def kinds(facts: Judged, model: str, scenario: str) -> set[str]:
    return {finding.kind for finding in cell(facts, model, scenario).findings}


def test_models_that_need_neighbours_to_fail_are_healthy_alone(known: Known) -> None:
    facts, _ = known
    assert facts.worker == "libtorch", facts.worker_notes
    healthy = [model.name for model in facts.plan.models if model.name != "wild_read"]
    assert {cell(facts, name, "alone").status for name in healthy} == {Status.PASS}


def test_operators_of_an_artifact_name_what_it_forks_and_nothing_without_a_name(known: Known) -> None:
    facts, _ = known
    operators = facts.artifact("fork_join").operators
    assert {"prim::fork", "aten::wait"} <= set(operators)
    assert all("::" in name for name in operators), operators


@pytest.mark.parametrize("twin", ["straight", "other_straight"])
def test_pool_exhausted_by_fork_and_wait_is_blocked_and_neighbours_are_not_blamed(known: Known, twin: str) -> None:
    facts, _ = known
    sick = cell(facts, "fork_join", "inter_op")
    assert (sick.status, kinds(facts, "fork_join", "inter_op")) == (Status.FAIL, {"hang"})
    found = facts.initialized["fork_join", "inter_op"]
    assert found.old is not None and found.old.result.outcome is Outcome.COMPLETED
    assert found.new.evidence is not None and found.new.evidence.proof is not None
    proof = found.new.evidence.proof
    assert proof.kind is HangKind.BLOCKED
    assert proof.silent_s - proof.stalled_s < facts.plan.settings.deadlines.floor_s / 4  # the bench holds it to 5 s
    known_as = reading(found.new.evidence.stacks, proof)
    assert known_as is not None and "inter-op pool is exhausted" in known_as.words
    assert cell(facts, twin, "inter_op").status is Status.PASS
    assert cell(facts, "fork_join", "shared").status is Status.PASS


def test_answers_that_depend_on_the_calls_of_others_are_a_race(known: Known) -> None:
    facts, _ = known
    assert cell(facts, "spoilt", "shared").status is Status.FAIL
    assert kinds(facts, "spoilt", "shared") == {"race"}
    assert "answers otherwise than alone" in cell(facts, "spoilt", "shared").findings[0].message
    assert cell(facts, "spoilt", "while_serving").status is Status.PASS
    assert cell(facts, "spoilt_never", "shared").status is Status.PASS


@pytest.mark.parametrize("name", ["drops_by_chance", "chosen_by_chance"])
@pytest.mark.parametrize("scenario", ["shared", "while_serving"])
def test_what_a_model_draws_beside_others_is_no_race(known: Known, name: str, scenario: str) -> None:
    facts, _ = known
    assert facts.draws(name)
    assert cell(facts, name, scenario).status is Status.PASS
    assert kinds(facts, name, scenario) <= {"shared_generator"}


def test_dropout_at_rest_draws_nothing_and_hides_no_race(known: Known) -> None:
    facts, _ = known
    assert not facts.draws("spoilt_with_dropout")
    assert cell(facts, "spoilt_with_dropout", "shared").status is Status.FAIL
    assert kinds(facts, "spoilt_with_dropout", "shared") == {"race"}


def test_state_that_threads_share_in_both_releases_is_said_and_does_not_colour_the_row(known: Known) -> None:
    facts, _ = known
    sick = cell(facts, "tally", "shared")
    assert (sick.status, sick.decides, sick.kinds) == (Status.SAME_FAIL, False, ("shared_state",))
    assert sick.findings[0].message.startswith("keeps state in both releases: must not be shared by threads")
    assert judge_row("tally", facts.verdicts["tally"]).status is Status.PASS
    assert cell(facts, "tally_unused", "shared").status is Status.PASS


def test_exception_that_shows_only_beside_others_is_an_error_of_its_own_kind(known: Known) -> None:
    facts, _ = known
    assert cell(facts, "quota", "shared").status is Status.FAIL
    assert kinds(facts, "quota", "shared") == {"concurrent_error"}
    assert cell(facts, "quota_unlimited", "shared").status is Status.PASS


@pytest.mark.parametrize("scenario", ["shared", "while_serving"])
def test_crash_of_one_thread_names_signal_thread_model_and_phase(known: Known, scenario: str) -> None:
    facts, _ = known
    assert cell(facts, "worn_out", scenario).status is Status.FAIL
    assert kinds(facts, "worn_out", scenario) == {"crash"}
    found = facts.initialized["worn_out", scenario].new
    assert found.exit_detail == "signal SIGSEGV"
    assert found.result.phase.startswith("serve" if scenario == "while_serving" else "call")
    assert_native_crash(found.evidence)
    assert cell(facts, "worn_never", scenario).status is Status.PASS


def assert_native_crash(evidence: Evidence | None) -> None:
    assert evidence is not None and evidence.signal == "SIGSEGV"
    (faulting,) = (stack for stack in evidence.stacks if stack.tid == evidence.faulting_tid)
    functions = [frame.function for frame in faulting.frames]
    assert any("gate::defects::dies" in function for function in functions)
    assert any("jit::InterpreterStateImpl::run" in function for function in functions)
    assert any("gate::" in function and "dies" not in function for function in functions)


def test_crash_in_concurrent_initialization_is_one_models_and_neighbours_have_results(known: Known) -> None:
    probes = launcher("concurrent", *known).round(["straight", "wild_read", "spoilt_never", "quota_unlimited"], 0)
    crashed = next(item for item in probes[0].models if item.model == "wild_read")
    assert (crashed.outcome, crashed.phase_words) == (Outcome.CRASH, "call 0 of example")
    assert_native_crash(probes[0].evidence)
    ready = {model_of(item.model) for probe in probes for item in probe.models if item.outcome is Outcome.COMPLETED}
    assert ready == {"straight", "spoilt_never", "quota_unlimited"}


@pytest.fixture(scope="module")
def fusing(
    tmp_path_factory: pytest.TempPathFactory, old_python: str, new_python: str
) -> Iterator[tuple[WithWorker, Effects]]:
    """Chains of an operator of ours that torch's own fuser takes; to compile it takes half a minute a release."""
    out = tmp_path_factory.mktemp("fusing")
    libraries = [library_for(libtorch_of(python), FUSING / "fusing.cpp") for python in (old_python, new_python)]
    named = [f"{side}={path}" for side, path in zip(("old", "new"), libraries, strict=True)]
    with provisioned(out, planned(out, FUSING, overrides=SIDES, libraries=named)) as (first, effects):
        yield build_workers(probe_alone(answered(first, effects), effects), effects), effects


@pytest.mark.slow
def test_fuser_that_runs_away_in_one_thread_is_busy_and_its_neighbours_are_ready(
    fusing: tuple[WithWorker, Effects],
) -> None:
    together = launcher("concurrent", *fusing, switches=CPU_FUSION)
    probe = together.probe(["short_fusion", "runaway_fusion"], 0, threads=2, floor_s=1.0)
    outcomes = {(model_of(item.model), item.outcome) for item in probe.models}
    assert outcomes == {("runaway_fusion", Outcome.HANG), ("short_fusion", Outcome.COMPLETED)}
    assert_fuser_runs_away(probe)


@pytest.mark.slow
def test_fuser_that_runs_away_in_a_shared_module_holds_up_the_other_threads(fusing: tuple[WithWorker, Effects]) -> None:
    probe = launcher("shared", *fusing, switches=CPU_FUSION).probe(["runaway_fusion"], 0, floor_s=1.0)
    assert Outcome.HANG in {item.outcome for item in probe.models}
    words = assert_fuser_runs_away(probe)
    assert "wait for the same plan (getPlanFor)" in words


def assert_fuser_runs_away(probe: ProbeResult) -> str:
    assert probe.evidence is not None and probe.evidence.proof is not None
    assert probe.evidence.proof.kind is HangKind.BUSY
    assert any("tensorexpr" in frame.function for stack in probe.evidence.stacks for frame in stack.frames)
    known_as = reading(probe.evidence.stacks, probe.evidence.proof)
    assert known_as is not None and "inside the tensor-expression fuser" in known_as.words
    assert "75903" in known_as.source
    return known_as.words


@pytest.mark.slow
@pytest.mark.parametrize("name", [setting.name for setting in JIT_SWITCHES])
def test_each_switch_mitigates_the_fuser_and_reads_back_in_the_cpp_worker(
    fusing: tuple[WithWorker, Effects], name: str
) -> None:
    switches = {**CPU_FUSION, **MITIGATIONS[name].switches}
    probe = launcher("shared", *fusing, switches=switches).probe(["runaway_fusion"], 0)
    assert {item.outcome for item in probe.models} == {Outcome.COMPLETED}
    entries = {switch: probe.data["switches"][switch] for switch in switches}
    assert all(entry["supported"] and entry["read_back"] == entry["requested"] for entry in entries.values()), entries


@pytest.mark.parametrize(("scenario", "worker"), ABLE)
def test_healthy_models_come_through_every_scenario(known: Known, scenario: str, worker: str) -> None:
    facts, effects = known
    mitigation = (MITIGATIONS["join threads before exit"],) if INITIALIZATIONS[scenario].exits else ()
    healthy = replace(launcher(scenario, replace(facts, worker=worker), effects), settings=mitigation)
    run = bring_up(healthy, "", ["straight", "tally_unused", "spoilt_never"])
    assert {scenario_result(run, name).result.outcome for name in run.members} == {Outcome.COMPLETED}


@pytest.mark.parametrize("scenario", ["reinit", "rolling"])
@pytest.mark.parametrize(("model", "grows"), [("leaking", True), ("leaking_not", False)])
def test_memory_that_a_dropped_model_keeps_shows_as_growth_per_cycle(
    known: Known, model: str, grows: bool, scenario: str
) -> None:
    probe = launcher(scenario, *known).probe([model, "straight"], 0)
    growth = growth_bytes([size for _, size, _ in probe.memory])
    assert growth is not None
    assert (growth > 3e6) is grows, probe.memory


@pytest.mark.parametrize(
    ("model", "outcome"),
    [("worn_out", Outcome.CRASH), pytest.param("worn_never", Outcome.COMPLETED, marks=pytest.mark.slow)],
)
def test_model_that_dies_of_many_calls_ends_a_rolling_update(known: Known, model: str, outcome: Outcome) -> None:
    probe = launcher("rolling", *known, switches={"inference_mode": True}).probe([model, "straight"], 0)
    assert probe.outcome is outcome
    assert {model_of(item.model) for item in probe.models if item.outcome is Outcome.CRASH} <= {"worn_out"}


@pytest.mark.slow
@pytest.mark.parametrize("worker", ["libtorch", "python"])
@pytest.mark.parametrize(("model", "outcome"), [("looping", Outcome.HANG), ("looping_never", Outcome.COMPLETED)])
def test_call_that_hangs_in_a_new_thread_is_seen_there(known: Known, model: str, outcome: Outcome, worker: str) -> None:
    facts, effects = known
    server = launcher("thread_per_request", replace(facts, worker=worker), effects, switches={"inference_mode": True})
    probe = server.probe([model], 0, threads=2, floor_s=1.0)
    assert probe.outcome is outcome
    if outcome is Outcome.HANG:
        assert {(model_of(item.model), item.phase) for item in probe.models if item.failed} == {("looping", "serve")}
        assert probe.evidence is not None and probe.evidence.proof is not None
        assert probe.evidence.proof.kind is HangKind.BUSY
        frames = (frame for stack in probe.evidence.stacks for frame in relevant_frames(stack))
        assert next(filter(INTERPRETER.match, frames), "").startswith("jit::InterpreterStateImpl::run")


@pytest.mark.parametrize(
    ("scenario", "model", "each"),
    [
        ("thread_per_connection", "wide", 2),
        ("thread_per_connection", "narrow", 1),
        ("thread_per_request", "wide", 0),
    ],
)
def test_thread_that_lives_on_keeps_the_openmp_thread_that_its_call_has_started(
    known: Known, scenario: str, model: str, each: int
) -> None:
    probe = launcher(scenario, *known, intra_op_threads=2).probe([model], 0)
    threads = [reading[2] for reading in probe.memory]
    started = (CYCLES - 1) * NEW_THREADS
    assert (threads[-1] - threads[0]) / started == pytest.approx(each, abs=0.1)
    growth = growth_bytes([size for _, size, _ in probe.memory])
    assert growth is not None and growth / NEW_THREADS < 1e6


@pytest.mark.parametrize(("model", "grows"), [("caching", True), ("caching_few", False)])
def test_memory_that_a_model_keeps_for_each_size_shows_as_growth_per_new_size(
    known: Known, model: str, grows: bool
) -> None:
    probe = launcher("growing_shapes", *known).probe([model, "straight"], 0)
    growth = growth_bytes([size for _, size, _ in probe.memory])
    assert probe.outcomes == {Outcome.COMPLETED}
    assert growth is not None
    assert (growth / NEW_SIZES > 1e6) is grows, probe.memory


SLOW_OPEN_S = 0.5  # of tests/integration/checks/startup/slow_starts/slow_open.cpp
AFTER_FORK = MITIGATIONS["load after the fork"]
SLOW_PYTHON = pytest.param("python", marks=pytest.mark.slow)  # with gdb where nobody built the dumper


@pytest.mark.parametrize("worker", ["libtorch", SLOW_PYTHON])
def test_forked_process_that_waits_for_threads_it_did_not_inherit_is_blocked(known: Known, worker: str) -> None:
    facts, effects = known
    server = launcher("prefork", replace(facts, worker=worker), effects)
    probe = server.probe(["straight", "fork_join"], 0)
    ended = {(model_of(item.model), item.outcome) for item in probe.models}
    assert ended == {
        ("straight", Outcome.COMPLETED),
        ("fork_join", Outcome.COMPLETED),  # in the process that forks
        ("fork_join", Outcome.HANG),
    }
    assert probe.evidence is not None and probe.evidence.proof is not None
    assert probe.evidence.proof.kind is HangKind.BLOCKED
    assert probe.evidence.proof.silent_s - probe.evidence.proof.stalled_s < 5
    known_as = reading(probe.evidence.stacks, probe.evidence.proof)
    assert known_as is not None and "forked after the pool had been used" in known_as.words
    assert_forked_processes_answer(replace(server, settings=(AFTER_FORK,)), ["straight", "fork_join"])


def assert_forked_processes_answer(server: Launcher, members: Sequence[str]) -> None:
    """But for a race of 2.6.0 itself, seen twice: two pool threads of a forked process renew one pool at a time."""
    for number in range(3):
        probe = server.probe(members, number)
        if probe.outcomes == {Outcome.COMPLETED}:
            return
        assert probe.evidence is not None
        functions = {frame.function for stack in probe.evidence.stacks for frame in stack.frames}
        assert {"at::set_num_threads(int)", "std::terminate()"} <= functions, probe
    pytest.fail("no forked process answered in three rounds")


@pytest.mark.parametrize(
    ("model", "threads", "outcome"),
    [
        ("wide", 2, Outcome.HANG),
        ("narrow", 2, Outcome.COMPLETED),
        pytest.param("wide", 1, Outcome.COMPLETED, marks=pytest.mark.slow),
    ],
)
def test_openmp_threads_are_not_inherited_and_one_thread_needs_none(
    known: Known, model: str, threads: int, outcome: Outcome
) -> None:
    probe = launcher("prefork", *known, intra_op_threads=threads).probe([model], 0)
    assert probe.outcome is outcome
    if probe.evidence is not None:
        known_as = reading(probe.evidence.stacks, probe.evidence.proof)
        assert known_as is not None and "waits in OpenMP for the other threads of its team" in known_as.words
        one = launcher("prefork", *known, intra_op_threads=threads)
        assert_forked_processes_answer(replace(one, settings=(MITIGATIONS["one thread after the fork"],)), [model])


def test_forked_processes_of_a_parent_that_called_nothing_answer(known: Known) -> None:
    assert_forked_processes_answer(launcher("prefork_cold", *known), ["fork_join"])


def test_crash_of_a_forked_process_ends_the_server_and_names_model_and_stack(known: Known) -> None:
    probe = launcher("prefork_cold", *known).probe(["straight", "wild_read"], 0)
    assert (probe.outcome, probe.exit_detail) == (Outcome.CRASH, "signal SIGSEGV")
    assert_native_crash(probe.evidence)
    crashed = [item for item in probe.models if item.outcome is Outcome.CRASH]
    assert [(model_of(item.model), item.phase_words) for item in crashed] == [("wild_read", "call 0 of example")]


@pytest.mark.parametrize("worker", ["libtorch", "python"])
def test_process_that_exits_while_its_threads_call_ends_by_a_signal_after_its_answers(
    known: Known, worker: str
) -> None:
    facts, effects = known
    together = launcher("exit", replace(facts, worker=worker), effects)
    run = bring_up(together, "", ["wide", "straight"])
    (probe,) = run.probes  # nobody is launched again: how it ends is common to all
    for name in run.members:
        found = scenario_result(run, name)
        assert (found.result.way, found.exit_detail[:7]) == ((Outcome.CRASH, "exit"), "signal ")
        assert {model_of(copy) for copy, _ in found.answers} == {name}
        assert legible_outputs(probe.directory, name).calls


@pytest.mark.slow
@pytest.mark.parametrize("worker", ["libtorch", "python"])
@pytest.mark.parametrize(("model", "outcome"), [("fork_join", Outcome.HANG), ("straight", Outcome.COMPLETED)])
def test_prefork_server_hangs_or_answers_twenty_times_of_twenty(
    known: Known, worker: str, model: str, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, effects = known
    monkeypatch.setattr(watchdog, "investigate", lambda *_, **__: Evidence())
    server = launcher("prefork", replace(facts, worker=worker), effects)
    assert [server.probe([model], repeat).outcome for repeat in range(20)] == [outcome] * 20


def test_what_opening_an_archive_takes_is_time_until_ready(known: Known, tmp_path: Path) -> None:
    """At least; how releases are compared by it is in ``tests/unit/checks/startup/test_initialize.py``, with planted times."""
    built = build_library(Path(__file__).parent / "slow_starts" / "slow_open.cpp", tmp_path)
    assert built.binary is not None, built.why_not
    run = bring_up(launcher("concurrent", *known, env={"LD_PRELOAD": str(built.binary)}), "one", ["straight"])
    took_s = init_s(run)
    assert took_s is not None and took_s >= SLOW_OPEN_S
    assert own_s(run, "straight") >= SLOW_OPEN_S


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nonexistent")


def test_without_a_compiler_the_python_worker_serves_and_the_note_says_so(known: Known, no_compiler: None) -> None:
    facts, effects = known
    fallen_back = build_workers(facts, effects)
    assert fallen_back.worker == "python"
    (note,) = fallen_back.worker_notes
    assert "no C++ worker" in note and "CXX names '/nonexistent'" in note and "loading was not concurrent" in note


def test_without_any_compiler_on_path_there_is_no_cpp_worker_either(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, effects = known
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    fallen_back = build_workers(facts, replace(effects, native_folder=tmp_path / "native"))
    assert fallen_back.worker == "python"
    assert "no C++ compiler was found" in fallen_back.worker_notes[0]


def test_without_a_compiler_asking_for_the_cpp_worker_is_an_error(known: Known, no_compiler: None) -> None:
    facts, effects = known
    settings = replace(facts.plan.settings, runtime="libtorch")
    with pytest.raises(EnvironmentUnavailable, match=r"no C\+\+ worker for torch .*CXX names") as raised:
        build_workers(replace(facts, plan=replace(facts.plan, settings=settings)), effects)
    assert raised.value.exit_code == ExitCode.ENVIRONMENT


def test_scenario_that_only_the_cpp_worker_can_do_is_never_green_without_it(known: Known, no_compiler: None) -> None:
    facts, effects = known
    models = tuple(model for model in facts.plan.models if model.name == "straight")
    plan = replace(facts.plan, models=models, scenarios=("alone", "inter_op"), groups={"pool": ("straight",)})
    begun = Probed(**Probed.known(replace(facts, plan=plan)))
    done = decided(judged(build_workers(begun, effects), effects), (), effects)
    assert {item.status for item in done.verdicts["straight"]} == {Status.PASS}
    assert done.judgement.decision is Decision.INCONCLUSIVE
    assert "for want of the C++ worker: inter_op" in done.judgement.reason


@pytest.fixture(scope="module")
def gate_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    scenarios = ("--scenario", "shared", "--scenario", "while_serving", "--scenario", "inter_op")
    sides = ("--profile", SIDES["profile"], "--new-profile", SIDES["new_profile"], "--latency", "off")
    expression = "not wild and not leaking and not later"  # how long a hang in serving is looked into is not at issue
    return compat(tmp_path_factory.mktemp("gate"), "--fixtures", CONCURRENCY, "-k", expression, *sides, *scenarios)


SICK = {
    "fork_join": "inter_op",
    "quota": "shared",
    "spoilt": "shared",
    "spoilt_with_dropout": "shared",
    "worn_out": "shared",
}


@pytest.mark.slow
def test_gate_names_the_failing_models_and_no_other(gate_run: Run) -> None:
    assert gate_run.code == 1, gate_run.out
    assert gate_run.report.judgement.decision is Decision.BLOCKED
    statuses = {row.model: row.status for row in gate_run.report.judgement.rows}
    assert {name for name, status in statuses.items() if status is Status.FAIL} == set(SICK)
    for name, scenario in SICK.items():
        assert scenario in {item.scenario for item in gate_run.row(name).cells if item.status is Status.FAIL}, name
    assert Status.SAME_FAIL not in statuses.values()  # that the tally must not be shared says nothing of the upgrade


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("fork_join", "fork_join fails alone, in one thread: neither another model nor concurrency is needed"),
        ("quota", "quota fails with no other model beside it, but only when 2 threads use it at once"),
        ("worn_out", "worn_out fails with no other model beside it, but only when 2 threads use it at once"),
    ],
)
def test_gate_says_that_the_failing_model_alone_suffices_and_the_old_release_is_fine(
    gate_run: Run, model: str, words: str
) -> None:
    (finding,) = (
        finding
        for item in gate_run.row(model).cells
        for finding in item.findings
        if item.scenario == SICK[model] and item.status is Status.FAIL
    )
    needs = dict(finding.story)["needs"]
    assert needs.startswith(words)
    assert "the old release passes" in needs


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["libtorch", "python"])
def test_healthy_part_of_the_zoo_is_green_in_every_scenario(tmp_path: Path, runtime: str) -> None:
    models = (
        "resnet_traced or (dlrm and not served) or int8_ranker or frequency_cap or forked_ensemble or spectral_mixer"
    )
    able_ones = [INITIALIZATIONS[name] for name, worker, _ in able() if worker == runtime]
    if runtime == "python":
        scenarios = [item.name for item in able_ones if item.name != "python_server"]  # what any server is there
    else:
        scenarios = [item.name for item in able_ones if not item.python_only]
    asked = [word for name in scenarios for word in ("--scenario", name)]
    run = compat(tmp_path, "-k", models, "--runtime", runtime, "--latency", "off", *asked)
    assert run.code == 0, run.out
    assert {item.scenario for row in run.report.judgement.rows for item in row.cells} == {"alone", *scenarios}


@pytest.mark.slow
def test_command_line_without_a_compiler(tmp_path: Path, no_compiler: None) -> None:
    models = ("-k", "din and not int8", "--latency", "off")
    refused = harness("compat", "--out", str(tmp_path / "refused"), *models, "--runtime", "libtorch")
    assert refused.returncode == 3
    (error,) = [line for line in refused.stderr.splitlines() if line.startswith("error: ")]
    assert "--runtime libtorch: CXX names '/nonexistent'" in error
    fallen_back = compat(tmp_path / "auto", *models, "--scenario", "concurrent", "--scenario", "inter_op")
    assert fallen_back.code == 4
    assert fallen_back.report.judgement.decision is Decision.INCONCLUSIVE
    assert "loading was not concurrent" in " ".join(fallen_back.out.split())


@pytest.mark.slow
def test_deadlock_of_a_python_server_is_a_regression_with_its_meaning_and_its_mitigation(tmp_path: Path) -> None:
    words = ("--fixtures", CONCURRENCY, "-k", "speculative_cascade", "--latency", "off")
    run = compat(tmp_path, *words, "--new-profile", "inference_mode")
    assert run.code == 1, run.out
    assert run.row("speculative_cascade_in_line").status is Status.PASS
    cells = {cell.scenario: cell for cell in run.row("speculative_cascade").cells}
    assert cells["while_serving"].status is Status.PASS, "a C++ process has no GIL"
    kept = cells["python_keeping"]
    assert (kept.status, kept.failed_rounds, kept.rounds) == (Status.FAIL, 1, 1)
    (hang,) = kept.findings
    assert (hang.kind, hang.where) == ("hang", "load")
    story = defaultdict(list)
    for label, text in hang.story:
        story[label].append(text)
    assert story["meaning"][0].startswith("torch.jit.load holds Python's global lock (GIL)")
    load, pool = story["frames"][:2]
    assert "ObjLoaderFunc" in load and pool.startswith("PTThreadPool") and "decref" in pool
    (before,) = [item.old for item in run.report.scenarios if item.scenario == "python_keeping"]
    assert before is not None and (before.failed, before.rounds) == (0, 1)
    mitigation = run.row("speculative_cascade").mitigations[0]
    assert (mitigation.name, mitigation.mitigates, mitigation.note) == ("wide inter-op pool", True, "")
    assert run.report.judgement.decision is Decision.OK_WITH_MITIGATION
