"""Which symptom a call shows, which nodes of a block a reduction chooses from, and what a run of some of them says."""

import re
from collections.abc import Mapping

from harness.core.diagnosis import Place, Symptom, TracedNode
from harness.core.outcome import Outcome
from harness.core.probe import ModelResult, ProbeResult
from harness.core.text import error_line, error_words

SHOWN_BY = {
    Outcome.HANG: Symptom.HANG,
    Outcome.CRASH: Symptom.CRASH,
    Outcome.RUNTIME_ERROR: Symptom.ERROR,
    Outcome.OUT_OF_MEMORY: Symptom.MEMORY,
    Outcome.COMPLETED: Symptom.VALUES,
}
# They come along where a kept node takes what they answer; what sets an attribute of the module stays with that.
CARRIED = ("prim::Constant", "prim::GetAttr", "prim::SetAttr")
# They run a graph of their own; others have blocks, and their runs are numbered.
GRAPHS_WITHIN = ("prim::CallFunction", "prim::CallMethod", "prim::fork")
MOST_RUNS = 4
NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


def symptom_of(result: ModelResult) -> Symptom | None:
    """Return what a failing model shows; one that completed has answered otherwise. None: it was not called."""
    return SHOWN_BY.get(result.outcome)


def block_nodes(nodes: Mapping[Place, TracedNode], place: Place) -> tuple[TracedNode, ...]:
    """Return the nodes of one run of a block that can be kept or removed, in the order of the run."""
    return tuple(node for at, node in nodes.items() if at[:-1] == place and node.kind not in CARRIED)


def runs_within(nodes: Mapping[Place, TracedNode], node: TracedNode) -> tuple[Place, ...]:
    """Return runs of a block within a node: the branch taken, a fork's graph, a loop's first and last turn and others.

    The others are turns in which other nodes ran than in all before: what is guilty may be in a branch of theirs.
    """
    depth, ran = len(node.place), dict[Place, set[Place]]()
    for at, inner in nodes.items():
        if at[:depth] == node.place and len(at) > depth:
            run = node.place if node.kind in GRAPHS_WITHIN else at[: depth + 1]
            ran.setdefault(run, set()).add(inner.address)
    ways: dict[frozenset[Place], Place] = {}
    for run, addresses in ran.items():
        ways.setdefault(frozenset(addresses), run)
    runs = tuple(ran)
    return tuple(dict.fromkeys((*runs[:1], *runs[-1:], *ways.values())))[:MOST_RUNS]


def way_of(result: ModelResult) -> str:
    """Return by what two failures are told to be the same; numbers in an error are addresses and sizes."""
    if result.failure is None:
        return result.outcome.value
    return f"{result.failure.type}: {NUMBER.sub('N', error_line(result.failure))}"


def ending_words(probe: ProbeResult) -> str:
    """Return in words what became of the one model of a probe: ``hangs in call 1 of example``."""
    (result,) = probe.models
    where = f" in {result.phase_words}" if result.phase else ""
    if result.failure is not None:
        return f"raises {error_words(result.failure)}"
    words = {
        Outcome.COMPLETED: f"completes, {milliseconds(slowest_ns(result))} a call at most",
        Outcome.HANG: f"hangs{where}",
        Outcome.CRASH: f"crashes{where} ({probe.exit_detail or 'no signal'})",
        Outcome.OUT_OF_MEMORY: f"takes more memory than there is{where}",
    }
    return words.get(result.outcome, f"{result.outcome.value.replace('_', ' ')}{where}")


def slowest_ns(result: ModelResult) -> int:
    return max((call.duration_ns for call in result.calls), default=0)


def milliseconds(duration_ns: float) -> str:
    return f"{duration_ns / 1e6:.3g} ms"
