"""Sessions. ``nox -s compat`` is the main job; ``python3 noxfile.py -s compat`` is the same on a bare machine.

Run as a script, this file makes ``.venv`` with nox and uv in it if nox is not there, and hands over.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:
    print(f"error: the gate needs Python 3.11 or later, and this is {sys.version.split()[0]}", file=sys.stderr)
    sys.exit(2)

PROJECT = Path(__file__).resolve().parent
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


def become_nox() -> None:
    """Replace this process by nox in ``.venv``, made on first use from the ``dev`` dependency group."""
    home = PROJECT / ".venv"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        if importlib.util.find_spec("ensurepip") is None:
            print("error: this Python has no ensurepip; on Debian: apt-get install python3-venv", file=sys.stderr)
            sys.exit(2)
        text = "making .venv and installing nox and uv there with pip, once; about half a minute"
        print(text, file=sys.stderr, flush=True)
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *PYPROJECT["dependency-groups"]["dev"]], check=True)
        (home / "ready").touch()
    os.chdir(PROJECT)
    os.execv(python, [str(python), "-m", "nox", "-f", __file__, *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    become_nox()

import nox  # noqa: E402  here only where this file is not a script
from nox.command import CommandFailed  # noqa: E402
from packaging.version import Version  # noqa: E402  which nox needs too

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests", "lint"]
nox.options.error_on_missing_interpreters = True

RELEASES = PYPROJECT["tool"]["compat"]["releases"]
ENVIRONMENTS = "TORCHSCRIPT_GATE_ENVS"
# Rooms whose tests start no process that they wait for.
ROOMS = (
    *("apps/doctor", "artifacts", "checks/outputs", "checks/prediction", "checks/startup", "config", "core", "report"),
    *("serving", "store", "verdict"),
)
QUICK = ("tests/architecture", *(f"tests/unit/{room}" for room in ROOMS))
IN_ORDER = ("pytest", "--dist", "loadfile", "--no-loadscope-reorder")  # that of tests/conftest.py
PARALLEL = (*IN_ORDER, "-n", "auto")
# A third of the time of tests with processes is waiting: for a deadline, a window of silence, a page.
ONE_MORE = (*IN_ORDER, "-n", str(len(os.sched_getaffinity(0)) + 1))


def _prepare(session: nox.Session, *groups: str) -> None:
    """Install the controller's dependencies, never torch, and the named dependency groups."""
    # Images of containers often set it: then each of hundreds of processes compiles all that it imports.
    session.env["PYTHONDONTWRITEBYTECODE"] = ""
    requirements = [*PYPROJECT["project"]["dependencies"], "uv"]
    for group in groups:
        requirements += PYPROJECT["dependency-groups"][group]
    session.install("-q", *requirements)


def _keep_in_the_checkout(session: nox.Session) -> None:
    """Let tests build environments in the checkout, where CI caches them, and nothing in this user's cache."""
    session.env[ENVIRONMENTS] = os.environ.get(ENVIRONMENTS) or str(PROJECT / ".nox" / "environments")


def _harness(session: nox.Session, verb: str, *arguments: str) -> None:
    """Run the gate, and end with its exit code: nox itself makes 1, which means BLOCKED, of every other than 0."""
    _prepare(session)
    try:
        session.run("python", "-m", "harness", verb, *arguments, *session.posargs)
    except CommandFailed as failed:
        raise SystemExit(getattr(failed, "return_code", None) or 1) from None  # which older ones do not say


def _find_chromium(session: nox.Session) -> None:
    """Install Chromium from the system's packages for the tests of the page, where root may and it is not there."""
    known = any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    if known or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return  # without one those tests fail and say what to install
    for arguments in (("update", "-qq"), ("install", "-y", "-qq", "--no-install-recommends", "chromium")):
        session.run("apt-get", *arguments, external=True, success_codes=[0, 100])  # 100: any error of its own


@nox.session
def compat(session: nox.Session) -> None:
    """Judge the upgrade: nox -s compat -- --old 2.1.2 --new 2.6.0 -k 'dlrm or bert'."""
    _harness(session, "compat")


@nox.session
def gate(session: nox.Session) -> None:
    """Judge a finished run again, by another policy, without torch: nox -s gate -- last --policy policy.toml."""
    _harness(session, "gate")


@nox.session
def doctor(session: nox.Session) -> None:
    """Say whether this machine can run the gate, before anything is built: nox -s doctor -- 2.1.2 2.6.0."""
    _harness(session, "doctor")


@nox.session
def matrix(session: nox.Session) -> None:
    """Load what every release exports in every other one: nox -s matrix -- --releases 2.1.2 2.6.0 2.15.0."""
    _harness(session, "matrix")


@nox.session
def migrate(session: nox.Session) -> None:
    """Say which artifacts can leave TorchScript: nox -s migrate -- --artifacts models/ --new 2.15.0."""
    _harness(session, "migrate")


@nox.session
def pack(session: nox.Session) -> None:
    """Write golden bundles, to be judged where the old release is not: nox -s pack -- --old 2.1.2 --into bundles."""
    _harness(session, "pack")


@nox.session
def bisect(session: nox.Session) -> None:
    """Find whose doing a red cell is, or since when: nox -s bisect -- --artifact ranker.pt --over releases."""
    _harness(session, "bisect")


@nox.session
def mitigate(session: nox.Session) -> None:
    """Find the settings that mitigate a red cell: nox -s mitigate -- --model dlrm --old 2.1.2 --new 2.6.0."""
    _harness(session, "mitigate")


@nox.session
@nox.parametrize("torch", RELEASES)
def env(session: nox.Session, torch: str) -> None:
    """Build the environment of one torch release: nox -s "env(torch='2.6.0')"."""
    _harness(session, "env", torch)


@nox.session
def quick(session: nox.Session) -> None:
    """Run the tests of what only computes, within 2 minutes: no torch, no browser, no process that is waited for."""
    _prepare(session, "test")
    chosen = "not integration and not gpu and not slow and not browser"
    session.run(*PARALLEL, "-m", chosen, *QUICK, *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests: pure and process tests, then those on two real releases, then those that time something."""
    _prepare(session, "test")
    _keep_in_the_checkout(session)
    _find_chromium(session)
    with ThreadPoolExecutor(1) as beside:  # they come over the network, and the tests compute
        environments = beside.submit(session.run, "python", "-m", "harness", "env", silent=True)
        session.run(*ONE_MORE, "-m", "not integration and not gpu and not slow", "tests", *session.posargs)
    environments.result()
    real = ("--keep-zygotes", "tests/integration", *session.posargs)
    session.run(*ONE_MORE, "-m", "integration and not slow and not timed", *real)
    session.run("pytest", "-m", "integration and timed and not slow", *real)


@nox.session(python=["3.11", "3.12", "3.13"])
def pythons(session: nox.Session) -> None:
    """Run the tests that need neither torch nor a browser on every Python that the gate runs on."""
    _prepare(session, "test")
    chosen = "not integration and not gpu and not slow and not browser"
    session.run(*PARALLEL, "-m", chosen, "tests", *session.posargs)


@nox.session
def full(session: nox.Session) -> None:
    """Run everything, the slow tests too: every genuine break, the whole zoo."""
    _prepare(session, "test", "calibrate", "docs", "stores", "clusters")
    _keep_in_the_checkout(session)
    _find_chromium(session)
    session.run("python", "-m", "harness", "env", *RELEASES)
    session.run("pytest", "-m", "not gpu", "tests", *session.posargs)


@nox.session
def gpu(session: nox.Session) -> None:
    """Make the GPU record, then run the tests that need a GPU: nox -s gpu -- --minutes 25.

    GATE_OLD_PYTHON and GATE_NEW_PYTHON name the interpreters of both.
    """
    _prepare(session, "test")
    sides = {side: os.environ.get(f"GATE_{side.upper()}_PYTHON") for side in ("old", "new")}
    given = [word for side, python in sides.items() if python for word in ("--env", f"{side}={python}")]
    # What came of the models is in the record; the tests run whatever that was.
    session.run("python", "-m", "tests.gpu.record", *given, *session.posargs, success_codes=[0, 1, 4])
    session.run("pytest", "-p", "no:xdist", "-m", "gpu", "tests/gpu")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure: nox -s bench -- NAME, e.g. atlas or bisect; CONTRIBUTING.md has them all."""
    _prepare(session, "test", "clusters")  # Ray for `faults fleet_kills`
    _find_chromium(session)
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def calibrate(session: nox.Session) -> None:
    """Calibrate the detectors on seeded faults: nox -s calibrate -- numbers | failures | latency | static | page."""
    _prepare(session, "calibrate")
    session.run("python", "-m", "benchmarks.calibrate", *session.posargs)


@nox.session
def corpus(session: nox.Session) -> None:
    """Hold predictions and statuses against plain torch on architectures of libraries: nox -s corpus -- --hours 3."""
    _prepare(session, "test")
    session.run("python", "-m", "tests.corpus", *session.posargs)


@nox.session
def evidence(session: nox.Session) -> None:
    """Measure again what the code relies on: nox -s evidence -- gil --env PYTHON ...; without --env write the page."""
    _prepare(session, "test")
    session.run("python", "-m", "benchmarks.evidence", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site of the documentation into site/; that of releases side by side: nox -s docs -- v0.2.0 v0.1.0."""
    session.install("-q", *PYPROJECT["dependency-groups"]["docs"])
    site, tags = PROJECT / "site", sorted(session.posargs, key=Version, reverse=True)
    if not tags:
        _build_site(session, PROJECT, site)
        return
    with tempfile.TemporaryDirectory() as folder:
        for tag in tags:
            source = Path(folder, tag)
            session.run("git", "-C", str(PROJECT), "archive", "--output", f"{source}.tar", tag, external=True)
            shutil.unpack_archive(f"{source}.tar", source)
            _build_site(session, source, site / tag, "-A", f"versions={' '.join(tags)}", "-A", f"docs_of={tag}")
    shutil.copytree(site / tags[0], site / "latest", dirs_exist_ok=True)
    (site / "index.html").write_text('<!doctype html><meta http-equiv="refresh" content="0; url=latest/">\n')


def _build_site(session: nox.Session, source: Path, site: Path, *words: str) -> None:
    """Build the pages of a checkout without a warning."""
    strict = ("-q", "-W", "--keep-going", "-b", "html")
    session.run("python", "-m", "sphinx", *strict, *words, "-c", str(source / "docs"), str(source), str(site))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types and spelling."""
    _prepare(session, "dev", "test", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("codespell")
