"""Every artifact has exactly one outcome: that of the first step that did not come through; alike ones are one cause."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics, TreeDifference
from harness.core.migration import Dimension, Migrated, MigratedModel, Migration, Presence
from harness.core.models import InputSet
from harness.core.outcome import Outcome, Status
from harness.core.probe import Failure, ModelResult, ProbeResult, Span
from harness.core.errors import ExitCode
from harness.checks.migration.facts import Answers, Tried
from harness.checks.migration.parts import Part
from harness.verdict.exit_codes import exit_code
from harness.verdict.migration import causes_of, counts_words, judge
from harness.checks.migration.obstacles import obstacle
from harness.checks.migration.structure import with_tuples
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.trees import Tree

SETS = (InputSet(name="example"), InputSet(name="other"))


def request(*shape: int) -> Tree:
    return ["tuple", [["tensor", {"dtype": "float32", "shape": list(shape)}]]]


def result(
    outcome: Outcome = Outcome.COMPLETED, said: str = "", phase: str = "call", load_ns: int | None = None
) -> ModelResult:
    kind, _, message = said.partition(": ")
    failure = Failure(type=kind, message=message, phase=phase) if said else None
    return ModelResult(model="ranker", outcome=outcome, phase=phase, failure=failure, load_ns=load_ns)


def probe(first: ModelResult, **data: Any) -> ProbeResult:
    outcome = first.outcome if first.failure is None and first.failed else Outcome.COMPLETED
    spans = (Span(phase="convert", begin_ns=0, end_ns=2_000_000_000),)
    return ProbeResult(
        key="k", side="new", outcome=outcome, directory="probes/k", models=(first,), data=data, spans=spans
    )


LOADED = result(Outcome.NOT_RUN, phase="load", load_ns=5_000_000)
EQUAL = OutputComparison(
    model="ranker", scenario="alone", calls=(CallComparison(input_set="example", call=0, equal=1),)
)


def answers(
    release: str = "2.15.0",
    load: ModelResult = LOADED,
    comparison: OutputComparison | None = EQUAL,
    **calls: ModelResult,
) -> Answers:
    made = {item.name: calls.get(item.name, result()) for item in SETS}
    return Answers(
        release=release, probe=probe(load), load=load, calls=made, comparison=comparison, evidence="probes/r"
    )


CONVERTED = probe(result(), converted={"dimensions": [[["input", 0], [None, 3]]], "bytes": 100})
READY = Tried(
    model="ranker",
    release="2.15.0",
    input_sets=SETS,
    requests={"example": request(4, 3), "other": request(7, 3)},
    example="example",
    conversion=CONVERTED,
    evidence="probes/c",
    answers=(answers(),),
)


def refused(said: str, **node: str) -> Tried:
    data = {"not_converted": node} if node else {}
    return replace(READY, conversion=probe(result(Outcome.EXPORT_ERROR, said, "convert"), **data), answers=())


def test_what_comes_through_every_step_is_ready() -> None:
    found = judge(READY)
    assert (found.outcome, found.reason, found.kind) == (Migrated.READY, "", "")
    assert [(step.name, step.release, step.seconds) for step in found.steps] == [
        ("convert", "2.15.0", 2.0),
        ("run", "2.15.0", 0.005),
    ]


def in_parts(*parts: tuple[Part, Tried]) -> Tried:
    return replace(READY, conversion=None, answers=(), parts=tuple(replace(tried, part=part) for part, tried in parts))


def test_several_programs_come_to_what_the_worst_of_them_does() -> None:
    encode, forward = Part("encode", (), ("other",)), Part("forward", (("input[1]", Presence.LEFT_OUT),), ("example",))
    ready = judge(in_parts((forward, READY), (encode, READY)))
    assert (ready.outcome, len(ready.steps)) == (Migrated.READY, 4)
    stopped = judge(in_parts((forward, READY), (encode, refused("RuntimeError: no", **NODE))))
    assert stopped.outcome is Migrated.NOT_CONVERTIBLE
    assert stopped.reason == "encode: prim::If at ranker.py:12: ValueError: two shapes"
    other = judge(in_parts((encode, READY), (forward, refused("RuntimeError: no", **NODE))))
    assert other.reason.startswith("forward, input[1] left out: prim::If")


def test_programs_that_a_value_chooses_refuse_other_values_and_are_guarded() -> None:
    parts = [Part("forward", (("input[1]", value),), (name,)) for value, name in (("0", "example"), ("1", "other"))]
    found = judge(in_parts(*((part, READY) for part in parts)))
    assert (found.outcome, found.kind) == (Migrated.GUARDED, "values")
    assert "each value of input[1]" in found.reason


def test_programs_of_several_methods_would_have_a_state_each() -> None:
    converted = {"dimensions": [], "bytes": 100, "has_state": True}
    stateful = replace(READY, conversion=probe(result(), converted=converted))
    parts = Part("forward", (), ("example",)), Part("push", (), ("other",))
    found = judge(in_parts((parts[0], READY), (parts[1], stateful)))
    assert (found.outcome, found.kind) == (Migrated.NOT_CONVERTIBLE, "state")
    assert "forward, push would be programs with a state each" in found.reason


NODE = {
    "kind": "prim::If",
    "source": "ranker.py:12",
    "code": "if bool(x.sum() > 0):",
    "reason": "ValueError: two shapes\n\nAdvice to developers",
}


def test_a_conversion_that_fails_names_node_line_and_what_to_write() -> None:
    found = judge(refused("RuntimeError: TS2EPConverter failed for node prim::If", **NODE))
    assert (found.outcome, found.kind, found.source) == (Migrated.NOT_CONVERTIBLE, "prim::If", "ranker.py:12")
    assert found.reason == "prim::If at ranker.py:12: ValueError: two shapes"
    assert "torch.where" in found.advice


@pytest.mark.parametrize(
    ("node", "said", "kind"),
    [
        ("", "NoConverter: torch 2.1.2 has no TS2EPConverter", "no converter"),
        (
            "aten::item",
            "GuardOnDataDependentSymNode: Could not guard on data-dependent expression",
            "data-dependent size",
        ),
        ("", "UncapturedHigherOrderOpError: Cond doesn't work unless it is captured completely", "prim::If"),
        ("", "UncapturedHigherOrderOpError: Got graph break\n  Higher Order Operator: torch.cond", "prim::If"),
        ("", "UncapturedHigherOrderOpError: while_loop doesn't work", "UncapturedHigherOrderOpError"),
        ("prim::Loop", "RuntimeError: dynamic value of number of iterations", "prim::Loop"),
        ("", "RuntimeError: isIntList() INTERNAL ASSERT FAILED", "internal assert of torch"),
        ("quantized::linear", "RuntimeError: no ScriptObject here", "custom class"),
        ("", "RuntimeError: aten::_set_item() Expected a value of type 't' for argument 'v'", "aten::_set_item"),
        (
            "",
            "RuntimeError: Unsupported quantized op during transformation: linear_dynamic.default",
            "quantized operator",
        ),
        ("", "RuntimeError: Expected Tensor but got InvalidTag(97)", "value that is no tensor"),
        ("prim::If", "ValueError: Output relu6.1 not found, nor that of gru1", "prim::If"),
        ("", "ValueError: u0 is no constant", "data-dependent size"),
        ("aten::foo", "ValueError: something else", "aten::foo"),
        ("", "KeyError: 'weight'", "KeyError"),
    ],
)
def test_known_obstacles_have_their_words_and_all_have_a_fix(node: str, said: str, kind: str) -> None:
    found = obstacle(node, said)
    assert found[0] == kind
    assert found[1]


def test_a_branch_of_torchs_own_code_is_no_fault_of_the_model() -> None:
    node = {**NODE, "source": "/env/lib/python3.11/site-packages/torch/nn/functional.py:2665"}
    found = judge(refused("RuntimeError: failed", **node))
    assert (found.kind, found.source) == ("prim::If of torch's own code", "torch/nn/functional.py:2665")
    assert "torch.jit.trace" in found.advice
    own = judge(refused("RuntimeError: failed", **{**NODE, "source": "/home/me/pytorch_models/x.py:3"}))
    assert own.kind == "prim::If"


def test_other_methods_and_state_are_not_convertible_whatever_the_converter_says() -> None:
    several = judge(replace(READY, input_sets=(SETS[0], InputSet(name="other", method="score"))))
    assert (several.outcome, several.kind) == (Migrated.NOT_CONVERTIBLE, "several methods")
    assert "score" in several.reason
    hooked = judge(replace(READY, input_sets=(SETS[0], InputSet(name="example_with_hooks", method="__call__"))))
    assert (hooked.outcome, hooked.kind) == (Migrated.NOT_CONVERTIBLE, "hooks")
    state = judge(replace(READY, reset="clear"))
    assert (state.outcome, state.kind) == (Migrated.NOT_CONVERTIBLE, "state")


OFF = TensorMetrics(
    path="output",
    dtype="float32",
    elements=3,
    bit_equal=False,
    max_abs=1.0,
    scale=1.0,
    tolerance_abs=1e-5,
    mismatched=3,
)


def changed(**call: Any) -> OutputComparison:
    return replace(EQUAL, calls=(CallComparison(input_set="example", call=0, **call),))


def test_other_numbers_are_told_before_sizes_and_loading() -> None:
    tried = replace(
        READY,
        answers=(
            answers(comparison=changed(tensors=(OFF,))),
            answers("2.6.0", result(Outcome.LOAD_ERROR, "KeyError: x", "load")),
        ),
    )
    found = judge(tried)
    assert found.outcome is Migrated.DIFFERS
    assert "output" in found.reason


def test_torchscript_that_answers_otherwise_in_that_release_too_is_not_blamed_on_the_conversion() -> None:
    tried = replace(READY, answers=(answers(comparison=changed(tensors=(OFF,))),), in_torchscript=True)
    assert "TorchScript itself answers otherwise in 2.15.0" in judge(tried).reason
    assert "TorchScript itself" not in judge(replace(tried, in_torchscript=False)).reason


def test_another_structure_and_an_input_that_is_left_alone_are_other_answers() -> None:
    structure = TreeDifference(path="output", kind="structure", expected="tuple", actual="list")
    assert judge(replace(READY, answers=(answers(comparison=changed(tree=(structure,))),))).outcome is Migrated.DIFFERS
    in_place = judge(replace(READY, answers=(answers(comparison=changed(inputs_changed_old=("input[0]",))),)))
    assert in_place.outcome is Migrated.DIFFERS
    assert "changed in place" in in_place.reason


def test_a_tuple_that_becomes_a_list_is_told_unless_what_is_in_it_differs_too() -> None:
    found = judge(replace(READY, answers=(replace(answers(), lists=True),)))
    assert (found.outcome, found.kind) == (Migrated.DIFFERS, "tuple becomes list")
    off = replace(answers(comparison=changed(tensors=(OFF,))), lists=True)
    assert judge(replace(READY, answers=(off,))).kind == "answers otherwise"


def test_lists_are_compared_as_the_tuples_that_they_were() -> None:
    leaf = ["int", 1]
    golden = Outputs(calls={("example", 0): ["tuple", [leaf, ["dict", [[["str", "x"], ["tuple", [leaf]]]]]]]})
    found = Outputs(calls={("example", 0): ["list", [leaf, ["dict", [[["str", "x"], ["list", [leaf]]]]]]]})
    assert with_tuples(found, golden).calls == golden.calls
    longer = Outputs(calls={("example", 0): ["list", [leaf]], ("other", 0): ["list", [leaf]]})
    assert with_tuples(longer, golden) == longer


GUARD = result(Outcome.RUNTIME_ERROR, "AssertionError: Guard failed: x.size()[0] == 4")


def test_a_size_that_requests_vary_is_named_with_what_to_do() -> None:
    held = probe(result(), converted={"dimensions": [[["input", 0], [4, 3]]], "bytes": 100})
    found = judge(replace(READY, conversion=held, answers=(answers(other=GUARD),)))
    assert (found.outcome, found.kind) == (Migrated.FIXED, "size")
    assert found.reason == "input[0] is fixed at 4 in dimension 0, and requests have 7 too"
    assert found.advice.startswith("torch.export.export(") and "Dim(" in found.advice
    older = judge(replace(READY, release="2.6.0", conversion=held, answers=(answers(other=GUARD),)))
    assert older.advice.startswith("convert in a release that keeps sizes open (2.15.0 does), or torch.export.export(")


@pytest.mark.parametrize(
    ("torch", "says"),
    [
        *(("2.6.0+cpu", True), ("2.11.0", True), ("2.14.1", True), ("2.15.0+cpu", False), ("2.15.0", False)),
        *(("2.16.0.dev20261101", False), ("3.0.0", False), ("", False), ("a nightly", False), ("0.0.0", False)),
    ],
)
@pytest.mark.parametrize("name", ["new", "prod", "2.6.0"])
def test_the_torch_of_a_release_and_not_its_name_says_whether_it_keeps_sizes_open(
    name: str, torch: str, says: bool
) -> None:
    """Of an interpreter that is called new, the name says nothing; and what 2.15.0 fixes, 2.15.0 does not keep open."""
    held = probe(result(), converted={"dimensions": [[["input", 0], [4, 3]]], "bytes": 100})
    requests = {"example": request(4, 3), "other": request(7, 3)}
    tried = replace(
        READY, release=name, torch=torch, conversion=held, requests=requests, answers=(answers(other=GUARD),)
    )
    expected = says or (name == "2.6.0" and not torch)
    assert judge(tried).advice.startswith("convert in a release that keeps sizes open") is expected


@pytest.mark.parametrize(
    ("batch", "asked", "outcome", "kind"),
    [
        (4, Outcome.COMPLETED, Migrated.FIXED, "one batch size"),
        (1, Outcome.COMPLETED, Migrated.FIXED, "batch of 1"),
        (4, Outcome.RUNTIME_ERROR, Migrated.READY, ""),  # as TorchScript it takes that one alone, too
        (4, Outcome.STARVED, Migrated.UNDECIDED, "starved"),
    ],
)
def test_a_batch_that_no_request_varies_is_fixed_only_where_torchscript_takes_another(
    batch: int, asked: Outcome, outcome: Migrated, kind: str
) -> None:
    fixed = Dimension(argument="input[0]", axis=0, taken=str(batch), asked=(str(batch + 1),))
    requests = {name: request(batch, 3) for name in ("example", "other")}
    tried = replace(READY, requests=requests, batch=(fixed,), other_batch=probe(result(asked)))
    found = judge(tried)
    assert (found.outcome, found.kind) == (outcome, kind)
    assert found.dimensions == ((fixed,) if outcome is Migrated.FIXED else ())


def test_sizes_of_one_and_plain_values_are_causes_of_their_own() -> None:
    one = probe(result(), converted={"dimensions": [[["input", 0], [1, 3]]], "bytes": 100})
    requests = {"example": request(1, 3), "other": request(7, 3)}
    found = judge(replace(READY, conversion=one, requests=requests, answers=(answers(other=GUARD),)))
    assert (found.kind, found.advice.split(":")[0]) == ("size of 1", "give a request with 2 or more there as well")
    kinds = [(Migrated.FIXED, kind) for kind in ("size", "plain value", "size", "size of 1")]
    assert [cause.title for cause in causes_of(of(*kinds).models)] == [
        "dimensions fixed: size",
        "dimensions fixed: plain value",
        "dimensions fixed: size of 1",
    ]


def test_a_size_that_is_refused_by_a_guard_alone_is_fixed_too() -> None:
    found = judge(replace(READY, answers=(answers(other=GUARD),)))
    assert found.outcome is Migrated.FIXED
    assert "dimension 0" in found.reason


def test_a_request_that_is_answered_with_the_examples_value_is_told_as_that_value() -> None:
    held = probe(result(), converted={"dimensions": [[["input", 0], [None, 3]], [["input", 1], None]], "bytes": 9})
    requests = {
        name: ["tuple", [["tensor", {"shape": [4, 3]}], ["int", size]]] for name, size in (("example", 4), ("other", 2))
    }
    wrong = CallComparison(input_set="other", call=0, tensors=(OFF,))
    tried = replace(
        READY, conversion=held, requests=requests, answers=(answers(comparison=replace(EQUAL, calls=(wrong,))),)
    )
    found = judge(tried)
    assert (found.outcome, found.reason) == (Migrated.FIXED, "input[1] is the constant 4, and requests have 2 too")
    guard = result(Outcome.RUNTIME_ERROR, "AssertionError: Guard failed: probes_1 == 4")
    assert judge(replace(tried, answers=(answers(other=guard),))).reason == found.reason
    elsewhere = replace(wrong, input_set="example")
    other = replace(tried, answers=(answers(comparison=replace(EQUAL, calls=(wrong, elsewhere))),))
    assert judge(other).outcome is Migrated.DIFFERS


def test_an_error_that_no_size_explains_is_another_answer() -> None:
    broken = result(Outcome.RUNTIME_ERROR, "RuntimeError: mat1 and mat2 disagree")
    found = judge(replace(READY, answers=(answers(other=broken),)))
    assert (found.outcome, found.kind) == (Migrated.DIFFERS, "call error")
    assert found.reason.startswith("other: does not answer: RuntimeError")


def test_a_release_that_does_not_load_the_program_is_named() -> None:
    lost = answers("2.6.0", result(Outcome.LOAD_ERROR, "KeyError: no item named 'version'", "load"), None)
    found = judge(replace(READY, answers=(answers(), lost)))
    assert (found.outcome, found.kind) == (Migrated.NOT_LOADABLE, "in 2.6.0")
    assert "does not load in 2.6.0: KeyError" in found.reason
    assert found.advice.endswith("--new 2.6.0")
    newer = replace(lost, release="2.7.0")
    for loaders in ((lost, newer), (newer, lost)):
        assert judge(replace(READY, answers=(answers(), *loaders))).advice.endswith("--new 2.6.0")
    assert (
        "this one does not load what it writes itself"
        in judge(replace(READY, answers=(lost, newer), release="2.6.0")).advice
    )


STARVED = result(Outcome.STARVED)


def starving(**others: Any) -> Answers:
    """Return answers of a process that a busy machine kept from one of its requests."""
    found = answers(other=STARVED, **others)
    return replace(found, probe=replace(found.probe, models=(found.load, *found.calls.values())))


@pytest.mark.parametrize(
    "tried",
    [
        replace(READY, answers=(starving(),)),
        replace(READY, answers=(answers(), replace(starving(), release="2.6.0"))),
        replace(READY, package=probe(result()), packaged=starving()),
        replace(READY, package=probe(result()), packaged=starving(load=result(Outcome.STARVED, phase="load"))),
        replace(READY, package=probe(result()), packaged=answers(), in_cpp=starving()),
    ],
)
def test_what_a_busy_machine_kept_from_an_answer_is_undecided(tried: Tried) -> None:
    found = judge(tried)
    assert (found.outcome, found.kind, found.advice) == (Migrated.UNDECIDED, "starved", "run it again")


def test_a_difference_is_one_whatever_a_busy_machine_kept_from_an_answer() -> None:
    wrong = replace(EQUAL, calls=(CallComparison(input_set="example", call=0, tensors=(OFF,)),))
    assert judge(replace(READY, answers=(starving(comparison=wrong),))).outcome is Migrated.DIFFERS


FFT = """UnsupportedOperatorException: aten._fft_r2c.default

While executing %fft_rfft : [num_users=1] = call_function[target=torch.ops.aten.fft_rfft.default](args = (%x,))
Original traceback:
None"""
COMPILED = """CppCompileError: C++ compile error

Command:
g++ /w/cx.cpp -D TORCH_INDUCTOR_CPP_WRAPPER -shared -o /w/cx.so

Output:
/w/cx.cpp: In member function 'void torch::aot_inductor::AOTInductorModel::run_impl()':
/w/cx.cpp:585:27: error: 'aoti_torch_cpu_segment_reduce' was not declared in this scope
"""
LOWERED = """InductorError: LoweringException: NotImplementedError: no rule
  target: mylib.scan.default
  args[0]: TensorBox(StorageBox(InputBuffer(name='arg0_1')))"""


@pytest.mark.parametrize(
    ("said", "kind", "reason"),
    [
        (
            "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx",
            "no compiler",
            "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx",
        ),
        (FFT, "operator aten._fft_r2c.default", "UnsupportedOperatorException: aten._fft_r2c.default"),
        (
            LOWERED,
            "operator mylib.scan.default",
            "InductorError: LoweringException: NotImplementedError: no rule: mylib.scan.default",
        ),
        (
            COMPILED,
            "operator segment_reduce",
            "CppCompileError: error: 'aoti_torch_cpu_segment_reduce' was not declared in this scope",
        ),
        (
            "CppCompileError: C++ compile error\n\nCommand:\ng++ x.cpp\n\nOutput:\nx.cpp:1:1: fatal error: no such thing",
            "not packageable",
            "CppCompileError: fatal error: no such thing",
        ),
        (
            "InductorError: CppCompileError: C++ compile error\n\nOutput:\nx.cpp:9:1: error: conflicting declaration ‘auto& inputs’",
            "name of a buffer",
            "CppCompileError: error: conflicting declaration ‘auto& inputs’",
        ),
        ("RuntimeError: else", "not packageable", "RuntimeError: else"),
    ],
)
def test_a_package_that_cannot_be_made_names_the_operator_or_what_is_lacking(said: str, kind: str, reason: str) -> None:
    failed = probe(result(Outcome.EXPORT_ERROR, said, "convert"))
    found = judge(replace(READY, package=failed))
    assert (found.outcome, found.kind, found.reason) == (Migrated.NOT_PACKAGEABLE, kind, reason)
    assert bool(found.advice) == (kind != "not packageable")


def test_a_package_that_finds_no_room_to_be_unpacked_says_so_in_either_language() -> None:
    said = "RuntimeError: Failed to create temporary directory: No space left on device"
    full = answers("2.15.0", result(Outcome.LOAD_ERROR, said, "load"), None)
    made = replace(READY, package=probe(result(), packaged={"bytes": 5}), packaged=answers())
    for tried in (replace(made, packaged=full), replace(made, in_cpp=full)):
        found = judge(tried)
        assert (found.outcome, found.kind) == (Migrated.NOT_PACKAGEABLE, "no space left")
        assert "/tmp" in found.advice


def test_a_package_that_answers_otherwise_is_no_package() -> None:
    made = probe(result(), packaged={"bytes": 5})
    ready = replace(READY, package=made, packaged=answers())
    assert judge(ready).outcome is Migrated.READY
    wrong = judge(replace(ready, packaged=answers(comparison=changed(tensors=(OFF,)))))
    assert wrong.outcome is Migrated.NOT_PACKAGEABLE


@pytest.mark.parametrize("kind", ["not_exported", "no_requests", "fails_before"])
def test_what_cannot_be_tried_is_undecided_with_its_reason(kind: str) -> None:
    found = judge(Tried(model="ranker", release="2.15.0", stopped=(kind, "as it is")))
    assert (found.outcome, found.kind) == (Migrated.UNDECIDED, kind)
    assert "as it is" in found.reason


def test_a_starved_probe_is_no_verdict_on_the_artifact() -> None:
    starved = probe(result(Outcome.STARVED, phase="convert"))
    assert judge(replace(READY, conversion=starved, answers=())).outcome is Migrated.UNDECIDED


def of(*outcomes: tuple[Migrated, str]) -> Migration:
    models = tuple(
        MigratedModel(model=f"m{index}", outcome=outcome, kind=kind) for index, (outcome, kind) in enumerate(outcomes)
    )
    return Migration(
        device="cpu", profile="default", old="2.6.0", new="2.15.0", releases={}, loaders=("2.15.0",), models=models
    )


READY_ONE, BLOCKED = (Migrated.READY, ""), (Migrated.NOT_CONVERTIBLE, "prim::If")


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([READY_ONE, READY_ONE], ExitCode.COMPATIBLE),
        ([READY_ONE, BLOCKED], ExitCode.INCOMPATIBLE),
        ([READY_ONE, (Migrated.UNDECIDED, "no_requests")], ExitCode.INCONCLUSIVE),
        ([BLOCKED, (Migrated.UNDECIDED, "no_requests")], ExitCode.INCOMPATIBLE),
        ([], ExitCode.INCONCLUSIVE),
    ],
)
def test_exit_codes_are_those_of_every_command(outcomes: list[tuple[Migrated, str]], code: ExitCode) -> None:
    assert exit_code(of(*outcomes)) is code


def test_models_with_one_obstacle_are_one_cause_and_others_are_not() -> None:
    migration = of(
        READY_ONE, BLOCKED, (Migrated.UNDECIDED, "no_requests"), (Migrated.NOT_CONVERTIBLE, "prim::Loop"), BLOCKED
    )
    causes = causes_of(migration.models)
    told: Mapping[str, tuple[str, ...]] = {cause.title: cause.models for cause in causes}
    assert told == {
        "not convertible: prim::If": ("m1", "m4"),
        "not convertible: prim::Loop": ("m3",),
        "undecided: no_requests": ("m2",),
    }
    assert [cause.status for cause in causes] == [Status.FAIL, Status.FAIL, Status.INCONCLUSIVE]
    assert counts_words(migration.models) == "5 models: 1 ready, 3 not convertible, 1 undecided"


def test_what_stops_most_models_stands_first_and_what_is_undecided_last() -> None:
    lost, served = (Migrated.UNDECIDED, "no_requests"), (Migrated.FAILS_SERVED, "crash")
    causes = causes_of(of(lost, lost, lost, BLOCKED, served, served, (Migrated.DIFFERS, "numbers")).models)
    assert [(cause.kind, len(cause.models)) for cause in causes] == [
        ("fails when served", 2),
        ("not convertible", 1),
        ("answers otherwise", 1),
        ("undecided", 3),
    ]
