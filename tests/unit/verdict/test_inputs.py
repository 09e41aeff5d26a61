"""Guessed inputs are told, and a model or a method that nobody could call is never green."""

import pytest

from harness.verdict.inputs import (
    draw_notes,
    stride_notes,
    guess_notes,
    inputs_words,
    latency_with_inputs,
    changed,
    with_changed_operators,
    with_inputs,
    with_provenance,
    with_requests,
    with_subjects,
    with_what_requests_miss,
)
from harness.core.archive import ArchiveFacts, ArchiveFormat, CodePlace, OperatorUse, Reach
from harness.core.models import InputSet
from harness.core.outcome import Status
from harness.core.plan import PolicySettings
from harness.core.policy import ModelPolicy
from harness.core.verdict import CellVerdict, Finding, Fix, Provenance
from harness.verdict.enforce import with_policy
from harness.artifacts.adopted import uncalled_methods
from harness.worker import wire
from tests.unit.builders.stages import artifact
from tests.unit.builders import verdicts

GUESS = "guessed from the graph: forward(x=float32[2, 3])"
HANG = Finding(kind="hang", message="hangs in load")


def verdict(status: Status = Status.PASS, *findings: Finding) -> CellVerdict:
    return CellVerdict(cell="m/alone", model="m", scenario="alone", status=status, findings=findings)


@pytest.mark.parametrize("status", list(Status))
def test_inputs_that_were_given_change_nothing(status: Status) -> None:
    assert with_inputs(verdict(status, HANG), artifact()) == verdict(status, HANG)


def test_guessed_inputs_are_reported_behind_everything_else() -> None:
    found = with_inputs(
        verdict(Status.FAIL, HANG), artifact(inputs_note="guessed from the graph: forward(x=float32[2, 3])")
    )
    assert found.status is Status.FAIL
    assert [finding.kind for finding in found.findings] == ["hang", "guessed_inputs"]
    assert "float32[2, 3]" in found.findings[1].message


BICUBIC = ("aten::relu", "aten::upsample_bicubic2d")
DRAWS = ("aten::dropout",)


def test_a_failure_is_of_the_operators_that_can_show_it_and_of_no_other() -> None:
    pair = ("2.1.2", "2.6.0")
    known = changed(artifact(operators=BICUBIC), pair, draws=False)
    red = verdict(Status.FAIL, *(verdicts.finding(kind) for kind in ("load_error", "values", "dtype")))
    told = with_subjects(red, pair, known, ("c::d", "a::b"))
    assert [item.subject for item in told.findings] == ["a::b, c::d", "aten::upsample_bicubic2d", ""]
    assert with_subjects(red, pair, (), ()) == red


@pytest.mark.parametrize(
    ("operators", "note", "pair", "draws", "warned"),
    [
        (BICUBIC, GUESS, ("2.1.2", "2.6.0"), False, True),
        (BICUBIC, "guessed from config.pbtxt: forward(x=uint8[2, 3])", ("2.1.2", "2.6.0"), False, True),
        (BICUBIC, GUESS, ("2.6.0", "2.1.2"), False, True),
        (BICUBIC, "", ("2.1.2", "2.6.0"), False, False),  # given requests show what they show
        (BICUBIC, GUESS, ("2.6.0", "2.7.0"), False, False),
        (("aten::relu",), GUESS, ("2.1.2", "2.6.0"), False, False),
        (DRAWS, GUESS, ("2.6.0", "2.7.0"), True, True),
        (DRAWS, GUESS, ("2.6.0", "2.7.0"), False, False),  # a dropout at rest
        (BICUBIC, GUESS, ("", "2.6.0"), False, False),
    ],
)
def test_an_operator_that_is_known_to_answer_otherwise_is_warned_of_where_inputs_are_guesses(
    operators: tuple[str, ...], note: str, pair: tuple[str, str], draws: bool, warned: bool
) -> None:
    asked = artifact(operators=operators, inputs_note=note)
    found = with_changed_operators(with_inputs(verdict(), asked), asked, pair, draws=draws)
    assert found.status is Status.PASS
    assert ("changed_operator" in found.kinds) is warned
    if warned:
        assert "its inputs are guesses" in found.findings[0].message and "https://" in found.findings[0].message


def test_a_rewritten_file_is_told_behind_everything_else() -> None:
    fix = Fix(name="gelu", rewrites=True, price=verdicts.ratio(1.05, 1.15, 1.1))
    provenance = Provenance(origin="m", from_digest="ab" * 32, old="torch 2.1.2", new="torch 2.6.0", fix=fix)
    found = with_provenance(verdict(Status.FAIL, HANG), provenance)
    assert [finding.kind for finding in found.findings] == ["hang", "rewritten_file"]
    assert "latency +10.0 %" in found.findings[1].message and found.status is Status.FAIL


def test_what_fails_needs_no_such_warning() -> None:
    asked = artifact(operators=BICUBIC, inputs_note=GUESS)
    found = with_changed_operators(verdict(Status.FAIL, HANG), asked, ("2.1.2", "2.6.0"), draws=False)
    assert found.findings == (HANG,)


def test_model_that_was_only_loaded_is_not_green() -> None:
    found = with_inputs(verdict(), artifact(input_sets=(), inputs_note="forward(Dict[str, Tensor] y): keys unknown"))
    assert found.status is Status.INCONCLUSIVE
    assert found.findings[0].kind == "not_called" and "keys unknown" in found.findings[0].message


@pytest.mark.parametrize("status", [Status.FAIL, Status.SAME_FAIL, Status.INCONCLUSIVE])
def test_failure_at_loading_stays_what_it_is_without_inputs(status: Status) -> None:
    found = with_inputs(verdict(status, HANG), artifact(input_sets=(), inputs_note="no idea"))
    assert (found.status, found.findings) == (status, (HANG,))
    assert "no idea" in found.note


def test_note_stands_for_inputs_of_any_number() -> None:
    sets = (InputSet(name="guessed"), InputSet(name="guessed_other_batch"))
    assert with_inputs(verdict(), artifact(input_sets=sets, inputs_note="guessed")).status is Status.PASS


def test_file_that_does_not_load_needs_no_word_about_calls() -> None:
    refused = verdict(Status.SAME_FAIL, Finding(kind="load_error", message="does not load"))
    assert with_inputs(refused, artifact(input_sets=(), inputs_note="it does not load")) == refused


def test_every_method_that_was_named_must_be_called() -> None:
    named, why = artifact(uncalled=("rank(Tensor x): any x; put requests beside the file",)), "rank(Tensor x): any x"
    found = with_inputs(verdict(), named, evidence="probes/k/inputs")
    assert found.status is Status.INCONCLUSIVE
    (told,) = found.findings
    assert (told.kind, told.evidence) == ("not_called", "probes/k/inputs") and why in told.message
    broken = with_inputs(verdict(Status.FAIL, HANG), named)
    assert (broken.status, [finding.kind for finding in broken.findings]) == (Status.FAIL, ["hang", "not_called"])


def test_method_without_an_input_set_is_known_by_name() -> None:
    adopted = {"input_sets": [["example", "forward"]], "given_up": [["rank", "rank(Tensor x): any x"]]}
    assert uncalled_methods(("forward", "rank", "encode"), adopted) == (
        "rank(Tensor x): any x",
        "encode: no request asks it",
    )
    assert uncalled_methods(("forward",), adopted) == ()
    assert uncalled_methods(("forward",), {"input_sets": [["example", wire.KEYWORDS_METHOD]]}) == ()


def test_guess_that_is_answered_with_nothing_decides_nothing() -> None:
    silent = with_inputs(verdict(), artifact(inputs_note=GUESS), answered=False)
    assert silent.status is Status.INCONCLUSIVE
    assert [finding.kind for finding in silent.findings] == ["not_decidable", "guessed_inputs"]
    assert "no value was compared" in silent.findings[0].message
    assert with_inputs(verdict(), artifact(inputs_note=GUESS), answered=True).status is Status.PASS
    given = with_inputs(verdict(), artifact(), answered=False)
    assert (given.status, given.kinds) == (Status.INCONCLUSIVE, ("no_value",))
    lenient = ModelPolicy(
        settings=PolicySettings(severity={"no_value": "warn"}), by={"severity.no_value": "policy.toml"}
    )
    assert with_policy(given, lenient, None).status is Status.PASS  # somebody gave these, and may know
    failed = with_inputs(verdict(Status.FAIL, HANG), artifact(inputs_note=GUESS), answered=False)
    assert [finding.kind for finding in failed.findings] == ["hang", "guessed_inputs"]


@pytest.mark.parametrize("status", [Status.FAIL, Status.INCONCLUSIVE])
def test_latency_of_guessed_inputs_is_shown_and_decides_nothing(status: Status) -> None:
    found = latency_with_inputs(verdict(status, HANG), GUESS)
    assert (found.status, found.decides, found.findings) == (status, False, (HANG,))
    assert "guessed" in found.note
    assert latency_with_inputs(verdict(status, HANG), "") == verdict(status, HANG)


def test_note_counts_the_models_and_names_three() -> None:
    guessed = {f"m{index}": artifact(inputs_note=GUESS) for index in range(5)}
    given = {"given": artifact(), "lost": None, "mute": artifact(input_sets=(), inputs_note="nothing tells the keys")}
    (note,) = guess_notes({**guessed, **given})
    named = ", ".join(f"m{index} (forward(x=float32[2, 3]))" for index in range(3))
    assert note == f"inputs of 5 of 8 models were guessed: {named} and 2 more"
    assert guess_notes(given) == ()


def test_words_of_a_bundle_name_what_is_not_called_once() -> None:
    assert inputs_words(artifact()) == ""
    assert inputs_words(artifact(uncalled=("rank: no request asks it",))) == "not called: rank: no request asks it"
    assert inputs_words(artifact(inputs_note=GUESS, uncalled=("rank: why",))) == f"{GUESS}; not called: rank: why"
    assert inputs_words(artifact(input_sets=(), inputs_note="rank: why", uncalled=("rank: why",))) == "rank: why"


def test_request_that_raises_in_both_releases_is_not_taken_for_an_old_failure_of_the_model() -> None:
    raises = Finding(kind="call_error", message="raises at call 0 of friday: ValueError: no", error="ValueError: no")
    found = with_requests(verdict(Status.SAME_FAIL, raises))
    assert (found.status, found.findings[0].kind) == (Status.INCONCLUSIVE, "request_fails")
    assert "friday: ValueError: no" in found.findings[0].message and found.findings[0].error == raises.error
    assert found.findings[0].advice == "mend the request, or leave the model out"
    for other in (verdict(Status.FAIL, raises), verdict(Status.SAME_FAIL, HANG), verdict()):
        assert with_requests(other) == other


def reads(*uses: tuple[str, Reach], calls: dict[str, tuple[str, ...]] | None = None) -> ArchiveFacts:
    """Return what reading an archive shows: operators with how they are reached, and methods with what they call."""
    place = CodePlace(member="code/m.py", line=1, function="m.forward")
    known = calls or {"forward": ()}
    return ArchiveFacts(
        path="m.pt",
        size_bytes=1,
        format=ArchiveFormat.TORCHSCRIPT,
        methods=tuple(known),
        calls=known,
        operators=tuple(
            OperatorUse(name=name, arguments=(), place=place, count=1, reach=reach) for name, reach in uses
        ),
    )


def test_methods_that_no_request_reaches_are_a_finding() -> None:
    codec = artifact(input_sets=(InputSet(name="example"),), reset="clear")
    calls: dict[str, tuple[str, ...]] = {
        "forward": ("nms",),
        "nms": ("area", "nms"),
        "area": (),
        "decode": ("area",),
        "__setstate__": (),
        "clear": (),
    }
    missed = with_what_requests_miss(verdict(), codec, reads(calls=calls), ())
    assert (missed.status, missed.kinds, missed.findings[0].subject) == (Status.PASS, ("untested_method",), "decode")
    strict = ModelPolicy(
        settings=PolicySettings(severity={"untested_method": "inconclusive"}), by={"severity.untested_method": "p.toml"}
    )
    assert with_policy(missed, strict, None).status is Status.INCONCLUSIVE
    for asked, facts in ((codec, reads()), (artifact(input_sets=()), reads(calls=calls)), (codec, None)):
        assert with_what_requests_miss(verdict(), asked, facts, ()) == verdict()


BICUBIC_OP = "aten::upsample_bicubic2d"


@pytest.mark.parametrize(
    ("uses", "note", "missed"),
    [
        ([(BICUBIC_OP, Reach.BRANCH)], "", True),
        ([(BICUBIC_OP, Reach.STRAIGHT)], "", False),
        ([(BICUBIC_OP, Reach.BRANCH), (BICUBIC_OP, Reach.STRAIGHT)], "", False),
        ([("aten::relu", Reach.BRANCH)], "", False),
        ([(BICUBIC_OP, Reach.BRANCH)], GUESS, False),  # of guesses a warning says it
    ],
)
def test_a_branch_with_a_changed_operator_is_a_finding(uses: list[tuple[str, Reach]], note: str, missed: bool) -> None:
    asked = artifact(operators=BICUBIC, inputs_note=note)
    known = changed(asked, ("2.1.2", "2.6.0"), draws=False)
    told = with_what_requests_miss(verdict(), asked, reads(*uses), known)
    assert [item.subject for item in told.findings if item.kind == "untested_branch"] == [BICUBIC_OP] * missed
    assert with_what_requests_miss(verdict(Status.FAIL), asked, reads(*uses), known).findings == ()


def test_models_that_draw_are_named_with_what_may_be_behind_it() -> None:
    assert draw_notes([]) == ()
    assert draw_notes(["drop"])[0].startswith("drop draws random numbers in a call, compared from one seed: ")
    assert draw_notes(["a", "b"])[0].startswith("a, b draw random numbers")


def test_other_strides_are_told_of_the_models_that_have_them() -> None:
    moved = verdicts.verdict(
        Status.PASS, verdicts.finding("stride", message="strides changed at output[0]: a view may fail"), model="a"
    )
    assert stride_notes([verdicts.verdict(Status.PASS, model="b")]) == ()
    (note,) = stride_notes([verdicts.verdict(Status.PASS, model="b"), moved])
    assert note == "outputs of 1 model have other strides: a (strides changed at output[0]: a view may fail)"
