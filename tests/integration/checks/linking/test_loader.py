"""What is read from symbol tables, against what the dynamic loader itself says of a real C++ server."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from harness.apps.link_check.link_check import link_check
from harness.core.linking import LinkOutcome
from harness.probing.runner import ZygoteRunner
from harness.project import Project
from tests.integration.conftest import NEW, OLD

pytestmark = pytest.mark.integration
PROJECT = Path(__file__).resolve().parents[4]


def _refused(binary: Path, python: str) -> set[str]:
    """Return the symbols that the loader does not find where the libraries of that torch come first."""
    (libraries,) = Path(python).parents[1].glob("lib/python*/site-packages/torch/lib")
    variables = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run(["ldd", "-r", str(binary)], env=variables, capture_output=True, text=True, check=False)
    assert f"libtorch_cpu.so => {libraries}" in done.stdout
    return set(re.findall(r"undefined symbol: (\S+)", done.stdout))


def test_what_misses_in_the_next_release_is_what_the_loader_does_not_find(
    old_workers: ZygoteRunner, old_python: str, new_python: str
) -> None:
    binary = old_workers.native["old"]
    checked = link_check(Project(folder=PROJECT), [binary], old=None, new=NEW)
    (server,) = checked.binaries
    assert checked.old == OLD
    assert OLD in server.fits
    assert NEW not in server.fits
    assert {missing.symbol for missing in server.missing} == _refused(binary, new_python)
    assert checked.outcomes[server.file] is LinkOutcome.CHANGE_SOURCE  # at::GetPrivateUse1HooksInterface() is gone
    twin = link_check(Project(folder=PROJECT), [binary], old=OLD, new=OLD)
    assert twin.binaries[0].missing == () == tuple(_refused(binary, old_python))
    assert twin.outcomes[server.file] is LinkOutcome.LINKS


@pytest.mark.parametrize("release", [OLD, NEW])
def test_the_index_is_what_the_libraries_of_a_release_export(release: str, old_python: str, new_python: str) -> None:
    from harness.apps.link_check.link_check import side

    folder = Path(old_python if release == OLD else new_python).parents[1]
    index, read = side(release), side(str(folder))
    assert (index.exported, index.defined, index.needs) == (read.exported, read.defined, read.needs)
    assert (index.versions, index.openmp) == (read.versions, read.openmp)
