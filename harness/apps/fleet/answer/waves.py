"""The upgrade plan: which artifacts can move now, which with a switch, what blocks which, and what nobody knows. Pure.

A process has one set of switches, so a switch is chosen per serving profile: the fewest that mitigate all that fails.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.checks.migration.readiness import owned
from harness.core.fleet import FleetArtifact, FleetRow, Wave, WaveKind
from harness.core.outcome import Status
from harness.core.verdict import Cause, RowVerdict
from harness.verdict.decide import chosen_mitigations, is_mitigated
from harness.verdict.inputs import unseen_changes

READY = (Status.PASS, Status.XFAIL)
NOT_COMPARED = "it fails in the old release as well, so nothing could be compared"


class Judged(NamedTuple):
    """One artifact with its row and its verdict, None without one; ``unknown_for``: why it has no status."""

    artifact: FleetArtifact
    row: FleetRow
    verdict: RowVerdict | None
    unknown_for: str = ""


class _Key(NamedTuple):
    """What artifacts of one wave share; ``needs`` is the cause or the reason itself where it has no other words."""

    kind: WaveKind
    needs: str
    cause: str = ""
    profile: str = ""
    warning: str = ""


def waves_of(judged: Sequence[Judged], causes: Sequence[Cause], tiers: Sequence[str]) -> tuple[Wave, ...]:
    """Return the waves in the order in which they move; artifacts without one of the ``tiers`` come first."""
    groups: dict[_Key, list[FleetArtifact]] = defaultdict(list)
    mitigations = _mitigations(judged)
    by_id = {cause.id: cause for cause in causes}
    for item in judged:
        groups[_wave_of(item, mitigations)].append(item.artifact)
    order = {tier: place for place, tier in enumerate(("", *tiers))}
    made = [_wave(key, members, judged, by_id, mitigations) for key, members in groups.items()]
    kinds = list(WaveKind)

    def place(wave: Wave) -> tuple[int, int, str, int, str, str]:
        tier = order.get(wave.needs, len(order)) if wave.kind is WaveKind.READY else 0
        return kinds.index(wave.kind), tier, wave.warning, -len(wave.artifacts), wave.needs, wave.profile

    return tuple(sorted(made, key=place))


def _mitigations(judged: Sequence[Judged]) -> dict[str, str]:
    failed: dict[str, list[RowVerdict]] = defaultdict(list)
    for item in judged:
        verdict = item.verdict
        if verdict is not None and item.row.status in (Status.FAIL, Status.XPASS) and is_mitigated(verdict):
            failed[item.artifact.serving.profile].append(verdict)
    return {name: mitigation for rows in failed.values() for name, mitigation in chosen_mitigations(rows).items()}


def _warning(verdict: RowVerdict | None) -> str:
    """Return the operators that a policy warns of; empty without one."""
    return ", ".join(finding.subject for finding in unseen_changes(verdict)) if verdict is not None else ""


def _wave_of(item: Judged, mitigations: Mapping[str, str]) -> _Key:
    row = item.row
    if row.status in READY:
        return _Key(WaveKind.READY, row.tier, warning=_warning(item.verdict))
    if row.status in (Status.FAIL, Status.XPASS):
        if row.name in mitigations:
            return _Key(WaveKind.SWITCH, mitigations[row.name], profile=item.artifact.serving.profile)
        return _Key(WaveKind.BLOCKED, row.cause or row.reason, row.cause)
    if row.status is Status.SAME_FAIL:
        return _Key(WaveKind.UNKNOWN, NOT_COMPARED)
    if row.status is not None and row.cause:
        return _Key(WaveKind.UNKNOWN, row.cause, row.cause)
    return _Key(WaveKind.UNKNOWN, item.unknown_for or row.reason)


def _wave(
    key: _Key,
    members: Sequence[FleetArtifact],
    judged: Sequence[Judged],
    causes: Mapping[str, Cause],
    mitigations: Mapping[str, str],
) -> Wave:
    kind, needs = key.kind, key.needs
    cause = causes.get(key.cause)
    return Wave(
        kind=kind,
        needs=cause.title if cause is not None else needs,
        cost=_cost(needs, judged, mitigations) if kind is WaveKind.SWITCH else "",
        cause=key.cause,
        fix=cause.fix if cause is not None else "",
        profile=key.profile,
        warning=key.warning,
        owners=owned(members),
        artifacts=tuple(sorted(item.name for item in members)),
    )


def _cost(switch: str, judged: Sequence[Judged], mitigations: Mapping[str, str]) -> str:
    tried = [
        mitigation.price
        for item in judged
        if item.verdict is not None and mitigations.get(item.artifact.name) == switch
        for mitigation in item.verdict.mitigations
        if mitigation.name == switch and mitigation.mitigates and mitigation.price is not None
    ]
    return f"latency {max(tried, key=lambda price: price.ratio).words}" if tried else "price not measured"
