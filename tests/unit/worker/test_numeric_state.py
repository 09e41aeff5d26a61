"""The settings that change numbers have the same names in the schema and in both workers."""

import ast
import re
from pathlib import Path

import pytest

from harness.config.schema import NUMERICS
from harness.domain.probe import Deadline, ProbeRequest, ServingProfile
from harness.probing.request_files import wire_request
from harness.worker import wire

WORKER = Path(wire.__file__).parent
NATIVE = WORKER.parent / "native"


def keys_of(name: str) -> set[str]:
    tree = ast.parse((WORKER / "settings" / "numeric_state.py").read_text(), feature_version=(3, 8))
    (found,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    ]
    assert isinstance(found, ast.Dict)
    return {str(key.value) for key in found.keys if isinstance(key, ast.Constant)}


def test_python_worker_pins_and_reads_every_setting() -> None:
    assert keys_of("PROCESS_WIDE") | keys_of("THREAD_LOCAL") == keys_of("READ") == set(NUMERICS)
    assert not keys_of("PROCESS_WIDE") & keys_of("THREAD_LOCAL")


@pytest.mark.parametrize("name", NUMERICS)
def test_native_worker_knows_every_setting(name: str) -> None:
    source = (NATIVE / "settings" / "numeric_state.hpp").read_text()
    assert len(re.findall(f'"{name}"', source)) >= 2


def test_request_carries_what_the_profile_pins() -> None:
    profile = ServingProfile(numerics={"deterministic": True})
    deadline = Deadline(load_s=1, call_s=1, total_s=1)
    request = ProbeRequest(verb="run", side="old", environment="e", deadline=deadline, profile=profile)
    assert wire_request(request)["numerics"] == {"deterministic": True}
