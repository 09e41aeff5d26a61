"""What searches, inspections, checks and packings found, as a reader meets it."""

from collections.abc import Mapping
from dataclasses import replace
from harness.apps.doctor.checks import Facts, examined
from harness.core.diagnosis import (
    Culprit,
    MitigationAnswer,
    MitigationResult,
    Divergence,
    NodeFault,
    Reduction,
    Reproducer,
    Rewritten,
    Symptom,
    TracedNode,
)
from harness.core.archive import (
    ArchiveFacts,
    ArchiveFormat,
    ArchiveProblem,
    CodePlace,
    OperatorUse,
    Reach,
    StorageGroup,
)


from harness.core.environment import Fingerprint
from harness.core.golden import Packed
from harness.core.machine import Checkup
from harness.apps.doctor.facts import Container
from harness.core.measurement import RatioEstimate
from harness.core.prediction import InspectedFile, Inspection, Prediction, StaticFinding, StaticVerdict, Weight
from harness.core.releases import ReleaseResult, Conclusion, Ending, FirstBad, ReleaseAnswer
from harness.core.verdict import Mitigation, Price, WaiverState, WaiverUse
from harness.serving.settings.mitigations import MITIGATIONS
from harness.serving.settings.paste_lines import lines_to_paste
from tests.unit.builders.machines import CORES, DISK, GPUS, HOST, NEW, OLD, TOOLS, WHEEL
from tests.unit.builders.verdicts import in_days, mitigation, waiver

FIRST_BAD = FirstBad(
    model="ranker",
    kind="load_error",
    releases=("2.1.2", "2.2.0", "2.2.2", "2.3.1", "2.6.0"),
    source="package index, Python 3.11, asked 2026-11-21",
    asked=(
        ReleaseResult(release="2.1.2", answer=ReleaseAnswer.GOOD, runs=2, seconds=9.0),
        ReleaseResult(
            release="2.6.0",
            answer=ReleaseAnswer.BAD,
            runs=2,
            seconds=8.0,
            kind="load_error",
            reason="does not load\x1b[31m",
        ),
        ReleaseResult(release="2.2.2", answer=ReleaseAnswer.GOOD, runs=3, seconds=43.2, build_s=31.0),
        ReleaseResult(
            release="2.3.1",
            answer=ReleaseAnswer.BAD,
            runs=1,
            remembered=True,
            kind="load_error",
            reason="does not load",
        ),
    ),
    conclusion=Conclusion(ending=Ending.FOUND, last_good="2.2.2", first_bad="2.3.1"),
    built=("2.2.2", "2.2.0"),
    unused=("2.2.0",),
    build_limit=3,
    wall_s=65.0,
    command="python -m harness bisect --model ranker --old 2.2.2 --new 2.3.1",
    notes=("the list is old",),
)
FIRST_BAD_UNDECIDED = replace(
    FIRST_BAD,
    conclusion=Conclusion(
        ending=Ending.ONE_OF,
        last_good="2.1.2",
        first_bad="2.3.1",
        one_of=("2.2.0", "2.2.2", "2.3.1"),
        untestable=("2.2.0",),
        not_asked=("2.2.2",),
    ),
)


PLACE = CodePlace(member="code/__torch__/ranker.py", line=12, function="__torch__.ranker.Ranker.forward")
CHOLESKY = OperatorUse(name="aten::cholesky", arguments=("Tensor",), place=PLACE, count=2, reach=Reach.BRANCH)
FACTS = ArchiveFacts(
    path="models/ranker.pt",
    size_bytes=3057,
    format=ArchiveFormat.TORCHSCRIPT,
    container="zip",
    archive_version="3",
    members=8,
    code_bytes=575,
    root_class="__torch__.ranker.Ranker",
    methods=("forward", "warm_up"),
    classes=1,
    custom_classes=("quantized.LinearPackedParamsBase",),
    runs_at_load=("__torch__.ranker.Table",),
    storages=(StorageGroup(dtype="float32", device="cpu", count=1, nbytes=144),),
    operators=(CHOLESKY,),
    problems=(ArchiveProblem(kind="duplicate_member", text="'ranker/version' is there more than once"),),
)


def _verdict(torch: str, direction: str, prediction: Prediction, *findings: StaticFinding) -> StaticVerdict:
    return StaticVerdict(torch=torch, direction=direction, prediction=prediction, findings=findings)


GONE = StaticFinding(
    kind="operator_missing",
    weight=Weight.STOPS,
    subject="aten::cholesky",
    text="torch 2.15.0 does not have it",
    what_to_do="export again",
    place=PLACE,
    count=2,
    reach=Reach.BRANCH,
)
CHANGED = StaticFinding(
    kind="semantics_changed",
    weight=Weight.WARNING,
    subject="aten::multinomial",
    text="another random stream",
    place=replace(PLACE, line=30),
    count=1,
    reach=Reach.UNCALLED,
    source="https://github.com/pytorch/pytorch/pull/146174",
)
NOTE = StaticFinding(kind="runs_at_load", weight=Weight.NOTE, subject="__torch__.ranker.Table", text="runs")
PAIR = Inspection(
    releases={"old": "2.6.0", "new": "2.15.0"},
    files=(
        InspectedFile(
            path="models/ranker.pt",
            facts=FACTS,
            verdicts={
                "old": _verdict("2.6.0", "forward", Prediction.LOADS, NOTE),
                "new": _verdict("2.15.0", "backward", Prediction.FAILS, GONE, CHANGED, NOTE),
            },
        ),
        InspectedFile(
            path="models/weights.pt",
            facts=replace(FACTS, path="models/weights.pt", format=ArchiveFormat.STATE_DICT, operators=()),
            advice="script the model that uses them",
            verdicts={},
        ),
        InspectedFile(
            path="models/bad\udcff\x1b[31m name.pt",
            failure=ArchiveProblem(kind="damaged", text="'a\x1b[2Jb' ends beyond the file: truncated?"),
            advice="copy or export it again",
            verdicts={},
        ),
    ),
)
ALONE = Inspection(releases={}, files=(InspectedFile(path="models/ranker.pt", facts=FACTS, verdicts={}),))


def ratio(value: float, spread: float = 0.01) -> RatioEstimate:
    return RatioEstimate(ratio=value, low=value - spread, high=value + spread, pairs=3, detectable=1.02)


def mitigated(
    *names: str, prices: Mapping[str, tuple[float, float | None]] | None = None, note: str = ""
) -> Mitigation:
    told = prices if prices is not None else {"steady": (1.1, 0.5), "request": (1.25, None), "peak_rss": (1.001, 12.0)}
    return mitigation(
        *names,
        mitigates=True,
        repeats=5,
        prices=tuple(
            Price(quantity=name, to_old=ratio(old), to_new=None if new is None else ratio(new))
            for name, (old, new) in told.items()
        ),
        paste=lines_to_paste([MITIGATIONS[name] for name in names]),
        note=note,
    )


IN_VAIN = (
    mitigation("freeze", mitigates=False, note="still hang"),
    mitigation("oneDNN off", mitigates=False, note="still hang"),
    mitigation("inference mode", mitigates=False, note="breaks n", breaks=("n",)),
    mitigation("fuser off", mitigates=False, untestable=True, note="torch 2.6.0 has no such switch"),
)


def mitigating(
    *mitigations: Mitigation, answer: MitigationAnswer = MitigationAnswer.FOUND, ended: str = ""
) -> MitigationResult:
    return MitigationResult(
        model="m",
        old="torch 2.1.2",
        new="torch 2.6.0",
        scenario="alone",
        words="alone",
        answer=answer,
        symptom=("hangs in call 1 of example",),
        mitigations=mitigations,
        ended=ended,
    )


NODE = TracedNode(
    place=(4,),
    kind="aten::cosh",
    schema="aten::cosh(Tensor self) -> Tensor",
    source="model.py:33",
    code="x = torch.cosh(x)",
    module="encoder.layers.1",
    inputs=("float32[3, 4]",),
)
FAULT = NodeFault(node=NODE, what=("output[0]: off by 0.002",), kinds=("values",), places=((4,),))
DIVERGENCE = Divergence(
    input_set="example",
    call=1,
    nodes=31,
    shows=True,
    culprits=(FAULT,),
    inherited=4,
    confirmed=True,
    probes=(1, 3),
)
MADE = Reproducer(operator="aten::cosh", folder="reproducers/1", old="as recorded (exit code 0)", new="off")


NODES = tuple(
    TracedNode(place=(index,), kind=kind, source=f"waves.py:{index}", code=f"x = f({index})", module="encoder.waves")
    for index, kind in enumerate(("aten::cos", "aten::sin", "aten::add", "aten::cos"))
)
MANY = Culprit(
    keep=(0, 1, 2, 3),
    nodes=NODES,
    artifact="probes/k/extracted.pt",
    inputs="probes/k/inputs",
    minimal=False,
    fails=3,
    runs=4,
    old="completes, 1.9 ms a call at most",
    new="hangs in call 1 of example",
)
ONE = replace(MANY, keep=(2,), nodes=(replace(NODES[2], inputs=("float32[13]", "1")),), minimal=True, place=(7, 0))
REDUCTION = Reduction(
    symptom=Symptom.HANG,
    nodes=91,
    shows=True,
    culprits=(MANY,),
    rest_passes=True,
    tests=30,
    runs=34,
    untestable=2,
    waited_s=3.0,
    ended="the budget is spent",
)


REWRITTEN = Rewritten(
    rule="softshrink",
    what="softshrink as comparisons",
    needs="NaN is to give 0",
    nodes=(replace(NODE, kind="aten::softshrink", source="model.py:12"),),
    artifact="rewrites/softshrink-12345678/m.pt",
    fixes=True,
    repeats=2,
    steady=ratio(1.125),
)


WAIVER_USE = WaiverUse(
    waiver=waiver(
        bound=0.1,
        old="~=2.1.2",
        new="~=2.6.0",
        scenario="alone",
        device="cpu",
        profile="default",
        issue="https://example.org/1",
        expires=in_days(90),
    ),
    state=WaiverState.EXCEEDED,
    cells=("m/backward/alone/cpu/default",),
    size=0.25,
    broad=("no bound", "367 days long"),
    days_left=90,
)


DIN = Packed(model="din", path="bundles/din.gate", size_bytes=103_803)
LOST = Packed(model="lost", why="hangs in call in torch 2.1.2, alone")
PRODUCER = Fingerprint(torch="2.1.2+cu121")


BOTH = ("torch 2.1.2", "torch 2.6.0")


def checkup(sick: bool) -> Checkup:
    host = HOST
    new = NEW
    if sick:
        new = replace(NEW, wheel=replace(WHEEL, cuda="13.2"))
        host = replace(
            HOST,
            cores=replace(CORES, quota=2.0, stolen=0.2),
            container=Container(kind="docker", group="/system.slice/docker-1f.scope"),
            gpus=replace(GPUS, profilers=("nv-hostengine",), unlinked=("/dev/nvidia0",)),
        )
    checks = examined(
        Facts(host=host, device="auto", jobs=4, candidates=(OLD, new), disk=DISK, tools=TOOLS, runtime="auto")
    )
    return Checkup(environments=BOTH, checks=checks, wall_s=0.42)
