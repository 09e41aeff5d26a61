"""Makes a folder for each culprit that runs its operator alone, and runs it in both environments."""

import json
import re
from typing import Any

from harness.checks.outputs.tolerances import FACTORS
from harness.core.diagnosis import Issue, NodeFault, Reproducer
from harness.probing.facts import Answered, Effects
from harness.search.bisect.divergence import NODE_FLOOR_S, Diverged
from harness.search.bisect.traces import Trace, is_kept, key
from harness.search.reproduce.files import Tensors
from harness.search.reproduce.folder import Draft, finished
from harness.verdict.reduction import slowest_ns
from harness.verdict.reproduction import looked_for_in

MOST = 3
# They steer how a graph is executed; an operator by itself is called.
OF_THE_EXECUTOR = frozenset(
    (
        "cpu_fusion",
        "freeze",
        "fusion_depth",
        "onednn_fusion",
        "optimize_for_inference",
        "optimized_execution",
        "profiling",
        "profiling_executor",
        "texpr_fuser",
    )
)
WITHOUT = "cannot be run outside of its graph"
# A schema that stands for many types: which one is meant only the graph tells.
GENERIC = re.compile(r"[(, ](?:t|t1|t2|tVal|k|key|Any|AnyEnumType|AnyListType|AnyTuple)(?:\[\])? \w")


def reproducers(diverged: Diverged, facts: Answered, effects: Effects) -> tuple[Reproducer, ...]:
    first = {fault.node.operator: fault for fault in reversed(diverged.divergence.culprits)}
    culprits = list(reversed(first.values()))[:MOST]
    effects.progress.stage("reproducers", len(culprits))
    made = []
    for index, fault in enumerate(culprits):
        made.append(_reproducer(index, fault, diverged, facts, effects))
        effects.progress.step(fault.node.operator)
    return tuple(made)


def _reproducer(index: int, fault: NodeFault, diverged: Diverged, facts: Answered, effects: Effects) -> Reproducer:
    node, tensors = fault.node, Tensors()
    case = _case(fault, diverged.old, tensors)
    if isinstance(case, str):
        return Reproducer(operator=node.operator, note=case)
    before, after = facts.fingerprints["old"], facts.fingerprints["new"]
    issue = Issue(
        what=f"`{node.operator}`",
        does="does something else with the same inputs",
        expected=f"What torch {before.torch} does.",
        actual=fault.what,
        schema=node.schema,
        nodes=(node,),
        old=before,
        new=after,
    )
    results = [result for baseline in facts.baselines.values() for result in baseline.results]
    slowest_s = max(map(slowest_ns, results), default=0) * 1e-9
    draft = Draft(
        kind="operator",
        label=node.operator,
        case=case,
        tensors=tensors,
        issue=issue,
        wait_s=max(NODE_FLOOR_S, facts.plan.settings.deadlines.factor * slowest_s),
        silent={"old": OF_THE_EXECUTOR, "new": OF_THE_EXECUTOR},
    )
    return finished(draft, facts, effects, index=index)


def _case(fault: NodeFault, old: Trace, tensors: Tensors) -> dict[str, Any] | str:
    node, place = fault.node, fault.node.place
    outputs = old.outputs.calls.get(key(place))
    if not node.schema or "(...)" in node.schema or GENERIC.search(node.schema):
        return f"{node.operator} {WITHOUT}"
    inputs = old.inputs[place]
    if outputs is None or not is_kept(inputs):
        return "its inputs or outputs are too large to be kept"
    if "object" in json.dumps(inputs):
        return f"{node.operator} takes an object that has no value on the wire, so it {WITHOUT}"
    buffer, generator = old.outputs.buffer, old.generators.get(place)
    return {
        "operator": node.operator,
        "schema": node.schema,
        "symptom": looked_for_in(fault),
        "inputs": [tensors.taken(tree, buffer) for tree in inputs[1]],
        "outputs": [tensors.taken(tree, buffer) for tree in outputs[1]],
        "generator": None if generator is None else tensors.taken(generator, buffer),
        "tolerances": FACTORS,
        "strides": "stride" in fault.kinds,
    }
