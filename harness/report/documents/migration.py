"""What ``migrate`` found as a document: outcomes, what one fix unlocks, whose artifacts wait, how long they load."""

from collections.abc import Iterator, Mapping, Sequence

from harness.checks.migration.deprecation import ON_LOAD
from harness.checks.migration.readiness import by_owner, has_owners, owned, unlocked
from harness.core.errors import ExitCode
from harness.core.fleet import NO_OWNER
from harness.core.measurement import signed_percent
from harness.core.migration import Horizon, Loading, Migrated, MigratedModel, Migration, RunMigration, Step, Unlocked
from harness.core.outcome import Outcome
from harness.core.prediction import Prediction
from harness.core.text import counted, joined
from harness.report.document import (
    BAD,
    DETAIL,
    FIRST,
    GOOD,
    MORE,
    OPEN,
    USUAL,
    Block,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    facts,
    placed,
)
from harness.report.documents.causes import cause_part, causes_section
from harness.report.documents.fleet import owners_words
from harness.report.words.phrases import exit_words, path_in_run, seconds, size
from harness.verdict.exit_codes import exit_code
from harness.verdict.migration import WORST_FIRST, counts_words, part_words
from harness.verdict.served_packages import warm_call

LOADING_WORDS = {Prediction.LOADS: "loads in", Prediction.FAILS: "not in", Prediction.UNKNOWN: "unknown in"}
TONES = dict.fromkeys(Migrated, BAD) | {Migrated.READY: GOOD, Migrated.UNDECIDED: OPEN}
DECISION = {ExitCode.COMPATIBLE: GOOD, ExitCode.INCOMPATIBLE: BAD, ExitCode.INCONCLUSIVE: OPEN}
# Seconds of the compilation, of the load in C++; how it came through beside others; a warm call beside TorchScript.
PACKAGE_HEADS = ("package", "in C++", "served", "steady")
# Programs whose place is named where there is little room; every one is in the markdown and on the page.
NAMED = 5
HEADER = "torch/csrc/inductor/aoti_package/model_package_loader.h"
# In the table of a run, where it is narrow.
SHORT = {
    Migrated.READY: "ready",
    Migrated.NOT_CONVERTIBLE: "no",
    Migrated.DIFFERS: "differs",
    Migrated.FIXED: "fixed",
    Migrated.GUARDED: "guarded",
    Migrated.NOT_LOADABLE: "no load",
    Migrated.UNDECIDED: "unclear",
}


GUESSED = "*: its requests were guessed: give some (NAME.inputs.py)"


def migration_document(migration: Migration, *, directory: str = "") -> Document:
    """Return the document; ``directory`` is where its results lie, as the reader would type it."""
    status, counts = exit_code(migration), migration.counts
    ready = f"{counts.get(Migrated.READY, 0)} of {counted(len(migration.models), 'artifact')} can leave TorchScript"
    return Document(
        title=ready,
        eyebrow="TorchScript upgrade gate: leaving TorchScript",
        verdict=Verdict(
            means=f"{counts_words(migration.models)}{_guessed(migration)} "
            f"(exit code {int(status)}: {exit_words(int(status))})",
            tone=DECISION[status],
        ),
        old=migration.old,
        new=migration.new,
        full="migration.json",
        beside=("migration.json", "migration.md"),
        things="artifact",
        tally=tuple(
            (counts.get(outcome, 0), outcome.value, TONES[outcome])
            for outcome in (Migrated.READY, *WORST_FIRST)
            if counts.get(outcome) or outcome is Migrated.READY
        ),
        parts=(
            Part(title="", noun="note", blocks=tuple(_head(migration, directory))),
            causes_section(_causes(migration), nothing="Nothing stands in the way."),
            _fixes(migration),
            _owners(migration),
            _horizon(migration),
            _artifacts(migration),
        ),
    )


def _guessed(migration: Migration) -> str:
    count = sum(model.outcome is Migrated.READY and bool(model.guessed) for model in migration.models)
    return f"; {count} ready for guessed requests only" if count else ""


def _head(migration: Migration, directory: str) -> Iterator[Fact]:
    old, new = (_named(name, migration) for name in (migration.old, migration.new))
    text = f"TorchScript as torch {old} answers -> torch.export in {new}, {migration.device}, {migration.profile}"
    yield Fact("migrate", text)
    if len(migration.loaders) > 1:
        yield Fact("loaded in", ", ".join(_named(name, migration) for name in migration.loaders))
    yield from (Fact("note", note, placed(USUAL, at) if at < 3 else DETAIL) for at, note in enumerate(migration.notes))
    yield from _deployed(migration, directory)
    sizes = [step.size_bytes for model in migration.models for step in model.steps if step.name == "package"]
    written = sum(n_bytes for n_bytes in sizes if n_bytes is not None)
    if written:
        yield Fact("packages", size(written))
    known = f"{migration.known} of {counted(migration.asked, 'result')} were known already; {seconds(migration.wall_s)}"
    yield Fact("results", known, FIRST)
    if directory:
        yield Fact("reports", f"{directory}/migration.html", form="path")


def _deployed(migration: Migration, directory: str) -> Iterator[Fact]:
    """Yield where programs lie, and the lines that load the first one that is ready, and its package."""
    deployed = (Migrated.READY, Migrated.GUARDED)
    models = [model for model in migration.models if model.outcome in deployed and model.program]
    if not models:
        return
    ready = next((model for model in models if model.outcome is Migrated.READY), models[0])
    count = sum(len(model.programs) or 1 for model in models)
    folder = path_in_run(directory or ".", ready.program.rpartition("/")[0])
    yield Fact("programs", f"{folder}: {counted(count, 'program')} of {counted(len(models), 'artifact')}", FIRST)
    for model in models:
        for part in model.programs:
            place = path_in_run(directory or ".", part.program)
            yield Fact("program", f"{place}: {model.model}, {part_words(part.method, part.fixed)}", DETAIL)
    program, package = (path_in_run(directory or ".", path) for path in (ready.program, ready.package))
    yield Fact("Python", f"module = torch.export.load({program!r}).module(); module(*inputs)", FIRST, "command")
    if ready.package:
        loader = f'torch::inductor::AOTIModelPackageLoader loader("{package}"); auto outputs = loader.run(inputs);'
        yield Fact("C++", f"{loader} // <{HEADER}>", FIRST, "command")
    elif migration.package_command:
        yield Fact("C++", "no .pt2 loads there, but a package of AOTInductor does; this compiles them", USUAL)
        yield Fact("next", migration.package_command, USUAL, "command")


def _named(name: str, migration: Migration) -> str:
    torch = migration.releases.get(name, "")
    return name if torch == name or not torch else f"{name} ({torch})"


def _causes(migration: Migration) -> list[Part]:
    models = {model.model: model for model in migration.models}
    known = has_owners(migration)
    parts = []
    for at, cause in enumerate(migration.causes):
        owners = owned(models[name] for name in cause.models) if known else {}
        parts.append(cause_part(cause, at, things="artifact", owners=tuple(owners), brief=owners_words(owners)))
    return parts


def _fixes(migration: Migration) -> Part:
    fixes, known = unlocked(migration), has_owners(migration)
    owners = ["owners"] if known else []
    rows = tuple(
        Row(
            cells=(
                item.advice,
                _unlocked_words(item),
                Cell(", ".join(item.causes), link=f"find:{' '.join(item.causes)}" if item.causes else ""),
                *([owners_words(item.owners)] if known else []),
            ),
            importance=placed(FIRST + 10, at, 20) if at < 3 else DETAIL,
            owners=tuple(item.owners),
        )
        for at, item in enumerate(fixes)
    )
    caption = "An artifact stops at its first obstacle: what would stop it next is not known, but where it says so"
    table = Table(
        heads=("fix", "artifacts", "causes", *owners),
        rows=rows,
        noun="fix",
        long=(2, 3)[: 1 + len(owners)],
        soft=(1,),
    )
    blocks = (table, Fact("", caption, MORE)) if fixes else ()
    return Part(title="All fixes", id="fixes", blocks=blocks, importance=FIRST, panel="What one fix unlocks")


def _unlocked_words(found: Unlocked) -> str:
    """Return ``12 artifacts stop here``, and how many of them nothing else stops, where that is known."""
    count, last = len(found.models), len(found.then_ready)
    then = f"nothing else stops {'it' if count == 1 else 'them' if last == count else f'{last} of them'}"
    return joined(f"{counted(count, 'artifact')} {'stops' if count == 1 else 'stop'} here", then if last else "")


def _owners(migration: Migration) -> Part:
    rows = tuple(
        Row(cells=(owner, _outcomes_words(counts)), importance=placed(FIRST + 15, at, 20) if at < 4 else DETAIL)
        for at, (owner, counts) in enumerate(by_owner(migration).items())
    )
    blocks = (Table(heads=("owner", "artifacts"), rows=rows, noun="owner", soft=(1,)),) if rows else ()
    return Part(title="All owners", id="owners", blocks=blocks, importance=FIRST, panel="Owners")


def _outcomes_words(counts: Mapping[Migrated, int]) -> str:
    """Return ``3 of 12 ready; 7 not convertible, 2 answers otherwise``."""
    others = [f"{count} {outcome.value}" for outcome, count in counts.items() if outcome is not Migrated.READY]
    return joined(f"{counts.get(Migrated.READY, 0)} of {sum(counts.values())} ready", ", ".join(others))


def _horizon(migration: Migration) -> Part:
    lines = [("horizon", fact) for fact in horizon_facts(migration)]
    rows = tuple(Row(cells=(fact.release, fact.text, fact.source)) for fact in migration.facts)
    table = Table(
        heads=("release", "what it says of TorchScript", "source"), rows=rows, importance=DETAIL, noun="release"
    )
    blocks: tuple[Block, ...] = (*facts(lines, FIRST + 30), *([table] if rows else []))
    title = "How long they still load"
    return Part(title=title, id="horizon", blocks=blocks, importance=FIRST, panel="Horizon")


def horizon_facts(migration: Migration) -> tuple[str, ...]:
    """Return how many artifacts still load where, and what releases warn of: ``archives: 78 of 78 load in 2.6.0``."""
    horizons = [model.horizon for model in migration.models if model.horizon is not None]
    newest = next((found.newest for found in horizons), "")
    warned = sum(bool(found.deprecated) for found in horizons)
    have = "has" if warned == 1 else "have"
    texts = {text for _, text in ON_LOAD}
    warnings = [(fact.release, fact.text.partition(":")[0]) for fact in migration.facts if fact.text in texts]
    found = (
        _loads("archives", [found.archive for found in horizons]),
        _loads(".pt2", [found.program for found in horizons]),
        f"{counted(warned, 'archive')} {have} operators that {newest} deprecates" if warned else "",
        *(f"{release} prints a {kind} at loading" for release, kind in warnings),
    )
    return tuple(filter(None, found))


def _loads(what: str, found: Sequence[Sequence[Loading]]) -> str:
    """Return in how many of the files' releases they load, by release; empty where there is no file."""
    read = [loadings for loadings in found if loadings]
    if not read:
        return ""
    releases = dict.fromkeys(item.release for loadings in read for item in loadings)
    by_release = [
        (release, [item for loadings in read for item in loadings if item.release == release]) for release in releases
    ]
    (first, items), *others = by_release
    more = "".join(f", {_of_them(items)} in {release}" for release, items in others)
    return f"{what}: {_of_them(items, len(read))} in {first}{more}"


def _of_them(items: Sequence[Loading], total: int = 0) -> str:
    """Return ``4 of 5 load (1 more unknown)``: what reading cannot tell is not said to fail."""
    load, unknown = (sum(item.prediction is kind for item in items) for kind in (Prediction.LOADS, Prediction.UNKNOWN))
    loads = f"{load} of {total} load" if total else f"{load}"
    return f"{loads} ({unknown} more unknown)" if unknown else loads


def _artifacts(migration: Migration) -> Part:
    """Return every artifact with what each step took, those not ready first, of each cause one before others."""
    firsts = {cause.models[0]: place for place, cause in enumerate(migration.causes)}
    causes = {name: cause.id for cause in migration.causes for name in cause.models}

    def rank(model: MigratedModel) -> tuple[bool, int]:
        return model.outcome is Migrated.READY, firsts.get(model.model, len(firsts))

    heads = ["artifact", "owner", "stops at", "how long it loads", "convert"]
    heads += [f"in {name}" for name in migration.loaders] + [*PACKAGE_HEADS] * migration.packaged + ["outcome"]
    rows = tuple(
        Row(
            cells=(
                f"{model.model}{' *' if model.guessed else ''}",
                model.owner or NO_OWNER,
                model.kind,
                horizon_words(model.horizon),
                *_steps(model, migration),
                Cell(model.outcome.value, tone=TONES[model.outcome]),
            ),
            importance=placed(FIRST + 40, at, 6) if at < 8 else DETAIL,
            owners=(model.owner or NO_OWNER,) if has_owners(migration) else (),
            find=causes.get(model.model, ""),
            tip=f"{model.model}: {model.reason}" if model.reason else model.model,
        )
        for at, model in enumerate(sorted(migration.models, key=rank))
    )
    choices = tuple(outcome.value for outcome in (*WORST_FIRST, Migrated.READY) if outcome in migration.counts)
    table = Table(
        heads=tuple(heads),
        rows=rows,
        noun="artifact",
        long=(1, 2, 3),
        status=len(heads) - 1,
        choices=choices,
        legend=GUESSED if any(model.guessed for model in migration.models) else "",
    )
    return Part(title="Artifacts", id="artifacts", blocks=(table,) if rows else (), importance=FIRST, kind="leaving")


def _steps(model: MigratedModel, migration: Migration) -> list[str]:
    steps = {(step.name, step.release): step for step in model.steps}
    convert = next((step for step in model.steps if step.name == "convert"), None)
    texts = [_step(convert), *(_step(steps.get(("run", name))) for name in migration.loaders)]
    if migration.packaged:
        compiled, in_python = steps.get(("package", migration.new)), steps.get(("run package", migration.new))
        failed = in_python is not None and (in_python.reason or in_python.outcome is not Outcome.COMPLETED)
        texts += [
            _step(in_python if failed else compiled),
            _step(steps.get(("run package in C++", migration.new))),
            _served(model),
        ]
        steady = warm_call(model.costs)
        texts.append("-" if steady is None or steady.ratio is None else f"{signed_percent(steady.ratio)} %")
    return texts


def _served(model: MigratedModel) -> str:
    served = [step for step in model.steps if step.name.startswith("serve: ")]
    wrong = next((step for step in served if step.reason or step.outcome is not Outcome.COMPLETED), None)
    if wrong is not None:
        return _step(wrong)
    return "-" if not served else "held back" if model.outcome is Migrated.FAILS_SERVED else "ok"


def _step(step: Step | None) -> str:
    if step is None:
        return "-"
    if step.outcome is Outcome.EXPORT_ERROR:
        return "error"
    if step.outcome is not Outcome.COMPLETED:
        return step.outcome.value.replace("_", " ")
    return "other answers" if step.reason else seconds(step.seconds) if step.seconds is not None else "ok"


def horizon_words(found: Horizon | None) -> str:
    """Return what reading says of one artifact and its program, in one line; empty where nothing was read."""
    if found is None:
        return ""
    instead = [f"{name} (use {what})" if what else name for name, what in found.deprecated.items()]
    return joined(
        _loading_words("archive", found.archive),
        _loading_words(".pt2", found.program),
        f"deprecated in {found.newest}: {', '.join(instead)}" if instead else "",
    )


def _loading_words(what: str, found: Sequence[Loading]) -> str:
    """Return ``archive loads in 2.6.0, not in 2.15.0 (aten::qr: torch 2.15.0 does not have it)``."""
    parts = []
    for prediction, words in LOADING_WORDS.items():
        these = [item for item in found if item.prediction is prediction]
        if these:
            whys = dict.fromkeys(item.why for item in these if item.why)
            why = f" ({'; '.join(whys)})" if whys else ""
            parts.append(f"{words} {', '.join(item.release for item in these)}{why}")
    return f"{what} {', '.join(parts)}" if parts else ""


def migrated_cells(found: RunMigration | None) -> dict[str, Cell]:
    """Return model -> its outcome outside of TorchScript, for the table of a run; empty where nothing was converted."""
    if found is None or found.why_not:
        return {}
    cells = {item.model: Cell(item.outcome.value, short=SHORT.get(item.outcome, "no")) for item in found.models}
    return cells | dict.fromkeys(found.left, Cell("has left", short="left"))


def run_migration_words(found: RunMigration | None) -> str:
    """Return ``3 models: 2 ready, 1 not convertible (in torch 2.15.0; decides nothing)``; empty where nobody asked."""
    if found is None:
        return ""
    left = len(found.left)
    already = f"{counted(left, 'model')} {'has' if left == 1 else 'have'} left TorchScript already" if left else ""
    outcome = f"{counts_words(found.models)} (in {found.release}; decides nothing)" if found.models else ""
    return joined(found.why_not or outcome, already)
