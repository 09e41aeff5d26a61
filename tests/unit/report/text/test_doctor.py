"""How the doctor's checks look on a terminal and in JSON."""

import json
from dataclasses import replace

import msgspec

from harness.apps.doctor.checks import Facts, examined
from harness.core.machine import CheckStatus, Checkup, Gpus, MachineCheck
from harness.apps.doctor.facts import Container
from harness.report.json.results import dump_checkup
from harness.report.text.doctor import render_checkup
from tests.unit.builders.machines import CORES, DISK, GPUS, HOST, NEW, OLD, TOOLS, WHEEL
from tests.unit.builders.snapshots import check_snapshot

BOTH = ("torch 2.1.2", "torch 2.6.0")
ESCAPES = "\x1b[31mred\x1b[0m \u202e right to left"


def checkup(sick: bool) -> Checkup:
    host = HOST
    new = NEW
    if sick:
        new = replace(NEW, wheel=replace(WHEEL, cuda="13.2"))
        host = replace(
            HOST,
            cores=replace(CORES, quota=2.0, stolen=0.2),
            container=Container(kind="docker", group="/system.slice/docker-1f.scope"),
            gpus=replace(GPUS, profilers=("nv-hostengine",), unlinked=("/dev/nvidia0",)),
        )
    checks = examined(
        Facts(
            host=host,
            candidates=(
                OLD,
                new,
            ),
            disk=DISK,
            tools=TOOLS,
            device="auto",
            jobs=4,
        )
    )
    return Checkup(environments=BOTH, checks=checks, wall_s=0.42)


def test_what_is_shown_of_a_healthy_and_of_a_faulty_machine() -> None:
    for name, found in (("healthy", checkup(sick=False)), ("sick", checkup(sick=True))):
        check_snapshot(f"checkup_{name}.txt", render_checkup(found))
        assert msgspec.convert(json.loads(dump_checkup(found))["checkup"], Checkup) == found
    check_snapshot("checkup_sick.json", dump_checkup(checkup(sick=True)))


def test_lines_fit_80_columns_and_are_plain() -> None:
    text = render_checkup(checkup(sick=True))
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()
    assert "\x1b" not in text


def test_colour_is_on_words_of_statuses_only() -> None:
    plain, coloured = render_checkup(checkup(sick=True)), render_checkup(checkup(sick=True), colour=True)
    assert coloured.replace("\x1b[0m", "").count("\x1b[") == len(checkup(sick=True).checks) + 1
    for code in ("32", "33", "36", "1;31", "0"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == plain


def test_hostile_names_steer_no_terminal() -> None:
    evil = MachineCheck(
        name=ESCAPES,
        area=ESCAPES,
        about=ESCAPES,
        read="x" * 300 + "\n" + ESCAPES,
        status=CheckStatus.FAIL,
        so_what=ESCAPES,
        do_this=ESCAPES,
        blocks=(ESCAPES,),
    )
    found = Checkup(environments=(ESCAPES,), checks=(evil,))
    for text in (render_checkup(found), dump_checkup(found)):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_json_holds_every_check_and_the_exit_code() -> None:
    told = json.loads(dump_checkup(checkup(sick=True)))
    assert (told["schema_version"], told["exit_code"], told["blocked"]) == (1, 3, ["torch 2.6.0"])
    assert {"name", "area", "about", "read", "status", "so_what", "do_this", "blocks"} == set(
        told["checkup"]["checks"][0]
    )


def test_an_empty_machine_is_shown() -> None:
    none = examined(
        Facts(host=replace(HOST, gpus=Gpus()), candidates=(OLD,), disk=DISK, tools=TOOLS, device="auto", jobs=4)
    )
    assert "none here; runs take the CPU" in render_checkup(Checkup(environments=BOTH[:1], checks=none))
