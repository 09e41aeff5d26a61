"""What an export leaves behind, or what was given."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class InputSet:
    """One named request: which method is called. The values lie in the inputs folder."""

    name: str
    method: str = "forward"


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """A saved TorchScript archive with its inputs.

    Attributes:
        model: name of the model.
        path: absolute path of the ``.pt`` file.
        digest: identity over the archive's members with the root folder stripped and
            ``serialization_id`` and ``debug_pkl`` left out (they change with path and process).
        size_bytes: size of the file.
        archive_version: ``archive/version``; ``operator_version``: ``.data/version``. Two numbers.
        operators: ``name.overload`` as the exporter saw them in the saved archive, sorted.
        inputs_dir: folder with ``tensors.jsonl`` and ``tensors.bin``.
        input_sets: in declared order; the first is the example.
        schedule: the calls that a golden record holds; empty where the settings say how many to make.
        inputs_note: how the inputs were come by where nobody gave them; or why there are none, where ``input_sets`` is
            empty: then the artifact is loaded and not called.
        uncalled: why a method that somebody named is not called, one text for each: nothing could be guessed for it, or
            no request asks it.
    """

    model: str
    path: str
    digest: str
    size_bytes: int
    operators: tuple[str, ...]
    inputs_dir: str
    input_sets: tuple[InputSet, ...]
    reset: str | None = None
    seed: int = 0
    archive_version: str | None = None
    operator_version: str | None = None
    inputs_digest: str = ""
    schedule: tuple[tuple[str, int], ...] = ()
    inputs_note: str = ""
    uncalled: tuple[str, ...] = ()
