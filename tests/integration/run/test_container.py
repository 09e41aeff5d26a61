"""The image of ``Dockerfile``, built and run by what builds images here.

``TORCHSCRIPT_GATE_BASE`` names the base image where the default one cannot be pulled. From Debian alone:

    mmdebstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm base.tar
    alias buildah='buildah --storage-driver vfs'
    buildah from --name base scratch && buildah add base base.tar / && buildah commit base localhost/python-base
"""

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.workflows.steps import PROJECT

pytestmark = pytest.mark.slow
BUILDERS = (
    ("docker",),
    ("podman",),
    ("buildah", "--storage-driver", "vfs"),  # works inside a container, too
)
NAME = "localhost/torchscript-gate-tested"
BASE = os.environ.get("TORCHSCRIPT_GATE_BASE")
ENVIRON = {**os.environ, "BUILDAH_ISOLATION": "chroot"}


def run(*words: str, limit_s: float = 60) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=limit_s, env=ENVIRON)


def can_build(command: tuple[str, ...]) -> bool:
    return shutil.which(command[0]) is not None and run(*command, "info").returncode == 0


@pytest.fixture(scope="module")
def builder() -> Iterator[tuple[str, ...]]:
    """What has built the image."""
    command = next((each for each in BUILDERS if can_build(each)), None)
    if command is None:
        pytest.skip("neither docker, podman nor buildah works here")
    base = ("--build-arg", f"BASE={BASE}") if BASE else ()
    built = run(*command, "build", *base, "--tag", NAME, str(PROJECT), limit_s=600)
    if built.returncode != 0 and not BASE and ("pull" in built.stderr.lower() or "registry" in built.stderr):
        pytest.skip(f"the base image cannot be pulled ({built.stderr.splitlines()[-1]}): set TORCHSCRIPT_GATE_BASE")
    assert built.returncode == 0, built.stderr
    yield command
    run(*command, "rmi", "--force", NAME)


def in_image(builder: tuple[str, ...], *words: str, user: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a command in the image, with the example's models in ``/models``."""
    options = ["--volume", f"{PROJECT / 'examples' / 'models'}:/models:ro", *(["--user", user] if user else [])]
    if builder[0] != "buildah":
        return run(*builder, "run", "--rm", *options, f"--entrypoint={words[0]}", NAME, *words[1:])
    container = run(*builder, "from", NAME).stdout.strip()
    try:
        return run(*builder, "run", *options, container, "--", *words)
    finally:
        run(*builder, "rm", container)


def test_the_image_starts_the_gate(builder: tuple[str, ...]) -> None:
    asked = "{{.OCIv1.Config.Entrypoint}}" if builder[0] == "buildah" else "{{.Config.Entrypoint}}"
    kind = ("--type", "image") if builder[0] == "buildah" else ()
    assert run(*builder, "inspect", *kind, "--format", asked, NAME).stdout.strip() == "[torchscript-gate]"


def test_no_user_of_the_image_is_root_and_each_may_keep_environments(builder: tuple[str, ...]) -> None:
    for user, number in (("", "1000"), ("4711:4711", "4711")):
        kept = in_image(
            builder, "sh", "-c", 'id -u; mkdir -p "$TORCHSCRIPT_GATE_ENVS" "$UV_CACHE_DIR" && echo ok', user=user
        )
        assert kept.stdout.split() == [number, "ok"], kept.stderr


def test_the_gate_in_the_image_predicts_what_will_not_load(builder: tuple[str, ...]) -> None:
    broken = in_image(builder, "torchscript-gate", "inspect", "/models/projection.pt", "--new", "2.6.0")
    assert broken.returncode == 1
    assert "1 will not load" in broken.stdout
    assert in_image(builder, "torchscript-gate", "inspect", "/models/ranker.pt", "--new", "2.6.0").returncode == 0
