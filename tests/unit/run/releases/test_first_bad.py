"""What may be asked of the search for the first bad release, up to where the first environment would be built."""

import shlex
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.parser import parser
from harness.core.errors import ConfigError, SelectionError
from harness.run.options import Options, known_models, settings_of, started_by
from harness.run.releases.first_bad import _line, bisect_command, one_model, specs_of, subject_of, with_ends
from harness.machine.progress import Progress

PROJECT = Path(__file__).resolve().parents[4]


def line(options: Options, *releases: str) -> tuple[tuple[str, ...], str]:
    subject = subject_of(options, Progress(enabled=False), model="dlrm", selected=None, ends=releases)
    names, source, notes = _line(releases, subject)
    assert notes == ()
    return names, source


def options(*, old: str = "", new: str = "", environments: tuple[str, ...] = (), **more: object) -> Options:
    ends = {name: text for name, text in (("old", old), ("new", new)) if text}
    return Options(project=PROJECT, overrides=ends, environments=environments, **more)  # type: ignore[arg-type]


def test_named_releases_are_written_in_full_and_their_first_and_last_are_the_ends() -> None:
    assert line(options(), "2.1.2", "2.5.1", "2.3", "2.6") == (("2.1.2", "2.3.0", "2.5.1", "2.6.0"), "as named")
    assert line(options(), "2.6", "2.3.1", "2.1.2")[0] == ("2.6.0", "2.3.1", "2.1.2")


def test_ends_may_be_named_beside_the_releases() -> None:
    assert line(options(old="2.1.2", new="2.6"), "2.3.1")[0] == ("2.1.2", "2.3.1", "2.6.0")


def test_interpreters_may_be_among_the_releases_and_need_the_others_named() -> None:
    named = options(environments=("prod=/opt/prod/bin/python",))
    assert line(named, "prod", "2.3.1", "2.6.0")[0] == ("prod", "2.3.1", "2.6.0")
    alone = options(old="prod", new="2.6.0", environments=("prod=/opt/prod/bin/python",))
    with pytest.raises(ConfigError, match="--releases"):
        line(alone)


def test_environments_get_one_python_and_their_own_libraries() -> None:
    asked = options(environments=("prod=/opt/prod/bin/python",), libraries=("prod=/ops/libx.so", "torchvision"))
    table, settings = settings_of(with_ends(asked, ("prod", "2.3.1", "2.6.0")))
    specs = specs_of(("prod", "2.3.1", "2.6.0"), asked, table, settings)
    assert specs["prod"].libraries == ("/ops/libx.so", "torchvision")
    assert specs["2.3.1"].libraries == ("torchvision",)
    assert specs["2.3.1"].python == specs["2.6.0"].python is not None
    with pytest.raises(ConfigError, match="--env prod: it is none of the releases"):
        specs_of(("2.3.1", "2.6.0"), options(environments=("prod=/opt/prod/bin/python",)), table, settings)


def test_one_model_is_searched_for() -> None:
    _, settings = settings_of(options())
    known = known_models(options(), settings).models
    assert one_model(options(), known, "dlrm").name == "dlrm"
    assert one_model(options(expression="anchor_detector"), known, None).name == "anchor_detector"
    with pytest.raises(SelectionError, match="name it with --model"):
        one_model(options(), known, None)
    with pytest.raises(SelectionError, match="dlrm"):
        one_model(options(), known, "drlm")


def test_the_command_between_the_neighbours_says_which_model_and_how_it_is_run() -> None:
    words = (
        "bisect",
        "--over",
        "releases",
        "--model",
        "m",
        "--fixtures",
        "my zoo",
        "--set=jobs=1",
        "--builds",
        "3",
        "--out",
        "d",
    )
    interpreters = ("--env", "a=/a/python", "--env=b=/b/python", "--env", "c=/c/python")
    told = bisect_command("m", "a", "b", options(arguments=(*words, *interpreters)))
    end = "--model m --old a --new b --fixtures 'my zoo' --set=jobs=1 --env a=/a/python --env=b=/b/python"
    assert told.endswith(f"bisect {end}")


def test_the_command_between_the_neighbours_can_be_typed() -> None:
    words = (
        "--project",
        "/p q",
        "bisect",
        "--over",
        "releases",
        "--artifacts",
        "a.pt",
        "b.pt",
        "--deadline",
        "5",
        "--profile",
        "fast",
    )
    libraries = ("--library", "c=x.so", "--library", "a=y.so", "--library", "torchvision")
    told = bisect_command("m", "a", "b", options(arguments=(*words, *libraries)), releases=("a", "b", "c"))
    parsed = parser().parse_args(shlex.split(told)[len(started_by()) :])
    assert (parsed.project, parsed.verb, parsed.old, parsed.new) == (options().project.absolute(), "bisect", "a", "b")
    here = {name: str(Path(name).absolute()) for name in ("a.pt", "b.pt", "y.so")}
    assert parsed.artifacts == [here["a.pt"], here["b.pt"]]
    assert parsed.libraries == [f"a={here['y.so']}", "torchvision"]
    assert vars(parsed)["deadlines.floor_s"] == "5"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--releases", "2.1.2"), "one release is no range"),
        (("--releases", "2.1.2", "2.1.2"), "both ends are 2.1.2"),
        (("--releases", "2.1.2", "2.six", "2.6.0"), "2.six"),
        (("--old", "2.1.2", "--new", "2.3.1", "--releases", "2.6.0"), "2.6.0 does not lie between 2.1.2 and 2.3.1"),
        (("--releases", "2.1.2", "2.6.0", "--builds", "-1"), "--builds -1"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    store = ("--out", str(tmp_path / "store"))
    assert main(["--project", str(PROJECT), "bisect", "--over", "releases", "--model", "dlrm", *arguments, *store]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ") and said in error
    assert not (tmp_path / "store").exists()
