"""Requests left over when a process died: a second process answers them, and both results are merged. Pure."""

from dataclasses import replace

from harness.core.outcome import Outcome
from harness.core.probe import FailedRequest, ModelResult, ProbeRequest, ProbeResult

# A request that ends the process says nothing of those after it.
ENDS = (Outcome.CRASH, Outcome.HANG, Outcome.OUT_OF_MEMORY)


def unreached(request: ProbeRequest, result: ProbeResult) -> ProbeRequest | None:
    """Return the request for what is left to ask of the first artifact; None where nothing is, or nobody can tell."""
    if request.verb != "run" or request.script is not None or result.outcome not in ENDS or not result.models:
        return None
    left = {item.input_set for item in result.models[0].failed_requests if item.outcome is Outcome.NOT_RUN}
    if not left:
        return None
    runs = (replace(run, schedule=tuple(call for call in run.schedule if call[0] in left)) for run in request.runs)
    return replace(request, runs=tuple(runs))


def with_rest(result: ProbeResult, rest: ProbeResult) -> ProbeResult:
    models = tuple(_together(first, then) for first, then in zip(result.models, rest.models, strict=True))
    return replace(result, models=models)


def _together(first: ModelResult, then: ModelResult) -> ModelResult:
    failed = {item.input_set: item for item in first.failed_requests}
    if then.made_calls:
        answered = {call.input_set for call in then.calls}
        failed = {name: item for name, item in failed.items() if name not in answered}
        failed.update({item.input_set: item for item in then.failed_requests})
    elif then.failed:
        failed = {
            name: item if item.outcome is not Outcome.NOT_RUN else _like(then, name) for name, item in failed.items()
        }
    if first.outcome is Outcome.NOT_RUN:  # its turn came after what ended the process
        return then
    return replace(first, calls=(*first.calls, *then.calls), failed_requests=tuple(failed.values()))


def _like(result: ModelResult, name: str) -> FailedRequest:
    return FailedRequest(input_set=name, outcome=result.outcome, phase=result.phase, failure=result.failure)
