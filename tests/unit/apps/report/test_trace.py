"""What a run's folder tells of its processes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.hang import Evidence, Frame, HangKind, HangProof, ThreadActivity, ThreadStack
from harness.core.outcome import Outcome
from harness.core.probe import ProbeResult, Span
from harness.apps.report.trace import read_trace
from harness.environments.native import NativeBuild
from harness.store import codec
from harness.store.run_folder import RunDir
from tests.unit.builders.stages import Runner, effects

REQUEST: dict[str, Any] = {
    "verb": "run",
    "runs": [{"artifact": {"model": name}} for name in ("a", "b", "c", "d")],
    "script": {"threads": [[], [], []]},
    "declaration": None,
}


def keep(run: Path, key: str, begin_ns: int, *, request: object = REQUEST, evidence: Evidence | None = None) -> Path:
    folder = run / "probes" / key
    folder.mkdir(parents=True)
    outcome = Outcome.HANG if evidence is not None else Outcome.COMPLETED
    spans = (Span(phase="load", begin_ns=begin_ns, end_ns=begin_ns + 5, model="a"),)
    result = ProbeResult(key=key, side="old", outcome=outcome, directory=str(folder), spans=spans, evidence=evidence)
    (folder / "result.json").write_bytes(codec.canonical(result))
    (folder / "request.json").write_text(json.dumps(request))
    return folder


def test_probes_stand_in_the_order_in_which_they_began_with_what_they_were_asked(tmp_path: Path) -> None:
    keep(tmp_path, "late", 200)
    declared: dict[str, Any] = {"verb": "export", "runs": [], "script": None, "declaration": {"name": "a"}}
    keep(tmp_path, "early", 100, request=declared)
    trace = read_trace(tmp_path)
    assert trace.run == tmp_path.name
    assert [(item.name, item.title) for item in trace.processes] == [
        ("probes/early", "old: export a"),
        ("probes/late", "old: run 4 models in 3 threads"),
    ]


@pytest.mark.parametrize(
    "request_", [{"runs": 5}, {"runs": [{}]}, {"runs": ["x"]}, {"script": []}, {"declaration": 1}, [], "x", None]
)
def test_a_request_that_is_none_of_ours_costs_no_more_than_its_title(tmp_path: Path, request_: object) -> None:
    keep(tmp_path, "odd", 1, request=request_)
    (process,) = read_trace(tmp_path).processes
    assert process.title.startswith("old")


def test_threads_of_a_hang_are_paired_with_their_stacks_by_the_kernels_id(tmp_path: Path) -> None:
    seen = ThreadActivity(tid=7, thread=0, model="a", phase="call", waits_for="a lock")
    stacks = (
        ThreadStack(tid=7, frames=(Frame(function="lock", file="libc.so.6"), Frame(function="f", file="m.py", line=3))),
        ThreadStack(tid=8, name="pt_pool"),
    )
    proof = HangProof(kind=HangKind.BLOCKED, silent_s=2.0, window_s=1.0, threads=(seen,))
    keep(tmp_path, "hang", 1, evidence=Evidence(proof=proof, stacks=stacks))
    (process,) = read_trace(tmp_path).processes
    assert process.hang == "blocked" and process.outcome is Outcome.HANG
    first, second = process.samples
    assert (first.thread, first.words) == (0, "a call: waits for a lock")
    assert first.frames == ("lock (libc.so.6)", "f (m.py:3)")
    assert (second.thread, second.words) == (None, "pt_pool")


def test_processes_of_a_benchmark_are_read_from_their_event_logs(tmp_path: Path) -> None:
    folder = tmp_path / "benchmark" / "round-0-new"
    folder.mkdir(parents=True)
    begin = {"ev": "begin", "ns": 10, "phase": "load", "model": "a", "thread": 0, "ident": 1, "tid": 1}
    end = {"ev": "end", "ns": 30, "phase": "load", "model": "a", "thread": 0, "cpu_ns": 5}
    (folder / "events.jsonl").write_text("\n".join(map(json.dumps, (begin, end))) + "\ntorn")
    (process,) = read_trace(tmp_path).processes
    assert (process.name, process.side, process.title) == ("benchmark/round-0-new", "new", "benchmark round-0-new")
    assert [(span.begin_ns, span.end_ns) for span in process.spans] == [(10, 30)]


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (keep(tmp_path, "damaged", 1) / "result.json").write_text("{")
    folder = keep(tmp_path, "whole", 2)
    (folder / "request.json").write_text("not JSON")
    assert [process.title for process in read_trace(tmp_path).processes] == ["old: process"]
    assert read_trace(tmp_path / "nowhere").processes == ()


def test_what_the_run_has_compiled_is_a_process_of_its_own(tmp_path: Path) -> None:
    keep(tmp_path, "probe", 200)
    runner = Runner(lambda _: pytest.fail("nothing is probed"))
    booking = replace(effects(runner), run_dir=RunDir(tmp_path))
    booking.book_compilation("new", "the C++ worker of torch 2.6.0", NativeBuild(binary=None, seconds=2.0, begin_ns=9))
    booking.book_compilation("old", "the C++ worker of torch 2.1.2", NativeBuild(binary=None, cached=True))
    compiled, probe = read_trace(tmp_path).processes
    assert compiled.title == "new: compile the C++ worker of torch 2.6.0" and probe.name == "probes/probe"
    assert compiled.spans == (Span(phase="compile", begin_ns=9, end_ns=2_000_000_009),)
    assert runner.compiled == [compiled]
