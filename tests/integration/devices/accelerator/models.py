"""Writes models made on the CPU, in the release that runs it: twenty of each kind, and a manifest with their requests.

Called with a folder. ``mixing`` is healthy; no graph can hold ``selecting``, whose twin is ``weighting``. The one
``placing`` runs on the CPU alone.
"""

import os
import sys

import torch

COPIES = 20


class Mixing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 8)
        self.out = torch.nn.Linear(8, 3)

    def forward(self, words):
        return self.out(torch.relu(self.words(words)).mean(1))


class Selecting(torch.nn.Module):
    """``nonzero`` has the host wait for a count: not permitted while a stream is captured."""

    def forward(self, x):
        return x[torch.nonzero(x.relu().flatten()).flatten() % x.size(0)].sum(0)


class Weighting(torch.nn.Module):
    def forward(self, x):
        return (x * (x > 0)).sum(0)


class Placing(torch.nn.Module):
    def forward(self, x):
        return x + torch.ones([8], device=torch.device("cpu"))


WORDS, NUMBERS = '{ shape = [4, 6], dtype = "int64", below = 50 }', "{ shape = [16, 8] }"
folder = sys.argv[1]
with open(os.path.join(folder, "models.toml"), "w") as manifest:
    kinds = ((Mixing, WORDS, COPIES), (Selecting, NUMBERS, COPIES), (Weighting, NUMBERS, COPIES), (Placing, NUMBERS, 1))
    for module, argument, copies in kinds:
        for number in range(copies):
            torch.manual_seed(number)
            name = "%s_%02d" % (module.__name__.lower(), number)
            torch.jit.save(torch.jit.script(module().eval()), os.path.join(folder, name + ".pt"))
            request = "requests = [{ arguments = [%s] }]" % argument
            tags = 'tags = ["%s"]' % module.__name__.lower()
            manifest.write('[[models]]\npath = "%s.pt"\n%s\n%s\nseed = %d\n\n' % (name, tags, request, number))
