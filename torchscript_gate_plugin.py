"""The pytest plugin of the TorchScript upgrade gate: what every pytest of an environment loads that has the gate.

So this module imports nothing but pytest, and lies outside of ``harness``: a project may have a package of that name.
What works lies in ``harness.plugin``, imported where the option is given or the fixture is used.
"""

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.plugin.fixture import Checker

NAME = "torchscript-compat"
"""The first part of every node id of ours."""
WHAT, WORDS = "torchscript_compat", "torchscript_compat_options"
_CHOSEN = pytest.StashKey[tuple[str, ...]]()
_FOLDER = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what names a run, and the options of all runs that are started here."""
    group = parser.getgroup(NAME, "TorchScript upgrade gate")
    group.addoption(
        f"--{NAME}",
        dest=WHAT,
        metavar="RUN_OR_MANIFEST",
        help="a finished run ('last', its name or folder), or TorchScript files to run now (a file, a folder, a "
        "models.toml): one item per model and check",
    )
    group.addoption(
        f"--{NAME}-options",
        dest=WORDS,
        metavar="WORDS",
        help="options of compat for runs that are started here, e.g. '--old 2.1.2 --new 2.6.0 --latency off'",
    )
    parser.addini(WORDS, type="args", default=[], help=f"the same as --{NAME}-options, which comes after it")


def pytest_configure(config: pytest.Config) -> None:
    """Keep node ids of ours, as a summary prints them, from being taken for files.

    Raises:
        UsageError: there are some, and no run is named.
    """
    ours = (NAME, os.path.relpath(config.rootpath / NAME, config.invocation_params.dir))
    chosen = [word for word in config.args if word.partition("::")[0] in ours]
    if config.getoption(WHAT) is not None:
        config.stash[_CHOSEN] = tuple(NAME + word[len(word.partition("::")[0]) :] for word in chosen)
        config.args[:] = [word for word in config.args if word not in chosen]
    elif any("::" in word for word in chosen):
        raise pytest.UsageError(f"{chosen[0]}: whose item is this? give --{NAME}=last, or another run")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Make or find the run, once, before workers of xdist start; each of those gets the folder."""
    config = session.config
    what = config.getoption(WHAT)
    if what is None:
        return
    worker_input = getattr(config, "workerinput", None)
    if worker_input is not None:
        config.stash[_FOLDER] = Path(worker_input[WHAT])
        return
    say = _verbosity(config) >= 0
    make = None if config.option.collectonly else lambda options: _part("runs").made(options, say=say)
    config.stash[_FOLDER] = _part("runs").folder_of(what, _words(config), project=config.rootpath, make=make)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the folder of the run to a worker of xdist."""
    folder = node.config.stash.get(_FOLDER, None)
    if folder is not None:
        node.workerinput[WHAT] = str(folder)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Add the items of the run to the session's own."""
    outcome: Any = yield
    config = collector.config
    folder = config.stash.get(_FOLDER, None) if isinstance(collector, pytest.Session) else None
    if folder is not None and outcome.excinfo is None:
        suite = _part("items").suite_of(collector, NAME, folder, config.stash[_CHOSEN])
        outcome.get_result().result.append(suite)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what the run decided, whichever of its items were selected, and where its page lies."""
    folder = config.stash.get(_FOLDER, None)
    if folder is not None:
        terminalreporter.section(NAME)
        for line in _part("items").last_words(folder):
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def torchscript_compat(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Checker":
    """Judge one artifact between two releases of torch: ``torchscript_compat.check(artifact, inputs, old=, new=)``."""
    config = request.config
    words = _words(config)
    if "PYTEST_XDIST_WORKER" in os.environ:
        words = ["--jobs", "2", *words]  # other workers run at the same time
    folder = tmp_path_factory.mktemp(NAME, numbered=True)
    say = _verbosity(config) > 0  # captured with what the test writes
    checker: Checker = _part("fixture").Checker(folder, words, project=config.rootpath, say=say)
    return checker


def _words(config: pytest.Config) -> list[str]:
    """Return the options of runs: those of the project's configuration, then those typed."""
    typed = config.getoption(WORDS)
    return [*config.getini(WORDS), *_part("runs").split(typed or "")]


def _verbosity(config: pytest.Config) -> int:
    return int(config.getoption("verbose", 0))


def _part(name: str) -> Any:
    """Return a module of the gate.

    Raises:
        UsageError: another package of that name hides it.
    """
    home = Path(__file__).resolve().parent
    own = next(one for one in ("torchscript_gate", "harness") if (home / one).is_dir())  # of a wheel, of a checkout
    package, beside = importlib.import_module(own), home / own
    if Path(package.__file__ or "").resolve().parent != beside:
        raise pytest.UsageError(
            f"{NAME}: the package {own} in {package.__file__} hides the gate's own in {beside}; rename one of them, "
            "or use the command line"
        )
    return importlib.import_module(f"{own}.plugin.{name}")
