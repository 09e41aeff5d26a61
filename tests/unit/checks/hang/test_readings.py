"""Signatures of known hangs on stacks recorded from real processes: each fires on its own defect and on no other.

``stacks/`` has what ``forensics.investigate`` found in them (very deep stacks without their middle): torch 2.6.0 on a CPU
and small C++ and Python programs; names that end in ``_pystack``, ``_py_spy`` and ``_gdb`` were taken with that tool, the others
by the process itself. ``healthy_*`` are busy, idle or deadlocked in a way that no signature knows.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.hang import Frame, HangKind, HangProof, ThreadActivity, ThreadStack
from harness.checks.hang import readings
from harness.checks.hang.readings import HungProcess, Reading, only_want_the_gil, reading
from harness.serving.settings.mitigations import MITIGATIONS
from harness.checks.hang.stack_words import interesting, short, threads_in_words, waits_for

RECORDED = Path(__file__).parent / "readings_stacks"
NAMES = sorted(path.stem for path in RECORDED.iterdir())

EXPECTED = {
    "fuser_alone": "pytorch/issues/75903",
    "fuser_shared": "pytorch/issues/75903",
    "fuser_shared_pystack": "pytorch/issues/75903",
    "fuser_shared_in_1_13": "pytorch/issues/75903",
    "fuser_shared_py_spy": "pytorch/issues/75903",
    "fuser_interprets": "tensorexpr/eval.cpp",
    "inter_op_pool": "pytorch/issues/109782",
    "inter_op_pool_pystack": "pytorch/issues/109782",
    "inter_op_pool_after_fork": "pytorch/issues/17199",
    "inter_op_pool_after_fork_signal": "pytorch/issues/17199",
    "import_lock": "cpython/issues/125037",
    "import_lock_pystack": "cpython/issues/125037",
    "openmp_after_fork": "pytorch/issues/41197",
    "gil_inversion": "pytorch/pull/58382",
    "gil_inversion_pystack": "pytorch/pull/58382",
    "load_with_gil": "pytorch/issues/56701",
    "load_with_gil_in_2_6": "pytorch/issues/56701",
    "loader_lock": "threadpoolctl/issues/239",
    "malloc_in_handler": "signal-safety.7",
    "static_guards": "cpp11-static-init",
    "first_calls_of_a_package_gdb": "pytorch/pull/181941",
}


def recorded(name: str) -> tuple[ThreadStack, ...]:
    threads = json.loads((RECORDED / f"{name}.json").read_text())
    return tuple(
        ThreadStack(
            tid=thread["tid"],
            name=thread["name"],
            moved=thread["moved"],
            frames=tuple(
                Frame(function=f, file=file, line=n, language=language) for f, file, n, language in thread["frames"]
            ),
        )
        for thread in threads
    )


def proof(kind: HangKind = HangKind.BLOCKED, *threads: ThreadActivity) -> HangProof:
    return HangProof(kind=kind, silent_s=3.2, window_s=1.0, threads=threads)


def native(*functions: str, file: str = "libserver.so", tid: int = 1, moved: bool | None = False) -> ThreadStack:
    return ThreadStack(tid=tid, frames=tuple(Frame(function=name, file=file) for name in functions), moved=moved)


def found(name: str, kind: HangKind | None = None) -> Reading:
    answer = reading(recorded(name), proof(kind) if kind is not None else None)
    assert answer is not None
    return answer


@pytest.mark.parametrize("name", NAMES)
def test_each_recording_has_its_reading_and_healthy_ones_none(name: str) -> None:
    answer = reading(recorded(name), None)
    assert name in EXPECTED or name.startswith("healthy_")
    if answer is None:
        assert name not in EXPECTED
    else:
        assert answer.source.startswith("https://")
        assert EXPECTED[name] in answer.source


@pytest.mark.parametrize("name", NAMES)
def test_no_signature_fires_on_the_defect_of_another(name: str) -> None:
    process = HungProcess(recorded(name), None)
    signatures = (*readings.SIGNATURES, *readings.SIGNATURES)
    fired = {answer.source for signature in signatures if (answer := signature(process)) is not None}
    also = {source for source in fired if "profiling_graph_executor_impl" in source and name.startswith("fuser_shared")}
    assert len(fired - also) == (1 if name in EXPECTED else 0)


def test_every_signature_has_a_recording_or_a_test_of_its_own() -> None:
    fired = set()
    for name in NAMES:
        process = HungProcess(recorded(name), None)
        fired |= {s.__name__ for s in (*readings.SIGNATURES, *readings.SIGNATURES) if s(process) is not None}
    known = {signature.__name__ for signature in (*readings.SIGNATURES, *readings.SIGNATURES)}
    assert known - fired == {"_cuda_lazy_loading"}, "needs a GPU: made by hand below"


LOAD_WITH_GIL = ("load_with_gil", "load_with_gil_in_2_6")


def doing(name: str, frame: str) -> list[int]:
    """Return the recorded threads with such a frame."""
    return [stack.tid for stack in recorded(name) if any(frame in one.function for one in stack.frames)]


@pytest.mark.parametrize("name", LOAD_WITH_GIL)
def test_load_that_waits_with_the_gil_names_itself_then_the_thread_of_the_pool_and_the_mitigation(name: str) -> None:
    answer = found(name, HangKind.BLOCKED)
    (loading,), (taker,) = doing(name, "ScriptModuleDeserializer"), doing(name, "c10::ThreadPool::main_loop")
    assert answer.threads == (loading, taker)
    assert f"{loading} waits for a condition variable" in answer.words
    assert f"{taker} needs the GIL to let go of a tensor" in answer.words
    assert answer.mitigations == ("wide inter-op pool",)
    assert set(answer.mitigations) <= set(MITIGATIONS)
    first, second, *_ = interesting(recorded(name), proof(), answer.threads)
    assert (str(loading) in first.title, str(taker) in second.title) == (True, True)
    assert any("decref" in line or "PyObjectSlot" in line for line in second.lines)


@pytest.mark.parametrize("name", LOAD_WITH_GIL)
def test_load_that_runs_or_that_no_pool_thread_is_kept_from_working_by_has_no_reading(name: str) -> None:
    (loading,), (taker,) = doing(name, "ScriptModuleDeserializer"), doing(name, "c10::ThreadPool::main_loop")
    stacks = recorded(name)
    assert reading([replace(one, moved=one.tid == loading) for one in stacks], proof()) is None
    assert reading([one for one in stacks if one.tid != taker], proof()) is None


@pytest.mark.parametrize("name", LOAD_WITH_GIL)
def test_threads_that_want_to_go_on_in_python_hold_nobody_up(name: str) -> None:
    waiting = only_want_the_gil(recorded(name))
    assert set(doing(name, "invokeScriptMethodFromPython")) <= waiting
    assert waiting.isdisjoint(doing(name, "ScriptModuleDeserializer"))


def test_code_that_may_hold_a_lock_of_its_own_while_it_wants_the_gil_holds_others_up() -> None:
    assert only_want_the_gil(recorded("gil_inversion")) == frozenset()


def test_words_name_the_threads_of_the_worker() -> None:
    stacks = recorded("fuser_shared")
    busy = next(stack for stack in stacks if stack.moved)
    threads = tuple(
        ThreadActivity(tid=stack.tid, thread=index, phase="call", model="runaway_fusion", input_set="example", call=1)
        for index, stack in enumerate(stacks)
    )
    answer = reading(stacks, proof(HangKind.BUSY, *threads))
    assert answer is not None
    index = stacks.index(busy)
    assert answer.words.startswith(f"thread {index} is inside the tensor-expression fuser")
    assert "wait for the same plan (getPlanFor)" in answer.words
    assert all(f"thread {other}" in answer.words for other in range(1, len(stacks)))


def test_fuser_that_stands_is_not_running_away() -> None:
    stacks = tuple(replace(stack, moved=False) for stack in recorded("fuser_alone"))
    assert reading(stacks, None) is None
    busy = proof(HangKind.BUSY, ThreadActivity(tid=stacks[0].tid, on_cpu_s=0.9))
    assert reading(stacks, busy) is not None, "two samples may meet the same frames: the CPU says that it runs"
    assert reading(recorded("fuser_alone"), proof(HangKind.BLOCKED)) is None


def test_compile_that_stands_is_reported_with_what_it_waits_for() -> None:
    stacks = recorded("fuser_shared")
    compiling = native(
        "pthread_cond_wait", "torch::jit::ProfilingGraphExecutorImpl::getOptimizedPlanFor(a&, b)", "work()", tid=99
    )
    waiting = tuple(
        stack for stack in stacks if any("getPlanFor" in f.function for f in stack.frames) and not stack.moved
    )
    answer = reading((compiling, *waiting), None)
    assert answer is not None
    assert "profiling_graph_executor_impl" in answer.source
    assert "itself waits for a condition variable" in answer.words
    assert reading((compiling,), None) is None, "nobody waits for it"
    assert reading(waiting, None) is None, "nobody compiles"


def test_pool_with_a_thread_to_spare_is_not_exhausted() -> None:
    (idle,) = [stack for stack in recorded("healthy_idle_pool") if stack.name == "PTThreadPool"][:1]
    assert reading((*recorded("inter_op_pool"), idle), None) is None


def test_import_that_goes_on_is_no_deadlock() -> None:
    stacks = tuple(replace(stack, moved=True) for stack in recorded("import_lock"))
    assert reading(stacks, None) is None


def test_import_lock_names_the_module() -> None:
    answer = found("import_lock", HangKind.BLOCKED)
    assert "/srv/blocked_module.py" in answer.words


def test_openmp_with_its_team_in_another_thread_is_healthy() -> None:
    stacks = recorded("openmp_after_fork")
    member = native("gomp_team_barrier_wait_end", file="libgomp-a34b3233.so.1", tid=2)
    assert reading((*stacks, member), None) is None


def test_gil_wait_without_a_foreign_lock_is_no_inversion() -> None:
    holder, taker = recorded("gil_inversion")
    assert reading((taker,), None) is None
    assert reading((holder,), None) is None
    assert reading((holder, replace(taker, moved=True)), None) is None


def test_allocator_lock_in_the_only_thread_of_a_forked_process() -> None:
    stuck = ThreadStack(
        tid=1,
        moved=False,
        frames=(
            Frame(function="__lll_lock_wait_private", file="libc.so.6"),
            Frame(function="malloc", file="libc.so.6"),
            Frame(function="torch::jit::load(std::string const&)", file="libtorch_cpu.so"),
        ),
    )
    answer = reading((stuck,), None)
    assert answer is not None
    assert answer.source.endswith("pytorch/issues/2245")
    assert reading((stuck, native("main", tid=2)), None) is None, "another thread may hold it, for a moment"


def test_cuda_kernel_loaded_while_another_thread_waits_for_the_gpu() -> None:
    loading = native("?", "cuModuleLoadData", "cudart::contextState::loadCubin", "server()", file="libcuda.so.1")
    waiting = native(
        "?", "cuStreamSynchronize", "c10::cuda::CUDAStream::synchronize() const", file="libcuda.so.1", tid=2
    )
    answer = reading((loading, waiting), None)
    assert answer is not None
    assert "CUDA_MODULE_LOADING=EAGER" in answer.words
    assert reading((loading,), None) is None
    assert reading((waiting,), None) is None


def test_nothing_is_read_into_nothing() -> None:
    assert reading((), None) is None
    assert reading((ThreadStack(tid=1),), proof()) is None


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("std::vector<std::shared_ptr<a::B>, std::allocator<a::B> >::~vector()", "std::vector::~vector"),
        (
            "std::shared_ptr<a::E> torch::jit::tensorexpr::mutate_binary_op<a::Add, (void*)0>(a::B, c)",
            "jit::tensorexpr::mutate_binary_op",
        ),
        (
            "torch::jit::(anonymous namespace)::createOp(Node const*)::{lambda(Stack&)#1}::operator()(Stack&) const",
            "jit::createOp::{lambda}::operator()",
        ),
        ("c10::operator<<(std::ostream&, c10::IValue const&)", "c10::operator<<"),
        ("operator new(unsigned long)", "operator new"),
        ("bool a::operator< <int>(b)", "operator<"),
        ("__pthread_mutex_lock@GLIBC_2.2.5", "__pthread_mutex_lock"),
        ("at::native::f(at::Tensor) [clone .part.0]", "at::native::f"),
        ("main", "main"),
        ("?", "?"),
    ],
)
def test_names_are_short(function: str, words: str) -> None:
    assert short(function).endswith(words)
    assert "(" not in words or words.endswith("()")


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("gil_inversion", {"a mutex", "Python's global lock (GIL)"}),
        ("import_lock", {"a Python lock"}),
        ("import_lock_pystack", {"a Python lock"}),
        ("static_guards", {"a static variable that another thread initializes", "the end of another thread"}),
        ("inter_op_pool", {"a condition variable"}),
        ("malloc_in_handler", {"the allocator's lock", ""}),
        ("healthy_busy_loop", {"", "the end of another thread"}),
    ],
)
def test_what_a_thread_waits_for_is_read_from_its_frames(name: str, waits: set[str]) -> None:
    assert {waits_for(stack) for stack in recorded(name)} == waits


def test_equal_stacks_are_reported_once_and_system_code_not_at_all() -> None:
    folded = interesting(recorded("fuser_shared"), None)
    titles = [fold.title for fold in folded]
    assert sum(title.startswith("3 threads: ") for title in titles) == 1
    shared = next(fold for fold in folded if fold.title.startswith("3 threads: "))
    assert shared.title.endswith(", unchanged")
    assert shared.lines[:2] == ("waits for a mutex", "jit::ProfilingGraphExecutorImpl::getPlanFor")
    every = "\n".join(line for fold in folded for line in fold.lines)
    for noise in ("libc", "start_thread", "PyEval", "std::shared_ptr", "lambda", "pybind11", "_bootstrap"):
        assert noise not in every
    assert all(len(fold.lines) <= 26 for fold in folded)


def test_recursion_becomes_a_count() -> None:
    (fold, *_) = interesting([stack for stack in recorded("fuser_alone") if stack.moved], None)
    assert any(line.startswith("jit::tensorexpr::") and line.endswith(" times)") for line in fold.lines)


def test_the_workers_own_threads_come_first() -> None:
    stacks = (native("f()", tid=1), native("g()", tid=2))
    folded = interesting(
        stacks, proof(HangKind.BLOCKED, ThreadActivity(tid=2, thread=0), ThreadActivity(tid=1, name="pool"))
    )
    assert [fold.title for fold in folded] == ["thread 0, unchanged", "pool 1, unchanged"]


def test_threads_in_words() -> None:
    stacks = (native("pthread_mutex_lock", "g()", tid=2), native("spin()", tid=3, moved=True))
    threads = (
        ThreadActivity(tid=2, thread=1, state="S", phase="call", model="a", input_set="example", call=1),
        ThreadActivity(tid=3, thread=0, state="R", on_cpu_s=0.98, phase="load", model="b"),
        ThreadActivity(tid=4, thread=2, state="S", waits_for="disk", phase="load", model="c"),
        ThreadActivity(tid=5, thread=3, state="R", run_delay_s=0.9, phase="barrier"),
        ThreadActivity(tid=6, name="pool", state="S"),
    )
    assert threads_in_words(proof(HangKind.BLOCKED, *threads), stacks) == (
        "thread 0: load of b, on a CPU 98% of the time, the stack moves",
        "thread 1: call 1 of example, a, waits for a mutex, the stack stands",
        "thread 2: load of c, waits for disk",
        "thread 3: barrier, on a CPU 0% of the time and waits 90% of it for one",
    )


def test_thread_that_waits_with_a_limit_is_said_to_wait_however_busy_the_machine_is() -> None:
    stack = native("take_gil", "PyEval_RestoreThread", "main", tid=7)
    busy = ThreadActivity(tid=7, thread=1, phase="serve", model="m", state="S", run_delay_s=0.2)
    (line,) = threads_in_words(proof(HangKind.BLOCKED, busy), [stack])
    assert line == "thread 1: serve of m, waits for Python's global lock (GIL), the stack stands"


def test_threads_in_words_without_a_proof_are_those_with_something_to_tell() -> None:
    lines = threads_in_words(None, recorded("gil_inversion"))
    assert len(lines) == 2
    assert all(line.endswith(", the stack stands") for line in lines)
