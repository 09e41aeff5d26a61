"""A whole search over stub releases that a fake installer builds: how many are built, and which ahead."""

import os
import sys
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec
from harness.core.releases import Ending, FirstBad, ReleaseAnswer
from harness.core.plan import Plan, Settings
from harness.environments.builder import EnvironmentBuilder
from harness.environments.pythons import OWN_PYTHON
from harness.artifacts.golden_records import GoldenStore
from harness.artifacts.fixture_folders import declared_in
from harness.search.first_bad import search_first_bad
from harness.search.first_bad_choice import most_builds, most_questions
from harness.store.run_folder import RunDir
from harness.machine.progress import Progress
from tests.programs import stub

RELEASES = tuple(f"2.{minor}.0" for minor in range(12))
# What uv leaves behind, with the stub as torch; the releases in the file "missing" cannot be had.
FAKE_UV = """#!/bin/sh
if [ "$1" = venv ]; then
    for folder; do :; done
    mkdir -p "$folder/bin" "$folder/lib/python{minor}/site-packages"
    ln -s "{python}" "$folder/bin/python"
    printf 'home = {home}\\ninclude-system-site-packages = false\\n' > "$folder/pyvenv.cfg"
    exit 0
fi
if [ "$6" = --dry-run ]; then
    if grep -qx "${{9#torch==}}" "{folder}/missing"; then echo "error: no wheel of $9"; exit 1; fi
    exit 0
fi
folder=$(dirname "$(dirname "$5")")
site="$folder/lib/python{minor}/site-packages"
version=${{6#torch==}}
echo "$version" >> "{folder}/installed"
if [ "$version" = 2.5.0 ]; then rm -f "{folder}/word"; fi
if [ "$version" = 2.8.0 ]; then touch "{folder}/word"; fi
if grep -qx "$version" "{folder}/missing"; then echo "error: no wheel of $version"; exit 1; fi
cp -r "{torch}" "$site/torch"
printf "__version__ = '%s'\\nON_IMPORT = None\\ngit_version = 'stub %s'\\ncuda = None\\n" "$version" "$version" \\
    > "$site/torch/version.py"
mkdir "$site/torch-$version.dist-info"
printf 'Name: torch\\nVersion: %s\\n' "$version" > "$site/torch-$version.dist-info/METADATA"
"""
MODEL = """
import torch
from fixtures.declare import Sample, model


@model("broken_since")
def broken_since():
    return Sample(torch.nn.Module(load="LOAD", since="SINCE", note="NOTE"), example=(1,))
"""


class World:
    """Where environments are built, and a model that does not load from one release on."""

    def __init__(self, folder: Path, since: str, missing: tuple[str, ...] = (), *, load: str = "raise_error") -> None:
        self.folder = folder
        python = os.path.realpath(sys.executable)
        torch = Path(stub.__file__).parent / "stub_env" / "torch"
        text = FAKE_UV.format(minor=OWN_PYTHON, python=python, home=os.path.dirname(python), folder=folder, torch=torch)
        self.uv = folder / "uv"
        self.uv.write_text(text)
        self.uv.chmod(0o755)
        (folder / "missing").write_text("".join(f"{release}\n" for release in missing))
        models = folder / "models"
        models.mkdir()
        (models / "models.py").write_text(
            MODEL.replace("SINCE", since).replace("LOAD", load).replace("NOTE", str(folder / "word"))
        )
        (folder / "word").touch()
        self.models = declared_in(str(models), folder)

    def search(self, build_limit: int | None = None) -> FirstBad:
        builder = EnvironmentBuilder(
            self.folder / "envs", progress=lambda name, text: None, uv=str(self.uv), free_disk_bytes=0
        )
        specs = {release: EnvSpec(name=f"torch {release}", release=release, python=OWN_PYTHON) for release in RELEASES}
        plan = Plan(
            settings=Settings(old=RELEASES[0], new=RELEASES[-1]),
            old=specs[RELEASES[0]],
            new=specs[RELEASES[-1]],
            device="cpu",
            direction="backward",
            models=self.models,
            planted_defects=(),
            groups={},
            scenarios=("alone",),
        )
        with RunDir.shared(self.folder / "store") as store:
            return search_first_bad(
                plan,
                specs,
                source="as named",
                store=store,
                builder=builder,
                progress=Progress(enabled=False),
                golden=GoldenStore(self.folder / "golden"),
                build_limit=build_limit,
            )

    def installed(self) -> list[str]:
        return (self.folder / "installed").read_text().split()


def between(releases: tuple[str, ...]) -> list[str]:
    return [release for release in releases if release not in (RELEASES[0], RELEASES[-1])]


@pytest.mark.slow
def test_no_more_is_built_than_halving_needs_and_the_reason_is_reported(tmp_path: Path) -> None:
    found = World(tmp_path, "2.4.0").search()
    assert (found.conclusion.ending, found.conclusion.first_bad) == (Ending.FOUND, "2.4.0")
    assert (found.kind, found.conclusion.last_good) == ("load_error", "2.3.0")
    assert len(between(found.built)) <= most_builds(12) == 4
    assert len(found.asked) <= most_questions(12)
    reasons = {item.release: item.reason for item in found.asked}
    assert "planted" in reasons["2.4.0"] and reasons["2.3.0"] == ""


@pytest.mark.slow
def test_with_builds_to_spare_the_likely_next_one_is_built_ahead_though_it_may_be_for_nothing(tmp_path: Path) -> None:
    """After 2.5.0 more releases would be left if it were good: so 2.8.0 is begun before 2.5.0 says that it is bad.

    It says so only once it has been: the installer of 2.5.0 takes away the word that that of 2.8.0 leaves.
    """
    world = World(tmp_path, "2.4.0", load="raise_once_there_is_word")
    found = world.search(build_limit=10)
    assert found.conclusion.first_bad == "2.4.0"
    asked = {item.release for item in found.asked}
    assert "2.8.0" in set(world.installed()) - asked
    assert set(found.unused) == set(found.built) - asked  # an unneeded one that was ended in time was never built
    assert all(item.build_s > 0 for item in found.asked)


def test_a_release_that_cannot_be_installed_is_untestable_and_asked_about_again_later(tmp_path: Path) -> None:
    world = World(tmp_path, "2.5.0", missing=("2.5.0",))
    found = world.search()
    assert (found.conclusion.ending, found.conclusion.one_of) == (Ending.ONE_OF, ("2.5.0", "2.6.0"))
    (missing,) = [item for item in found.asked if item.release == "2.5.0"]
    assert missing.answer is ReleaseAnswer.UNTESTABLE
    assert "no wheel of 2.5.0" in missing.reason
    assert "2.5.0" not in found.built
    (tmp_path / "missing").write_text("")
    again = world.search()
    assert (again.conclusion.ending, again.conclusion.first_bad) == (Ending.FOUND, "2.5.0")
    assert again.built == ("2.5.0",)
    assert {item.release for item in again.asked if not item.remembered} == {"2.0.0", "2.11.0", "2.5.0"}


@pytest.mark.parametrize("since", ["2.0.0", pytest.param("2.12.0", marks=pytest.mark.slow)])
def test_wrong_ends_end_the_search_before_anything_between_is_built(tmp_path: Path, since: str) -> None:
    world = World(tmp_path, since)
    found = world.search()
    assert found.conclusion.ending is (Ending.OLD_NOT_GOOD if since == "2.0.0" else Ending.NOT_BAD)
    assert set(world.installed()) == {"2.0.0", "2.11.0"}
