"""What ``migrate`` finds: one model of each kind, many of one, and hostile names."""

from dataclasses import replace

from harness.core.migration import (
    Cost,
    Dimension,
    Horizon,
    Loading,
    Migrated,
    MigratedModel,
    Migration,
    SmallestPart,
    Step,
)
from harness.core.outcome import Outcome
from harness.core.prediction import Prediction
from harness.checks.migration.deprecation import release_facts
from harness.verdict.migration import causes_of
from tests.unit.builders.reports import HOSTILE_NAMES

CONVERTED = Step(name="convert", release="2.15.0", outcome=Outcome.COMPLETED, seconds=1.24, size_bytes=70_000)
RAN = Step(name="run", release="2.15.0", outcome=Outcome.COMPLETED, seconds=0.012)
REFUSED = Step(
    name="run",
    release="2.6.0",
    outcome=Outcome.LOAD_ERROR,
    reason="KeyError: no item named 'version' in the archive",
    evidence="probes/0c94cbeff122afac",
)


def ready(name: str = "ranker") -> MigratedModel:
    """Return a model that came through."""
    program = f"probes/0dbd1f2c7a91e3b4/{name}.pt2"
    return MigratedModel(model=name, outcome=Migrated.READY, example="example", program=program, steps=(CONVERTED, RAN))


def blocked(name: str = "tagger", text: str = "ValueError: two shapes") -> MigratedModel:
    """Return a model that stops at a node."""
    step = Step(name="convert", release="2.15.0", outcome=Outcome.EXPORT_ERROR, reason=text, evidence="probes/e5004cd2")
    return MigratedModel(
        model=name,
        outcome=Migrated.NOT_CONVERTIBLE,
        reason=f"prim::If at models/tagger.py:12: {text}",
        advice="torch.where(condition, a, b) for values",
        kind="prim::If",
        source="models/tagger.py:12",
        code="if bool(x.sum() > 0):",
        example="example",
        steps=(step,),
    )


def priced(name: str = "tagger", ratio: float | None = None, half: float = 0.05) -> MigratedModel:
    """Return a model that fails when served, with a mutex as its fix; timed where ``ratio`` says a warm call takes."""
    model = replace(
        ready(name),
        outcome=Migrated.FAILS_SERVED,
        kind="without serialized loading",
        reason="same file N times: crash in load signal SIGABRT in 2 of 5 rounds",
        advice="verified: serialized loading (a mutex around loading)",
    )
    if ratio is None:
        return model
    ends = {"low": ratio - half, "high": ratio + half}
    steady = Cost(quantity="steady", unit="s", torchscript=1e-3, package=ratio * 1e-3, ratio=ratio, **ends)
    return replace(model, costs=(steady, Cost(quantity="peak_rss", unit="bytes", torchscript=9e7, package=8e7)))


def taken_apart(name: str = "router") -> MigratedModel:
    """Return a model that stops at the same node, and whose smallest part is known."""
    return replace(
        blocked(name),
        part=SmallestPart(
            nodes=("prim::If",),
            source="models/tagger.py:12",
            reason="two shapes",
            archive="probes/e5004cd4/extracted.pt",
            inputs="probes/e5004cd4/inputs",
            reproducer="reproducers/1-router_prim_If",
            minimal=True,
            tests=9,
        ),
    )


FIXED = MigratedModel(
    model="encoder",
    outcome=Migrated.FIXED,
    reason="input[0] is fixed at 4 in dimension 0, and requests have 7 too",
    advice="give a request with 2 or more there as well",
    kind="dimensions fixed",
    example="example",
    dimensions=(Dimension(argument="input[0]", axis=0, taken="4", asked=("7",)),),
    steps=(CONVERTED, RAN),
)
LOST = MigratedModel(
    model="ranker_traced",
    outcome=Migrated.NOT_LOADABLE,
    reason="does not load in 2.6.0: KeyError: no item named 'version' in the archive",
    advice="convert in the oldest release that must load it: --new 2.6.0",
    kind="in 2.6.0",
    steps=(CONVERTED, RAN, REFUSED),
)
UNASKED = MigratedModel(
    model="silent",
    outcome=Migrated.UNDECIDED,
    reason="no requests",
    advice="place requests beside it",
    kind="no_requests",
)

TUPLES = MigratedModel(
    model="pair",
    outcome=Migrated.DIFFERS,
    reason="answers with a list where TorchScript answers with a tuple; what is in it is the same",
    advice="unpack it",
    kind="tuple becomes list",
    steps=(CONVERTED, RAN),
)
LASTS = Horizon(
    archive=(
        Loading(release="2.6.0", prediction=Prediction.LOADS),
        Loading(release="2.15.0", prediction=Prediction.LOADS),
    ),
    newest="2.15.0",
)
ENDS = Horizon(
    archive=(
        Loading(release="2.6.0", prediction=Prediction.LOADS),
        Loading(release="2.15.0", prediction=Prediction.FAILS, why="aten::qr: torch 2.15.0+cpu does not have it"),
    ),
    program=(Loading(release="2.15.0", prediction=Prediction.UNKNOWN, why="schema 8.20, and torch has 8.19"),),
    newest="2.15.0",
    gone=("aten::qr",),
    deprecated={"aten::chain_matmul": "torch.linalg.multi_dot", "aten::fbgemm_pack_quantized_matrix": ""},
)


def migration(*models: MigratedModel, notes: tuple[str, ...] = (), packaged: bool = False) -> Migration:
    """Return what was found of these models in 2.15.0, loaded in 2.6.0 too."""
    return Migration(
        device="cpu",
        profile="default",
        old="2.6.0",
        new="2.15.0",
        releases={"2.6.0": "2.6.0+cpu", "2.15.0": "2.15.0+cpu"},
        loaders=("2.15.0", "2.6.0"),
        packaged=packaged,
        models=models,
        causes=causes_of(models),
        facts=(*release_facts("2.6.0", "2.6.0+cpu"), *release_facts("2.15.0", "2.15.0+cpu")),
        asked=12,
        known=4,
        wall_s=83.0,
        notes=notes,
    )


MIXED = migration(ready(), blocked(), FIXED, LOST, UNASKED)
PRICED = migration(
    ready(),
    *(priced(name, ratio) for name, ratio in (("tagger", 0.88), ("tagger_b", 1.012), ("tagger_c", None))),
    packaged=True,
)


OWNED = migration(
    replace(ready(), owner="ads", horizon=LASTS),
    replace(blocked(), owner="search", horizon=ENDS),
    replace(blocked("parser"), owner="ads", horizon=LASTS),
    replace(TUPLES, owner="ads", horizon=LASTS),
    FIXED,
)


def of_teams(count: int, teams: int = 20, obstacles: int = 12) -> Migration:
    """Return so many models of so many owners: every third is ready, the others stop at one of so many obstacles."""
    return migration(
        *(
            replace(
                ready(f"model_{at:04}") if at % 3 == 0 else blocked(f"model_{at:04}"),
                kind="" if at % 3 == 0 else f"aten::f{at % obstacles}",
                advice="" if at % 3 == 0 else f"fix {at % obstacles % 4}",
                owner=f"team_{at % teams:02}",
                horizon=ENDS if at % 7 == 0 else LASTS,
            )
            for at in range(count)
        )
    )


def many(count: int = 200) -> Migration:
    """Return so many models, each with an obstacle of its own."""
    return migration(
        *(
            MigratedModel(model=f"m{index}", outcome=Migrated.NOT_CONVERTIBLE, kind=f"aten::f{index}", reason="no")
            for index in range(count)
        )
    )


def hostile() -> Migration:
    """Return what was found of models whose names and texts try to break out of their format."""
    models = (
        replace(
            blocked(name, f"{name} ]]> --> | </failure>"),
            owner=name,
            advice=name,
            horizon=replace(ENDS, deprecated={name: name}, program=(replace(ENDS.archive[1], why=name),)),
        )
        for name in HOSTILE_NAMES
    )
    return migration(*models, notes=HOSTILE_NAMES)
