"""What nothing can call is outside; what may be called by name is inside."""

from harness.archive.code import Function
from harness.archive.code import may_loop, reachable


def function(name: str, method: str = "", methods: str = "", names: str = "", *, loops: bool = False) -> Function:
    return Function(name, method, loops=loops, methods=set(methods.split()), names=set(names.split()))


FUNCTIONS = [
    function("__torch__.m.Net.forward", "forward", methods="encode", names="__torch__.f.helper"),
    function("__torch__.m.Net.exported", "exported"),
    function("__torch__.m.Part.encode", "encode"),
    function("__torch__.m.Other.encode", "encode", methods="decode"),
    function("__torch__.m.Other.decode", "decode", loops=True),
    function("__torch__.m.Other.lost", "lost", names="__torch__.f.lost"),
    function("__torch__.f.helper", methods="helper"),
    function("__torch__.f.lost"),
    function("__torch__.m.Table.__setstate__", "__setstate__", names="__torch__.f.fill"),
    function("__torch__.f.fill"),
]


def test_methods_are_found_by_name_and_functions_by_qualified_name() -> None:
    reached = reachable(FUNCTIONS, "__torch__.m.Net")
    assert [item.name for item in FUNCTIONS if item.name not in reached] == [
        "__torch__.m.Other.lost",
        "__torch__.f.lost",
    ]


def test_without_a_root_only_what_runs_at_load_is_reached() -> None:
    assert reachable(FUNCTIONS, "") == {"__torch__.m.Table.__setstate__", "__torch__.f.fill"}


def test_functions_that_call_each_other_come_to_an_end() -> None:
    both = [function("a.C.f", "f", methods="g"), function("a.C.g", "g", methods="f", loops=True)]
    assert reachable(both, "a.C") == may_loop(both) == {"a.C.f", "a.C.g"}


def test_a_loop_is_in_all_that_may_call_it() -> None:
    assert may_loop(FUNCTIONS) == {
        "__torch__.m.Other.decode",
        "__torch__.m.Other.encode",
        "__torch__.m.Net.forward",
    }
