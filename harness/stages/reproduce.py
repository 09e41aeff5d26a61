"""Makes a folder for each culprit that runs its operator alone, and runs it in both environments."""

import copy
import json
import re
from typing import Any

from harness.domain.bisection import Reproducer
from harness.domain.divergence import NodeFault
from harness.numerics.tolerances import FACTORS
from harness.render.divergence_text import issue_text
from harness.runtime import pool
from harness.runtime.reproducer_files import run_reproducer, write_reproducer
from harness.runtime.trace_reader import Trace, is_kept, key
from harness.stages.diverge import Parted
from harness.stages.facts import Effects, Facts, new_profile

FOLDER = "reproducers"
MOST = 3
WITHOUT = "cannot be run outside of its graph"
# A schema that stands for many types: which one is meant only the graph tells.
GENERIC = re.compile(r"[(, ](?:t|t1|t2|tVal|k|key|Any|AnyEnumType|AnyListType|AnyTuple)(?:\[\])? \w")


def reproducers(parted: Parted, facts: Facts, effects: Effects) -> tuple[Reproducer, ...]:
    """Return a reproducer for each of the first operators among the culprits, run in both environments."""
    first = {fault.node.operator: fault for fault in reversed(parted.divergence.culprits)}
    culprits = list(reversed(first.values()))[:MOST]
    effects.progress.stage("reproducers", len(culprits))
    made = []
    for index, fault in enumerate(culprits):
        made.append(_reproducer(index, fault, parted, facts, effects))
        effects.progress.step(fault.node.operator)
    return tuple(made)


def _reproducer(index: int, fault: NodeFault, parted: Parted, facts: Facts, effects: Effects) -> Reproducer:
    settings = facts.plan.settings
    operator = fault.node.operator
    node = _node(fault, parted.old, settings.profile.intra_op_threads)
    if isinstance(node, str):
        return Reproducer(operator=operator, note=node)
    name = f"{FOLDER}/{index + 1}-{re.sub(r'[^A-Za-z0-9_.]+', '_', operator)}"
    folder = effects.folder(name)
    environments = {side: facts.fingerprints[side] for side in ("old", "new")}
    texts = {"environments.json": json.dumps({side: _told(found) for side, found in environments.items()}, indent=2)}
    write_reproducer(folder, node, parted.old.outputs.buffer, texts)
    profiles = {"old": settings.profile, "new": new_profile(facts.plan)}

    def run(side: str) -> str:
        return run_reproducer(folder, effects.environments[side].interpreter, profiles[side].env)

    said_old, said_new = pool.each(run, list(profiles), jobs=settings.jobs)
    made = Reproducer(operator=operator, folder=name, old=said_old, new=said_new)
    issue = issue_text(fault, made, old=environments["old"], new=environments["new"])
    effects.run_dir.write(f"{name}/issue.md", issue.encode())
    return made


def _told(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("torch", "git_revision", "cuda", "python", "cpu", "isa", "glibc")}


def _node(fault: NodeFault, old: Trace, threads: int) -> dict[str, Any] | str:
    """Return what ``reproduce.py`` reads, or why there is nothing to give it."""
    node, place = fault.node, fault.node.place
    outputs = old.outputs.calls.get(key(place))
    if not node.schema or "(...)" in node.schema or GENERIC.search(node.schema):
        return f"{node.operator} {WITHOUT}"
    inputs = old.inputs[place]
    if outputs is None or not is_kept(inputs):
        return "its inputs or outputs are too large to be kept"
    if "object" in json.dumps(inputs):
        return f"{node.operator} takes an object that has no value on the wire, so it {WITHOUT}"
    return {
        "operator": node.operator,
        "schema": node.schema,
        "source": node.source,
        "inputs": copy.deepcopy(inputs[1]),
        "outputs": copy.deepcopy(outputs[1]),
        "generator": copy.deepcopy(old.generators.get(place)),
        "threads": threads,
        "tolerances": FACTORS,
        "strides": "stride" in fault.kinds,
    }
