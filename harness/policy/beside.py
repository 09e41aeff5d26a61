"""Opinions on what stands beside the numbers: inputs changed in place, shared memory, rows in another order."""

from collections.abc import Iterable, Iterator

from harness.domain.comparison import CallComparison, OutputComparison
from harness.domain.plain_text import first_few
from harness.domain.verdict import Finding

IN_PLACE = "inputs left as they were"
ANY_ORDER = "rows in any order"
SHARED_MEMORY = "shared memory"
PATHS_SHOWN = 4


def input_findings(call: CallComparison) -> Iterator[tuple[str, Finding]]:
    """Yield (path, finding) of every input that only one release changes in place: its caller would see it."""
    place = f"{call.input_set} call {call.call}"
    for paths, what in (
        (call.inputs_changed_new, "is changed in place, and was left alone before"),
        (call.inputs_changed_old, "was changed in place before, and is left alone now"),
    ):
        for path in paths:
            yield (
                path,
                Finding(kind="input_changed", message=f"{path} {what}", where=f"{place} {path}", rule=IN_PLACE),
            )


def memory_findings(comparison: OutputComparison) -> Iterator[Finding]:
    """Yield what is worth telling and fails nothing: inputs changed in both releases, and other aliasing."""
    changed = _distinct(path for call in comparison.calls for path in call.inputs_changed)
    if changed:
        message = f"changes its inputs in place, in both releases: {first_few(changed, PATHS_SHOWN)}"
        yield Finding(kind="changes_inputs", message=message, rule=IN_PLACE)
    gone = _distinct(group for call in comparison.calls for group in call.aliases_old)
    come = _distinct(group for call in comparison.calls for group in call.aliases_new)
    told = [
        f"{words}: {first_few(groups, PATHS_SHOWN)}" for words, groups in (("no more", gone), ("now", come)) if groups
    ]
    if told:
        message = f"shares memory {'; '.join(told)}: writing into one changes the other"
        yield Finding(kind="aliasing", message=message, rule=SHARED_MEMORY)


def order_findings(comparison: OutputComparison) -> Iterator[Finding]:
    """Yield what is known of the outputs that the model declares unordered."""
    moved: dict[str, int] = {}
    for tensor in comparison.tensors:
        if tensor.moved_rows:
            moved[tensor.path] = max(moved.get(tensor.path, 0), tensor.moved_rows)
    if moved:
        paths = first_few([f"{path} ({rows} rows)" for path, rows in moved.items()], PATHS_SHOWN)
        message = f"declared unordered, and rows stand elsewhere: {paths}; they are compared in the golden order"
        yield Finding(kind="reordered", message=message, rule=ANY_ORDER)
    if comparison.unordered_missing:
        missing = first_few(comparison.unordered_missing, PATHS_SHOWN)
        message = f"declares unordered what no output has: {missing}"
        yield Finding(kind="unordered_missing", message=message, rule=ANY_ORDER)


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
