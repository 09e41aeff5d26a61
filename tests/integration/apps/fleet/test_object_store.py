"""A store on S3, which moto's server is: it says what the folder says, and what fails there is labelled and mended later."""

import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.fleet import ShardDone
from harness.apps.fleet import shard as fleet_shard
from harness.apps.fleet.answer.merge import merge
from harness.apps.fleet.plan import CACHE, PlannedFleet, plan_fleet
from harness.apps.fleet.shard import run_shard
from harness.apps.fleet.stores.sources import RemoteStore
from harness.project import Project
from harness.store import codec
from harness.machine.progress import Progress
from tests.programs.planting import free_port
from tests.integration.apps.fleet.test_fleet import fleet_of, options, statuses, with_few_planted_defects, write_store

s3fs: Any = pytest.importorskip("s3fs", reason="nox -s full installs it, with moto")
pytestmark = [pytest.mark.integration, pytest.mark.slow]

QUIET = Progress(enabled=False)
SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDKEY",
    "AWS_SECRET_ACCESS_KEY": "planted-secret",
    "AWS_SESSION_TOKEN": "planted-token",
}
EXPIRED = (
    b'<?xml version="1.0"?><Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>'
)


class Bucket:
    """The bucket of the test, on a server that can be told to refuse and to go away."""

    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.address, self.process = f"http://127.0.0.1:{port}", process
        self.files: Any = None

    def connect(self) -> None:
        s3fs.S3FileSystem.clear_instance_cache()
        self.files = s3fs.S3FileSystem()
        self.files.mkdir("bucket")

    def fill(self, folder: Path) -> None:
        for path in sorted(item for item in folder.rglob("*") if item.is_file()):
            self.files.put_file(str(path), f"bucket/models/{path.relative_to(folder)}")

    def refuse_unknown_keys(self) -> None:
        self._authorize_after("0")

    def allow_all(self) -> None:
        self._authorize_after("inf")

    def _authorize_after(self, calls: str) -> None:
        to = f"{self.address}/moto-api/reset-auth"
        request = urllib.request.Request(to, calls.encode(), {"Content-Type": "text/plain"}, method="POST")
        urllib.request.urlopen(request, timeout=10).close()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    port = free_port()
    command = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    made = Bucket(port, process)
    for name, value in {
        **SECRETS,
        "AWS_ENDPOINT_URL": made.address,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(made.address, timeout=10).close()
                break
            except OSError:
                time.sleep(0.1)
        made.connect()
        yield made
    finally:
        process.kill()
        process.wait(30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, old_python: str) -> Path:
    return write_store(tmp_path_factory.mktemp("models"), old_python, "ads/ranker_a", "search/ranker_b", "search/half")


@pytest.fixture
def asked(old_python: str, new_python: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(fleet_shard, "make_plan", with_few_planted_defects)
    return options(old_python, new_python, 'scenarios=["alone"]')


def planned_on(name: str, into: Path, asked: Project) -> PlannedFleet:
    planned = plan_fleet(asked, name, into=into, manifest=None, within_s=None, progress=QUIET)
    shutil.rmtree(into / CACHE, ignore_errors=True)  # as on another machine than that which planned
    return planned


def done_after_first_fetch(
    planned: PlannedFleet, asked: Project, what: Any, monkeypatch: pytest.MonkeyPatch
) -> ShardDone:
    """Run all, and let something happen as soon as one artifact has come."""
    fetch = RemoteStore.local
    seen: list[Path] = []

    def local(store: RemoteStore, listed: Any) -> Path:
        path = fetch(store, listed)
        if not seen:
            seen.append(path)
            what()
        return path

    with monkeypatch.context() as patch:
        patch.setattr(RemoteStore, "local", local)
        return run_shard(asked, planned, progress=QUIET)


def answer_of(planned: PlannedFleet, asked: Project) -> bytes:
    """The answer without the name of the store, and without the commands that name a file in a folder."""
    answer = merge(planned, asked)[0].answer
    causes = tuple(replace(item, cause=replace(item.cause, commands=())) for item in answer.causes)
    return codec.canonical(replace(answer, store="", causes=causes))


def texts_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()


def test_a_bucket_says_what_the_folder_says_and_no_file_has_the_credentials(
    bucket: Bucket, folder: Path, asked: Project, tmp_path: Path
) -> None:
    local, (done,) = fleet_of(folder, tmp_path / "local", asked, 1)
    assert done.made == 3
    bucket.fill(folder)
    planned = planned_on("s3://bucket/models", tmp_path / "s3", asked)
    assert planned.plan.units == local.plan.units
    parts = [run_shard(asked, planned, shard=(at, 2), progress=QUIET) for at in (1, 2)]
    assert sum(part.made for part in parts) == 3
    assert answer_of(planned, asked) == answer_of(local, asked)
    found = [path for path, text in texts_below(tmp_path) for secret in SECRETS.values() if secret.encode() in text]
    assert found == []


def test_an_object_that_changes_or_goes_after_the_plan_is_labelled_and_mended_by_the_next_run(
    bucket: Bucket, folder: Path, asked: Project, tmp_path: Path
) -> None:
    bucket.fill(folder)
    planned = planned_on("s3://bucket/models", tmp_path / "s3", asked)
    bucket.files.put_file(str(folder / "search/ranker_b.pt"), "bucket/models/ads/ranker_a.pt")
    bucket.files.rm("bucket/models/search/half.pt")
    done = run_shard(asked, planned, progress=QUIET)
    assert (done.made, sorted(fault.label for fault in done.faults)) == (1, ["spurious-changed", "spurious-vanished"])
    # The one that came waits for what stands for its program.
    assert set(statuses(merge(planned, asked)[0].answer).values()) == {None}
    bucket.fill(folder)
    again = run_shard(asked, planned, progress=QUIET)
    assert (again.known, again.made, again.faults) == (1, 2, ())
    local, _ = fleet_of(folder, tmp_path / "local", asked, 1)
    assert answer_of(planned, asked) == answer_of(local, asked)


def test_a_store_that_fails_in_mid_run_leaves_finished_results_and_labels_the_rest(
    bucket: Bucket, folder: Path, asked: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.fill(folder)
    cases: tuple[tuple[Callable[[], Any], str, Callable[[], Any] | None], ...] = (
        (lambda: bucket.files.rm("bucket", recursive=True), "spurious-vanished", lambda: bucket.files.mkdir("bucket")),
        (bucket.refuse_unknown_keys, "spurious-forbidden", bucket.allow_all),
        (bucket.process.kill, "spurious-unreachable", None),
    )
    for number, (what, label, undo) in enumerate(cases):
        planned = planned_on("s3://bucket/models", tmp_path / f"fleet_{number}", asked)
        done = done_after_first_fetch(planned, asked, what, monkeypatch)
        assert (done.made, {fault.label for fault in done.faults}) == (1, {label}), label
        assert len(done.faults) == 2 and {fault.tries for fault in done.faults} == {2}
        answer = merge(planned, asked)[0].answer
        assert answer.decision.value != "UPGRADE OK" and answer.exit_code != 0
        assert [status for status in statuses(answer).values()].count(None) == 2
        if undo is not None:
            undo()
            bucket.fill(folder)
            assert run_shard(asked, planned, progress=QUIET).made == 2
    found = [path for path, text in texts_below(tmp_path) for secret in SECRETS.values() if secret.encode() in text]
    assert found == []


class Refusing(http.server.BaseHTTPRequestHandler):
    """S3 as it answers whose token has expired."""

    def do_GET(self) -> None:
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(EXPIRED)))
        self.end_headers()
        self.wfile.write(EXPIRED)

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        pass


def test_an_expired_token_is_labelled_for_every_artifact_and_none_is_judged(
    bucket: Bucket, folder: Path, asked: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.fill(folder)
    planned = planned_on("s3://bucket/models", tmp_path / "s3", asked)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
        s3fs.S3FileSystem.clear_instance_cache()
        done = run_shard(asked, planned, progress=QUIET)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert {(fault.label, "has expired" in fault.text) for fault in done.faults} == {("spurious-forbidden", True)}
    assert (len(done.faults), done.made) == (3, 0)
    assert merge(planned, asked)[0].answer.decision.value == "NOTHING TESTED"
    assert not os.path.exists(tmp_path / "s3" / "runs")
