"""What was tried on one artifact's way out of TorchScript; measured in ``migrate``, judged in ``judging``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.domain.comparison import OutputComparison
from harness.domain.models import InputSet
from harness.domain.probe import ModelResult, ProbeResult
from harness.tensors.trees import Tree


@dataclass(frozen=True, kw_only=True)
class Answers:
    """A program or package in one release.

    Attributes:
        release: its name.
        probe: of the whole process.
        load: how loading went; ``calls``: input set -> how its calls went.
        comparison: of the sets that answered with the golden outputs; None where none did.
        lists: whether it answers with lists where the golden outputs have tuples; they are compared as tuples.
        evidence: the probe's folder, as it is shown.
    """

    release: str
    probe: ProbeResult
    load: ModelResult
    calls: Mapping[str, ModelResult]
    comparison: OutputComparison | None = None
    lists: bool = False
    evidence: str = ""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One artifact.

    Attributes:
        release: name of the one that converts.
        stopped: why nothing was tried, with its kind; empty where something was.
        input_sets: of its requests; ``requests``: name -> tree of the arguments, of those to ``forward``.
        reset: the method that callers call before each request; None without one.
        example: the input set that it was converted with.
        conversion: the probe that converted it; ``evidence``: its folder, as it is shown.
        answers: of the program, the release that has converted it first; nothing where it was not converted.
        in_torchscript: whether the artifact itself, as TorchScript, answers otherwise in the release that converts it;
            None where nobody asked.
        package: the probe that compiled it; ``package_evidence``: its folder; ``packaged``: the package's answers.
    """

    model: str
    release: str
    stopped: tuple[str, str] = ("", "")
    input_sets: tuple[InputSet, ...] = ()
    requests: Mapping[str, Tree] = field(default_factory=dict)
    reset: str | None = None
    example: str = ""
    conversion: ProbeResult | None = None
    evidence: str = ""
    answers: tuple[Answers, ...] = ()
    in_torchscript: bool | None = None
    package: ProbeResult | None = None
    package_evidence: str = ""
    packaged: Answers | None = None

    def mark(self, name: str) -> Mapping[str, Any]:
        """Return a mark of the conversion, empty without one."""
        data = self.conversion.data.get(name, {}) if self.conversion is not None else {}
        return data if isinstance(data, Mapping) else {}
