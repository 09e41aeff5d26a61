"""What stands between two golden records, in a word and in a sentence: what somebody decides about who accepts one."""

import hashlib
import json
from collections.abc import Mapping

from harness.domain.comparison import OutputComparison
from harness.domain.golden import Change, GoldenRecord
from harness.domain.plain_text import first_few
from harness.policy.numbers import deciding_rule, error_of
from harness.policy.words import counted, joined

_MOST_NAMED = 3


def change_of(comparison: OutputComparison) -> tuple[Change, str]:
    """Return the gravest change of a comparison, and a sentence with its numbers."""
    places = [(call, tensor) for call in comparison.calls for tensor in call.tensors]
    trees = [difference for call in comparison.calls for difference in call.tree]
    lost = len(comparison.missing_calls)
    if trees or lost:
        others = [f"{found.path}: {found.expected} -> {found.actual}" for found in trees]
        gone = f"{counted(lost, 'call')} gone" if lost else ""
        return Change.STRUCTURE, joined(gone, first_few(others, _MOST_NAMED, "; "))
    other = [(call, tensor) for call, tensor in places if not tensor.bit_equal or tensor.sampled]
    all_of = f"of {counted(len(places), 'tensor')}"
    if not other:
        return Change.SAME, f"{counted(len(places), 'tensor')}, bit for bit the same"
    moved = sum(tensor.nan_mismatches + tensor.inf_mismatches for _, tensor in other)
    call, worst = max(other, key=lambda place: error_of(place[1]))
    size = f"off by up to {error_of(worst):.2g} of the largest value ({call.input_set} call {call.call} {worst.path})"
    beyond = [tensor for _, tensor in other if not deciding_rule(tensor)[1]]
    differ = f"{len(other)} {all_of} {'differs' if len(other) == 1 else 'differ'}"
    if beyond:
        placed = f", NaN or Inf moved in {counted(moved, 'element')}" if moved else ""
        return Change.BEYOND, f"{differ}, {len(beyond)} beyond tolerance: {size}{placed}"
    sampled = sum(tensor.sampled for _, tensor in other)
    if sampled:
        return Change.UNKNOWN, f"{differ}, {sampled} of them known by a sample only: {size}"
    return Change.WITHIN, f"{differ}, all within tolerance: {size}"


def facts_between(old: GoldenRecord, new: GoldenRecord) -> Mapping[str, tuple[str, str]]:
    """Return what else differs between two records: label -> (old, new)."""
    pairs = {
        "torch": (old.producer.torch, new.producer.torch),
        "revision": (_short(old.producer.git_revision), _short(new.producer.git_revision)),
        "python": (old.producer.python, new.producer.python),
        "cuda": (old.producer.cuda or "none", new.producer.cuda or "none"),
        "gpu": (old.producer.gpu or "none", new.producer.gpu or "none"),
        "processor": (f"{old.producer.cpu} {old.producer.isa}", f"{new.producer.cpu} {new.producer.isa}"),
        "threads": (_threads(old), _threads(new)),
        "libraries": (old.producer.libraries or "none", new.producer.libraries or "none"),
        "device": (old.device, new.device),
        "artifact": (_short(old.artifact.digest), _short(new.artifact.digest)),
        "operators": _only_in(old.artifact.operators, new.artifact.operators),
        "artifact bytes": (str(old.artifact.size_bytes), str(new.artifact.size_bytes)),
        "input sets": (_input_sets(old), _input_sets(new)),
        "inputs": (_short(_inputs(old)), _short(_inputs(new))),
        "seed": (str(old.artifact.seed), str(new.artifact.seed)),
        "calls": (str(len(old.calls)), str(len(new.calls))),
        "profile": (_profile(old), _profile(new)),
    }
    return {name: (one, other) for name, (one, other) in pairs.items() if one != other}


def _short(digest: str | None) -> str:
    return (digest or "unknown")[:12]


def _threads(record: GoldenRecord) -> str:
    return f"{record.producer.intra_op_threads} intra-op, {record.producer.inter_op_threads} inter-op"


def _only_in(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, str]:
    """Return the operators that only one of the two has."""
    return _some(sorted(set(old) - set(new))), _some(sorted(set(new) - set(old)))


def _some(names: list[str]) -> str:
    return f"only here: {first_few(names, _MOST_NAMED)}" if names else "nothing of its own"


def _input_sets(record: GoldenRecord) -> str:
    return ", ".join(f"{item.name} ({item.method})" for item in record.artifact.input_sets) or "none"


def _inputs(record: GoldenRecord) -> str:
    """Return a digest of the inputs' lines, which hold those of the bytes: reading a record verified them."""
    return hashlib.sha256(json.dumps(record.inputs, sort_keys=True).encode()).hexdigest()


def _profile(record: GoldenRecord) -> str:
    profile = record.profile
    if profile is None:
        return "unknown"
    more = {**profile.switches, **profile.numerics}
    said = ", ".join(f"{name}={value}" for name, value in sorted(more.items()))
    threads = f"{profile.intra_op_threads}/{profile.inter_op_threads} threads"
    return f"{profile.name} ({threads}{', ' if said else ''}{said})"
