"""Run reports as the gate makes them, one per decision, and one with hostile names."""

import math
import shlex
from dataclasses import replace

from harness.verdict.causes import with_causes
from harness.verdict.counting import counts_of, exceeded
from harness.verdict.since import since
from harness.apps.doctor.during_run import during_run_notes
from harness.core.archive import CodePlace, Reach
from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics, TreeDifference
from harness.core.environment import Fingerprint
from harness.core.machine import MachineDuringRun, MachineEvent
from harness.core.measurement import ArmSample, Block, LatencyMeasurement, PairSample, Quantity, RatioEstimate
from harness.core.migration import Migrated, MigrationOutcome, RunMigration
from harness.core.outcome import Decision, Outcome, Status
from harness.core.plan import PolicySettings
from harness.core.policy import PolicyReport
from harness.core.prediction import (
    ModelRollback,
    PredictedLoad,
    PredictedModel,
    Prediction,
    RollbackAnswer,
    RollbackReport,
    StaticFinding,
    StaticReport,
    StaticVerdict,
    Weight,
)
from harness.core.report import (
    BaselineReport,
    CellChange,
    CellTrend,
    Explained,
    ModelReport,
    RunReport,
    ScenarioReport,
    ScenarioSide,
    SideReport,
)
from harness.core.verdict import (
    PlantedDefectResult,
    CellVerdict,
    Finding,
    Fix,
    Judgement,
    Mitigation,
    RowVerdict,
    Standstill,
)
from harness.checks.startup.rates import more_often

RUN = "20250114-093011-2.1.2-2.6.0"
SCENARIOS = ("alone", "concurrent", "while_serving", "latency")
HOSTILE_NAMES = (
    "pipe|in|name",
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b[0m",
    "nul\x00bell\x07\ufffe\n# heading",
    "\u202eleft-to-right\u2066",
    "`tick` **bold** [link](http://example.org) $(reboot)",
    "long_" + "n" * 290 + "_tail",
    "lone\udcff",
)


def cell_id(model: str, scenario: str) -> str:
    """Return the id that ``Plan.cell`` would give."""
    return f"{model}/{scenario}"


def ratio(value: float, half: float = 0.012, pairs: int = 3) -> RatioEstimate:
    """Return an estimate with a symmetric interval of ``half`` to each side."""
    return RatioEstimate(ratio=value, low=value - half, high=value + half, pairs=pairs, detectable=1 + half)


def quantity(old: float, new: float, unit: str = "s", half: float | None = 0.04) -> Quantity:
    """Return a quantity of both releases; its interval reaches ``half`` to each side, None: it has no ratio."""
    return Quantity(
        old=float(old), new=float(new), unit=unit, ratio=ratio(new / old, half) if half is not None else None
    )


QUANTITIES = {
    "load": quantity(0.118, 0.131),
    "call_0": quantity(0.21, 0.2),
    "call_1": quantity(0.33, 0.35),
    "first_calls": quantity(0.54, 0.55, half=0.05),
    "calls_until_steady": quantity(2.0, 2.0, "calls", None),
    "p50": quantity(0.00212, 0.00215),
    "p90": quantity(0.00226, 0.00228),
    "p99": quantity(0.00251, 0.00263, half=0.15),
    "request": quantity(0.00109, 0.00112),
    "peak_rss": quantity(41_200_000, 42_900_000, "bytes"),
    "growth": quantity(12.0, -3.0, "bytes", None),
    "new_shape:large": quantity(0.021, 0.022),
    "recompilation:large": quantity(0.0, 0.4, "calls", None),
}


def latency(model: str, steady: RatioEstimate) -> LatencyMeasurement:
    """Return a benchmark, with the sample of one of its rounds."""
    arm = ArmSample(
        load_s=0.118,
        calls_s=(0.21, 0.33, 0.0022),
        p90_s=0.00226,
        p99_s=0.00251,
        request_s=0.00109,
        peak_rss_bytes=41_200_000,
        growth_bytes=4096,
        shapes_s={"large": (0.013, 0.004, 0.002, 0.002, 0.002)},
    )
    blocks = tuple(
        Block(arm=name, turn=0, p50_s=p50_s, calls=40, waited=0.002)
        for name, p50_s in (("old", 0.00212), ("new", 0.00215), ("control", 0.00213))
    )
    sample = PairSample(
        model=model,
        round=0,
        blocks=blocks,
        arms={"old": arm, "new": replace(arm, load_s=0.131, calls_s=(0.2, 0.35, 0.0022)), "control": arm},
        spent_s=1.9,
    )
    return LatencyMeasurement(
        model=model,
        samples=(sample,),
        steady=steady,
        same_against_same=ratio(1.004, 0.013),
        quantities=QUANTITIES,
        growth_bytes=-600,
        waited=0.002,
        spent_s=5.7,
    )


def verdict(model: str, scenario: str, status: Status = Status.PASS, *findings: Finding) -> CellVerdict:
    """Return one cell."""
    return CellVerdict(cell=cell_id(model, scenario), model=model, scenario=scenario, status=status, findings=findings)


def healthy(model: str, outputs: str = "bit equal", steady: float = 1.004) -> ModelReport:
    """Return the facts of a model that passes."""
    return ModelReport(
        model=model,
        export=Outcome.COMPLETED,
        load=Outcome.COMPLETED,
        concurrent=Outcome.COMPLETED,
        outputs=outputs,
        worst_relative=0.0,
        load_s=(0.118, 0.131),
        first_calls_s=(0.54, 0.55),
        artifact_digest="9f2c" * 16,
        artifact_bytes=4_812_004,
        group="vision",
        where=f"fixtures/zoo/{model}.py:12",
        latency=latency(model, ratio(steady)),
    )


def passed(model: str) -> RowVerdict:
    """Return the row of a model that passes."""
    return RowVerdict(model=model, status=Status.PASS, cells=tuple(verdict(model, name) for name in SCENARIOS))


def fingerprint(torch: str, revision: str, cuda: str) -> Fingerprint:
    """Return what an environment says of itself."""
    return Fingerprint(
        torch=torch,
        git_revision=revision,
        cuda=cuda,
        cpu="Intel(R) Xeon(R) Platinum 8481C",
        isa="AVX512",
        glibc="2.36",
        cxx11_abi=False,
        python="3.11.9",
        intra_op_threads=1,
        inter_op_threads=1,
        operator_version=10,
    )


PLANTED_DEFECTS = tuple(
    PlantedDefectResult(name=name, expected=expected, reported=(expected,), caught=True)
    for name, expected in (
        ("wrong_value", "values"),
        ("nan_appears", "nan_placement"),
        ("dtype_drift", "dtype"),
        ("hangs_on_call_1", "hang"),
        ("crashes", "crash"),
        ("slow_down", "latency"),
    )
)


def scenario_side(
    models: int,
    *,
    rounds: int = 3,
    failed: int = 0,
    ready: int | None = None,
    init_s: float | None = 1.24,
    overlap: float | None = 1.84,
    growth: float | None = None,
) -> ScenarioSide:
    """Return what one release made of a server group of ``models``; all are ready unless ``ready`` says otherwise."""
    return ScenarioSide(
        rounds=rounds,
        failed=failed,
        ready=models if ready is None else ready,
        init_s=init_s,
        load_overlap=overlap,
        growth_bytes=growth,
        max_rss_bytes=412_000_000,
    )


def scenario(
    name: str, group: str, models: int, *, new: ScenarioSide | None = None, bound: float = 0.6315968, rounds: int = 3
) -> ScenarioReport:
    """Return a server group that the C++ worker brought up in both releases; healthy unless ``new`` says otherwise."""
    return ScenarioReport(
        scenario=name,
        group=group,
        worker="libtorch",
        threads=4,
        models=models,
        new=new or scenario_side(models, rounds=rounds, init_s=1.31, overlap=1.91),
        old=scenario_side(models, rounds=rounds),
        hang_bound=bound,
        init_ratio=ratio(1.056, 0.08, rounds) if new is None else None,
    )


HEALTHY_SCENARIOS = (
    scenario("concurrent", "ranking", 1),
    scenario("concurrent", "vision", 2),
    scenario("while_serving", "ranking", 1, rounds=9, bound=0.2831),
    scenario("while_serving", "vision", 2, rounds=9, bound=0.2831),
)


def build(
    judgement: Judgement,
    models: tuple[ModelReport, ...],
    notes: tuple[str, ...] = (),
    scenarios: tuple[ScenarioReport, ...] = (),
) -> RunReport:
    """Return a report around a judgement; each red cell has its command."""
    rerun = {
        cell.cell: f"python -m harness rerun {RUN} {shlex.quote(cell.cell)}"
        for row in judgement.rows
        for cell in row.cells
        if cell.status is not Status.PASS
    }
    return RunReport(
        run=RUN,
        harness_version="0.1.0",
        started_at="2025-01-14T09:30:11+00:00",
        wall_s=93.4,
        device="cpu",
        direction="backward",
        profile="default",
        old=SideReport(name="torch 2.1.2", fingerprint=fingerprint("2.1.2+cu121", "a8e7c98cb95ff97bb30a728c6", "12.1")),
        new=SideReport(name="torch 2.6.0", fingerprint=fingerprint("2.6.0+cu124", "2236df1770800ffea5697b119", "12.4")),
        environment_differences={"torch": ("2.1.2+cu121", "2.6.0+cu124"), "cuda": ("12.1", "12.4")},
        judgement=replace(
            judgement,
            counts=counts_of(judgement.rows),
            exceeded=judgement.exceeded or tuple(item.words for item in exceeded(judgement.rows)),
        ),
        models=models,
        policy=PolicyReport(source="[tool.compat.policy]", settings=PolicySettings(), steady=1.03, undecided=1.25),
        program="python -m harness",
        scenarios=scenarios,
        time_shares_s={
            "import": 7.9,
            "export": 21.2,
            "golden": 9.6,
            "load": 1.4,
            "calls": 12.7,
            "benchmark": 38.1,
            "harness itself": 2.5,
        },
        notes=notes,
        rerun=rerun,
        arguments=("--old", "2.1.2", "--new", "2.6.0"),
    )


def static_finding(
    subject: str, text: str, kind: str = "operator_missing", weight: Weight = Weight.STOPS, source: str = ""
) -> StaticFinding:
    """Return what the static check found about a call."""
    place = CodePlace(member="code/__torch__/net.py", line=12, function="__torch__.net.Net.forward")
    return StaticFinding(
        kind=kind, weight=weight, subject=subject, text=text, place=place, count=3, reach=Reach.BRANCH, source=source
    )


def predicted(
    *findings: StaticFinding,
    side: str = "new",
    prediction: Prediction = Prediction.LOADS,
    happened: PredictedLoad = PredictedLoad.LOADED,
    note: str = "",
) -> PredictedModel:
    """Return a prediction beside what happened, for torch 2.1.2 or torch 2.6.0."""
    torch, direction = {"old": ("2.1.2", "forward"), "new": ("2.6.0", "backward")}[side]
    expected = {Prediction.LOADS: PredictedLoad.LOADED, Prediction.FAILS: PredictedLoad.REFUSED}.get(prediction)
    told = StaticVerdict(torch=torch, direction=direction, prediction=prediction, findings=findings)
    agreed = None if expected is None or happened is PredictedLoad.UNKNOWN else happened is expected
    return PredictedModel(release=f"torch {torch}", verdict=told, happened=happened, agreed=agreed, note=note)


def static(new: PredictedModel | None = None, *, model: str = "net", golden: bool = False) -> StaticReport:
    """Return the static check of an artifact; it loads in the old release."""
    sides = {"new": new or predicted()}
    return StaticReport(
        artifact=f"probes/0a1b2c/{model}.pt", sides=sides if golden else {"old": predicted(side="old"), **sides}
    )


def with_static(models: tuple[ModelReport, ...], *, golden: bool = False) -> tuple[ModelReport, ...]:
    """Return the models with a right prediction each, where they have none yet."""
    return tuple(
        model if model.static is not None else replace(model, static=static(model=model.model, golden=golden))
        for model in models
    )


LANCZOS = static_finding("aten::_upsample_lanczos2d_aa", "torch 2.1.2 does not have it")


def model_rollback(
    model: str, answer: RollbackAnswer = RollbackAnswer.YES, reason: str = "", told: PredictedModel | None = None
) -> ModelRollback:
    """Return the rollback of a model, read and not probed."""
    return ModelRollback(
        model=model,
        answer=answer,
        reason=reason,
        predicted=told or predicted(side="old", happened=PredictedLoad.UNKNOWN),
        artifact=f"probes/3d4e5f/{model}.pt",
        command=f"python -m harness compat --old 2.6.0 --new 2.1.2 -k {shlex.quote(model)} --scenario alone"
        if reason
        else "",
    )


def upgrade_ok() -> RunReport:
    """Return a run without a red cell."""
    names = ("detector", "recommender", "speech_encoder")
    judgement = Judgement(
        decision=Decision.UPGRADE_OK,
        reason="3 of 3 models load, initialize concurrently, answer alike and are no slower",
        exit_code=0,
        rows=tuple(passed(name) for name in names),
        planted_defects=PLANTED_DEFECTS,
    )
    ranker = replace(healthy("recommender", "max 2.1e-07", 0.981), group="ranking")
    models = with_static((healthy("detector"), ranker, healthy("speech_encoder")))
    rollback = RollbackReport(answer=RollbackAnswer.YES, models=tuple(model_rollback(name) for name in names))
    return replace(build(judgement, models, scenarios=HEALTHY_SCENARIOS), rollback=rollback)


def golden() -> RunReport:
    """Return the same run with golden records in place of the old release, by the Python worker, one round each."""
    report = upgrade_ok()
    scenarios = tuple(
        replace(
            item,
            worker="python",
            old=None,
            new=replace(item.new, rounds=1),
            hang_bound=0.95,
            init_ratio=None,
        )
        for item in report.scenarios
    )
    models = tuple(
        replace(
            model,
            export=None,
            latency=None,
            load_s=None,
            first_calls_s=None,
            static=static(model=model.model, golden=True),
        )
        for model in report.models
    )
    rollback = RollbackReport(
        answer=RollbackAnswer.UNKNOWN, reason="golden records cannot say what the old release loads"
    )
    notes = (
        "loading was not concurrent: the Python worker's torch.jit.load holds the GIL from begin to end, so only first "
        "calls and warm-up overlapped",
    )
    old = SideReport(name="golden records", fingerprint=None, golden=True)
    return replace(
        report,
        old=old,
        models=models,
        scenarios=scenarios,
        notes=notes,
        environment_differences={},
        rollback=rollback,
    )


PROFILING_OFF = Mitigation(
    cell=cell_id("fused_ranker", "concurrent"),
    model="fused_ranker",
    name="profiling off",
    switches={"profiling_mode": False},
    mitigates=True,
    price=ratio(1.009, 0.013),
)


STORY = (
    ("needs", "fused_ranker fails with no other model beside it, in one thread. Fails in 3 of 3 runs; the old release "
    "passes 9 of 9 runs."),
    ("meaning", "thread 0 is inside the tensor-expression fuser, which copies an expression once for each use; 2 threads "
    "wait for the same plan (getPlanFor). Profiling off or the fuser off avoid it (pytorch issue 75903)"),
    ("proof", "busy without progress: computing for 60.2 s without progress"),
    ("threads", "thread 0 (fused_ranker, call 1 of example): runs, 9.98 of 10.0 s on a CPU, no event"),
    ("threads", "thread 1 (fused_ranker#1, call 0 of example): waits for a lock"),
    ("threads", "thread 2 (fused_ranker#2, call 0 of example): waits for a lock"),
    ("frames", "thread 0, moving: Expr::clone x 31 < IRSimplifierBase::mutate x 214 < TensorExprKernel::compile"),
    ("frames", "threads 1 and 2, unchanged: pthread_mutex_lock < ProfilingGraphExecutorImpl::getPlanFor"),
    ("seen", "eu-stack, two samples 0.3 s apart; pystack is not installed: pip install pystack"),
)  # fmt: skip


def hanging_model(
    name: str = "fused_ranker", story: tuple[tuple[str, str], ...] = STORY
) -> tuple[RowVerdict, ModelReport]:
    """Return a model that hangs in warm-up, mitigated by one switch and not by another."""
    finding = Finding(
        kind="hang",
        message="call 1 has not returned after 60 s (the old release took 41 ms); 1 thread busy without progress, "
        "3 blocked in getPlanFor",
        where="input set example, call 1, threads 0 to 3",
        evidence="probes/5d1c0a/stacks.txt",
        story=story,
        standstill=Standstill(reading="fuser-runs-away", title="inside the tensor-expression fuser", is_busy=True),
    )
    red = verdict(name, "concurrent", Status.FAIL, finding)
    mitigation = replace(PROFILING_OFF, cell=red.cell, model=name)
    vain = replace(mitigation, name="serialize loading", mitigates=False, price=None, switches={}, note="still hangs")
    row = RowVerdict(
        model=name,
        status=Status.FAIL,
        cells=(verdict(name, "alone"), red),
        reason=finding.message,
        mitigations=(mitigation, vain),
    )
    facts = replace(healthy(name), concurrent=Outcome.HANG, first_calls_s=None, latency=None)
    return row, replace(facts, group="ranking")


def hanging_group(models: int = 1) -> ScenarioReport:
    """Return the server group that hangs in the new release only, in two of its three rounds."""
    new = scenario_side(models, failed=2, ready=models - 1, init_s=None)
    return scenario("concurrent", "ranking", models, new=new, bound=0.9831)


def _values() -> tuple[RowVerdict, ModelReport]:
    """Return a model whose outputs differ from the second call on."""
    metrics = TensorMetrics(
        path="output['scores']",
        dtype="float32",
        elements=4096,
        bit_equal=False,
        max_abs=0.0312,
        max_rel=math.inf,
        max_ulp=1_310_722,
        rel_l2=0.0041,
        cosine=0.99998,
        scale=6.1,
        tolerance_abs=6.1e-05,
        mismatched=211,
        worst_index=(3, 17),
        worst_expected="0.4127",
        worst_actual="0.3815",
        noise_abs=0.0,
        reference_old_abs=2.2e-07,
        reference_new_abs=math.nan,
        error_histogram=(3000, 0, 0, 300, 500, 85, 0, 100, 111, 0, 0, 0),
    )
    tree = TreeDifference(path="output['aux']", kind="dtype", expected="float32", actual="float64")
    call = CallComparison(input_set="example", call=1, tree=(tree,), tensors=(metrics,))
    findings = (
        Finding(
            kind="values",
            message="max |d| 3.12e-02 at [3, 17] (0.4127 became 0.3815), 511 x the tolerance; call 0 is exact",
            where="example call 1 output['scores']",
            rule="scaled tolerance",
            detail={"max_abs": "0.0312", "tolerance_abs": "6.1e-05"},
            evidence="probes/77ab02/outputs/tensors.json",
        ),
        Finding(kind="dtype", message="float32 became float64", where="example call 1 output['aux']", rule="structure"),
    )
    cells = (
        verdict("recommender_v2", "alone", Status.FAIL, *findings),
        verdict("recommender_v2", "concurrent"),
        verdict("recommender_v2", "latency"),
    )
    row = RowVerdict(model="recommender_v2", status=Status.FAIL, cells=cells, reason="outputs differ from call 1 on")
    comparison = OutputComparison(model="recommender_v2", scenario="alone", calls=(call,))
    facts = replace(healthy("recommender_v2", "differs"), worst_relative=0.0312 / 6.1, comparisons=(comparison,))
    changed = static_finding(
        "aten::upsample_bicubic2d",
        "uint8 without antialiasing gives other values along the border",
        "semantics_changed",
        Weight.WARNING,
        "https://github.com/pytorch/pytorch/pull/118389",
    )
    facts = replace(facts, static=static(predicted(changed), model="recommender_v2"))
    return row, facts


SLOW_QUANTITIES = {
    **QUANTITIES,
    "load": quantity(0.118, 0.201, half=0.1),
    "p50": quantity(0.00212, 0.00238),
    "p90": quantity(0.00226, 0.0031),
    "p99": quantity(0.00251, 0.0052, half=0.2),
    "device_memory": quantity(61_200_000, 122_000_000, "bytes", 0.0),
    "growth": quantity(12.0, 81_300.0, "bytes", None),
    "recompilation:large": quantity(0.4, 61.0, "calls", None),
    "new_shape:large": quantity(0.021, 0.158, half=0.9),
    "replay": quantity(0.00041, 0.00042),
}


def slow() -> tuple[RowVerdict, ModelReport]:
    """Return a model that is slower, confirmed by fresh processes, and more than that."""
    findings = (
        Finding(
            kind="latency",
            message="steady latency +11.9 % [+9.9, +13.9] (2.12 ms -> 2.38 ms) over 3 fresh process pairs, limit +5 %; "
            "the 3 pairs before them said +12.4 % [+11.2, +13.6]",
            rule="benchmark, confirmed by fresh pairs",
            quantity="steady",
        ),
        Finding(
            kind="tail",
            message="p90 of a call +37.2 % [+33.2, +41.2] (2.26 ms -> 3.1 ms), told from +10.0 %",
            quantity="p90",
        ),
        Finding(
            kind="memory_growth",
            message="resident memory grows by 79.4 KiB per call, 12 bytes before",
            quantity="growth",
        ),
    )
    cells = (
        verdict("text_tagger", "alone"),
        verdict("text_tagger", "concurrent"),
        verdict("text_tagger", "latency", Status.FAIL, *findings),
    )
    row = RowVerdict(model="text_tagger", status=Status.FAIL, cells=cells, reason=findings[0].message)
    facts = healthy("text_tagger", "max 4.8e-07", 1.124)
    assert facts.latency is not None
    measured = replace(
        facts.latency,
        confirmation=ratio(1.119, 0.02),
        quantities=SLOW_QUANTITIES,
        growth_bytes=9_100_000,
        waited=0.031,
    )
    return row, replace(facts, latency=measured)


def _load_error() -> tuple[RowVerdict, ModelReport]:
    """Return a model that no longer loads."""
    finding = Finding(
        kind="load_error",
        message="RuntimeError: Unknown builtin op: aten::_pad_packed_sequence_v0. Could not find any similar ops to it",
        where="load",
        evidence="probes/0b9e11/events.jsonl",
        error="RuntimeError: Unknown builtin op: aten::_pad_packed_sequence_v0. Could not find any similar ops to it",
    )
    row = RowVerdict(
        model="legacy_lstm",
        status=Status.FAIL,
        cells=(verdict("legacy_lstm", "alone", Status.FAIL, finding),),
        reason=finding.message,
    )
    facts = replace(
        healthy("legacy_lstm", ""),
        load=Outcome.LOAD_ERROR,
        concurrent=Outcome.NOT_RUN,
        load_s=None,
        first_calls_s=None,
        latency=None,
    )
    missing = static_finding("aten::_pad_packed_sequence_v0", "torch 2.6.0 does not have it")
    told = predicted(missing, prediction=Prediction.FAILS, happened=PredictedLoad.REFUSED)
    return row, replace(facts, static=static(told, model="legacy_lstm"))


def explained() -> tuple[Explained, ...]:
    """Return what searches found about two red cells: an operator with its rewrite, and a first bad release."""
    place = "explained/recommender_v2__backward__alone__cpu__default"
    values = Explained(
        cell=cell_id("recommender_v2", "alone"),
        model="recommender_v2",
        by="bisect",
        answer="operator aten::softmax.int",
        operators=("aten::softmax",),
        lines=(
            ("culprit", "aten::softmax.int in ranker.heads.1, models/recommender.py:118: output[0]: off by 0.041"),
            ("code", "return torch.softmax(scores, dim=-1)"),
        ),
        fixes=(
            Fix(name="softmax_by_parts", rewrites=True, what="exp and sum", needs="float inputs", price=ratio(1.004)),
        ),
        patched=f"{place}/rewrites/1/recommender_v2.pt",
        paths=(f"{place}/rewrites/1/recommender_v2.pt", f"{place}/bisect.json"),
        seconds=4.2,
    )
    loading = Explained(
        cell=cell_id("legacy_lstm", "alone"),
        model="legacy_lstm",
        by="first-bad",
        answer="torch 2.3.0; torch 2.2.2 is good",
        lines=(("since", "torch 2.3.0; torch 2.2.2 is good"),),
        paths=(
            "explained/legacy_lstm__backward__alone__cpu__default/first-bad.json",
            "../20250114-1-bisect/bisect.json",
        ),
        seconds=61.0,
    )
    return (values, loading)


def blocked() -> RunReport:
    """Return a run with a hang, wrong values, a slowdown, a load error, one broken before, and a wrong prediction."""
    red = (hanging_model(), _values(), slow(), _load_error())
    before = RowVerdict(
        model="old_trouble",
        status=Status.SAME_FAIL,
        cells=(verdict("old_trouble", "alone", Status.SAME_FAIL),),
        reason="RuntimeError on call 0 in torch 2.1.2 too: The size of tensor a (3) must match the size of tensor b",
    )
    facts = replace(healthy("old_trouble", ""), load=Outcome.RUNTIME_ERROR, concurrent=None, latency=None)
    judgement = Judgement(
        decision=Decision.BLOCKED,
        reason="4 of 6 models fail: fused_ranker (hang), legacy_lstm (load error), recommender_v2 (values), "
        "text_tagger (latency); a switch mitigates 1 of them",
        exit_code=1,
        rows=(*[row for row, _ in red], before, passed("detector")),
        planted_defects=PLANTED_DEFECTS,
    )
    notes = ("Loading was not concurrent: Python holds the GIL while it loads. The libtorch worker shows it.",)
    scenarios = (
        hanging_group(),
        scenario("concurrent", "vision", 3),
        scenario("reinit", "ranking", 1, new=scenario_side(1, rounds=6, growth=1_234_567.0), bound=0.393),
        scenario("reinit", "vision", 3, new=scenario_side(3, rounds=6, growth=-2_100.0), bound=0.393),
    )
    numerics = {
        "deterministic": ("False", "False", "False"),
        "isa": ("", "AVX2", "AVX2"),
        "quantized_engine": ("fbgemm", "fbgemm", "x86"),
    }
    loops = predicted(prediction=Prediction.UNKNOWN, happened=PredictedLoad.UNKNOWN, note="hang in load")
    facts = replace(facts, static=static(loops, model="old_trouble"))
    wrong = predicted(LANCZOS, prediction=Prediction.FAILS)
    detector = replace(healthy("detector"), static=static(wrong, model="detector"))
    report = build(judgement, with_static((*[model for _, model in red], facts, detector)), notes, scenarios)
    will_not = predicted(LANCZOS, side="old", prediction=Prediction.FAILS, happened=PredictedLoad.UNKNOWN)
    reason = "aten::_upsample_lanczos2d_aa: torch 2.1.2 does not have it"
    ways = (
        model_rollback("detector", RollbackAnswer.NO, reason, will_not),
        model_rollback("recommender_v2"),
        ModelRollback(
            model="legacy_lstm", answer=RollbackAnswer.UNKNOWN, reason="torch 2.6.0 has not written it: KeyError: 7"
        ),
    )
    rollback = RollbackReport(answer=RollbackAnswer.NO, reason=f"1 of 3 models: detector: {reason}", models=ways)
    limits = {"steady": 1.03, "load": 1.4}
    return with_causes(replace(report, numerics=numerics, limits=limits, rollback=rollback, explained=explained()))


def earlier() -> RunReport:
    """Return the run before ``blocked``: one cell hung now and then, two did not fail, one did, one model more."""
    report = blocked()
    hung, values, slow_row, refused, before, detector = report.judgement.rows
    rare = replace(hung.cells[1], rounds=10, failed_rounds=3)
    red = replace(detector.cells[0], status=Status.FAIL, findings=(values.cells[0].findings[1],))
    rows = (
        replace(hung, cells=(hung.cells[0], rare)),
        values,
        replace(
            slow_row, status=Status.PASS, cells=tuple(verdict("text_tagger", cell.scenario) for cell in slow_row.cells)
        ),
        before,
        replace(detector, status=Status.FAIL, cells=(red, *detector.cells[1:])),
        passed("retired"),
    )
    facts = {model.model: model for model in report.models}
    tagger = replace(facts["text_tagger"], latency=latency("text_tagger", ratio(1.004)))
    ranker = replace(facts["recommender_v2"], artifact_digest="77ab" * 16)
    models = (facts["fused_ranker"], ranker, tagger, facts["old_trouble"], facts["detector"], healthy("retired"))
    judgement = replace(report.judgement, reason="2 of 6 models fail", rows=rows)
    limits = {"steady": 1.05, "load": 1.4}
    return replace(report, run="20250113-093007-2.1.2-2.6.0", models=models, judgement=judgement, limits=limits)


def beside_another() -> RunReport:
    """Return the blocked run on a disturbed machine, beside the run before it."""
    report = blocked()
    hung = report.judgement.rows[0]
    rounds = replace(hung.cells[1], rounds=10, failed_rounds=4)
    rows = (replace(hung, cells=(hung.cells[0], rounds)), *report.judgement.rows[1:])
    kill = MachineEvent(
        name="out of memory",
        read="the kernel killed 2 processes in this container",
        so_what="A crash or a hang of this run may be such a kill, and not the release's doing.",
        do_this="Repeat those cells with a lower --jobs or more memory before you believe them.",
        touches=("ends",),
    )
    stolen = MachineEvent(
        name="steal time",
        read="the hypervisor took 12 % of the cores' time",
        so_what="Intervals are wide, and small slowdowns stay undecided.",
        do_this="Use a machine with cores of its own, or --latency thorough.",
        touches=("times",),
    )
    during_run = MachineDuringRun(seconds=93.2, stolen=0.12, others=0.02, events=(kill, stolen))
    judgement = replace(report.judgement, rows=rows)
    report = replace(
        report, judgement=judgement, during_run=during_run, notes=(*report.notes, *during_run_notes(during_run))
    )
    return with_causes(replace(report, baseline=since(earlier(), report, more_often)))


def mitigated() -> RunReport:
    """Return a run whose only failure has a verified mitigation."""
    row, facts = hanging_model()
    judgement = Judgement(
        decision=Decision.OK_WITH_MITIGATION,
        reason="1 of 2 models fails, and a verified switch mitigates it",
        mitigation="profiling off, latency +0.9 % [-0.3, +2.1]",
        exit_code=1,
        rows=(row, passed("detector")),
        planted_defects=PLANTED_DEFECTS,
    )
    report = build(
        judgement, (facts, healthy("detector")), scenarios=(hanging_group(), scenario("concurrent", "vision", 1))
    )
    return with_causes(report)


def inconclusive() -> RunReport:
    """Return a run with a missed planted defect and a latency that one pair cannot decide."""
    unknown = RatioEstimate(ratio=1.31, low=0.0, high=math.inf, pairs=1, detectable=math.inf)
    finding = Finding(
        kind="latency_undecided", message="one pair of processes has no interval", where="input set example"
    )
    cells = (verdict("detector", "alone"), verdict("detector", "latency", Status.INCONCLUSIVE, finding))
    judgement = Judgement(
        decision=Decision.INCONCLUSIVE,
        reason="a planted defect was missed and detector has no latency interval",
        exit_code=4,
        rows=(RowVerdict(model="detector", status=Status.INCONCLUSIVE, cells=cells, reason=finding.message),),
        planted_defects=(
            *PLANTED_DEFECTS[:-1],
            PlantedDefectResult(name="slow_down", expected="latency", reported=(), caught=False),
        ),
    )
    facts = replace(healthy("detector"), concurrent=None, latency=latency("detector", unknown))
    return with_causes(build(judgement, (facts,)))


def nothing_tested() -> RunReport:
    """Return a run whose selection matched nothing."""
    judgement = Judgement(
        decision=Decision.NOTHING_TESTED, reason="-k 'visoin' matches none of 36 models", exit_code=4, rows=()
    )
    return replace(build(judgement, ()), time_shares_s={}, wall_s=0.2)


def hostile(names: tuple[str, ...] = HOSTILE_NAMES) -> RunReport:
    """Return a run in which every text tries to break out of its format, with a model for each of the names."""
    rows, models = [], []
    for name in names:
        message = f"{name} ]]> --> | </failure>"
        story = ((name, name), ("threads", f"{name}\n{name}"))
        finding = Finding(kind=name, message=message, where=name, rule=name, evidence=name, story=story)
        cells = (
            verdict(name, "alone", Status.FAIL, finding),
            verdict(name, name[:9], Status.XFAIL, finding),
            verdict(name, "latency", Status.PASS, replace(finding, kind="new_shape", quantity=f"new_shape:{name}")),
        )
        mitigations = replace(PROFILING_OFF, cell=cell_id(name, "alone"), model=name, name=name, switches={name: 1})
        rows.append(RowVerdict(model=name, status=Status.FAIL, cells=cells, reason=name, mitigations=(mitigations,)))
        facts = healthy(name, name)
        assert facts.latency is not None
        shapes = {f"new_shape:{name}": quantity(0.01, 0.09), name: quantity(1.0, 2.0, name, None)}
        models.append(replace(facts, latency=replace(facts.latency, quantities=shapes, samples=())))
    planted_defect = PlantedDefectResult(
        name=HOSTILE_NAMES[2], expected=HOSTILE_NAMES[1], reported=HOSTILE_NAMES, caught=False
    )
    judgement = Judgement(
        decision=Decision.BLOCKED,
        reason=HOSTILE_NAMES[3],
        exit_code=1,
        rows=tuple(rows),
        planted_defects=(planted_defect,),
    )
    scenarios = tuple(
        replace(hanging_group(), scenario=name, group=group, worker=name)
        for name in HOSTILE_NAMES[:2]
        for group in HOSTILE_NAMES[2:4]
    )
    models = [replace(model, static=_hostile_static(model.model)) for model in models]
    ways = tuple(
        replace(
            model_rollback(name, RollbackAnswer.NO, name, _hostile_static(name).sides["old"]),
            artifact=name,
            command=name,
        )
        for name in names
    )
    report = build(judgement, tuple(models), notes=names, scenarios=scenarios)
    report = replace(
        report,
        environment_differences={name: (name, name) for name in names},
        rollback=RollbackReport(answer=RollbackAnswer.NO, reason=HOSTILE_NAMES[4], gates=True, models=ways),
        baseline=_hostile_baseline(names),
        during_run=MachineDuringRun(seconds=9.0, events=tuple(_hostile_event(name) for name in names)),
    )
    return with_causes(report)


def _hostile_baseline(names: tuple[str, ...]) -> BaselineReport:
    """Return another run in whose every text a name stands."""
    changes = tuple(
        CellChange(cell=cell_id(name, "alone"), model=name, scenario=name[:9], change=change, now=Status.FAIL, why=name)
        for name in names
        for change in (CellTrend.NEW, CellTrend.UNCHANGED)
    )
    return BaselineReport(
        run=HOSTILE_NAMES[5],
        started_at=HOSTILE_NAMES[3],
        decision=Decision.BLOCKED,
        differences=names,
        other_artifacts=names,
        changes=changes,
        counts={"new": len(names), "unchanged": len(names)},
    )


def _hostile_event(name: str) -> MachineEvent:
    return MachineEvent(name=name, read=name, so_what=name, do_this=name, touches=("times", "ends", "errors"))


def _hostile_static(name: str) -> StaticReport:
    """Return a wrong prediction in whose every text a name stands."""
    place = CodePlace(member=name, line=1, function=name)
    finding = StaticFinding(
        kind=name, weight=Weight.STOPS, subject=name, text=name, what_to_do=name, place=place, count=2, source=name
    )
    told = predicted(finding, prediction=Prediction.FAILS, note=name)
    return StaticReport(artifact=name, sides={side: replace(told, release=name) for side in ("old", "new")})


def migrating() -> RunReport:
    """Return a run that was asked which models could leave TorchScript: one of each outcome, one that has left."""
    outcomes = (*(outcome for outcome in Migrated if outcome not in OF_PACKAGES), None)
    names = [f"model_{index}" for index in range(len(outcomes))]
    base = upgrade_ok()
    migration = RunMigration(
        release="torch 2.6.0",
        models=tuple(
            MigrationOutcome(model=name, outcome=outcome, **({} if outcome is Migrated.READY else WHY))
            for name, outcome in zip(names, outcomes, strict=True)
            if outcome is not None
        ),
        left=(names[-1],),
        command="python -m harness migrate --old 2.1.2 --new 2.6.0 -k 'model'",
    )
    return replace(
        base,
        judgement=replace(base.judgement, rows=tuple(map(passed, names)), reason=f"{len(names)} models pass"),
        models=with_static(tuple(map(healthy, names))),
        migration=migration,
        rollback=None,
    )


OF_PACKAGES = (Migrated.NOT_PACKAGEABLE, Migrated.FAILS_SERVED, Migrated.SLOWER)
WHY = {
    "kind": "prim::If",
    "reason": "prim::If at models/m.py:12: <b>\x1b[31mValueError</b>: two shapes",
    "advice": "torch.where(condition, a, b) for values",
    "evidence": "probes/e5004cd2",
}

REPORTS = {
    "upgrade_ok": upgrade_ok,
    "golden": golden,
    "blocked": blocked,
    "mitigated": mitigated,
    "inconclusive": inconclusive,
    "nothing_tested": nothing_tested,
    "hostile": hostile,
    "since": beside_another,
    "migrating": migrating,
}
