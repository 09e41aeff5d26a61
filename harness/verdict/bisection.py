"""Opinions on a call that was made node by node: which node is at fault, and where to look at all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.checks.outputs.findings import output_findings
from harness.checks.outputs.tolerances import ONE_OPERATOR
from harness.core.comparison import CallComparison, OutputComparison
from harness.core.diagnosis import NodeFault, Place, TracedNode
from harness.core.findings import SEVERITY, Severity
from harness.core.outcome import Outcome
from harness.core.probe import ModelResult
from harness.core.verdict import Finding
from harness.worker import wire

# Nodes that only hold others: what differs in them differs within.
FRAMES = ("prim::If", "prim::Loop", "prim::CallFunction", "prim::CallMethod", "prim::fork", "aten::wait")
# Their memory is not initialised: what lies in it means nothing.
UNWRITTEN = ("aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::resize_")
FETCH = "prim::GetAttr"
CONSTANT = "prim::Constant"
# The phases of one call.
OF_CALLS = (wire.CALL, wire.PREPARE, wire.NODES)


@dataclass(frozen=True, kw_only=True, slots=True)
class CallInQuestion:
    input_set: str
    call: int


def failing_call(result: ModelResult, comparison: OutputComparison | None) -> CallInQuestion | None:
    """Return the first call that shows the symptom; None where none does: the model does not get as far as a call."""
    if result.outcome is not Outcome.COMPLETED:
        failure = result.failure
        if failure is not None and failure.input_set is not None and failure.call is not None:
            return CallInQuestion(input_set=failure.input_set, call=failure.call)
        if result.phase not in OF_CALLS or result.input_set is None or result.call is None:
            return None
        return CallInQuestion(input_set=result.input_set, call=result.call)
    for call in comparison.calls if comparison is not None else ():
        assert comparison is not None
        if _failing(_findings(comparison, call)):
            return CallInQuestion(input_set=call.input_set, call=call.call)
    return None


def failing_findings(comparison: OutputComparison) -> tuple[str, ...]:
    return tuple(finding.message for finding in _failing(output_findings(comparison)))


def faults(
    old: Mapping[Place, TracedNode],
    new: Mapping[Place, TracedNode],
    comparison: OutputComparison,
    *,
    other_digests: Sequence[Place] = (),
    strides: bool = False,
    rounding: bool = False,
    one_operator: bool = False,
    ended: str = "ends the process",
) -> tuple[NodeFault, ...]:
    """Return the nodes that ended otherwise in the new release, in the order in which the old one ran them.

    ``comparison`` has the place of a node, as text, for the input set. ``other_digests``: nodes whose outputs are other
    bytes and were not kept; ``strides``: whether other strides count as well; ``rounding``: whether any other bit
    counts; ``one_operator``: whether more counts than one operator's rounding explains, though it may be fine for a
    model; ``ended``: what the new release's process did in a node that never ended, in words.
    """
    by_place = {call.input_set: call for call in comparison.calls}
    by_address: dict[Place, NodeFault] = {}
    for place, node in old.items():
        there = new.get(place)
        if there is None or there.unaligned or there.unchecked or node.kind in FRAMES or node.kind in UNWRITTEN:
            continue
        if node.kind == FETCH and by_address:
            continue  # the state that it fetches is what an earlier node has left there
        kinds, what = _ended_otherwise(node, there, ended)
        call = by_place.get(".".join(map(str, place)))
        if not what and place in other_digests and rounding:
            kinds, what = ("rounding",), ("other bits; too large to be kept, so by how much is not known",)
        elif not what and call is not None:
            findings = _failing(_findings(comparison, call), strides=strides)
            kinds = tuple(finding.kind for finding in findings)
            what = tuple(finding.message for finding in findings)
            if not what and one_operator and (beyond := tuple(_beyond_one_operator(call))):
                kinds, what = ("values",), beyond
            if not what and rounding and not all(tensor.bit_equal for tensor in call.tensors):
                kinds, what = ("rounding",), (_rounding_words(call),)
        if not what:
            continue
        first = by_address.setdefault(node.address, NodeFault(node=there, what=what, kinds=kinds))
        by_address[node.address] = replace(first, places=(*first.places, place))
    return tuple(by_address.values())


def gaps(old: Mapping[Place, TracedNode], new: Mapping[Place, TracedNode], *, whole: bool) -> tuple[str, ...]:
    """Return what could not be compared, in words; ``whole``: the new release came to the end."""
    notes = []
    added = [node for node in new.values() if node.unaligned and node.kind != CONSTANT]
    if added:
        kinds = ", ".join(dict.fromkeys(node.kind for node in added[:4]))
        notes.append(f"{len(added)} node(s) of the new release's graph have no like in the old one's: {kinds}")
    missing = [node for place, node in old.items() if place not in new and node.kind != CONSTANT] if whole else []
    if missing:
        kinds = ", ".join(dict.fromkeys(node.kind for node in missing[:4]))
        notes.append(f"{len(missing)} node(s) of the old release were not run by the new one: {kinds}")
    unchecked = [node for node in new.values() if node.unchecked and node.kind not in FRAMES]
    if unchecked:
        first = unchecked[0]
        notes.append(f"{len(unchecked)} node(s) could not be given the old inputs: {first.operator}, {first.unchecked}")
    return tuple(notes)


def _ended_otherwise(old: TracedNode, new: TracedNode, ended: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (kinds, words) of a node that raises or ends the process in one release only."""
    if old.error == new.error and new.finished:
        return (), ()
    if not new.finished:
        return ("ended",), (ended,)
    if new.error and not old.error:
        return ("call_error",), (f"raises {_telling(new.error)}",)
    return (("call_error",), (f"no longer raises {_telling(old.error)}",)) if not new.error else ((), ())


def _telling(error: str) -> str:
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 or not lines[0].endswith(":") else f"{lines[0]} {lines[1]}"


def _findings(comparison: OutputComparison, call: CallComparison) -> tuple[Finding, ...]:
    return output_findings(replace(comparison, calls=(call,), missing_calls=(), unordered_missing=()))


def _failing(findings: Sequence[Finding], *, strides: bool = False) -> list[Finding]:
    return [
        finding
        for finding in findings
        if SEVERITY[finding.kind] is Severity.FAIL or (strides and finding.kind == "stride")
    ]


def _beyond_one_operator(call: CallComparison) -> Iterator[str]:
    for tensor in call.tensors:
        explained = ONE_OPERATOR.get(tensor.dtype)
        if explained is not None and tensor.scale and tensor.max_abs > explained * tensor.scale:
            share = tensor.max_abs / tensor.scale
            yield (
                f"{tensor.path}: off by {share:.2g} of its largest value, {share / explained:.0f} times what the "
                f"rounding of one operator in {tensor.dtype} explains"
            )


def _rounding_words(call: CallComparison) -> str:
    return ", ".join(_off(call)) or "other bits"


def _off(call: CallComparison) -> Iterator[str]:
    for tensor in call.tensors:
        if not tensor.bit_equal:
            share = tensor.max_abs / tensor.scale if tensor.scale else 0.0
            yield f"{tensor.path}: off by {share:.2g} of its largest value, within tolerance"
