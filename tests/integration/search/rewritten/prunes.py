# mypy: ignore-errors
"""Folds a module whose parts are out of reach in every way, cuts a branch of it, and prints what is left.

    python prunes.py FOLDER

One line of JSON: what was emptied, where the operator stood before and after, and what calls answer.
"""

import json
import os
import sys
import types
from pathlib import Path
from typing import Optional, Tuple

import torch
from torch import nn

WORKER = Path(__file__).parents[4] / "harness" / "worker"
GONE = ("aten::sinh",)


class Part(nn.Module):
    def forward(self, x):
        return torch.sinh(x)


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x, twice: bool = False, deep: bool = False) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        more: Optional[torch.Tensor] = None
        if self.training:
            x = torch.sinh(x)
        if twice:
            for _ in range(2):
                if deep:
                    x = self.part(x)
        if deep:
            more = self.part(x)
        return torch.relu(x), more

    @torch.jit.export
    def other(self, x):
        if x.numel() > 100:
            return torch.sinh(x)
        return x + 1


def main(folder):
    package = types.ModuleType("gate_worker")
    package.__path__ = [str(WORKER)]
    sys.modules["gate_worker"] = package
    from gate_worker.graph import node_replacement
    from gate_worker.rewrite import pruning
    from gate_worker.rewrite import rewriting

    path = os.path.join(folder, "holder.pt")
    torch.jit.save(torch.jit.script(Holder().eval()), path, _extra_files={"labels.txt": "cat"})
    module = torch.jit.load(path)
    told = {"before": [[one["method"], one["branch"]] for one in pruning.found(module, GONE)]}
    told["beside"] = {name: text.decode() for name, text in rewriting.extra_files(path).items()}
    told["emptied"] = pruning.fold(module, GONE)
    for method in ("forward", "other"):
        places = [one["address"] for one in pruning.found(module, GONE) if one["method"] == method]
        order = {"method": method, "edits": [["cut-branch", place] for place in places], "fold": False, "operators": []}
        assert not rewriting.rewritten(module, order)["refused"]
    pruned = os.path.join(folder, "pruned.pt")
    module.save(pruned)
    told["cut"] = [one["method"] for one in pruning.found(torch.jit.load(pruned), GONE)]
    before, after = torch.jit.load(path), torch.jit.load(pruned)
    x = torch.tensor([-1.0, 2.0])
    told["same"] = [torch.equal(before(x)[0], after(x)[0]), torch.equal(before.other(x), after.other(x))]
    told["kept"] = [torch.equal(before(x, True)[0], after(x, True)[0]), after(x, True)[1] is None]
    told["raises"] = [said(lambda: after(x, True, True)), said(lambda: after.other(torch.ones(200)))]
    try:
        pruning.cut_branch(node_replacement.site_at(before.forward.inlined_graph, [0]))
    except node_replacement.Refused as error:
        told["outside"] = str(error)
    print(json.dumps(told))


def said(call):
    try:
        call()
    except torch.jit.Error as error:
        return "never reached by a recorded request" in str(error)
    return False


main(sys.argv[1])
