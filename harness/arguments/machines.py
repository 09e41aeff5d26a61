"""``doctor`` and ``matrix``: one machine, and many releases."""

import argparse

from harness.arguments.shared import add_models, add_running, add_sides
from harness.domain.plan import RUNTIMES

MATRIX_FORMATS = ("console", "json", "markdown")
DOCTOR_FORMATS = ("console", "json")


def add_doctor(verb: argparse.ArgumentParser) -> None:
    """Add which releases this machine is to be fit for."""
    verb.add_argument("named", nargs="*", metavar="RELEASE", help="releases, or NAMEs of --env (default: the pair)")
    add_sides(verb)
    verb.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    add_running(verb, "--device", "--jobs")
    verb.add_argument("--runtime", choices=RUNTIMES, help="who initializes: the C++ worker or the Python one")
    verb.add_argument("--format", choices=DOCTOR_FORMATS, default="console", help="text, or all of it for a program")


def add_matrix(verb: argparse.ArgumentParser) -> None:
    """Add which releases, and which models."""
    verb.add_argument(
        "--releases",
        dest="named",
        nargs="+",
        default=[],
        metavar="RELEASE",
        help="releases, or the NAMEs of --env, in this order (default: the configured ones)",
    )
    verb.add_argument(
        "--golden-in",
        metavar="RELEASE",
        help="whose answers given artifacts are compared with (default: --old of the configuration)",
    )
    add_models(verb)
    add_running(verb, "--device", "--jobs", "--profile", "--deadline")
    verb.add_argument("--fresh", action="store_true", help="ask again what earlier runs with the same --out found")
    verb.add_argument("--format", choices=MATRIX_FORMATS, default="console", help="console: the map as text")
    verb.add_argument("--out", metavar="DIR", help="results that later runs go on with (default: reports/matrix)")
