"""Which failures say nothing about a release: of the machine, the network, the store or the gate itself. Pure.

These are labelled, tried again and told; no verdict is made of them. What is not known to be one of these is a failure
of the torch under test.
"""

from typing import Final

from harness.core.findings import DISTURBANCE
from harness.core.outcome import Disturbance, Status
from harness.core.text import counted
from harness.core.verdict import Judgement, RowVerdict

LABELS: Final = {
    "spurious-vanished": "the artifact is no longer in the store",
    "spurious-changed": "the artifact, or its requests, are other ones than were planned",
    "spurious-link": "a link leads out of the store",
    "spurious-forbidden": "the store refuses: no permission, or credentials that have expired",
    "spurious-untrusted": "it or its requests are a program from outside of this machine, which only --trust runs",
    "spurious-unreachable": "the store does not answer",
    "spurious-disk": "this machine has no room",
    "spurious-memory": "this machine has too little memory, or something ended the process from outside",
    "spurious-starved": "other work kept the probe from the CPUs",
    "spurious-lost": "the machine that did it was lost, or the call on it was ended",
    "spurious-gate": "the gate itself failed, or did not see one of its planted defects",
}
OF_KINDS: Final = {"protocol_error": "spurious-gate", "starved": "spurious-starved"}
OF_DISTURBANCES: Final = {
    Disturbance.CHANGED: "spurious-changed",
    Disturbance.DISK_FULL: "spurious-disk",
    Disturbance.KILLED: "spurious-memory",
}


def blind(judgement: Judgement) -> str:
    """Return why nothing that a run found can be used, in words: it missed planted defects; empty where it saw all."""
    missed = [item.name for item in judgement.planted_defects if not item.caught]
    if missed:
        return f"the run missed {counted(len(missed), 'planted defect')}: {', '.join(missed[:3])}"
    return "" if judgement.planted_defects or judgement.of_cell else "the run planted no defect"


def label_of(row: RowVerdict, *, memory_is_derived: bool) -> tuple[str, str]:
    """Return the label of what kept a row from being judged, and why in words; two empty texts where it was judged.

    ``memory_is_derived``: whether what a process may use follows from what this machine has.
    """
    for cell in row.cells:
        if not cell.decides or cell.status not in (Status.FAIL, Status.INCONCLUSIVE):
            continue
        for finding in cell.findings:
            disturbance = finding.detail.get(DISTURBANCE)
            if disturbance is not None:
                return OF_DISTURBANCES[Disturbance(disturbance)], finding.message
            if finding.kind in OF_KINDS:
                return OF_KINDS[finding.kind], finding.message
            if finding.kind == "out_of_memory" and memory_is_derived:
                return "spurious-memory", finding.message
    return "", ""
