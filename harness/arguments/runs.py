"""``compat``, ``env``, ``report`` and ``rerun``: runs, and what is made of them."""

import argparse

from harness.arguments.shared import add_baseline, add_models, add_out, add_policy, add_running, add_sides
from harness.domain.plan import CAPTURE_MODES, DEFAULT_SCENARIOS, RUNTIMES, SCENARIOS

REPORT_FORMATS = (
    *("badge", "console", "ctrf", "github", "html"),
    *("json", "junit", "markdown", "openmetrics", "trace"),
)
EXPLAIN_S = "120"


def add_compat(verb: argparse.ArgumentParser) -> None:
    """Add everything that a run can be told."""
    add_sides(verb)
    add_models(verb)
    verb.add_argument("--list", action="store_true", help="list the models and stop")
    add_running(verb, "--device", "--jobs")
    verb.add_argument("--init-threads", metavar="N", help="threads of the concurrent initialization")
    verb.add_argument(
        "--scenario",
        action="append",
        default=[],
        choices=(*SCENARIOS, "all"),
        metavar="NAME",
        help=f"{', '.join(SCENARIOS)}, or all; may be given again (default: {', '.join(DEFAULT_SCENARIOS)})",
    )
    verb.add_argument("--init-rounds", metavar="N", help="repeat each initialization N times: bounds a rare hang")
    verb.add_argument("--runtime", choices=RUNTIMES, help="who initializes: the C++ worker or the Python one")
    verb.add_argument("--capture-mode", choices=CAPTURE_MODES, help="of CUDA graphs (default: thread_local)")
    add_running(verb, "--profile", "--new-profile", "--deadline")
    verb.add_argument("--latency", choices=("off", "quick", "thorough"), help="how much the benchmark may spend")
    verb.add_argument(
        "--golden", nargs="?", const="golden", metavar="DIR", help="golden records in place of the old environment"
    )
    verb.add_argument("--allow-same-torch", action="store_true", default=None, help="show the noise; never green")
    verb.add_argument(
        "--rollback", action="store_const", const="probe", help="probe the rollback as well, not only read it"
    )
    verb.add_argument(
        "--explain",
        nargs="?",
        const=EXPLAIN_S,
        metavar="SECONDS",
        help=f"search for the cause of red cells, the gravest first, within SECONDS in all ({EXPLAIN_S}); 0: none",
    )
    add_policy(verb)
    add_baseline(verb)
    verb.add_argument("--resume", metavar="RUN", help="go on with an interrupted run ('last' is the newest)")
    add_out(verb)


def add_env(verb: argparse.ArgumentParser) -> None:
    """Add which releases."""
    verb.add_argument("releases", nargs="*", metavar="RELEASE", help="default: the configured pair")


def add_report(verb: argparse.ArgumentParser) -> None:
    """Add which run, and as what."""
    verb.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'")
    verb.add_argument(
        "--format",
        choices=REPORT_FORMATS,
        default="console",
        metavar="FORMAT",
        help=f"{', '.join(REPORT_FORMATS)} (default: console); html: the page; trace: for ui.perfetto.dev; "
        "github: annotations of a workflow",
    )
    verb.add_argument("--matrix", metavar="FILE", help="a matrix.json to show on the HTML page")
    add_baseline(verb)
    add_out(verb)


def add_rerun(verb: argparse.ArgumentParser) -> None:
    """Add which cell of which run."""
    verb.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'")
    verb.add_argument("cell", metavar="CELL_ID", help="as the report prints it")
    verb.add_argument("--latency", choices=("quick", "thorough"), help="another budget for a latency cell")
    add_policy(verb)
    add_out(verb)
