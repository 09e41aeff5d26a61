"""What is to be done about each cause that blocks, at which price, and what is expected then."""

import math
from dataclasses import replace

import pytest

from harness.core.measurement import RatioEstimate
from harness.core.outcome import Decision, Status
from harness.core.policy import Demand
from harness.core.report import RunReport
from harness.core.verdict import Cause, Fix, Provenance
from harness.report.ci.comment import render_comment
from harness.report.words.summary import reason_words
from harness.verdict.mitigation import price_words
from harness.report.words.to_upgrade import Step, expectation, is_dear, rewritten_files, steps
from tests.unit.builders.rendered import render_console, render_html, render_markdown
from tests.unit.builders.reports import blocked, ratio, upgrade_ok

CHEAP = Fix(name="device-test", rewrites=True, what="in words", price=ratio(1.02))
DEAR = Fix(
    name="resize", rewrites=True, needs="images of bytes",
    price=RatioEstimate(ratio=9.66, low=8.44, high=11.05, pairs=3, detectable=1.1),
)  # fmt: skip

WAIVE = (("accept", "python -m harness waivers add RUN --cause ID --owner NAME --reason TEXT"),)
SWITCH = Fix(name="profiling off", price=ratio(1.02))


def with_fixes(*fixes: Fix | None) -> RunReport:
    """Return a blocked run with a cause per fix; the first model's answers are what is wrong."""
    cell = "recommender_v2/backward/alone/cpu/default"
    report = blocked()
    known = next(cell for cell in report.judgement.cells if cell.model == "recommender_v2" and cell.scenario == "alone")
    causes = tuple(
        Cause(
            id=f"cause-{at}",
            kind="semantics",
            status=Status.FAIL,
            title="title",
            cells=(known.cell or cell,),
            models=("recommender_v2",),
            fix_verified=fix is not None,
            remedy=fix,
            commands=WAIVE,
            deploy=(("recommender_v2", f"explained/{at}/m.pt"),) if fix is not None and fix.rewrites else (),
        )
        for at, fix in enumerate(fixes)
    )
    return replace(report, causes=causes)


def test_a_step_says_what_to_deploy_its_price_and_what_it_needs() -> None:
    cheap, dear, none = steps(with_fixes(CHEAP, DEAR, None), "reports/r")
    accept = "or accept the difference"
    assert cheap == Step(
        "recommender_v2",
        f"deploy the file below, {'latency ' + CHEAP.price.words if CHEAP.price else ''}; the old release loads it too",
        "reports/r/explained/0/m.pt",
    )
    assert dear.text == (
        f"deploy the file below, 9.7 times slower [8.4, 11.1] (limit +3 %), {accept}; needs: images of bytes; "
        "the old release loads it too"
    )
    assert (cheap.commands, dear.commands, none.commands) == ((), WAIVE, WAIVE)
    assert none.text == f"no fix found: ask its owner for an export by torch 2.6.0, {accept}"
    assert (none.path, dear.whole.partition(",")[0]) == ("", "deploy reports/r/explained/1/m.pt")
    assert steps(upgrade_ok(), "reports/r") == ()


def test_a_green_run_is_expected_only_where_every_cause_has_a_fix_and_nothing_else_is_in_the_way() -> None:
    report = with_fixes(CHEAP, DEAR)
    cheap = expectation(with_fixes(CHEAP, CHEAP))
    assert cheap == "Not tested yet: run it again with these files. UPGRADE OK is expected."
    assert expectation(report) == (
        "Not tested yet: run it again with these files. The gate will then pass, and will not see the price: "
        "decide on that first."
    )
    assert "OK WITH MITIGATION" in expectation(with_fixes(CHEAP, Fix(name="profiling off")))
    lacking = replace(report.policy, demands=(Demand(what="minimum_models = 40", found="6 judged", met=False),))
    for other in (
        with_fixes(CHEAP, None),
        with_fixes(CHEAP, replace(DEAR, breaks=("other",))),
        replace(report, policy=lacking),
        replace(report, judgement=replace(report.judgement, of_cell=True)),
        upgrade_ok(),
    ):
        assert expectation(other) == ""


def test_what_stays_undecided_after_all_fixes_is_a_step_and_no_upgrade_is_promised() -> None:
    report = with_fixes(CHEAP)
    what, do = "not judged: the file is damaged", "copy or export it again"
    damaged = replace(
        report.causes[0],
        id="damaged",
        kind="alone",
        status=Status.INCONCLUSIVE,
        models=("truncated",),
        evidence=(("what", what),),
        fix=do,
    )
    report = replace(report, causes=(*report.causes, damaged))
    assert steps(report, "reports/r")[1] == Step("truncated", f"{what}; {do}")
    by_policy = replace(damaged, status=Status.FAIL, remedy=None, deploy=(), commands=())
    assert steps(replace(report, causes=(by_policy,)), "reports/r")[0] == Step("truncated", do)
    assert expectation(report) == "Not tested yet: with these fixes it is still INCONCLUSIVE, for truncated."
    assert "upgradable after" not in reason_words(report)


@pytest.mark.parametrize(
    ("fixes", "words"),
    [
        ((CHEAP, CHEAP), "upgradable after 2 file swaps; 1 of 6 models fails, 2 causes; "),
        ((CHEAP, DEAR), "upgradable after 2 file swaps, 1 of them beyond the latency limit; "),
        ((DEAR, DEAR), "upgradable after 2 file swaps, all beyond the latency limit; "),
        ((DEAR, SWITCH), "upgradable after 1 file swap and 1 setting, 1 of them beyond the latency limit; "),
        ((CHEAP, DEAR, None), "3 causes, 2 of them with a verified fix, 1 of them beyond the latency limit; "),
        ((DEAR,), "upgradable after 1 file swap beyond the latency limit; "),
        ((None,), "1 cause; "),
    ],
)
def test_a_fix_beyond_the_limit_is_not_just_called_verified(fixes: tuple[Fix | None, ...], words: str) -> None:
    assert words in reason_words(with_fixes(*fixes))
    assert price_words(replace(DEAR, price=ratio(3.0, math.inf, pairs=1))) == "3.0 times slower (1 pair)"
    timed = replace(DEAR, call_s=(1.2e-5, 1.16e-4))
    assert price_words(timed) == "9.7 times slower [8.4, 11.1] (12 us -> 116 us a call)"
    assert not is_dear(replace(DEAR, price=ratio(1.06, 0.05)), with_fixes(DEAR))  # it may well be within


def test_every_format_has_the_steps_first_and_each_cause_once() -> None:
    report = with_fixes(CHEAP, DEAR)
    console, markdown, page, comment = (
        render_console(report, width=100), render_markdown(report), render_html(report), render_comment(report),
    )  # fmt: skip
    assert console.index("To upgrade\n  1  recommender_v2: deploy") > console.index("planted")
    assert console.index("To upgrade") < console.index("why ") < console.index("BLOCKED")
    assert markdown.index("## To upgrade\n\n1. recommender_v2: deploy") < markdown.index("**torch**")
    assert page.index("To upgrade") < page.index("At a glance")
    assert "1. deploy explained/0/m.pt, latency" in comment and "- **then** Not tested yet: run it again" in comment
    assert len([line for line in console.splitlines() if line.strip() == WAIVE[0][1]]) == 1
    long = with_fixes(replace(DEAR, needs=" ".join(f"thing {at}," for at in range(120)) + " and the last"))
    assert "and the last" in render_console(long, width=100)
    for text in (console, markdown):
        assert text.count("9.7 times slower") == 2  # the step, and the line on costs in the same words
    for text in (console, markdown, page, comment):
        assert "upgradable after 2 file swaps, 1 of them beyond the latency limit" in text


def test_a_rewritten_file_is_told_as_one_also_where_all_is_green() -> None:
    fix = replace(DEAR, call_s=(1.2e-5, 1.16e-4))
    known = Provenance(origin="thumbs", from_digest="ab" * 32, old="torch 2.1.2", new="torch 2.6.0", fix=fix)
    unpriced = replace(known, fix=Fix(name="resize", rewrites=True), new="")
    report = upgrade_ok()
    first, second, third = report.models
    report = replace(report, models=(replace(first, provenance=known), replace(second, provenance=unpriced), third))
    priced, other = rewritten_files(report)
    assert priced == (
        f"{first.model}: its file is a rewrite of thumbs (abababab) by resize, with the answers of torch 2.1.2, "
        "9.7 times slower [8.4, 11.1] (12 us -> 116 us a call) against the original in torch 2.1.2, when it was "
        "verified for torch 2.6.0; no latency here has that price in it: both releases call the rewrite"
    )
    assert "at a price that only NAME.provenance.json beside it tells" in other
    bisect = "python -m harness bisect --artifact ORIGINAL.pt --old 2.1.2 --new 2.6.0"
    texts = (render_console(report, width=100), render_markdown(report), render_html(report))
    assert all("9.7 times slower" in text and bisect in text for text in texts)
    assert "9.7 times slower" in render_comment(report)
    assert "a rewrite of" not in render_console(upgrade_ok(), width=100)


def test_who_answers_for_a_model_stands_with_its_step_and_with_its_cause() -> None:
    report = with_fixes(CHEAP)
    models = tuple(replace(model, owner="ads team") for model in report.models)
    (step,) = steps(replace(report, models=models), "reports/r")
    assert step.whose == "recommender_v2, owner ads team"
    assert "  owner     ads team\n" in render_console(replace(report, models=models), width=100)


def test_on_a_page_the_command_of_a_step_is_folded_up() -> None:
    (_, command), page = WAIVE[0], render_html(with_fixes(None))
    head = page[page.index('id="to-upgrade"') : page.index("</header>")]
    assert head.index("<summary>its command</summary>") < head.index(command) < head.index("</details>")
