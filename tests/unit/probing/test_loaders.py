"""What callers are told who load archives otherwise than the gate does."""

from harness.core.probe import LOADERS
from harness.probing.loaders import NOT_COVERED, WRITTEN, Tried, loader_notes

NAMES = {"old": "torch 2.1.2", "new": "torch 2.15.0"}


def tried(refused: str = "", **warns: list[str]) -> Tried:
    return {
        way: {"error": "RuntimeError: weights_only" if way == refused else "", "warns": warns.get(way, [])}
        for way in LOADERS
    }


def test_every_way_of_python_has_words() -> None:
    assert {*WRITTEN, "read_adapter"} == set(LOADERS)


def test_way_that_the_new_release_alone_refuses_is_named_with_the_one_that_works() -> None:
    (note,) = loader_notes(tried("torch.load"), tried(), NAMES)
    assert note == (
        "torch 2.15.0 refuses TorchScript archives in torch.load with its default weights_only, and torch 2.1.2 does not: "
        f"load them with torch.jit.load; {NOT_COVERED}"
    )
    assert loader_notes(tried("torch.load"), tried("torch.load"), NAMES) == ()
    assert loader_notes(tried(), tried("torch.load"), NAMES) == ()


def test_ways_that_warn_anew_are_named_once_per_category() -> None:
    both = tried(buffer=["FutureWarning"], extra_files=["FutureWarning", "UserWarning"])
    notes = loader_notes(both, tried(extra_files=["UserWarning"]), NAMES)
    assert notes == (
        "torch 2.15.0 warns (FutureWarning) in torch.jit.load of a buffer, torch.jit.load with _extra_files, and "
        f"torch 2.1.2 does not: under -W error they do not load; {NOT_COVERED}",
    )


def test_without_an_old_release_the_note_is_of_the_new_one_alone() -> None:
    (note,) = loader_notes(tried("torch.load"), None, {"new": "torch 2.6.0"})
    assert note.startswith(
        "torch 2.6.0 refuses TorchScript archives in torch.load with its default weights_only: load them"
    )


def test_archive_that_nothing_loads_and_a_look_that_failed_say_nothing_of_the_ways() -> None:
    refused = {way: {"error": "RuntimeError: gone", "warns": []} for way in LOADERS}
    assert loader_notes(refused, tried(), NAMES) == ()
    assert loader_notes({}, tried(), NAMES) == ()
