"""Which releases export and load, with which releases of the libraries: those of the same months."""

from dataclasses import dataclass
from typing import Final

PAIRS: Final = (("2.1.2", "2.6.0"), ("2.6.0", "2.15.0"))
"""For these `compat` is asked for statuses too."""


@dataclass(frozen=True)
class Release:
    """One torch release with its libraries.

    Attributes:
        python: what `uv venv --python` takes; torchvision 0.14.1 and torchaudio 0.13.1 have no wheels for 3.11.
        libraries: those whose architectures are exported, with versions.
        beside: other requirements.
        packages: installed as they are, without what they ask for: it would bring another torch, or none.
    """

    torch: str
    python: str
    libraries: tuple[tuple[str, str], ...]
    beside: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def requirements(self) -> list[str]:
        """All that is installed."""
        return [f"torch=={self.torch}", *(f"{name}=={version}" for name, version in self.libraries), *self.beside]

    @property
    def exported(self) -> list[str]:
        """The libraries whose modules are exported; ``packages`` is what small packages have."""
        return [*dict(self.libraries), *(["packages"] if self.packages else [])]

    def version_of(self, library: str) -> str | None:
        """The version of a library, or None where it has none for this release."""
        return dict(self.libraries).get(library)


PACKAGES: Final = (
    *("einops==0.8.1", "kornia==0.7.4", "kornia_rs==0.1.9", "e3nn==0.5.8", "opt_einsum_fx==0.1.4", "opt_einsum==3.4.0"),
    *(
        "julius==0.2.7",
        "efficientnet-pytorch==0.7.1",
        "open-clip-torch==2.30.0",
        "ftfy==6.3.1",
        "wcwidth",
        "scipy<1.14",
    ),
    *(
        "torch-nl==0.3",
        "torchscriptworld==0.1.0",
        "silero-vad==6.2.3",
        "pretrainedmodels==0.7.4",
        "munch==4.0.0",
        "six",
    ),
)
SEGMENTING: Final = (*PACKAGES, "segmentation-models-pytorch==0.5.0")


def _of(torch: str, python: str, versions: str, *beside: str, packages: tuple[str, ...] = ()) -> Release:
    pairs = [word.split("==") for word in versions.split()]
    return Release(torch, python, tuple((name, version) for name, version in pairs), beside, packages)


RELEASES: Final = (
    _of(
        "1.13.1",
        "3.10",
        "torchvision==0.14.1 torchaudio==0.13.1 timm==0.6.12 transformers==4.26.1",
        *("numpy<2", "packaging", "setuptools<70"),
    ),
    _of(
        "2.1.2",
        "3.11",
        "torchvision==0.16.2 torchaudio==2.1.2 timm==0.9.12 transformers==4.36.2",
        *("numpy<2", "packaging"),
        packages=(*PACKAGES, "segmentation-models-pytorch==0.4.0"),
    ),
    _of(
        "2.6.0", "3.11", "torchvision==0.21.0 torchaudio==2.6.0 timm==1.0.15 transformers==4.50.0", packages=SEGMENTING
    ),
    _of(
        "2.11.0", "3.11", "torchvision==0.26.0 torchaudio==2.11.0 timm==1.0.26 transformers==5.5.0", packages=SEGMENTING
    ),
    _of("2.15.0", "3.11", "torchvision==0.29.2 timm==1.0.31 transformers==5.24.0", packages=SEGMENTING),
)

SHIPPED: Final = (
    ("silero-vad", "5.1.2", "silero_vad/data/silero_vad.jit"),
    ("silero-vad", "6.0.0", "silero_vad/data/silero_vad.jit"),
    ("silero-vad", "6.2.3", "silero_vad/data/silero_vad.jit"),
    ("fasr-vad-silero", "0.5.8", "fasr_vad_silero/asset/silero_vad.jit"),
)
"""Archives that packages ship, with the package's version: nobody knows which release wrote them."""
WITHOUT: Final = (
    "silero-stress 1.5 (torch.package)",
    "silero 0.5.5, silero-ocr 0.9.0b0, seavad 0.0.8, simple-lama-inpainting 0.1.2, whisper-timestamped 1.15.9 (fetch theirs)",
)
"""Packages that were looked at for such archives and have none."""
