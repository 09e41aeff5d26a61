"""What a person looks at before and after a golden record is accepted: diffs, and the state of all records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.correctness.compare import precision_under
from harness.domain.comparison import OutputComparison
from harness.domain.golden import (
    GoldenRecord,
    GoldenStatus,
    Head,
    RecordChange,
    RecordDiff,
    RecordFacts,
    RecordProblem,
    Review,
    Trust,
)
from harness.domain.models import ModelDeclaration
from harness.errors import GoldenError
from harness.golden.files import content_digest, outputs_of, run_of
from harness.golden.journal import first_schema, follows
from harness.golden.pending import settle
from harness.golden.review import change_of, compare_records, facts_between
from harness.golden.store import GoldenStore
from harness.run.golden.left_over import declared_models, left_over
from harness.run.options import Options, golden_store, settings_of, shown_path
from harness.tensors.decode import DecodeError
from harness.tensors.outputs import Outputs
from harness.tensors.trees import leaves

GRAVEST_FIRST = tuple(RecordChange)


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A record with its outputs; ``facts`` are what a diff tells of it."""

    record: GoldenRecord
    outputs: Outputs
    facts: RecordFacts


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the outputs of a model are to be read: as the project declares it."""

    declared: Mapping[str, ModelDeclaration]
    computes_in: Mapping[str, str]


def diff(options: Options, models: Sequence[str] = (), since: str | None = None) -> Review:
    """Return what the waiting proposals change; or, with ``since``, what changed since another golden folder.

    Args:
        models: those that are compared; empty: all that differ.
        since: a golden folder from before, such as that of the main branch.

    Raises:
        GoldenError: a record is missing or not what was accepted.
    """
    store, reading = golden_store(options), _reading(options)
    settle(store.folder)
    if since is None:
        names = tuple(models) or store.proposed()
        diffs = [_proposal_diff(store, name, reading) for name in names]
        return Review(old="accepted", new="proposed", diffs=_sorted(diffs))
    before = _earlier(since)
    ours, theirs = store.entries(), before.entries()
    unknown = [name for name in models if name not in ours and name not in theirs]
    if unknown:
        raise GoldenError(f"there is no golden record of {unknown[0]}, here or in {since}", "see golden status")
    names = tuple(models) or tuple(
        name
        for name in sorted({*ours, *theirs})
        if name not in ours or name not in theirs or ours[name].sha256 != theirs[name].sha256
    )
    diffs = [_diff(name, _accepted(before, name), _accepted(store, name), reading) for name in names]
    return Review(old=f"accepted in {since}", new="accepted now", diffs=_sorted(diffs))


def status(options: Options, models: Sequence[str] = (), since: str | None = None) -> GoldenStatus:
    """Return the state of all records, every byte verified; with the history of the ``models`` that are named.

    Args:
        since: a golden folder from before, whose journal this one must go on from.
    """
    store = golden_store(options)
    folder = shown_path(store.folder)
    settle(store.folder)
    try:
        ledger = store.ledger()
    except GoldenError as error:
        return GoldenStatus(folder=folder, head=Head(), problems=(_problem("", error),))
    _known(models, {entry.model for entry in ledger.entries} | set(store.proposed()))
    problems = [*_rewritten(store, since), *_damaged(store)]
    waiting, broken = _waiting(store, _reading(options), models)
    names = tuple(models) or store.names()
    return GoldenStatus(
        folder=folder,
        head=ledger.head,
        accepted=store.trust(names),
        waiting=waiting,
        history=tuple(entry for entry in ledger.entries if entry.model in models),
        problems=(*problems, *broken),
        left_over=len(left_over(options)) if not problems else 0,
    )


def _known(models: Sequence[str], known: set[str]) -> None:
    for name in models:
        if name not in known:
            raise GoldenError(f"nothing was ever decided about a record of {name}", "leave it out to see all")


def _rewritten(store: GoldenStore, since: str | None) -> list[RecordProblem]:
    if since is None:
        return []
    earlier, ledger = _earlier(since), store.ledger()
    hint = "what was decided is never rewritten: begin from that journal"
    older = first_schema(earlier.folder)
    if older:  # from before there was a journal: then this one begins with its records
        taken = {(entry.model, entry.record) for entry in ledger.entries}
        lost = [name for name, entry in older.items() if (name, entry.sha256) not in taken]
        return [
            RecordProblem(model=name, message=f"its record in {since} was never taken over", hint=hint) for name in lost
        ]
    number = follows(ledger, earlier.ledger())
    if number is None:
        return []
    message = f"the journal does not go on from that of {since}: entry {number} is another one, or is gone"
    return [RecordProblem(model="", message=message, hint=hint)]


def _damaged(store: GoldenStore) -> list[RecordProblem]:
    problems = []
    for name in store.names():
        try:
            store.record(name)
        except GoldenError as error:
            problems.append(_problem(name, error))
    return problems


def _waiting(
    store: GoldenStore, reading: Reading, models: Sequence[str]
) -> tuple[tuple[RecordDiff, ...], tuple[RecordProblem, ...]]:
    diffs, problems = [], []
    for name in store.proposed():
        if models and name not in models:
            continue
        try:
            diffs.append(_proposal_diff(store, name, reading))
        except GoldenError as error:
            problems.append(_problem(name, error))
    return _sorted(diffs), tuple(problems)


def _problem(model: str, error: GoldenError) -> RecordProblem:
    return RecordProblem(model=model, message=error.message, hint=error.hint)


def _earlier(since: str) -> GoldenStore:
    """Return the golden folder of before; a path is relative to the working directory."""
    store = GoldenStore(Path(since))
    if not store.exists():
        raise GoldenError(f"--since {since}: there is no such folder", "name the golden folder of an earlier commit")
    return store


def _reading(options: Options) -> Reading:
    _, settings = settings_of(options)
    declared = {model.name: model for model in declared_models(options)}
    return Reading(declared=declared, computes_in=settings.computes_in)


def _proposal_diff(store: GoldenStore, name: str, reading: Reading) -> RecordDiff:
    record, sha256, outputs = store.proposal(name)
    rejected = store.ledger().rejection(name, content_digest(record))
    said = f"{rejected.at[:10]} by {rejected.by}: {rejected.reason}" if rejected is not None else ""
    new = Kept(record=record, outputs=outputs, facts=_facts(record, sha256, outputs))
    try:
        old = _accepted(store, name)
    except GoldenError as error:  # it can be replaced all the same: that mends it
        words = f"the accepted record cannot be compared: {error.message}"
        return RecordDiff(model=name, change=RecordChange.UNKNOWN, words=words, new=new.facts, rejected=said)
    return _diff(name, old, new, reading, rejected=said)


def _accepted(store: GoldenStore, name: str) -> Kept | None:
    if name not in store.entries():
        return None
    record = store.record(name)
    outputs = outputs_of(store.record_folder(name), record)
    (trust,) = store.trust([name])
    return Kept(record=record, outputs=outputs, facts=_facts(record, trust.record, outputs, trust))


def _facts(record: GoldenRecord, sha256: str, outputs: Outputs, trust: Trust | None = None) -> RecordFacts:
    return RecordFacts(
        record=sha256,
        release=record.producer.torch,
        run=run_of(record),
        device=record.device,
        calls=len(outputs.calls),
        tensors=sum(1 for tree in outputs.calls.values() for _ in leaves(tree)),
        trust=trust,
    )


def _diff(name: str, old: Kept | None, new: Kept | None, reading: Reading, *, rejected: str = "") -> RecordDiff:
    if old is None or new is None:
        kept = new or old
        assert kept is not None
        words = f"{kept.facts.tensors} tensors in {kept.facts.calls} calls, by torch {kept.facts.release}"
        return RecordDiff(
            model=name,
            change=RecordChange.NEW if old is None else RecordChange.GONE,
            words=words,
            old=old.facts if old else None,
            new=new.facts if new else None,
            rejected=rejected,
        )
    comparison = _compared(name, old, new, reading)
    change, words = change_of(comparison)
    return RecordDiff(
        model=name,
        change=change,
        words=words,
        old=old.facts,
        new=new.facts,
        facts=facts_between(old.record, new.record),
        comparison=comparison,
        rejected=rejected,
    )


def _compared(name: str, old: Kept, new: Kept, reading: Reading) -> OutputComparison:
    model = reading.declared.get(name)
    declared = reading.computes_in.get(name) if model is None or model.tolerance is None else model.tolerance
    numerics = new.record.profile.numerics if new.record.profile is not None else {}
    try:
        return compare_records(
            name,
            old.outputs,
            new.outputs,
            precision=declared or precision_under(numerics),
            unordered=model.unordered if model is not None else (),
        )
    except DecodeError as error:
        raise GoldenError(f"the record of {name} cannot be read: {error}", "propose it again") from error


def _sorted(diffs: Sequence[RecordDiff]) -> tuple[RecordDiff, ...]:
    return tuple(sorted(diffs, key=lambda found: (GRAVEST_FIRST.index(found.change), found.model)))
