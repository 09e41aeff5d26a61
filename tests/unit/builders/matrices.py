"""Version matrices as the gate makes them: three releases with a break in each direction, and hostile names."""

from harness.core.releases import BACKWARD, FORWARD, GIVEN, SAME, Matrix, MatrixCell, MatrixRelease
from harness.core.outcome import Outcome, Status
from harness.core.prediction import PredictedLoad, Prediction
from tests.unit.builders.reports import HOSTILE_NAMES

RELEASES = ("2.1.2", "2.6.0", "2.15.0")


def cell(model: str, exporter: str, loader: str, status: Status = Status.PASS, **more: object) -> MatrixCell:
    """Return a cell that loaded as predicted, unless ``more`` says otherwise."""
    places = {name: place for place, name in enumerate(RELEASES)}
    step = places.get(loader, 0) - places.get(exporter, 0)
    plain: dict[str, object] = {
        "direction": SAME if step == 0 else BACKWARD if step > 0 else FORWARD,
        "predicted": Prediction.LOADS,
        "outcome": Outcome.COMPLETED,
        "happened": PredictedLoad.LOADED,
    }
    return MatrixCell(model=model, exporter=exporter, loader=loader, status=status, **{**plain, **more})  # type: ignore[arg-type]


def refused(model: str, exporter: str, loader: str, **more: object) -> MatrixCell:
    """Return a cell that did not load, as predicted."""
    plain: dict[str, object] = {
        "predicted": Prediction.FAILS,
        "why_predicted": f"aten::gone: torch {loader} does not have it",
        "outcome": Outcome.LOAD_ERROR,
        "happened": PredictedLoad.REFUSED,
        "kind": "load_error",
        "reason": f"does not load in torch {loader}, alone: RuntimeError: Unknown builtin op: aten::gone.",
        "evidence": "probes/0123456789abcdef",
    }
    return cell(model, exporter, loader, Status.FAIL, **{**plain, **more})


def absent(model: str, exporter: str, loader: str) -> MatrixCell:
    """Return a cell of a model that could not be exported."""
    return cell(
        model,
        exporter,
        loader,
        Status.INCONCLUSIVE,
        exported=False,
        predicted=None,
        outcome=Outcome.EXPORT_ERROR,
        happened=PredictedLoad.UNKNOWN,
        kind="export_error",
        reason=f"could not be exported in torch {exporter}: RuntimeError: it cannot be scripted",
    )


def matrix(cells: tuple[MatrixCell, ...], *, releases: tuple[str, ...] = RELEASES, **more: object) -> Matrix:
    """Return a matrix of ``cells``."""
    plain: dict[str, object] = {
        "device": "cpu",
        "profile": "default",
        "releases": tuple(MatrixRelease(name=name, torch=f"{name}+cpu", python="3.11.7", cpu="x") for name in releases),
        "exporters": tuple(dict.fromkeys(item.exporter for item in cells)),
        "models": tuple(dict.fromkeys(item.model for item in cells)),
        "asked": 40,
        "known": 12,
        "wall_s": 61.25,
        "command": "python -m harness compat",
    }
    return Matrix(cells=cells, **{**plain, **more})  # type: ignore[arg-type]


def green(*models: str) -> tuple[MatrixCell, ...]:
    """Return cells of models that work everywhere."""
    return tuple(cell(model, row, column) for row in RELEASES for column in RELEASES for model in models)


def with_(cells: tuple[MatrixCell, ...], *others: MatrixCell) -> tuple[MatrixCell, ...]:
    """Return ``cells`` with ``others`` in the places of theirs."""
    new = {(item.exporter, item.loader, item.model): item for item in others}
    return tuple(new.get((item.exporter, item.loader, item.model), item) for item in cells)


def mixed() -> Matrix:
    """Return a matrix with every mark: breaks both ways, one undecided, one that fails at home, one not exported."""
    values = {"kind": "values", "reason": "output[0]: off by 0.2 of its largest value (16 of 16 elements)"}
    hangs = {
        "predicted": Prediction.UNKNOWN,
        "why_predicted": "Table: its __setstate__ runs while the archive is loaded, and loops: it may never return",
        "outcome": Outcome.HANG,
        "happened": PredictedLoad.UNKNOWN,
        "kind": "hang",
        "reason": "hangs in load in torch 2.1.2, alone",
    }
    wrong = {"predicted": Prediction.LOADS, "why_predicted": "", "happened": PredictedLoad.REFUSED}
    return matrix(
        with_(
            green("ranker", "tagger", "tower", "old_op", "looper"),
            refused("old_op", "2.1.2", "2.6.0"),
            refused("old_op", "2.1.2", "2.15.0"),
            refused("old_op", "2.6.0", "2.1.2", **wrong),
            *(cell("tower", "2.1.2", loader, Status.FAIL, **values) for loader in RELEASES[1:]),
            *(cell("looper", "2.1.2", loader, Status.SAME_FAIL, **hangs) for loader in RELEASES),
            cell("tagger", "2.15.0", "2.1.2", Status.INCONCLUSIVE, kind="starved", reason="starved in call 0"),
            *(absent("tower", "2.15.0", loader) for loader in RELEASES),
        )
    )


def hostile() -> Matrix:
    """Return given artifacts with hostile names over releases that are named as badly."""
    releases = ("2.1.2", "\x1b[2Jin\nhouse " + "n" * 40, "2.15.0")
    bad = "\x1b]0;title\x07 | ` <b>\u202e"
    cells = tuple(
        refused(name, GIVEN, loader, direction=BACKWARD, reason=bad, why_predicted=bad)
        if loader == "2.15.0"
        else cell(name, GIVEN, loader, direction=SAME if loader == "2.1.2" else BACKWARD)
        for loader in releases
        for name in HOSTILE_NAMES
    )
    words = {releases[1]: (("--env", f"{releases[1]}=/opt/a b/bin/python"),)}
    return matrix(cells, releases=releases, golden_in="2.1.2", notes=(bad,), command_words=words)
