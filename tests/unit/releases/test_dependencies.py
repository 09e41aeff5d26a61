"""The way from one environment to another: what goes with torch, what is turned one by one, and in which order."""

import pytest

from harness.domain.environment import Distribution
from harness.errors import ConfigError
from harness.releases.dependencies import NONE, changes, find_change, goes_with_torch, put, steps_of_all, steps_of_one

NAMES = ("torch 2.1.2", "torch 2.6.0")


def installed(**versions: str) -> dict[str, Distribution]:
    """Return distributions by name; ``torch`` needs numpy, and ``name__needs`` is what another one needs."""
    needs = {name.removesuffix("__needs"): text for name, text in versions.items() if name.endswith("__needs")}
    found = {}
    for key, version in versions.items():
        if key.endswith("__needs"):
            continue
        name = key.replace("_", "-")
        told = needs.get(key, "numpy" if name == "torch" else "")
        found[name] = Distribution(
            name=name, version=version, requirement=f"{name}=={version}", needs=(told,) if told else ()
        )
    return found


def test_what_brings_operators_is_suspected_first_then_what_torch_needs_then_the_rest() -> None:
    old = installed(torch="1", abc="1", numpy="1", ops="1", vision="1", vision__needs="torch (>=1)", same="1")
    new = installed(torch="2", abc="2", numpy="2", ops="2", vision="2", vision__needs="torch (>=1)", same="1")
    assert [change.name for change in changes(old, new, ["Ops"])] == ["ops", "vision", "numpy", "abc"]


def test_a_requirement_of_an_extra_is_none() -> None:
    old = installed(torch="1", abc="1", zlib="1", zlib__needs="torch ; extra == 'gpu'")
    new = installed(torch="1", abc="2", zlib="2")
    assert [change.name for change in changes(old, new)] == ["abc", "zlib"]


def test_what_torch_is_linked_with_and_what_asks_for_the_old_torch_goes_with_it() -> None:
    old = installed(
        torch="2.1.2",
        nvidia_cublas="12",
        vision="0.16",
        vision__needs="torch==2.1.2",
        audio="1",
        audio__needs="torch>=2",
    )
    new = installed(torch="2.6.0+cu124", nvidia_cublas="13", vision="0.21", vision__needs="torch==2.6.0", audio="2")
    why = {change.name: goes_with_torch(change, new["torch"]) for change in changes(old, new)}
    assert why == {
        "audio": "",
        "nvidia-cublas": "torch is linked with nvidia-cublas",
        "vision": "vision 0.16 asks for torch==2.1.2",
    }
    steps, notes = steps_of_all(old, new, names=NAMES)
    assert [step.label for step in steps] == ["torch 2.1.2", "torch 2.6.0+cu124 alone", "audio 1 -> 2"]
    assert steps[1].exact == ("audio==1", "nvidia-cublas==13", "torch==2.6.0+cu124", "vision==0.21")
    assert steps[0].exact == steps[2].exact == ()
    assert notes[0] == "goes with torch: vision 0.16 -> 0.21 (vision 0.16 asks for torch==2.1.2)"


def test_each_step_turns_one_more_and_what_is_on_one_side_only_comes_or_goes() -> None:
    old = installed(torch="1", gone="3", numpy="1")
    new = installed(torch="2", fresh="7", numpy="2")
    steps, _ = steps_of_all(old, new, names=NAMES)
    assert [(step.label, step.exact) for step in steps] == [
        ("torch 2.1.2", ()),
        ("torch 2 alone", ("gone==3", "numpy==1", "torch==2")),
        ("numpy 1 -> 2", ("gone==3", "numpy==2", "torch==2")),
        ("fresh none -> 7", ("fresh==7", "gone==3", "numpy==2", "torch==2")),
        ("gone 3 -> none", ()),
    ]


def test_the_versions_of_one_go_with_everything_else_of_the_new_side() -> None:
    old, new = installed(torch="1", abc="1", numpy="1"), installed(torch="2", abc="2", numpy="3")
    steps = steps_of_one(find_change("numpy", old, new), old, new, ("1", "2", "3"), names=NAMES)
    assert [(step.label, step.exact) for step in steps] == [
        ("torch 2.1.2", ()),
        ("numpy 1", ("abc==2", "numpy==1", "torch==2")),
        ("numpy 2", ("abc==2", "numpy==2", "torch==2")),
        ("numpy 3", ()),
    ]
    absent = installed(torch="2", abc="2")
    steps = steps_of_one(find_change("numpy", old, absent), old, absent, ("1", NONE), names=NAMES)
    assert [step.exact for step in steps] == [(), ("abc==2", "numpy==1", "torch==2"), ()]


def test_where_only_that_one_differs_the_old_side_is_not_built_again() -> None:
    old, new = installed(torch="2", numpy="1"), installed(torch="2", numpy="3")
    steps = steps_of_one(find_change("numpy", old, new), old, new, ("1", "2", "3"), names=NAMES)
    assert [step.label for step in steps] == ["torch 2.1.2", "numpy 2", "numpy 3"]


def test_what_was_installed_from_a_file_is_asked_for_there() -> None:
    local = Distribution(name="ops", version="1", requirement="ops @ file:///w/ops-1.whl")
    assert not local.from_index
    assert put(installed(torch="2"), "ops", local) == ("ops @ file:///w/ops-1.whl", "torch==2")
    assert put(installed(torch="2", ops="2"), "ops", None) == ("torch==2",)


def test_nothing_beside_torch_is_nothing_to_search() -> None:
    old = installed(torch="1", nvidia_cublas="12", numpy="1")
    new = installed(torch="2", nvidia_cublas="13", numpy="1")
    with pytest.raises(ConfigError, match=r"nothing but torch and what goes with it \(nvidia-cublas\)"):
        steps_of_all(old, new, names=NAMES)
