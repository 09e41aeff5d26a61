"""Which functions of an archive's code can be called from the methods of its root module, by name."""

from collections.abc import Sequence

from harness.archive.code import Function


class Reachable:
    """The names of functions that something reachable may call; ``__setstate__`` counts, since loading calls it.

    Larger than the truth: a call of any method ``f`` is taken for a call of every method ``f``. So what is outside is
    never called; what is inside may be.
    """

    def __init__(self, functions: Sequence[Function], root: str) -> None:
        by_name = {function.name: function for function in functions}
        by_method: dict[str, list[Function]] = {}
        for function in functions:
            if function.method:
                by_method.setdefault(function.method, []).append(function)
        pending = [item for item in functions if item.name.rpartition(".")[0] == root or item.method == "__setstate__"]
        self._names = {function.name for function in pending}
        spent: set[str] = set()
        while pending:
            function = pending.pop()
            found = [by_name[name] for name in function.names if name in by_name]
            for method in function.methods - spent:
                found += by_method.get(method, ())
            spent |= function.methods
            pending += [item for item in found if item.name not in self._names]
            self._names.update(item.name for item in found)

    def __contains__(self, name: str) -> bool:
        return name in self._names
