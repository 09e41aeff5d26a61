"""A controller to be killed: starts a zygote with a hanging child, and a benchmark that hangs; says so, and waits.

Usage: controller.py FOLDER INTERPRETER, in the project's root.
"""

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from harness.checks.hang import watchdog
from harness.core.environment import EnvSpec, Environment
from harness.core.plan import LatencyBudget
from harness.checks.latency.rounds import Round
from harness.probing.runner import ZygoteRunner
from tests.programs import stub


def main(folder: Path, interpreter: str) -> None:
    spec = EnvSpec(name="stub", interpreter=interpreter)
    environments = {"old": Environment(name="stub", interpreter=interpreter, spec=spec)}
    runner = ZygoteRunner(environments, folder / "probes", watchdog)
    artifact = stub.write_artifact(folder / "artifacts", "model", calls={"0": "hang_asleep"})
    benchmark = stub.run_request([artifact], stub.PATIENT, verb="benchmark")
    round_ = Round(
        environments, {"old": benchmark}, folder / "benchmark", number=0, budget=LatencyBudget(), deadline_s=1000.0
    )
    work = (
        lambda: runner(stub.run_request([artifact], stub.PATIENT)),
        lambda: round_.measure(["model"], lambda _: None),
    )
    for piece in work:
        threading.Thread(target=piece, daemon=True).start()

    def hanging() -> int:
        return sum('"phase":"call"' in path.read_text() for path in folder.rglob("events.jsonl"))

    assert stub.eventually(lambda: hanging() == 2, within_s=60.0)
    print("all at work", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
