"""The rows of a version matrix: one release's exports, their golden outputs, and the predictions from their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.archive.code import CodeMemory
from harness.domain.archive import ArchiveFacts, OperatorRegistry
from harness.domain.environment import Environment, Fingerprint
from harness.domain.matrix import MatrixRelease
from harness.domain.models import ModelDeclaration
from harness.probing.export import export_model
from harness.probing.facts import Answered, Effects, Export, OldAnswers, Provisioned
from harness.probing.reference import take_old_answers
from harness.static.check import inspect_file
from harness.system import pool


@dataclass(frozen=True, kw_only=True)
class Release:
    """One release of the matrix; ``key`` names it to the runner and to the store, ``name`` to the user.

    ``registry`` is None where it did not say which operators it has: nothing is predicted for it.
    """

    key: str
    name: str
    environment: Environment
    fingerprint: Fingerprint
    registry: OperatorRegistry | None = None

    @property
    def described(self) -> MatrixRelease:
        """What a matrix says of it."""
        found = self.fingerprint
        return MatrixRelease(name=self.name, torch=found.torch, python=found.python, cpu=found.cpu or "")


@dataclass(frozen=True, kw_only=True)
class Row:
    """The artifacts of one exporter.

    Attributes:
        name: of the row; ``release``: where its artifacts were exported, or taken over where they were given.
        facts: exports and baselines of its models.
        read: model -> what is in its archive; none where it cannot be read or holds no code.
    """

    name: str
    release: Release
    facts: Answered
    read: Mapping[str, ArchiveFacts] = field(default_factory=dict)


def make_row(
    name: str,
    release: Release,
    models: Sequence[ModelDeclaration],
    facts: Provisioned,
    effects: Effects,
    *,
    memory: CodeMemory,
) -> Row:
    """Return the row of ``models`` in ``release``; its zygote may be ended afterwards.

    Args:
        facts: the plan and the fingerprints of all releases, by key.
        memory: shared by all rows: they hold much the same code.
    """
    jobs = facts.plan.settings.jobs
    requests = facts.requests
    verb = "export" if name == release.name else "take over"
    effects.progress.stage(f"{verb} in {release.name}", len(models))

    def export(model: ModelDeclaration) -> Export:
        done = export_model(model, facts, effects, requests, release.key)
        effects.progress.step(model.name)
        return done

    exports = {done.declaration.name: done for done in pool.each(export, models, jobs=jobs)}
    made = [done for done in exports.values() if done.artifact is not None]
    effects.progress.stage(f"golden outputs in {release.name}", len(made))

    def baseline(done: Export) -> tuple[str, OldAnswers]:
        found = take_old_answers(done, facts, effects, requests, release.key)
        effects.progress.step(done.declaration.name)
        return done.declaration.name, found

    baselines = dict(pool.each(baseline, made, jobs=jobs))
    answered = Answered(**Provisioned.known(facts), exports=exports, baselines=baselines)
    effects.progress.stage(f"read what {release.name} wrote", len(made))
    read = {}
    for done in made:
        found = inspect_file(answered.artifact(done.declaration.name).path, {}, memory).facts
        if found is not None and found.has_code:
            read[done.declaration.name] = found
        effects.progress.step(done.declaration.name)
    return Row(name=name, release=release, facts=answered, read=read)
