"""Which releases will still load an artifact, and what it was converted to, as both can be read without torch. Pure."""

from collections.abc import Collection, Iterator, Mapping

from harness.checks.migration.deprecation import deprecated_in, line_of
from harness.checks.prediction.predict import predict
from harness.core.archive import ArchiveFacts, OperatorRegistry
from harness.core.migration import Horizon, Loading
from harness.core.prediction import OPERATOR_MISSING, Prediction, StaticVerdict
from harness.core.text import prose
from harness.verdict.prediction import deciding


def horizon(
    archive: ArchiveFacts | None,
    program: ArchiveFacts | None,
    registries: Mapping[str, OperatorRegistry],
    exporter: OperatorRegistry | None,
    *,
    loaded: Collection[str] = (),
    program_loaded: Collection[str] = (),
) -> Horizon | None:
    """Return what is known of the releases that still load an artifact; None where nothing could be read.

    ``archive`` is None where it is not there or not legible, as is ``program``, the ``.pt2`` that was written.
    ``exporter`` is the release whose operators the archive's calls mean. In the releases ``loaded`` the archive was
    seen to load, whatever reading says; ``program_loaded``: likewise.
    """
    if not registries or (archive is None and program is None):
        return None
    verdicts = dict(_verdicts(archive, registries, exporter))
    newest = max(registries, key=lambda name: line_of(registries[name].torch))
    findings = verdicts[newest].findings if newest in verdicts else ()
    used = dict.fromkeys(use.name for use in archive.operators) if archive is not None else ()
    return Horizon(
        archive=tuple(_loading(name, verdict, loaded) for name, verdict in verdicts.items()),
        program=tuple(
            _loading(name, verdict, program_loaded) for name, verdict in _verdicts(program, registries, exporter)
        ),
        newest=newest,
        gone=tuple(dict.fromkeys(finding.subject for finding in findings if finding.kind == OPERATOR_MISSING)),
        deprecated=deprecated_in(
            registries[newest].torch, [name for name in used if name in registries[newest].schemas]
        ),
    )


def _verdicts(
    facts: ArchiveFacts | None, registries: Mapping[str, OperatorRegistry], exporter: OperatorRegistry | None
) -> Iterator[tuple[str, StaticVerdict]]:
    """Yield each release with what it will do with a file; nothing of a file that no release is judged by."""
    for name, target in registries.items():
        sides = {"new": target} if exporter is None else {"old": exporter, "new": target}
        if facts is not None and facts.is_judged:
            yield name, predict(facts, sides)["new"]


def _loading(release: str, verdict: StaticVerdict, loaded: Collection[str]) -> Loading:
    if release in loaded:
        return Loading(release=release, prediction=Prediction.LOADS)
    why = next(iter(deciding(verdict)), None)
    operator = why.subject if why is not None and "::" in why.subject else ""
    words = f"{operator}: {why.text}" if why is not None and operator else why.text if why is not None else ""
    return Loading(release=release, prediction=verdict.prediction, why=prose(words))
