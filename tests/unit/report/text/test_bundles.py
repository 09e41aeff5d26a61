"""What ``pack`` prints."""

from harness.core.environment import Fingerprint
from harness.core.golden import Packed, Packing
from harness.report.text.bundles import render_packing

DIN = Packed(model="din", path="bundles/din.gate", size_bytes=103_803)
LOST = Packed(model="lost", why="hangs in call in torch 2.1.2, alone")
PRODUCER = Fingerprint(torch="2.1.2+cu121")


def test_every_model_is_a_line_and_the_rest_says_why_not() -> None:
    guessed = Packed(model="guessed", path="bundles/guessed.gate", size_bytes=10, note="guessed from the graph: x")
    packing = Packing(
        producer=PRODUCER, device="cpu", rows=(DIN, LOST, guessed), notes=("a.txt is no model",), evidence="reports/p"
    )
    assert render_packing(packing) == (
        "model    bundle                   size\n"
        "-------  --------------------  -------\n"
        "din      bundles/din.gate      101 KiB\n"
        "lost     -                           -\n"
        "guessed  bundles/guessed.gate     10 B\n"
        "\n"
        "lost\n"
        "    not packed: hangs in call in torch 2.1.2, alone\n"
        "guessed\n"
        "    inputs guessed from the graph: x\n"
        "note  a.txt is no model\n"
        "2 of 3 models packed: golden outputs of torch 2.1.2+cu121 on cpu\n"
        "what the workers left: reports/p\n"
    )
    assert not packing.complete


def test_a_complete_packing_says_so_in_one_line() -> None:
    packing = Packing(producer=PRODUCER, device="cpu", rows=(DIN,))
    assert packing.complete
    assert render_packing(packing).splitlines()[-1] == (
        "1 of 1 model packed: golden outputs of torch 2.1.2+cu121 on cpu"
    )


def test_control_characters_of_names_are_escaped() -> None:
    hostile = Packed(model="din", path="a\x1b[2J/din.gate", size_bytes=1)
    lost = Packed(model="lost", why="\x1b[2J in a message")
    text = render_packing(Packing(producer=PRODUCER, device="cpu", rows=(hostile, lost)))
    assert "\x1b" not in text
    assert "\\x1b" in text
