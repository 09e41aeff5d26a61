"""What was tried on one artifact's way out of TorchScript; measured in ``migrate``, judged in ``verdict.migration``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.artifacts.tensors.trees import Tree
from harness.checks.migration.parts import Part
from harness.core.comparison import OutputComparison
from harness.core.measurement import LatencyMeasurement
from harness.core.migration import Dimension
from harness.core.models import Artifact, InputSet
from harness.core.outcome import UNCLEAR, Outcome
from harness.core.probe import ModelResult, ProbeResult

COMES_THROUGH = 9
"""The standing of a model that nothing stops on its way."""


@dataclass(frozen=True, kw_only=True)
class Loader:
    """A release: the name that the user gave it, the one by which the runner knows it, and its torch."""

    name: str
    side: str
    torch: str = ""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """A program or package in one release.

    ``comparison``: of the sets that answered with the golden outputs; None where none did; ``lists``: whether it
    answers with lists where the golden outputs have tuples; they are compared as tuples.
    """

    release: str
    probe: ProbeResult
    load: ModelResult
    calls: Mapping[str, ModelResult]
    comparison: OutputComparison | None = None
    lists: bool = False
    evidence: str = ""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A package beside others in one C++ process.

    Attributes:
        scenario: name of the initialization; ``runners``: calls that each package may answer at once.
        rounds: those that say something about the release; ``failed_rounds``: how many of them it failed in.
        served_otherwise: where it answered otherwise while it served than before: how many calls.
        comparison: of the first copy that answers otherwise than the golden outputs; None where none does.
        mitigation: the settings under which its whole group comes through, where a member failed; empty without any.
        beside: the member of the group that failed so, where it is another one: the process is to blame, no model.
    """

    scenario: str
    runners: int
    result: ModelResult
    exit_detail: str = ""
    rounds: int = 1
    failed_rounds: int = 0
    served_otherwise: Mapping[str, Any] | None = None
    comparison: OutputComparison | None = None
    mitigation: tuple[str, ...] = ()
    beside: str = ""
    evidence: str = ""

    @property
    def is_no_choice(self) -> bool:
        """Whether the release has no such way of serving: its loader takes no number of runners."""
        failure = self.result.failure
        return self.runners > 1 and failure is not None and failure.type == "Unsupported"

    @property
    def fails(self) -> bool:
        """Whether it failed, or answered otherwise than it should; a machine that was too busy to tell is neither."""
        if self.result.outcome in UNCLEAR or self.is_no_choice:
            return False
        return self.result.failed or self.served_otherwise is not None or self.comparison is not None

    @property
    def comes_through(self) -> bool:
        """Whether it is known to answer well; where there is no such way of serving, nothing speaks against it."""
        return self.is_no_choice or (self.result.outcome is Outcome.COMPLETED and not self.fails)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One artifact.

    Attributes:
        release: name of the one that converts; ``torch``: its version, empty where nobody knows.
        input_sets: of its requests; ``requests``: name -> tree of the arguments, of those to ``forward``.
        reset: the method that callers call before each request; None without one.
        parts: one for each program, where one is not enough; then all that follows is theirs. ``part``: which it is.
        example: the input set that it was converted with.
        walked: whether it was converted by walking its graph, in place of torch's own converter.
        answers: of the program, the release that has converted it first; nothing where it was not converted.
        batch: sizes that every request has and the program takes alone; ``other_batch``: the artifact itself, called
            with another one as TorchScript in the release that converts it; None where nobody asked.
        in_torchscript: whether the artifact itself, as TorchScript, answers otherwise in the release that converts it;
            None where nobody asked.
        served: the package beside others; ``timed``: beside the artifact as TorchScript, and ``slower_by`` how much
            slower a call may be, as a share of it.
    """

    model: str
    release: str
    torch: str = ""
    stopped: tuple[str, str] = ("", "")
    input_sets: tuple[InputSet, ...] = ()
    requests: Mapping[str, Tree] = field(default_factory=dict)
    reset: str | None = None
    parts: tuple["Tried", ...] = ()
    part: Part | None = None
    example: str = ""
    walked: bool = False
    conversion: ProbeResult | None = None
    evidence: str = ""
    program: Artifact | None = None
    answers: tuple[Answers, ...] = ()
    batch: tuple[Dimension, ...] = ()
    other_batch: ProbeResult | None = None
    in_torchscript: bool | None = None
    package: ProbeResult | None = None
    package_evidence: str = ""
    compiled: Artifact | None = None
    packaged: Answers | None = None
    in_cpp: Answers | None = None
    served: tuple[Served, ...] = ()
    timed: LatencyMeasurement | None = None
    slower_by: float = 0.0

    @property
    def each(self) -> tuple["Tried", ...]:
        """The parts; itself where it has none."""
        return self.parts or (self,)

    def mark(self, name: str) -> Mapping[str, Any]:
        """Return a mark of the conversion, empty without one."""
        data = self.conversion.data.get(name, {}) if self.conversion is not None else {}
        return data if isinstance(data, Mapping) else {}
