"""A process of one release that answers calls, and may be lost: what it lost is one word, and the next goes on."""

import contextlib
import json
import os
import select
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.machine.processes import reap, start

Call = dict[str, Any]
Answer = dict[str, Any]
ANSWER = Path(__file__).with_name("inside") / "answer.py"
ENDED, HUNG = "ended", "hung"
DEADLINE_S = 90.0
START_S = 120.0
MOST_LOST = 2
"""After so many of those sent at once, the others are not asked."""
UNASKED: Answer = {"missing": True}


@dataclass
class Session:
    """Answers of one interpreter; ``threads`` and ``variables`` tell its sessions apart, so that its noise is seen."""

    python: str
    threads: int
    variables: dict[str, str] = field(default_factory=dict)
    cpu: str = ""
    _process: "subprocess.Popen[bytes] | None" = None
    _rest: bytes = b""
    _sent: Sequence[Call] = ()

    def send(self, calls: Sequence[Call]) -> None:
        """Have calls answered; what they answer has to be received before the next are sent."""
        process = self._started()
        assert process.stdin is not None
        self._sent = calls
        with contextlib.suppress(BrokenPipeError):  # which is read from the other pipe
            process.stdin.write(json.dumps(calls).encode() + b"\n")
            process.stdin.flush()

    def receive(self) -> list[Answer]:
        """Return the answer of each call sent; ``{"lost": "ended"}`` or ``"hung"`` of one with which the process is gone."""
        answers: list[Answer] = []
        sent, lost = self._sent, 0
        while len(answers) < len(sent):
            assert self._process is not None
            answers.append(self._read(self._process, DEADLINE_S))
            if "lost" in answers[-1]:
                lost += 1
                if lost == MOST_LOST:
                    return answers + [UNASKED] * (len(sent) - len(answers))
                self.send(sent[len(answers) :])
        return answers

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            command = (self.python, "-s", str(ANSWER), str(self.threads))
            environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": str(self.threads), **self.variables}
            self._process = start(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
            )
            self._rest = b""
            process = self._process
            about = self._read(process, START_S)
            if "lost" in about:
                raise RuntimeError(f"{self.python} does not start {ANSWER}")
            self.cpu = about["cpu"]
        return self._process

    def _read(self, process: "subprocess.Popen[bytes]", deadline_s: float) -> Answer:
        assert process.stdout is not None
        while b"\n" not in self._rest:
            if not select.select([process.stdout], [], [], deadline_s)[0]:
                return self._lost(HUNG)
            part = os.read(process.stdout.fileno(), 1 << 20)
            if not part:
                return self._lost(ENDED)
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        answer: Answer = json.loads(line)
        return answer

    def _lost(self, how: str) -> Answer:
        self.close()
        return {"lost": how}

    def close(self) -> None:
        if self._process is not None:
            reap(self._process)
            self._process = None
