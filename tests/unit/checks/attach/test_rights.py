"""What a user is told to do who may not trace a process: only what would help that one."""

import pytest

from harness.checks.attach.rights import _reason


@pytest.mark.parametrize(
    ("facts", "expected", "never"),
    [
        ({"capable": False, "root": False, "scope": "1"}, "ptrace_scope is 1", "this root"),
        ({"capable": False, "root": False, "scope": ""}, "sudo", "yama"),
        ({"capable": False, "root": True, "scope": "1"}, "this root lacks the capability SYS_PTRACE", "sudo"),
        ({"capable": True, "root": True, "scope": "0"}, "another user namespace", "sudo"),
        ({"capable": True, "root": True, "scope": "3"}, "ptrace_scope is 3", "sudo"),
    ],
)
def test_the_reason_is_the_one_that_applies(facts: dict[str, object], expected: str, never: str) -> None:
    words = _reason(**facts)  # type: ignore[arg-type]
    assert expected in words
    assert never not in words
