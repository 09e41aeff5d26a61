"""A reproducer's folder: what it holds, and what it says of a torch that does this or that, or is not there."""

import ast
import importlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.search.reproduce.files import (
    PARTS,
    Tensors,
    run_reproducer,
    run_snippet,
    script_of,
    write_reproducer,
)
from harness.core.probe import WorkerLimits
from tests.unit.builders.stub_torch import stub_torch

PROFILE = {
    "intra_op_threads": 1,
    "inter_op_threads": 1,
    "switches": {},
    "env": {},
    "numerics": {},
    "libraries": [],
}
LIMITS = WorkerLimits(memory_bytes=8 << 30, file_bytes=1 << 30, network=False)
DIES = "os.kill(os.getpid(), 11)"
SHORT = ("--deadline", "2")


def deadline(body: str) -> tuple[str, ...]:
    """Return a short one where the body hangs; what ends may take its time on a busy machine."""
    return SHORT if "sleep(60)" in body or "while True" in body else ()


def case(what: str = "any", **changes: Any) -> dict[str, Any]:
    return {
        "title": "a case",
        "good": "1",
        "bad": "2",
        "symptom": {"what": what},
        "runs": 1,
        "deadline_s": 20.0,
        "device": "cpu",
        "profiles": {"old": PROFILE, "new": PROFILE},
        "tolerances": {},
        **changes,
    }


def operator(**changes: Any) -> dict[str, Any]:
    return case(
        operator="aten::op",
        schema="aten::op(int x) -> int",
        inputs=[["int", 3]],
        outputs=[["int", 6]],
        generator=None,
        strides=False,
        **changes,
    )


def program(what: str, calls: int = 2, **changes: Any) -> dict[str, Any]:
    request = {"set": "example", "method": "forward", "arguments": ["tuple", [["int", 3]]], "calls": calls}
    requests = [{**request, "expected": calls * [["int", 6]], "after": []}] if calls else []
    return {
        **case(what, artifact={"file": "minimal.pt", "note": ""}, reset=None, seed=0, requests=requests),
        "memory_bytes": None,
        **changes,
    }


def said(
    folder: Path,
    kind: str,
    told: dict[str, Any],
    *arguments: str,
    body: str | None = "return 2 * x",
    load: str = "pass",
) -> str:
    """Return what a reproducer says with a torch that does ``body`` and ``load``; body None: without any torch."""
    write_reproducer(folder / "r", kind, told, Tensors())
    if body is not None:
        stub_torch(folder / "site", body, load)
    environment = {"PYTHONPATH": str(folder / "site"), "STATE": str(folder)}
    return run_reproducer(folder / "r", sys.executable, arguments, limits=LIMITS, env=environment)[1]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 2 * x", "as recorded (exit code 0)"),
        ("return 7", "output[0]: expected 6, got 7 (exit code 1)"),
        ("raise RuntimeError('no')", "call raises RuntimeError: no (exit code 1)"),
        (DIES, "aten::op ends the process with SIGSEGV (exit code 1)"),
        ("while True: pass", "aten::op does not return within 2 s (exit code 1)"),
    ],
)
def test_an_operator_is_good_as_recorded_and_bad_otherwise(tmp_path: Path, body: str, expected: str) -> None:
    assert said(tmp_path, "operator", operator(), *deadline(body), body=body) == expected


def test_without_torch_or_the_operator_it_is_untestable(tmp_path: Path) -> None:
    assert said(tmp_path, "program", program("values"), body=None).endswith("(exit code 125)")
    assert said(tmp_path, "operator", {**operator(), "schema": "aten::other(int x) -> int"}).endswith("(exit code 125)")


@pytest.mark.parametrize(
    ("what", "body", "expected"),
    [
        ("values", "return 2 * x", "every load and call ends as recorded (exit code 0)"),
        ("values", "return 7", "call 0 of example: output: expected 6, got 7; call 1 of example: output: expected 6, "),
        ("hang", "time.sleep(60)", "call 0 of example does not return within 2 s (exit code 1)"),
        ("crash", DIES, "call 0 of example ends the process with SIGSEGV (exit code 1)"),
        ("crash", "os._exit(3)", "call 0 of example ends the process with exit code 3 (exit code 1)"),
        ("memory", "raise MemoryError('can\\'t allocate memory')", "(exit code 1)"),
        ("memory", "os.kill(os.getpid(), 9)", "(exit code 1)"),
        ("memory", "os.kill(os.getpid(), 6)", "(exit code 1)"),
    ],
)
def test_a_program_is_bad_where_the_recorded_failure_shows(tmp_path: Path, what: str, body: str, expected: str) -> None:
    assert expected in said(tmp_path, "program", program(what), *deadline(body), body=body)


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("hang", DIES),
        pytest.param("crash", "time.sleep(60)", marks=pytest.mark.slow),
        ("values", "raise ValueError('x')"),
        ("crash", "return 1 / 0"),
    ],
)
def test_another_failure_than_the_recorded_one_is_untestable_unless_any_is_asked_for(
    tmp_path: Path, what: str, body: str
) -> None:
    told = said(tmp_path, "program", program(what), *deadline(body), body=body)
    assert told.startswith("another failure than the recorded one: ")
    assert told.endswith("(exit code 125)")
    assert said(tmp_path, "program", program(what), *deadline(body), "--any", body=body).endswith("(exit code 1)")


def test_a_program_that_comes_to_its_end_is_good_where_it_hung_whatever_it_answers(tmp_path: Path) -> None:
    told = said(tmp_path, "program", program("hang"), body="return 7")
    assert told.startswith("the recorded failure does not show; besides, call 0")
    assert told.endswith("(exit code 0)")


ERROR = {"what": "error", "phase": "call", "type": "ValueError", "text": "no"}
REFUSED = {"what": "error", "phase": "load", "type": "RuntimeError", "text": "Unknown builtin op: aten::gone."}


def test_an_error_counts_by_its_type_its_phase_and_its_words(tmp_path: Path) -> None:
    told = {**program("error"), "symptom": ERROR}
    assert said(tmp_path, "program", told, body="raise ValueError('no')").endswith("(exit code 1)")
    assert said(tmp_path, "program", told, body="raise ValueError('other words')").endswith("(exit code 125)")
    assert said(tmp_path, "program", told, body="raise KeyError('no')").endswith("(exit code 125)")
    assert said(tmp_path, "program", told, load="raise ValueError('no')").endswith("(exit code 125)")


@pytest.mark.parametrize(
    ("text", "message", "same"),
    [
        ("the size (3) must match", "Traceback\nRuntimeError: the size (4)\n  must match the other", True),
        ("the size (3) must match", "the size must be small", False),
        ("/tmp/a/m.pt is damaged", "/home/b/m.pt is damaged", True),
        ("/tmp/a/m.pt is damaged", "out of luck", False),
        ("/tmp/a/m.pt", "anything at all", False),
        ("", "", True),
        ("bad pointer 0x7f12ab", "bad pointer 0x5500", True),
        ("aten::conv2d is gone", "aten::conv3d is gone", False),
    ],
)
def test_an_error_is_known_by_its_words_whatever_paths_and_numbers_are_in_it(
    text: str, message: str, same: bool
) -> None:
    assert importlib.import_module("harness.worker.reproduce.endings").says(text, message) is same


def test_a_process_that_somebody_ends_is_no_crash(tmp_path: Path) -> None:
    told = said(tmp_path, "program", program("crash"), body="os.kill(os.getpid(), 15)")
    assert told == "call 0 of example is ended from outside by SIGTERM (exit code 125)"


def test_an_operator_whose_answers_were_wrong_says_nothing_where_it_raises(tmp_path: Path) -> None:
    told = {**operator(), "symptom": {"what": "values"}}
    assert said(tmp_path, "operator", told, body="return 7").endswith("(exit code 1)")
    assert said(tmp_path, "operator", told, body="raise RuntimeError('no')").endswith("(exit code 125)")


@pytest.mark.parametrize("body", ["return [6]", "return 6"])
def test_another_number_of_outputs_is_no_agreement(tmp_path: Path, body: str) -> None:
    told = said(tmp_path, "operator", {**operator(), "outputs": [["int", 6], ["int", 1]]}, body=body)
    assert told == "1 outputs, expected 2 (exit code 1)"


def test_what_an_error_says_steers_no_terminal_and_forges_no_verdict(tmp_path: Path) -> None:
    body = "raise RuntimeError('\\x1b[2Jred\\rgood: \\ud800\\u202eall \\U0001f600')"
    write_reproducer(tmp_path / "r", "operator", {**operator(), "title": "a\nb\x1b[0m"}, Tensors())
    stub_torch(tmp_path / "site", body)
    env = {"PYTHONPATH": str(tmp_path / "site"), "PYTHONIOENCODING": "ascii"}
    code, told, text = run_reproducer(tmp_path / "r", sys.executable, limits=LIMITS, env=env)
    assert code == 1
    assert told.startswith("call raises RuntimeError: \\x1b[2Jred")
    assert all(char.isprintable() for char in text.replace("\n", "")) and text.count("\n") == 3


def test_a_reader_that_is_gone_does_not_make_it_bad(tmp_path: Path) -> None:
    write_reproducer(tmp_path / "r", "operator", operator(), Tensors())
    stub_torch(tmp_path / "site", "return 2 * x")
    command = f"PYTHONPATH='{tmp_path}/site' {sys.executable} '{tmp_path}/r/reproduce.py'; echo $? >'{tmp_path}/code'"
    subprocess.run(["bash", "-c", f"({command}) | true"], check=True, timeout=60)
    assert (tmp_path / "code").read_text() == "0\n"


def test_a_crash_is_seen_whatever_signals_the_caller_ignores(tmp_path: Path) -> None:
    write_reproducer(tmp_path / "r", "operator", operator(), Tensors())
    stub_torch(tmp_path / "site", DIES)
    command = f"trap '' CHLD INT TERM; PYTHONPATH='{tmp_path}/site' exec {sys.executable} '{tmp_path}/r/reproduce.py'"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "bad: aten::op ends the process with SIGSEGV")


def test_a_refusal_to_load_counts_by_its_words_as_well(tmp_path: Path) -> None:
    told = {**program("error", calls=0), "symptom": REFUSED}
    refuse = "raise RuntimeError('Unknown builtin op: aten::gone.\\nCould not find any similar ops.')"
    assert said(tmp_path, "program", told, load=refuse).endswith("(exit code 1)")
    assert said(tmp_path, "program", told, load=refuse.replace("gone", "other")).endswith("(exit code 125)")
    assert said(tmp_path, "program", told) == "it loads (exit code 0)"


@pytest.mark.parametrize("symptom", [{"what": "values"}, {"what": "latency"}, ERROR])
def test_where_nothing_is_called_or_compared_nothing_is_good(tmp_path: Path, symptom: dict[str, str]) -> None:
    told = said(tmp_path, "program", {**program("x", calls=0), "symptom": symptom})
    assert told == "it loads, and nothing is recorded that would show the failure (exit code 125)"
    bare = program("values")
    bare["requests"][0]["expected"] = []
    assert said(tmp_path, "program", bare).endswith("(exit code 125)")


def test_a_flaky_failure_is_looked_for_until_it_shows_or_has_stayed_away_often_enough(tmp_path: Path) -> None:
    third = """
    path = os.environ["STATE"] + "/count"
    with open(path, "a") as stream: stream.write("x")
    if os.path.getsize(path) == 3: os.abort()
    return 2 * x""".strip()
    told = program("crash", calls=1)
    assert said(tmp_path, "program", {**told, "runs": 2}, body=third).endswith("(exit code 0)")
    assert (tmp_path / "count").stat().st_size == 2
    assert said(tmp_path, "program", {**told, "runs": 5}, body=third).endswith("(exit code 1)")
    assert (tmp_path / "count").stat().st_size == 3
    assert said(tmp_path, "program", {**told, "runs": 5}, "--runs", "1", body=third).endswith("(exit code 0)")
    assert (tmp_path / "count").stat().st_size == 4


def threads(what: str, count: int, **changes: Any) -> dict[str, Any]:
    return program(what, calls=1, threads=count, shared=False, **changes)


# As many at once as ``MEETS`` says, or each of them waits for ever.
MEETS = "import threading; os.__dict__.setdefault('meets', threading.Barrier(%d)).wait(); return 2 * x"
LOADS = "open(os.environ['STATE'] + '/loads', 'a').write('x')"


def test_threads_call_at_the_same_time_each_a_program_of_its_own(tmp_path: Path) -> None:
    told = said(tmp_path, "program", threads("hang", 3), body=MEETS % 3, load=LOADS)
    assert told == "every load and call in 3 threads comes to its end (exit code 0)"
    assert (tmp_path / "loads").read_text() == "xxx"


def test_threads_can_share_one_program(tmp_path: Path) -> None:
    told = said(tmp_path, "program", {**threads("hang", 3), "shared": True}, body=MEETS % 3, load=LOADS)
    assert told.endswith("(exit code 0)")
    assert (tmp_path / "loads").read_text() == "x"


@pytest.mark.parametrize(
    ("what", "body", "expected"),
    [
        (
            "hang",
            MEETS % 3,
            "call 0 of example in thread 0, call 0 of example in thread 1 does not return within 2 s",
        ),
        ("crash", DIES, "ends the process with SIGSEGV"),
        ("error", "raise ValueError('no')", "call 0 of example raises ValueError: no"),
    ],
)
def test_what_one_of_two_threads_does_is_what_the_program_does(
    tmp_path: Path, what: str, body: str, expected: str
) -> None:
    told = {**threads(what, 2), "symptom": ERROR if what == "error" else {"what": what}}
    said_so = said(tmp_path, "program", told, *(SHORT if what == "hang" else ()), body=body)
    assert expected in said_so
    assert said_so.endswith("(exit code 1)")


def test_a_thread_that_raises_in_a_load_says_nothing_about_a_hang(tmp_path: Path) -> None:
    told = said(tmp_path, "program", threads("hang", 2), load="raise ValueError('no')")
    assert told == "another failure than the recorded one: load raises ValueError: no (exit code 125)"


def test_settings_are_those_of_the_side_and_can_be_changed(tmp_path: Path) -> None:
    off = {**PROFILE, "switches": {"profiling": False}, "env": {"STATE": "off"}}
    told = {**program("values", calls=1), "profiles": {"old": PROFILE, "new": off}}
    body = "return 6 if _C.profiling and os.environ['STATE'] != 'off' else 7"
    assert said(tmp_path, "program", told, body=body).endswith("(exit code 1)")
    assert said(tmp_path, "program", told, "--profile", "old", body=body).endswith("(exit code 0)")
    both = ("--switch", "profiling=on", "--env", "STATE=x")
    assert said(tmp_path, "program", told, *both, body=body).endswith("(exit code 0)")
    assert said(tmp_path, "program", told, *both[:2], body=body).endswith("(exit code 1)")


@pytest.mark.parametrize(
    "arguments",
    [["--no-such"], ["--runs", "x"], ["--switch", "profiling"], ["--switch", "unheard_of=on"], ["--switch", "a=b"]],
)
def test_what_cannot_be_asked_is_untestable_and_never_bad(tmp_path: Path, arguments: list[str]) -> None:
    assert said(tmp_path, "program", program("values"), *arguments).endswith("(exit code 125)")


def test_a_damaged_folder_is_untestable(tmp_path: Path) -> None:
    said(tmp_path, "program", program("values"))
    (tmp_path / "r" / "case.json").write_text("{")
    assert run_reproducer(tmp_path / "r", sys.executable, limits=LIMITS)[0] == 125


def test_seconds_without_a_reference_prove_nothing(tmp_path: Path) -> None:
    told = said(tmp_path, "program", program("latency"))
    assert told.startswith("seconds of another machine tell nothing: call ")
    assert told.endswith("(exit code 125)")


@pytest.mark.slow
def test_a_call_is_slow_or_fast_by_what_it_takes_of_the_reference(tmp_path: Path) -> None:
    slow = "time.sleep(0.002); return 2 * x"  # the reference of the stub does next to nothing
    told = program("latency", latency={"reference": "yardstick", "good": 1.0, "bad": 8.0})
    assert said(tmp_path, "program", told, body=slow).endswith("(exit code 1)")
    told["latency"] = {"reference": "yardstick", "good": 1e6, "bad": 8e6}
    assert said(tmp_path, "program", told, body=slow).endswith("(exit code 0)")


def test_a_library_that_is_needed_and_not_named_is_untestable(tmp_path: Path) -> None:
    profile = {**PROFILE, "libraries": ["json", "libmine.so"]}
    told = {**program("values"), "profiles": {"old": PROFILE, "new": profile}}
    assert "needs the operator library libmine.so" in said(tmp_path, "program", told)
    assert said(tmp_path, "program", told, "--profile", "old").endswith("(exit code 0)")


def test_an_archive_that_was_too_large_for_the_folder_is_asked_for(tmp_path: Path) -> None:
    told = program("values", artifact={"file": None, "note": "900 MiB"})
    assert "name it with --artifact (900 MiB)" in said(tmp_path, "program", told)
    assert said(tmp_path, "program", told, "--artifact", "x.pt").endswith("(exit code 0)")


def test_the_controller_runs_it_under_the_limits_of_a_worker(tmp_path: Path) -> None:
    body = """
    import resource, socket
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE)]
    try: socket.socket()
    except PermissionError: limits.append("closed")
    return limits == [8 << 30, 1 << 30, "closed"] and 6""".strip()
    assert said(tmp_path, "program", program("values"), body=body).endswith("(exit code 0)")


def test_nothing_is_left_running(tmp_path: Path) -> None:
    """Also not what the archive itself has started."""
    body = """
    import subprocess
    with open(os.environ["STATE"] + "/pid", "w") as stream: stream.write(str(subprocess.Popen(["sleep", "60"]).pid))
    time.sleep(60)""".strip()
    assert said(tmp_path, "program", program("hang"), *SHORT, body=body).endswith("(exit code 1)")
    started = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    assert not started.exists() or started.read_text().split()[2] == "Z"  # dead, and its new parent has not looked yet


def test_an_interpreter_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    write_reproducer(tmp_path / "r", "operator", operator(), Tensors())
    assert "could not be started" in run_reproducer(tmp_path / "r", "/no/python", limits=LIMITS)[1]


def tensor(offset: int) -> list[Any]:
    return ["tensor", {"dtype": "uint8", "shape": [2], "stride": [1], "offset": offset, "nbytes": 2, "sha256": "x"}]


def test_only_the_bytes_that_are_pointed_to_are_taken_and_equal_ones_once() -> None:
    tensors = Tensors()
    given = ["list", [tensor(4), ["dict", [[["str", "k"], tensor(0)]]], tensor(6)]]
    taken = tensors.taken(given, b"aabbcccc")
    assert bytes(tensors.data) == b"ccaa"
    first, (_, ((_, second),)), third = taken[1]
    assert [spec[1]["offset"] for spec in (first, second, third)] == [0, 2, 0]
    assert given[1][0] == tensor(4)  # the record itself stays as it is


def test_equal_cases_make_equal_folders_and_an_old_one_leaves_nothing_behind(tmp_path: Path) -> None:
    archive = tmp_path / "a.pt"
    archive.write_bytes(b"archive")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "left.txt").write_text("of an interrupted run")
    for name in ("one", "two"):
        write_reproducer(tmp_path / name, "program", program("hang"), Tensors(), archive=archive)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert sorted(one) == ["case.json", "minimal.pt", "reproduce.py", "tensors.bin"]


def test_what_other_threads_tell_after_the_ending_changes_nothing_of_it() -> None:
    endings = importlib.import_module("harness.worker.reproduce.endings")
    ending = {"what": "error", "type": "ValueError", "phase": "call 0 of example"}
    lines = [{"phase": "load", "counts": True}, ending, {"phase": "call 1 of example in thread 2", "counts": True}]
    assert endings.ended(lines, False, 0, 1.0, 1.0)["phase"] == "call 0 of example"


@pytest.mark.parametrize(
    ("body", "expected", "wait_s"),
    [
        ("print(1.5)", ("end", "1.5\n"), 20),
        ("while True: pass", ("hang", ""), 2),
        ("import os; os.kill(os.getpid(), 11)", ("crash", ""), 20),
        ("import os; print('no', flush=True); os._exit(3)", ("error", "no\n"), 20),
    ],
)
def test_endings_are_told_apart(tmp_path: Path, body: str, expected: tuple[str, str], wait_s: float) -> None:
    (tmp_path / "snippet.py").write_text(f"print('torch', flush=True)\n{body}")
    assert run_snippet(tmp_path / "snippet.py", sys.executable, limits=LIMITS, wait_s=wait_s) == expected


def test_what_cannot_be_started_says_nothing(tmp_path: Path) -> None:
    assert run_snippet(tmp_path / "snippet.py", "/no/python", limits=LIMITS, wait_s=1) == ("unknown", "")


KINDS = sorted(PARTS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_make_one_program_of_the_standard_library(kind: str) -> None:
    tree = ast.parse(script_of(kind), feature_version=(3, 8))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.partition(".")[0] for name in imported} - {"torch"} <= sys.stdlib_module_names
    assert "torch" not in {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert "125: cannot be tested here" in (ast.get_docstring(tree) or "")  # the docstring and entry of the last part
    assert sum(isinstance(node, ast.If) for node in tree.body) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_part_hides_what_another_defines(kind: str) -> None:
    tree = ast.parse(script_of(kind))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names += [
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for name in ast.walk(node.targets[0])
        if isinstance(name, ast.Name)
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_help_is_good_and_names_the_options(kind: str, tmp_path: Path) -> None:
    (tmp_path / "reproduce.py").write_text(script_of(kind))
    done = subprocess.run([sys.executable, "reproduce.py", "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--deadline" in done.stdout
    assert "--child" not in done.stdout
