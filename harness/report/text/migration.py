"""What ``migrate`` found, on a terminal: a table, the causes, how many models have which outcome."""

from collections.abc import Callable, Iterator

from harness.checks.migration.cures import warm_call
from harness.checks.migration.readiness import by_owner, unlocked
from harness.core.measurement import signed_percent
from harness.core.migration import Migrated, MigratedModel, Migration, Step
from harness.core.outcome import Outcome, Status
from harness.core.text import counted, first_few, visible
from harness.report.text.causes import cause_block, cause_blocks, short_lines
from harness.report.text.grid import draw
from harness.report.words.migration import horizon_facts, outcomes_words, unlocked_words
from harness.report.words.phrases import exit_words, seconds, shorten, size
from harness.verdict.exit_codes import exit_code
from harness.verdict.migration import counts_words

LEAST_WIDTH = 80
MOST_LINES = 60
MOST_ROWS = 8
"""Of the table: causes tell of all models what is to be told."""
LONGEST_NAME = 32
MOST_NOTES = 3
# Seconds of the compilation, of the load in C++; how it came through beside others; a warm call beside TorchScript.
PACKAGE_HEADS = ("package", "in C++", "served", "steady")
MOST_CURES = 3
MOST_OWNERS = 4
COLOURS = {Status.FAIL.value: "31", Status.INCONCLUSIVE.value: "33", Migrated.READY.value: "32"}


def render_migration(
    migration: Migration, *, width: int = 100, colour: bool = False, directory: str = "", verbose: bool = False
) -> str:
    """Return the whole text, ending with the counts and a newline; at most ``MOST_LINES`` lines.

    Args:
        width: columns, fewer than 80 count as 80.
        colour: ANSI colour on status words.
        directory: where the results lie, as the reader would type it.
        verbose: every model and every cause, however many lines that takes.
    """
    width = max(width, LEAST_WIDTH)

    def paint(word: str) -> str:
        return f"\x1b[{COLOURS[word]}m{word}\x1b[0m" if colour and word in COLOURS else word

    head, foot = list(_head(migration, width)), list(_foot(migration, directory, width, verbose=verbose))
    table = _table(migration, width, paint, most=len(migration.models) if verbose else MOST_ROWS)
    room = MOST_LINES - sum(len(block) + 1 for block in (head, table, foot))
    more = "the same command with --verbose"
    causes = (
        [cause_block(cause, width, paint) for cause in migration.causes]
        if verbose
        else cause_blocks(migration.causes, width=width, room=room, more=more, paint=paint)
    )
    return "\n\n".join("\n".join(block) for block in (head, table, *causes, foot) if block) + "\n"


def _head(migration: Migration, width: int) -> Iterator[str]:
    old, new = (_named(name, migration) for name in (migration.old, migration.new))
    text = f"TorchScript as torch {old} answers -> torch.export in {new}, {migration.device}, {migration.profile}"
    yield from short_lines("migrate", text, width)
    if len(migration.loaders) > 1:
        yield from short_lines("loaded in", ", ".join(_named(name, migration) for name in migration.loaders), width)


def _named(name: str, migration: Migration) -> str:
    torch = migration.releases.get(name, "")
    return visible(name if torch == name or not torch else f"{name} ({torch})")


def _table(migration: Migration, width: int, paint: Callable[[str], str], *, most: int) -> list[str]:
    """Return the rows that a reader needs first, of each cause one before all others, and how many are left."""
    firsts = {cause.models[0]: place for place, cause in enumerate(migration.causes)}

    def rank(model: MigratedModel) -> tuple[bool, int]:
        return model.outcome is Migrated.READY, firsts.get(model.model, len(firsts))

    models = sorted(migration.models, key=rank)
    shown = models if len(models) <= most + 1 else models[:most]
    if not shown:
        return []
    heads = ["model", "convert", *(f"in {shorten(visible(name), 14)}" for name in migration.loaders)]
    heads += [*PACKAGE_HEADS] * migration.packaged + ["outcome"]
    rows = [_row(model, migration) for model in shown]
    lines = draw([heads, *rows], heads=1, gap=2, right=(), paint=paint).splitlines()
    if len(shown) < len(models):
        lines.append(f"and {counted(len(models) - len(shown), 'more model')}: --verbose")
    return [line[:width] if not line.startswith("\x1b") else line for line in lines]


def _row(model: MigratedModel, migration: Migration) -> list[str]:
    steps = {(step.name, step.release): step for step in model.steps}
    run = [_cell(steps.get(("run", name))) for name in migration.loaders]
    package = []
    if migration.packaged:
        compiled = steps.get(("package", migration.new))
        in_python = steps.get(("run package", migration.new))
        failed = in_python is not None and (in_python.reason or in_python.outcome is not Outcome.COMPLETED)
        package = [_cell(in_python if failed else compiled), _cell(steps.get(("run package in C++", migration.new)))]
        package += [_served_cell(model), _steady_cell(model)]
    convert = next((step for step in model.steps if step.name == "convert"), None)
    return [shorten(visible(model.model), LONGEST_NAME), _cell(convert), *run, *package, _outcome(model)]


def _outcome(model: MigratedModel) -> str:
    return f"{model.outcome.value}{', cured' if model.cured_by else ''}"


def _served_cell(model: MigratedModel) -> str:
    served = [step for step in model.steps if step.name.startswith("serve: ")]
    wrong = next((step for step in served if step.reason or step.outcome is not Outcome.COMPLETED), None)
    if wrong is not None:
        return _cell(wrong)
    return "-" if not served else "held back" if model.outcome is Migrated.FAILS_SERVED else "ok"


def _steady_cell(model: MigratedModel) -> str:
    """Return the warm call of the package beside that of TorchScript, ``-`` where it was not timed."""
    steady = warm_call(model.costs)
    return "-" if steady is None or steady.ratio is None else f"{signed_percent(steady.ratio)} %"


def _cell(step: Step | None) -> str:
    if step is None:
        return "-"
    if step.outcome is not Outcome.COMPLETED:
        return step.outcome.value.replace("_", " ").replace("export error", "error")
    return "other answers" if step.reason else seconds(step.seconds) if step.seconds is not None else "ok"


def _foot(migration: Migration, directory: str, width: int, *, verbose: bool) -> Iterator[str]:
    yield from _fleet(migration, width, verbose=verbose)
    notes = migration.notes if verbose else migration.notes[:MOST_NOTES]
    for note in notes:
        yield from short_lines("note", note, width)
    if len(notes) < len(migration.notes):
        yield from short_lines("note", f"and {len(migration.notes) - len(notes)} more: --verbose", width)
    cured = [model for model in migration.models if model.cured_by]
    if any(model.cures for model in migration.models):
        words = f"{len(cured)} of {counted(migration.counts.get(Migrated.NOT_CONVERTIBLE, 0), 'model')} not convertible"
        ready = sum(model.cured_outcome is Migrated.READY for model in cured)
        yield from short_lines("cured", f"{words}; {ready} {'becomes' if ready == 1 else 'become'} ready", width)
    sizes = [step.size_bytes for model in migration.models for step in model.steps if step.name == "package"]
    written = sum(found for found in sizes if found is not None)
    if written:
        yield from short_lines("packages", size(written), width)
    known = f"{migration.known} of {counted(migration.asked, 'result')} were known already; {seconds(migration.wall_s)}"
    yield from short_lines("results", known, width)
    if directory:
        yield f"{'reports':<10}{visible(directory)}/migration.html"
    yield from short_lines("models", counts_words(migration.models), width)
    code = int(exit_code(migration))
    yield f"exit code {code}: {exit_words(code)}"


def _fleet(migration: Migration, width: int, *, verbose: bool) -> Iterator[str]:
    """Yield what one cure takes away, whose artifacts wait, and how long they still load."""
    cures, owners = unlocked(migration), by_owner(migration)
    for found in cures if verbose else cures[:MOST_CURES]:
        yield from short_lines("one cure", f"{unlocked_words(found)}: {found.cure}", width)
    said = [f"{owner} {outcomes_words(counts).partition(';')[0]}" for owner, counts in owners.items()]
    if said:
        yield from short_lines("owners", first_few(said, len(said) if verbose else MOST_OWNERS), width)
    if facts := horizon_facts(migration):
        yield from short_lines("horizon", "; ".join(facts), width)
