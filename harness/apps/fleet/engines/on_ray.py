"""``fleet run --on CLUSTER``: a plan on a Ray cluster. A node does a part at a time; what it finds is kept at once.

Ray starts the processes, and says which nodes are there and which are lost. Who does what is the business of
``assignment.py``, and what a node does that of ``node.py``: a call of this package, which Ray's workers must import.
"""

import contextlib
import math
import re
import secrets
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from harness.apps.fleet.engines import node
from harness.apps.fleet.engines.assignment import Assignment, Part, parts_of
from harness.apps.fleet.engines.jobs import limit_s
from harness.apps.fleet.plan import STORE, PlannedFleet
from harness.apps.fleet.results import FleetResults
from harness.apps.fleet.units import seconds_of
from harness.core.errors import ConfigError, EnvironmentUnavailable, ExitCode
from harness.core.fleet import Fault, FleetPlan, FleetUnit, ShardDone
from harness.core.text import counted
from harness.machine.progress import Progress
from harness.project import CONFIG, Project
from harness.report.json.results import dump
from harness.store import codec

AUTO = "auto"
INSTALL = "pip install 'torchscript-gate[ray]'"
PARTS_A_NODE, RUNS_A_PART = 4, 5
"""A node has so many parts, that the slowest does not keep all waiting, unless a part took less than so many times what
each run costs beside its artifacts."""
ASK_S, LISTEN_S, FORGET_S = 1.0, 10.0, 30.0
ADDRESS = re.compile(r"(ray://)?(?P<host>[^/:]+|\[[^]]+\])(:(?P<port>\d+))?")
CLIENT_PORT = 10001
"""Of ``ray://`` addresses that name none."""
TOLD = 200
FINISHED = (ExitCode.COMPATIBLE, ExitCode.INCONCLUSIVE)
REFUSED = (ExitCode.CONFIGURATION, ExitCode.ENVIRONMENT, ExitCode.INTERNAL, ExitCode.INTERRUPTED)
"""What a node refuses once it would refuse always: the call ends with the first of these."""


def run_on_ray(
    options: Project, planned: PlannedFleet, *, address: str, parts: int | None, trust: bool = False, progress: Progress
) -> ShardDone:
    """Run what is not known of a plan on a Ray cluster, and keep its results.

    ``address`` is Ray's: ``auto`` for the cluster that runs here, ``HOST:PORT``, ``ray://HOST:PORT``. ``parts``: None
    for as many as suit the nodes; ``trust``: whether programs that make requests run on nodes, where the store is no
    folder. Raises ``ConfigError``: Ray is not installed, there is no such cluster, or a node refuses the plan;
    ``EnvironmentUnavailable``: a release cannot be provisioned on a node.
    """
    plan = planned.plan
    results = FleetResults(planned.folder / STORE)
    known = results.known([unit.key for unit in plan.units])
    open_units = [unit for unit in plan.units if unit.key not in known]
    if not open_units:
        return ShardDone(units=len(plan.units), known=len(known), made=0)
    with _Cluster(address) as cluster:
        driver = _Driver(options, planned, results, cluster, progress, trust=trust)
        driver.run(open_units, parts)
    made = results.known([unit.key for unit in open_units])
    left = [unit.key for unit in open_units if unit.key not in made]
    faults = tuple(fault for key in left if (fault := results.fault(key)) is not None)
    return ShardDone(units=len(plan.units), known=len(known), made=len(made), faults=faults)


class _Cluster:
    """A connection to Ray."""

    def __init__(self, address: str) -> None:
        try:
            import ray  # noqa: PLC0415  an extra, and seconds to import
        except ImportError as error:
            raise ConfigError(f"--on {address} needs Ray, which is not installed", INSTALL) from error
        self.ray: Any = ray
        self._address = address

    def __enter__(self) -> Self:
        """Connect. Raises ``ConfigError``: there is no such cluster."""
        self._require_listener()
        try:
            self.ray.init(address=self._address, log_to_driver=False, logging_level="error")
        except self.ray.exceptions.AuthenticationError as error:
            raise ConfigError(
                f"--on {self._address}: the cluster wants a token that this call does not have",
                "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN where it is not in ~/.ray/auth_token",
            ) from error
        except (ConnectionError, ValueError, RuntimeError, TimeoutError, self.ray.exceptions.RayError) as error:
            why = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise ConfigError(
                f"--on {self._address}: {why}",
                "name a cluster that runs, or auto for that of this machine",
            ) from error
        return self

    def __exit__(self, *_exception: object) -> None:
        """Disconnect; what still runs for this call is ended by Ray."""
        self.ray.shutdown()

    def _require_listener(self) -> None:
        """Raise ``ConfigError`` where nobody listens at an address: Ray itself waits for minutes."""
        address = ADDRESS.fullmatch(self._address)
        if address is None or self._address == AUTO:
            return
        try:
            socket.create_connection(
                (address["host"].strip("[]"), int(address["port"] or CLIENT_PORT)), LISTEN_S
            ).close()
        except OSError as error:
            raise ConfigError(
                f"--on {self._address}: {error.strerror or error}",
                "name the address that `ray start --head` has printed",
            ) from error

    def nodes(self) -> list[str]:
        """Return the nodes that are there and may work: the head of a cluster is often declared to have no CPUs."""
        return sorted(
            str(item["NodeID"]) for item in self.ray.nodes() if item["Alive"] and item["Resources"].get("CPU", 0) > 0
        )

    def on(self, name: str, what: Any, *arguments: Any) -> Any:
        """Start something on a node and return what stands for its answer; it goes nowhere else."""
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id=name, soft=False)
        task = self.ray.remote(what).options(num_cpus=0, max_retries=0, scheduling_strategy=strategy)
        return task.remote(*arguments)


class _Driver:
    def __init__(
        self,
        options: Project,
        planned: PlannedFleet,
        results: FleetResults,
        cluster: _Cluster,
        progress: Progress,
        *,
        trust: bool,
    ) -> None:
        self._trust = trust
        self._plan, self._results = planned.plan, results
        self._cluster, self._progress = cluster, progress
        self._fleet = codec.digest([str(planned.folder), planned.plan.store, planned.plan.settings])[:12]
        self._project = options.folder
        config = options.folder / CONFIG
        self._config = config.read_bytes() if config.is_file() else b""
        self._why: dict[str, str] = {}
        self._call = secrets.token_hex(4)

    def run(self, units: Sequence[FleetUnit], parts: int | None) -> None:
        nodes = self._cluster.nodes()
        count = parts if parts is not None else parts_for(units, self._plan.run_s, len(nodes))
        work = Assignment(parts_of(units, count), self._plan.run_s)
        self._progress.note(f"{len(units)} units in {len(work.waiting)} parts on {counted(len(nodes), 'node')}")
        self._progress.stage("parts", len(work.waiting))
        at_work: dict[Any, tuple[Part, str]] = {}
        while not work.is_done:
            nodes = self._cluster.nodes()
            busy = {name for _, name in at_work.values()}
            for name in nodes:
                part = work.take(name, nodes, time.monotonic()) if name not in busy else None
                if part is not None:
                    at_work[self._cluster.on(name, node.do, self._order(part))] = (part, name)
            if not at_work:
                if not nodes or work.waiting:
                    raise ConfigError("no node of the cluster is left", "start nodes, then repeat the command")
                continue
            self._progress.tick(f"{len(at_work)} at work")
            done, _ = self._cluster.ray.wait(list(at_work), num_returns=1, timeout=ASK_S)
            for reference in done:
                part, name = at_work.pop(reference)
                for number in self._ended(work, part, reference, name):
                    self._cancel(work, at_work, number)
        for unit in work.given_up:
            if unit.key not in work.known and self._results.fault(unit.key) is None:
                self._results.add_fault(Fault(key=unit.key, label="spurious-lost", text=self._why.get(unit.key, "")))
        with contextlib.suppress(self._cluster.ray.exceptions.RayError):  # what is left on a lost node is its own
            forgetting = [self._cluster.on(name, node.forget, self._fleet) for name in self._cluster.nodes()]
            self._cluster.ray.wait(forgetting, num_returns=len(forgetting), timeout=FORGET_S)

    def _order(self, part: Part) -> node.Order:
        plan: FleetPlan = replace(self._plan, units=part.units)
        return node.Order(
            fleet=self._fleet,
            name=f"{self._call}-{part.number}",
            plan=dump(plan).encode(),
            project=str(self._project),
            config=self._config,
            limit_s=limit_s(plan, 1),
            trust=self._trust,
        )

    def _ended(self, work: Assignment, part: Part, reference: Any, name: str) -> list[int]:
        """Take over what a part has made; return the parts that nobody needs any more."""
        errors = self._cluster.ray.exceptions
        try:
            answer = self._cluster.ray.get(reference)
        except errors.TaskCancelledError:
            work.cancelled(part.number)
            return []
        except errors.RayTaskError as error:  # ours, or of the node's disk
            self._say(part, f"failed on node {name[:8]}: {error.cause or error}")
            return work.ended(part.number, (), time.monotonic(), self._cluster.nodes())
        except errors.RayError as error:
            again = "begun again elsewhere" if work.lost(part.number) else "given up"
            self._say(part, f"node {name[:8]} is lost ({type(error).__name__}); {again}")
            return []
        made = self._take_over(answer, part)
        if answer.code in REFUSED and not made:
            kind = EnvironmentUnavailable if answer.code == ExitCode.ENVIRONMENT else ConfigError
            raise kind(f"node {name[:8]} ends with {answer.code}: {answer.said}", "mend that, then repeat the command")
        if answer.code not in FINISHED:
            self._say(part, f"on node {name[:8]} it ended with {answer.code}: {answer.said[-TOLD:]}")
        self._progress.step(f"part {part.number} on node {name[:8]}: {len(made)} of {len(part.units)} have a result")
        return work.ended(part.number, made, time.monotonic(), self._cluster.nodes())

    def _say(self, part: Part, text: str) -> None:
        """Tell what went wrong with a part, and remember it for what may never have a result."""
        short = " ".join(text.split())[:TOLD]
        self._progress.note(f"part {part.number}: {short}")
        self._why.update({unit.key: short for unit in part.units})

    def _take_over(self, answer: node.Answer, part: Part) -> set[str]:
        with tempfile.TemporaryDirectory(prefix="fleet-part-") as folder:
            node.unpack(answer, Path(folder))
            if answer.files:
                self._results.absorb(Path(folder))
        return self._results.known([unit.key for unit in part.units])

    def _cancel(self, work: Assignment, at_work: dict[Any, tuple[Part, str]], number: int) -> None:
        for reference, (part, _) in list(at_work.items()):
            if part.number == number:
                self._cluster.ray.cancel(reference, force=True)
                del at_work[reference]
                work.cancelled(number)


def parts_for(units: Sequence[FleetUnit], run_s: float, nodes: int) -> int:
    worthwhile = math.floor(seconds_of(units, run_s) / (RUNS_A_PART * max(run_s, 1.0)))
    return min(len(units), max(nodes, min(PARTS_A_NODE * nodes, worthwhile)))
