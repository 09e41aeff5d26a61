"""One dependency at a time, over stub environments that a fake installer builds from exact lists."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from harness.domain.environment import EnvSpec
from harness.domain.releases import Ending, FirstBad, ReleaseAnswer
from harness.environments.builder import EnvironmentBuilder
from harness.environments.pythons import OWN_PYTHON
from harness.errors import ConfigError, SelectionError
from harness.models.fixture_folders import declared_in
from harness.report.text.first_bad import answer_words, render_first_bad
from harness.run.options import Options, settings_of
from harness.run.releases.dependencies import ALL, over_dependencies
from harness.run.releases.first_bad import Subject
from harness.system.progress import Progress
from tests.programs import stub

OLD = ("idna==1.0", "numpy==1.0", "ops==1.0", "zlib==1.0")
NEW = ("idna==2.0", "numpy==2.0", "ops==2.0", "zlib==2.0")
# What uv leaves behind, with the stub as torch. It tells of a bad release where everything of the file "bad" is asked for.
FAKE_UV = """#!{python}
import os, pathlib, shutil, sys
here = pathlib.Path({here!r})
words = sys.argv[1:]
if words[0] == "venv":
    folder = pathlib.Path(words[-1])
    (folder / "bin").mkdir(parents=True)
    (folder / "lib/python{minor}/site-packages").mkdir(parents=True)
    (folder / "bin/python").symlink_to({python!r})
    (folder / "pyvenv.cfg").write_text("home = {home}\\ninclude-system-site-packages = false\\n")
    sys.exit()
if "--dry-run" in words:  # it is only asked whether that could be installed
    sys.exit(any(word in (here / "missing").read_text().split() for word in words))
site = pathlib.Path(words[words.index("--python") + 1]).parent.parent / "lib/python{minor}/site-packages"
wanted = [word for word in words if "==" in word]
for word in wanted:
    if word in (here / "missing").read_text().split():
        sys.exit(f"error: there is no version of {{word}}")
    name, _, version = word.partition("==")
    info = site / f"{{name}}-{{version}}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {{name}}\\nVersion: {{version}}\\n")
shutil.copytree({torch!r}, site / "torch", ignore=shutil.ignore_patterns("__pycache__"))
version = "9.0.0" if set((here / "bad").read_text().split()) <= set(wanted) else "1.0.0"
text = f"__version__ = {{version!r}}\\nON_IMPORT = None\\ngit_version = 'stub'\\ncuda = None\\n"
(site / "torch/version.py").write_text(text)
"""
MODEL = """
import torch
from fixtures.declare import Sample, model


@model("m")
def m():
    return Sample(torch.nn.Module(other_answer=7, since="9.0.0"), example=(1,))
"""


class World:
    """Two environments; ``bad`` are the requirements that make an environment bad if all of them are in it."""

    def __init__(
        self,
        folder: Path,
        *bad: str,
        torches: tuple[str, str] = ("2.0.0", "2.1.0"),
        old: Iterable[str] = OLD,
        new: Iterable[str] = NEW,
        missing: Sequence[str] = (),
    ) -> None:
        self.folder, self.torches = folder, torches
        python = os.path.realpath(sys.executable)
        uv = folder / "uv"
        torch = Path(stub.__file__).parent / "stub_env" / "torch"
        home = os.path.dirname(python)
        uv.write_text(FAKE_UV.format(python=python, here=str(folder), minor=OWN_PYTHON, home=home, torch=str(torch)))
        uv.chmod(0o755)
        (folder / "bad").write_text(" ".join(bad) or "nothing==0")
        (folder / "missing").write_text(" ".join(missing))
        (folder / "models").mkdir()
        (folder / "models" / "models.py").write_text(MODEL)
        extras = dict(zip(torches, (list(old), list(new)), strict=True))
        tables = "".join(f'[tool.compat.environments."{name}"]\nextras = {told}\n' for name, told in extras.items())
        (folder / "pyproject.toml").write_text(f'[tool.compat.environments]\npython = "{OWN_PYTHON}"\n{tables}')
        stub.compiled_once(folder / "envs")
        self.builder = EnvironmentBuilder(folder / "envs", progress=lambda *_: None, uv=str(uv), free_disk_bytes=0)

    def search(
        self, what: str = ALL, *versions: str, ends: tuple[str, str] | None = None, environments: Sequence[str] = ()
    ) -> FirstBad:
        old, new = ends or self.torches
        overrides = {"old": old, "new": new, "device": "cpu"}
        options = Options(project=self.folder, overrides=overrides, environments=environments)
        table, settings = settings_of(options)
        (model,) = declared_in(str(self.folder / "models"), self.folder)
        subject = Subject(
            model=model,
            options=options,
            table=table,
            settings=settings,
            store=self.folder / "store",
            builder=self.builder,
        )
        return over_dependencies(subject, what, versions, Progress(enabled=False))


def checks(found: FirstBad) -> list[tuple[str, ReleaseAnswer, ReleaseAnswer]]:
    return [(check.what, check.expected, check.asked.answer) for check in found.checks]


GOOD, BAD = ReleaseAnswer.GOOD, ReleaseAnswer.BAD


def test_the_one_change_that_makes_it_bad_is_named_and_checked_both_ways(tmp_path: Path) -> None:
    found = World(tmp_path, "numpy==2.0").search()
    assert (found.conclusion.ending, found.conclusion.first_bad) == (Ending.FOUND, "numpy 1.0 -> 2.0")
    assert answer_words(found) == "first bad: numpy 1.0 -> 2.0 (structure); idna 1.0 -> 2.0 is good"
    assert checks(found) == [
        ("torch 2.1.0 with numpy 1.0", GOOD, GOOD),
        ("torch 2.0.0 with numpy 2.0", BAD, BAD),
    ]
    told = render_first_bad(found)
    assert told.count("as it should be") == 2
    logs = {path.name: path.read_text() for path in (tmp_path / "envs").glob("torch-2.1.0-*.log")}
    (resolved,) = [text for text in logs.values() if "--no-deps" not in text]  # the end; the steps are lists
    assert "torch==2.1.0" in resolved and len(logs) > 1
    assert "5 steps" not in told and "6 steps, each with one more change" in told


def test_torch_itself_takes_one_environment_to_tell(tmp_path: Path) -> None:
    found = World(tmp_path, "torch==2.1.0").search()
    assert found.conclusion.first_bad == found.rest_step == "torch 2.1.0 alone"
    assert found.built == ("torch 2.1.0 alone",)
    assert answer_words(found).startswith("torch itself: torch 2.1.0 alone is bad (structure)")
    assert found.command.endswith("bisect --model m --old 2.0.0 --new 2.1.0 --over releases")
    assert found.checks == ()


@pytest.mark.slow
def test_a_change_that_needs_the_new_torch_too_is_reported_as_such(tmp_path: Path) -> None:
    found = World(tmp_path, "torch==2.1.0", "zlib==2.0").search()
    assert found.conclusion.first_bad == "zlib 1.0 -> 2.0"
    assert checks(found) == [("torch 2.0.0 with zlib 2.0", BAD, GOOD)]  # the last good step was torch 2.1.0 without it
    assert "it takes something else of the new side, torch perhaps, as well" in " ".join(
        render_first_bad(found).split()
    )


@pytest.mark.slow
def test_a_version_that_the_installer_refuses_leaves_several_with_its_reason(tmp_path: Path) -> None:
    found = World(tmp_path, "numpy==2.0", missing=["numpy==1.5"]).search("numpy", "1.0", "1.5", "2.0")
    assert (found.conclusion.ending, found.conclusion.one_of) == (Ending.ONE_OF, ("numpy 1.5", "numpy 2.0"))
    (refused,) = [item for item in found.asked if item.answer is ReleaseAnswer.UNTESTABLE]
    assert "no version of numpy==1.5" in refused.reason


@pytest.mark.slow
def test_the_versions_of_one_are_searched_with_the_new_torch(tmp_path: Path) -> None:
    found = World(tmp_path, "numpy==2.0").search("numpy", "1.0", "1.5", "2.0")
    assert (found.conclusion.first_bad, found.conclusion.last_good) == ("numpy 2.0", "numpy 1.5")
    assert found.rest_step == "numpy 1.0"
    assert checks(found) == [("torch 2.0.0 with numpy 2.0", BAD, BAD)]


def test_one_that_is_not_to_blame_is_acquitted_in_one_environment(tmp_path: Path) -> None:
    found = World(tmp_path, "ops==2.0").search("NumPy", "1.0", "1.5", "2.0")
    assert found.conclusion.first_bad == found.rest_step == "numpy 1.0"
    assert answer_words(found).startswith("not numpy: with numpy 1.0")
    assert found.command.endswith("--over dependencies")
    assert found.built == ("numpy 1.0",)


@pytest.mark.slow
def test_two_environments_of_one_torch_are_told_apart_by_what_is_beside_it(tmp_path: Path) -> None:
    found = World(tmp_path, "ops==2.0", torches=("2.1.0", "2.1.0+cpu")).search()  # builds of one release
    assert found.conclusion.first_bad == "ops 1.0 -> 2.0"


@pytest.mark.slow
def test_ready_made_interpreters_are_ends_too_and_torch_goes_on_as_releases(tmp_path: Path) -> None:
    world = World(tmp_path, "torch==2.1.0")
    built = [
        world.builder.build(EnvSpec(name=name, release=name, python=OWN_PYTHON, extras=extras)).interpreter
        for name, extras in zip(world.torches, (OLD, NEW), strict=True)
    ]
    named = tuple(f"{name}={python}" for name, python in zip(("prod", "next"), built, strict=True))
    found = world.search(ends=("prod", "next"), environments=named)
    assert found.conclusion.first_bad == "torch 2.1.0 alone"
    assert found.command.endswith("bisect --model m --old 2.0.0 --new 2.1.0 --over releases")


@pytest.mark.slow
def test_where_all_is_well_nothing_is_built_between(tmp_path: Path) -> None:
    found = World(tmp_path).search()
    assert found.conclusion.ending is Ending.NOT_BAD
    assert found.built == ()


def test_what_does_not_differ_is_refused_with_what_does(tmp_path: Path) -> None:
    world = World(tmp_path, old=(*OLD, "same==1"), new=(*NEW, "same==1"))
    with pytest.raises(SelectionError, match="same is 1 on both sides"):
        world.search("same")
    with pytest.raises(SelectionError, match="neither side has a distribution numpi") as refused:
        world.search("numpi")
    assert '"numpy"' in str(refused.value)
    with pytest.raises(ConfigError, match="belongs to one distribution"):
        world.search(ALL, "1.0", "2.0")


def test_without_another_change_it_is_torch_and_nothing_is_searched(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="differ in nothing but torch"):
        World(tmp_path, old=OLD, new=OLD).search()
