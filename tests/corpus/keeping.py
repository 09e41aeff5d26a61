"""The twenty artifacts that are committed, because CI has no libraries: how they are made, and unpacked."""

import io
import shutil
import tarfile
from pathlib import Path
from typing import Final

from tests.corpus.lane import Lane, job_of
from tests.corpus.releases import RELEASES

KEPT: Final = Path(__file__).with_name("kept") / "twenty.tar.xz"
TWENTY: Final = (
    ("1.13.1", "torchvision", "mobilenet_v3_small", "script"),
    ("1.13.1", "torchaudio", "MFCC", "script"),
    ("1.13.1", "transformers", "bert", "trace"),
    ("2.1.2", "torchvision", "squeezenet1_1", "script"),
    ("2.1.2", "torchvision", "resnet18", "trace"),
    ("2.1.2", "torchvision", "ssdlite320_mobilenet_v3_large", "script"),
    ("2.1.2", "timm", "lcnet_035", "script"),
    ("2.1.2", "torchaudio", "Fade", "script"),
    ("2.1.2", "torchaudio", "Emformer", "script"),
    ("2.1.2", "transformers", "gpt2", "trace"),
    ("2.1.2", "packages", "einops/Rearrange", "script"),
    ("2.1.2", "packages", "silero_vad/shipped", "script"),
    ("2.6.0", "torchvision", "shufflenet_v2_x0_5", "script"),
    ("2.6.0", "timm", "test_vit", "script"),
    ("2.6.0", "transformers", "t5", "trace"),
    ("2.6.0", "packages", "e3nn/FullyConnectedTensorProduct", "script"),
    ("2.6.0", "packages", "kornia/filters.GaussianBlur2d", "trace"),
    ("2.15.0", "torchvision", "mnasnet0_5", "script"),
    ("2.15.0", "transformers", "llama", "trace"),
    ("2.15.0", "packages", "julius/SplitBands", "script"),
)
"""Exporter, library, architecture, and how."""


def keep(lane: Lane) -> None:
    """Export the twenty and write ``kept/twenty.tar.xz``; their weights repeat, so that they take little space.

    Raises:
        RuntimeError: some could not be exported.
    """
    failed = []
    folder = lane.folder / "twenty"
    shutil.rmtree(folder, ignore_errors=True)
    for release in RELEASES:
        jobs = [
            {**job_of(library, model, how), "patterned": True}
            for exporter, library, model, how in TWENTY
            if exporter == release.torch
        ]
        target = folder / release.torch
        target.mkdir(parents=True)
        for line in lane.ask(release, "exporting.py", "{jobs}", str(target), jobs=jobs):
            if not line.get("bytes"):
                failed.append(f"{line['job']} of {release.torch}: {line}")
    if failed:
        raise RuntimeError("\n".join(failed))
    KEPT.write_bytes(packed(folder))


def packed(folder: Path) -> bytes:
    """Return a tar of the archives and requests of ``folder``, whose subfolders are exporters; the same for the same files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz", preset=9) as archive:
        for path in sorted(folder.rglob("*.pt")):
            stem, _, suffix = path.name.partition(".")
            member = tarfile.TarInfo(f"{stem}_{path.parent.name.replace('.', '_')}.{suffix}")
            member.size = path.stat().st_size
            member.mtime = 946684800  # 2000: a zip, as torch-model-archiver makes one, takes no time before 1980
            with path.open("rb") as source:
                archive.addfile(member, source)
    return made.getvalue()


def unpacked(folder: Path) -> list[Path]:
    """Return the archives of the twenty, unpacked into ``folder`` with their requests."""
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder, filter="data")
    return [path for path in sorted(folder.glob("*.pt")) if not path.name.endswith(".inputs.pt")]
