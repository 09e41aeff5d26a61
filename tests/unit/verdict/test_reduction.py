"""Which nodes a reduction chooses from, and how two failures are told to be the same."""

from harness.verdict.reduction import block_nodes, ending_words, runs_within, symptom_of, way_of
from harness.core.diagnosis import Place, Symptom, TracedNode
from harness.core.outcome import Outcome
from harness.core.probe import CallRecord, Failure, ModelResult, ProbeResult


def nodes(**kinds: str) -> dict[Place, TracedNode]:
    """Return nodes by place: ``p3_0_1="aten::add"`` is node 1 of run 0 of a block of node 3."""
    places = {tuple(int(label) for label in name[1:].split("_")): kind for name, kind in kinds.items()}
    return {place: TracedNode(place=place, kind=kind) for place, kind in places.items()}


BLOCKS = nodes(
    p0="prim::Constant",
    p1="prim::GetAttr",
    p2="aten::linear",
    p3="prim::Loop",
    p3_0_0="aten::cos",
    p3_0_1="prim::Constant",
    p3_1_0="aten::cos",
    p3_2_0="prim::If",
    p3_2_0_1_0="aten::sin",
    p4="prim::fork",
    p4_0="aten::relu",
    p5="prim::SetAttr",
)


def test_what_comes_along_by_itself_is_not_chosen_from() -> None:
    assert [node.kind for node in block_nodes(BLOCKS, ())] == ["aten::linear", "prim::Loop", "prim::fork"]
    assert [node.place for node in block_nodes(BLOCKS, (3, 0))] == [(3, 0, 0)]
    assert [node.kind for node in block_nodes(BLOCKS, (4,))] == ["aten::relu"]


def test_of_a_loop_the_first_and_the_last_turn_are_searched_and_of_an_if_the_branch_taken() -> None:
    assert runs_within(BLOCKS, BLOCKS[3,]) == ((3, 0), (3, 2))
    assert runs_within(BLOCKS, BLOCKS[3, 2, 0]) == ((3, 2, 0, 1),)
    assert runs_within(BLOCKS, BLOCKS[4,]) == ((4,),)
    assert runs_within(BLOCKS, BLOCKS[2,]) == ()


def test_of_a_loop_a_turn_that_takes_another_branch_is_searched_too() -> None:
    ran = [(0, 0, 0), (0, 1, 0), (0, 1, 0, 0, 0), (0, 2, 0), (0, 3, 0), (0, 3, 0, 0, 0), (0, 4, 0)]
    found = {at: TracedNode(place=at, address=(0, 0, *at[2:]), kind="prim::If") for at in ran}
    loop = TracedNode(place=(0,), address=(0,), kind="prim::Loop")
    assert runs_within({(0,): loop, **found}, loop) == ((0, 0), (0, 4), (0, 1))


def raised(message: str) -> ModelResult:
    failure = Failure(type="RuntimeError", message=message, phase="call")
    return ModelResult(
        model="m", outcome=Outcome.RUNTIME_ERROR, phase="call", input_set="example", call=0, failure=failure
    )


def test_an_error_is_the_same_whatever_numbers_it_names() -> None:
    assert way_of(raised("size 3 at 0x7f01")) == way_of(raised("size 12 at 0x7f77"))
    assert way_of(raised("size 3")) != way_of(raised("stride 3"))
    assert way_of(ModelResult(model="m", outcome=Outcome.HANG)) == "hang"


def test_what_completes_answers_otherwise_and_what_was_not_called_shows_nothing() -> None:
    assert symptom_of(raised("no")) is Symptom.ERROR
    assert symptom_of(ModelResult(model="m", outcome=Outcome.COMPLETED)) is Symptom.VALUES
    assert symptom_of(ModelResult(model="m", outcome=Outcome.NOT_RUN)) is None


def probe(result: ModelResult, detail: str = "") -> ProbeResult:
    return ProbeResult(
        key="k", side="new", outcome=Outcome.COMPLETED, directory="/p", models=(result,), exit_detail=detail
    )


def test_an_ending_is_reported_with_its_call() -> None:
    calls = (CallRecord(input_set="example", call=0, duration_ns=1_500_000),)
    completed = ModelResult(model="m", outcome=Outcome.COMPLETED, phase="record", calls=calls)
    hung = ModelResult(model="m", outcome=Outcome.HANG, phase="call", input_set="example", call=1)
    crashed = ModelResult(model="m", outcome=Outcome.CRASH, phase="call", input_set="example", call=1)
    assert ending_words(probe(completed)) == "completes, 1.5 ms a call at most"
    assert ending_words(probe(hung)) == "hangs in call 1 of example"
    assert ending_words(probe(crashed, "signal SIGSEGV")) == "crashes in call 1 of example (signal SIGSEGV)"
    assert ending_words(probe(raised("no"))) == "raises RuntimeError: no"
