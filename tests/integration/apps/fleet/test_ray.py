"""A plan on a Ray cluster of two nodes on this machine, one of which is killed: the answer is that of one machine."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.apps.fleet.clusters import Cluster
from tests.programs.planting import free_port
from tests.integration.apps.fleet.test_fleet import answered, planned_by_command, write_store
from tests.integration.gate import PROJECT, harness

pytest.importorskip("ray", reason="nox -s full installs it")
pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAMES = ("ads/ranker_a", "ads/ranker_b", "ads/ranker_c", "search/ranker_d", "search/ranker_e", "search/half")
DONE_S = 400.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    folder = Path("/tmp") / f"ray-{os.getpid()}"  # sockets of Ray lie in it, whose paths may not be long
    made = None
    try:
        made = Cluster(folder)
        yield made
    finally:
        if made is not None:
            made.end()
        shutil.rmtree(folder, ignore_errors=True)


def test_two_nodes_of_which_one_is_lost_come_to_the_answer_of_one_machine(
    cluster: Cluster, tmp_path: Path, old_python: str, new_python: str
) -> None:
    store = write_store(tmp_path / "store", old_python, *NAMES)
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    planned_by_command(store, alone)
    shutil.copytree(alone, spread)
    process = subprocess.Popen(
        (sys.executable, "-m", "harness", "fleet", "run", str(spread), "--on", cluster.address, "--parts", "4"),
        cwd=PROJECT,
        env=cluster.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = ""
    with process:
        for line in process.stdout or ():
            said += line
            if "parts on 2 nodes" in line:
                time.sleep(3.0)
                cluster.lose_second()
    assert process.returncode == 0, said
    assert re.search(r"part \d: node \w+ is lost .*; begun again elsewhere", said), said
    assert "0 known before, 6 made now" in said
    assert harness("fleet", "run", str(alone), timeout_s=DONE_S).returncode == 0
    assert answered(spread) == answered(alone)
    assert [path for path in cluster.temporary.rglob("*") if path.is_file()] == []
    again = harness("fleet", "run", str(spread), "--on", cluster.address)  # asks nobody
    assert again.returncode == 0 and "6 known before, 0 made now" in again.stdout
    (tmp_path / "old").symlink_to(Path(old_python).parent.parent)
    given = (
        "--env",
        f"old={tmp_path / 'old' / 'bin' / 'python'}",
        "--env",
        f"new={new_python}",
        "--into",
        str(tmp_path / "given"),
    )
    assert harness("fleet", "plan", str(store), *given, "--latency", "off").returncode == 0
    (tmp_path / "old").unlink()
    refused = subprocess.run(
        (sys.executable, "-m", "harness", "fleet", "run", str(tmp_path / "given"), "--on", cluster.address),
        cwd=PROJECT,
        env=cluster.env,
        capture_output=True,
        text=True,
        timeout=DONE_S,
    )
    assert refused.returncode in (2, 3), refused.stdout + refused.stderr
    assert re.search(r"node \w+ ends with \d: .*" + re.escape(str(tmp_path / "old")), refused.stderr, re.DOTALL)


def test_a_cluster_that_is_not_there_is_an_error_that_names_it(tmp_path: Path, old_python: str) -> None:
    store = write_store(tmp_path / "store", old_python, NAMES[0])
    planned_by_command(store, tmp_path / "fleet")
    done = harness("fleet", "run", str(tmp_path / "fleet"), "--on", f"127.0.0.1:{free_port()}")
    assert done.returncode == 2 and "--on 127.0.0.1:" in done.stderr and "Traceback" not in done.stderr
