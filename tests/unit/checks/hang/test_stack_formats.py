"""Texts that real tools printed about real processes; ``stacks/`` has them as they came."""

from pathlib import Path

import pytest

from harness.core.hang import Frame, ThreadStack
from harness.checks.hang import symbols
from harness.checks.hang import stack_formats

TEXTS = Path(__file__).parent / "stacks"


def text(name: str) -> str:
    return (TEXTS / name).read_text()


def functions(stack: ThreadStack) -> list[str]:
    return [frame.function for frame in stack.frames]


def test_own_dump_of_two_threads_that_wait_for_each_other() -> None:
    (dump,) = stack_formats.own_dumps(text("mutexes.own.txt"))
    assert (dump.kind, dump.signal, dump.complete, dump.number) == ("request", "SIGUSR1", True, 1)
    assert [len(thread.frames) for thread in dump.threads] == [7, 6, 6]
    assert dump.tid == dump.threads[0].tid
    waiting = dump.threads[1]
    assert waiting.answered
    assert waiting.ident != 0
    assert waiting.frames[1].image == "/usr/lib/x86_64-linux-gnu/libc.so.6"
    assert waiting.frames[0].offset == 0x86129


def test_own_dump_of_a_crash_beside_faulthandlers() -> None:
    written = text("segfault.own.txt")
    (dump,) = stack_formats.own_dumps(written)
    assert (dump.kind, dump.signal, dump.address) == ("crash", "SIGSEGV", 0x10)
    faulting = stack_formats.without_handlers(dump.threads[0])
    assert faulting.tid == dump.tid
    assert faulting.frames[0].offset == 0x167AD8, "the frame that faulted, not those of the handlers"
    (current, other) = stack_formats.faulthandler(written)
    assert current.current
    assert current.ident == faulting.ident
    assert [frame.function for frame in current.frames[:2]] == ["string_at", "<lambda>"]
    assert not other.current


def test_own_dump_that_was_cut_short_is_not_complete() -> None:
    whole = text("mutexes.own.txt")
    (dump,) = stack_formats.own_dumps(whole[: len(whole) // 2])
    assert not dump.complete
    assert dump.threads


def test_own_dump_names_threads_without_an_answer_and_what_was_left_out() -> None:
    written = (
        "== gate stacks 3 request SIGUSR2 pid 7 tid 7\n"
        "-- thread 7 R 0x00007f0000000001 a name: with a colon\n"
        "  0 0x0000000000000010 in /a folder/lib in.so+0x10\n"
        "    ... 812 frames left out\n"
        "  1 0x0000000000000011 in ?\n"
        "-- thread 8 D 0x0000000000000000 pool: no answer\n"
        "-- thread 9 S 0x0000000000000000 : blocks signals\n"
        "== gate stacks 3 end\n"
    )
    (dump,) = stack_formats.own_dumps(written)
    first, second, third = dump.threads
    assert (first.name, first.answered) == ("a name: with a colon", True)
    assert first.frames[0] == stack_formats.RawFrame(0x10, "/a folder/lib in.so", 0x10)
    assert first.frames[1].note == "812 frames left out"
    assert stack_formats.depth(first) == 3 + 812
    assert (second.name, second.answered, second.frames) == ("pool", False, ())
    assert (third.name, third.answered) == ("", False)
    assert stack_formats.unnamed(dump.threads) == {"/a folder/lib in.so": {0x10}}


def test_eu_stack_without_names_has_images_and_addresses() -> None:
    threads = stack_formats.eu_stack(text("mutexes.eu-stack.txt"))
    assert [len(thread.frames) for thread in threads] == [7, 6, 6]
    assert threads[1].frames[0].image == "/usr/lib/x86_64-linux-gnu/libc.so.6"
    assert threads[1].frames[1].offset == 0x8C481
    assert set(stack_formats.unnamed(threads)) >= {"/usr/lib/x86_64-linux-gnu/libc.so.6"}


def test_eu_stack_with_names() -> None:
    written = "PID 5 - process\nTID 5:\n#0  0x00007f39c9228d5c f(int) - /lib/libf.so\n#1  0x00007f39c93566d8 - [vdso]\n"
    (thread,) = stack_formats.eu_stack(written)
    assert [(frame.symbol, frame.image) for frame in thread.frames] == [("f(int)", "/lib/libf.so"), ("", "[vdso]")]


def test_names_are_filled_in_and_demangled() -> None:
    thread = stack_formats.RawThread(
        4, frames=(stack_formats.RawFrame(0x99, "/lib/a.so", 0x9), stack_formats.RawFrame(1))
    )
    named = stack_formats.with_names(thread, {("/lib/a.so", 0x9): "_Z1fv"})
    assert stack_formats.symbols([named]) == {"_Z1fv"}
    stack = stack_formats.thread_stack(named, {"_Z1fv": "f()"}, moved=True)
    assert functions(stack) == ["f()", "?"]
    assert stack.frames[0].file == "a.so"
    assert stack.moved


def test_pystack() -> None:
    first, _, main = stack_formats.pystack(text("locks.pystack.txt"))
    assert functions(first)[:3] == [
        "__futex_abstimed_wait_common64",
        "__futex_abstimed_wait_common",
        "__new_sem_wait_slow64.constprop.0",
    ]
    python = [(frame.function, frame.line) for frame in first.frames if frame.language == "python"]
    assert python == [("work", 8), ("run", 982), ("_bootstrap_inner", 1045), ("_bootstrap", 1002)]
    assert first.frames[-1].function == "__clone3"
    assert main.frames[-1] == Frame(function="_start", file="python3.11")


@pytest.mark.parametrize("file", ["locks.py-spy.json", "locks.pystack.txt"])
def test_both_tools_say_who_has_the_gil(file: str) -> None:
    assert stack_formats.gil_holder(text(file)) == 24353
    assert stack_formats.gil_holder(text(file).replace("Has the GIL", "").replace('"owns_gil": true', "")) == 0


def test_py_spy() -> None:
    first, _, main = stack_formats.py_spy(text("locks.py-spy.json"))
    assert first.name == "Thread-2 (work)"
    assert functions(first)[2:5] == ["PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock", "work"]
    assert functions(first)[0] == "?"
    assert first.frames[4].language == "python"
    assert first.frames[2].language == "native"
    assert functions(main)[:2] == ["spin", "<module>"]


def test_gdb() -> None:
    first, second, main = stack_formats.gdb(text("mutexes.gdb.txt"))
    assert [len(first.frames), len(second.frames), len(main.frames)] == [8, 8, 6]
    assert first.name == "t"
    assert functions(first)[:2] == ["futex_wait", "__GI___lll_lock_wait"]
    assert first.frames[1].line == 49
    assert "std::thread::_State_impl" in functions(first)[4]
    assert functions(first)[5] == "?"
    assert main.frames[4].function == "std::thread::join()"
    assert main.frames[4].file == "libstdc++.so.6"


def test_faulthandler() -> None:
    threads = stack_formats.faulthandler(text("locks.faulthandler.txt"))
    assert [thread.current for thread in threads] == [False, False, True]
    assert [frame.function for frame in threads[0].frames][:2] == ["work", "run"]
    assert threads[2].frames[0].line in (14, 15)


def test_of_two_dumps_of_faulthandler_the_last_counts() -> None:
    both = 'Thread 0x1 (most recent call first):\n  File "a.py", line 1 in f\n\n'
    both += 'Thread 0x1 [name] (most recent call first):\n  File "a.py", line ??? in g\n'
    (thread,) = stack_formats.faulthandler(both)
    assert (thread.name, thread.frames[0].function, thread.frames[0].line) == ("name", "g", 0)


@pytest.mark.parametrize(
    "read", [stack_formats.pystack, stack_formats.py_spy, stack_formats.gdb, stack_formats.eu_stack]
)
@pytest.mark.parametrize("name", sorted(path.name for path in TEXTS.iterdir()))
def test_no_reader_fails_on_the_text_of_another_tool_or_on_half_a_text(read: object, name: str) -> None:
    assert callable(read)
    whole = text(name)
    for end in (0, len(whole) // 3, len(whole) - 5, len(whole)):
        assert isinstance(read(whole[:end]), tuple)
    assert isinstance(stack_formats.faulthandler(whole[: len(whole) // 2]), tuple)
    assert isinstance(stack_formats.own_dumps(whole[: len(whole) // 2]), tuple)


def test_a_dump_without_end_has_no_threads() -> None:
    assert stack_formats.py_spy("[" * 100_000) == ()


@pytest.mark.parametrize(
    ("mangled", "plain"),
    [
        (
            "_ZN5torch3jit10tensorexpr8IRCloner6mutateERKSt10shared_ptrINS1_3AddEE",
            "torch::jit::tensorexpr::IRCloner::mutate",
        ),
        (
            "_ZN5torch3jit10tensorexpr8ExprNodeINS1_4LoadENS1_4ExprEE14accept_mutatorEPNS1_9IRMutatorE",
            "torch::jit::tensorexpr::ExprNode::accept_mutator",
        ),
        ("_ZNK3c106detail3fooILj1EE3barEv", "c10::detail::foo::bar"),
        ("_ZN5torch3jitL17computeInlineImplEv", "torch::jit::computeInlineImpl"),
        ("_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run"),
        ("_ZNSt6thread4joinEv", "std::thread::join"),
        ("_ZN5torch3jit4CodeC2Ev", "torch::jit::Code::Code"),
        ("_ZN5torch3jit4CodeD1Ev", "torch::jit::Code::~Code"),
        ("_Z5crashv", "crash"),
        ("main", "main"),
        ("_Z", "_Z"),
        ("_ZN99999999999", "_ZN99999999999"),
        ("_Znwm", "_Znwm"),
    ],
)
def test_names_are_readable_without_a_demangler(mangled: str, plain: str) -> None:
    assert symbols.plain_demangled(mangled) == plain


def test_files_that_are_no_elf_name_nothing(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 100)
    (tmp_path / "empty").touch()
    wanted = {str(wrong): [1], str(tmp_path / "empty"): [1], "/missing": [1], str(TEXTS / "locks.pystack.txt"): [1]}
    assert symbols.look_up(wanted) == {}
