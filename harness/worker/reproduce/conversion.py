"""Converts a TorchScript archive by torch's own converter. Needs torch and nothing else.

    python reproduce.py        exit code 0: it is converted, 1: it is not, 125: cannot be tested here

So it can be given to ``git bisect run``; ``--help`` tells the options. ``case.json`` beside it holds the arguments that
the archive is called and converted with, ``tensors.bin`` the bytes of their tensors.
"""

import os
import sys

from gate_worker.reproduce.endings import failed
from gate_worker.reproduce.process import HERE, main
from gate_worker.reproduce.settings import prepared
from gate_worker.reproduce.values import Values


def work(torch, case, order, report):
    """Return how the conversion ends; without a converter, or an answer of TorchScript itself, it is untestable."""
    with prepared(torch, case, order, report):
        report.phase("load")
        module = torch.jit.load(order["artifact"], map_location=case["device"]).eval()
        with open(os.path.join(HERE, "tensors.bin"), "rb") as stream:
            values = Values(torch, stream.read(), case["device"])
        report.phase("TorchScript")
        try:
            module(*values.value(case["arguments"]))
        except Exception as error:
            return {"what": "untestable", "text": failed(error, "TorchScript")["text"]}
        report.phase("the import of the converter", counts=False)
        try:
            from torch._export.converter import TS2EPConverter
        except ImportError:
            return {"what": "untestable", "text": "torch %s has no converter" % torch.__version__}
        report.phase("convert")
        try:
            TS2EPConverter(module, values.value(case["arguments"])).convert()
        except Exception as error:
            return failed(error, "convert")
        return {"what": "good", "text": "it is converted"}


if __name__ == "__main__":
    sys.exit(main(work))
