# mypy: ignore-errors
"""Applies every rule by itself to a module with all operators, and compares what the archives answer.

    python every_rule.py make FOLDER     writes the module, its answer, and an archive for each rule
    python every_rule.py read FOLDER     loads and calls those; prints {rule: off by how much of the largest value}

Both print one line of JSON; ``make`` {rule: [how many nodes it was applied to, and how many it refused]}.
"""

import json
import os
import sys
import types
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

WORKER = Path(__file__).parents[4] / "harness" / "worker"


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)
        self.batch_norm = nn.BatchNorm2d(3)
        self.batch_norm.running_mean.normal_()
        self.batch_norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x, image, batch, mask):
        h = self.norm(self.linear(x))
        spread = h @ h.t() + 4.0 * torch.eye(8)
        out = [h, torch.addmm(h[0], h, spread, beta=0.5, alpha=2), torch.baddbmm(batch, batch, batch)]
        out += [torch.einsum("bij,bjk->bik", batch, batch), torch.einsum("bij,kj->ikb", batch, batch[0])]
        out += [F.gelu(h), F.gelu(h, approximate="tanh"), F.softshrink(h, 0.3), torch.sinh(h)]
        out += [F.dropout(self.batch_norm(image), 0.5, self.training)]
        out += [F.dropout2d(image, 0.5, False), F.alpha_dropout(h, 0.5, False)]
        out += [torch._C._nn.upsample_bilinear2d(image, [7, 9], False, None)]
        out += [torch._C._nn.upsample_bilinear2d(image, None, True, [1.7, 2.3])]
        out += [torch._C._nn.upsample_bicubic2d(image, [20, 9], False, None)]
        out += [torch._C._nn.upsample_nearest2d(image, None, [1.7, 2.3])]
        out += [torch._C._nn.adaptive_avg_pool2d(image, [3, 2])]
        out += [torch._C._nn.pad_sequence([batch[0], batch[0, :2]], True, 0.5)]
        out += [torch._unique2((h * 3).to(torch.int64), True, False, False)[0], torch.arange(1, 4.5, dtype=torch.int64)]
        kept = torch.relu(h)
        kept.add_(h, alpha=2).mul_(3)
        kept[0].sigmoid_()
        out += [kept, torch.cholesky(spread), torch.cholesky(spread, upper=True), torch.qr(spread)[1]]
        heads = batch.unsqueeze(1)
        out += [F.scaled_dot_product_attention(heads, heads, heads, mask)]
        out += [F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)]
        if x.is_vulkan:
            out += [x]
        return out


def worker():
    """Return the worker's modules, imported as it imports them."""
    package = types.ModuleType("gate_worker")
    package.__path__ = [str(WORKER)]
    sys.modules["gate_worker"] = package
    from gate_worker.graph import node_replacement
    from gate_worker.rewrite import rewriting

    return node_replacement, rewriting


def make(folder):
    node_replacement, rewriting = worker()
    torch.manual_seed(0)
    arguments = (torch.randn(8, 8), torch.randn(2, 3, 5, 6), torch.randn(2, 4, 4), torch.randn(4, 4) > -0.5)
    plain = os.path.join(folder, "plain.pt")
    torch.jit.script(Everything().eval()).save(plain)
    module = torch.jit.load(plain)
    torch.save((arguments, module(*arguments)), os.path.join(folder, "recorded"))
    graph = rewriting.inlined(module, "forward")
    sites, applied = list(node_replacement.sites(graph)), {}
    for name, rule in rewriting.RULES.items():
        fits = [address for address, site in sites if rule.fits(site)]
        if name == "fence":
            fits = [address for address, site in sites if not rewriting.execution.why_no_fence(site)]
        order = {"method": "forward", "edits": [[name, address] for address in fits], "fold": False, "operators": []}
        patched = torch.jit.load(plain)
        done = rewriting.rewritten(patched, order)
        applied[name] = [len(done["nodes"]), len(done["refused"])]
        if done["nodes"]:
            patched.save(os.path.join(folder, name + ".pt"))
    return applied


def read(folder):
    arguments, recorded = torch.load(os.path.join(folder, "recorded"))
    found = {}
    for path in sorted(Path(folder).glob("*.pt")):
        answers = torch.jit.load(str(path))(*arguments)
        found[path.stem] = max(map(off, answers, recorded)) if len(answers) == len(recorded) else float("inf")
    return found


def off(answer, recorded):
    """Return the largest difference over the largest value."""
    if answer.shape != recorded.shape or answer.dtype != recorded.dtype:
        return float("inf")
    answer, recorded = answer.double(), recorded.double()
    return float((answer - recorded).abs().max() / recorded.abs().max().clamp(min=1e-30))


print(json.dumps({"make": make, "read": read}[sys.argv[1]](sys.argv[2])))
