"""The call graph of an archive's code, by name.

Larger than the truth: a call of any method ``f`` is taken for a call of every method ``f``. So what is outside is never
called; what is inside may be. Time is linear in the code.
"""

from collections.abc import Sequence

from harness.archive.code import Function


def reachable(functions: Sequence[Function], root: str) -> set[str]:
    """Return the names of what the methods of class ``root`` may call, or a ``__setstate__``: loading calls it."""
    by_name = {function.name: function for function in functions}
    by_method: dict[str, list[Function]] = {}
    for function in functions:
        if function.method:
            by_method.setdefault(function.method, []).append(function)
    pending = [item for item in functions if item.name.rpartition(".")[0] == root or item.method == "__setstate__"]
    names = {function.name for function in pending}
    spent: set[str] = set()
    while pending:
        function = pending.pop()
        found = [by_name[name] for name in function.names if name in by_name]
        for method in function.methods - spent:
            found += by_method.get(method, ())
        spent |= function.methods
        pending += [item for item in found if item.name not in names]
        names.update(item.name for item in found)
    return names


def may_loop(functions: Sequence[Function]) -> set[str]:
    """Return the names of the functions that have a loop, or may call one that has."""
    callers: dict[str, list[Function]] = {}
    for function in functions:
        for name in function.names | {f".{method}" for method in function.methods}:
            callers.setdefault(name, []).append(function)
    pending = [function for function in functions if function.loops]
    names = {function.name for function in pending}
    while pending:
        function = pending.pop()
        found = callers.pop(function.name, []) + (callers.pop(f".{function.method}", []) if function.method else [])
        pending += [item for item in found if item.name not in names]
        names.update(item.name for item in found)
    return names
