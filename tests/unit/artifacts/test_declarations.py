"""Declarations read from source, and what a wrong one says."""

import dataclasses
import hashlib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.findings import SEVERITY
from harness.core.models import BreakMark, PlantedDefectMark, ModelDeclaration
from harness.serving.scenarios import CELL_SCENARIOS
from harness.core.errors import ExitCode, FixtureError
from harness.artifacts import declarations
from harness.artifacts.declarations import merge_catalogue, read_declarations
from harness.artifacts.fixture_folders import read_fixtures
from harness.store.codec import digest

# Untyped on purpose: it runs under Python 3.8 too.
declare: Any = importlib.import_module("fixtures.declare")

ROOT = Path(declare.__file__).parents[1]
HEADER = "from fixtures.declare import break_between, planted_defect, model\n"
PLACE: dict[str, Any] = {"source": "fixtures/zoo/a.py", "module": "fixtures.zoo.a", "package_root": "/root"}


def read(body: str, header: str = HEADER, source: str = "fixtures/zoo/a.py") -> tuple[ModelDeclaration, ...]:
    return read_declarations(header + body, **{**PLACE, "source": source})


def refusal(body: str, header: str = HEADER) -> str:
    with pytest.raises(FixtureError) as caught:
        read(body, header)
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_declaration_holds_what_the_decorator_says() -> None:
    body = (
        '@model("dlrm", how="trace", tags=("ranking", "ads"), covers=["aten::bmm"], requires="2.0", seed=7,\n'
        '       freeze=True, reset="clear", devices=("cpu",))\n'
        "def build():\n    pass\n"
    )
    assert read(body) == (
        ModelDeclaration(
            name="dlrm",
            package_root="/root",
            module="fixtures.zoo.a",
            factory="build",
            source="fixtures/zoo/a.py",
            line=2,
            source_digest=hashlib.sha256((HEADER + body).encode()).hexdigest(),
            how="trace",
            tags=("ranking", "ads"),
            covers=("aten::bmm",),
            requires="2.0",
            seed=7,
            freeze=True,
            reset="clear",
            devices=("cpu",),
        ),
    )


def test_a_model_is_timed_unless_it_says_no() -> None:
    found = read("@model('a')\n@model('b', timed=False)\ndef f(): pass\n")
    assert [model.timed for model in found] == [True, False]
    assert "@model timed: expected" in refusal("@model('a', timed=0.5)\ndef f(): pass\n")


def test_miniatures_test_correctness_and_models_of_served_size_are_timed_in_a_group_of_their_own() -> None:
    zoo = read_fixtures(ROOT / "fixtures" / "zoo")
    served = [model for model in zoo if Path(model.source).parent.name == "served"]
    assert len(zoo) - len(served) >= 60 and len(served) >= 12
    assert {model.name for model in zoo if model.timed} == {model.name for model in served}
    assert {model.tags[0] for model in served} == {"served"}
    assert {model.how for model in served} == {"script", "trace"}
    assert not any("served" in model.tags for model in zoo if model not in served)


def test_unordered_outputs_are_paths() -> None:
    (found,) = read("@model('a', unordered=('output', 'output[*].boxes', \"output[-1]['x y']\"))\ndef f(): pass\n")
    assert found.unordered == ("output", "output[*].boxes", "output[-1]['x y']")


@pytest.mark.parametrize("path", ["boxes", "output[x]", "output.", "input[0]", "output[**]", ""])
def test_unordered_refuses_what_is_no_path(path: str) -> None:
    assert "@model unordered: expected a tuple of paths" in refusal(
        f"@model('a', unordered=({path!r},))\ndef f(): pass\n"
    )


def test_stacked_models_are_several_declarations_of_one_factory() -> None:
    found = read('@model("a")\n@model("a_traced", how="trace")\ndef build():\n    pass\n')
    assert [(model.name, model.how, model.line, model.factory) for model in found] == [
        ("a", "script", 2, "build"),
        ("a_traced", "trace", 3, "build"),
    ]


def test_grid_is_one_model_per_combination() -> None:
    found = read('@model("drift", grid={"where": ("one", "all"), "size": (1e-7, 0.5)})\ndef f(where, size): pass\n')
    assert [(model.name, model.arguments) for model in found] == [
        ("drift_one_1e_07", (("size", 1e-07), ("where", "one"))),
        ("drift_one_0_5", (("size", 0.5), ("where", "one"))),
        ("drift_all_1e_07", (("size", 1e-07), ("where", "all"))),
        ("drift_all_0_5", (("size", 0.5), ("where", "all"))),
    ]
    assert {(model.line, model.factory) for model in found} == {(2, "f")}


def test_values_of_a_grid_keep_their_type() -> None:
    (found,) = read('@model("a", grid={"b": (True,), "i": (-1,), "f": (1.0,), "s": ("x y",)})\ndef f(**given): pass\n')
    assert found.name == "a_True__1_1_0_x_y"
    assert [(name, value, type(value)) for name, value in found.arguments] == [
        ("b", True, bool),
        ("f", 1.0, float),
        ("i", -1, int),
        ("s", "x y", str),
    ]


def test_arguments_of_a_grid_are_part_of_a_requests_identity_and_survive_json() -> None:
    one, two = read('@model("a", grid={"x": (1, 1.5)})\ndef f(x=2, y=3): pass\n')
    assert digest(replace(one, name="a")) != digest(replace(two, name="a"))
    assert msgspec.json.decode(msgspec.json.encode(two), type=ModelDeclaration) == two


def test_twin_of_a_planted_follows_the_grid() -> None:
    body = '@model("bad", grid={"size": (1e-3,), "base": ("big", "small")})\n@planted_defect("good_{base}", "values")\n'
    found = read(body + "def f(size, base): pass\n")
    assert [model.planted_defect.twin for model in found if model.planted_defect] == ["good_big", "good_small"]


def test_combinations_of_a_grid_with_one_name_are_a_duplicate() -> None:
    with pytest.raises(FixtureError, match='model "a_1_5" is already declared'):
        merge_catalogue(read('@model("a", grid={"x": (1.5, "1_5")})\ndef f(x): pass\n'))


def test_planted_defect_carries_its_mark() -> None:
    mark = '@planted_defect("healthy", "hang", scenario="latency", switches={"cpu_fusion": True}, deadline_s=3)\n'
    (found,) = read('@model("bad")\n' + mark + "def build():\n    pass\n")
    assert found.planted_defect == PlantedDefectMark(
        twin="healthy", expect="hang", scenario="latency", switches={"cpu_fusion": True}, deadline_s=3.0
    )


@pytest.mark.parametrize(("expect", "scenario"), [("hang", "small_pools"), ("race", "shared")])
def test_planted_defect_may_show_in_an_initialization(expect: str, scenario: str) -> None:
    (found,) = read(
        f'@model("bad")\n@planted_defect("healthy", "{expect}", scenario="{scenario}")\ndef build():\n    pass\n'
    )
    assert found.planted_defect == PlantedDefectMark(twin="healthy", expect=expect, scenario=scenario)


def test_scenarios_of_planted_defects_are_scenarios_of_cells() -> None:
    assert set(declarations.PLANTED_DEFECT_SCENARIOS) <= set(CELL_SCENARIOS)


def test_break_carries_its_mark() -> None:
    mark = '@break_between("2.1.2", "2.6.0", expect="values", upstream="https://x.y/1", direction="forward")\n'
    (found,) = read(mark + '@model("broken")\ndef build():\n    pass\n')
    assert found.known_break == BreakMark(
        old="2.1.2", new="2.6.0", expect="values", upstream="https://x.y/1", direction="forward"
    )


def test_none_is_the_default_where_the_signature_says_so() -> None:
    (found,) = read(
        '@model("a", requires=None, reset=None)\n@planted_defect("b", "hang", switches=None)\ndef f(): pass\n'
    )
    assert (found.requires, found.reset) == (None, None)
    assert found.planted_defect == PlantedDefectMark(twin="b", expect="hang")


def test_file_without_declarations_gives_none() -> None:
    assert read("x = 1\n", header="") == ()
    assert read("def model(name):\n    pass\n\n@model\ndef f():\n    pass\n", header="") == ()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("from fixtures.declare import model as declared\n", "declared"),
        ("from fixtures.declare import *\n", "model"),
        ("from ..declare import model\n", "model"),
        ("from fixtures import declare\n", "declare.model"),
        ("from .. import declare as d\n", "d.model"),
        ("import fixtures.declare\n", "fixtures.declare.model"),
        ("import fixtures.declare as d\n", "d.model"),
    ],
)
def test_decorator_is_known_under_any_import(header: str, name: str) -> None:
    assert [model.name for model in read(f'@{name}("a")\ndef f(): pass\n', header)] == ["a"]


def test_variable_called_model_inside_a_function_is_no_declaration() -> None:
    (found,) = read('@model("a")\ndef f():\n    model = make()\n    return model(1)\n')
    assert found.name == "a"


def test_factory_may_have_parameters_with_defaults() -> None:
    assert len(read('@model("a")\ndef f(width=4, *, depth=2): pass\n')) == 1


DEF = "\ndef f(): pass\n"

WRONG: list[tuple[str, int, str]] = [
    ("def f(:\n", 2, "expected Python source"),
    ("@model(NAME)" + DEF, 2, "@model name: expected a literal, got NAME"),
    ('@model("a", tags=TAGS + ("b",))' + DEF, 2, "@model tags: expected a literal"),
    ('@model("a",\n  seed=f())' + DEF, 3, "@model seed: expected a literal, got f()"),
    ('@model(f"a{1}")' + DEF, 2, "@model name: expected a literal"),
    ('@model("a", *more)' + DEF, 2, "@model: expected literal arguments, got *"),
    ('@model("a", **more)' + DEF, 2, "@model: expected literal arguments, got **"),
    ('@model("a", tag=("b",))' + DEF, 2, '@model: unknown argument "tag"; did you mean "tags"? allowed: name, how'),
    ('@model("a", name="b")' + DEF, 2, "@model name: given twice"),
    ("@model(" + ", ".join(["None"] * 10) + ")" + DEF, 2, "expected a Python identifier, got null"),
    ("@model()" + DEF, 2, "@model: name is missing"),
    ('@model(how="trace")' + DEF, 2, "@model: name is missing"),
    ('@model("a-b")' + DEF, 2, '@model name: expected a Python identifier, got "a-b"'),
    ('@model("not")' + DEF, 2, '@model name: expected a Python identifier, got "not"'),
    ("@model(3)" + DEF, 2, "@model name: expected a Python identifier, got 3"),
    ('@model("a", how="compile")' + DEF, 2, '@model how: expected one of script, trace, got "compile"'),
    ('@model("a", tags=("vision"))' + DEF, 2, "@model tags: expected a tuple of identifiers"),
    ('@model("a", tags=("multi-label",))' + DEF, 2, "@model tags: expected a tuple of identifiers"),
    ('@model("a", tags={"b", "c"})' + DEF, 2, "@model tags: expected a tuple of identifiers"),
    ('@model("a", covers=("bmm",))' + DEF, 2, "@model covers: expected a tuple of operators without overload"),
    ('@model("a", covers=("aten::add.Tensor",))' + DEF, 2, "@model covers: expected a tuple of operators"),
    ('@model("a", requires=2.0)' + DEF, 2, "@model requires: expected a torch release"),
    ('@model("a", seed=-1)' + DEF, 2, "@model seed: expected a whole number >= 0, got -1"),
    ('@model("a", seed=True)' + DEF, 2, "@model seed: expected a whole number >= 0, got true"),
    ('@model("a", seed=None)' + DEF, 2, "@model seed: expected a whole number >= 0, got null"),
    ('@model("a", freeze=1)' + DEF, 2, "@model freeze: expected true or false, got 1"),
    ('@model("a", reset="a.b")' + DEF, 2, "@model reset: expected a Python identifier"),
    (
        '@model("a", devices=("gpu",))' + DEF,
        2,
        "@model devices: expected a tuple of devices out of cpu, cuda, rocm, xpu, not empty",
    ),
    (
        '@model("a", devices=())' + DEF,
        2,
        "@model devices: expected a tuple of devices out of cpu, cuda, rocm, xpu, not empty",
    ),
    ('@model("a")\n@planted_defect("b")' + DEF, 3, "@planted_defect: expect is missing"),
    (
        '@model("a")\n@planted_defect("b", "slow")' + DEF,
        3,
        "@planted_defect expect: expected one of load_error, call_error",
    ),
    (
        '@model("a")\n@planted_defect("b", "hang", scenario="concurrent")' + DEF,
        3,
        "@planted_defect scenario: expected one of alone",
    ),
    (
        '@model("a")\n@planted_defect("b", "hang", switches={"x": 1})' + DEF,
        3,
        "@planted_defect switches.x: unknown key; allowed:",
    ),
    ('@model("a")\n@planted_defect("b", "hang", switches={1: 1})' + DEF, 3, "@planted_defect switches.1: unknown key"),
    ('@model("a")\n@planted_defect("b", "hang", switches={"profiling": 1})' + DEF, 3, "expected true or false, got 1"),
    (
        '@model("a")\n@planted_defect("b", "hang", switches=())' + DEF,
        3,
        "@planted_defect switches: expected a table, got []",
    ),
    (
        '@model("a")\n@planted_defect("b", "hang", deadline_s=0)' + DEF,
        3,
        "@planted_defect deadline_s: expected a number > 0",
    ),
    ('@model("a")\n@break_between("2.1", "x", "hang", "https://a.b")' + DEF, 3, "@break_between new: expected a torch"),
    ('@model("a")\n@break_between("2.1", "2.6", "hang", "#1")' + DEF, 3, "@break_between upstream: expected a link"),
    ('@model("a")\n@break_between("2.1", "2.6", "hang", "https://a.b", "up")' + DEF, 3, "direction: expected one of"),
    ('@model("a")\n@break_between("2.6", "2.6", "hang", "https://a.b")' + DEF, 3, "old and new are the same release"),
    ('@model("a", grid={"x": ()})' + DEF, 2, "@model grid: expected a dict of parameters and tuples of their values"),
    ('@model("a", grid={})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid={"x": 1})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid={"x": {1, 2}})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid={"x": (None,)})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid={"x": ("",)})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid={"x": (1e999,)})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid={"x": (2**64,)})' + DEF, 2, "@model grid: expected a literal"),
    ('@model("a", grid={"x": (18446744073709551616,)})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid={"x y": (1,)})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid={1: (1,)})' + DEF, 2, "@model grid: expected a dict"),
    ('@model("a", grid=GRID)' + DEF, 2, "@model grid: expected a literal, got GRID"),
    ('@model("a",\n  grid={"x": (1,)})' + DEF, 4, "factory f has no parameter x; the grid's parameters are given"),
    ('@model("a", grid={"x": (1,)})\ndef f(x, /): pass\n', 3, "factory f has no parameter x"),
    ('@model("a", grid={"x": (1,)})\ndef f(x, width): pass\n', 3, "has a parameter width; the grid gives it no values"),
    ('@model("a", grid={"x": (1,)})\n@model("b")\ndef f(x): pass\n', 4, "factory f has parameters; it is called"),
    (f'@model("a", grid={{"x": {tuple(range(1001))}}})\ndef f(x): pass\n', 2, "@model grid: the grid has 1001 comb"),
    (
        '@model("a")\n@planted_defect("b_{x}", "hang")' + DEF,
        3,
        "@planted_defect twin: no grid has a parameter x; give it values",
    ),
    ('@model("a")\n@planted_defect("b-{x}", "hang")' + DEF, 3, "@planted_defect twin: expected a Python identifier"),
    ('@planted_defect("b", "hang")' + DEF, 2, "@planted_defect without @model; add @model(name) beside it"),
    (
        '@model("a")\n@planted_defect("b", "hang")\n@planted_defect("c", "hang")' + DEF,
        4,
        "@planted_defect is the second mark",
    ),
    ('@model("a")\ndef f(width): pass\n', 3, "factory f has parameters; it is called without arguments"),
    ('@model("a")\ndef f(*, width): pass\n', 3, "factory f has parameters"),
    ('@model("a")' + DEF + '@model("b")' + DEF, 3, "f is defined more than once"),
    ('@model("a")' + DEF + "class f: pass\n", 3, "f is defined more than once"),
    ("@model" + DEF, 2, "@model declares nothing here; write it as a decorator with arguments"),
    ('@model("a")\nclass F: pass\n', 2, "@model declares nothing here"),
    ('@model("a")\nasync def f(): pass\n', 2, "@model declares nothing here"),
    ('def outer():\n    @model("a")\n    def f(): pass\n', 3, "@model declares nothing here"),
    ('if True:\n    @model("a")\n    def f(): pass\n', 3, "@model declares nothing here"),
    ('g = model("a")(print)\n', 2, "@model declares nothing here"),
]


@pytest.mark.parametrize(("body", "line", "message"), WRONG)
def test_wrong_declaration_names_file_line_and_expectation(body: str, line: int, message: str) -> None:
    text = refusal(body)
    assert text.startswith(f"fixtures/zoo/a.py:{line}: ")
    assert message in text


def test_too_many_arguments_are_refused() -> None:
    values = '"a", "script", (), (), None, 0, False, None, ("cpu",), (), None, None, True, 1'
    assert "@model: too many arguments; allowed: name, how" in refusal(f"@model({values})" + DEF)


def test_source_with_a_nul_character_is_refused() -> None:
    assert "expected Python source" in refusal("\0")


def test_non_literal_argument_says_what_to_do() -> None:
    assert refusal('@model("a", tags=TAGS)' + DEF).endswith(
        "got TAGS; write the value out: the controller reads this file without running it"
    )


def named(name: str, source: str = "fixtures/zoo/a.py", twin: str = "") -> ModelDeclaration:
    mark = f'@planted_defect("{twin}", "hang")\n' if twin else ""
    (found,) = read(f'@model("{name}")\n{mark}def f(): pass\n', source=source)
    return found


def test_catalogue_is_ordered_by_source_whatever_the_order_of_reading() -> None:
    first, second = named("z", "fixtures/a.py"), named("a", "fixtures/b.py")
    assert merge_catalogue([second, first]) == merge_catalogue([first, second]) == (first, second)


def test_duplicate_name_names_both_places() -> None:
    with pytest.raises(FixtureError, match=r'^fixtures/b.py:2: model "a" is already declared at fixtures/a.py:2'):
        merge_catalogue([named("a", "fixtures/b.py"), named("a", "fixtures/a.py")])


def test_name_declared_twice_on_one_line_is_a_duplicate() -> None:
    with pytest.raises(FixtureError, match="already declared"):
        merge_catalogue([named("a"), named("a")])


def test_planted_defect_with_an_unknown_twin_names_the_nearest() -> None:
    with pytest.raises(
        FixtureError, match=r'twin "helthy" of planted defect "bad" is not declared; did you mean "healthy"\?'
    ):
        merge_catalogue([named("healthy"), named("bad", twin="helthy")])


@pytest.mark.parametrize("twin", ["bad", "worse"])
def test_twin_that_is_a_planted_is_refused(twin: str) -> None:
    with pytest.raises(FixtureError, match="is a planted defect itself"):
        merge_catalogue([named("healthy"), named("worse", twin="healthy"), named("bad", twin=twin)])


def test_planted_defect_beside_its_twin_is_accepted() -> None:
    assert len(merge_catalogue([named("bad", twin="healthy"), named("healthy")])) == 2


@pytest.mark.parametrize("decorator", [declare.model, declare.planted_defect, declare.break_between])
def test_table_agrees_with_the_real_signature(decorator: Callable[..., Any]) -> None:
    parameters = inspect.signature(decorator).parameters
    table = declarations.SIGNATURES[decorator.__name__]
    assert list(table) == list(parameters)
    for name, parameter in parameters.items():
        assert table[name].required == (parameter.default is inspect.Parameter.empty)
        assert table[name].nullable == (parameter.default is None)


@pytest.mark.parametrize(
    ("decorator", "domain"),
    [
        (declare.model, ModelDeclaration),
        (declare.planted_defect, PlantedDefectMark),
        (declare.break_between, BreakMark),
    ],
)
def test_domain_defaults_are_those_of_the_decorator(decorator: Callable[..., Any], domain: Any) -> None:
    fields = {field.name: field.default for field in dataclasses.fields(domain)}
    for name, parameter in inspect.signature(decorator).parameters.items():
        if parameter.default is not inspect.Parameter.empty and name not in ("switches", "grid"):
            assert fields[name] == parameter.default


def test_decorators_are_all_in_the_table() -> None:
    assert set(declarations.SIGNATURES) == set(declare.__all__) - {"Call", "Sample"}


def test_expectable_kinds_are_finding_kinds() -> None:
    assert set(declarations.EXPECTABLE) <= set(SEVERITY)


def test_our_own_fixtures_can_be_read() -> None:
    found: list[ModelDeclaration] = []
    for path in sorted((ROOT / "fixtures").rglob("*.py")):
        source = path.relative_to(ROOT).as_posix()
        module = source.removesuffix(".py").replace("/", ".")
        text = path.read_text(encoding="utf-8")
        found += read_declarations(text, source=source, module=module, package_root=str(ROOT))
    models = merge_catalogue(found)
    assert {model.planted_defect.scenario for model in models if model.planted_defect} == set(
        declarations.PLANTED_DEFECT_SCENARIOS
    )
    assert any(model.known_break for model in models)


def test_declared_tolerance_is_a_share() -> None:
    (found,) = read("@model('a', tolerance=1e-3)\ndef f(): pass\n")
    assert found.tolerance == 1e-3
    assert "@model tolerance: expected a number > 0 and <= 0.1" in refusal("@model('a', tolerance=0)\ndef f(): pass\n")


def test_a_long_chain_of_branches_is_read() -> None:
    chain = "if 0:\n    pass\n" + "".join(f"elif {number}:\n    pass\n" for number in range(1, 1100))
    (found,) = read(chain + "@model('m')\ndef m():\n    pass\n")
    assert found.name == "m"
