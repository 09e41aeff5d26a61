"""What the gate says of deprecation, seen again in the release: plain torch loads an archive and calls each operator."""

import subprocess
from pathlib import Path

import pytest

from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.core.environment import EnvSpec
from harness.checks.migration.deprecation import OPERATORS, deprecated_in, release_facts
from tests.integration.gate import PROJECT

pytestmark = pytest.mark.integration
SCRIPT = Path(__file__).with_name("deprecated.py")


def printed(interpreter: str) -> dict[str, str]:
    """What was printed below each heading."""
    done = subprocess.run(
        [interpreter, str(SCRIPT)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=300,
    )
    parts = [part.partition("\n") for part in done.stderr.split("== ")[1:]]
    return {name: text for name, _, text in parts}


@pytest.mark.slow
@pytest.mark.parametrize("release", ["2.6.0", "2.11.0", "2.15.0"])
def test_a_release_warns_of_what_the_tables_say_and_of_nothing_else(release: str) -> None:
    builder = EnvironmentBuilder(default_environment_root(), progress=lambda name, text: None, uv=find_uv())
    found = printed(builder.build(EnvSpec(name=release, release=release, python="3.11")).interpreter)
    (load, *_) = release_facts(release, release)
    kind, _, words = load.text.partition(": ")
    assert (f"{kind}: {words}" in found["load"]) if words else ("deprecated" not in found["load"])
    assert set(found) == {"load", "aten::relu", *OPERATORS}
    known = deprecated_in(release, list(OPERATORS))
    for name in OPERATORS:
        if "GONE" not in found[name]:
            assert ("deprecated" in found[name]) is (name in known), name
    assert "deprecated" not in found["aten::relu"]
