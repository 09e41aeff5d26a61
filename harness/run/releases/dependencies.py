"""Which distribution beside torch makes a model bad: one of all that differ, or one version of a single one."""

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import Version

from harness.domain.environment import Distribution, DistributionChange, EnvSpec, Step
from harness.domain.releases import Conclusion, Ending, FirstBad, ReleaseAnswer
from harness.environments.installed import installed_in, python_of
from harness.environments.installer import find_uv
from harness.environments.interpreters import find_pythons, verified_python
from harness.errors import ConfigError
from harness.releases.dependencies import (
    NONE,
    TORCH,
    Installed,
    changes,
    find_change,
    put,
    steps_of_all,
    steps_of_one,
    version_of,
)
from harness.releases.index import ReleaseIndex
from harness.releases.judging import DEPENDENCIES, OVER_RELEASES, Over, Question
from harness.run.releases.first_bad import Subject, bisect_command, run_search, specs_of
from harness.system.progress import Progress

ALL = DEPENDENCIES


@dataclass(frozen=True, kw_only=True)
class _Ends:
    """Both environments as they are: specs, and what is installed; ``python`` is the new one's."""

    specs: tuple[EnvSpec, EnvSpec]
    installed: tuple[Installed, Installed]
    python: str

    @property
    def names(self) -> tuple[str, str]:
        return self.specs[0].name, self.specs[1].name

    @property
    def releases(self) -> tuple[str, str]:
        """The torch of either, as a release that can be built where the end is a ready-made interpreter."""
        old, new = (
            spec.release or Version(installed[TORCH].version).public
            for spec, installed in zip(self.specs, self.installed, strict=True)
        )
        return old, new

    def exactly(self, name: str, exact: Sequence[str], side: int = 1) -> EnvSpec:
        like = self.specs[side]
        return EnvSpec(
            name=name,
            release=self.installed[side][TORCH].version,
            python=self.python,
            exact=tuple(exact),
            index_args=like.index_args,
            libraries=like.libraries,
        )


def over_dependencies(
    subject: Subject, what: str, versions: Sequence[str], progress: Progress, *, build_limit: int | None = None
) -> FirstBad:
    """Search which change beside torch makes a model show what it shows in the new environment.

    Args:
        what: ``ALL``, or the name of one distribution: then its versions are searched, with the new torch.
        versions: of that one, from the old to the new one; empty: those that the package index has.
    """
    ends = _ends(subject, progress)
    old, new = ends.installed
    source = f"as installed in {ends.names[0]} and {ends.names[1]}"
    notes: tuple[str, ...] = ()
    named: dict[str, tuple[DistributionChange, Distribution | None]]
    if what == ALL:
        if versions:
            raise ConfigError("--releases belongs to one distribution", "such as --over numpy --releases 1.26.4 2.0.0")
        loaded = [name for spec in ends.specs for name in spec.libraries]
        steps, notes = steps_of_all(old, new, names=ends.names, loaded=loaded)
        named = {change.words: (change, change.new) for change in changes(old, new)}
        rest = steps[1].label if old[TORCH].requirement != new[TORCH].requirement else ""
    else:
        change = find_change(what, old, new)
        what = change.name
        line, source = _versions(change, versions, subject, ends, source)
        steps = steps_of_one(change, old, new, line, names=ends.names)
        named = {f"{change.name} {version}": (change, version_of(change, version)) for version in line[1:]}
        rest = next((step.label for step in steps if step.label == f"{change.name} {line[0]}"), "")

    def checks(found: Conclusion) -> tuple[Question, ...]:
        culprit = named.get(found.first_bad) if found.ending is Ending.FOUND else None
        if culprit is None:
            return ()
        without_it = what == ALL and found.first_bad != steps[-1].label  # else the last good step was just that
        return _checks(*culprit, ends, without_it=without_it, with_it=bool(rest) or (what == ALL and len(steps) > 2))

    over = Over(name=what, rest_step=rest, checks=checks)

    def next_command(found: FirstBad) -> str:
        if found.conclusion.ending is not Ending.FOUND or found.conclusion.first_bad != rest:
            return ""
        more = ("--over", OVER_RELEASES.name if what == ALL else ALL)
        between = ends.releases if what == ALL else (subject.settings.old, subject.settings.new)
        return bisect_command(subject.model.name, *between, subject.options, more=more)

    return run_search(
        subject,
        {step.label: _spec(step, place, len(steps), ends) for place, step in enumerate(steps)},
        progress,
        source=source,
        notes=notes,
        over=over,
        build_limit=build_limit,
        next_command=next_command,
    )


def _ends(subject: Subject, progress: Progress) -> _Ends:
    settings = subject.settings
    if settings.old == settings.new:
        raise ConfigError(f"both ends are {settings.old}", "name two with --old and --new")
    found = specs_of((settings.old, settings.new), subject.options, subject.table, settings)
    old, new = found[settings.old], found[settings.new]
    progress.stage("environments of both ends")
    environments = subject.builder.build_all([old, new])
    installed = [installed_in(item.interpreter, name=item.name) for item in environments]
    return _Ends(
        specs=(old, new), installed=(installed[0], installed[1]), python=python_of(environments[1].interpreter)
    )


def _spec(step: Step, place: int, steps: int, ends: _Ends) -> EnvSpec:
    if step.exact:
        return ends.exactly(step.name, step.exact)
    assert place in (0, steps - 1)  # only ends are there as they are
    return ends.specs[0] if place == 0 else ends.specs[1]


def _versions(
    change: DistributionChange, named: Sequence[str], subject: Subject, ends: _Ends, source: str
) -> tuple[tuple[str, ...], str]:
    first, last = (side.version if side is not None else NONE for side in (change.old, change.new))
    if named:
        return (first, *(version for version in named if version not in (first, last)), last), "as named"
    if change.old is None or change.new is None or not (change.old.from_index and change.new.from_index):
        return (first, last), source
    pythons = find_pythons()
    index = ReleaseIndex(
        uv=find_uv(),
        python=ends.python,
        interpreter=verified_python(ends.python, pythons),
        index_args=ends.specs[1].index_args,
        folder=subject.builder.root / "releases",
        package=change.name,
    )
    listing = index.releases(first, last)
    return listing.releases, f"package index, Python {ends.python}, asked {listing.asked[:10]}"


def _checks(
    change: DistributionChange, there: Distribution | None, ends: _Ends, *, without_it: bool, with_it: bool
) -> tuple[Question, ...]:
    """Return what makes sure of a change that was found: the new side without it is good, the old one with it bad."""
    old, new = ends.installed
    before, after = (side.version if side is not None else NONE for side in (change.old, there))
    questions = []
    if without_it:
        what = f"{ends.names[1]} with {change.name} {before}"
        spec = ends.exactly(what, put(new, change.name, change.old))
        otherwise = "another change makes it bad as well"
        questions.append(Question(what=what, spec=spec, expected=ReleaseAnswer.GOOD, otherwise=otherwise))
    if with_it:
        what = f"{ends.names[0]} with {change.name} {after}"
        spec = ends.exactly(what, put(old, change.name, there), side=0)
        otherwise = "it takes something else of the new side, torch perhaps, as well"
        questions.append(Question(what=what, spec=spec, expected=ReleaseAnswer.BAD, otherwise=otherwise))
    return tuple(questions)
