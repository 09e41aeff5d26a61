"""Golden bundles that replace the old environment: each model's own file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.domain.golden import ARTIFACT, Bundle, Trust
from harness.domain.models import Artifact, ModelDeclaration
from harness.errors import GoldenError
from harness.models.artifacts import inputs_digest
from harness.models.bundle_outputs import calls_made, read_remembered
from harness.models.bundles import AGAIN, INPUTS, OUTPUTS, read_bundle, unpack_bundle
from harness.models.old_outputs import Remembered
from harness.tensors.decode import DecodeError


class BundleStore:
    """The bundles among some models; they are read where they lie."""

    def __init__(self, models: Iterable[ModelDeclaration]) -> None:
        self._paths: Mapping[str, Path] = {
            model.name: Path(model.given.path) for model in models if model.given is not None and model.given.bundle
        }

    def title(self) -> str:
        """Return what made the bundles and when: ``golden bundle made by torch 2.1.2 on 2026-11-21``."""
        made = sorted({self.record(name).made_by for name in self._paths})
        some = f"{made[0]} and {len(made) - 1} more" if len(made) > 2 else " and ".join(made)
        return f"golden bundle{'s' if len(self._paths) > 1 else ''} made by {some}"

    def names(self) -> tuple[str, ...]:
        """Return the models that are bundles."""
        return tuple(sorted(self._paths))

    def record(self, model: str) -> Bundle:
        """Return what the bundle of ``model`` says of itself.

        Raises:
            GoldenError: there is none, or it is damaged.
        """
        return read_bundle(self._path(model))

    def trust(self, models: Sequence[str]) -> tuple[Trust, ...]:
        """Return nothing: the bundle says what made it, and bundles are not accepted here."""
        del models
        return ()

    def unpack(self, model: str, destination: Path) -> Artifact:
        """Write the bundle's files under ``destination``, all verified; return the artifact.

        Raises:
            GoldenError: it is damaged, or its outputs are none.
        """
        path = self._path(model)
        bundle = unpack_bundle(path, destination)
        golden = self.remembered(model, destination).golden
        made = calls_made(golden)
        promised = {(item.name, call) for item in bundle.artifact.input_sets for call in range(made[item.name] or 1)}
        if golden.calls.keys() != promised:
            raise GoldenError(f"{path}: its golden outputs are not of the calls 0, 1, ... of its input sets", AGAIN)
        inputs = destination / INPUTS
        return replace(
            bundle.artifact,
            path=str(destination / ARTIFACT),
            inputs_dir=str(inputs),
            inputs_digest=inputs_digest(inputs),
            schedule=tuple((item.name, made[item.name]) for item in bundle.artifact.input_sets),
        )

    def remembered(self, model: str, folder: Path) -> Remembered:
        """Return what the old release answered, from where ``unpack`` wrote it; raises as ``unpack``."""
        try:
            found = read_remembered(folder / OUTPUTS)
        except DecodeError as error:
            raise GoldenError(f"{self._path(model)}: its golden outputs cannot be read: {error}", AGAIN) from None
        return replace(found, numerics=self.record(model).numerics)

    def _path(self, model: str) -> Path:
        if model not in self._paths:
            raise GoldenError(f"there is no golden bundle of {model}", "name it with --artifacts")
        return self._paths[model]
