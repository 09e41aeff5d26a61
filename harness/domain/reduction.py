"""What a program was reduced to: the few nodes that show the symptom by themselves."""

from dataclasses import dataclass
from enum import StrEnum

from harness.domain.divergence import Place, TracedNode


class Symptom(StrEnum):
    """What is looked for in a part of the program."""

    HANG = "hang"
    CRASH = "crash"
    ERROR = "error"
    MEMORY = "out of memory"
    VALUES = "values"
    LATENCY = "latency"


@dataclass(frozen=True, kw_only=True, slots=True)
class Culprit:
    """Nodes that show the symptom by themselves, as an archive of their own.

    Attributes:
        place: which run of which block they are in; ``keep``: their indices there.
        nodes: as the trace tells them, in the order of the run.
        artifact: of the archive, relative to the run; ``inputs`` the folder of its request.
        minimal: without any one of them the symptom was not seen; False: the search was ended before that was known.
        fails, runs: how often it showed in the new release, of how many runs.
        old, new: what became of it in either release, in words.
        ratio: new over old of its call, for latency.
    """

    place: Place = ()
    keep: tuple[int, ...]
    nodes: tuple[TracedNode, ...]
    artifact: str
    inputs: str
    minimal: bool = True
    fails: int = 1
    runs: int = 1
    old: str = ""
    new: str = ""
    ratio: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduction:
    """The search for the nodes whose optimised program shows a symptom.

    Attributes:
        nodes: how many the graph has; ``shows``: whether all of them, carved out, still show it.
        culprits: each shows it without the others; empty where none was found.
        rest_passes: whether all the nodes without the culprits are well; None: not asked.
        tests: how many subsets were asked; ``runs``: how often the symptom was looked for in the new release.
        untestable: subsets that no archive could be made of, or whose run said neither.
        waited_s: for how long a call of a subset was waited for before it was said to hang.
        ended: why the search ended early, empty where it did not.
        notes: what else a reader should know.
    """

    symptom: Symptom
    nodes: int
    shows: bool
    culprits: tuple[Culprit, ...] = ()
    rest_passes: bool | None = None
    tests: int = 0
    runs: int = 0
    untestable: int = 0
    waited_s: float | None = None
    ended: str = ""
    notes: tuple[str, ...] = ()
