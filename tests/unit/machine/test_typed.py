"""Values read as types: shapes, and the first use of a type by many threads."""

import subprocess
import sys

import msgspec
import pytest

from harness.core.probe import Deadline
from harness.machine.typed import converted, decoded

PLAIN = {"load_s": 1.0, "call_s": 2.0, "total_s": 3.0, "load_cpu_s": None}
VALUE = Deadline(load_s=1, call_s=2, total_s=3)
MANY = """
import sys, threading
from harness.core.report import RunReport
from harness.core.fleet import FleetReport
from harness.core.migration import Migration
from harness.machine import typed
import msgspec
sys.setswitchinterval(1e-6)
wrong = []
def read(kind):
    try:
        typed.decoded(b"{}", kind)
    except msgspec.ValidationError:
        return
    wrong.append(kind)
threads = [threading.Thread(target=read, args=(kind,)) for kind in (RunReport, FleetReport, Migration) * 8]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(wrong))
"""


def test_json_and_builtins_become_the_type() -> None:
    assert decoded(msgspec.json.encode(PLAIN), Deadline) == VALUE
    assert converted(PLAIN, Deadline) == VALUE
    assert converted("3", int, strict=False) == 3


@pytest.mark.parametrize("read", [lambda: decoded(b"[]", Deadline), lambda: converted([], Deadline)])
def test_another_shape_is_refused(read: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        read()  # type: ignore[operator]


def test_many_threads_may_be_the_first_to_read_a_type() -> None:
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr[-2000:]
