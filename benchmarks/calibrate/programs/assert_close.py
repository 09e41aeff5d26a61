"""What ``torch.testing.assert_close`` says of recorded outputs: run by the new release's own interpreter.

Reads ``[{"name", "model", "old", "twin", "new"}, ...]`` from the file that it is given (folders with outputs), prints
``{"torch": release, "said": {name: "" or the first line of what it raised}}``. Python 3.8 grammar, torch only.
"""

# mypy: ignore-errors

import json
import sys

import recorded
import torch


def answers(folder, model, read):
    """Return (input set, call) -> output."""
    values = read(folder, "cpu")
    return {
        (line["set"], line["call"]): values.value(line["tree"]) for line in read.index(folder) if line["model"] == model
    }


def said(pair, read):
    """Return what the first call that is not close raises, with the defaults that a test would use."""
    old = answers(pair["old"], pair["twin"], read)
    new = answers(pair["new"], pair["model"], read)
    for key, expected in old.items():
        if key not in new:
            return "KeyError: no output"
        try:
            torch.testing.assert_close(new[key], expected)
        except Exception as error:
            return "{}: {}".format(type(error).__name__, str(error).strip().split("\n")[0])
    return ""


def main():
    read = recorded.reader()
    with open(sys.argv[1], encoding="utf-8") as stream:
        pairs = json.load(stream)
    print(json.dumps({"torch": torch.__version__, "said": {pair["name"]: said(pair, read) for pair in pairs}}))


main()
