"""Declarations of files that are given."""

from pathlib import Path

from harness.domain.models import GivenArtifact, ModelDeclaration


def given(path: Path, digest: str = "0123456789abcdef") -> ModelDeclaration:
    return ModelDeclaration(
        name="m",
        package_root=str(path.parent),
        source=path.name,
        source_digest=digest,
        how="file",
        given=GivenArtifact(path=str(path)),
    )
