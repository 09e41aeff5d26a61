"""What a worker has rewritten: its words, the ``Artifact``, and the folder of the run in which it is kept."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.domain.artifact import Artifact
from harness.domain.divergence import TracedNode
from harness.domain.probe import ProbeResult
from harness.domain.rewriting import Refusal, RefusedNode, RuleWords, Told
from harness.runtime.artifact_store import archive_fields

PROVENANCE = "provenance.json"


def told(probe: ProbeResult) -> Told:
    """Return the mark ``rewritten`` of a probe; empty where it has left none."""
    mark: Mapping[str, Any] = probe.data.get("rewritten", {})
    return Told(
        fits=tuple((rule, tuple(address)) for rule, address in mark.get("fits", ())),
        refused=tuple(
            Refusal(rule=rule, address=tuple(address), why=why) for rule, address, why in mark.get("refused", ())
        ),
        rules={name: RuleWords(**words) for name, words in mark.get("rules", {}).items()},
        found=tuple(RefusedNode(**{**node, "address": tuple(node["address"])}) for node in mark.get("found", ())),
        emptied=tuple(mark.get("emptied", ())),
        done=tuple(map(_node, mark.get("nodes", ()))),
    )


def _node(told: Mapping[str, Any]) -> TracedNode:
    address, kind = tuple(told["address"]), told["operator"].partition(".")[0]
    return TracedNode(place=address, address=address, kind=kind, schema=told["schema"], source=told["source"])


def rewritten_artifact(artifact: Artifact, probe: ProbeResult) -> Artifact:
    """Return ``artifact`` as it was rewritten, with the same requests.

    Raises:
        ValueError: the saved file is not a readable archive.
    """
    return replace(artifact, **archive_fields(Path(probe.directory) / f"{artifact.model}.pt"))


def kept(artifact: Artifact, folder: Path) -> Path:
    """Copy a rewritten archive and its provenance into ``folder``; return the archive there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{artifact.model}.pt"
    shutil.copyfile(artifact.path, path)
    shutil.copyfile(Path(artifact.path).with_name(PROVENANCE), folder / PROVENANCE)
    return path
