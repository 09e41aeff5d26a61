"""One row is one setting: its names are those of every worker, and it says enough to be pinned, written and told."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from harness.config.schema import FLAG, NUMERICS, SERVING, SWITCHES
from harness.core.environment import Fingerprint
from harness.core.probe import ServingProfile
from harness.serving.settings.table import ROWS, TABLE, Kind, Row, Scope, Tried, of_kind

HARNESS = Path(__file__).parents[4] / "harness"
WORKER, NATIVE = HARNESS / "worker", HARNESS / "native"
SWITCH, NUMERIC = ({row.name for row in of_kind(kind)} for kind in (Kind.SWITCH, Kind.NUMERICS))


def body_of(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8)).body


def keys_of(module: str, name: str) -> set[str]:
    """Return the keys of a dictionary, or the items of a tuple, that a module of the Python worker assigns."""
    (found,) = [
        node.value
        for node in body_of(WORKER / module)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    ]
    items = found.keys if isinstance(found, ast.Dict) else found.elts if isinstance(found, ast.Tuple) else []
    return {ast.literal_eval(item) for item in items if item is not None}


def named(scope: Scope, *kinds: Kind) -> set[str]:
    return {row.name for kind in kinds or (Kind.SWITCH, Kind.NUMERICS) for row in of_kind(kind) if row.scope is scope}


def function(source: str, head: str) -> str:
    """Return the text of a function of the C++ worker."""
    (found,) = re.findall(rf"^inline [^\n]*\b{head}\(.*?^}}", source, re.MULTILINE | re.DOTALL)
    return str(found)


def test_every_name_is_there_once() -> None:
    assert len(TABLE) == len(ROWS)
    names = [item.name for row in ROWS for item in row.mitigations]
    assert len(names) == len(set(names))


def test_python_worker_and_reproducers_apply_each_setting_for_what_it_holds_for() -> None:
    assert keys_of("setters.py", "PROCESS_WIDE") == named(Scope.PROCESS, Kind.SWITCH)
    assert keys_of("setters.py", "NUMERICS") == named(Scope.PROCESS, Kind.NUMERICS)
    assert keys_of("setters.py", "THREAD_LOCAL") == named(Scope.THREAD)
    assert keys_of("setters.py", "AT_LOAD") == named(Scope.MODULE)
    assert keys_of("settings.py", "READ") == named(Scope.THREAD)


def test_native_worker_knows_the_same_settings() -> None:
    source = (NATIVE / "settings" / "switches.hpp").read_text(encoding="utf-8")
    (table,) = re.findall(r"kProcessWide = \{\n(.*?)\n\};", source, re.DOTALL)
    process_wide = re.findall(r'\{"(\w+)",', table)
    others = re.findall(r'name == "(\w+)"', function(source, "set"))
    assert {*process_wide, *others} == SWITCH
    assert set(process_wide) < named(Scope.PROCESS, Kind.SWITCH)
    (context,) = re.findall(r"explicit ThreadContext\(.*?\n  }\n", source, re.DOTALL)
    assert set(re.findall(r'find\("(\w+)"\)', context)) == named(Scope.THREAD, Kind.SWITCH)
    serving = (NATIVE / "run" / "serving.hpp").read_text(encoding="utf-8")
    assert set(re.findall(r'is_on\(request\["switches"\], "(\w+)"\)', serving)) == named(Scope.MODULE, Kind.SWITCH)


def test_native_worker_pins_and_reads_the_same_numerics() -> None:
    source = (NATIVE / "settings" / "numeric_state.hpp").read_text(encoding="utf-8")
    assert set(re.findall(r'^      \{"(\w+)",', function(source, "settings"), re.MULTILINE)) == NUMERIC
    (context,) = re.findall(r"explicit ThreadContext\(.*?\n  }\n", source, re.DOTALL)
    assert set(re.findall(r'find\("(\w+)"\)', context)) == named(Scope.THREAD, Kind.NUMERICS)


def test_worker_asks_torch_of_the_variables_that_can_be_read_back() -> None:
    of_switches = {row.environment for row in of_kind(Kind.SWITCH) if row.environment}
    variables = {row.name for row in of_kind(Kind.VARIABLE) if row.read_back}
    assert keys_of("settings.py", "EFFECTS") == variables | of_switches


def test_configuration_takes_each_setting_where_its_key_says() -> None:
    assert (set(SWITCHES), set(NUMERICS)) == (SWITCH, NUMERIC)
    assert set(SERVING) == {row.name for row in of_kind(Kind.POOL)} | {"load", "switches", "numerics", "env"}
    assert [TABLE[name].key for name in ("profiling", "autocast", "inter_op_threads", "MKL_CBWR", "load")] == [
        "serving.switches.profiling",
        "serving.numerics.autocast",
        "serving.inter_op_threads",
        "serving.env.MKL_CBWR",
        "",
    ]


@pytest.mark.parametrize("row", [row for row in ROWS if row.kind is not Kind.ORDER], ids=lambda row: row.name)
def test_every_value_that_may_mitigate_is_one_that_the_configuration_takes(row: Row) -> None:
    kinds = {**SERVING, **SWITCHES, **NUMERICS}
    kind: Any = kinds.get(row.name)
    for mitigation in row.mitigations:
        assert isinstance(mitigation.value, str) if kind is None else kind.accepts(mitigation.value)
    assert kind is None or (kind is FLAG) is (row.values is bool)


def test_profile_and_fingerprint_have_what_the_rows_name() -> None:
    fields = set(ServingProfile.__dataclass_fields__)
    assert {row.name for row in of_kind(Kind.POOL)} <= fields
    assert {str(kind) for kind in (Kind.SWITCH, Kind.NUMERICS, Kind.VARIABLE)} <= fields
    assert {row.fingerprint for row in ROWS if row.fingerprint} <= set(Fingerprint.__dataclass_fields__)
    assert {name for row in ROWS for name in row.includes} <= set(TABLE)


def test_what_every_run_tries_is_something_and_first() -> None:
    order = list(Tried)
    tried = [order.index(item.tried) for row in ROWS for item in row.mitigations]
    assert tried == sorted(tried) and tried[0] == 0


def test_rows_without_code_say_nothing_of_it() -> None:
    for row in ROWS:
        assert (row.python is not None) is (row.kind is not Kind.VARIABLE), row.name
        assert set(row.python_of) <= set(row.values if isinstance(row.values, tuple) else ()), row.name
        assert bool(row.about) is (row.kind in (Kind.SWITCH, Kind.NUMERICS)), row.name
